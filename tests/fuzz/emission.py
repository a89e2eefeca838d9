"""EMIT of expressions of all kinds over values at the edges: event by event, on kernels and by the reference the same values,
the same JSON, the same table, and the same relations of subscriptions that read what is emitted."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from fairlead.engine import Engine
from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.matching.results.relation_batches import relation_table
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.layout import layout_of
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events

ATTRIBUTES = {
    "i": "INT",
    "b": "BIGINT",
    "d": "DOUBLE",
    "m": "DECIMAL(9,2)",
    "n": "DECIMAL(10,0)",
    "v": "DECIMAL(20,2)",
    "w": "DECIMAL(38,4)",
    "r": "DECIMAL(38,30)",
    "o": "DECIMAL(38,38)",
    "s": "STRING",
    "x": "BINARY",
    "f": "BOOLEAN",
    "t": "TIMESTAMP",
    "y": "DATE",
}
TYPES = "\n".join(f"TYPE {name} ({', '.join(f'{key} {kind}' for key, kind in ATTRIBUTES.items())}) TIME t" for name in "AB")


def _decimals(whole: int, scale: int) -> list[Any]:
    ends = [
        10 ** (whole + scale) - 1,
        10 ** (whole + scale - 1),
        5,
        1,
        99 * 10**scale,
        2**63,
        2**64,
        2**127,
        9223372036854775808,
    ]
    known = [each for each in ends if each < 10 ** (whole + scale)]
    return [None, *(Decimal(f"{sign}{each}e-{scale}") for each in (*known, 0) for sign in ("", "-"))]


EDGES: dict[str, list[Any]] = {
    "i": [None, 0, 1, -1, 2**31 - 1, -(2**31)],
    "b": [None, 0, 3, 2**53 + 1, 2**63 - 1, -(2**63)],
    "d": [None, 0.0, -0.0, 1.5, 5e-324, 1.7976931348623157e308, 1e22, 0.1, float("nan"), float("inf"), float("-inf")],
    "m": _decimals(7, 2),
    "n": _decimals(10, 0),
    "v": _decimals(18, 2),
    "w": _decimals(34, 4),
    "r": _decimals(8, 30),
    "o": _decimals(0, 38),
    "s": [
        None,
        "",
        "a",
        "B ",
        "😀é",
        "ß",
        "0",
        " -1.5e3 ",
        "10.1.2.3",
        "true",
        " 2024-02-29",
        "2023-02-29",
        "2024-02-29T23:59:59.999999Z",
    ],
    "x": [None, b"", b"\xff\x00"],
    "f": [None, True, False],
    "y": [None, date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)],
}
TIMES = [datetime(1, 1, 1), datetime(1970, 1, 1), datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(9999, 12, 31, 23, 59, 59)]  # noqa: DTZ001
LITERALS = ("0", "1", "-1", "2147483647", "9223372036854775807", "0.5", "1e300", "-0.0", "NULL")


def case(seed: int) -> int:
    draw = random.Random(seed)
    plan = _plan(draw)
    rows = [_row(name, draw) for name in "AB" * draw.choice((1, 3, 20))]
    return compare(plan, rows, f"seed {seed}: {plan.text}")


def compare(plan: Plan, rows: list[dict[str, Any]], about: str) -> int:
    """Raises AssertionError where two ways differ. Gives the number of relations that were compared."""
    (columns,) = read_events(rows, plan.catalogue)
    slow, fast = (Engine(plan, kernels_from=each).feed(columns) for each in (None, 0))
    expected = ReferenceMatcher(plan).run(columns.events(plan.catalogue))
    by_event, by_kernel, by_reference = (
        [json.dumps(each.to_json(), sort_keys=True) for each in found] for found in (slow, fast, expected)
    )
    for other, name in ((by_event, "event by event"), (by_kernel, "kernels")):
        for one, two in zip(by_reference, other, strict=False):
            assert one == two, f"{about}\nreference      {one}\n{name:14} {two}"
        assert len(by_reference) == len(other), f"{about}: {len(by_reference)} relations, {name} {len(other)}"
    for subscription in (None, *(each.name for each in plan.subscriptions)):
        layout = layout_of(plan, subscription)
        chosen = [[each for each in found if subscription in (None, each.subscription)] for found in (slow, expected)]
        kernels = fast if subscription is None else fast.only(subscription)
        tables = [relation_table([found], layout) for found in (*chosen, kernels)]
        shown = [[str(row) for row in table.to_pylist()] for table in tables]
        assert shown[0] == shown[1], f"{about}\ntables of {subscription}: event by event and reference"
        assert shown[2] == shown[1], f"{about}\ntables of {subscription}: kernels and reference"
    return len(by_reference)


def _row(name: str, draw: random.Random) -> dict[str, Any]:
    row = {key: draw.choice(values) for key, values in EDGES.items()}
    return {"type": name, **row, "t": draw.choice(TIMES).replace(tzinfo=UTC)}


def _plan(draw: random.Random) -> Plan:
    """Rules that compile: what does not fit by its types is drawn again."""
    while True:
        fields = ", ".join(f"f{at} = {_expression(draw, draw.randint(1, 3))}" for at in range(draw.randint(1, 3)))
        pattern = draw.choice(("A a AND B b", "A a AND B b", "A a[2] AND B b"))
        per = draw.choice(("", "", "DISPOSAL INFIX"))
        per = f"WHERE {_condition(draw, draw.randint(1, 3))} {per}" if "[" not in pattern and draw.random() < 0.4 else per
        again = draw.choice(
            ("", f"WHERE x.f0 {draw.choice(('<', '=', '>=', '!='))} {draw.choice(LITERALS[:-1])}", "WHERE x.f0 IS NOT NULL")
        )
        more = draw.choice(("x.f0", "coalesce(x.f0, x.f0)", "-x.f0", "x.f0 * 2", "abs(x.f0)"))
        text = (
            f"{TYPES}\nSUBSCRIPTION S MATCH {pattern} {per} EMIT X ({fields})\n"
            f"SUBSCRIPTION T MATCH X x {again} EMIT Y (g = {more}, h = x.f0)"
        )
        try:
            return compile_text(text)
        except LanguageError:
            continue


def _expression(draw: random.Random, depth: int) -> str:
    if depth == 0:
        return draw.choice([f"{draw.choice('ab')}.{draw.choice(list(ATTRIBUTES))}"] * 4 + [draw.choice(LITERALS)])
    one, two, three = (_expression(draw, depth - 1) for _ in range(3))
    numbers = [f"{draw.choice('ab')}.{draw.choice('ibdmnvwro')}" for _ in range(3)]
    return draw.choice(
        (
            one,
            f"coalesce({one}, {two})",
            f"coalesce({numbers[0]}, {numbers[1]})",
            f"coalesce({numbers[0]}, {numbers[1]}, {numbers[2]})",
            f"({numbers[0]} {draw.choice('+-*/%')} {numbers[1]})",
            f"({one} {draw.choice('+-*/%')} {two})",
            f"-{numbers[0]}",
            f"abs({numbers[0]})",
            f"{draw.choice(('floor', 'ceil', 'abs'))}({one})",
            f"{draw.choice(('min', 'max', 'sum', 'avg', 'count'))}({draw.choice('ab')}.{draw.choice('ibdmvwro')})",
            f"{draw.choice(('min', 'max'))}({draw.choice('ab')}.{draw.choice('sty')})",
            f"({one} {draw.choice(('<', '=', '!=', '>='))} {two})",
            f"({one} {draw.choice(('IS NULL', 'IS NOT NULL'))})",
            f"({one} IN ({two}, {three}))",
            f"(a.s LIKE '{draw.choice(('%', 'a%', '_', '%é'))}')",
            f"{draw.choice(('lower', 'upper', 'trim', 'length'))}({one})",
            f"substring(a.s, {draw.choice(('1', '-1', '0', 'b.i'))})",
            f"{draw.choice(('year', 'month', 'hour', 'second', 'dayofweek'))}({draw.choice('ab')}.{draw.choice('ty')})",
            "(a.t - b.t)",
            "(a.y - b.y)",
            "cast(coalesce(a.y, b.y) AS TIMESTAMP)",
            "(a.t + (a.t - b.t))",
            "position(a)",
            "time(b)",
            f"isnan({one})",
            f"(CASE WHEN {_condition(draw, depth)} THEN {one} WHEN {_condition(draw, 1)} THEN {two} ELSE {three} END)",
            f"(CASE WHEN {_condition(draw, depth)} THEN {numbers[0]} END)",
            f"({_condition(draw, depth)})",
            f"cast({one} AS {draw.choice(CASTS)})",
            f"cast({draw.choice('ab')}.{draw.choice(list(ATTRIBUTES))} AS {draw.choice(CASTS)})",
            f"round({numbers[0]}, {draw.choice(('0', '1', '-1', '2', '40', 'b.i', '-400'))})",
            f"round({one})",
            f"(a.s || {draw.choice(('b.s', 'a.s', one))})",
            f"concat(a.s, {one}, b.s)",
            f"replace(a.s, {draw.choice(('b.s', one))}, {draw.choice(('b.s', two))})",
            f"instr(a.s, {draw.choice(('b.s', one))})",
            f"split_part(a.s, {draw.choice(('b.s', one))}, {draw.choice(('1', '-1', '0', 'b.i'))})",
            f"({draw.choice(('a.s', one))} RLIKE '{draw.choice(('a', '^.$', '[é-ü]|B', '(a|ß)+', ''))}')",
            f"cidr_match({draw.choice(('a.s', one))}, '10.0.0.0/8', '::/0')",
        )
    )


CASTS = ("INT", "BIGINT", "DOUBLE", "DECIMAL(9,2)", "DECIMAL(38,30)", "STRING", "BOOLEAN", "TIMESTAMP", "DATE")


def _condition(draw: random.Random, depth: int) -> str:
    """Joined by AND, OR and NOT."""
    if depth == 0:
        member = draw.choice("ab")
        return draw.choice(
            (
                f"{member}.f",
                f"{member}.i > {draw.choice(LITERALS[:4])}",
                f"{member}.d = b.d",
                f"{member}.s = 'a'",
                f"{member}.f IS {draw.choice(('', 'NOT '))}{draw.choice(('TRUE', 'FALSE', 'NULL'))}",
                f"a.s {draw.choice(('', 'NOT '))}RLIKE '{draw.choice(('a', '^.?$'))}'",
                f"{member}.b {draw.choice(('', 'NOT '))}BETWEEN -1 AND b.i",
            )
        )
    one, two = _condition(draw, depth - 1), _condition(draw, depth - 1)
    return draw.choice((f"({one} AND {two})", f"({one} OR {two})", f"NOT ({one})", f"({one} OR {two}) IS NOT TRUE"))
