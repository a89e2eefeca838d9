"""Worlds in which a runtime reads events in another order than they were sent: the claims of guarantees/runtimes.py, as traces.

    python -m fairlead.testing.counterexamples.runtime_worlds     writes guarantees/runtimes.json

Each world has a union of two types, whose rows are equal in the order columns of Spark, so the types decide.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.guarantees.runtime_traces import CELL
from fairlead.guarantees.runtimes import Runtime
from fairlead.guarantees.table import cell_options, rules_text
from fairlead.language import compile_text
from fairlead.model.guarantee import Property
from fairlead.testing.counterexamples.clause_worlds import delivered, events_of_records
from fairlead.testing.properties.checkers import CHECKERS
from fairlead.testing.properties.trace import Trace, trace_of_orders

RUNTIMES = Path(__file__).resolve().parents[2] / "guarantees" / "runtimes.json"


@dataclass(frozen=True)
class RuntimeWorld:
    """Events as `type by`, in the order of sending; by subscriber the numbers of the events that it reads, in its order."""

    union: tuple[str, str]
    subscriptions: tuple[str, ...]
    sent: tuple[str, ...]
    orders: Mapping[str, tuple[int, ...]]

    @property
    def types(self) -> list[str]:
        names = sorted({word.split()[0] for word in self.sent} | set(self.union))
        return [*(f"TYPE {name} (x INT)" for name in names), f"EVENT UNION W = {' + '.join(self.union)}"]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [{"type": word.split()[0], "x": number, "by": word.split()[1]} for number, word in enumerate(self.sent)]


def run_orders(rules: str, events: Sequence[Mapping[str, Any]], orders: Mapping[str, Sequence[int]]) -> Trace:
    plan = compile_text(rules)
    read = events_of_records(plan, events)
    return trace_of_orders(plan, read, [each["by"] for each in events], orders, delivered)


SWAPPED = RuntimeWorld(("A", "B"), ("MATCH W w",), ("B p3", "A p3"), {"p1": (1, 0)})
WORLDS: Mapping[str, RuntimeWorld] = {
    f"{Runtime.SPARK}/{Property.TYPE_FIFO_ORDER}": SWAPPED,
    f"{Runtime.SPARK}/{Property.TYPE_CAUSAL_ORDER}": SWAPPED,
}


def runtimes_json() -> dict[str, Any]:
    found = {}
    for name, world in WORLDS.items():
        trace = run_orders(rules_text(world.types, world.subscriptions, *cell_options(CELL)), world.events, world.orders)
        violation = CHECKERS[Property(name.split("/")[1])](trace)
        assert violation is not None, name
        found[name] = {
            "types": world.types,
            "subscriptions": list(world.subscriptions),
            "events": world.events,
            "orders": {process: list(order) for process, order in world.orders.items()},
            "steps": trace.lines(),
            "violation": violation.words,
        }
    return found


def dumped_runtimes() -> str:
    return json.dumps(runtimes_json(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    RUNTIMES.write_text(dumped_runtimes(), encoding="utf-8")
    sys.exit(0)
