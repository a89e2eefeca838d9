"""LIKE, generated: patterns × texts, on every way it is evaluated, against the definition (testing/interpreter.py)."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from fairlead.language import compile_text
from fairlead.matching.compiled.running.vector import MANY, TypeRows, truth
from fairlead.matching.expressions.functions import like_pattern
from fairlead.model.events.types import Kind
from fairlead.model.expressions.expression import Condition, Field, Like
from fairlead.testing.interpreter import is_like

SIGNS = (
    "%",
    "_",
    "\\%",
    "\\_",
    "\\\\",
    "\\a",
    "a",
    "b",
    "ab",
    "aa",
    "\n",
    "\r",
    "\0",
    "é",
    "\u0301",
    "😀",
    ".",
    "*",
    "(",
    "[",
    "$",
)
LETTERS = ("%", "_", "\\", "a", "b", "ab", "aa", "\n", "\r", "\0", "é", "\u0301", "😀", ".", "*", "(", "[", "$", " ")
TYPE = compile_text("TYPE A (s STRING)").catalogue["A"]


def case(seed: int) -> None:
    """One pattern, on texts at random and texts made of the pattern itself, so that many match."""
    draw = random.Random(seed)
    pattern = "".join(draw.choices([*draw.sample(SIGNS, draw.randint(1, 6)), "%"], k=draw.randrange(12)))
    letters = draw.sample(LETTERS, draw.randint(1, 5))
    texts = ["".join(draw.choices(letters, k=draw.randrange(16))) for _ in range(6)]
    texts += [_instance(pattern, letters, draw) for _ in range(6)] + [""]
    texts += [_slip(each, letters, draw) for each in texts]
    wanted = [is_like(each, pattern) for each in texts]
    about = f"seed {seed}: LIKE {pattern!r}"
    compiled = like_pattern(pattern)
    for text, expected in zip(texts, wanted, strict=True):
        assert compiled.fullmatch(text) is expected, f"{about} of {text!r} is {expected}, event by event {not expected}"
    column = pa.array([*texts, None], pa.string())
    by_column = compiled.of_column(column)
    assert by_column is not None, f"{about} is not evaluated by columns"
    assert by_column.tolist() == [*wanted, False], f"{about} by columns of {column.to_pylist()!r}"
    for many in (1, MANY):  # the kernels' lane takes few rows by distinct values, many by columns
        repeated = pa.concat_arrays([column] * many).slice(1)
        rows = TypeRows(TYPE, pa.RecordBatch.from_arrays([repeated], ["s"]), None, lambda: np.zeros(0, dtype=np.int64))
        for negated in (False, True):
            found = truth(Condition(((Like(Field(0, "s", Kind.STRING), pattern, negated),),)), rows)
            expected_rows = (([each != negated for each in wanted] + [False]) * many)[1:]
            assert found.tolist() == expected_rows, f"{about}, negated: {negated}, {many} times {column.to_pylist()!r}"


def _instance(pattern: str, letters: list[str], draw: random.Random) -> str:
    """A text that matches."""
    made, rest = list[str](), iter(pattern)
    for sign in rest:
        if sign == "\\":
            made.append(next(rest, sign))
        elif sign == "%":
            made.extend(draw.choices(letters, k=draw.randrange(4)))
        else:
            made.append(draw.choice(letters)[:1] if sign == "_" else sign)
    return "".join(made)


def _slip(text: str, letters: list[str], draw: random.Random) -> str:
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice(("", draw.choice(letters))) + text[at + draw.randrange(2) :]
