"""Errors that are put into the runtime on purpose: the simulation must find each within some runs.

python -m tests.testing.simulator.mutations [--runs 300] prints how many runs each needed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from fairlead.errors import FairleadError, StateError
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.plans.plan import Plan
from fairlead.runtime.event_time import EventTimeMatcher, Reviser, Revision
from fairlead.runtime.live import client, merged_streams, resume_points, retention
from fairlead.runtime.live.core.block_columns import ColumnCache
from fairlead.runtime.live.core.deliveries import JointDeliveries
from fairlead.runtime.live.core.early import reordered
from fairlead.runtime.live.core.follower import Follower
from fairlead.runtime.live.core.ledger import Ledger
from fairlead.runtime.live.core.lineage import Lineage
from fairlead.runtime.live.core.strand import Strand
from fairlead.runtime.live.publisher import outbox
from fairlead.runtime.live.publisher.outbox import Outbox
from fairlead.runtime.live.subscriber import group_trims, record
from fairlead.runtime.live.subscriber.group_task import GroupTask
from fairlead.runtime.live.subscriber.leading_lineage import LeadingLineage
from fairlead.runtime.live.subscriber.record import SubscriberRecord
from fairlead.runtime.live.subscriber.snapshots import Snapshots
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.runtime.live.subscriber.trim_check import TrimRisk
from fairlead.testing.simulator.live import servers
from fairlead.testing.simulator.live.simulation import LiveSimulation
from fairlead.transport.log.blocks import block_store
from fairlead.transport.log.blocks.block_store import Tails
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Conflict, Stored, Unavailable
from fairlead.transport.log.shared_reader import SharedReading

Mutation = Callable[[], Any]
MUTATIONS: dict[str, Mutation] = {}


def mutation(make: Mutation) -> Mutation:
    MUTATIONS[make.__name__.replace("_", " ")] = make
    return make


def swapped(owner: object, name: str, change: Callable[[Any], Any]) -> Any:
    """A method that is replaced by what `change` makes of it."""
    return mock.patch.object(owner, name, change(getattr(owner, name)))


@mutation
def confirmed_before_it_is_stored() -> Any:
    """`publish(wait=True)` and `flush` return at once."""

    async def stored(self: Outbox) -> None:
        self._begin()
        self._wanted = self._accepted
        self._work.set()

    return mock.patch.object(Outbox, "stored", stored)


@mutation
def sent_again_without_a_look() -> Any:
    """After an answer that was lost, the block is appended after whatever is last, as a new one."""

    async def stored_once(log: Any, block: Any, after: int, patience: float, **more: Any) -> Stored:
        while True:
            try:
                return Stored(await log.append(block, after), 0, block)
            except (Conflict, Unavailable):
                last = await log.last_of(block.topic, block.source)
                after = 0 if last is None else last.sequence

    return mock.patch.object(outbox, "stored_once", stored_once)


@mutation
def taken_as_stored_when_refused() -> Any:
    """A refused block counts as one that is stored, although another attempt may be in its place."""

    async def stored_once(log: Any, block: Any, after: int, patience: float, **more: Any) -> Stored:
        try:
            return await block_store.stored_once(log, block, after, 0.1, **more)
        except Exception:
            return Stored(after + 1, 0, block)

    return mock.patch.object(outbox, "stored_once", stored_once)


@mutation
def numbers_begin_anew() -> Any:
    """A publisher that returns does not ask for its last block."""

    async def resume(self: Outbox) -> None:
        await self._log.open_topics([self._topic])
        self._resumed = True

    return mock.patch.object(Outbox, "_resume", resume)


@mutation
def acknowledged_before_it_is_delivered() -> Any:
    """The record counts what is found, not what is acknowledged."""

    def change(found: Any) -> Any:
        def mutant(self: Ledger, first: int, words: Any, digests: Any, *, silent: bool) -> int:
            known: int = found(self, first, words, digests, silent=silent)
            if first + len(words) > 3:
                self.acknowledge(first + len(words) - 1)
            return known

        return mutant

    return swapped(Ledger, "found", change)


@mutation
def acknowledgement_not_written() -> Any:
    """`ack` returns, and every third acknowledgement is not stored."""

    def change(write: Any) -> Any:
        async def mutant(self: SubscriberRecord) -> None:
            self.turn = getattr(self, "turn", 0) + 1  # type: ignore[attr-defined]
            if self.turn % 3:  # type: ignore[attr-defined]
                await write(self)

        return mutant

    return swapped(SubscriberRecord, "_write_since", change)


@mutation
def acknowledgement_off_by_one() -> Any:
    def change(acknowledged: Any) -> Any:
        def mutant(self: Ledger) -> dict[str, Any]:
            told: dict[str, Any] = acknowledged(self)
            return told | {"count": told["count"] and told["count"] - 1, "digest": None}

        return mutant

    return swapped(Ledger, "acknowledged", change)


@mutation
def snapshot_with_a_wrong_position() -> Any:
    """A loaded lineage begins one block late."""

    def change(load: Any) -> Any:
        def mutant(*given: Any, **more: Any) -> Lineage:
            made: Lineage = load(*given, **more)
            place = made.places[0]
            place.reached = replace(place.reached, sequence=place.reached.sequence + 1)
            return made

        return mutant

    return mock.patch.object(Lineage, "load", change(Lineage.load))


@mutation
def snapshot_without_its_count() -> Any:
    """A loaded lineage counts its deliveries from 0."""

    def change(load: Any) -> Any:
        def mutant(*given: Any, **more: Any) -> Lineage:
            made: Lineage = load(*given, **more)
            made.book.count = 0
            return made

        return mutant

    return mock.patch.object(Lineage, "load", change(Lineage.load))


@mutation
def snapshot_ahead_of_the_acknowledgement() -> Any:
    """A subscriber that returns begins with the newest snapshot, whatever it has acknowledged."""

    def change(begin: Any) -> Any:
        async def mutant(self: Snapshots, count_max: Any, border: Any, **more: Any) -> Lineage:
            return await begin(self, None, border, **more)  # type: ignore[no-any-return]

        return mutant

    return swapped(Snapshots, "begin", change)


@mutation
def snapshot_before_its_derived_events() -> Any:
    """Derived numbers are not part of a snapshot."""

    def change(load: Any) -> Any:
        def mutant(*given: Any, **more: Any) -> Lineage:
            made: Lineage = load(*given, **more)
            made._derived = dict.fromkeys(made._derived, (0, 0))
            return made

        return mutant

    return mock.patch.object(Lineage, "load", change(Lineage.load))


@mutation
def derived_twice() -> Any:
    """Every subscriber appends its derived blocks, whoever has done so."""

    async def store(self: Tails, block: Any) -> None:
        while True:
            try:
                await self._log.open_topics([block.topic])
                last = await self._log.last_of(block.topic, block.source)
                await self._log.append(block, 0 if last is None else last.sequence)
                return
            except (Conflict, Unavailable):
                continue

    return mock.patch.object(Tails, "store", store)


@mutation
def derived_not_stored_again() -> Any:
    """Derived blocks are sent once, whatever the answer."""

    async def store(self: Tails, block: Any) -> None:
        try:
            await self._log.open_topics([block.topic])
            last = await self._log.last_of(block.topic, block.source, block.type)
            if last is None or last.block.number < block.number:
                await self._log.append(block, 0 if last is None else last.sequence)
        except (Conflict, Unavailable):
            return

    return mock.patch.object(Tails, "store", store)


@mutation
def block_dropped_when_readers_share() -> Any:
    """A reader that joins a reading begins one block late."""

    def change(join: Any) -> Any:
        def mutant(self: SharedReading, after: int) -> Any:
            reader = join(self, after)
            if reader.at < self._first + len(self._blocks):
                reader.at += 1
            return reader

        return mutant

    return swapped(SharedReading, "join", change)


@mutation
def delivered_before_derived() -> Any:
    """A subscriber hands over first, and stores what it derives only if nothing comes in between."""

    def change(run: Any) -> Any:
        async def mutant(self: GroupTask, receive: Any) -> None:
            waiting = list[Any]()
            store = self._tails.store

            async def later(block: Any) -> None:
                waiting.append(block)
                if len(waiting) > 2:
                    await store(waiting.pop(0))

            with mock.patch.object(self._tails, "store", later):
                await run(self, receive)

        return mutant

    return swapped(GroupTask, "run", change)


@mutation
def silence_forgotten() -> Any:
    """A subscriber that starts with "new" delivers what was there before."""

    def change(begin: Any) -> Any:
        def mutant(self: Follower, key: Any, streams: Any, lineage: Any, border: Any, *more: Any) -> None:
            begin(self, key, streams, lineage, None, *more)
            self.silent = False

        return mutant

    return swapped(Follower, "__init__", change)


@mutation
def new_is_earliest_for_all() -> Any:
    """ "new" begins a lineage of its own where it is, beside that of the others."""

    async def joined(self: LeadingLineage, origin: Any) -> Any:
        return origin

    return mock.patch.object(LeadingLineage, "joined", joined)


@mutation
def one_order_lost() -> Any:
    """Groups that share a stream are delivered group after group."""

    def change(batch_of: Any) -> Any:
        def mutant(self: JointDeliveries, findings: Any) -> Any:
            return batch_of(self, sorted(findings, key=lambda each: each.key))

        return mutant

    return swapped(JointDeliveries, "batch_of", change)


@mutation
def answers_from_the_past_believed() -> Any:
    """A value that is refused although nothing has changed counts as stored."""

    def change(put: Any) -> Any:
        async def mutant(self: PatientLog, table: str, key: str, value: bytes, revision: int | None = None) -> int:
            try:
                return await self._log.put(table, key, value, revision)
            except (Conflict, Unavailable):
                found = await self.get(table, key)
                return 0 if found is None else found.revision

        return mutant

    return swapped(PatientLog, "put", change)


@mutation
def receipts_of_what_was_handed_over() -> Any:
    """The receipts in the log count deliveries that are not acknowledged."""

    async def write_receipts(self: LiveSubscription) -> None:
        if self._record is not None:
            await self._record.write_receipts({key: each.ledger.receipt() for key, each in self._groups.items()})

    return mock.patch.object(LiveSubscription, "write_receipts", write_receipts)


@mutation
def shut_out_by_a_late_acknowledgement() -> Any:
    """A name whose acknowledgements changed while it was opened counts as taken over by another process."""

    async def take_over(self: SubscriberRecord) -> bool:
        await self._write_since()
        return True

    return mock.patch.object(SubscriberRecord, "take_over", take_over)


@mutation
def shut_out_by_a_late_record() -> Any:
    """So does one whose previous process's record is stored after it was opened."""

    def change(own_revision: Any) -> Any:
        async def mutant(self: SubscriberRecord, table: str, revision: int) -> int:
            entry = await self._log.get(table, self.name)
            if entry is not None and entry.revision > revision and not self._wrote(entry):
                raise StateError("S134", "taken over", "")
            return await own_revision(self, table, revision)  # type: ignore[no-any-return]

        return mutant

    return swapped(SubscriberRecord, "_own_revision", change)


