"""The relations, derived events and receipts that are due, computed from the log of a history.

The reference matcher (testing/reference.py) finds the relations. The receipt is written out once more, as
model/relations/identity.py defines it: sum over the deliveries n = 1, 2, … of mix(delivery + mix(n)), in two lanes of 64 bits.

Takes: the text of rules, events of a stream. Gives: relations in the order of delivery, digests. Never: uses an engine of
production.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from fairlead.language.compiler import compile_text
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.testing.history.values import LoggedEvent
from fairlead.testing.reference import ReferenceMatcher

MASK = (1 << 64) - 1
PLANS_KEPT = 64
planned = lru_cache(PLANS_KEPT)(compile_text)


def found(text: str, events: Sequence[LoggedEvent], origin: int) -> list[Relation]:
    """The relations of all subscriptions in the events from this position on."""
    plan = planned(text)
    known = {each.name: each for each in plan.catalogue if not plan.emitters.get(each.name)} | {HEARTBEAT.name: HEARTBEAT}
    matcher, relations = ReferenceMatcher(plan), list[Relation]()
    for each in events:
        if each.position >= origin and each.type in known:
            schema = known[each.type]
            row = each.row + (None,) * (len(schema.attributes) - len(each.row))  # attributes that were added later
            event = Event(schema, row, Position(each.position), each.time, each.source, each.sequence)
            relations += matcher.arrive(event)
    return relations


def is_emitting(plan: Plan, subscription: str) -> str | None:
    """The type that a subscription emits."""
    return plan[subscription].emits


def digest_of(deliveries: Iterable[tuple[str, int]]) -> str:
    """Of deliveries, each an id and a sign."""
    total = [0, 0]
    for number, (id, sign) in enumerate(deliveries, 1):
        for lane in (0, 1):
            word = int(id[16 * lane : 16 * lane + 16], 16)
            delivery = word if sign > 0 else MASK ^ word
            total[lane] = (total[lane] + _mix((delivery + _mix(number)) & MASK)) & MASK
    return f"{total[0]:016x}{total[1]:016x}"


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)
