"""Whole plans on kernels deliver what they deliver event by event: families, hierarchies, absences, overlapping types.

Here the generated source runs as plain Python (compiling takes a second for each); test_kernel_compiled.py runs machine code.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from fairlead.engine import Engine
from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.matching.relations import Relations
from fairlead.matching.table import table_of_objects
from fairlead.model.layout import layout_of
from fairlead.model.plan import Plan
from fairlead.model.values import microseconds
from fairlead.transport.events import read_events
from fairlead.transport.write import relation_table
from tests.match.generated import Case
from tests.match.plans import plan_cases
from tests.match.test_lanes import interpreted, shown

__all__ = ["interpreted"]


def compiled(rules: str) -> Plan:
    """What compiles at all: a generated condition may compare a value with itself."""
    try:
        return compile_text(rules)
    except LanguageError:
        assume(False)
        raise


def rows_of(table: Any) -> list[str]:
    """NaN equals itself as text."""
    return [repr(row) for row in table.to_pylist()]


def compared(case: Case, plan: Plan, rows: int, change: int) -> Counter[str]:
    plain, fast = Engine(plan, kernels_from=None), Engine(plan, kernels_from=change)
    layout, seen = layout_of(plan), Counter[str]()
    batches = []
    for columns in read_events(case.events, plan.catalogue, batch_rows=rows):
        batches.append((plain.feed(columns), fast.feed(columns)))
        assert fast.dump() == plain.dump()
    until = None if case.until is None else microseconds(case.until)
    batches.append((plain.finish(until), fast.finish(until)))
    assert fast.dump() == plain.dump()
    for expected, found in batches:
        assert shown(list(found)) == shown(list(expected))
        assert rows_of(relation_table([found], layout)) == rows_of(table_of_objects(layout, list(expected)))
        seen["relations"] += len(expected)
        if isinstance(found, Relations):
            assert found.ids() == [each.id for each in expected]
            assert found.counts() == Counter(each.subscription for each in expected)
            seen["on kernels"] += len(found)
    if fast.lane is not None:
        seen["families"] += sum(len(family.members) > 1 for family in fast.lane.families)
        seen["levels"] += fast.lane.levels.needed
    return seen


def test_a_plan_on_kernels_delivers_what_it_delivers_event_by_event() -> None:
    total: Counter[str] = Counter()

    @settings(max_examples=max(150, settings.default.max_examples))
    @given(plan_cases(), st.integers(1, 7), st.integers(0, 12))
    def holds(case: Case, rows: int, change: int) -> None:
        seen = compared(case, compiled(case.rules), rows, change)
        for each, count in seen.items():
            event(f"{each}: {min(count, 5)}")
        total.update(seen)

    holds()
    assert min(total[each] for each in ("on kernels", "families", "levels")) > 20, total
