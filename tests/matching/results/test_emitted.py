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
    try:
        compile_text(f"{emission.TYPES}\n{text}")
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
    "form", ["coalesce({}, {})", "{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} % {}", "{} < {}", "{} = {}"]
)
def test_every_operator_on_every_pair_of_numbers_at_its_edges(form: str) -> None:
    pairs = [form.format(f"a.{one}", f"a.{two}") for one, two in product(NUMBERS, repeat=2)]
    fields = [each for each in pairs if compiles(f"SUBSCRIPTION S MATCH A a EMIT X (f = {each})")]
    assert len(fields) >= 36
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