@mutation
def receipts_replaced_by_earlier_ones() -> Any:
    """Receipts that were sent without an answer may replace later ones."""

    async def write_receipts(self: SubscriberRecord, receipts: Any) -> None:
        told = {key: each.to_json() for key, each in receipts.items()}
        await self._log.put(record.RECEIPTS, self.name, json.dumps(told).encode())

    return mock.patch.object(SubscriberRecord, "write_receipts", write_receipts)


@mutation
def retraction_dropped() -> Any:
    """A revision takes back one relation less."""

    def change(revise: Any) -> Any:
        def mutant(self: Reviser) -> Revision:
            made: Revision = revise(self)
            return Revision(made.retracted[1:], made.added)

        return mutant

    return swapped(Reviser, "revise", change)


@mutation
def revised_when_the_next_block_comes() -> Any:
    """The end of a block does not end a round: what is delivered depends on batches."""

    def change(step: Any) -> Any:
        def mutant(self: EventTimeMatcher, columns: Any, stored: Any = None, closed: bool = False, steps: Any = None) -> Any:
            return step(self, columns, stored, False, steps)

        return mutant

    return swapped(EventTimeMatcher, "step", change)


@mutation
def past_forgotten_in_a_state() -> Any:
    """A subscriber that resumes does not revise what was released before."""

    return mock.patch.object(Reviser, "load", return_value=False)


