"""The effect of a runtime on the order that the verdicts assume: one agreed order in which each publisher's events are in the
order of sending.

    embedded   the input is the order
    spark      the order columns are the order; rows that are equal in them are ordered by source and sequence, then type
               (order/total.py)
    live       each type has its own stream in the log. Between streams the log decides, separately for each set of types; sets
               of which one begins the other, by name, have one order (docs/live.md)

So within one type a publisher's order holds everywhere. If a subscription names a union or a supertype, whose events are of
several types, or if order between types matters (THEN, the choice between candidates), it depends on the runtime.

Takes: a plan, a subscription, a runtime. Gives: losses and the fix for each. Never: knows how a runtime is built.
"""

from __future__ import annotations

from enum import StrEnum

from fairlead.dataclass import dataclass
from fairlead.guarantees.shape import links
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plan import Branch, Plan, Subscription
from fairlead.model.types import HEARTBEAT

PAGE = "docs/guarantees.md, runtimes"
ONE_STREAM = "publish them as one type, with an attribute that says which they are"
TIES = "name a further column that follows the publishers' order (a sequence) in order_by, or pass position="
OF_A_SOURCE = frozenset({Property.TYPE_FIFO_ORDER, Property.TYPE_LOCAL_ORDER, Property.TYPE_CAUSAL_ORDER})


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
    types = sorted(frozenset().union(*(_inputs(plan, name) for name in subscription.types)))
    if len(types) < 2:
        return SourceOrder(runtime, Verdict.KEPT, "it reads one type")
    listed = ", ".join(types)
    match runtime:
        case Runtime.EMBEDDED:
            return SourceOrder(runtime, Verdict.KEPT, "the order of the input; with order_by as on Spark")
        case Runtime.SPARK:
            why = "rows that are equal in all order columns are ordered by type, unless source and sequence differ"
            return SourceOrder(runtime, Verdict.LOST, f"across {listed}: {why}", TIES)
        case Runtime.LIVE:
            why = "each has a stream of its own, and the log decides the order between streams, also with wait=True"
            return SourceOrder(runtime, Verdict.LOST, f"across {listed}: {why}", ONE_STREAM)


def lost_by_runtime(
    plan: Plan, subscription: Subscription, branch: Branch, wanted: Property, runtime: Runtime
) -> Guarantee | None:
    if runtime is Runtime.EMBEDDED:
        return None
    several = next(((name, members) for name in branch.queue_types if len(members := _members(plan, name)) > 1), None)
    if several is not None and (wanted in OF_A_SOURCE or wanted is Property.TYPE_TOTAL_ORDER):
        name, members = several
        return _members_lost(name, ", ".join(members), wanted, runtime)
    shares = wanted is Property.CONJUNCTION_TOTAL_ORDER or (wanted is Property.COVERING_AGREEMENT and len(branch.slots) > 1)
    if several is not None and runtime is Runtime.LIVE and shares and not _is_prefix(plan, branch):
        why = "an extended pattern reads a merged stream that does not begin with its types, in another order"
        clause = f"MATCH {' AND '.join(branch.queue_types)}"
        fix = "give the types names such that an extension's come after all of its own, by code points"
        return Guarantee(wanted, Verdict.LOST, clause, why, PAGE, fix, f"{runtime}/{wanted}")
    return None


def _members_lost(name: str, members: str, wanted: Property, runtime: Runtime) -> Guarantee | None:
    clause, trace = f"MATCH {name}", f"{runtime}/{wanted}"
    if runtime is Runtime.LIVE:
        why = f"{members} have streams of their own, and the log decides the order between streams, also with wait=True"
        if wanted is Property.TYPE_TOTAL_ORDER:
            why = f"{members} have streams of their own, which a subscriber of further types reads merged in another order"
        return Guarantee(wanted, Verdict.LOST, clause, why, PAGE, ONE_STREAM, trace)
    if wanted in (Property.TYPE_FIFO_ORDER, Property.TYPE_CAUSAL_ORDER):
        why = f"rows of {members} that are equal in all order columns are ordered by type, unless source and sequence differ"
        return Guarantee(wanted, Verdict.LOST, clause, why, PAGE, TIES, trace)
    return None


def kept_if(plan: Plan, subscription: Subscription, wanted: Property, runtime: Runtime) -> str:
    """The condition under which this runtime keeps the property, if there is one."""
    if runtime is Runtime.SPARK and wanted in (Property.TYPE_FIFO_ORDER, Property.TYPE_CAUSAL_ORDER):
        return "while the order columns do not fall along a source's sequence"
    compared = wanted in (Property.CONJUNCTION_TOTAL_ORDER, Property.COVERING_AGREEMENT)
    if runtime is Runtime.LIVE and compared and plan.derived_types(subscription):
        return "among subscribers that derive what they read from the same merged stream"
    return ""


def _members(plan: Plan, name: str) -> tuple[str, ...]:
    """The types of the input that a named type includes: derived events are in the order of their causes."""
    return tuple(sorted(set(plan.catalogue.accepts(name)) - plan.emitters.keys()))


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


def _is_prefix(plan: Plan, branch: Branch) -> bool:
    """The types that the branch reads begin, by name, those of its extensions to the right; and those of the conjunctions that
    it extends begin its own. So both read them in one order."""
    names = branch.queue_types
    read = {name: _inputs(plan, name) for name in names}
    whole = frozenset[str]().union(*(_inputs(plan, name) for name in branch.types))
    if any(each > names[-1] for each in whole):
        return False
    tied = links(branch, plan.catalogue)
    for at in range(1, len(names)):
        left = {slot for name in names[:at] for slot in branch.slots_of_type[name]}
        first = frozenset[str]().union(*(read[name] for name in names[:at]))
        crosses = any(link & left and link - left for link in tied)
        if not crosses and first and any(each < max(first) for each in whole - first):
            return False
    return True
