"""Progress of a stream: the totals of Spark's reports on micro-batches.

`observed` makes Spark count the rows of each verdict and subscription while they pass, without an additional job; `watch`
listens to the reports of queries whose frame is observed. `Metrics` returns the numbers as data, and through Prometheus' own
client library as text and on a port.

Takes: progress reports of Spark. Gives: a `Snapshot`, text, a server on this machine's own address. Never: slows a query, since
reports arrive in a thread of the listener.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.errors import UnsupportedError
from fairlead.model.plans.plan import Plan
from fairlead.runtime.spark.log.provenance import note_same
from fairlead.runtime.spark.output.views import ADDED, AHEAD, IN_ORDER, LATE, REJECTED, REPEATED, RETRACTED
from fairlead.runtime.spark.stream.resumption import RuleChange
from fairlead.runtime.spark.stream.stream_job import ORDER

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from prometheus_client.core import Metric
    from pyspark.sql import DataFrame, SparkSession

OBSERVED = "fairlead"
INPUT = "fairlead_input"
"""The name of the observation of the input: how many of its rows could be read."""
LOOPBACK = "127.0.0.1"
COUNTED = (LATE, REJECTED, REPEATED, AHEAD, RETRACTED, ADDED)
"""The verdicts that are counted over all subscriptions."""


@dataclass(frozen=True)
class Snapshot:
    """Totals since the listener started; `…_per_second`, `…_seconds` and what is held back are of the last micro-batch with
    rows.

    `held`, `kept` and `ties` are None where they are not counted. `kept`: released rows before which late ones are accepted
    (LATE REVISE). `relations`: as they were first delivered. `change` reports which rules resumed, started or were dropped when
    they last changed; for a stream that started since, all of them started."""

    batches: int = 0
    last_batch: int = -1
    events: int = 0
    events_per_second: float = 0.0
    batch_seconds: float = 0.0
    seconds: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0
    held: int | None = None
    kept: int | None = None
    ties: int | None = None
    verdicts: Mapping[str, int] = field(default_factory=dict)
    relations: Mapping[str, int] = field(default_factory=dict)
    change: RuleChange | None = None

    @property
    def late(self) -> int:
        return self.verdicts.get(LATE, 0)

    @property
    def rejected(self) -> int:
        return self.verdicts.get(REJECTED, 0)

    @property
    def repeated(self) -> int:
        return self.verdicts.get(REPEATED, 0)

    @property
    def ahead(self) -> int:
        return self.verdicts.get(AHEAD, 0)

    @property
    def retracted(self) -> int:
        return self.verdicts.get(RETRACTED, 0)

    @property
    def added(self) -> int:
        return self.verdicts.get(ADDED, 0)


class Metrics:
    """Totals of one streaming query; safe to read from another thread."""

    def __init__(self, plan: Plan) -> None:
        self._names = [each.name for each in plan.subscriptions]
        self._lock = threading.Lock()
        self._verdicts: Counter[str] = Counter()
        self._relations: Counter[str] = Counter()
        self._now = Snapshot(relations=dict.fromkeys(self._names, 0))

    def note(self, report: Mapping[str, Any]) -> None:
        """Add a progress report, as Spark's JSON."""
        with self._lock:
            observed = report.get("observedMetrics") or {}
            counts = observed.get(OBSERVED) or {}
            for verdict in COUNTED:
                self._verdicts[verdict] += counts.get(verdict) or 0
            for number, name in enumerate(self._names):
                self._relations[name] += counts.get(f"relations_{number}") or 0
            order = observed.get(ORDER) or {}
            before = self._now
            rows = int((observed.get(INPUT) or {}).get("events", report.get("numInputRows")) or 0)
            seconds = (report.get("batchDuration") or (report.get("durationMs") or {}).get("triggerExecution") or 0) / 1000
            state = report.get("stateOperators") or ()
            self._now = Snapshot(
                batches=before.batches + 1,
                last_batch=int(report.get("batchId", -1)),
                events=before.events + rows,
                events_per_second=rows / seconds if rows and seconds else before.events_per_second,
                batch_seconds=seconds if rows else before.batch_seconds,
                seconds=before.seconds + seconds,
                state_rows=sum(each.get("numRowsTotal") or 0 for each in state),
                state_bytes=sum(each.get("memoryUsedBytes") or 0 for each in state),
                held=order.get("held", before.held),
                kept=order.get("kept", before.kept),
                ties=before.ties if order.get("ties") is None else (before.ties or 0) + order["ties"],
                verdicts=dict(self._verdicts),
                relations={name: self._relations[name] for name in self._names},
                change=before.change if order.get("change") is None else _change(order["change"]),
            )

    def snapshot(self) -> Snapshot:
        """The totals so far."""
        with self._lock:
            return self._now

    def metrics(self) -> str:
        """The totals in the text format of Prometheus, version 0.0.4."""
        prometheus = _prometheus()
        return str(prometheus.generate_latest(self.registry()).decode())

    def registry(self) -> Any:
        """A registry of Prometheus' client library, with only these metrics."""
        made = _prometheus().CollectorRegistry()
        made.register(self)
        return made

    def collect(self) -> Iterator[Metric]:
        """Called by a registry."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        now = self.snapshot()
        plain: list[tuple[Any, str, str, float | None]] = [
            (CounterMetricFamily, "events_total", "Rows read.", now.events),
            (
                GaugeMetricFamily,
                "events_per_second",
                "Rows read a second in the last micro-batch that had some.",
                now.events_per_second,
            ),
            (CounterMetricFamily, "batches_total", "Micro-batches done.", now.batches),
            (GaugeMetricFamily, "batch_seconds", "Length of the last micro-batch that had rows.", now.batch_seconds),
            (GaugeMetricFamily, "state_rows", "Values in the state stores.", now.state_rows),
            (GaugeMetricFamily, "state_bytes", "Memory of the state stores.", now.state_bytes),
            (GaugeMetricFamily, "held_rows", "Rows that wait for the frontier.", now.held),
            (GaugeMetricFamily, "kept_rows", "Released rows before which late ones are accepted.", now.kept),
            (CounterMetricFamily, "ties_total", "Rows whose order columns equal those of the row before.", now.ties),
            (CounterMetricFamily, "late_total", "Events that arrived after later ones were released.", now.late),
            (CounterMetricFamily, "rejected_total", "Records that fit no type.", now.rejected),
            (CounterMetricFamily, "repeated_total", "Records whose sequence was reached before.", now.repeated),
            (CounterMetricFamily, "ahead_total", "Events whose time is too far after that of their storage.", now.ahead),
            (CounterMetricFamily, "retracted_total", "Relations that late events took back.", now.retracted),
            (CounterMetricFamily, "added_total", "Relations that late events added.", now.added),
        ]
        for family, name, told, value in plain:
            if value is not None:
                yield family(f"fairlead_{name}", told, value=value)
        relations = CounterMetricFamily("fairlead_relations_total", "Relations delivered.", labels=("subscription",))
        for name in self._names:
            relations.add_metric((name,), now.relations[name])
        yield relations


def _prometheus() -> Any:
    try:
        import prometheus_client
    except ModuleNotFoundError:
        problem = "the client library of Prometheus is not installed"
        raise UnsupportedError("U115", problem, "pip install prometheus-client") from None
    return prometheus_client


def _change(told: str) -> RuleChange:
    found = json.loads(told)
    resumed, started, dropped = (tuple(found[name]) for name in ("resumed", "started", "dropped"))
    return RuleChange(resumed, started, dropped, found["position"])


def observed(relations: DataFrame, plan: Plan) -> DataFrame:
    """Count the rows of the frame of `match` as they pass: by verdict, and relations by subscription."""
    from pyspark.sql import functions as F

    verdict, subscription = F.col("verdict"), F.col("subscription")
    counts = [F.count_if(verdict == each).alias(each) for each in COUNTED]
    for number, each in enumerate(plan.subscriptions):
        counts.append(F.count_if((verdict == IN_ORDER) & (subscription == each.name)).alias(f"relations_{number}"))
    counted = relations.observe(OBSERVED, *counts)
    note_same(counted, relations)
    return counted


def observed_input(events: DataFrame) -> DataFrame:
    """The input frame of `match`, counted as rows pass."""
    from pyspark.sql import functions as F

    return events.observe(INPUT, F.count(F.lit(1)).alias("events"))


def watch(spark: SparkSession, plan: Plan) -> Watch:
    """Listen to the queries of this session that run on an `observed` frame of the plan, until `stop`."""
    return Watch(spark, plan)


class Watch(Metrics):
    def __init__(self, spark: SparkSession, plan: Plan) -> None:
        super().__init__(plan)
        self._spark = spark
        self._listener = _listener(self)
        self._server: WSGIServer | None = None
        spark.streams.addListener(self._listener)

    def serve(self, port: int) -> int:
        """Answer `GET /metrics` on this machine's own address. Returns the port, which is a free one for 0."""
        self._server, _ = _prometheus().start_http_server(port, LOOPBACK, self.registry())
        return int(self._server.server_port)

    def stop(self) -> None:
        self._spark.streams.removeListener(self._listener)
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def _listener(metrics: Metrics) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            report = json.loads(event.progress.json)
            if OBSERVED in (report.get("observedMetrics") or {}):
                metrics.note(report)

        def onQueryIdle(self, event: Any) -> None:
            pass

        def onQueryTerminated(self, event: Any) -> None:
            pass

    return Listener()
