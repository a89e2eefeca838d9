"""The Spark runtime conforms: all cases on one real session, a few at a time.

Events of a case are rows whose order column is their index. Where the values of a name have one type in all events, they are
one frame with a type column, else a frame for each type. What a DataFrame cannot say is listed here with the
reason, never skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import fairlead
from fairlead import spark as fl
from fairlead.errors import FairleadError
from fairlead.model.events.columns import arrow_type
from fairlead.model.events.types import DataType, Kind
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.layout import layout_of
from fairlead.testing.conformance import Case, CaseOutcome, ConformanceSuite
from tests.conformance.cases import CASES

ORDER = "index in the case"
THREADS = 4
"""Cases at work at the same time: most of a small job is Spark's own planning and waiting, which overlaps."""

SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "America/New_York",
}
"""And a zone that is not UTC, on which no answer may depend."""

IN_UTC: Mapping[str, str] = {
    "timestamps in several spellings are one moment": "a text without a zone is of the session's, as Spark itself takes it",
}
"""Cases that run in a session of UTC."""

TOLD_OTHERWISE: Mapping[str, tuple[str, str]] = {
    "a missing field is refused": ("D020", "a row has all columns of its frame: the frame lacks the column"),
    "a subtype has the attributes of its supertype and must be given them": (
        "D020",
        "the frame of the subtype lacks the column",
    ),
    "text where a number belongs is refused": ("D022", "a column of text is refused before anything runs"),
    "a fraction where a whole number belongs is refused": ("D022", "a column of doubles is refused before anything runs"),
    "a boolean is no number": ("D022", "a column of booleans is refused before anything runs"),
    "a number is no date": ("D022", "a column of numbers is refused before anything runs"),
    "an element that is no value of its type is refused": ("D022", "an array of texts is refused before anything runs"),
    "a field that a STRUCT does not have is refused": ("D022", "a struct with another field is refused before anything runs"),
    "a number is no text": ("D022", "a column of numbers is refused before anything runs"),
    "a bad record stops everything, even after good ones": ("D022", "numbers and texts in one column are a column of texts"),
    "a whole number beyond 64 bits does not fit a BIGINT": ("D022", "no Spark type of whole numbers holds it: it is a decimal"),
}
"""Cases whose error a DataFrame shows by its columns already, with the code that it has then."""

NOT_SAID: Mapping[str, str] = {
    "an extra field is refused": "columns that no type has are no error: a frame may have more than a plan reads",
}
"""Cases of which a DataFrame has no form."""


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Iterator[Mapping[str, Future[CaseOutcome]]]:
    """All cases, begun at once: each test waits for its own. Generating Java code for so few rows costs more than it saves."""
    small = spark.newSession()
    for name, value in SMALL.items():
        small.conf.set(name, value)
    in_utc = small.newSession()
    for name, value in (SMALL | {"spark.sql.session.timeZone": "UTC"}).items():
        in_utc.conf.set(name, value)
    with ThreadPoolExecutor(THREADS) as threads:
        yield {case.name: threads.submit(run, in_utc if case.name in IN_UTC else small, case) for case in CASES}


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in {*TOLD_OTHERWISE, *NOT_SAID}], ids=str)
class TestSpark(ConformanceSuite):
    @pytest.fixture(autouse=True)
    def _outcome(self, found: Mapping[str, Future[CaseOutcome]], case: Case) -> None:
        self.outcome = found[case.name]

    def run(self, rules: str, events: list[dict[str, Any]], until: datetime | None) -> CaseOutcome:
        return self.outcome.result()


@pytest.mark.parametrize("case", [case for case in CASES if case.name in TOLD_OTHERWISE], ids=str)
def test_what_columns_show_is_refused_before_anything_runs(found: Mapping[str, Future[CaseOutcome]], case: Case) -> None:
    error = found[case.name].exception()
    assert isinstance(error, FairleadError)
    assert error.code == TOLD_OTHERWISE[case.name][0]


@pytest.mark.parametrize("name", NOT_SAID)
def test_columns_that_no_type_has_are_left_alone(found: Mapping[str, Future[CaseOutcome]], name: str) -> None:
    assert found[name].exception() is None


def test_every_exception_is_of_a_case() -> None:
    assert {*TOLD_OTHERWISE, *NOT_SAID, *IN_UTC} <= {case.name for case in CASES}


