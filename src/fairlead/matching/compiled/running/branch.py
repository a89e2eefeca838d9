"""Branches on one kernel: batches of rows in, matches as columns of places out.

Branches of several subscriptions that are alike but for conditions on single events (a family) run on one kernel: each is
to the others what another key is. A row then comes once for every branch that accepts it (acceptance.py).

Takes: batches. Gives: for each match the place at which it was completed and the places of its members; and what absences
decided. Never: makes an object for an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.codegen.counters import FIRED, KEYS
from fairlead.matching.compiled.codegen.loop import Source, bucket_name, source_of
from fairlead.matching.compiled.machine_code.checked_build import is_checked, unwritten
from fairlead.matching.compiled.machine_code.compiler import kernel_of
from fairlead.matching.compiled.machine_code.interruption import Interruption
from fairlead.matching.compiled.planning.join_conditions import TEXTS
from fairlead.matching.compiled.planning.shape import Lane, Shape, ValueColumn, at_slot_zero, every_bit
from fairlead.matching.compiled.planning.shape_builder import shape_of
from fairlead.matching.compiled.running.acceptance import Accepted
from fairlead.matching.compiled.running.batch import UNTOLD, KernelBatch, Mask
from fairlead.matching.compiled.running.keys import (
    KeyNumbering,
    NumberTable,
    PartNumbering,
    ValueNumbering,
    WholeNumbering,
    paired,
)
from fairlead.matching.compiled.running.pool import NEVER, Pool
from fairlead.matching.compiled.running.retention import forget_values
from fairlead.matching.compiled.running.vector import truth
from fairlead.model.expression import Condition, Expression, Field
from fairlead.model.identity import MINOR_BITS
from fairlead.model.plan import Branch, Subscription
from fairlead.model.types import Catalogue, Kind

Words = npt.NDArray[np.int64]
NOTHING = np.zeros(0, dtype=np.int64)
NO_NUMBER = np.zeros(0, dtype=np.int32)


@dataclass(frozen=True)
class BranchMatches:
    """Matches in order: where each was completed, a row of the places of its members, and for absences its deadline."""

    at: Words
    refs: Words
    due: Words | None = None
    member: npt.NDArray[np.int64] | None = None
    """Which branch of the family matched."""
    born: Words | None = None
    """For what absences decided: the event that had completed it."""


class KernelBranch:
    """The branches of a family: one, or several with equal `family_key`."""

    def __init__(
        self,
        subscription: Subscription,
        branch: Branch,
        catalogue: Catalogue,
        others: Sequence[Branch] = (),
        form: Form | None = None,
        keys: KeyNumbering | None = None,
        checked: bool | None = None,
        interruption: Interruption | None = None,
    ) -> None:
        self.subscription, self.catalogue = subscription, catalogue
        self.branches = [branch, *others]
        self.shape, self.source = form or form_of(subscription, branch, catalogue, bool(others))
        self.paired = self.shape.paired or bool(others)
        self.checked = is_checked(checked)
        self.kernel = kernel_of(self.source.program, checked=self.checked)
        self.interruption = interruption
        self.within = subscription.within_us or 0
        size, lanes = self.shape.size, self.shape.lanes
        self.unary = [
            [[own(p.condition) for p in each.predicates if p.slots == (slot,)] for slot in range(size)]
            for each in self.branches
        ]
        self.noted = [[own(p.condition) for p in each.predicates if p.slots == (each.slot,)] for each in branch.noting]
        self.accepted = [Accepted([each[slot] for each in self.unary]) for slot in range(size)] if others else []
        self.keys = keys or KeyNumbering(max((len(lane.key) for lane in lanes), default=0))
        self.member_keys = WholeNumbering()
        """Pairs of key and branch, in a family."""
        self.texts = ValueNumbering()
        self.equal_values = PartNumbering()
        self.equal_pairs = WholeNumbering()
        self.pool = Pool(self.shape.stride, size, self.source.layout)
        self.numbered: NumberTable | None = None
        """The table with which the kernel numbers the keys of the batch at hand by itself."""

    # Batches

    def feed(self, batch: KernelBatch, until: int = NEVER, last: int = 0) -> tuple[BranchMatches, BranchMatches]:
        """What the batch completes, and what absences it decides. `until`: what is due before is decided too, at `last`."""
        given = self._paired(batch) if self.paired else self._direct(batch)
        rows = len(given["pair_lane"]) if self.paired else len(batch)
        size, pool = self.shape.size, self.pool
        most = max((len(lane.queues) for lane in self.shape.lanes), default=1)
        copies = size * rows if self.shape.waits else 0
        keys = self.instances() if self.numbered is None else min(self.instances() + rows, len(self.numbered.table))
        pool.room_for(keys, self.buckets(), rows * most + copies, rows if self.shape.waits else 0)
        if len(self.source.plans):
            pool.room_to_reduce(rows)
        fired = pool.waiting() + rows if self.shape.waits else 0
        checked = self.checked
        out_at, out_ref = unwritten(rows, np.int64, checked), unwritten((rows, size), np.int64, checked)
        given |= pool.arguments()
        given |= {
            "plans": self.source.plans,
            "ranks": self.texts.ranks() if self.shape.ranked else NOTHING,
            "out_at": out_at,
            "out_ref": out_ref,
            "out_key": unwritten(rows if self.paired else 0, np.int32, checked),
            "out_due": unwritten(rows if self.shape.waits else 0, np.int64, checked),
            "fired_at": unwritten(fired, np.int64, checked),
            "fired_ref": unwritten((fired, size), np.int64, checked),
            "fired_due": unwritten(fired, np.int64, checked),
            "fired_born": unwritten(fired, np.int64, checked),
            "base": batch.first_word,
            "within": self.within,
            "until": until,
            "last": last,
        }
        if self.interruption is not None:
            self.interruption.begin(pool.st)
        found, _ = self.kernel(*(given[name] for name in self.source.arguments))
        if self.interruption is not None:
            self.interruption.end(pool.st)
        if self.numbered is not None:
            pool.keys = self.numbered.count = int(pool.st[KEYS])
        n = int(pool.st[FIRED]) if self.shape.waits else 0
        fired_ones = (given[name][:n] for name in ("fired_at", "fired_ref", "fired_due", "fired_born"))
        at, refs, due_at, born = fired_ones
        decided = BranchMatches(at, refs, due_at, born=born)
        due = given["out_due"][:found] if self.shape.waits else None
        member = self._members(given["out_key"][:found]) if len(self.branches) > 1 else None
        out_at.resize(found, refcheck=False)  # gives back what was not filled, where it lies: nobody else has seen them
        out_ref.resize((found, size), refcheck=False)
        made = BranchMatches(out_at, out_ref, due, member)
        forget_values(self)
        return made, decided

    def instances(self) -> int:
        """How many instances the kernel has: keys, or pairs of key and branch."""
        if len(self.branches) == 1:
            return len(self.keys)
        return len(self.member_keys) if self.keys.parts else len(self.branches)

    @property
    def is_keyed(self) -> bool:
        """Chains of the hash index belong to one instance each."""
        return bool(self.keys.parts) or len(self.branches) > 1

    def _members(self, keys: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        return self.member_keys.all()[keys] & 0xFFFFFFFF if self.keys.parts else keys.astype(np.int64)

    def _direct(self, batch: KernelBatch) -> dict[str, Any]:
        """The columns of each lane, as they are."""
        local = np.full(len(batch.types), -1, dtype=np.int32)
        given: dict[str, Any] = {"codes": batch.codes, "local": local, "words": NOTHING if batch.is_dense else batch.words}
        given["told"] = batch.told
        table = self._table_over(batch)
        for at, lane in enumerate(self.shape.lanes):
            present = [name for name in lane.types if name in batch.rows]
            for name in present:
                local[batch.types[name]] = at
            given |= self._lane(batch, at, lane, present, table is not None)
        given |= {"key_table": NO_NUMBER, "key_values": NOTHING, "key_base": 0}
        self.numbered = table
        if table is not None:
            table.room_for(min(len(batch), len(table.table) - table.count))
            given |= {"key_table": table.table, "key_values": table.back, "key_base": table.base}
            self.pool.st[KEYS] = table.count
        return given

    def _table_over(self, batch: KernelBatch) -> NumberTable | None:
        """The table of key numbers, where all keys of the batch are whole numbers that lie close together: the kernel numbers
        them by itself. None also where no row has a key: nothing is to be numbered then."""
        table = None
        for lane in self.shape.lanes if self.shape.whole_key is not None else ():
            for name in lane.types:
                if lane.key and name in batch.rows:
                    whole = batch.whole(name, lane.key[0])
                    known = whole is not None and whole[1] is None
                    table = self.keys.parts[0].wholes.table_over(whole[0]) if known and whole is not None else None
                    if table is None:
                        return None
        return table

    def _lane(self, batch: KernelBatch, at: int, lane: Lane, present: list[str], raw: bool = False) -> dict[str, Any]:
        """`raw`: keys as they are, for the kernel to number."""
        each = [self._rows(batch, lane, name, raw) for name in present] or [self._no_rows(lane)]
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
        none = np.zeros(0, dtype=self.shape.whole_key or np.int32) if not self.paired else NO_NUMBER
        made: dict[str, Any] = {"time": NOTHING, "key": none, "bits": NOTHING}
        made |= {f"bucket{number}": NO_NUMBER for number in range(len(self.shape.equal_of(lane)))}
        for number, column in enumerate(self.shape.columns):
            if column.queue in lane.queues:
                made[f"in{number}"] = np.zeros(0, dtype=np.float64 if column.is_double else np.int64)
        return made

    def _rows(self, batch: KernelBatch, lane: Lane, name: str, raw: bool) -> dict[str, Any]:
        """The columns of one type: times, key numbers, bits (none where all are set), numbers in the hash index, values."""
        rows = batch.rows[name]
        made: dict[str, Any] = {"time": NOTHING if rows.times is None else rows.times}
        made["key"] = NO_NUMBER
        if lane.key:
            made["key"] = self._raw_keys(batch, lane, name) if raw else self._key_numbers(batch, lane, name)
        known: dict[int, Mask | None] = {}
        values: dict[str, Any] = {}
        for number, column in enumerate(self.shape.columns):
            if column.queue in lane.queues:
                values[f"in{number}"], known[number] = self.values(batch, column, name)
        made["bits"] = self.bits(batch, lane, name, known, None if len(self.branches) > 1 else 0)
        for number, expression in enumerate(self.shape.equal_of(lane)):
            made[f"bucket{number}"] = self._bucket_numbers(batch, lane, name, expression, made["key"])
        return made | values

    def _raw_keys(self, batch: KernelBatch, lane: Lane, name: str) -> npt.NDArray[Any]:
        whole = batch.whole(name, lane.key[0])
        assert whole is not None
        return np.ascontiguousarray(whole[0], dtype=self.shape.whole_key)

    def _key_numbers(self, batch: KernelBatch, lane: Lane, name: str) -> npt.NDArray[np.int32]:
        """-1 where a row has no key, or goes by another lane: by this one it goes if just the keys that it joins are equal."""
        numbers = self._numbers_by(batch, name, lane.key)
        if self.shape.paired:
            for other in self.shape.keys_of(name):
                if other != lane.key:
                    equal = self._numbers_by(batch, name, other) == numbers
                    numbers = np.where(equal == (other in lane.joined), numbers, np.int32(-1))
        return numbers if self.paired or self.shape.whole_key is None else numbers.astype(self.shape.whole_key, copy=False)

    def _numbers_by(self, batch: KernelBatch, name: str, key: tuple[str, ...]) -> npt.NDArray[np.int32]:
        rows = batch.rows[name]
        return batch.once(  # type: ignore[no-any-return]
            ("key", self.keys, name, key), lambda: self.keys.of_columns([rows.column(each) for each in key], len(rows))
        )

    def bits(
        self, batch: KernelBatch, lane: Lane, name: str, known: dict[int, Mask | None], member: int | None = 0
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

    def values(self, batch: KernelBatch, spec: ValueColumn, name: str) -> tuple[npt.NDArray[Any], Mask | None]:
        if spec.truth:
            atom = Condition(((spec.expression,),))  # type: ignore[arg-type]
            return batch.once(("atom", name, atom), lambda: truth(atom, batch.rows[name]).astype(np.int64)), None
        if spec.expression.kind in TEXTS:
            return batch.texts(name, spec.expression, self.texts)
        return batch.vector(name, spec.expression)

    def _bucket_numbers(
        self, batch: KernelBatch, lane: Lane, name: str, expression: Expression, key: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """The number of a value of the equal class, together with the key."""
        numbers = self.equal_numbers(batch, name, expression)
        return paired(self.equal_pairs, key, numbers) if lane.key and len(self.branches) == 1 else numbers

    def equal_numbers(self, batch: KernelBatch, name: str, expression: Expression) -> npt.NDArray[np.int32]:
        if isinstance(expression, Field):
            return self.equal_values.of_column(batch.rows[name].column(expression.attribute)).astype(np.int32, copy=False)
        if expression.kind is Kind.STRING:
            return batch.texts(name, expression, self.equal_values.others)[0].astype(np.int32)
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

    def buckets(self) -> int:
        """How many chains the hash index has."""
        if not self.shape.equal:
            return 0
        return len(self.equal_pairs) if self.is_keyed else len(self.equal_values)

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

    # A state that is dumped or loaded (dump.py, load.py)

    def origin(self, instances: Words) -> tuple[Words, Words]:
        """Of the kernel's instances, the number of the key and the branch of the family."""
        if len(self.branches) == 1:
            return instances, np.zeros(len(instances), dtype=np.int64)
        if not self.keys.parts:
            return np.zeros(len(instances), dtype=np.int64), instances
        pairs = self.member_keys.all()[instances]
        return pairs >> 32, pairs & 0xFFFFFFFF

    def instances_of(self, keys: Sequence[pa.Array], which: Words) -> Words:
        """The inverse of `origin`, for keys as columns; new ones are numbered."""
        numbers = self.keys.of_columns(keys, len(which)).astype(np.int64)
        if len(self.branches) == 1:
            return numbers
        return paired(self.member_keys, numbers, which).astype(np.int64) if self.keys.parts else which

    # Rows that go several ways

    def _paired(self, batch: KernelBatch) -> dict[str, Any]:
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
            key = columns[f"key{at}"]
            keys = key[rows] if len(key) else np.zeros(len(rows), dtype=np.int32)
            if len(self.branches) > 1:
                keys = paired(self.member_keys, keys, members) if self.keys.parts else members.astype(np.int32)
            buckets = [np.full(len(rows), -1, dtype=np.int32)] * self.shape.equal_most
            for number in range(len(self.shape.equal_of(lane))):
                mine = columns[bucket_name(f"buckets{at}", number)][rows]
                buckets[number] = paired(self.equal_pairs, keys, mine) if len(self.branches) > 1 else mine
            pairs.append(
                [places[rows], members, np.full(len(rows), at, dtype=np.int32), rows.astype(np.int32), keys, bits, *buckets]
            )
        if not pairs:
            none = [NO_NUMBER] * self.shape.equal_most
            pairs.append([NOTHING, NOTHING, NO_NUMBER, NO_NUMBER, NO_NUMBER, NOTHING, *none])
        joined = [np.concatenate(parts) for parts in zip(*pairs, strict=True)]
        order = (
            np.lexsort((joined[2], joined[0])) if len(self.branches) == 1 else _by_row(joined[0], joined[1], len(self.branches))
        )
        places, _, *rest = (each[order] for each in joined)
        given["pair_lane"], given["pair_row"], given["pair_key"], given["pair_bits"], *buckets = rest
        given |= {bucket_name("pair_bucket", number): each for number, each in enumerate(buckets)}
        given["pair_word"] = (batch.first_word + (places << MINOR_BITS)) if batch.is_dense else batch.words[places]
        given["told"] = NOTHING
        if len(batch.told):  # once for each row
            given["told"] = np.where(np.diff(places, prepend=-1) > 0, batch.told[places], UNTOLD)
        return given

    def _accepted(
        self, batch: KernelBatch, lane: Lane, present: list[str], places: npt.NDArray[np.int64], bits: npt.NDArray[np.int64]
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
                c: self.values(batch, each, name)[1] for c, each in enumerate(self.shape.columns) if each.queue in lane.queues
            }
            for member in range(len(self.branches)):
                own_bits = self.bits(batch, lane, name, known, member)
                rows = np.flatnonzero(own_bits) if len(own_bits) else np.arange(len(mine))
                own_bits = own_bits[rows] if len(own_bits) else np.full(len(rows), every, dtype=np.int64)
                found.append((within_lane[rows], np.full(len(rows), member, dtype=np.int64), own_bits))
        one, two, three = (np.concatenate(each) for each in zip(*found, strict=True))
        return one, two, three


