"""A relation as a CloudEvent: equal for every subscriber with the same subscription.

    id       the relation's
    source   /subscriptions/<digest of the subscription>: with the id, it identifies the relation permanently
    type     fairlead.relation
    subject  the local name of the subscription
    data     the relation, as everywhere

Takes: a relation and its plan. Gives: a JSON object. Never: sends anything.
"""

from __future__ import annotations

from typing import Any

from fairlead.model.plan import Plan
from fairlead.model.relation import Relation
from fairlead.transport.output.cloud_events import JSON, VERSION

TYPE = "fairlead.relation"


def relation_event(relation: Relation, plan: Plan) -> dict[str, Any]:
    digest = next(each.digest for each in plan.subscriptions if each.name == relation.subscription)
    return {
        "specversion": VERSION,
        "id": relation.id,
        "source": f"/subscriptions/{digest}",
        "type": TYPE,
        "subject": relation.subscription,
        "datacontenttype": JSON,
        "data": relation.to_json(),
    }
