"""The embedded runtime: one process, from events in memory to relations in memory, or batch by batch without bound.

Takes: a plan and ordered events. Gives: `Result` (all at once) or `Run` (batches in, relations out, with state and receipt).
Never: holds more than a batch and the matchers' state in a `Run`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.deliver.receipt import Receipt, ReceiptBook
from fairlead.engine import Engine
from fairlead.errors import FairleadWarning, UsageError
from fairlead.matching.results.delivery_order import LAZY, delivery_words, names_of, signs_of
from fairlead.matching.results.relation_batches import counts_of, only
from fairlead.matching.state.encoding import Change
from fairlead.matching.unit import KERNELS_FROM
from fairlead.model.arguments import require_call, require_kind, require_names, require_plan, wrong_kind
from fairlead.model.events.columns import Columns
from fairlead.model.events.types import DataType, Kind
from fairlead.model.events.values import canonical
from fairlead.model.events.verdict import EventVerdict, RevisionVerdict
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.identity import to_bytes
from fairlead.model.relations.relation import Relation
from fairlead.runtime.parts import OrderPart, parts_of
from fairlead.runtime.result import Result
from fairlead.runtime.run_state import RunState
from fairlead.transport.admission.sequences import LastSequences
from fairlead.transport.events import read_events
from fairlead.transport.tables.table_reader import TABLE_ROWS, is_table, record_batches

if TYPE_CHECKING:
    from fairlead.runtime.event_time import EventVerdicts, JointFindings, SequenceMatcher

EVENTS_PER_MEMBER = 4
"""A result keeps the events of its batches unchanged, unless relations need few of them: then copies of those few."""


class Run:
    """Matches a plan against a stream of batches, in bounded memory.

    `event_by_event`: run without machine code, some hundred times slower; otherwise a plan that does not compile is rejected
    (U001). `parts`: the parts of the plan (parts.py), where each has its own stream. `resumed`: what an earlier run kept,
    possibly of another plan. `keep`: prepare the state for a later run (`kept`).

    If the rules have ORDER BY … DELAY, batches are in the order of arrival: events are matched once the frontier has passed
    them, and `late` is called with those that take no part, and why: they are late, ahead or repeated. `rejects`: or have
    no value for an order key, which is otherwise an error (D019). With LATE REVISE, late events may take relations back: these
    are delivered again, with the sign -1.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        event_by_event: bool = False,
        parts: Sequence[OrderPart] = (),
        resumed: RunState | None = None,
        keep: bool = False,
        late: Callable[[EventVerdicts], None] | None = None,
        rejects: bool = False,
    ) -> None:
        require_plan("Run", plan, "Run(fairlead.compile(text))")
        require_kind("Run", "event_by_event", event_by_event, (bool,), "True or False", "event_by_event=True")
        _require_parts(parts)
        require_kind("Run", "resumed", resumed, (RunState, type(None)), "a RunState or None", "pass what Run.kept returned")
        require_kind("Run", "keep", keep, (bool,), "True or False", "keep=True")
        require_kind("Run", "rejects", rejects, (bool,), "True or False", "rejects=True")
        if late is not None:
            require_call("Run", "late", late, "a function of EventVerdicts, or leave it out")
        self.plan = plan
        self.kernels_from = kernels_from = None if event_by_event else KERNELS_FROM
        self.resumed, self._ordered = resumed, False
        self.matcher: SequenceMatcher | None = None
        if plan.order is not None and plan.order.delay_us is not None:
            self.matcher = self._matcher(plan, kernels_from, rejects)
            self.engines = self.matcher.engines
        elif resumed is not None:
            self.engines = [Engine.load(plan, resumed.engine, kernels_from)]
        else:
            self.engines = [Engine(each, kernels_from=kernels_from) for each in ([part.plan for part in parts] or [plan])]
        self.change = self._change()
        self.sequences = resumed.sequences if resumed is not None else LastSequences()
        self.book = self._book(plan.digest, not self.change.started)
        kept, resumes = plan.subscriptions if keep else (), frozenset(self.change.resumed)
        self.books = {each.name: self._book(each.digest, each.name in resumes) for each in kept}
        """The receipts of the subscriptions so far."""
        self.events = 0
        self.duplicates = 0
        self.found: Counter[str] = Counter()
        """Relations by subscription, without those that were taken back."""
        self.verdicts: Counter[EventVerdict] = Counter()
        self.revisions: Counter[RevisionVerdict] = Counter()
        self.unstored = 0
        """Events that do not tell when they were stored, where the rules say AHEAD."""
        self.keep, self.late = keep, late

    def _matcher(self, plan: Plan, kernels_from: int | None, rejects: bool) -> SequenceMatcher:
        from fairlead.runtime.event_time import resumed_sequence, sequence_matcher

        arguments: dict[str, Any] = {"rejects": rejects, "kernels_from": kernels_from}
        if self.resumed is None:
            return sequence_matcher(plan, **arguments)

        def load(mine: Plan, state: bytes | None) -> Engine:
            return Engine(mine, kernels_from=kernels_from) if state is None else Engine.load(mine, state, kernels_from)

        return resumed_sequence(plan, self.resumed.engine, self.resumed.held, load, **arguments)

    @property
    def engine(self) -> Engine:
        """The engine of the first part."""
        return self.engines[0] if self.matcher is None or self._ordered else self.matcher.engines[0]

    def waiting(self) -> list[str]:
        """The subscriptions with absences that wait for the time to pass."""
        if self.matcher is None or self._ordered:
            return self.engine.waiting()
        found = {name for each in self.matcher.engines for name in each.waiting()}
        return [each.name for each in self.plan.subscriptions if each.name in found]

    def feed(self, columns: Columns, part: int = 0) -> Sequence[Relation]:
        """Match a batch of events, and return the relations that it completes."""
        require_kind("Run.feed", "columns", columns, (Columns,), "Columns", "for records and tables, fairlead.match")
        if not isinstance(part, int) or not 0 <= part < len(self.engines):
            raise wrong_kind("Run.feed", "part", part, "the number of a part", f"a number below {len(self.engines)}")
        self.events += len(columns)
        if self.matcher is not None and columns.identities is not None and not self._ordered:
            self._ordered, self.engines = True, [Engine(self.plan, kernels_from=self.kernels_from)]  # sorted: no frontier
        if self.matcher is not None and not self._ordered:
            if columns.stored is None and self.plan.order is not None and self.plan.order.ahead_us is not None:
                self.unstored += len(columns)
            return self._found(self.matcher.step(columns))
        self.duplicates += columns.duplicates
        return self._noted(self.engines[part].feed(columns))

    def matched_elsewhere(self, columns: Columns, relations: Sequence[Relation]) -> Sequence[Relation]:
        """Counts a batch, and the relations that workers found in it (runtime/spread/)."""
        self.events += len(columns)
        self.duplicates += columns.duplicates
        return self._noted(relations)

    def _found(self, found: JointFindings) -> Sequence[Relation]:
        self.duplicates += found.duplicates
        self.verdicts.update(found.judged)
        if self.late is not None:
            for each in found.verdicts:
                self.late(each)
        if found.rounds is not None:
            revised, signs = found.rounds >= 0, signs_of(found.relations)
            gone = 0 if signs is None else int((signs < 0).sum())
            self.revisions.update({RevisionVerdict.RETRACTED: gone, RevisionVerdict.ADDED: int(revised.sum()) - gone})
        return self._noted(found.relations)

    def finish(self, until: int | None = None) -> Sequence[Relation]:
        """End the input, and return the relations that its end decides: of events that were held back, unless the state is
        kept for a later run, and absences, which only a plan in one part has."""
        if self.matcher is None or self.keep or self._ordered:
            return self._noted(self.engine.finish(until))
        return self._found(self.matcher.finish(until))

    def _noted(self, relations: Sequence[Relation]) -> Sequence[Relation]:
        self.book.note(delivery_words(relations))
        counts = counts_of(relations)
        self.found.update(counts)
        if (signs := signs_of(relations)) is not None:
            gone = Counter(names_of(relations, np.flatnonzero(signs < 0)))
            self.found.subtract(gone + gone)
        for name in counts if self.books else ():
            self.books[name].note(delivery_words(only(relations, name)))
        return relations

    def _book(self, digest: str, resumed: bool) -> ReceiptBook:
        before = self.resumed.receipts.get(digest) if self.resumed is not None and resumed else None
        return ReceiptBook(digest) if before is None else ReceiptBook.after(before)

    def _change(self) -> Change:
        """By name, which subscriptions were resumed from an earlier run, which were started, and which were dropped."""
        names = self.resumed.names if self.resumed is not None else {}
        if self.matcher is not None:
            mine = {each.digest for each in self.plan.subscriptions}
            gone = tuple(name for digest, name in sorted(names.items()) if digest not in mine)
            return replace(self.matcher.change, dropped=gone)
        found = self.engine.change
        return Change(found.resumed, found.started, tuple(names.get(digest, digest) for digest in found.dropped))

    @property
    def position(self) -> int:
        """The position of the next event, where positions are counted."""
        return self.engine.last.major + 1 if self.matcher is None else self.matcher.position

    def kept(self) -> RunState:
        """The state that another run resumes from. Call it before `finish`: later events come before the end of the input."""
        receipts = {book.plan: book.receipt() for book in (*self.books.values(), self.book)}
        names = {each.digest: each.name for each in self.plan.subscriptions}
        held = b"" if self.matcher is None else self.matcher.held()
        return RunState(self.engine.dump(), receipts, names, self.sequences, held)

    @property
    def receipt(self) -> Receipt:
        """The receipt of the relations delivered so far."""
        return self.book.receipt()


