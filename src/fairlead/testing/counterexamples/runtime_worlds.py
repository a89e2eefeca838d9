"""Worlds in which a runtime reads events in another order than they were sent: the claims of guarantees/runtimes.py, as traces.

    python -m fairlead.testing.counterexamples.runtime_worlds     writes guarantees/runtimes.json

Each world has a union of two types. On Spark the rows are equal in the order columns, so the types decide. Live, each type has
a stream; subscribers of sets of types neither of which begins the other by name read them merged in different orders.
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
ANSWERED = RuntimeWorld(("A", "B"), ("MATCH W w", "MATCH W w"), ("B p3", "A p2"), {"p1": (1, 0), "p2": (0, 1)})
"""p2 sends the A after it has delivered the B."""
MERGED = RuntimeWorld(
    ("A", "B"), ("MATCH W w", "MATCH W w AND AB x"), ("B p3", "A p3", "AB p3", "AB p3"), {"p1": (0, 1), "p2": (1, 0, 2, 3)}
)
"""p2 reads the merged stream of A, AB, B; that of p1's A, B does not begin it."""
EXTENDED = RuntimeWorld(
    ("A", "Z"), ("MATCH W w", "MATCH W w AND X x"), ("A p3", "Z p3", "X p3", "X p3"), {"p1": (0, 1), "p2": (1, 0, 2, 3)}
)
COVERED = RuntimeWorld(
    ("A", "Z"),
    ("MATCH W w[2]", "MATCH W w[2] AND X x"),
    ("A p3", "Z p3", "A p3", "X p3"),
    {"p1": (0, 1, 2), "p2": (0, 2, 1, 3)},
)
WORLDS: Mapping[str, RuntimeWorld] = {
    f"{Runtime.SPARK}/{Property.TYPE_FIFO_ORDER}": SWAPPED,
    f"{Runtime.SPARK}/{Property.TYPE_CAUSAL_ORDER}": SWAPPED,
    f"{Runtime.LIVE}/{Property.TYPE_FIFO_ORDER}": SWAPPED,
    f"{Runtime.LIVE}/{Property.TYPE_CAUSAL_ORDER}": SWAPPED,
    f"{Runtime.LIVE}/{Property.TYPE_LOCAL_ORDER}": ANSWERED,
    f"{Runtime.LIVE}/{Property.TYPE_TOTAL_ORDER}": MERGED,
    f"{Runtime.LIVE}/{Property.CONJUNCTION_TOTAL_ORDER}": EXTENDED,
    f"{Runtime.LIVE}/{Property.COVERING_AGREEMENT}": COVERED,
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
