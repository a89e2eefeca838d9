"""Random patterns of sequences, small enough to shrink: a chain of parts, each an element, a group or alternatives.

    Part("NEXT", (DrawnElement("A", "a", "+"),))      … NEXT A a+
    conditions                                texts that name elements by their alias; who drops an element drops them too

Takes: a source of chance. Gives: a pattern and its text. Never: checks that the language accepts it (compiling does).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from fairlead.guarantees.constructs import Construct

NEXT, THEN = Construct.NEXT.code, Construct.THEN.code
SIGNS = ("<", "<=", "=", "!=", ">", ">=")
QUANTIFIERS = ("+", "+", "*", "?", "{2,}", "{1,2}", "{2,3}", "{2}")
ROUNDS = ("+", "+", "*", "?", "{2}", "{1,2}", "{2,}")
GAP = " WITHIN 5 SECONDS OF PREVIOUS"
WITHIN = "WITHIN 8 SECONDS"


@dataclass(frozen=True)
class DrawnElement:
    """An element. `count`: `[2]` or a quantifier; `end`: SHORTEST; `until`: the smallest x that ends it."""

    type: str
    alias: str
    count: str = ""
    end: str = ""
    until: int | None = None
    gap: bool = False

    @property
    def text(self) -> str:
        until = "" if self.until is None else f" UNTIL {self.alias}.x >= {self.until}"
        return f"{self.type} {self.alias}{self.count}{self.end}{until}{GAP if self.gap else ''}"


@dataclass(frozen=True)
class Part:
    """`word`: what stands before it. Several items are a group, joined by NEXT, THEN or ELSE, with a quantifier of its own."""

    word: str
    items: tuple[DrawnElement, ...]
    joined: str = ""
    count: str = ""
    end: str = ""

    @property
    def text(self) -> str:
        inner = f" {self.joined} ".join(item.text for item in self.items)
        return inner if len(self.items) == 1 and not self.count else f"({inner}){self.count}{self.end}"


@dataclass(frozen=True)
class DrawnSequence:
    parts: tuple[Part, ...]
    conditions: tuple[str, ...] = ()
    having: tuple[str, ...] = ()

    @property
    def items(self) -> tuple[DrawnElement, ...]:
        return tuple(item for part in self.parts for item in part.items)

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.type for item in self.items))

    @property
    def chain(self) -> str:
        text = "".join(f" {part.word} {part.text}" if at else part.text for at, part in enumerate(self.parts))
        return f"({text})" if len(self.parts) == 1 and self.parts[0].joined == "ELSE" and not self.parts[0].count else text

    def then(self, word: str, name: str) -> DrawnSequence:
        """Followed by an event of another type."""
        return replace(self, parts=(*self.parts, Part(word, (DrawnElement(name, name.lower()),))))

    def match_text(self, others: tuple[DrawnSequence, ...] = ()) -> str:
        """MATCH, WHERE and HAVING; with the others as further branches."""
        everything = (self, *others)
        conditions = [each for pattern in everything for each in pattern.conditions]
        having = [each for pattern in everything for each in pattern.having]
        where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
        whole = f"\nHAVING {' AND '.join(having)}" if having else ""
        return f"MATCH {' OR '.join(each.chain for each in everything)}{where}{whole}"

    @property
    def size(self) -> int:
        options = sum((bool(i.count) + bool(i.end) + (i.until is not None) + i.gap) * 2 + 3 for i in self.items)
        digits = sum(int(each) for text in (*self.conditions, *self.having) for each in re.findall(r"\d+", text))
        groups = sum(2 * bool(each.count) + bool(each.joined) + bool(each.end) for each in self.parts)
        until = sum(i.until or 0 for i in self.items)
        return options + groups + 4 * (len(self.conditions) + len(self.having)) + digits + until

    def simpler(self) -> Iterator[DrawnSequence]:
        for at, part in enumerate(self.parts):
            if len(self.parts) > 1:
                yield self._with(self.parts[:at] + self.parts[at + 1 :])
            for smaller in _simpler_parts(part):
                yield self._with((*self.parts[:at], smaller, *self.parts[at + 1 :]))
        for at in range(len(self.conditions)):
            yield replace(self, conditions=self.conditions[:at] + self.conditions[at + 1 :])
        for at in range(len(self.having)):
            yield replace(self, having=self.having[:at] + self.having[at + 1 :])

    def _with(self, parts: tuple[Part, ...]) -> DrawnSequence:
        left = {item.alias for part in parts for item in part.items}

        def still(texts: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(each for each in texts if left.issuperset(re.findall(r"\b([abc]\d?)\b", each)))

        return DrawnSequence(parts, still(self.conditions), still(self.having))


def _simpler_parts(part: Part) -> Iterator[Part]:
    if len(part.items) > 1:
        for at in range(len(part.items)):
            items = part.items[:at] + part.items[at + 1 :]
            yield replace(part, items=items, joined=part.joined if len(items) > 1 else "")
    if part.count:
        yield replace(part, count="", end="")
    if part.end:
        yield replace(part, end="")
    if part.joined == THEN:
        yield replace(part, joined=NEXT)
    for at, item in enumerate(part.items):
        for smaller in _simpler_items(item):
            yield replace(part, items=(*part.items[:at], smaller, *part.items[at + 1 :]))


def _simpler_items(item: DrawnElement) -> Iterator[DrawnElement]:
    if item.gap:
        yield replace(item, gap=False)
    if item.until is not None:
        yield replace(item, until=None)
    if item.end:
        yield replace(item, end="")
    if item.count:
        yield replace(item, count="", end="", until=None)
        if item.count not in ("+", "[2]"):
            yield replace(item, count="+")


def drawn_pattern(chance: Random, first: int = 1) -> DrawnSequence:
    """`first`: the number of its first alias, so that two patterns have none in common."""
    timed = chance.random() < 0.3
    names = chance.choice(("AB", "AB", "AAB", "ABC", "A"))
    used = dict.fromkeys("ABC", first - 1)

    def item(inside: bool) -> DrawnElement:
        name = chance.choice(names)
        used[name] += 1
        alias = name.lower() + (str(used[name]) if used[name] > 1 else "")
        count = chance.choice(QUANTIFIERS) if chance.random() < (0.15 if inside else 0.4) else ""
        if not count and chance.random() < 0.06:
            count = "[2]"
        is_run = count not in ("", "[2]")
        end = " SHORTEST" if is_run and chance.random() < 0.35 else ""
        until = chance.choice((1, 2, 3)) if is_run and chance.random() < 0.12 else None
        return DrawnElement(name, alias, count, end, until, timed and chance.random() < 0.5)

    parts = []
    for _ in range(chance.choice((1, 1, 2, 2, 2, 3))):
        word, kind = chance.choice((NEXT, NEXT, THEN)), chance.random()
        if kind < 0.76:
            parts.append(Part(word, (item(False),)))
        elif kind < 0.88:
            count = chance.choice(ROUNDS)
            end = " SHORTEST" if count != "{2}" and chance.random() < 0.3 else ""
            parts.append(Part(word, (item(True), item(True)), chance.choice((NEXT, NEXT, THEN)), count, end))
        else:
            parts.append(Part(word, (item(True), item(True)), "ELSE", chance.choice(("", "", "+", "?"))))
    pattern = DrawnSequence(tuple(parts))
    conditions = tuple(_condition(pattern, chance) for _ in range(chance.choice((0, 0, 1, 1, 2))))
    having = (_whole(pattern, chance),) if chance.random() < 0.15 else ()
    return replace(pattern, conditions=tuple(dict.fromkeys(conditions)), having=having)


def _condition(pattern: DrawnSequence, chance: Random) -> str:
    at = chance.randrange(len(pattern.items))
    item, sign, value = pattern.items[at], chance.choice(SIGNS), chance.randrange(4)
    name = f"{item.alias}[2]" if item.count == "[2]" else item.alias
    kind, before = chance.random(), pattern.items[:at]
    if kind < 0.35 or item.count == "[2]":
        return f"{name}.x {sign} {value}"
    if kind < 0.6:
        return f"{name}.x {sign} prev({name}.x)"
    if before and kind < 0.85:
        other = chance.choice(before)
        if other.count in ("", "[2]"):
            return f"{name}.x {sign} {other.alias}{'[1]' if other.count else ''}.x"
        return f"{name}.x {sign} {chance.choice(('last', 'first', 'sum', 'max'))}({other.alias}.x)"
    return f"{chance.choice(('count({})', 'sum({}.x)')).format(item.alias)} {chance.choice(('<', '<=', '!='))} {value + 1}"


def _whole(pattern: DrawnSequence, chance: Random) -> str:
    item = chance.choice(pattern.items)
    whole = ("count({}) >= 2", "count({}) = 1", "sum({}.x) >= 3", "sum({}.x) = 2", "first({}.x) < last({}.x)")
    return chance.choice(whole).replace("{}", item.alias)
