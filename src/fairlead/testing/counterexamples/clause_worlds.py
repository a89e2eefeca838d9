"""Small worlds with one additional clause: the scenarios of the search (scenarios.py) with WITHIN, PER, WITHOUT … WITHIN,
AFTER, LIMIT, overlapping types, runs, RETAIN, tables or buckets.

    ClauseWorld     a scenario, a clause, and events with a time or a key if the clause needs one

Takes: parts. Gives: rule text with and without the clause, and a Trace after a run. The same seed, clause, shape and number
draw the same world.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from random import Random
from typing import Any

from fairlead.engine import Engine
from fairlead.guarantees.shape import ConjunctionShape
from fairlead.language import compile_text
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.plans.options import PAPER_DISPOSALS, PAPER_MATCHINGS, Disposal, Matching
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.testing.counterexamples.random_scenarios import scenario
from fairlead.testing.counterexamples.run_patterns import AddedRun, drawn_runs, run_texts
from fairlead.testing.counterexamples.scenarios import Scenario, ScenarioEvent, slot_names, subscription_texts
from fairlead.testing.properties.trace import Trace, trace_of

SECOND = 1_000_000
WINDOW, ABSENCE, BUCKET = 5, 3, 10
"""Seconds."""
MOST = 2
"""Relations. With one, no two of a subscriber can be compared."""
FORBIDDEN = "N"
CLOCK = HEARTBEAT.name
"""Tells every subscription the time, and nothing else."""
STEPS = (0, 0, 1, 1, 2, 4, -3, -9)
"""Differences between the times of two events, in seconds: sometimes against the order."""
Cell = tuple[Matching, Disposal]


class AddedClause(Enum):
    """The added clause, with its name in the table."""

    WITHIN = "WITHIN"
    PER = "PER"
    ABSENCE = "WITHOUT WITHIN"
    TIMER = "AFTER"
    OVERLAP = "overlapping types"
    LIMIT = "LIMIT"
    LIMIT_OVER_KEYS = "LIMIT over keys"
    RUNS = "runs"
    HAVING = "HAVING"
    RETAIN_EVENTS = "RETAIN EVENTS"
    RETAIN_EVENTS_BATCH = "RETAIN EVENTS BATCH"
    RETAIN_TIME = "RETAIN TIME"
    RETAIN_TIME_BATCH = "RETAIN TIME BATCH"
    TABLE = "TABLE"
    BUCKET = "PER bucket"

    @property
    def attributes(self) -> tuple[str, ...]:
        if self in (AddedClause.PER, AddedClause.LIMIT_OVER_KEYS, AddedClause.TABLE):
            return ("k", "x")
        timed = (
            *(AddedClause.WITHIN, AddedClause.TIMER, AddedClause.BUCKET),
            *(AddedClause.RETAIN_TIME, AddedClause.RETAIN_TIME_BATCH),
        )
        return ("k", "x", "at") if self is AddedClause.ABSENCE else ("x", "at") if self in timed else ("x",)

    @property
    def retains(self) -> bool:
        return self.value.startswith("RETAIN")

    @property
    def of_runs(self) -> bool:
        return self in (AddedClause.RUNS, AddedClause.HAVING)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that the clause goes with: CONTIGUOUS is not supported with runs, and RETAIN goes with NONE."""
        found = [(m, d) for m in PAPER_MATCHINGS for d in PAPER_DISPOSALS if not (self.of_runs and m.contiguous)]
        return (*found, *((m, Disposal.NONE) for m in PAPER_MATCHINGS if self.retains))


@dataclass(frozen=True)
class Happening:
    """An event of a world: its key and its time in seconds matter only if the clause needs them."""

    type: str
    x: int
    k: int = 0
    at: int = 0
    by: str = "p3"


