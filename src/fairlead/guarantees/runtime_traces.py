"""The traces for the losses of a runtime: subscribers that read the same events in different orders.

Takes: the package's runtimes.json (written by fairlead.testing.counterexamples.runtime_worlds). Gives: counterexamples by name.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pkgutil import get_data
from typing import Any

from fairlead.guarantees.shape import ConjunctionShape
from fairlead.guarantees.table import Counterexample, cell_options, rules_text
from fairlead.model.guarantee import Property

CELL = "FR-PI"
"""The defaults: no option helps if the order itself differs."""


@lru_cache(maxsize=1)
def load_runtime_traces() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(get_data("fairlead.guarantees", "runtimes.json") or b"{}")
    return found


def runtime_counterexample(name: str) -> Counterexample | None:
    """`live/type FIFO order`."""
    trace = load_runtime_traces().get(name)
    if trace is None:
        return None
    return Counterexample(
        f"trace {name}",
        Property(name.split("/")[1]),
        CELL,
        ConjunctionShape.EVENT,
        rules_text(trace["types"], trace["subscriptions"], *cell_options(CELL)),
        tuple({name: value for name, value in event.items() if name != "by"} for event in trace["events"]),
        tuple(event["by"] for event in trace["events"]),
        tuple(trace["steps"]),
        trace["violation"],
        about="a publisher whose order across types the runtime does not keep",
        orders=tuple((process, tuple(order)) for process, order in trace["orders"].items()),
    )
