"""Plans × streams × batchings: the reference, the matcher that goes event by event, and kernels give the same.

The same relations with the same ids in the same order, the same emitted values, the same table of results, the same dumped
bytes after every batch; however the stream is cut, wherever a state was dumped and loaded on the way.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from fairlead.engine import Engine
from fairlead.errors import LanguageError, UnsupportedError
from fairlead.language import compile_text
from fairlead.matching.compiled.planning.eligibility import expenses
from fairlead.matching.results.relation_batches import relation_table
from fairlead.matching.results.result_table import table_of_objects
from fairlead.model.events.columns import Columns
from fairlead.model.events.event import Event
from fairlead.model.events.values import microseconds
from fairlead.model.plans.canonical import with_order
from fairlead.model.plans.event_order import by_attributes
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.identity import Words, mixed_in
from fairlead.model.relations.layout import layout_of
from fairlead.model.relations.relation import Relation
from fairlead.testing.reference import Members, ReferenceConjunction, ReferenceMatcher
from fairlead.transport.admission.records import RecordReader
from tests.fuzz.rules import Rules, rules
from tests.fuzz.shrinking import fewer
from tests.fuzz.streams import Record, cuts, events

NO_ROWS = Columns((), np.zeros(0, dtype=np.int8), range(0), {})
TRIES_MAX = 6_000
"""Whole assignments that the reference tests in a case, about a fifth of a second: then the stream ends."""
MACHINE_CODE = 0.01
"""The part of the cases that run as machine code, which takes a second to compile; the others as plain Python."""
ORDERED = 0.2
"""The part of the cases with ORDER BY."""
LONG = 0.04
"""The part of the cases with streams of hundreds of events, without the reference, where patterns are short."""

seen: Counter[str] = Counter()
"""What the cases of this process came to."""


class Different(AssertionError):
    """Two matchers do not agree."""


@dataclass(frozen=True)
class Trial:
    """All that a run depends on."""

    rules: Rules
    events: tuple[Record, ...]
    sizes: tuple[int, ...]
    loads: frozenset[int]
    """After which batches the engine on kernels is dumped and loaded."""
    compared: frozenset[int]
    """After which batches the states of both engines are compared too; after the last one they always are."""
    until: int | None
    compiled: bool
    literal: bool = True
    ordered: bool = False
    """Events have identities, of which ids are made in place of positions."""

    def batches(self) -> Iterator[tuple[Record, ...]]:
        at = 0
        for size in self.sizes:
            yield self.events[at : at + size]
            at += size
        if at < len(self.events):
            yield self.events[at:]

    def __str__(self) -> str:
        shown = "\n".join(f"  {list(each)!r}," for each in self.batches())
        rest = f"loads after {sorted(self.loads)}, until {self.until}, machine code {self.compiled}, ordered {self.ordered}"
        return f"{self.rules}\nbatches = [\n{shown}\n]\n{rest}"


def case(seed: int) -> None:
    run(trial(seed))


def trial(seed: int) -> Trial:
    rng = Random(seed)
    made = rules(rng)
    most = max(_members(each) for rule in made.subscriptions for each in rule.branches)
    long = rng.random() < LONG and most <= 2  # searches of more members may honestly take minutes
    count = rng.choice((200, 600)) if long else rng.choice((4, 8, 15, 30)) if most < 5 else rng.choice((8, 16))
    stream = tuple(events(rng, made.attributes, count))
    sizes = tuple(cuts(rng, count)) if not long else tuple(rng.choice((0, 1, 50, 150)) for _ in range(12))
    loads = frozenset(at for at in range(len(sizes)) if rng.random() < 0.15)
    compared = frozenset(at for at in range(len(sizes)) if rng.random() < 0.2)
    until = microseconds(stream[-1]["at"]) + rng.choice((0, 10**6, 10**7)) if stream and "at" in stream[-1] else None
    ends, compiled = until if rng.random() < 0.3 else None, rng.random() < MACHINE_CODE
    return Trial(made, stream, sizes, loads, compared, ends, compiled, not long, rng.random() < ORDERED)


def _members(branch: str) -> int:
    """How many events a branch joins."""
    counts = [int(each) for each in re.findall(r"\[(\d+)\]", branch)]
    return sum(counts) + len(re.findall(r"\b[pqr]\d(?!\[)", branch))


def run(trial: Trial) -> None:
    """Raises Different, or whatever the matchers raise."""
    os.environ["FAIRLEAD_JIT"] = "1" if trial.compiled else "0"
    try:
        plan = compile_text(str(trial.rules))
    except LanguageError:
        seen["refused"] += 1
        return
    if trial.ordered:
        plan = with_order(plan, by_attributes(["at"]))
        seen["ordered"] += 1
    if not trial.literal and any(expenses(plan)):
        seen["costly"] += 1  # `lint` says so (W014): on hundreds of events, kernels as Python take minutes
        return
    batches = list(_columns(plan, trial))
    literal = Literal(plan) if trial.literal else None
    plain = Engine(plan, kernels_from=None)
    fast = _kernels(plan)
    layout, relations = layout_of(plan), 0
    for number, columns in enumerate([*batches, None]):
        stream = () if columns is None else tuple(columns.events(plan.catalogue))
        expected = [each for event in stream for each in plain.arrive(event)]
        if columns is None:
            expected = list(plain.finish(trial.until))
        relations += len(expected)
        if literal is not None:
            wanted = literal.finish(trial.until) if columns is None else literal.arrive(stream)
            if wanted is None:
                seen["costly"] += 1
                return
            _same(f"batch {number}: event by event", expected, "the reference", wanted)
        if fast is not None:
            found = fast.finish(trial.until) if columns is None else fast.feed(columns)
            _same(f"batch {number}: kernels", found, "event by event", expected)
            _equal(
                f"batch {number}: the result table",
                _rows(relation_table([found], layout)),
                _rows(table_of_objects(layout, expected)),
            )
            if number in trial.loads | trial.compared or columns is None:
                dumped = fast.dump()
                if dumped != plain.dump():
                    raise Different(f"batch {number}: dumped states differ")
                _equal("who waits", fast.waiting(), plain.waiting())
                if number in trial.loads:
                    fast = _loaded(plan, dumped)
                    seen["loaded"] += 1
            seen["on kernels"] += len(found)
    seen["machine code" if trial.compiled else "as Python"] += 1
    seen["relations"] += relations
    seen["plans with relations"] += relations > 0


def _columns(plan: Plan, trial: Trial) -> Iterator[Columns]:
    reader = RecordReader(plan.catalogue)
    for each in trial.batches():
        for columns in reader.read(each) if each else (NO_ROWS,):
            yield replace(columns, identities=_identities(columns)) if trial.ordered else columns


def _identities(columns: Columns) -> Words:
    """Any words, which differ from event to event."""
    return mixed_in(np.array([[1, 2]], dtype=np.uint64), columns.position_array[:, None])


def _kernels(plan: Plan) -> Engine | None:
    try:
        return Engine(plan, kernels_from=0)
    except UnsupportedError:
        seen["without kernels"] += 1
        return None


def _loaded(plan: Plan, dumped: bytes) -> Engine:
    """Into kernels at once."""
    return Engine.load(plan, dumped, kernels_from=0)


def _same(one: str, found: Sequence[Relation], other: str, expected: Sequence[Relation]) -> None:
    left, right = list(map(shown, found)), list(map(shown, expected))
    if left != right:
        lost = [each for each in right if each not in left]
        more = [each for each in left if each not in right]
        if lost or more:
            raise Different(f"{one} differs from {other}: misses {lost[:3]}, has too much {more[:3]}")
        raise Different(f"{one} has another order than {other}: {left[:5]}, {right[:5]}")


def shown(relation: Relation) -> tuple[Any, ...]:
    positions = tuple(map(str, relation.positions))
    return (
        relation.subscription,
        relation.branch,
        positions,
        str(relation.completed_at),
        str(relation.emitted_row),
        relation.id,
    )


def _rows(table: Any) -> list[str]:
    return [repr(row) for row in table.to_pylist()]


def _equal(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise Different(f"{what}: {found} instead of {expected}")


class _Costly(Exception):
    pass


class Literal:
    """The reference, until it would take too long."""

    def __init__(self, plan: Plan) -> None:
        self.matcher = ReferenceMatcher(plan)
        self.left = TRIES_MAX
        Literal.now = self

    now: Literal | None = None

    def arrive(self, stream: Sequence[Event]) -> list[Relation] | None:
        Literal.now = self
        try:
            return [each for event in stream for each in self.matcher.arrive(event)]
        except _Costly:
            return None

    def finish(self, until: int | None) -> list[Relation] | None:
        Literal.now = self
        try:
            return self.matcher.finish(until)
        except _Costly:
            return None


_fits = ReferenceConjunction.fits


def _counted(self: ReferenceConjunction, members: Members) -> bool:
    if Literal.now is not None:
        Literal.now.left -= 1
        if Literal.now.left < 0:
            raise _Costly
    return _fits(self, members)


ReferenceConjunction.fits = _counted  # type: ignore[method-assign]


# --- smaller findings


def smaller(trial: Trial) -> Iterator[Trial]:
    """The same with less, coarse before fine."""
    for name in ("loads", "until", "compiled", "ordered"):
        least: Any = {"loads": frozenset(), "until": None, "compiled": False, "ordered": False}[name]
        if getattr(trial, name) != least:
            yield replace(trial, **{name: least})
    for sizes in ((), (1,) * len(trial.events)):
        if trial.sizes != sizes:
            yield replace(trial, sizes=sizes)
    if 0 in trial.sizes:
        yield replace(trial, sizes=tuple(size for size in trial.sizes if size))
    yield from (replace(trial, rules=each) for each in trial.rules.smaller())
    yield from (replace(trial, events=each) for each in fewer(trial.events))
    yield from (replace(trial, loads=trial.loads - {each}) for each in sorted(trial.loads))
