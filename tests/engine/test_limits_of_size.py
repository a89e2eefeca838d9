"""Sizes that rules may have: long chains of EMIT and long lists of IN, event by event."""

import fairlead
from fairlead.engine import Engine
from fairlead.transport.admission.records import read_records


def test_a_chain_is_longer_than_the_stack_of_python() -> None:
    links = [f"SUBSCRIPTION E{at} MATCH G{at - 1} g EMIT G{at} (x = g.x)" for at in range(1, 1200)]
    plan = fairlead.compile("TYPE A (x INT) SUBSCRIPTION E0 MATCH A a EMIT G0 (x = a.x) " + "\n".join(links))
    engine = Engine(plan, kernels_from=None)
    found = [each for columns in read_records([{"type": "A", "x": 1}], plan.catalogue) for each in engine.feed(columns)]
    assert [each.subscription for each in found] == [f"E{at}" for at in range(1200)]


def test_in_holds_for_numbers_of_every_kind_and_neither_way_for_null_and_nan() -> None:
    text = "TYPE A (i INT, d DOUBLE, s STRING) SUBSCRIPTION S MATCH A a WHERE a.{} IN ({})"
    rows = [{"type": "A", "i": i, "d": d, "s": s} for i, d, s in ((1, -0.0, "a"), (None, float("nan"), None), (3, 2.5, "b"))]
    for attribute, options, inside in (("i", "1, 3.0", [0, 2]), ("d", "0, 2.5", [0, 2]), ("s", "'a'", [0])):
        for negated in (False, True):
            plan = fairlead.compile(text.format(attribute, options).replace(" IN ", " NOT IN " if negated else " IN "))
            wanted = [at for at in (0, 2) if (at in inside) is not negated]
            for slow in (True, False):
                assert [each.positions for each in fairlead.match(plan, rows, event_by_event=slow)] == [(at,) for at in wanted]