@mutation
def derived_before_it_is_final() -> Any:
    """Derived events are stored when the frontier has passed them, although late events may change them."""

    def final_plan(self: Strand, order: EventOrder) -> Plan:
        return reordered(self.part.plan, replace(order, revise_us=None))

    return mock.patch.object(Strand, "_final_plan", final_plan)


@mutation
def trimmed_further_than_acknowledged() -> Any:
    """Retention counts what a subscriber has read, not the state from which it would resume."""

    def change(newest: Any) -> Any:
        async def mutant(log: Any, lists: Any, origin: Any, count_max: Any, border: Any, **more: Any) -> Any:
            return await newest(log, lists, origin, None, None, **more)

        return mutant

    return swapped(resume_points, "_newest", change)


@mutation
def trimmed_without_a_note() -> Any:
    """The last blocks of sources are trimmed, and their numbers with them."""

    async def note_heads(*given: Any) -> None: ...

    return mock.patch.object(retention, "_note_heads", note_heads)


@mutation
def late_copies_count_again() -> Any:
    """Readers accept a copy of a block after all blocks of its source were trimmed."""

    async def without_repeats(records: Any, blocks: Any) -> Any:
        return blocks

    return mock.patch.object(servers, "without_repeats", without_repeats)


@mutation
def joined_without_reading_the_plan() -> Any:
    """A new subscriber does not ask what is about to be trimmed."""

    async def trim_risk(*given: Any) -> TrimRisk:
        return TrimRisk.NONE

    return mock.patch.object(group_trims, "trim_risk", trim_risk)


