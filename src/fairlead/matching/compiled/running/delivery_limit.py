"""LIMIT on kernels: which of the relations that a batch decides are delivered.

Kernels match and dispose as if there were no limit. Of what the branches of a subscription found, the first so many in the
order of decision are taken, before events are derived of them.

Takes: the relations of a subscription in a batch, in the order of decision, by key. Gives: a mask; counts as a table of the
state. Never: looks into a kernel.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead.matching.compiled.running.keys import KeyNumbering
from fairlead.matching.expressions.emission import Members
from fairlead.matching.results.chunk import Numbers
from fairlead.matching.results.event_store import View
from fairlead.matching.results.member_words import MemberWords
from fairlead.matching.state.content import CountTable, counted_keys
from fairlead.matching.state.delivery_counts import in_order_of_keys
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import Field
from fairlead.model.plans.key_parts import bucketed, part_of
from fairlead.model.plans.plan import Plan, Subscription

Mask = npt.NDArray[np.bool_]


class DeliveryLimit:
    """The LIMIT of a subscription, with what it has counted: of each key that it counts apart, or of all together."""

    def __init__(self, subscription: Subscription, catalogue: Catalogue) -> None:
        assert subscription.limit is not None
        self.subscription, self.catalogue, self.limit = subscription, catalogue, subscription.limit
        self.kinds = counted_keys(subscription, catalogue)
        self.keys = KeyNumbering(len(self.kinds))
        self.counts = np.zeros(0 if self.kinds else 1, dtype=np.int64)

    @property
    def is_reached(self) -> bool:
        """Nothing more is delivered, whatever comes."""
        return not self.limit.per_key and int(self.counts[0]) >= self.limit.count

    def numbers(self, branch: int, refs: MemberWords, view: View) -> Numbers:
        """The key of each relation as a number: that of its first member."""
        if not self.kinds:
            return np.zeros(len(refs), dtype=np.int64)
        if refs.folds is not None:
            return self._numbers(branch, 0, MemberWords(refs.folds.role("first")[:, None]), view)
        if refs.offsets is None:
            return self._numbers(branch, 0, refs, view)
        made = np.zeros(len(refs), dtype=np.int64)
        first = np.argmax(refs.lengths > 0, axis=1)
        words = refs.words[refs.starts[:-1]]
        for slot in np.unique(first).tolist():  # runs before it are empty
            mine = first == slot
            alone = MemberWords(np.repeat(words[mine][:, None], refs.slots, axis=1))
            made[mine] = self._numbers(branch, slot, alone, view)
        return made

    def _numbers(self, branch: int, slot: int, refs: MemberWords, view: View) -> Numbers:
        """By the members at a slot that holds one event."""
        conjunction = self.subscription.branches[branch]
        members, named = Members(conjunction, self.catalogue, view, refs), conjunction.slots[slot].type
        schema = self.catalogue[named]
        columns = []
        for part in map(part_of, dict(conjunction.keys)[named]):
            kind = schema.type_of(part.attribute).kind
            columns.append(bucketed(members.column(Field(slot, part.attribute, kind)), part))
        return self.keys.of_columns(columns, len(refs)).astype(np.int64)

    def admitted(self, numbers: Numbers) -> Mask:
        """Of relations in the order of decision, by the number of their key: which are delivered. They are counted."""
        more = len(self.keys) - len(self.counts)
        if more > 0:
            self.counts = np.concatenate([self.counts, np.zeros(more, dtype=np.int64)])
        by_key = np.argsort(numbers, kind="stable")
        sorted_numbers = numbers[by_key]
        fresh = np.concatenate(([True], sorted_numbers[1:] != sorted_numbers[:-1]))
        starts = np.flatnonzero(fresh)
        turns = np.arange(len(numbers)) - np.repeat(starts, np.diff(np.append(starts, len(numbers))))
        mask = np.zeros(len(numbers), dtype=bool)
        mask[by_key] = self.counts[sorted_numbers] + turns < self.limit.count
        np.add.at(self.counts, numbers[mask], 1)
        return mask

    # State

    def table(self) -> CountTable | None:
        """What is counted, if anything is."""
        used = np.flatnonzero(self.counts)
        if not len(used):
            return None
        keys = tuple(self.keys.columns(used, self.kinds)) if self.kinds else ()
        return in_order_of_keys(CountTable(keys, self.counts[used]))

    def load(self, table: CountTable) -> None:
        numbers = self.keys.of_columns(list(table.keys), len(table))
        self.counts = np.zeros(max(1, len(self.keys)), dtype=np.int64)
        self.counts[numbers] = table.counts


def limits_of(plan: Plan) -> dict[str, DeliveryLimit]:
    """By the names of the subscriptions that have one."""
    return {each.name: DeliveryLimit(each, plan.catalogue) for each in plan.subscriptions if each.limit is not None}
