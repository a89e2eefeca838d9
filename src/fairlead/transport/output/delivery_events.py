"""What subscribers receive, as CloudEvents: a relation, equal for every subscriber with the same subscription; and a report on
an event that took no part.

Takes: relations and reports with their plan. Gives: CloudEvents as JSON objects. Never: sends anything.
"""

from __future__ import annotations

import uuid
from typing import Any

from fairlead.model.events.verdict import EventReport
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import MINUS, PLUS, Relation
from fairlead.transport.output.cloud_events import JSON, VERSION

DELIVERY_TYPES = {
    (PLUS, False): "fairlead.relation",
    (MINUS, False): "fairlead.retraction",
    (PLUS, True): "fairlead.early",
    (MINUS, True): "fairlead.early-retraction",
}
"""By sign, and whether the delivery is early."""


VERDICT_TYPE = "fairlead.verdict"


def relation_event(relation: Relation, plan: Plan, number: int | None = None) -> dict[str, Any]:
    """The source and the id identify the delivery permanently:

    id       the relation's; if relations can be taken back, with the number of the delivery, since one can be delivered again;
             random for an early delivery, which has no number
    source   /subscriptions/<digest of the subscription>
    type     fairlead.relation; fairlead.retraction if the delivery takes the relation back; with early- if it is early
    subject  the local name of the subscription
    data     the relation, as everywhere
    """
    digest = next(each.digest for each in plan.subscriptions if each.name == relation.subscription)
    return {
        "specversion": VERSION,
        "id": _delivery_id(relation, plan, number),
        "source": f"/subscriptions/{digest}",
        "type": DELIVERY_TYPES[relation.sign, relation.early],
        "subject": relation.subscription,
        "datacontenttype": JSON,
        "data": relation.to_json(),
    }


def _delivery_id(relation: Relation, plan: Plan, number: int | None) -> str:
    if relation.early:
        return f"early-{uuid.uuid4().hex}"
    return relation.id if number is None or not plan.revises else f"{number}-{relation.id}"


def _report_id(report: EventReport) -> str:
    event = report.event
    numbered = (event.position,) if event.sequence is None else (event.source, event.sequence)
    return "-".join(map(str, (report.verdict.replace(" ", "-"), *report.subscriptions, event.type, *numbered)))


def report_event(report: EventReport, plan: Plan) -> dict[str, Any]:
    """The source and the id identify the report permanently:

    id       the verdict, the subscriptions, and the type, source and sequence of the event, or its position if it has none;
             otherwise positions do not identify it, as every order of topics counts them for itself
    source   /plans/<digest of the rules>
    type     fairlead.verdict
    subject  the type of the event
    time     its event time, if it has one
    data     the report, as everywhere
    """
    return {
        "specversion": VERSION,
        "id": _report_id(report),
        "source": f"/plans/{plan.digest}",
        "type": VERDICT_TYPE,
        "subject": report.event.type,
        **({} if report.time is None else {"time": report.time}),
        "datacontenttype": JSON,
        "data": report.to_json(),
    }