@mutation
def swept_after_one_look() -> Any:
    """A sweep removes what it found without a plan."""

    async def sweep(log: Any) -> list[str]:
        unused = await merged_streams._unused(log)
        for each in await log.merged():
            if each.name in unused:
                await log.remove_stream(each)
        return unused

    return mock.patch.object(client, "sweep", sweep)


@mutation
def subscribed_without_reading_what_a_sweep_plans() -> Any:
    async def require_no_removal(*given: Any) -> None: ...

    return mock.patch.object(merged_streams, "require_no_removal", require_no_removal)


@mutation
def opened_before_the_lease() -> Any:
    """A merged stream is opened, and its use is recorded afterwards."""

    def change(open_groups: Any) -> Any:
        async def mutant(self: LiveSubscription, known: bool) -> None:
            with mock.patch.object(self._lease, "take", mock.AsyncMock()):
                await open_groups(self, known)
            await self._lease.take({topics for each in self._groups.values() for topics in each.group.sources}, 4.0)

        return mutant

    return swapped(LiveSubscription, "_open_groups", change)


@mutation
def trimmed_although_a_subscriber_needs_it() -> Any:
    """The subscriber that is furthest counts."""

    def change(read_by: Any) -> Any:
        async def mutant(*given: Any) -> Any:
            found = await read_by(*given)
            return {topic: dict.fromkeys(each, max(each.values(), default=0)) for topic, each in found.items()}

        return mutant

    return swapped(retention, "_read_by", change)


@mutation
def types_confused_in_the_cache() -> Any:
    """Subscribers of one client share columns without their types."""

    def change(prepared: Any) -> Any:
        def mutant(self: ColumnCache, streams: Any, blocks: Any, catalogue: Any, names: Any, *given: Any, **more: Any) -> Any:
            key = "mutant", tuple(each.sequence for each in blocks)
            if key not in self._made:
                self._made[key] = [([], prepared(self, streams, blocks, catalogue, names, *given, **more))]  # type: ignore[index]
            return self._made[key][0][1]  # type: ignore[index]

        return mutant

    return swapped(ColumnCache, "prepared", change)


@contextmanager
def applied(name: str) -> Iterator[None]:
    with MUTATIONS[name]():
        yield


def found_after(name: str, runs: int, first: int = 0) -> tuple[int, str] | None:
    """How many runs it took to find a mutation, and what was found; None if it was not."""
    simulation = LiveSimulation()
    with applied(name):
        for number in range(runs):
            try:
                outcome = simulation.run(simulation.case(first + number))
            except FairleadError as error:
                return number + 1, repr(error)
            if outcome.problems:
                if any(each in outcome.problems[0] for each in ("TypeError", "AttributeError")):
                    raise RuntimeError(f"'{name}' does not fit the code any more: {outcome.problems[0]}")
                return number + 1, outcome.problems[0]
    return None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    for name in MUTATIONS:
        if given.only in name:
            began = time.process_time()
            found = found_after(name, given.runs)
            told = f"{found[0]:5}  {found[1][:90]}" if found else f"not in {given.runs}"
            print(f"{name:42} {told}  ({time.process_time() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    asyncio  # noqa: B018
    main()
