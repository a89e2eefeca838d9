"""What is emitted is the same event by event, on kernels and by the reference: values, JSON, tables and what reads them."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from fairlead.errors import LanguageError
from fairlead.language import compile_text
from tests.fuzz import emission

NUMBERS = "ibdmnvwro"


@pytest.fixture(autouse=True, scope="module")
def interpreted() -> Any:
    """The generated source runs as plain Python here: compiling hundreds of kernels would take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRLEAD_JIT", "0")
        yield


def compiles(text: str) -> bool:
    """With the types, if it has not its own."""
    try:
        compile_text(text if text.startswith("TYPE") else f"{emission.TYPES}\n{text}")
    except LanguageError:  # what no data type is common to, or a comparison of a value with itself
        return False
    return True


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(4))
def test_generated_expressions_of_all_kinds(part: int) -> None:
    compared = [emission.case(seed) for seed in range(part * 15, part * 15 + 15)]
    assert sum(map(bool, compared)) >= 10


@pytest.mark.sampled
@pytest.mark.parametrize(
    "form",
    [
        "coalesce({}, {})",
        "coalesce({}, 7, {})",
        "CASE WHEN a.f THEN {} ELSE {} END",
        "CASE WHEN a.f THEN {} WHEN NOT a.f THEN 7 WHEN a.s IS NULL THEN {} END",
        *(f"{{}} {sign} {{}}" for sign in ("+", "-", "*", "/", "%", "<", "=")),
    ],
)
def test_every_operator_on_every_pair_of_numbers_at_its_edges(form: str) -> None:
    pairs = [form.format(f"a.{one}", f"a.{two}") for one, two in product(NUMBERS, repeat=2)]
    fields = [each for each in pairs if compiles(f"SUBSCRIPTION S MATCH A a EMIT X (f = {each})")]
    assert len(fields) == len(pairs) - (len(NUMBERS) if form in ("{} < {}", "{} = {}") else 0)  # not with itself
    emitted = ", ".join(f"f{at} = {each}" for at, each in enumerate(fields))
    text = f"{emission.TYPES}\nSUBSCRIPTION S MATCH A a EMIT X ({emitted}) SUBSCRIPTION T MATCH X x WHERE x.f0 IS NULL"
    draw = random.Random(form)
    rows = [{"type": "A", **{key: draw.choice(each) for key, each in emission.EDGES.items()}, "t": 0} for _ in range(40)]
    rows += [{**rows[0], **dict.fromkeys(NUMBERS), key: value} for key in NUMBERS for value in emission.EDGES[key]]
    assert emission.compare(compile_text(text), rows, form) >= len(rows)


@pytest.mark.sampled
@pytest.mark.parametrize("scales", list(product((0, 2, 4, 30, 38), repeat=2)))
def test_a_number_of_another_scale_is_exact_or_null(scales: tuple[int, int]) -> None:
    """coalesce of unlike scales: at the larger of them, NULL beyond 38 digits, and zero without a sign."""
    one, two = scales
    text = (
        f"TYPE A (p DECIMAL(38,{one}), q DECIMAL(38,{two})) SUBSCRIPTION S MATCH A a EMIT X (v = coalesce(a.p, a.q), w = -a.p)"
    )
    numbers = [f"{sign}{whole}e-{one}" for whole in (0, 5, 10**19, 2**64, 2**127 % 10**38, 10**38 - 1) for sign in ("", "-")]
    plan = compile_text(text)
    for each in numbers:  # one by one: a column is evaluated in another way as soon as Arrow refuses one of its values
        assert emission.compare(plan, [{"type": "A", "p": each, "q": None}], f"{text} of {each}") == 1


def test_numbers_widen_in_this_order() -> None:
    """In arithmetic, in CASE and coalesce, among the branches of an EMIT, and to a declared type."""
    order = {"i": "INT", "b": "BIGINT", "m": "DECIMAL", "d": "DOUBLE"}
    for one, two in product(order, repeat=2):
        wider = max(order[one], order[two], key=list(order.values()).index)
        for value in (f"coalesce(a.{one}, a.{two})", f"CASE WHEN a.f THEN a.{one} ELSE a.{two} END"):
            made = compile_text(f"{emission.TYPES} SUBSCRIPTION S MATCH A a EMIT X (v = {value})")
            assert str(made.catalogue["X"].attributes[0].type).partition("(")[0] == wider, value
        branches = f"{emission.TYPES} SUBSCRIPTION S MATCH A a OR B b EMIT X (v = coalesce(a.{one}, b.{two}))"
        assert str(compile_text(branches).catalogue["X"].attributes[0].type).partition("(")[0] == wider
        declared = f"TYPE X (v {emission.ATTRIBUTES[two]}) {emission.TYPES} SUBSCRIPTION S MATCH A a EMIT X (v = a.{one})"
        assert compiles(declared) == (wider == order[two]), declared


@pytest.mark.sampled
@pytest.mark.parametrize("declared", ["DECIMAL(5,0)", "DECIMAL(5,4)", "DECIMAL(18,4)", "DECIMAL(19,4)", "DECIMAL(38,38)"])
@pytest.mark.parametrize("key", "ibmnvwro")
def test_a_number_that_a_declared_type_does_not_hold_is_null(declared: str, key: str) -> None:
    """One by one, and read by another subscription that compares it."""
    text = (
        f"TYPE X (v {declared}) {emission.TYPES} SUBSCRIPTION S MATCH A a EMIT X (v = a.{key}) "
        "SUBSCRIPTION T MATCH X x AND A a WHERE x.v > a.m OR x.v IS NULL DISPOSAL INFIX"
    )
    if not compiles(text):  # more decimal places than the type has
        return
    plan = compile_text(text)
    rows = [{"type": "A", **dict.fromkeys(emission.EDGES), "m": "1.25", key: each, "t": 0} for each in emission.EDGES[key]]
    for row in rows:
        assert emission.compare(plan, [row], f"{text} of {row[key]}") >= 1
    assert emission.compare(plan, rows, text) >= len(rows)
