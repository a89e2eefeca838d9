"""The result of `match` as tables for SQL: one temporary view for each subscription, and one for each other verdict.

    relation_id, branch, completed_at, place, turn     as in the frame (result_rows.py)
    positions                       those of all members, to join on
    one column for each alias       a struct of type, position, place and the attributes; `q[3]` is an array of three
    one column for each attribute   that is emitted; `Derived.attribute` if its name is already used

    relations   all of them, with members and emitted attributes as in the frame
    late, ahead   type, reason, and the event as a struct
    rejected    position, code, reason
    repeated    position, reason

Where subscriptions of a stream have different frontiers, `late`, `ahead` and `repeated` also have `subscriptions`: those for
which the event has the verdict.

With LATE REVISE, a relation may be delivered, taken back and added again: views of relations then also have `verdict` and
`revision`. `current` (revisions.py) gives a frame of those that hold.

Takes: a frame of `match`, batch or streaming, and its plan. Gives: frames, and views of them. Never: runs a job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.errors import UsageError
from fairlead.model.plans.plan import Branch, Plan, Subscription
from fairlead.model.relations.layout import RESERVED, ResultColumn, columns_of_types, layout_of
from fairlead.runtime.spark.job.result_rows import (
    ADDED,
    AHEAD,
    IN_ORDER,
    LATE,
    REJECTED,
    REPEATED,
    RETRACTED,
    REVISION,
    SUBSCRIPTIONS,
)

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

FIXED = ("relation_id", "branch", "completed_at", "place", "turn", "positions")
OTHERS = ("relations", LATE, AHEAD, REJECTED, REPEATED)
DELIVERED = (IN_ORDER, RETRACTED, ADDED)
"""The verdicts of rows that are relations."""


def register(relations: DataFrame, plan: Plan, prefix: str = "") -> dict[str, str]:
    """Create temporary views, each named `prefix` plus what it holds, and return their names.

    The names are by subscription, and by "relations", "late", "ahead", "rejected" and "repeated". A view computes its frame
    again for each query: call `relations.cache()` first if there are many."""
    taken: dict[str, str] = {}
    for each in (*OTHERS, *(subscription.name for subscription in plan.subscriptions)):
        if each.lower() in taken:  # Spark ignores case
            problem = f"'{taken[each.lower()]}' and '{each}' would have the same view name"
            raise UsageError("A220", problem, "rename the subscription")
        taken[each.lower()] = each
    frames = {
        "relations": all_relations(relations),
        LATE: late_events(relations),
        AHEAD: ahead_events(relations),
        REJECTED: rejected_records(relations),
        REPEATED: repeated_records(relations),
    } | {each.name: relations_of(relations, plan, each.name) for each in plan.subscriptions}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(f"`{prefix}{name}`")
    return {name: f"{prefix}{name}" for name in frames}


def all_relations(frame: DataFrame) -> DataFrame:
    """The delivered relations, without the other verdicts; with LATE REVISE, also those that were taken back and added."""
    return _delivered(frame).drop("reason", SUBSCRIPTIONS, *([] if REVISION in frame.columns else ["verdict"]))


def _delivered(frame: DataFrame) -> DataFrame:
    return frame.filter(frame["verdict"].isin(*DELIVERED) if REVISION in frame.columns else frame["verdict"] == IN_ORDER)


def late_events(frame: DataFrame) -> DataFrame:
    return _events(frame, LATE)


def ahead_events(frame: DataFrame) -> DataFrame:
    return _events(frame, AHEAD)


def _events(frame: DataFrame, verdict: str) -> DataFrame:
    from pyspark.sql import functions as F

    found = frame.filter(frame["verdict"] == verdict)
    members: Any = frame.schema["members"].dataType
    kept = [each.name for each in members.elementType if each.name not in RESERVED]
    event = F.element_at("members", 1)
    fields = [event.getField(name).alias(name) for name in kept]
    shown = [F.struct(*fields).alias("event")] if fields else []
    return found.select(event.getField("type").alias("type"), "reason", *_whose(frame), *shown)


def _whose(frame: DataFrame) -> list[str]:
    return [SUBSCRIPTIONS] if SUBSCRIPTIONS in frame.columns else []


def rejected_records(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    code = F.substring_index("reason", " ", 1)
    found = frame.filter(frame["verdict"] == REJECTED)
    return found.select(F.col("completed_at").alias("position"), code.alias("code"), "reason")


def repeated_records(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return frame.filter(frame["verdict"] == REPEATED).select(F.col("completed_at").alias("position"), "reason", *_whose(frame))


def relations_of(frame: DataFrame, plan: Plan, name: str) -> DataFrame:
    """The relations of one subscription, with its own columns."""
    from pyspark.sql import functions as F

    subscription = plan[name]
    fixed = (*FIXED[:-1], *(("verdict", REVISION) if REVISION in frame.columns else ()))
    taken = {each.lower() for each in (*fixed, *FIXED)}
    columns: list[Any] = [*fixed, F.col("members.position").alias("positions")]
    for alias in dict.fromkeys(element.alias for branch in subscription.branches for element in branch.elements):
        columns.append(_member(plan, subscription, alias).alias(_free(alias, "member", taken)))
    if subscription.emits is not None:
        emitted = layout_of(plan).emitted
        for attribute in plan.catalogue[subscription.emits].attributes:
            at = plan.catalogue[subscription.emits].index[attribute.name]
            held = next(each.name for each in emitted if each.sources.get(subscription.emits) == at)
            columns.append(F.col("emitted").getField(held).alias(_free(attribute.name, subscription.emits, taken)))
    return _delivered(frame).filter(frame["subscription"] == name).select(*columns)


def _free(name: str, owner: str, taken: set[str]) -> str:
    """The name, or `owner.name` if a column with this name exists."""
    made = name if name.lower() not in taken else f"{owner}.{name}"
    taken.add(made.lower())
    return made


def _member(plan: Plan, subscription: Subscription, alias: str) -> SparkColumn:
    """The events of an alias. Branches may have it at other places and with other types; it is null in a branch without it."""
    from pyspark.sql import functions as F

    slots = [slot.type for branch in subscription.branches for slot in branch.slots if slot.alias == alias]
    types = tuple(sorted({name for slot in slots for name in plan.catalogue.accepts(slot)}))
    fields = columns_of_types(types, plan.catalogue, RESERVED)
    several = any(e.alias == alias and e.quantifier.several for branch in subscription.branches for e in branch.elements)
    found: Any = None
    for number, branch in enumerate(subscription.branches):
        here = _in_branch(plan, branch, alias, fields)
        if here:
            value = here[0] if branch.runs and _is_run(branch, alias) else F.array(*here) if several else here[0]
            of = F.col("branch") == number
            found = F.when(of, value) if found is None else found.when(of, value)
    assert found is not None  # one of the branches has the alias
    return found  # type: ignore[no-any-return]


def _in_branch(plan: Plan, branch: Branch, alias: str, fields: tuple[ResultColumn, ...]) -> list[SparkColumn]:
    from pyspark.sql import functions as F

    places = sorted((slot.alias_index, at) for at, slot in enumerate(branch.slots) if slot.alias == alias)
    held = layout_of(plan).members

    def event(member: SparkColumn) -> SparkColumn:
        columns = [member.getField(name).alias(name) for name in RESERVED]
        for field in fields:
            sources = [each.name for each in held if field.sources.items() & each.sources.items()]
            columns.append(F.coalesce(*(member.getField(name) for name in sources)).alias(field.name))
        return F.struct(*columns)

    if not branch.runs:
        return [event(F.get("members", at)) for _, at in places]
    made = []
    for _, at in places:
        before: Any = F.aggregate(F.slice("runs", 1, at), F.lit(0), lambda total, each: total + each) if at else F.lit(0)
        if at in branch.folded:  # its events are not there
            made.append(F.get("folded", branch.folded.index(at)))
            continue
        run = F.transform(F.slice("members", before + 1, F.get("runs", at)), event)
        made.append(run if at in branch.runs else F.get(run, 0))
    return made


def _is_run(branch: Branch, alias: str) -> bool:
    return any(each.alias == alias and each.quantifier.run for each in branch.elements)


__all__ = [
    "ADDED", "AHEAD", "DELIVERED", "IN_ORDER", "LATE", "REJECTED", "REPEATED", "RETRACTED", "REVISION", "ahead_events",
    "all_relations", "late_events", "register", "rejected_records", "relations_of", "repeated_records",
]  # fmt: skip
