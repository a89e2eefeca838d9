"""The effect of a runtime on the order that the verdicts assume: one agreed order in which each publisher's events are in the
order of sending.

    embedded   the input is the order
    spark      the order columns are the order; rows that are equal in them are ordered by source and sequence, then type
               (order/total.py)
    live       a topic of the log is one order, also of each publisher's events. Between topics the log decides, separately for
               each set of topics (docs/live.md)

A type, its subtypes and the members of a union are in one topic. So live a publisher's order holds for whatever a pattern names
once, and across all that it names if that is in one topic. On Spark it depends on the order columns.

Takes: a plan, a subscription, a runtime. Gives: losses and the fix for each. Never: knows how a runtime is built.
"""

from __future__ import annotations

from enum import StrEnum

from fairlead.dataclass import dataclass
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.plan import Branch, Plan, Subscription

PAGE = "docs/guarantees.md, runtimes"
ONE_TOPIC = "declare them in one TOPIC"
TIES = "name a further column that follows the publishers' order (a sequence) in order_by, or pass position="


class Runtime(StrEnum):
    EMBEDDED = "embedded"
    SPARK = "spark"
    LIVE = "live"


@dataclass(frozen=True)
class SourceOrder:
    """Whether events of one publisher reach the subscription in the order in which they were sent, also across types."""

    runtime: Runtime
    verdict: Verdict
    reason: str
    fix: str = ""


def source_order(plan: Plan, subscription: Subscription, runtime: Runtime) -> SourceOrder:
    types = sorted(_read(plan, subscription))
    if len(types) < 2:
        return SourceOrder(runtime, Verdict.KEPT, "it reads one type")
    if plan.order is not None:
        why = f"{plan.order}: that is the order of sending as far as the keys rise along it"
        return SourceOrder(runtime, Verdict.LOST, why, "order by a key that rises along what a publisher sends")
    match runtime:
        case Runtime.EMBEDDED:
            return SourceOrder(runtime, Verdict.KEPT, "the order of the input; with order_by as on Spark")
        case Runtime.SPARK:
            why = "rows that are equal in all order columns are ordered by type, unless source and sequence differ"
            return SourceOrder(runtime, Verdict.LOST, f"across {', '.join(types)}: {why}", TIES)
        case Runtime.LIVE:
            topics = plan.catalogue.topics_of(types)
            if len(topics) == 1:
                return SourceOrder(runtime, Verdict.KEPT, f"it reads one topic, {topics[0]}")
            listed = ", ".join(f"{each.name} in {each.topic}" for each in map(plan.catalogue.__getitem__, types))
            return SourceOrder(runtime, Verdict.LOST, f"across {listed}: the log decides the order between topics", ONE_TOPIC)


def lost_by_runtime(
    plan: Plan, subscription: Subscription, branch: Branch, wanted: Property, runtime: Runtime
) -> Guarantee | None:
    several = next(((name, members) for name in branch.queue_types if len(members := _members(plan, name)) > 1), None)
    if runtime is Runtime.SPARK and several is not None:
        return _members_lost(several[0], ", ".join(several[1]), wanted, runtime)
    return None


def _members_lost(name: str, members: str, wanted: Property, runtime: Runtime) -> Guarantee | None:
    clause, trace = f"MATCH {name}", f"{runtime}/{wanted}"
    if wanted in (Property.TYPE_FIFO_ORDER, Property.TYPE_CAUSAL_ORDER):
        why = f"rows of {members} that are equal in all order columns are ordered by type, unless source and sequence differ"
        return Guarantee(wanted, Verdict.LOST, clause, why, PAGE, TIES, trace)
    return None


def kept_if(plan: Plan, subscription: Subscription, wanted: Property, runtime: Runtime) -> str:
    """The condition under which this runtime keeps the property, if there is one."""
    is_by_value = runtime is Runtime.SPARK or plan.order is not None
    if is_by_value and wanted in (Property.TYPE_FIFO_ORDER, Property.TYPE_CAUSAL_ORDER):
        return "while the order columns do not fall along a source's sequence"
    compared = wanted in (Property.CONJUNCTION_TOTAL_ORDER, Property.COVERING_AGREEMENT)
    if runtime is Runtime.LIVE and compared:
        if len(plan.catalogue.topics) > 1 and len(plan.catalogue.topics_of(_read(plan, subscription))) > 1:
            return "among subscribers that read its topics in the same merged stream"
        if plan.derived_types(subscription):
            return "among subscribers that derive what they read from the same topic"
    return ""


def _members(plan: Plan, name: str) -> tuple[str, ...]:
    """The types of the input that a named type includes: derived events are in the order of their causes."""
    return tuple(sorted(set(plan.catalogue.accepts(name)) - plan.emitters.keys()))


def _read(plan: Plan, subscription: Subscription) -> frozenset[str]:
    """The concrete types whose published events it reads, also through what others emit."""
    return frozenset[str]().union(*(_inputs(plan, name) for name in subscription.types))


def _inputs(plan: Plan, name: str) -> frozenset[str]:
    """The types of the input that events of a type have, or are derived from."""
    found: set[str] = set()
    reached, left = set[str](), [name]
    while left:
        for each in plan.catalogue.accepts(left.pop()):
            if each in reached:
                continue
            reached.add(each)
            emitters = plan.emitters.get(each, ())
            if not emitters:
                found.add(each)
            left += [read for emitter in emitters for read in emitter.types]
    return frozenset(found - {HEARTBEAT.name})