def match(
    plan: Plan,
    events: Any,
    *,
    order_by: Sequence[str] | str | None = None,
    position: str | None = None,
    stream: str | None = None,
    until: datetime | str | None = None,
    event_by_event: bool = False,
) -> Result:
    """Match a plan against a finite input, and return all relations.

    `events`: dicts with "type", or a table of pyarrow, pandas or polars.

    By default, the events are in the order of the input, or in that of the rules' ORDER BY, for which `order_by` is a
    shorthand: it names attributes to order by. Ties are broken by source, sequence, type and content, as on Spark, so that the
    order depends on the events only. Positions count from 0 by default;
    `position` names a field or column that has them, such as the offset in a log: whole numbers that increase, with or without
    gaps. `stream` names the column of an export that says which stream an event belongs to, where a subscription with OR reads
    several. `until`: no further event has a time up to and including this, so absences due by then are decided.
    `event_by_event` runs without machine code, some hundred times slower; otherwise a plan that does not compile is rejected
    (U001).

    Raises DataError, UsageError, UnsupportedError.
    """
    require_plan("match", plan, "fairlead.match(fairlead.compile(text), events)")
    if order_by is not None and not isinstance(order_by, str):
        require_names("match", "order_by", order_by, 'name attributes: order_by="at", or order_by=["at", "id"]', ordered=True)
    for argument, name in (("position", position), ("stream", stream)):
        require_kind("match", argument, name, (str, type(None)), "the name of a field, or None", f'{argument}="{argument}"')
    if order_by is not None:
        from fairlead.runtime.sorting import ordered_plan

        plan = ordered_plan(plan, order_by)
    parts = () if stream is None else parts_of(plan)
    run = Run(plan, event_by_event=event_by_event, parts=parts)
    batches, members = [], 0
    for part, columns in _read(events, run, order_by, position, stream, parts):
        found = run.feed(columns, part)
        batches.append(found)
        if isinstance(found, LAZY):
            members += found.members
            if run.events > EVENTS_PER_MEMBER * members:
                found.narrow()
    batches.append(run.finish(until_microseconds(until)))
    if run.unstored:
        problem = f"the rules say AHEAD, and {run.unstored:,} events do not tell when they were stored: none of them is ahead"
        warnings.warn(FairleadWarning("W102", problem, "add `_stored`, as exports have it, or leave AHEAD out"), stacklevel=2)
    receipt = run.book.receipt(b"".join(to_bytes(delivery_words(batch)) for batch in batches))
    return Result(plan, tuple(batches), receipt, run.events, run.duplicates)


