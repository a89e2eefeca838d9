"""Conditions across events, of every kind of value, at the edges of their ranges: kernels against the incremental matcher."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fairlead.errors import LanguageError
from fairlead.language import compile_text
from tests.matching.compiled.test_kernel import compared, interpreted
from tests.matching.generators.generated import START

__all__ = ["interpreted"]

ATTRIBUTES = (
    "(i INT, b BIGINT, d DOUBLE, m DECIMAL(9,2), n DECIMAL(12,4), s STRING, x BINARY, f BOOLEAN, y DATE, at TIMESTAMP) TIME at"
)
TYPES = f"TYPE P {ATTRIBUTES}\nTYPE Q {ATTRIBUTES}\n"
MEMBERS = ("p[1]", "p[2]", "q")
LARGE = 2**63 - 1
VALUES: dict[str, tuple[Any, ...]] = {
    "i": (0, 1, 1, 2, -3, 2**31 - 1, -(2**31), None),
    "b": (0, 1, 2, -2, -1, 2**53 + 1, 2**53, 2**32, -(2**32), LARGE, -LARGE - 1, None),
    "d": (0.0, -0.0, 1.0, 2.0, 1.5, -2.5, float(2**53), 9.3e18, float("inf"), float("-inf"), float("nan"), None),
    "m": (Decimal("0.00"), Decimal("1.00"), Decimal("1.50"), Decimal("-2.00"), Decimal("9999999.99"), None),
    "n": (Decimal("0.0000"), Decimal("1.0000"), Decimal("1.5000"), Decimal("-2.0001"), None),
    "s": ("", "a", "b", "B", "ä", None),
    "x": (b"", b"a", b"b", b"\xff", None),
    "f": (True, False, None),
    "y": (date(2026, 1, 1), date(2026, 1, 2), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31), None),
}
SIGNS = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
WHOLE = st.sampled_from(("0", "1", "2", "-1", "4294967296", "9223372036854775807"))


@st.composite
def numbers(draw: st.DrawFn, kinds: str, depth: int = 2) -> str:
    """A numeric expression: `kinds` are the attributes to choose from."""
    member, attribute = draw(st.sampled_from(MEMBERS)), draw(st.sampled_from(kinds))
    leaves = [f"{member}.{attribute}", f"{member}.{attribute}"]
    leaves += [f"{draw(st.sampled_from(('sum', 'avg', 'min', 'max', 'count')))}(p.{attribute})"]
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from([*leaves, draw(WHOLE)]))
    left = draw(numbers(kinds, depth - 1))
    right = draw(numbers(kinds, depth - 1))
    shapes = [f"({left} {sign} {right})" for sign in "+-*/%"]
    return draw(st.sampled_from([*shapes, f"(-{left})", f"abs({left})", f"coalesce({member}.{attribute}, q.{attribute})"]))


@st.composite
def decimals(draw: st.DrawFn) -> str:
    """A DECIMAL expression across events."""
    one, other = draw(st.permutations(MEMBERS))[:2]
    left, right = f"{one}.{draw(st.sampled_from('mn'))}", f"{other}.{draw(st.sampled_from('mmi'))}"
    operation = f"({left} {draw(st.sampled_from('+-%'))} {right})"
    shapes = [operation, operation, f"abs({operation})", f"(-{operation})", f"({one}.m * {other}.m)", f"({left} * 1.5)"]
    shapes += [f"coalesce({one}.m, {other}.m)", f"({operation} + 0.25)", f"coalesce({left}, {right}, 1)"]
    shapes += [f"(CASE WHEN {one}.f THEN {operation} WHEN {other}.f THEN {right} ELSE {left} END)"]
    return draw(st.sampled_from([*shapes, *(f"{name}(p.{a})" for name in ("sum", "min", "max") for a in "mn")]))


@st.composite
def atoms(draw: st.DrawFn) -> str:
    sign, member, other = draw(SIGNS), *draw(st.permutations(MEMBERS))[:2]
    kinds = draw(st.sampled_from(("i", "b", "d", "ib", "bd", "ibd")))
    left, right = draw(numbers(kinds)), draw(numbers(kinds))
    mixed = draw(st.sampled_from("ibdmn")), draw(st.sampled_from("ibdmn"))
    choices = [
        *[f"{left} {sign} {right}"] * 4,
        *[f"{member}.{mixed[0]} {sign} {other}.{mixed[1]}"] * 2,
        *[f"{member}.b {draw(st.sampled_from('+-*%'))} {other}.b {sign} {other}.i"] * 2,
        f"({member}.b {draw(st.sampled_from('+-*%'))} {other}.b) IS NULL",
        f"{left} IS NULL",
        f"{left} IS NOT NULL",
        f"{left} IN ({right}, {member}.b, 1)",
        f"{left} NOT IN ({right}, 2)",
        f"{left} BETWEEN {right} AND {other}.i",
        f"isnan({member}.d - {other}.d)",
        f"NOT isnan({member}.d * {other}.d)",
        *[f"{member}.s {sign} {other}.s"] * 2,
        f"lower({member}.s) {sign} coalesce({other}.s, {member}.s)",
        f"lower({member}.s) = coalesce({other}.s, {member}.s)",
        f"{member}.s IN ({other}.s, 'a')",
        f"{member}.s NOT IN ({other}.s, 'b')",
        f"{member}.f {draw(st.sampled_from(('=', '!=')))} {other}.f",
        f"{member}.at - {other}.at {sign} {draw(st.integers(0, 2))} SECONDS",
        f"{member}.at + {draw(st.integers(0, 2))} SECONDS {sign} {other}.at",
        f"{member}.m {sign} {other}.n",
        *[f"{draw(decimals())} {sign} {draw(decimals())}"] * 3,
        f"{draw(decimals())} {sign} {other}.d",
        f"({draw(decimals())}) IS NULL",
        f"avg(p.m) {sign} {other}.d",
        f"{member}.m / {other}.n {sign} 1.5",
        f"{draw(st.sampled_from(('floor', 'ceil')))}({member}.d * {other}.d) {sign} {member}.b",
        f"{draw(st.sampled_from(('floor', 'ceil')))}({member}.m - {other}.n) {sign} {member}.i",
        f"{draw(st.sampled_from(('min', 'max')))}(p.s) {sign} q.s",
        f"coalesce({member}.s, 'a') {sign} {other}.s",
        f"{member}.x {sign} {other}.x",
        *[f"{member}.y {sign} {other}.y", f"{member}.y - {other}.y {sign} {draw(st.integers(0, 2))} DAYS"] * 2,
        f"cast(coalesce({member}.y, {other}.y) AS TIMESTAMP) {sign} {other}.at",
        f"cast(coalesce({member}.at, {other}.at) AS DATE) {sign} {other}.y",
        f"{draw(st.sampled_from(('min', 'max')))}(p.y) {sign} q.y",
        f"dayofweek(coalesce({member}.y, {other}.y)) {sign} {other}.i",
        f"{member}.y IN ({other}.y, DATE '2026-01-02')",
    ]
    return draw(st.sampled_from(choices))


@st.composite
def conditions(draw: st.DrawFn) -> str:
    one = draw(atoms())
    return draw(st.sampled_from((one, one, f"({one} OR {draw(atoms())})", f"NOT ({one} AND {draw(atoms())})")))


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    made, at = [], START
    for name in draw(st.lists(st.sampled_from("PPQ"), min_size=4, max_size=12)):
        at += timedelta(seconds=draw(st.integers(0, 2)))
        made.append({"type": name, "at": at} | {each: draw(st.sampled_from(values)) for each, values in VALUES.items()})
    return made


def rules(condition: str, pattern: str = "P p[2] AND Q q") -> str:
    return f"{TYPES}\nSUBSCRIPTION S MATCH {pattern} WHERE {condition} DISPOSAL INFIX"


def is_sensible(condition: str) -> bool:
    """The language takes it: not, for instance, a comparison of something with itself."""
    try:
        compile_text(rules(condition))
    except LanguageError:
        return False
    return True


@pytest.mark.slow
def test_conditions_across_events_equal_the_incremental_matcher_and_most_have_a_kernel() -> None:
    total: Counter[str] = Counter()

    @settings(max_examples=max(300, settings.default.max_examples))
    @given(conditions().filter(is_sensible), rows(), st.integers(1, 13))
    def holds(condition: str, stream: list[dict[str, Any]], size: int) -> None:
        found = compared(rules(condition), stream, size)
        for each in found:
            event(each)
        total.update(found)

    holds()
    refused = sum(count for name, count in total.items() if name.startswith("refused"))
    assert total["on a kernel"] > 4 * refused, total
    assert total["matches"] > total["on a kernel"] // 4, total


PAIRS = [
    *[f"p.{one} {sign} q.{two}" for one, two in ("bd", "db", "dd", "md", "mn", "ss", "yy") for sign in ("=", "!=", "<", ">=")],
    *[f"p.b {operator} q.b {test}" for operator in "+-*%" for test in ("< q.i", "IS NULL")],
    *["p.d % q.d < 1.0", "p.d - q.d != 1.0", "p.d NOT IN (q.d, 1.0)", "p.d IN (q.d, 1.0)", "(p.d + q.d) IS NOT NULL"],
    *[
        "coalesce(p.s, 'a') = q.s",
        "lower(p.s) = q.s",
        "p.x = q.x",
        "p.x < q.x",
        "floor(p.d + q.d) = q.b",
        "p.y - q.y <= 1 DAY",
        "cast(coalesce(p.y, q.y) AS TIMESTAMP) = cast(q.y AS TIMESTAMP)",
        "max(p.y) >= q.y",
        "ceil(p.m - q.n) < q.i",
    ],
    *[
        f"{form.format(f'p.{one}', f'q.{two}')} {test}"
        for one, two in product("ibdmn", repeat=2)
        for form, test in (
            ("coalesce({}, {})", "IS NOT NULL"),
            ("coalesce({}, 1, {})", "< q.m"),
            ("CASE WHEN p.f THEN {} ELSE {} END", "<= q.n"),
            ("CASE WHEN q.f THEN {} WHEN p.f THEN {} END", "!= q.d"),
        )
    ],
    *["p.m + q.m < 3.5", "p.m * q.m > q.n", "p.m % q.n = 0.5", "p.m / q.m < 1.5", "p.m - q.m > q.d", "(p.m + q.i) IS NULL"],
]


@pytest.mark.sampled
@pytest.mark.parametrize("condition", PAIRS)
def test_every_pair_of_values_is_compared_alike(condition: str) -> None:
    """Each pair meets at a time of its own."""
    left, right = (re.findall(rf"{alias}\.(\w)", condition)[0] for alias in "pq")
    stream: list[dict[str, Any]] = []
    for number, (one, two) in enumerate(product(VALUES[left], VALUES[right])):
        for name, attribute, value in (("P", left, one), ("Q", right, two)):
            row = {each: values[1] for each, values in VALUES.items()} | {attribute: value}
            stream.append({"type": name, "at": START + timedelta(seconds=number)} | row)
    seen = compared(rules(f"p.at = q.at AND {condition}", "P p AND Q q"), stream, 100)
    assert seen["on a kernel"] == 1
    assert seen["matches"] > 0