@dataclass(frozen=True)
class ClauseWorld:
    """`base`: the subscribers and their subscriptions. The last `period` events occur `rounds` times, each round `shift`
    seconds later and with an x that is larger by `rise`."""

    clause: AddedClause
    base: Scenario
    happenings: tuple[Happening, ...]
    period: int = 0
    rounds: int = 1
    shift: int = 0
    rise: int = 0
    anchors: tuple[int, ...] = (0,)
    """WITHOUT and AFTER: the slots of the members from which time is counted."""
    where: bool = False
    """WITHOUT: only an event with the k of that member is forbidden."""
    overlap: tuple[str, str] = ("", "")
    """A type, and the type that extends it."""
    runs: tuple[AddedRun, ...] = ()
    bounded: tuple[str, ...] = ()
    """RETAIN: the types whose queues it bounds; by number, to what a match needs, and one more with `where`."""
    tables: tuple[str, ...] = ()
    """The types of which the pattern reads a table."""

    @property
    def unrolled(self) -> tuple[Happening, ...]:
        if not self.period:
            return self.happenings
        again = self.happenings[-self.period :]
        later = [
            replace(each, at=each.at + number * self.shift, x=each.x + number * self.rise)
            for number in range(self.rounds)
            for each in again
        ]
        return (*self.happenings[: -self.period], *later)

    @property
    def types(self) -> tuple[str, ...]:
        named = {name for process in self.base.processes for pattern in process for name, _ in pattern.types}
        named |= {each.type for each in self.happenings} - {CLOCK} | (
            {FORBIDDEN} if self.clause is AddedClause.ABSENCE else set()
        )
        return tuple(sorted(named | {name for name in self.overlap if name}))

    def declarations(self, with_clause: bool = True) -> list[str]:
        kinds = {"x": "x INT", "k": "k INT", "at": "at TIMESTAMP"}
        attributes = ", ".join(kinds[name] for name in self.clause.attributes)
        time = " TIME at" if "at" in self.clause.attributes else ""
        found = []
        for name in self.types:
            if name == self.overlap[1]:
                extends = f" EXTENDS {self.overlap[0]} (z INT)" if with_clause else f" ({attributes}, z INT)"
                found.append(f"TYPE {name}{extends}")
            else:
                found.append(f"TYPE {name} ({attributes}){time}")
        made = sorted(found, key=lambda each: "EXTENDS" in each)
        tables = [f"TABLE {name}T KEY (k) FROM {name}" for name in self.tables if with_clause]
        return [*made, *tables]

    def subscriptions(self, with_clause: bool = True) -> list[str]:
        if self.clause.of_runs:
            both = self.clause is AddedClause.HAVING
            return run_texts(self.base, self.runs, with_clause or both, with_clause and both)
        texts = subscription_texts(self.base)
        if self.clause is AddedClause.TABLE:
            read = [self._reading(text) for text in texts]
            return [*read[:1], *(texts if self.base.kind == "observer" else read)[1:]] if with_clause else texts
        without = "PER k" if self.clause is AddedClause.LIMIT_OVER_KEYS else ""
        lines = [self._line(number) if with_clause else without for number in range(len(texts))]
        return [f"{text}\n{line}".rstrip() for text, line in zip(texts, lines, strict=True)]

    def _reading(self, text: str) -> str:
        for name in self.tables:
            text = text.replace(f"{name} {name.lower()}", f"{name}T {name.lower()}")
        return text

    def _line(self, process: int) -> str:
        """The clause, for p1 or p2: an observer of single events has none, since none could cost it anything."""
        observer = self.base.kind == "observer" and process == 1
        match self.clause:
            case AddedClause.PER:
                return "PER k"
            case AddedClause.WITHIN if not observer:
                return f"WITHIN {WINDOW} SECONDS"
            case AddedClause.BUCKET:
                return f"PER bucket(at, {BUCKET} SECONDS)"
            case AddedClause.LIMIT if not observer:
                return f"LIMIT {MOST}"
            case AddedClause.LIMIT_OVER_KEYS:
                return "PER k" if observer else f"PER k\nLIMIT {MOST}"
            case AddedClause.ABSENCE if not observer:
                names = slot_names(self.base.pattern, 0)
                return "\n".join(self._absence(alias, names[slot]) for alias, slot in zip("nm", self.anchors, strict=False))
            case AddedClause.TIMER if not observer:
                names = slot_names(self.base.pattern, 0)
                return "\n".join(f"AFTER {ABSENCE} SECONDS OF {names[slot]}" for slot in self.anchors)
        return self._bounds(process) if self.clause.retains and not observer else ""

    def _bounds(self, process: int) -> str:
        counts = {name: count for pattern in self.base.processes[process] for name, count in pattern.types}
        batch = " BATCH" if self.clause.value.endswith("BATCH") else ""
        by_time = self.clause in (AddedClause.RETAIN_TIME, AddedClause.RETAIN_TIME_BATCH)

        def amount(name: str) -> str:
            events = counts[name] + self.where
            return f"{WINDOW} SECONDS" if by_time else f"{events} EVENT{'S' * (events > 1)}"

        said = [f"{name.lower()} {amount(name)}{batch}" for name in self.bounded if name in counts]
        return f"RETAIN {', '.join(said)}" if said else ""

    def _absence(self, alias: str, anchor: str) -> str:
        where = f" WHERE {alias}.k = {anchor}.k" if self.where else ""
        return f"WITHOUT {FORBIDDEN} {alias} WITHIN {ABSENCE} SECONDS OF {anchor}{where}"

    def records(self) -> list[dict[str, Any]]:
        """Times in seconds."""
        found = []
        for each in self.unrolled:
            attributes = ("at",) if each.type == CLOCK else self.clause.attributes
            values = {name: getattr(each, name) for name in attributes}
            found.append({"type": each.type} | values | ({"z": 0} if each.type == self.overlap[1] else {}))
        return found

    def rules(self, cell: Cell, with_clause: bool = True) -> str:
        return rules_of(self.declarations(with_clause), self.subscriptions(with_clause), cell)


def rules_of(types: Sequence[str], subscriptions: Sequence[str], cell: Cell) -> str:
    options = f"MATCHING {cell[0].words}\nDISPOSAL {cell[1].words}"
    texts = [f"SUBSCRIPTION p{at}\n{text}\n{options}" for at, text in enumerate(subscriptions, 1)]
    return "\n\n".join(["\n".join(types), *texts]) + "\n"