def punctual(run: Run, batches: Iterable[Columns]) -> Iterator[Columns]:
    """Batches that are about to be sorted, without the events that are ahead of the time at which they were stored; the run
    counts them."""
    for columns in batches:
        if run.plan.order is None or run.plan.order.ahead_us is None:
            yield columns
            continue
        from fairlead.runtime.event_time import without_ahead

        kept, ahead = without_ahead(columns, run.plan.order, run.plan.catalogue)
        run.unstored += len(columns) if columns.stored is None else 0
        run.verdicts.update(ahead.verdicts)
        if len(ahead) and run.late is not None:
            run.late(ahead)
        run.events += len(columns) - len(kept)
        yield kept


def _require_parts(parts: Any) -> None:
    if not isinstance(parts, Sequence) or not all(isinstance(each, OrderPart) for each in parts):
        raise wrong_kind("Run", "parts", parts, "parts of the plan", "leave it out, or pass runtime.parts.parts_of(plan)")


def _read(
    events: Any,
    run: Run,
    order_by: Sequence[str] | str | None,
    position: str | None,
    stream: str | None,
    parts: Sequence[OrderPart],
) -> Iterable[tuple[int, Columns]]:
    """The events, each batch with the number of its part."""
    plan = run.plan
    if order_by is not None or plan.order is not None:
        from fairlead.runtime.sorting import AllFresh, in_total_order, order_of

        order = order_of(plan, order_by or ())
        if position is not None or stream is not None:
            problem = f"position or stream is set, and the events are ordered by value: {order}"
            raise UsageError("A210", problem, "leave them out, or the order by value")
        read = read_events(events, plan.catalogue, last_sequences=AllFresh())
        return [(0, in_total_order(punctual(run, read), order, plan.catalogue))]
    if stream is None:
        return ((0, columns) for columns in read_events(events, plan.catalogue, position=position))
    if position is None or not is_table(events):
        fix = "pass an exported table, and position='position'"
        raise UsageError("A217", "`stream` needs a table with positions", fix)
    from fairlead.transport.tables.stream_tables import read_streams

    batches = record_batches(events, plan.catalogue, TABLE_ROWS, position)
    return read_streams(batches, plan.catalogue, [each.name for each in parts], position, stream)


def until_microseconds(until: datetime | str | float | None) -> int | None:
    """The canonical form of an `until` argument."""
    if until is None:
        return None
    try:
        return int(canonical(until, DataType(Kind.TIMESTAMP)))
    except ValueError as problem:
        raise UsageError(
            "A004", f"until: {problem}", fix="pass a datetime or ISO 8601 text such as 2026-01-31T12:00:00Z"
        ) from None
