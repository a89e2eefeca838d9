"""Files of events as frames for `match`: Parquet unchanged, JSON Lines and CSV with the types that the plan declares.

Spark silently turns an invalid value into a null. Here every such line is kept as text: with `on_bad="stop"` it ends the job
(D024), with "skip" it is returned separately. The same applies to rows without a value in an order column (D019).

    BOOLEAN, INT, BIGINT, DOUBLE, TIMESTAMP   read as such
    ARRAY, STRUCT                             read as such, made of these; not in CSV (D043)
    STRING, DECIMAL, BINARY                   read as text and checked as all input is (arrivals.py); Spark would round decimals

Takes: paths and a plan. Gives: `EventFiles`: the readable rows, and the bad ones. Never: reads more than the head of a CSV
file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fairlead.errors import DataError
from fairlead.model.events.types import HEARTBEAT, DataType, Kind
from fairlead.model.plans.plan import Plan
from fairlead.order.log_holdback import STORED
from fairlead.order.total import SEQUENCE, SOURCE
from fairlead.runtime.spark.input.frame_order import order_column_of
from fairlead.runtime.spark.output.folders import located
from fairlead.runtime.spark.setup.readiness import zone_of
from fairlead.transport.admission.gate import OnBad
from fairlead.transport.admission.problems import no_bytes, no_header, no_nested_cells
from fairlead.transport.files.event_files import FORMATS, format_of, resolve

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Form = Literal["parquet", "json", "csv"]
CORRUPT = "_corrupt_record"
TYPED = {Kind.BOOLEAN: "boolean", Kind.INT: "int", Kind.BIGINT: "bigint", Kind.DOUBLE: "double", Kind.TIMESTAMP: "timestamp"}
AS_TEXT = {Kind.STRING, Kind.DECIMAL, Kind.BINARY, Kind.TIMESTAMP, Kind.DATE}
RECORD_SHOWN = 500
"""Characters of an unreadable line: enough to find it."""
DATES = {"dateFormat": "yyyy-MM-dd"}
CSV = {"header": "true", "enforceSchema": "false", "escape": '"', "columnPruning": "false", "nullValue": "\x00"} | DATES
"""An empty cell is null and a quoted one the empty text, unless both equal `nullValue`: so this is a value that no cell has."""
JSON = {"allowNonNumericNumbers": "false"} | DATES
EMPTY = {"csv": no_header, "parquet": no_bytes}
WHOLE, REAL = r"\s*[+-]?[0-9]+\s*", r"\s*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?\s*|\s*[+-]?(nan|NaN|NAN)\s*"
NUMBERS = {"int": WHOLE, "bigint": WHOLE, "double": REAL}
"""Numbers in CSV, as the embedded runtime reads them: Spark would also accept digits of other scripts, `1d` and `0x1p3`."""


@dataclass(frozen=True)
class Ordered:
    """The order of the rows, as `match` accepts it."""

    order_by: tuple[str, ...] = ()
    position: str | None = None
    type_column: str = "type"
    source: str | None = None
    sequence: str | None = None
    stated: bool = False
    """The rules state the order; `order_by` has the columns of its keys."""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.order_by if self.position is None else (self.position,)


def ordered_as_stated(plan: Plan, given: Ordered) -> Ordered:
    """With the columns of ORDER BY, if the rules have it."""
    if plan.order is None or given.order_by:
        return given
    types = [plan.catalogue[name] for name in plan.input_types]
    names = (order_column_of(key, types, {name for each in types for name in each.index}) for key in plan.order.keys)
    return replace(given, order_by=tuple(names), stated=True)


@dataclass(frozen=True)
class EventFiles:
    """`bad` has the columns position (null), code and reason; None if a bad row ends the job instead. `zone`: the session's
    zone, if Spark reads times from text, for those without a zone."""

    good: DataFrame
    bad: DataFrame | None
    zone: str | None = None


def read(
    spark: SparkSession,
    plan: Plan,
    paths: Sequence[str],
    ordered: Ordered,
    *,
    on_bad: OnBad = "stop",
    streaming: bool = False,
    form: Form | None = None,
    files_per_batch: int | None = None,
) -> EventFiles:
    columns = schema_of(plan, ordered)
    forms = [form or form_of(path) for path in paths]
    parts = [
        _one(spark, located(spark, path), columns, streaming, each, files_per_batch)
        for path, each in zip(paths, forms, strict=True)
    ]
    whole = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    written = "timestamp" in columns.values() and set(forms) != {"parquet"}
    return replace(_parted(whole, ordered, on_bad), zone=(zone_of(spark) or "UTC") if written else None)


def schema_of(plan: Plan, ordered: Ordered) -> dict[str, str]:
    """The columns that the plan reads, with the Spark types for reading text."""
    read = {name for each in plan.subscriptions for name in each.reads(plan.catalogue) if not plan.catalogue[name].derived}
    found: dict[str, list[tuple[str, DataType]]] = {}
    for name in sorted(read):
        for attribute in plan.catalogue[name].attributes:
            if name != HEARTBEAT.name or attribute.name not in found:
                found.setdefault(attribute.name, []).append((name, attribute.type))
    columns = {ordered.type_column: "string"}
    for name, uses in found.items():
        columns[name] = _spark_type(name, uses, name in ordered.columns)
    for name in ordered.columns:
        columns.setdefault(name, "bigint")
    source, sequence = (SOURCE, SEQUENCE) if ordered.source is ordered.sequence is None else (ordered.source, ordered.sequence)
    if source is not None:
        columns.setdefault(source, "string")
    if sequence is not None:
        columns.setdefault(sequence, "bigint")
    if plan.order is not None and plan.order.ahead_us is not None:
        columns.setdefault(STORED, "timestamp")
    return columns


def _spark_type(name: str, uses: Sequence[tuple[str, DataType]], is_order: bool) -> str:
    kinds = {each.kind for _, each in uses}
    if kinds == {Kind.DECIMAL} and is_order:
        return f"decimal(38,{max(each.scale for _, each in uses)})"
    if kinds == {Kind.DATE} and is_order:
        return "date"
    if len({each for _, each in uses}) == 1 and uses[0][1].is_nested:
        return _nested_type(uses[0][1])
    if len(kinds) == 1 and not uses[0][1].is_nested:
        return TYPED.get(next(iter(kinds)), "string")
    if kinds == {Kind.INT, Kind.BIGINT}:
        return "bigint"
    if kinds <= AS_TEXT and not is_order:
        return "string"
    listed = ", ".join(f"{owner}.{name} {kind}" for owner, kind in uses)
    raise DataError(
        "D022", f"one column would have several types: {listed}", "rename one, or pass spark.match one frame per type", name
    )


def _nested_type(data_type: DataType) -> str:
    """What cannot be read as such is text inside, too."""
    if data_type.element is not None:
        return f"array<{_nested_type(data_type.element)}>"
    if data_type.is_nested:
        return f"struct<{', '.join(f'`{each.name}`: {_nested_type(each.type)}' for each in data_type.fields)}>"
    return TYPED.get(data_type.kind, "string")


def form_of(path: str) -> Form:
    """The format by the suffix; of a folder, by those of its files."""
    there = Path(path)
    if "://" in path or any(sign in path for sign in "*?[{"):
        kind = format_of(there)
    elif there.is_dir():
        kinds = {format_of(each) for each in there.rglob("*") if each.is_file() and each.name[0] not in "._"} - {None}
        if len(kinds) > 1:
            fix = "name the files of one format: FOLDER/*.parquet"
            raise DataError("D029", f"the folder has files of several formats: {', '.join(sorted(map(str, kinds)))}", fix, path)
        kind = next(iter(kinds), None)
    else:
        resolve(path)  # raises with the reason
        kind = format_of(there)
        if kind in EMPTY and there.is_file() and not there.stat().st_size:
            raise EMPTY[kind](path)
    if kind is None:
        fix = f"use --events-format, or a known ending: {', '.join(FORMATS)}"
        raise DataError("D029", "the format of the events is unknown", fix, path)
    if kind == "cloudevents":
        fix = "use `fairlead run`, or pass spark.match a frame of their data"
        raise DataError("D029", "files of CloudEvents are not supported on Spark", fix, path)
    return kind  # type: ignore[return-value]


def _one(
    spark: SparkSession, path: str, columns: dict[str, str], streaming: bool, form: Form, files_per_batch: int | None
) -> DataFrame:
    reader: Any = spark.readStream if streaming else spark.read
    if streaming and files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    if form == "parquet":
        if not streaming:
            return _chosen(reader.parquet(path), columns)
        known = spark.read.parquet(path).schema if _has_files(path) else ", ".join(f"`{n}` {t}" for n, t in columns.items())
        return _chosen(reader.schema(known).parquet(path), columns)
    names = list(columns)
    if form == "csv" and _has_files(path):
        names = spark.read.options(**CSV).csv(path).columns
    if form == "csv":
        _refuse_nested({name: columns[name] for name in names if name in columns}, path)
    numbers = {name: columns[name] for name in names if columns.get(name) in NUMBERS} if form == "csv" else {}
    types = {name: "string" if name in numbers else columns.get(name, "string") for name in [*names, CORRUPT]}
    typed = ", ".join(f"`{name}` {each}" for name, each in types.items())
    reader = reader.schema(typed).option("columnNameOfCorruptRecord", CORRUPT).options(**(CSV if form == "csv" else JSON))
    frame = _with_numbers(reader.csv(path), numbers) if form == "csv" else reader.json(path)
    return _chosen(frame, columns, CORRUPT)


def _refuse_nested(columns: dict[str, str], path: str) -> None:
    for name, kind in columns.items():
        if kind.startswith(("array<", "struct<")):
            raise no_nested_cells(name, kind, path)


def _with_numbers(frame: DataFrame, numbers: dict[str, str]) -> DataFrame:
    """Converts texts to numbers; a row with an invalid number counts as unreadable, like one that Spark cannot read."""
    from pyspark.sql import functions as F

    wrong, made = F.lit(False), {}
    for name, wanted in numbers.items():
        text = F.col(f"`{name}`")
        made[name] = F.when(text.rlike(f"^({NUMBERS[wanted]})$"), F.expr(f"try_cast(trim(`{name}`) AS {wanted})"))
        wrong |= text.isNotNull() & made[name].isNull()
    line = F.to_csv(F.struct(*(f"`{name}`" for name in frame.columns if name != CORRUPT)))
    return frame.withColumns(made | {CORRUPT: F.when(F.col(CORRUPT).isNull() & wrong, line).otherwise(F.col(CORRUPT))})


def _has_files(path: str) -> bool:
    there = Path(path)
    return "://" in path or not there.is_dir() or any(each.name[0] not in "._" for each in there.iterdir())


def _chosen(frame: DataFrame, columns: dict[str, str], *more: str) -> DataFrame:
    """The columns that are read; `match` has the better message for missing ones."""
    return frame.select(*(f"`{name}`" for name in frame.columns if name in columns or name in more))


def _parted(whole: DataFrame, ordered: Ordered, on_bad: OnBad) -> EventFiles:
    from pyspark.sql import functions as F

    reason: Column = F.lit(None).cast("string")
    names = [each for each in whole.columns if each != CORRUPT]
    shown = F.substring(F.to_json(F.struct(*(f"`{each}`" for each in names))), 1, RECORD_SHOWN)
    for each in ordered.columns:
        if each in names:
            missing = F.concat(F.lit(f"D019 no value in the order column '{each}': "), shown)
            reason = F.when(F.col(f"`{each}`").isNull(), missing).otherwise(reason)
    if CORRUPT in whole.columns:
        line = F.substring(CORRUPT, 1, RECORD_SHOWN)
        unread = F.concat(F.lit("D024 a value does not fit its type, or the line is not valid:  "), line)
        # Spark reports errors of the columns it reads, and every job must report the same: so all of them are read
        every = F.length(F.concat_ws("", *(F.col(f"`{each}`").cast("string") for each in names))) >= 0
        reason = F.when(F.col(CORRUPT).isNotNull() & every, unread).otherwise(reason)
    if on_bad == "stop":
        fine = F.when(reason.isNotNull(), F.raise_error(reason).cast("boolean")).otherwise(True)
        return EventFiles(whole.filter(fine).drop(CORRUPT), None)
    code = F.substring_index("reason", " ", 1)
    bad = whole.select(reason.alias("reason")).filter("reason IS NOT NULL")
    apart = bad.select(F.lit(None).cast("bigint").alias("position"), code.alias("code"), "reason")
    return EventFiles(whole.filter(reason.isNull()).drop(CORRUPT), apart)
