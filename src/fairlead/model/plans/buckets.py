"""Buckets in keys where events come in the order of their time: then the end of a bucket is known.

ORDER BY at   PER user, bucket(at, 1 HOUR)    ≡    PER user RETAIN … 1 HOUR BATCH, for every queue

After an event no earlier one can come, so the queues of the buckets before it can be in no relation any more. As a bound they
leave when the next event of the other keys comes; as part of the key they would stay for ever.

Takes: a subscription and its order. Gives: the same, or one that finds the same relations and forgets. Never: looks at events.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.model.events.types import Catalogue
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.plans.key_parts import KeyPart, is_bucket, part_of
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.retention import Retention


def in_order(subscription: Subscription, order: EventOrder, catalogue: Catalogue) -> Subscription:
    """The subscription with its events in this order."""
    made = replace(subscription, order=order)
    if not all(_ends(subscription, branch, order, catalogue) for branch in subscription.branches):
        return made
    return replace(made, branches=tuple(map(_bounded, subscription.branches)))


def _ends(subscription: Subscription, branch: Branch, order: EventOrder, catalogue: Catalogue) -> bool:
    """One part of the key is a bucket of the time by which events are ordered, and nothing but queues depends on it."""
    if branch.noting or branch.retained or branch.tables or not branch.keys or order.keys[0].descending:
        return False
    if branch.sequence is not None:  # all its rows count, and the end of a bucket decides nothing
        return False
    if subscription.limit is not None and subscription.limit.per_key:
        return False
    if any(len(_buckets(key)) != 1 for _, key in branch.keys):
        return False
    concrete = [(catalogue[each], _buckets(key)[0]) for name, key in branch.keys for each in catalogue.accepts(name)]
    return all(
        not schema.derived
        and schema.time_attribute == part.attribute
        and (order.keys[0].column(schema),) == schema.place(part.attribute)
        for schema, part in concrete
    )


def are_buckets(subscription: Subscription) -> bool:
    """Its bounds are the buckets of its key."""
    said = any("bucket(" in each for each in subscription.per)
    return said and not any(is_bucket(part) for branch in subscription.branches for _, key in branch.keys for part in key)


def _buckets(key: tuple[str, ...]) -> list[KeyPart]:
    return [part_of(name) for name in key if is_bucket(name)]


def _bounded(branch: Branch) -> Branch:
    span = _buckets(branch.keys[0][1])[0].span_us
    keys = tuple((name, tuple(part for part in key if not is_bucket(part))) for name, key in branch.keys)
    retained = tuple((name, Retention(span_us=span, batch=True)) for name in sorted(branch.queue_types))
    return replace(branch, keys=keys if any(key for _, key in keys) else (), retained=retained)