Form = tuple[Shape, Source]
"""What all branches of a family share."""


def key_kinds(shape: Shape, catalogue: Catalogue) -> tuple[Kind, ...]:
    """Branches with equal kinds of keys can share their numbers."""
    for lane in shape.lanes:
        for name in lane.types:
            if lane.key:
                kinds = [attribute.type.kind for each in lane.key if (attribute := catalogue[name].attribute(each)) is not None]
                return tuple(Kind.BIGINT if kind is Kind.INT else kind for kind in kinds)
    return ()


def form_of(
    subscription: Subscription,
    branch: Branch,
    catalogue: Catalogue,
    several: bool = False,
    heard: frozenset[str] = frozenset(),
) -> Form:
    shape = shape_of(subscription, branch, catalogue, heard)
    return shape, source_of(shape, shape.paired or several)


def _by_row(places: npt.NDArray[np.int64], members: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    return np.argsort(places * count + members, kind="stable")


def own(condition: Condition) -> Condition:
    return Condition(tuple(tuple(at_slot_zero(atom) for atom in term) for term in condition.terms))  # type: ignore[misc]


def _argument(name: str, lane: int) -> str:
    if name.startswith("bucket"):
        return bucket_name(f"buckets{lane}", int(name[len("bucket") :]))
    return f"column{lane}_{name[2:]}" if name.startswith("in") else f"{name}{lane}"


def _shifted(where: Mask | None, bit: int) -> Any:
    return np.int64(1 << bit) if where is None else where.astype(np.int64) << bit


def _any(masks: Sequence[Mask | None]) -> Mask | None:
    """None is true everywhere."""
    return None if any(each is None for each in masks) else np.logical_or.reduce([each for each in masks if each is not None])


def _all(masks: Sequence[Mask | None]) -> Mask | None:
    given = [each for each in masks if each is not None]
    return np.logical_and.reduce(given) if given else None