@lru_cache(maxsize=4096)
def _compiled(text: str) -> Plan:
    return compile_text(text)


def plan_of_world(world: ClauseWorld, cell: Cell, with_clause: bool = True) -> Plan:
    """Compiled once for all cells. Raises LanguageError."""
    plan = _compiled(world.rules((Matching.FIRST, Disposal.PREFIX_INFIX), with_clause))
    matching, disposal = cell
    return replace(
        plan, subscriptions=tuple(replace(each, matching=matching, disposal=disposal) for each in plan.subscriptions)
    )


def events_of_records(plan: Plan, records: Iterable[Mapping[str, Any]]) -> list[Event]:
    """Values by attribute; a TIMESTAMP is given in seconds."""
    found = []
    for number, record in enumerate(records):
        schema = plan.catalogue[str(record["type"])]
        row = tuple(
            int(record[each.name]) * SECOND if each.name == schema.time_attribute else record[each.name]
            for each in schema.attributes
        )
        found.append(Event(schema, row, Position(number), None if schema.time_index is None else row[schema.time_index]))
    return found


def delivered(plan: Plan, events: Sequence[Event]) -> list[Relation]:
    engine = Engine(plan, kernels_from=None)
    return [relation for each in events for relation in engine.arrive(each)]


def run_world(world: ClauseWorld, cell: Cell, with_clause: bool = True) -> Trace:
    plan = plan_of_world(world, cell, with_clause)
    events = events_of_records(plan, world.records())
    return trace_of(plan, events, delivered(plan, events), [each.by for each in world.unrolled])


# At random


def clause_world(clause: AddedClause, shape: ConjunctionShape, seed: int, number: int) -> ClauseWorld | None:
    """A scenario of the shape with the clause added; None if they do not go together. With runs the shape may be another: a run
    beside instances of its type is not like them."""
    base = scenario(shape, seed, number)
    chance = Random(f"{seed}/{clause.value}/{shape.code}/{number}")
    size = len(base.pattern.signature)
    overlap = ("", "")
    if base.kind == "disjunction":
        return None
    if clause is AddedClause.OVERLAP:
        names = [name for name, _ in base.pattern.types]
        if len(names) < 2:
            return None
        one, other = chance.sample(names, 2)
        overlap = (one, other)
    inside = len(base.pattern.prefix(base.cut).signature) if base.kind == "sibling" else size
    anchors = tuple(chance.sample(range(inside), 2 if inside > 1 and chance.random() < 0.2 else 1))
    if not base.period and chance.random() < 0.6:
        base = replace(base, steps=_complete(base, chance))
    made: list[Happening] = []
    period, at = 0, 10
    for place, step in enumerate(base.steps):
        at += chance.choice(STEPS)
        again = place >= len(base.steps) - base.period and base.period > 0
        made.append(Happening(step.type, step.x, chance.randrange(2), at, step.publisher))
        period += again
        if clause is AddedClause.ABSENCE and chance.random() < 0.25:
            made.append(Happening(FORBIDDEN, 0, made[-1].k, at + chance.choice((0, 0, 1)), step.publisher))
            period += again
    if clause in (AddedClause.ABSENCE, AddedClause.TIMER) and not base.period and chance.random() < 0.8:
        last = FORBIDDEN if clause is AddedClause.ABSENCE else CLOCK
        made.append(Happening(last, 0, 9, max(each.at for each in made) + 10, "p3"))
    plain = replace(base, steps=(), period=0, rounds=1)
    shift, where = chance.choice((0, 20)), chance.random() < 0.5
    runs = drawn_runs(base.pattern, clause is AddedClause.HAVING, chance) if clause.of_runs else ()
    bounded, tables = tuple[str, ...](), tuple[str, ...]()
    names = [name for name, _ in base.pattern.types]
    if clause.retains:
        bounded = tuple(sorted(chance.sample(names, chance.randint(1, len(names)))))
    if clause is AddedClause.TABLE:
        single = [name for name, count in base.pattern.types if count == 1]
        if not single or len(names) < 2:
            return None
        some = 2 if len(names) > 2 and len(single) > 1 and chance.random() < 0.3 else 1
        tables = tuple(sorted(chance.sample(single, some)))
    return ClauseWorld(
        clause, plain, tuple(made), period, base.rounds, shift, 0, anchors, where, overlap, runs, bounded, tables
    )


def _complete(base: Scenario, chance: Random) -> tuple[ScenarioEvent, ...]:
    """Complete relations of both subscribers, two or three times, shuffled: random events rarely complete two for two keys."""
    signature = max((process[0].signature for process in base.processes), key=len)
    names = [name for name in signature for _ in range(chance.choice((2, 2, 3)))]
    chance.shuffle(names)
    publisher = "p2" if base.kind == "observer" and chance.random() < 0.7 else "p3"
    return tuple(ScenarioEvent(name, chance.choice((0, 0, 1, 2)), publisher) for name in names)
