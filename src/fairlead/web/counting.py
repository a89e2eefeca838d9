"""The gateway's counters, in the text format of Prometheus.

Takes: counted events. Gives: text. Never: grows with the requests; labels are those of routes, codes and kinds.
"""

from __future__ import annotations

from collections import Counter

CONTENT = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[tuple[str, str], ...]
HELP = {
    "requests_total": ("counter", "Requests answered."),
    "request_seconds_total": ("counter", "Time until they were answered; streams are not counted."),
    "events_stored_total": ("counter", "Events stored."),
    "events_repeated_total": ("counter", "Events that were stored before, and not again."),
    "errors_total": ("counter", "Requests and streams that ended with an error, by its code."),
    "relations_sent_total": ("counter", "Relations sent."),
    "acknowledged_total": ("counter", "Acknowledgements stored."),
    "streams_open": ("gauge", "Streams open now."),
}


class Counting:
    def __init__(self) -> None:
        self._values: dict[str, Counter[Labels]] = {name: Counter() for name in HELP}
        for name in ("events_stored_total", "events_repeated_total", "relations_sent_total", "acknowledged_total"):
            self._values[name][()] = 0
        for kind in ("sse", "websocket"):
            self._values["streams_open"][("kind", kind),] = 0

    def add(self, name: str, amount: float = 1, /, **labels: str) -> None:
        self._values[name][tuple(sorted(labels.items()))] += amount  # type: ignore[assignment]

    def text(self) -> str:
        lines = []
        for name, (kind, told) in HELP.items():
            lines += [f"# HELP fairlead_gateway_{name} {told}", f"# TYPE fairlead_gateway_{name} {kind}"]
            for labels, value in sorted(self._values[name].items()):
                shown = ",".join(f'{key}="{text}"' for key, text in labels)
                lines.append(
                    f"fairlead_gateway_{name}{{{shown}}} {value:.10g}" if shown else f"fairlead_gateway_{name} {value}"
                )
        return "\n".join(lines) + "\n"
