"""Branches on one kernel: batches of rows in, matches as columns of places out.

Branches of several subscriptions that are alike but for conditions on single events (a family) run on one kernel: each is
to the others what another key is. A row then comes once for every branch that accepts it (accepted.py).

Takes: batches. Gives: for each match the place at which it was completed and the places of its members; and what absences
decided. Never: makes an object for an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairlead.matching.instance import Instance, Key
from fairlead.matching.kernel.accepted import Accepted
from fairlead.matching.kernel.batch import Batch, Mask
from fairlead.matching.kernel.compile import kernel_of
from fairlead.matching.kernel.keys import KeyNumbering, Numbering, PartNumbering, WholeNumbering, paired
from fairlead.matching.kernel.parts import Lane, Shape, ValueColumn, at_slot_zero, every_bit
from fairlead.matching.kernel.pool import CLOCK, COUNT, FIRED, FLAGS, NEVER, WAITS, Pool
from fairlead.matching.kernel.shape import shape_of
from fairlead.matching.kernel.source import Source, source_of
from fairlead.matching.kernel.vector import truth
from fairlead.model.event import Event
from fairlead.model.expression import Condition, Expression, Field
from fairlead.model.identity import MINOR_BITS, position_word
from fairlead.model.plan import Branch, Subscription
from fairlead.model.types import Catalogue, Kind

Words = npt.NDArray[np.int64]
NOTHING = np.zeros(0, dtype=np.int64)
NO_NUMBER = np.zeros(0, dtype=np.int32)
WORST_KEY = np.iinfo(np.int64).max
FORGET = 4096
"""Keys that are not worth forgetting."""


@dataclass(frozen=True)
class Found:
    """Matches in order: where each was completed, a row of the places of its members, and for absences its deadline."""

    at: Words
    refs: Words
    due: Words | None = None
    member: npt.NDArray[np.int64] | None = None
    """Which branch of the family matched."""


class KernelBranch:
    """The branches of a family: one, or several with equal `family_key`."""

    def __init__(
        self,
        subscription: Subscription,
        branch: Branch,
        catalogue: Catalogue,
        others: Sequence[Branch] = (),
        form: Form | None = None,
    ) -> None:
        self.subscription, self.catalogue = subscription, catalogue
        self.branches = [branch, *others]
        self.shape, self.source = form or form_of(subscription, branch, catalogue, bool(others))
        self.paired = self.shape.paired or bool(others)
        self.kernel = kernel_of(self.source.text)
        self.within = subscription.within_us or 0
        size, lanes = self.shape.size, self.shape.lanes
        self.unary = [
            [[own(p.condition) for p in each.predicates if p.slots == (slot,)] for slot in range(size)]
            for each in self.branches
        ]
        self.noted = [[own(p.condition) for p in each.predicates if p.slots == (each.slot,)] for each in branch.negated]
        self.accepted = [Accepted([each[slot] for each in self.unary]) for slot in range(size)] if others else []
        self.keys = KeyNumbering(max((len(lane.key) for lane in lanes), default=0))
        self.member_keys = WholeNumbering()
        """Pairs of key and branch, in a family."""
        self.texts = Numbering()
        self.equal_values = PartNumbering()
        self.equal_pairs = WholeNumbering()
        self.pool = Pool(self.shape.stride, size, self.source.layout)

    # Batches

    def feed(self, batch: Batch, until: int = NEVER, last: int = 0) -> tuple[Found, Found]:
        """What the batch completes, and what absences it decides. `until`: what is due before is decided too, at `last`."""
        given = self._paired(batch) if self.paired else self._direct(batch)
        rows = len(given["p_lane"]) if self.paired else len(batch)
        size, pool = self.shape.size, self.pool
        most = max((len(lane.queues) for lane in self.shape.lanes), default=1)
        copies = size * rows if self.shape.waits else 0
        pool.room_for(self._keys(), self._buckets(), rows * most + copies, rows if self.shape.waits else 0)
        fired = pool.waiting() + rows if self.shape.waits else 0
        given |= {
            name: getattr(pool, name)
            for name in ("ni", "nn", "tt", "bb", "qs", "ks", "bs", "gs", "fr", "wait", "heap", "st", "members")
        }
        given |= {
            "rank": self.texts.ranks() if self.shape.ranked else NOTHING,
            "out_at": np.empty(rows, dtype=np.int64),
            "out_ref": np.empty((rows, size), dtype=np.int64),
            "out_key": np.empty(rows if self.paired else 0, dtype=np.int32),
            "out_due": np.empty(rows if self.shape.waits else 0, dtype=np.int64),
            "fired_at": np.empty(fired, dtype=np.int64),
            "fired_ref": np.empty((fired, size), dtype=np.int64),
            "fired_due": np.empty(fired, dtype=np.int64),
            "base": batch.first_word,
            "within": self.within,
            "until": until,
            "last": last,
        }
        found, _ = self.kernel(*(given[name] for name in self.source.arguments))
        n = int(pool.st[FIRED]) if self.shape.waits else 0
        decided = Found(given["fired_at"][:n], given["fired_ref"][:n], given["fired_due"][:n])
        due = given["out_due"][:found] if self.shape.waits else None
        member = self._members(given["out_key"][:found]) if len(self.branches) > 1 else None
        made = Found(given["out_at"][:found], given["out_ref"][:found], due, member)
        self._forget()
        return made, decided

    def _keys(self) -> int:
        """How many instances the kernel has: keys, or pairs of key and branch."""
        if len(self.branches) == 1:
            return len(self.keys)
        return len(self.member_keys) if self.keys.parts else len(self.branches)

    def _members(self, keys: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        return self.member_keys.all()[keys] & 0xFFFFFFFF if self.keys.parts else keys.astype(np.int64)

    def _direct(self, batch: Batch) -> dict[str, Any]:
        """The columns of each lane, as they are."""
        local = np.full(len(batch.types), -1, dtype=np.int32)
        given: dict[str, Any] = {"codes": batch.codes, "local": local, "words": NOTHING if batch.is_dense else batch.words}
        for at, lane in enumerate(self.shape.lanes):
            present = [name for name in lane.types if name in batch.rows]
            for name in present:
                local[batch.types[name]] = at
            given |= self._lane(batch, at, lane, present)
        return given

    def _lane(self, batch: Batch, at: int, lane: Lane, present: list[str]) -> dict[str, Any]:
        each = [self._rows(batch, lane, name) for name in present] or [self._no_rows(lane)]
        names = list(each[0])
        if len(each) == 1:
            return {_argument(name, at): each[0][name] for name in names}
        order = np.argsort(np.concatenate([batch.places(name) for name in present]), kind="stable")
        made = {}
        for name in names:
            parts = [one[name] for one in each]
            if name == "bits" and any(len(part) for part in parts):
                every = every_bit(self.shape, lane)
                parts = [
                    part if len(part) else np.full(len(batch.rows[present[n]]), every, dtype=np.int64)
                    for n, part in enumerate(parts)
                ]
            joined = np.concatenate(parts)
            made[_argument(name, at)] = joined[order] if len(joined) else joined
        return made

    def _no_rows(self, lane: Lane) -> dict[str, Any]:
        made: dict[str, Any] = {"time": NOTHING, "key": NO_NUMBER, "bits": NOTHING, "bucket": NO_NUMBER}
        for number, column in enumerate(self.shape.columns):
            if column.queue in lane.queues:
                made[f"in{number}"] = np.zeros(0, dtype=np.float64 if column.is_double else np.int64)
        return made

    def _rows(self, batch: Batch, lane: Lane, name: str) -> dict[str, Any]:
        """The columns of one type: times, key numbers, bits (none where all are set), numbers in the hash index, values."""
        rows = batch.rows[name]
        made: dict[str, Any] = {"time": NOTHING if rows.times is None else rows.times}
        made["key"] = self._key_numbers(batch, lane, name) if lane.key else NO_NUMBER
        known: dict[int, Mask | None] = {}
        values: dict[str, Any] = {}
        for number, column in enumerate(self.shape.columns):
            if column.queue in lane.queues:
                values[f"in{number}"], known[number] = self._values(batch, column, name)
        made["bits"] = self._bits(batch, lane, name, known, None if len(self.branches) > 1 else 0)
        made["bucket"] = self._bucket_numbers(batch, lane, name, made["key"])
        return made | values

    def _key_numbers(self, batch: Batch, lane: Lane, name: str) -> npt.NDArray[np.int32]:
        rows = batch.rows[name]
        key = ("key", id(self.keys), name, lane.key)
        return batch.once(key, lambda: self.keys.of_columns([rows.column(each) for each in lane.key], len(rows)))  # type: ignore[no-any-return]

    def _bits(
        self, batch: Batch, lane: Lane, name: str, known: dict[int, Mask | None], member: int | None = 0
    ) -> npt.NDArray[np.int64]:
        """`member` None: as if there were no conditions on single events."""
        shape = self.shape
        fits = {
            slot: None if member is None else batch.holds(name, self.unary[member][slot])
            for slot, at in enumerate(shape.queue_of_slot)
            if at in lane.queues
        }
        noted = {
            queue: batch.holds(name, self.noted[queue - len(shape.needed)])
            for queue in lane.queues
            if queue >= len(shape.needed)
        }
        if all(each is None for each in (*fits.values(), *noted.values(), *known.values())):
            return NOTHING
        mine = np.zeros(len(batch.rows[name]), dtype=np.int64)
        accepted: list[Mask | None] = []
        for queue in lane.queues:
            slots = [slot for slot in fits if shape.queue_of_slot[slot] == queue]
            accepts = noted[queue] if queue in noted else _any([fits[slot] for slot in slots])
            accepted.append(accepts)
            mine |= _shifted(accepts, shape.accept_bit(lane, queue))
            for slot in slots:
                needs = [known[column] for needed, column in shape.required if needed == slot]
                mine |= _shifted(_all([fits[slot], *needs]), slot)
        for column, where in known.items():
            mine |= _shifted(where, shape.known_bit(column))
        anywhere = _any(accepted)
        if anywhere is not None:
            mine[~anywhere] = 0
        return mine

    def _values(self, batch: Batch, spec: ValueColumn, name: str) -> tuple[npt.NDArray[Any], Mask | None]:
        if spec.truth:
            atom = Condition(((spec.expression,),))  # type: ignore[arg-type]
            return batch.once(("atom", name, atom), lambda: truth(atom, batch.rows[name]).astype(np.int64)), None
        if spec.expression.kind is Kind.STRING:
            return batch.texts(name, spec.expression, self.texts)
        return batch.vector(name, spec.expression)

    def _bucket_numbers(self, batch: Batch, lane: Lane, name: str, key: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The number of the value of the equal class, together with the key."""
        queues = [queue for queue in lane.queues if queue in self.shape.equal]
        if not queues:
            return NO_NUMBER
        numbers = self._equal_numbers(batch, name, self.shape.equal[queues[0]])
        return paired(self.equal_pairs, key, numbers) if lane.key and len(self.branches) == 1 else numbers

    def _equal_numbers(self, batch: Batch, name: str, expression: Expression) -> npt.NDArray[np.int32]:
        if isinstance(expression, Field):
            return self.equal_values.of_column(batch.rows[name].column(expression.attribute)).astype(np.int32, copy=False)
        if expression.kind is Kind.STRING:
            values, known = batch.texts(name, expression, self.texts)
            return (
                self.equal_values.wholes.of(values)
                if known is None
                else np.where(known, self.equal_values.wholes.of(values), -1)
            )
        values, known = batch.vector(name, expression)
        if expression.kind is Kind.DOUBLE:
            nan = np.isnan(values)
            known = (~nan if known is None else known & ~nan) if nan.any() else known
            values = (values + 0.0).view(np.int64)
        if known is None:
            return self.equal_values.wholes.of(values)
        numbers = np.full(len(values), -1, dtype=np.int32)
        numbers[known] = self.equal_values.wholes.of(values[known])
        return numbers

    def _buckets(self) -> int:
        if not self.shape.equal:
            return 0
        return len(self.equal_pairs) if self.keys.parts or len(self.branches) > 1 else len(self.equal_values)

    def live(self) -> Words:
        """The words of what is queued or waits, in any order."""
        words: Words = self.pool.ni[self.pool.live(), self.source.layout["REF"]]
        return words

    def held(self) -> int:
        """How many nodes are in use."""
        return self.pool.queued() + self.pool.waiting() * self.pool.size

    def renumber(self, old: Words, new: Words) -> None:
        """Events that were queued by provisional words (rising) get their final ones, which keep the order."""
        nodes, at = self.pool.live(), self.source.layout["REF"]
        words = self.pool.ni[nodes, at]
        found = np.minimum(np.searchsorted(old, words), len(old) - 1)
        mine = old[found] == words
        self.pool.ni[nodes[mine], at] = new[found[mine]]

    def instances(self) -> list[tuple[Key, int]]:
        """By number of the kernel's instances: key, and branch of the family."""
        keys = self.keys.values()
        if len(self.branches) == 1:
            return [(key, 0) for key in keys]
        if not self.keys.parts:
            return [((), which) for which in range(len(self.branches))]
        return [(keys[pair >> 32], pair & 0xFFFFFFFF) for pair in self.member_keys.all().tolist()]

    def words_of(self, nodes: list[int]) -> list[int]:
        return self.pool.ni[nodes, self.source.layout["REF"]].tolist() if nodes else []

    # A loaded state

    def adopt(self, batch: Batch, loaded: list[tuple[Key, int, Instance]]) -> None:
        """Queue what a state has queued; `batch` has the events."""
        pool, shape = self.pool, self.shape
        lanes = [
            self._lane(batch, at, lane, [name for name in lane.types if name in batch.rows])
            for at, lane in enumerate(shape.lanes)
        ]
        inner = {}
        for at, lane in enumerate(shape.lanes):
            present = [batch.places(name) for name in lane.types if name in batch.rows]
            for j, row in enumerate(np.sort(np.concatenate(present)).tolist() if present else []):
                inner[at, int(batch.words[row])] = j
        numbers = [self._number(key, which) for key, which, _ in loaded]
        waits = sum(len(instance.pending) for *_, instance in loaded)
        nodes = sum(len(queue) for *_, instance in loaded for queue in instance.lists())
        pool.room_for(self._keys(), self._buckets(), nodes + waits * shape.size, waits)
        pool.gs[:] = NEVER

        def node(event: Event, queue: int, number: int, which: int) -> int:
            at = next(at for at, lane in enumerate(shape.lanes) if queue in lane.queues and event.type in lane.types)
            j = inner[at, position_word(event.position)]
            fields = self._fields(lanes[at], at, queue, j, event)
            if len(self.branches) > 1:
                known = {
                    c: self._values(batch, e, event.type)[1]
                    for c, e in enumerate(shape.columns)
                    if e.queue in shape.lanes[at].queues
                }
                bits = self._bits(batch, shape.lanes[at], event.type, known, which)
                row = int(np.searchsorted(batch.places(event.type), np.searchsorted(batch.words, fields["REF"])))
                if "BITS" in fields:
                    fields["BITS"] = int(bits[row]) if len(bits) else every_bit(shape, shape.lanes[at])
                if fields.get("BUCKET", -1) >= 0:
                    fields["BUCKET"] = self.equal_pairs.number((number << 32) | fields["BUCKET"])
                    pool.room_for(self._keys(), self._buckets(), 0, 0)
            return pool.new(fields)

        for number, (_, which, instance) in zip(numbers, loaded, strict=True):
            pool.ks[number, CLOCK] = NEVER if instance.clock is None else instance.clock
            pool.ks[number, FLAGS] = int(instance.loose)
            for queue, events in enumerate(instance.lists()):
                times = [event.time or 0 for event in events]
                if queue < len(shape.needed) and times != sorted(times):
                    pool.ks[number, FLAGS] |= 2
                for event in events:
                    pool.append(number, queue, node(event, queue, number, which))
            for pending in sorted(instance.pending):
                members = [
                    node(event, shape.queue_of_slot[slot], number, which) for slot, event in enumerate(pending.match.members)
                ]
                pool.postpone(number, pending.match.deadline or 0, pending.cancelled, members)
        self.pool.heapify(self.source.layout["REF"])

    def _number(self, key: Key, which: int) -> int:
        number = self.keys.number(key)
        if len(self.branches) == 1:
            return number
        return self.member_keys.number((number << 32) | which) if self.keys.parts else which

    def _fields(self, columns: dict[str, Any], at: int, queue: int, j: int, event: Event) -> dict[str, int]:
        shape, layout = self.shape, self.source.layout
        lane, made = shape.lanes[at], {"REF": position_word(event.position)}
        bits = columns[f"bits{at}"]
        bit = int(bits[j]) if len(bits) else every_bit(shape, lane)
        if "TIME" in layout:
            made["TIME"] = event.time or 0
        if "BITS" in layout:
            made["BITS"] = bit
        if "BUCKET" in layout:
            made["BUCKET"] = int(columns[f"bucket{at}"][j]) if queue in shape.equal else -1
        if "KEY" in layout:
            made["KEY"] = self._key(columns, at, queue, j, bit)
        for number, column in enumerate(shape.columns):
            if column.queue == queue:
                value = columns[f"in{at}_{number}"][j]
                made[str(layout.place_of_column[number])] = int(value.view(np.int64) if column.is_double else value)
        return made

    def _key(self, columns: dict[str, Any], at: int, queue: int, j: int, bits: int) -> int:
        """The key in the ordered index, as `key_of` and `_Loop._key` have it."""
        accesses = self.source.accesses
        tree = accesses.trees.get(queue)
        if tree is None or tree.column is None:
            return 0
        value = columns[f"in{at}_{tree.column}"][j]
        if tree.slot in accesses.chosen_bits and not (bits >> tree.slot) & 1:
            return WORST_KEY
        if not self.shape.columns[tree.column].is_double:
            return int(~value if tree.sign == ">" else value)
        if value != value:
            return WORST_KEY
        turned = int(np.float64((-value if tree.sign == ">" else value) + 0.0).view(np.int64))
        return turned if turned >= 0 else turned ^ WORST_KEY

    # Rows that go several ways

    def _paired(self, batch: Batch) -> dict[str, Any]:
        """Each row once for every lane that its type has, and for every branch of the family that accepts it."""
        given: dict[str, Any] = {}
        pairs: list[list[npt.NDArray[Any]]] = []
        for at, lane in enumerate(self.shape.lanes):
            present = [name for name in lane.types if name in batch.rows]
            columns = self._lane(batch, at, lane, present)
            given |= columns
            if not present:
                continue
            places = np.concatenate([batch.places(name) for name in present])
            places = np.sort(places) if len(present) > 1 else places
            rows, members, bits = self._accepted(batch, lane, present, places, columns[f"bits{at}"])
            key, bucket = columns[f"key{at}"], columns[f"bucket{at}"]
            keys = key[rows] if len(key) else np.zeros(len(rows), dtype=np.int32)
            buckets = bucket[rows] if len(bucket) else np.full(len(rows), -1, dtype=np.int32)
            if len(self.branches) > 1:
                keys = paired(self.member_keys, keys, members) if self.keys.parts else members.astype(np.int32)
                if len(bucket):
                    buckets = paired(self.equal_pairs, keys, buckets)
            pairs.append(
                [places[rows], members, np.full(len(rows), at, dtype=np.int32), rows.astype(np.int32), keys, bits, buckets]
            )
        if not pairs:
            pairs.append([NOTHING, NOTHING, NO_NUMBER, NO_NUMBER, NO_NUMBER, NOTHING, NO_NUMBER])
        joined = [np.concatenate(parts) for parts in zip(*pairs, strict=True)]
        order = (
            np.lexsort((joined[2], joined[0])) if len(self.branches) == 1 else _by_row(joined[0], joined[1], len(self.branches))
        )
        places, _, *rest = (each[order] for each in joined)
        given["p_lane"], given["p_inner"], given["p_key"], given["p_bits"], given["p_bucket"] = rest
        given["p_word"] = (batch.first_word + (places << MINOR_BITS)) if batch.is_dense else batch.words[places]
        return given

    def _accepted(
        self, batch: Batch, lane: Lane, present: list[str], places: npt.NDArray[np.int64], bits: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows of the lane, with the branch that accepts them and their bits for it."""
        every = every_bit(self.shape, lane)
        if len(self.branches) == 1:
            rows = np.arange(len(places))
            return rows, np.zeros(len(rows), dtype=np.int64), bits if len(bits) else np.full(len(rows), every, dtype=np.int64)
        slots = [slot for slot, queue in enumerate(self.shape.queue_of_slot) if queue in lane.queues]
        found: list[tuple[npt.NDArray[np.int64], ...]] = []
        for name in present:
            mine = batch.places(name)
            within_lane = np.arange(len(mine)) if len(present) == 1 else np.searchsorted(places, mine)
            if len(slots) == 1:
                rows, members = self.accepted[slots[0]].pairs(batch, name, self.texts)
                rows = within_lane[rows]
                found.append((rows, members, bits[rows] if len(bits) else np.full(len(rows), every, dtype=np.int64)))
                continue
            known = {
                c: self._values(batch, each, name)[1] for c, each in enumerate(self.shape.columns) if each.queue in lane.queues
            }
            for member in range(len(self.branches)):
                own_bits = self._bits(batch, lane, name, known, member)
                rows = np.flatnonzero(own_bits) if len(own_bits) else np.arange(len(mine))
                own_bits = own_bits[rows] if len(own_bits) else np.full(len(rows), every, dtype=np.int64)
                found.append((within_lane[rows], np.full(len(rows), member, dtype=np.int64), own_bits))
        one, two, three = (np.concatenate(each) for each in zip(*found, strict=True))
        return one, two, three

    # What is not needed any more

    def _forget(self) -> None:
        """Keys with nothing queued and no clock go, once they are many."""
        pool = self.pool
        if not self.keys.parts or pool.keys < FORGET or self.shape.windowed or self.shape.equal or len(self.branches) > 1:
            return
        stride = self.shape.stride
        used = pool.qs[: pool.keys * stride, COUNT].reshape(pool.keys, stride).any(axis=1) | (pool.ks[: pool.keys, WAITS] != -1)
        if 2 * int(used.sum()) + FORGET > pool.keys or len(self.keys) != pool.keys:
            return
        self.keys.keep(used)
        kept = np.flatnonzero(used)
        rows = (kept[:, None] * stride + np.arange(stride)).reshape(-1)
        fresh = Pool(pool.queues, pool.size, pool.layout)
        fresh.room_for(len(kept), 0, 0, 0)
        fresh.qs[: len(rows)], fresh.gs[: len(rows)], fresh.ks[: len(kept)] = pool.qs[rows], pool.gs[rows], pool.ks[kept]
        if self.shape.waits:
            new_number = np.cumsum(used) - 1
            waiting = pool.heap[: pool.waiting()]
            pool.wait[waiting, 2] = new_number[pool.wait[waiting, 2]]
        pool.qs, pool.gs, pool.ks, pool.keys = fresh.qs, fresh.gs, fresh.ks, len(kept)


Form = tuple[Shape, Source]
"""What all branches of a family share."""


def form_of(subscription: Subscription, branch: Branch, catalogue: Catalogue, several: bool = False) -> Form:
    shape = shape_of(subscription, branch, catalogue)
    return shape, source_of(shape, shape.paired or several)


def _by_row(places: npt.NDArray[np.int64], members: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    return np.argsort(places * count + members, kind="stable")


def own(condition: Condition) -> Condition:
    return Condition(tuple(tuple(at_slot_zero(atom) for atom in term) for term in condition.terms))  # type: ignore[misc]


def _argument(name: str, lane: int) -> str:
    return f"in{lane}_{name[2:]}" if name.startswith("in") else f"{name}{lane}"


def _shifted(where: Mask | None, bit: int) -> Any:
    return np.int64(1 << bit) if where is None else where.astype(np.int64) << bit


def _any(masks: Sequence[Mask | None]) -> Mask | None:
    """None is true everywhere."""
    return None if any(each is None for each in masks) else np.logical_or.reduce([each for each in masks if each is not None])


def _all(masks: Sequence[Mask | None]) -> Mask | None:
    given = [each for each in masks if each is not None]
    return np.logical_and.reduce(given) if given else None
