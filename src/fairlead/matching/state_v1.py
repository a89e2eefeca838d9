"""States of version 1, which are read but not written any more: canonical JSON, every event spelt out wherever it was queued.

Takes: the body of such a state. Gives: its content as columns. Never: writes.
"""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

from fairlead.matching.content import Content
from fairlead.matching.instance import Held, Instance, Key, Pending
from fairlead.matching.objects import content_of_objects
from fairlead.matching.outcome import Match
from fairlead.model.event import Event
from fairlead.model.plan import Plan
from fairlead.model.position import Position
from fairlead.model.types import Catalogue


def parsed(body: bytes) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(body)
    return content


def content_of(matchers: dict[str, Any], plan: Plan) -> Content:
    held = []
    for subscription in plan.subscriptions:
        mine = matchers[subscription.name]
        instances: list[dict[Key, Instance]] = []
        for number, entries in enumerate(mine["branches"]):
            keys = [tuple(map(_value, key)) for key, _ in entries]
            made = [_instance(each, number, key, plan.catalogue) for key, (_, each) in zip(keys, entries, strict=True)]
            instances.append(dict(zip(keys, made, strict=True)))
        held.append(Held(instances, mine["seen"]))
    return content_of_objects(held, plan)


def _instance(content: dict[str, Any], branch: int, key: Key, catalogue: Catalogue) -> Instance:
    def events(entries: list[Any]) -> list[Event]:
        return [_event(entry, catalogue) for entry in entries]

    pending = []
    for deadline, members, cancelled in content["pending"]:
        match = Match(branch, tuple(events(members)), deadline)
        due = (deadline, tuple(member.position for member in match.members), branch)
        pending.append(Pending(due, match, key, cancelled))
    queues, negated = [events(each) for each in content["queues"]], [events(each) for each in content["negated"]]
    return Instance(queues, negated, content["clock"], content["loose"], pending)


def _event(content: list[Any], catalogue: Catalogue) -> Event:
    name, position, time, source, sequence, row = content
    return Event(catalogue[name], tuple(map(_value, row)), Position(*position), time, source, sequence)


def _value(value: Any) -> Any:
    match value:
        case {"float": text}:
            return float(text)
        case {"decimal": text}:
            return Decimal(text)
        case {"bytes": text}:
            return base64.b64decode(text)
    return value
