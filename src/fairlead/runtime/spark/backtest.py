"""How many relations each subscription would have had on each day of the past.

A relation counts on the day (UTC) of the event that completed it. Rows are ordered by time, so the rows of a day are a range of
positions, given by the number of rows of each day: derived events and deadlines need no time of their own for that. Relations
that began before the first event that is read are not seen.

Takes: a Source, a plan, a span of time. Gives: counts by subscription and day. Never: keeps a relation.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from fairlead.errors import UnsupportedError, UsageError
from fairlead.model.plans.plan import Plan
from fairlead.order.log_holdback import STORED
from fairlead.runtime.embedded import until_microseconds
from fairlead.runtime.spark.api import match
from fairlead.runtime.spark.failures import coded_errors
from fairlead.runtime.spark.input.files import EventFiles, Ordered
from fairlead.runtime.spark.job.result_rows import AHEAD
from fairlead.runtime.spark.output.views import IN_ORDER
from fairlead.transport.admission.gate import OnBad

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
BARS = "▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Backtest:
    """`counts` by subscription and day; the day is None if rows are not ordered by a time. `ahead`: how many of the events take
    no part, because their time is too far after that of their storage."""

    plan: Plan
    counts: Counter[tuple[str, date | None]]
    events: int
    rejected: int
    seconds: float
    ahead: int = 0

    @property
    def days(self) -> list[date]:
        """From the first day with a relation to the last, including days without one."""
        known = [day for _, day in self.counts if day is not None]
        if not known:
            return []
        return [min(known) + DAY * number for number in range((max(known) - min(known)).days + 1)]

    def of(self, subscription: str) -> list[tuple[date | None, int]]:
        found: list[tuple[date | None, int]] = [(day, self.counts[subscription, day]) for day in self.days]
        untimed = self.counts[subscription, None]
        return [*found, (None, untimed)] if untimed else found

    def total(self, subscription: str) -> int:
        return sum(number for (name, _), number in self.counts.items() if name == subscription)

    def to_json(self) -> dict[str, Any]:
        relations = {
            each.name: {"total": self.total(each.name), "days": {str(day or "none"): n for day, n in self.of(each.name)}}
            for each in self.plan.subscriptions
        }
        return {
            "events": self.events,
            "rejected": self.rejected,
            **({"ahead": self.ahead} if self.ahead else {}),
            "relations": relations,
            "seconds": round(self.seconds, 3),
        }


def backtest(
    plan: Plan,
    source: EventFiles,
    ordered: Ordered,
    since: str | None = None,
    until: str | None = None,
    buckets: int | None = None,
) -> Backtest:
    """`since` and `until` are inclusive; a date without a time means the whole day."""
    began = time.perf_counter()
    first, last = _moment(since, "since", end=False), _moment(until, "until", end=True)
    if first is not None and last is not None and first > last:
        raise UsageError("A222", f"--since {since} is after --until {until}", "use a start before the end")
    given = _between(source.good, ordered, first, last)
    on_bad: OnBad = "stop" if source.bad is None else "skip"
    names = None if ordered.stated else list(ordered.order_by)
    order: dict[str, Any] = {"order_by": names, "type_column": ordered.type_column}
    with coded_errors():
        frame = match(plan, given, **order, buckets=buckets, on_bad=on_bad, until=last)
        days = _days(_placed(given, plan, ordered), ordered, descending=plan.order is not None and plan.order.descending[0])
        at = _stretch([start for _, start, _ in days]).alias("at")
        rows = frame.groupBy("verdict", "subscription", at).count().collect()
        bad = 0 if source.bad is None else source.bad.count()
    counts: Counter[tuple[str, date | None]] = Counter()
    for row in rows:
        if row["verdict"] == IN_ORDER:
            counts[row["subscription"], days[row["at"]][0]] += row["count"]
    ahead = sum(row["count"] for row in rows if row["verdict"] == AHEAD)
    rejected = bad + sum(row["count"] for row in rows if row["verdict"] not in (IN_ORDER, AHEAD))
    events = ahead + sum(number for _, _, number in days)
    return Backtest(plan, counts, events, rejected, time.perf_counter() - began, ahead)


def _days(given: DataFrame, ordered: Ordered, descending: bool) -> list[tuple[date | None, int, int]]:
    """Each day with rows, in the order of the rows, its first position, and how many rows it has."""
    from pyspark.sql import functions as F

    name = ordered.order_by[0]
    column = F.col(f"`{name}`")
    kind = given.schema[name].dataType.simpleString()
    if kind == "timestamp_ntz":
        column, kind = F.to_timestamp(F.concat(column.cast("string"), F.lit("Z"))), "timestamp"
    if kind == "timestamp":
        day = F.floor(F.unix_micros(column) / 86_400_000_000)
    else:
        day = F.unix_date(column) if kind == "date" else F.lit(None).cast("bigint")
    rows = sorted((row["day"], row["count"]) for row in given.groupBy(day.alias("day")).count().collect())[
        :: -1 if descending else 1
    ]
    starts = [0, *accumulate(number for _, number in rows)]
    return [
        (None if day is None else EPOCH.date() + DAY * day, start, number)
        for (day, number), start in zip(rows, starts, strict=False)
    ]


def _placed(given: DataFrame, plan: Plan, ordered: Ordered) -> DataFrame:
    """Without the rows that have no place in the order: they are ahead, or a key is NaN. (Those with a null are already
    rejected.)"""
    from pyspark.sql import functions as F

    for name in ordered.order_by:
        if given.schema[name].dataType.simpleString() in ("float", "double"):
            given = given.filter(~F.isnan(f"`{name}`"))
    ahead = None if plan.order is None else plan.order.ahead_us
    if ahead is None or STORED not in given.columns:
        return given
    late_enough = F.unix_micros(STORED) + ahead >= F.unix_micros(f"`{ordered.order_by[0]}`")
    return given.filter(F.coalesce(late_enough, F.lit(True)))


def _stretch(starts: list[int]) -> Column:
    """The number of the day of a relation: the last one that begins at or before the event that completed it."""
    from pyspark.sql import functions as F

    begun = F.filter(F.array(*map(F.lit, starts)), lambda start: start <= F.col("completed_at"))
    return F.greatest(F.size(begun) - 1, F.lit(0)) if starts else F.lit(0)


def _moment(text: str | None, name: str, end: bool) -> datetime | None:
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        found = until_microseconds(text)
        return EPOCH + timedelta(microseconds=found or 0)
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return start + DAY - timedelta(microseconds=1) if end else start


def _between(frame: DataFrame, ordered: Ordered, first: datetime | None, last: datetime | None) -> DataFrame:
    from pyspark.sql import functions as F

    if first is None and last is None:
        return frame
    name = ordered.order_by[0] if ordered.order_by else ""
    kind = frame.schema[name].dataType.simpleString() if name in frame.columns else "missing"
    if not kind.startswith("timestamp"):
        problem = f"--since and --until need rows ordered by a time, and '{name}' is {kind}"
        raise UsageError("A223", problem, "order by a TIMESTAMP column first, or leave them out")
    for moment, later in ((first, True), (last, False)):
        if moment is not None:
            bound = F.lit(moment.isoformat()).cast("timestamp")
            frame = frame.filter(F.col(f"`{name}`") >= bound if later else F.col(f"`{name}`") <= bound)
    return frame


def bar(number: int, most: int, width: int) -> str:
    """A bar of block characters, in eighths of a block; at least one eighth for every number above zero."""
    eighths = max(1, round(8 * width * number / most)) if number and most else 0
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (BARS[rest - 1] if rest else "")


def plot(found: Backtest, path: str) -> None:
    """A picture with one bar per day, stacked by subscription."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError("U113", "--plot needs matplotlib, which is not installed", "pip install matplotlib") from None
    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots()
    days, below = found.days, [0] * len(found.days)
    for each in found.plan.subscriptions:
        heights = [found.counts[each.name, day] for day in days]
        axes.bar([str(day) for day in days], heights, bottom=below, label=f"{each.name} ({found.total(each.name):,})")
        below = [low + more for low, more in zip(below, heights, strict=True)]
    axes.set_ylabel("relations a day")
    axes.tick_params(axis="x", rotation=90 if len(days) > 10 else 0)
    step = max(1, len(days) // 30)
    axes.set_xticks(range(0, len(days), step))
    if found.plan.subscriptions:
        axes.legend()
    figure.savefig(path)
