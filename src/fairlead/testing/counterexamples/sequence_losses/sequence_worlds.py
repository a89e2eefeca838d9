"""Small worlds for the search of what sequences lose: a pattern, its subscribers, events in order.

    equal, alone       p1 and p2 have the pattern, or p1 alone has it
    observer           p2 has a single event of one of its types
    extended           p2 has the pattern, followed by an event of another type
    sibling            p1 and p2 have the pattern, followed by events of two other types
    disjunction        p1 and p2 have two patterns, in opposite orders of the text

Each is run with every matching and disposal that sequences have. The same seed and number draw the same world.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any

from fairlead.guarantees.constructs import Constructs, constructs_of, sequence_cell
from fairlead.language import compile_text
from fairlead.model.plans.options import Disposal, Matching
from fairlead.model.plans.plan import Plan
from fairlead.testing.counterexamples.clause_worlds import STEPS, Happening, delivered, events_of_records
from fairlead.testing.counterexamples.sequence_losses.sequence_pattern import NEXT, THEN, WITHIN, DrawnSequence, drawn_pattern
from fairlead.testing.properties.trace import Trace, trace_of

ADVANCE = 2
DISPOSALS = (Disposal.PREFIX_INFIX, Disposal.FIRST_PREFIX, Disposal.ADVANCE, Disposal.UPTO_FIRST, Disposal.UPTO_LAST)
OPTIONS = tuple((matching, disposal) for matching in (Matching.FIRST, Matching.FIRST_STEPWISE) for disposal in DISPOSALS)
Options = tuple[Matching, Disposal]
ROUNDS = 8
KINDS = ("equal", "equal", "equal", "observer", "observer", "extended", "extended", "sibling", "disjunction")


@dataclass(frozen=True)
class SequenceWorld:
    """The last `period` events occur `rounds` times, each round `shift` seconds later, and with keys of its own if they are
    `fresh`. `clauses`: PER, WITHIN, LIMIT. `words`: how p1 and p2 continue, where they do."""

    kind: str
    pattern: DrawnSequence
    happenings: tuple[Happening, ...]
    period: int = 0
    rounds: int = 1
    shift: int = 0
    clauses: tuple[str, ...] = ()
    words: tuple[str, str] = (THEN, THEN)
    other: DrawnSequence | None = None
    seen: str = ""
    """The type of which the observer has single events; the first, if it is not said."""
    fresh: bool = False

    @property
    def unrolled(self) -> tuple[Happening, ...]:
        if not self.period:
            return self.happenings
        again = self.happenings[-self.period :]
        keys = 2 if self.fresh else 0
        later = [
            replace(each, at=each.at + number * self.shift, k=each.k + number * keys)
            for number in range(self.rounds)
            for each in again
        ]
        return (*self.happenings[: -self.period], *later)

    @property
    def attributes(self) -> tuple[str, ...]:
        timed = WITHIN in self.clauses or any(item.gap for item in self.patterns_items)
        return ("x", *(("k",) if any("PER" in each for each in self.clauses) else ()), *(("at",) if timed else ()))

    @property
    def patterns_items(self) -> tuple[Any, ...]:
        return (*self.pattern.items, *(self.other.items if self.other else ()))

    @property
    def types(self) -> tuple[str, ...]:
        named = {item.type for item in self.patterns_items} | {each.type for each in self.happenings}
        named |= {"extended": {"D"}, "sibling": {"D", "E"}}.get(self.kind, set())
        return tuple(sorted(named))

    def declarations(self) -> list[str]:
        kinds = {"x": "x INT", "k": "k INT", "at": "at TIMESTAMP"}
        attributes = ", ".join(kinds[name] for name in self.attributes)
        return [f"TYPE {name} ({attributes}){' TIME at' if 'at' in self.attributes else ''}" for name in self.types]

    def subscriptions(self) -> list[str]:
        """MATCH, WHERE and clauses of p1 and p2, without the options."""
        pattern, ends = self.pattern, "".join(f"\n{each}" for each in self.clauses)
        match self.kind:
            case "alone":
                texts = [pattern.match_text()]
            case "observer":
                per = "\nPER k" if "k" in self.attributes else ""
                name = self.seen or pattern.types[0]
                return [pattern.match_text() + ends, f"MATCH {name} {name.lower()}{per}"]
            case "extended":
                texts = [pattern.match_text(), pattern.then(self.words[0], "D").match_text()]
            case "sibling":
                texts = [pattern.then(word, name).match_text() for word, name in zip(self.words, "DE", strict=True)]
            case "disjunction":
                assert self.other is not None
                texts = [pattern.match_text((self.other,)), self.other.match_text((pattern,))]
            case _:
                texts = [pattern.match_text()] * 2
        return [text + ends for text in texts]

    def option_lines(self, options: Options) -> list[str]:
        """Of each subscriber. UPTO names the first element; an observer has the options that need no element."""
        matching, disposal = options
        if disposal.upto and self.kind == "disjunction":
            return []  # UPTO names an element of every branch
        named = f" {self.pattern.items[0].alias}" if disposal.upto else f" {ADVANCE}" if disposal is Disposal.ADVANCE else ""
        mine = f"MATCHING {matching.words}\nDISPOSAL {disposal.words}{named}"
        observer = f"MATCHING {matching.words}"
        return [mine] if self.kind == "alone" else [mine, observer if self.kind == "observer" else mine]

    def texts(self, options: Options) -> list[str]:
        """All of what p1 and p2 ask."""
        lines = self.option_lines(options)
        return [f"{text}\n{line}" for text, line in zip(self.subscriptions(), lines, strict=True)] if lines else []

    def records(self) -> list[dict[str, Any]]:
        return [{"type": each.type} | {name: getattr(each, name) for name in self.attributes} for each in self.unrolled]


def rules_of_sequences(types: list[str], texts: list[str]) -> str:
    subscriptions = [f"SUBSCRIPTION p{at}\n{text}" for at, text in enumerate(texts, 1)]
    return "\n\n".join(["\n".join(types), *subscriptions]) + "\n"


@lru_cache(maxsize=4096)
def _compiled(text: str) -> Plan:
    return compile_text(text)


def plan_of_sequences(world: SequenceWorld, options: Options) -> Plan | None:
    """None if the options do not go with it, or no subscriber has a sequence. Raises LanguageError."""
    matching, disposal = options
    compiled_as = disposal if disposal.upto else Disposal.PREFIX_INFIX
    texts = world.texts((matching, compiled_as))
    if not texts:
        return None
    plan = _compiled(rules_of_sequences(world.declarations(), texts))
    if any(branch.sequence is None for branch in plan["p1"].branches):
        return None
    if disposal is compiled_as:
        return plan
    advance = ADVANCE if disposal is Disposal.ADVANCE else 0
    chosen = tuple(
        each if world.kind == "observer" and each.name == "p2" else replace(each, disposal=disposal, advance=advance)
        for each in plan.subscriptions
    )
    return replace(plan, subscriptions=chosen)


def described(plan: Plan) -> tuple[str, Constructs]:
    """The cell and the constructs of p1."""
    subscription = plan["p1"]
    found = [constructs_of(subscription, branch) for branch in subscription.branches]
    return sequence_cell(subscription, subscription.branches[0]), frozenset().union(*found)


def run_sequences(world: SequenceWorld, plan: Plan) -> Trace:
    events = events_of_records(plan, world.records())
    return trace_of(plan, events, delivered(plan, events), [each.by for each in world.unrolled])


# At random


def sequence_world(seed: int, number: int) -> SequenceWorld:
    chance = Random(f"{seed}/sequence/{number}")
    kind = chance.choice(KINDS)
    pattern = drawn_pattern(chance)
    other = drawn_pattern(chance, 5) if kind == "disjunction" else None
    clauses: list[str] = []
    if chance.random() < 0.2:
        clauses.append("PER k")
    if chance.random() < 0.25:
        clauses.append(WITHIN)
    if chance.random() < 0.12:
        clauses.append("LIMIT 2")
    words = chance.choice((NEXT, THEN)), chance.choice((NEXT, THEN))
    late = {"extended": "D", "sibling": "DE"}.get(kind, "")
    periodic = kind == "equal" and chance.random() < 0.6
    subscriber = "p2" if kind == "observer" and chance.random() < 0.7 else "p4"
    if periodic:
        before = _events(pattern, "", chance, subscriber, 3) if chance.random() < 0.6 else []
        again = _events(pattern, "", chance, subscriber, 4)
        made, period = _timed([*before, *again], chance), len(again)
    else:
        made, period = _timed(_events(pattern, late, chance, subscriber, 9), chance), 0
    shift = chance.choice((0, 20, 20))
    fresh = periodic and "PER k" in clauses and chance.random() < 0.5
    rounds = ROUNDS if period else 1
    return SequenceWorld(kind, pattern, made, period, rounds, shift, tuple(clauses), words, other, fresh=fresh)


def _events(pattern: DrawnSequence, late: str, chance: Random, subscriber: str, most: int) -> list[Happening]:
    """Of its types, at random or in the order of its elements; those of what follows among them and at the end."""
    names: list[str] = []
    if chance.random() < 0.5:
        names = [chance.choice(pattern.items).type for _ in range(chance.randint(min(3, most), most))]
    else:
        for item in pattern.items * chance.choice((1, 2, 2)):
            names += [item.type] * chance.choice((1, 1, 1, 2))
            names += [chance.choice(pattern.items).type] if chance.random() < 0.15 else []
        names = names[:most]
    for name in late * chance.randint(1, 2):
        names.insert(len(names) if chance.random() < 0.6 else chance.randint(0, len(names)), name)
    publishers = ["p3"] if chance.random() < 0.5 else ["p3", "p4", subscriber]
    return [Happening(name, chance.randrange(4), chance.randrange(2), 0, chance.choice(publishers)) for name in names]


def _timed(events: list[Happening], chance: Random) -> tuple[Happening, ...]:
    at, found = 10, []
    steps = STEPS if chance.random() < 0.4 else tuple(each for each in STEPS if each >= 0)
    for each in events:
        at += chance.choice(steps)
        found.append(replace(each, at=at))
    return tuple(found)


def simpler_worlds(world: SequenceWorld) -> Iterator[SequenceWorld]:
    events = world.happenings
    for at in range(len(events)):
        inside = world.period > 0 and at >= len(events) - world.period
        if not (inside and world.period == 1):
            yield replace(world, happenings=events[:at] + events[at + 1 :], period=world.period - inside)
    if world.period and world.rounds > 1:
        yield replace(world, rounds=world.rounds - 1)
    if world.fresh:
        yield replace(world, fresh=False)
    if world.kind == "equal":
        yield replace(world, kind="alone")
    for at in range(len(world.clauses)):
        yield replace(world, clauses=world.clauses[:at] + world.clauses[at + 1 :])
    for smaller in world.pattern.simpler():
        yield replace(world, pattern=smaller)
    for word in (NEXT, THEN):
        if world.words != (word, word):
            yield replace(world, words=(word, word))
    for at, each in enumerate(events):
        for simpler in _simpler_events(each):
            yield replace(world, happenings=(*events[:at], simpler, *events[at + 1 :]))
    earliest = min((each.at for each in events), default=0)
    if earliest:
        yield replace(world, happenings=tuple(replace(each, at=each.at - earliest) for each in events))


def _simpler_events(event: Happening) -> Iterator[Happening]:
    yield from (replace(event, x=x) for x in range(event.x))
    if event.k:
        yield replace(event, k=0)
    if event.by not in ("p2", "p3"):
        yield replace(event, by="p3")


def size_of_sequence(world: SequenceWorld) -> tuple[int, ...]:
    events = world.happenings
    asked = world.pattern.size + 5 * len(world.clauses) + (world.kind == "equal") + (world.words[0] != world.words[1])
    values = sum(each.x + each.k + abs(each.at) for each in events) + len({each.by for each in events})
    return (len(world.unrolled) + asked, asked, values + world.fresh)
