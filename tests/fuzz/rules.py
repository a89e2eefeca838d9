"""Random rule texts that compile, nearly always: every clause of the language, over types that overlap.

Independent of the generators in tests/match: the shape of a plan is drawn first (which features it has at all, and how often),
so that rare combinations are as likely as common ones. A text is kept as its parts, so that a finding can be made smaller.

Gives: `Rules`, and `rules(rng)`. Never: events (streams.py), or a second random source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tests.fuzz.kept_rows import DrawnTables
from tests.matching.generators.bounds import bound_words
from tests.matching.generators.options import DISPOSALS, option_words
from tests.matching.generators.sequences import DrawnSequence

SIGNS = ("=", "=", "!=", "<", "<=", ">", ">=")
QUANTIFIERS = ("+", "+", "*", "*", "?", "{2}", "{2,}", "{,2}", "{1,3}", "{1000000,}")
DEPTH_MAX = 5
"""Levels of derived types."""
MEMBERS_MAX = 7
KEYS = ("INT", "INT", "BIGINT", "BIGINT", "STRING", "DOUBLE", "DECIMAL(12,2)", "TIMESTAMP", "BOOLEAN", "BINARY")
NESTED = {"l": "ARRAY<INT>", "r": "STRUCT<x: INT, a: ARRAY<STRING>>"}
TEXTS = ("a", "b", "A", "", "ab", "é")
FEATURES = (
    "subtypes", "unions", "keys", "several keys", "unlike keys", "windows", "between", "absences", "then", "instances",
    "alike", "disjunction", "derived", "declared", "equalities", "unlike", "doubles", "decimals", "texts", "aggregates", "or",
    "unary", "times", "untimed", "long patterns",
)  # fmt: skip


@dataclass(frozen=True)
class Clauses:
    """One subscription in its parts; what is empty is not there."""

    name: str
    branches: tuple[str, ...]
    where: tuple[str, ...] = ()
    having: tuple[str, ...] = ()
    per: tuple[str, ...] = ()
    within: str = ""
    withouts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    emit: str = ""

    def __str__(self) -> str:
        lines = [f"SUBSCRIPTION {self.name}", "MATCH " + " OR ".join(f"({each})" for each in self.branches)]
        lines += ["WHERE " + " AND ".join(self.where)] if self.where else []
        lines += ["HAVING " + " AND ".join(self.having)] if self.having else []
        lines += ["PER " + ", ".join(self.per)] if self.per else []
        lines += [self.within] if self.within else []
        return "\n".join([*lines, *self.withouts, *self.options, *([self.emit] if self.emit else [])])

    def smaller(self) -> Iterator[Clauses]:
        """The same with one part less."""
        for name in ("where", "having", "withouts", "per", "options"):
            parts = getattr(self, name)
            for at in range(len(parts)):
                yield replace(self, **{name: parts[:at] + parts[at + 1 :]})
        for at in range(len(self.branches) if len(self.branches) > 1 else 0):
            yield replace(self, branches=self.branches[:at] + self.branches[at + 1 :])
        for name in ("within", "emit"):
            if getattr(self, name):
                yield replace(self, **{name: ""})


@dataclass(frozen=True)
class Rules:
    declared: tuple[str, ...]
    subscriptions: tuple[Clauses, ...]
    attributes: Mapping[str, Mapping[str, str]] = field(compare=False)
    """Of each type that events may have, the attributes and their types."""

    def __str__(self) -> str:
        return "\n".join([*self.declared, *map(str, self.subscriptions)])

    def smaller(self) -> Iterator[Rules]:
        for at, each in enumerate(self.subscriptions):
            before, after = self.subscriptions[:at], self.subscriptions[at + 1 :]
            if before or after:
                yield replace(self, subscriptions=before + after)
            yield from (replace(self, subscriptions=(*before, made, *after)) for made in each.smaller())
        for at in range(len(self.declared)):
            yield replace(self, declared=self.declared[:at] + self.declared[at + 1 :])


@dataclass
class Pattern:
    """One conjunction: its text, and how its members are called."""

    text: str
    members: list[str]
    several: list[str]
    types: list[str]
    runs: list[str] = field(default_factory=list)
    """Elements with any number of events, which have no members of their own."""


def rules(rng: Random) -> Rules:
    return _Writer(rng).rules()


class _Writer:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.later = Random(str(rng.getstate()))
        """For what the language got later: seeds of the corpus draw the rest as they did."""
        self.before = self.later.choice((0.0, 0.0, 0.3, 0.9))
        self.last = Random(f"LIMIT {rng.getstate()}")
        self.limits = self.last.choice((0.0, 0.0, 0.0, 0.3, 0.9))
        self.bound = Random(f"RETAIN {rng.getstate()}")
        self.bounds = self.bound.choice((0.0, 0.0, 0.2, 0.8))
        self.tables = DrawnTables(Random(f"TABLE {rng.getstate()}"))
        self.span = Random(f"bucket {rng.getstate()}")
        self.spans = self.span.choice((0.0, 0.0, 0.0, 0.3, 0.9))
        self.step = Random(f"NEXT {rng.getstate()}")
        self.steps = self.step.choice((0, 0, 0, 1, 2))
        """How many subscriptions are sequences."""
        self.run = self.later.choice((0.0, 0.0, 0.0, 0.3, 0.8))
        self.often = {name: rng.choice((0.0, 0.0, 0.15, 0.5, 0.9)) for name in FEATURES}
        self.key = rng.choice(KEYS)
        names = rng.sample("ABCDEFGH", 7)
        self.roots, self.spare = names[: rng.choice((1, 2, 2, 3, 3))], names[3:]
        self.base = {
            "k": self.key,
            "j": self.key if rng.random() < 0.7 else rng.choice(KEYS),
            "x": rng.choice(("INT", "BIGINT")),
        }
        self.base |= {"y": "DOUBLE", "s": "STRING"}
        self.base |= {"n": rng.choice(("DECIMAL(9,2)", "DECIMAL(38,10)"))} if self.has("decimals") else {}
        self.base |= {"b": "BOOLEAN"} if rng.random() < 0.3 else {}
        self.base |= {"t": "TIMESTAMP"} if rng.random() < 0.3 else {}
        self.delay = Random(f"AFTER {rng.getstate()}")
        self.delays = self.delay.choice((0.0, 0.0, 0.0, 0.0, 0.5))
        self.day = Random(f"DATE {rng.getstate()}")
        self.days = self.day.choice((0.0, 0.0, 0.0, 0.4))
        """How often a condition is about dates."""
        if self.days:
            self.base |= {"e": "DATE"} | ({"j": "DATE"} if self.base["j"] != self.key else {})
        self.nest = Random(f"ARRAY {rng.getstate()}")
        self.nested = self.nest.choice((0.0, 0.0, 0.0, 0.4))
        """How often a condition is about arrays and structs."""
        self.plain = list(self.base)
        if self.nested:
            self.base |= NESTED
        self.untimed = self.has("untimed") and rng.random() < 0.5
        self.attributes: dict[str, dict[str, str]] = {}
        self.declared: list[str] = []
        self.readable: list[str] = []
        self.rows: list[str] = []
        """Declarations of tables."""

    def has(self, feature: str) -> bool:
        return self.rng.random() < self.often[feature]

    # --- types

    def rules(self) -> Rules:
        self.declare()
        subscriptions = [*self.subscriptions(), *(self.sequence() for _ in range(0 if self.untimed else self.steps))]
        self.rng.shuffle(subscriptions)
        named = [replace(each, name=f"S{at}") for at, each in enumerate(subscriptions)]
        self.declared += self.rows
        return Rules(tuple(self.declared), tuple(named), self.attributes)

    def declare(self) -> None:
        for name in self.roots:
            timed = {} if self.untimed and self.rng.random() < 0.5 else {"at": "TIMESTAMP"}
            self._type(name, self.base | timed, "", " TIME at" if timed else "")
        concrete = list(self.roots)
        while self.spare and self.has("subtypes"):
            name, of = self.spare.pop(), self.rng.choice(concrete)
            more = self.rng.choice(({}, {"z": "INT"}, {f"z{name}": "DOUBLE"}))
            if more.keys() & self.attributes[of].keys():
                more = {}
            self.attributes[name] = self.attributes[of] | more
            listed = ", ".join(f"{each} {kind}" for each, kind in more.items())
            self.declared.append(f"TYPE {name} EXTENDS {of} ({listed})")
            concrete.append(name)
        self.readable = list(concrete)
        while self.spare and len(concrete) > 1 and self.has("unions"):
            name = self.spare.pop()
            members = self.rng.sample(concrete, self.rng.choice((2, 2, 3)) if len(concrete) > 2 else 2)
            self.declared.append(f"EVENT UNION {name} = {' + '.join(members)}")
            self.readable.append(name)
        self.rows = self.tables.declared(self.readable)

    def _type(self, name: str, attributes: dict[str, str], extends: str, time: str) -> None:
        self.attributes[name] = attributes
        listed = ", ".join(f"{each} {kind}" for each, kind in attributes.items())
        self.declared.append(f"TYPE {name}{extends} ({listed}){time}")

    # --- subscriptions

    def subscriptions(self) -> list[Clauses]:
        levels = self.rng.choice((1, 2, 2, 3, DEPTH_MAX)) if self.has("derived") else 0
        found: list[Clauses] = []
        inputs = list(self.readable)
        derived: list[str] = []
        for level in range(levels):
            name = f"{self.rng.choice('ABCZ')}E{level}"
            read = inputs if not derived else [*self.rng.sample(inputs, min(2, len(inputs))), *derived[-2:], derived[-1]]
            timed = not self.untimed and self.rng.random() < 0.4
            if timed and self.has("declared"):
                self.declared.append(
                    f"TYPE {name} ({', '.join(f'{a} {k}' for a, k in self.base.items())}, at TIMESTAMP) TIME at"
                )
                if self.spare and self.has("unions"):
                    union = self.spare.pop()
                    self.declared.append(f"EVENT UNION {union} = {name} + {self.rng.choice(inputs)}")
                    derived.append(union)
            emitters = 2 if self.rng.random() < 0.15 else 1
            found += [self.subscription(read, name, timed) for _ in range(emitters)]
            derived.append(name)
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            read = [*inputs, *derived[-3:], *derived[-1:]] if self.rng.random() < 0.7 else (derived[-1:] or inputs)
            found.append(self.subscription(read, None, False))
        while self.has("alike") and len(found) < 8:
            found.append(self.alike(self.rng.choice(found)))
        return found

    def alike(self, of: Clauses) -> Clauses:
        """The same pattern with another condition on single events: they share a kernel."""
        alias = re.split(r"[\[{+*?]", of.branches[0].replace("(", " ").split()[1].rstrip(")"))[0]
        member = f"{alias}[1]" if f"{alias}[" in of.branches[0] else alias
        return replace(of, where=(*of.where, self.unary(member)))

    def subscription(self, types: Sequence[str], emits: str | None, timed: bool) -> Clauses:
        prefixes = self.rng.choice(("pq", "pq", "pqr")) if self.has("disjunction") else "p"
        patterns = [self.pattern(prefix, types, shared=len(prefixes) > 1 and emits is not None) for prefix in prefixes]
        where: list[str] = []
        having: list[str] = []
        for each in patterns:
            where += [self.across(each) for _ in range(self.rng.choice((0, 0, 1, 1, 2))) if len(each.members) > 1]
            where += [self.unary(member) for member in each.members if self.has("unary")]
            where += [self.aggregate(each)] if each.several and self.has("aggregates") else []
            where += [self.of_each(each) for _ in each.runs if self.later.random() < 0.6]
            having += [self.of_all(each) for _ in each.runs if self.later.random() < 0.6]
        withouts = [
            made for each, prefix in zip(patterns, prefixes, strict=True) for made in self.withouts(each, prefix, types)
        ]
        read = any(name not in self.readable for name in types)
        options = option_words(self.rng, [each.members for each in patterns], few=emits is not None or read)
        if any(each.runs for each in patterns):
            options = [f"MATCHING {self.later.choice(('FIRST', 'RECENT'))}", f"DISPOSAL {self.later.choice(DISPOSALS)}"]
        options = [
            each for each in options if not each.startswith(("MATCHING F", "DISPOSAL PREFIX")) or self.rng.random() < 0.8
        ]
        within = f"WITHIN {self.rng.choice((0.5, 1, 2, 3, 5, 8))} SECONDS" if not self.untimed and self.has("windows") else ""
        emit = self.emit(patterns, emits, timed) if emits else ""
        branches, per = tuple(each.text for each in patterns), self.per(patterns)
        if self.span.random() < self.spans and not self.untimed and all(each in self.readable for each in types):
            per = self.bucketed(per)
        options += bound_words(self.bound, branches, timed=not self.untimed, often=self.bounds)
        if self.last.random() < self.limits:
            options.append(f"LIMIT {self.last.choice((1, 2, 3, 7))}{self.last.choice(('', ' PER KEY')) if per else ''}")
        made = Clauses("S", branches, tuple(where), tuple(having), per, within, tuple(withouts), tuple(options), emit)
        return self.tables.beside(made, [each.members for each in patterns]) if self.tables.names else made

    def bucketed(self, per: tuple[str, ...]) -> tuple[str, ...]:
        """With a bucket of time at any place of the key."""
        name = "t" if "t" in self.base and self.span.random() < 0.3 else "at"
        at = self.span.randint(0, len(per))
        return (*per[:at], f"bucket({name}, {self.span.choice((1, 2, 3, 7))} SECONDS)", *per[at:])

    def sequence(self) -> Clauses:
        """Of the events of the input: not all that is emitted has a time."""
        rng, made = self.step, DrawnSequence(self.step, self.readable)
        having = (made.whole(),) if made.runs and rng.random() < 0.3 else ()
        within = f"WITHIN {rng.randint(1, 6)} SECONDS" if rng.random() < 0.5 else ""
        options = [*(["MATCHING FIRST STEPWISE"] if rng.random() < 0.35 else []), made.disposal()]
        per = rng.choice(((), ("k",), ("k",), ("k", "x")))
        options += [f"LIMIT {rng.randint(1, 3)}"] if rng.random() < 0.15 else []
        per = self.bucketed(per) if self.span.random() < self.spans else per
        return Clauses("S", (made.text,), tuple(made.conditions()), having, per, within, (), tuple(options))

    def pattern(self, prefix: str, types: Sequence[str], shared: bool) -> Pattern:
        """`shared`: its first element is called `p0` and is one event, in all branches, so that all can emit it."""
        rng = self.rng
        room = MEMBERS_MAX if self.has("long patterns") else rng.choice((2, 3, 4))
        count = rng.choice((1, 2, 2, 3, 3, 4))
        chosen = [rng.choice(types)] * count if rng.random() < 0.15 else [rng.choice(types) for _ in range(count)]
        parts: list[str] = []
        made = Pattern("", [], [], [])
        for at, name in enumerate(chosen):
            if not room:
                break
            instances = min(room, rng.choice((2, 2, 3, 3, 4))) if self.has("instances") and not (shared and at == 0) else 1
            room -= instances
            alias = "p0" if shared and at == 0 else f"{prefix}{at}"
            made.types.append(name)
            if self.run and (at or not shared) and self._takes_run(made, last=at == len(chosen) - 1):
                parts.append(f"{name} {alias}{self.later.choice(QUANTIFIERS)}")
                made.runs.append(alias)
                room += instances
                continue
            parts.append(f"{name} {alias}" + (f"[{instances}]" if instances > 1 else ""))
            made.members += [f"{alias}[{i}]" for i in range(1, instances + 1)] if instances > 1 else [alias]
            made.several += [alias] if instances > 1 else []
        made.text = self.joined(parts)
        return made

    def _takes_run(self, made: Pattern, last: bool) -> bool:
        """Most patterns have one run at most: two are refused unless something separates them. All have another element."""
        most = 2 if self.later.random() < 0.2 else 1
        return len(made.runs) < most and bool(made.members or not last) and self.later.random() < self.run

    def joined(self, parts: Sequence[str]) -> str:
        """In any grouping; THEN anywhere."""
        if len(parts) == 1:
            return parts[0]
        cut = self.rng.randrange(1, len(parts))
        left, right = self.joined(parts[:cut]), self.joined(parts[cut:])
        sides = [
            f"({each})" if " " in each.strip() and (" AND " in each or " THEN " in each) else each for each in (left, right)
        ]
        return f"{sides[0]} {'THEN' if self.has('then') else 'AND'} {sides[1]}"

    def per(self, patterns: Sequence[Pattern]) -> tuple[str, ...]:
        if not self.has("keys"):
            return ()
        made = ["k"]
        if self.has("unlike keys") and self.base["j"] == self.base["k"] and len(patterns) == 1:
            aliases = list(dict.fromkeys(each.split("[")[0] for each in patterns[0].members + patterns[0].runs))
            if len(set(patterns[0].types)) == len(aliases) > 1:
                one, two = self.rng.sample(aliases, 2)
                made = [self.rng.choice((f"{one}.k = {two}.j", f"{one}.j = {two}.k", f"{one}.j = {two}.j"))]
        if self.has("several keys"):
            made += self.rng.sample(["j", "x", "s", "y"], self.rng.choice((1, 1, 2)))
        if self.nest.random() < self.nested:
            made.append("r.x")
        return tuple(made)

    def withouts(self, pattern: Pattern, prefix: str, types: Sequence[str]) -> Iterator[str]:
        for at in range(2):
            alias, negated = f"{prefix}n{at}", self.rng.choice(types)
            where = [self.unary(alias)] if self.rng.random() < 0.3 else []
            where += [self.pair(alias, self.rng.choice(pattern.members))] if self.rng.random() < 0.4 else []
            shown = " WHERE " + " AND ".join(where) if where else ""
            if not pattern.runs and not self.untimed and self.delay.random() < self.delays:
                by = f" CLOCK BY {self.delay.choice(self.roots)}" if self.delay.random() < 0.2 else ""
                yield f"AFTER {self.delay.choice((0.5, 1, 2, 4))} SECONDS OF {self.delay.choice(pattern.members)}{by}"
            if self.later.random() < self.before:
                within = (
                    "" if self.untimed or self.later.random() < 0.4 else f" WITHIN {self.later.choice((0.5, 1, 2, 4))} SECONDS"
                )
                yield f"WITHOUT {negated} {alias} BEFORE {self.later.choice(pattern.members)}{within}{shown}"
            elif len(pattern.members) > 1 and self.has("between") and self.rng.random() < 0.6:
                left, right = self.rng.sample(pattern.members, 2)
                yield f"WITHOUT {negated} {alias} BETWEEN {left} AND {right}{shown}"
            elif not pattern.runs and not self.untimed and self.has("absences") and self.rng.random() < 0.6:
                anchor = self.rng.choice(pattern.members)
                by = f" CLOCK BY {self.last.choice(self.roots)}" if self.last.random() < self.limits else ""
                yield f"WITHOUT {negated} {alias} WITHIN {self.rng.choice((0.5, 1, 2, 4))} SECONDS OF {anchor}{by}{shown}"

    def emit(self, patterns: Sequence[Pattern], name: str, timed: bool) -> str:
        """Of what all branches have."""
        members = patterns[0].members[: None if len(patterns) == 1 else 1]
        last, first = self.rng.choice(members), members[0]
        values = {each: f"{self.rng.choice(members)}.{each}" for each in self.base}
        if len(patterns) == 1 and patterns[0].runs:
            run = self.later.choice(patterns[0].runs)
            if self.nested and self.base["x"] == "INT":
                values["l"] = f"collect({run}.x)"
            fits = {"k": ("first", "last"), "j": ("first", "last"), "x": ("first", "last", "min"), "s": ("min", "last")}
            return self._emitted(name, values | {a: f"{self.later.choice(f)}({run}.{a})" for a, f in fits.items()}, last, timed)
        values["x"] = self.rng.choice((f"coalesce({first}.x, 7)", f"{last}.x", f"{first}.x"))
        values["y"] = self.rng.choice((f"{last}.y", self.double(last), f"-{first}.y"))
        values["s"] = self.rng.choice((f"{last}.s", self.text(first)))
        if "n" in values and self.rng.random() < 0.3:
            values["n"] = f"coalesce({first}.n, {last}.n)"
        return self._emitted(name, values, last, timed)

    @staticmethod
    def _emitted(name: str, values: Mapping[str, str], last: str, timed: bool) -> str:
        at = f", at = time({last})) TIME at" if timed else ")"
        return f"EMIT {name} ({', '.join(f'{each} = {value}' for each, value in values.items())}{at}"

    # --- conditions

    def unary(self, member: str) -> str:
        rng = self.rng
        if self.day.random() < self.days:
            return self.of_day(member)
        if self.nest.random() < self.nested:
            return self.of_nested(member)
        made: list[Callable[[], str]] = [
            lambda: f"{member}.x {rng.choice(SIGNS)} {rng.choice((0, 1, 2, 3, 1.5))}",
            lambda: f"{self.number(member)} {rng.choice(SIGNS)} {rng.randrange(4)}",
            lambda: f"{member}.y {rng.choice(SIGNS)} {rng.choice(('0.5', '1', '-0.5', '0.0'))}",
            lambda: f"{member}.s {rng.choice(SIGNS)} '{rng.choice(TEXTS)}'",
            lambda: f"{self.text(member)} IN ('{rng.choice(TEXTS)}', '{rng.choice(TEXTS)}')",
            lambda: f"{member}.s {rng.choice(('', 'NOT '))}LIKE '{rng.choice(('a%', '%b', '_', '%a%', ''))}'",
            lambda: f"{member}.x {rng.choice(('', 'NOT '))}IN ({rng.randrange(3)}, {rng.choice((2, 'NULL'))})",
            lambda: f"{member}.x {rng.choice(('', 'NOT '))}BETWEEN {rng.randrange(2)} AND {rng.randrange(4)}",
            lambda: f"{member}.{rng.choice('xysk')} IS {rng.choice(('', 'NOT '))}NULL",
            lambda: rng.choice((f"isnan({member}.y)", f"NOT isnan({member}.y)")),
            lambda: f"NOT ({member}.x > 1 OR {member}.y < 1)",
            lambda: f"({member}.x = {rng.randrange(3)} OR {member}.s = 'a')",
        ]
        if "b" in self.base:
            made += [lambda: f"{member}.b", lambda: f"NOT {member}.b"]
        return rng.choice(made)()

    def across(self, pattern: Pattern) -> str:
        one, two = self.rng.sample(pattern.members, 2)
        if self.has("or"):
            other = self.unary(one) if self.rng.random() < 0.5 else self.pair(*self.rng.sample(pattern.members, 2))
            return f"({self.pair(one, two)} OR {other})"
        return self.pair(one, two)

    def pair(self, one: str, two: str) -> str:
        """A comparison of two events."""
        rng = self.rng
        if self.day.random() < self.days:
            return self.of_days(one, two)
        if self.nest.random() < self.nested:
            return self.of_two_nested(one, two)
        sign = "=" if self.has("equalities") else rng.choice(SIGNS)
        kinds: list[Callable[[str], str]] = [self.number]
        kinds += [self.double] * 3 if self.has("doubles") else []
        kinds += [self.text] * 3 if self.has("texts") else []
        kinds += [self.decimal] * 2 if "n" in self.base else []
        kinds += [self.moment] * 2 if self.has("times") and not self.untimed else []
        make = rng.choice(kinds)
        if make == self.moment and rng.random() < 0.3:
            return f"time({one}) - time({two}) {rng.choice(SIGNS)} {rng.choice((0.5, 1, 2))} SECONDS"
        if rng.random() < 0.1:
            return f"position({one}) {rng.choice(('<', '>', '!='))} position({two})"
        if self.has("unlike"):
            return f"{make(one)} {sign} {make(two)}"
        if make == self.moment:
            return f"time({one}) {sign} time({two})"
        plain = {"number": "x", "double": "y", "text": "s", "decimal": "n"}[make.__name__]
        return f"{one}.{plain} {sign} {two}.{plain}"

    def of_day(self, member: str) -> str:
        rng = self.day
        return rng.choice(
            (
                f"{member}.e {rng.choice(SIGNS)} DATE '2026-01-0{rng.randint(1, 4)}'",
                f"{member}.e BETWEEN DATE '2026-01-01' AND DATE '2026-01-02'",
                f"day({member}.e) {rng.choice(SIGNS)} {rng.randint(1, 4)}",
                f"cast({member}.e AS STRING) LIKE '%-0{rng.randint(1, 3)}'",
                f"{member}.e IS {rng.choice(('', 'NOT '))}NULL",
            )
        )

    def of_days(self, one: str, two: str) -> str:
        rng = self.day
        return rng.choice(
            (
                f"{one}.e {rng.choice(SIGNS)} {two}.e",
                f"{one}.e - {two}.e {rng.choice(SIGNS)} {rng.randrange(3)} DAYS",
                f"coalesce({one}.e, {two}.e) {rng.choice(SIGNS)} DATE '2026-01-02'",
                f"cast(coalesce({one}.e, {two}.e) AS TIMESTAMP) {rng.choice(SIGNS)} TIMESTAMP '2026-01-02T00:00:00Z'",
            )
        )

    def of_nested(self, member: str) -> str:
        rng = self.nest
        sign, number = rng.choice(SIGNS), rng.randrange(3)
        return rng.choice(
            (
                f"size({member}.l) {sign} {number}",
                f"element_at({member}.l, {rng.choice((1, 2, -1, -3))}) {sign} {number}",
                f"{rng.choice(('', 'NOT '))}array_contains({member}.l, {number})",
                f"{rng.choice(('', 'NOT '))}array_contains({member}.r.a, {member}.s)",
                f"{member}.r.x {sign} {number}",
                f"element_at({member}.r.a, {member}.r.x) IN ('a', 'b')",
                f"{member}.{rng.choice(('l', 'r', 'r.x', 'r.a'))} IS {rng.choice(('', 'NOT '))}NULL",
            )
        )

    def of_two_nested(self, one: str, two: str) -> str:
        rng = self.nest
        return rng.choice(
            (
                f"{one}.r.x {rng.choice(SIGNS)} {two}.r.x",
                f"size({one}.l) {rng.choice(SIGNS)} element_at({two}.l, 1)",
                f"element_at({one}.r.a, -1) {rng.choice(SIGNS)} {two}.s",
                f"coalesce({one}.r.x, {two}.x) {rng.choice(SIGNS)} size({two}.r.a)",
            )
        )

    def aggregate(self, pattern: Pattern) -> str:
        rng, alias = self.rng, self.rng.choice(pattern.several)
        made = f"{rng.choice(('sum', 'avg', 'min', 'max', 'count'))}({alias}.{rng.choice('xy')})"
        other = rng.choice((str(rng.randrange(4)), f"{rng.choice(pattern.members)}.x", f"max({alias}.y) + 1"))
        return f"{made} {rng.choice(SIGNS[1:])} {other}"

    def of_each(self, pattern: Pattern) -> str:
        """A condition on each event of a run."""
        run = self.later.choice(pattern.runs)
        return self.unary(run) if self.later.random() < 0.4 else self.pair(run, self.later.choice(pattern.members))

    def of_all(self, pattern: Pattern) -> str:
        """A condition on a run as a whole."""
        later, run = self.later, self.later.choice(pattern.runs)
        made = [f"count({run})", f"count({run}.y)", f"count(DISTINCT {run}.{later.choice(self.plain)})", f"sum({run}.x)"]
        made += [f"avg({run}.y)", f"min({run}.x)", f"max({run}.y)", f"first({run}.x)", f"last({run}.y)"]
        other = later.choice((str(later.randrange(4)), f"{later.choice(pattern.members)}.x", f"count({run}) - 1"))
        return f"{later.choice(made)} {later.choice(SIGNS[1:])} {other}"

    def number(self, member: str) -> str:
        made = (f"{member}.x", f"{member}.x", f"{member}.x + 1", f"{member}.x - 1", f"{member}.x * 2", f"abs({member}.x)",
                f"{member}.x % 2", f"length({member}.s)", f"coalesce({member}.x, 1)",
                f"floor({member}.y)", f"-{member}.x")  # fmt: skip
        return self.rng.choice(made)

    def double(self, member: str) -> str:
        made = (f"{member}.y", f"{member}.y", f"{member}.y * 2", f"{member}.y + {member}.x", f"{member}.y / 2", f"-{member}.y",
                f"abs({member}.y)", f"coalesce({member}.y, 1.0e0)")  # fmt: skip
        return self.rng.choice(made)

    def text(self, member: str) -> str:
        made = (f"{member}.s", f"{member}.s", f"lower({member}.s)", f"upper({member}.s)", f"trim({member}.s)",
                f"substring({member}.s, 1, 1)", f"substring({member}.s, 2)", f"coalesce({member}.s, 'a')")  # fmt: skip
        return self.rng.choice(made)

    def decimal(self, member: str) -> str:
        made = (f"{member}.n", f"{member}.n", f"{member}.n + 1", f"{member}.n * 2", f"-{member}.n", f"{member}.n + {member}.x")
        return self.rng.choice(made)

    def moment(self, member: str) -> str:
        made = (f"time({member})", f"time({member})", f"time({member}) + 1 SECONDS", f"time({member}) - 0.5 SECONDS")
        return self.rng.choice(made)