def run(spark: SparkSession, case: Case) -> CaseOutcome:
    plan = fairlead.compile(case.rules)
    if case.error is not None:  # what no subscription reads is not looked at
        read = {name for each in plan.subscriptions for name in each.reads(plan.catalogue)}
        more = [f"\nSUBSCRIPTION Reads_{name} MATCH {name} a" for name in plan.input_types if name not in read]
        plan = fairlead.compile(case.rules + "".join(more))
    events = [{**event, ORDER: at} for at, event in enumerate(case.events)]
    names = {name for event in events for name in event}
    options = {name[1:]: name for name in ("_source", "_sequence") if name in names}
    with fl.coded_errors():
        relations = fl.match(plan, frames_of(spark, plan, events), order_by=ORDER, until=case.until, **options)
        rows = relations.orderBy("completed_at", "turn").toArrow().to_pylist()
    told = [row for row in rows if row["verdict"] == "in order"]
    return CaseOutcome([shown(plan, row) for row in told], sum(row["verdict"] == "repeated" for row in rows))


def shown(plan: Plan, row: Mapping[str, Any]) -> dict[str, Any]:
    emitted = row["emitted"] or {}
    held = {column.name: number for column in layout_of(plan).emitted for number in [column.sources.get(emitted.get("type"))]}
    attributes = plan.catalogue[emitted["type"]].attributes if emitted else ()
    return {
        "subscription": row["subscription"],
        "positions": tuple(position(each["position"], each["place"]) for each in row["members"]),
        "emitted": {attributes[at].name: emitted[name] for name, at in held.items() if at is not None},
        "completed_at": position(row["completed_at"], row["place"]),
        "branch": row["branch"],
    }


def position(major: int, place: int) -> int | str:
    """As people are shown it: 7, 7+1, or 7-1."""
    return major if place == 0 else f"{major}{place:+d}"


# --- events as frames


def frames_of(spark: SparkSession, plan: Plan, events: list[dict[str, Any]]) -> DataFrame | dict[str, DataFrame]:
    """One frame with a type column if that can say it, else one for each type."""
    types = [plan.catalogue[name] for name in plan.input_types]
    declared: dict[str, set[DataType]] = {}
    for attribute in (each for schema in types for each in schema.attributes):
        declared.setdefault(attribute.name, set()).add(attribute.type)
    needed = {schema.name: {each.name for each in schema.attributes} for schema in types}
    whole = all(needed.get(str(event.get("type")), set()) <= event.keys() for event in events)
    if whole and all(len(each) == 1 for each in declared.values()):
        names = dict.fromkeys([ORDER, "type", *declared, *(name for event in events for name in event)])
        return frame_of(spark, {name: column(next(iter(declared.get(name, [None]))), name, events) for name in names})
    found: dict[str, DataFrame] = {}
    for of in dict.fromkeys(event["type"] for event in events):
        mine = [event for event in events if event["type"] == of]
        names = dict.fromkeys(name for event in events for name in event if name in ("_source", "_sequence"))
        names |= dict.fromkeys(name for event in mine for name in event if name != "type")
        kinds = {each.name: each.type for each in plan.catalogue[of].attributes} if of in plan.catalogue else {}
        found[of] = frame_of(spark, {name: column(kinds.get(name), name, mine) for name in names})
    return found


def frame_of(spark: SparkSession, columns: Mapping[str, pa.Array]) -> DataFrame:
    return spark.createDataFrame(pa.table(dict(columns))).coalesce(1)


def column(declared: DataType | None, name: str, events: list[dict[str, Any]]) -> pa.Array:
    """The values as they stand in the case, in a column of the one type that holds them all."""
    values = [event.get(name) for event in events]
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values), KINDS.get(name) or (pa.string() if declared is None else arrow_type(declared)))
    if (kinds == {int} and declared is not None and declared.kind is Kind.DOUBLE) or kinds == {int, float}:
        return pa.array(values, pa.float64())
    if kinds == {int}:
        return pa.array(values, pa.int64() if all(v is None or -(2**63) <= v < 2**63 for v in values) else pa.decimal128(38, 0))
    if len(kinds) == 1:
        return pa.array(values)
    return pa.array([None if value is None else as_text(value, declared) for value in values])


KINDS = {ORDER: pa.int64(), "_sequence": pa.int64(), "_source": pa.string(), "type": pa.string()}


def as_text(value: Any, declared: DataType | None) -> str:
    if declared is not None and declared.kind is Kind.TIMESTAMP and isinstance(value, int | float):
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value)).isoformat()
    return str(value)
