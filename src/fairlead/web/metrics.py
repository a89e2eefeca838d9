"""The gateway's metrics, for Prometheus.

Takes: counts. Gives: the response text of `GET /metrics`, written by Prometheus' own client library. Never: grows with the
input; labels are routes, codes and kinds of streams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT
from prometheus_client.registry import Collector

from fairlead.model.events.verdict import EventReport
from fairlead.model.relations.relation import Relation

__all__ = ["CONTENT", "GatewayMetrics"]

METRICS: dict[str, tuple[type[CounterMetricFamily | GaugeMetricFamily], str, tuple[str, ...]]] = {
    "requests_total": (CounterMetricFamily, "Requests answered.", ("method", "path", "status")),
    "request_seconds_total": (CounterMetricFamily, "Time until they were answered; streams are not counted.", ("path",)),
    "events_stored_total": (CounterMetricFamily, "Events stored.", ()),
    "events_repeated_total": (CounterMetricFamily, "Events that were stored before, and not again.", ()),
    "errors_total": (CounterMetricFamily, "Requests and streams that ended with an error, by its code.", ("code",)),
    "relations_sent_total": (CounterMetricFamily, "Relations sent.", ()),
    "retractions_sent_total": (CounterMetricFamily, "Deliveries sent that take a relation back.", ()),
    "early_sent_total": (CounterMetricFamily, "Early deliveries sent, also those that take one back.", ()),
    "verdicts_sent_total": (CounterMetricFamily, "Reports sent on events that took no part, by verdict.", ("verdict",)),
    "blocks_rejected_total": (CounterMetricFamily, "Forged or damaged blocks that subscribers have skipped.", ("code",)),
    "acknowledged_total": (CounterMetricFamily, "Acknowledgements stored.", ()),
    "streams_open": (GaugeMetricFamily, "Streams open now.", ("kind",)),
}
"""By name, after `fairlead_gateway_`: its kind, its description, and its labels."""


class GatewayMetrics(Collector):
    def __init__(self) -> None:
        self._values: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in METRICS}
        for name, (_, _, labels) in METRICS.items():
            if not labels:
                self._values[name][()] = 0
        for kind in ("sse", "websocket"):
            self._values["streams_open"][kind,] = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def add(self, name: str, amount: float = 1, /, **labels: str) -> None:
        self._values[name][tuple(labels[each] for each in METRICS[name][2])] += amount  # type: ignore[assignment]

    def set_rejected(self, counts: Mapping[str, int]) -> None:
        """The counts of the gateway's client."""
        self._values["blocks_rejected_total"] = Counter({(code,): count for code, count in counts.items()})

    def count_sent(self, kind: str, content: Relation | EventReport) -> None:
        """A message to a listener (feed.py)."""
        if isinstance(content, EventReport):
            self.add("verdicts_sent_total", verdict=content.verdict.value)
        elif content.early:
            self.add("early_sent_total")
        else:
            self.add(f"{kind}s_sent_total")

    def collect(self) -> Iterator[Metric]:
        for name, (family, told, labels) in METRICS.items():
            made = family(f"fairlead_gateway_{name}", told, labels=labels)
            for values, amount in sorted(self._values[name].items()):
                made.add_metric(values, amount)
            yield made

    def text(self) -> str:
        return generate_latest(self._registry).decode()
