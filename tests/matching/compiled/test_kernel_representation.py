"""Nodes of a kernel: their text is Python that means them, their contents are found, and machine code is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine import compile
from fairlead.errors import InvariantError
from fairlead.matching.compiled.codegen.loop import source_of
from fairlead.matching.compiled.machine_code.compiler import Compiled, kernel_of
from fairlead.matching.compiled.machine_code.lowering import Module
from fairlead.matching.compiled.machine_code.native import ArrayType
from fairlead.matching.compiled.planning.shape_builder import shape_of
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.contents import columns_read, replaced, same, size, slots_read, uses_of
from fairlead.matching.compiled.representation.formulas import (
    FLOAT,
    NONE,
    TRUTH,
    WHOLE,
    Array,
    ArrayElement,
    Between,
    Binary,
    Boolean,
    ChosenValue,
    Constant,
    Formula,
    Intrinsic,
    Length,
    NumberComparison,
    SlotColumn,
    SlotField,
    Unary,
    Variable,
    all_of,
    any_of,
    bit,
    call,
    choice,
    negated,
    variables,
)
from fairlead.matching.compiled.representation.statements import Program
from fairlead.matching.compiled.representation.text import function_text, readable_text, text_of
from tests.matching.compiled.kernel_text import parsed

pytestmark = pytest.mark.xdist_group("compiled kernels")
a, b, c = variables("a b c")
n, t = Array("n"), Array("t")

# Text


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ((a + b) * c, "(a + b) * c"),
        (a + b * c, "a + b * c"),
        (a - (b - c), "a - (b - c)"),
        (a - b - c, "a - b - c"),
        (2 * a, "2 * a"),
        (bit(a, 3) != 0, "a >> 3 & 1 != 0"),
        ((a == b) == c, "(a == b) == c"),
        (all_of(a < b, any_of(b < c, c < a)), "a < b and (b < c or c < a)"),
        (all_of(a < b, all_of(b < c, c < a)), "a < b and (b < c and c < a)"),
        (negated(all_of(a < b, b < c)), "not (a < b and b < c)"),
        (negated(a) == b, "(not a) == b"),
        (choice(1, choice(a, b < c, 2) > 0, choice(a, a < b, -1)), "1 if (a if b < c else 2) > 0 else a if a < b else -1"),
        (a - -1, "a - -1"),
        (-(a + b), "-(a + b)"),
        (-Constant(5), "-5"),
        (~a & b, "~a & b"),
        (t[a, n[b]], "t[a, n[b]]"),
        (Between(Constant(0), ("<=", "<"), (a, b)), "0 <= a < b"),
        (call("f", a, n, n.length), "f(a, n, len(n))"),
        (Length(t, 1), "t.shape[1]"),
        (Constant(float("inf")) - Constant(1.5), "1e999 - 1.5"),
        (all_of(), "True"),
        (any_of(), "False"),
    ],
)
def test_parentheses_stand_where_python_needs_them(node: Formula, text: str) -> None:
    assert text_of(node) == text


def counting() -> Code:
    """Adds up what is positive in `n`, at most 100, and marks it in `t`."""
    i, sum_of = variables("i total")
    code = Code()
    code.assign(sum_of, 0)
    with code.count(i, n.length):
        with code.when(n[i] == 0):
            code.proceed()
        with code.or_when(n[i] < 0):
            code.assign(t[i, Constant(1, "SIGN")], -1)
        with code.otherwise():
            code.increase(sum_of, call("half", n[i]))
            code.change(t[i, 0], "|", 4)
        with code.loop(sum_of > 100):
            code.decrease(sum_of)
    code.together((a, sum_of), (b, n.length))
    code.give_results(a, b)
    return code


def program() -> Program:
    half = Code()
    half.give(a // 2)
    return Program([counting().function("kernel", n, t), half.function("half", a, rare=True)])


TEXT = """def kernel(n, t):
    total = 0
    for i in range(len(n)):
        if n[i] == 0:
            continue
        elif n[i] < 0:
            t[i, 1] = -1
        else:
            total += half(n[i])
            t[i, 0] |= 4
        while total > 100:
            total -= 1
    a, b = total, len(n)
    return a, b

def half(a):  # not inlined
    return a // 2"""


def test_blocks_are_indented_and_names_are_shown_to_people() -> None:
    assert program().text == TEXT
    assert readable_text(program()) == TEXT.replace("t[i, 1]", "t[i, SIGN]")
    assert function_text(Code().function("empty")) == "def empty():\n    pass"


def test_programs_of_one_text_are_one_program() -> None:
    assert program() == program()
    assert len({program(), program()}) == 1
    assert program() != Program(program().functions[:1])
    assert program() != parsed(TEXT)  # `half` may be inlined there


def expressions() -> st.SearchStrategy[Formula]:
    leaf = st.sampled_from([a, b, c, n[a], t[b, 1], n.length, Constant(7), Constant(0.5), Constant(True)])

    def larger(less: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
        binary, sign = (
            st.sampled_from(["+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "/"]),
            st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
        )
        return st.one_of(
            st.builds(Binary, binary, less, less),
            st.builds(Unary, st.sampled_from(("-", "~", "not")), less),
            st.builds(NumberComparison, less, sign, less),
            st.builds(lambda x, p, y, q, z: Between(x, (p, q), (y, z)), less, sign, less, sign, less),
            st.builds(Boolean, st.sampled_from(("and", "or")), st.lists(less, min_size=2, max_size=3).map(tuple)),
            st.builds(ChosenValue, less, less, less),
            st.builds(lambda x, y: Intrinsic("min", (x, y)), less, less),
            st.builds(lambda x: ArrayElement(n, (x,)), less),
        )

    return st.recursive(leaf, larger, max_leaves=12)


@given(expressions())
def test_text_means_the_node_that_it_is_of(node: Formula) -> None:
    text = f"def kernel(n, t, a, b, c):\n    return {text_of(node)}, 0"
    (found,) = parsed(text).functions
    assert same(found.body[0].values[0], untyped(node)), text_of(node)  # type: ignore[attr-defined]


def untyped(node: Any) -> Any:
    """With variables as text has them, which says no types; a negative number is one that is negated."""
    if isinstance(node, Variable):
        return Variable(node.name)
    if isinstance(node, tuple):
        return tuple(map(untyped, node))
    if isinstance(node, Formula) and not isinstance(node, Constant):
        return type(node)(*(untyped(getattr(node, name)) for name in node.__match_args__))  # type: ignore[attr-defined]
    return node


# Contents


def test_what_a_block_uses() -> None:
    uses = uses_of(counting().body)
    assert uses.names == {"a", "b", "n", "t", "i", "total"}
    assert uses.calls == {"half"}


def test_a_condition_is_placed_where_its_events_are() -> None:
    condition = all_of(SlotColumn(3, 0) < SlotColumn(1, 2), SlotField("REF", 1) != n[SlotField("REF", 0)])
    assert columns_read(condition) == {(3, 0), (1, 2)}
    assert slots_read(condition) == {0, 1, 2}
    assert size(condition) == 8
    placed = replaced(condition, lambda part: t[part.slot, 1] if isinstance(part, SlotField) else Variable(f"x{part.column}"))
    assert text_of(placed) == "x3 < x1 and t[1, 1] != n[t[0, 1]]"


def test_a_condition_of_the_kernel_is_not_one_of_the_generator() -> None:
    with pytest.raises(TypeError, match="generator"):
        bool(a == b)
    with pytest.raises(TypeError, match="generator"):
        assert a in [b]
    assert same(a + 1, Variable("a", WHOLE) + 1)
    assert not same(a + 1, a + True)
    assert not same(a + 1, a - 1)


def test_a_way_out_follows_a_condition() -> None:
    code = Code()
    code.assign(a, 1)
    with pytest.raises(InvariantError):
        code.otherwise()


# Machine code


@pytest.mark.parametrize("end", [lambda code: code.give(1), Code.leave, Code.proceed])
def test_nothing_follows_the_end_of_a_block(end: Callable[[Code], None]) -> None:
    """What generators write is all reached: they are refused otherwise, whatever their program."""
    code = Code()
    with code.loop():
        with code.when(a == b):
            assert not code.is_ended
            end(code)
            assert code.is_ended
            with pytest.raises(InvariantError, match="nothing follows the end of a block"):
                code.leave()
        assert not code.is_ended
        code.assign(a, b)


def test_both_ways_give_the_same() -> None:
    numbers = np.array([3, 0, -4, 90, 200])
    for run in (Compiled(program()), kernel_of(program(), jit=False)):
        table = np.zeros((5, 2), dtype=np.int64)
        assert tuple(map(int, run(numbers, table))) == (100, 5)
        assert table.tolist() == [[4, 0], [0, 0], [0, -1], [4, 0], [4, 0]]


def test_rare_functions_are_kept_out_of_the_loop() -> None:
    module = Module(program())
    made = module.kernel([ArrayType("int64", 1), ArrayType("int32", 2, 2)])
    assert (made.results, made.written) == (2, (1,))
    heads = [line for line in module.text().splitlines() if line.startswith("define")]
    assert [(line.split("@")[1].split(".")[0], line.split()[-2]) for line in heads] == [
        ("half", "noinline"),
        ("kernel", "inlinehint"),
    ]


@pytest.mark.parametrize(
    ("declared", "value", "problem"),
    [
        (WHOLE, Constant(1.5), "whole number, is a float"),
        (TRUTH, Constant(3), "truth value, is a whole number"),
        (FLOAT, NONE, "float"),
    ],
)
def test_a_variable_of_another_type_than_declared_is_refused(declared: str, value: Formula, problem: str) -> None:
    code = Code()
    code.assign(Variable("x", declared), value)
    code.give_results(0)
    with pytest.raises(InvariantError, match=f"X002 line 1: .*x, which is to be a {problem}"):
        Compiled(Program([code.function("kernel", n)]))(np.zeros(1))


def test_what_cannot_be_compiled_is_named_with_its_line() -> None:
    code = Code()
    code.assign(a, 1)
    code.assign(b, call("missing", a))
    code.give_results(0)
    with pytest.raises(InvariantError, match=r"X002 line 3: .*missing, which is no function"):
        Compiled(Program([code.function("kernel", n)]))(np.zeros(1))


# Kernels of rules


def test_a_kernel_has_the_functions_and_arguments_that_it_uses() -> None:
    plan = compile("TYPE A (x INT) TYPE B (x INT) SUBSCRIPTION S MATCH A a AND B b WHERE a.x < b.x")
    (subscription,) = plan.subscriptions
    source = source_of(shape_of(subscription, subscription.branches[0], plan.catalogue), False)
    called = uses_of(*(each.body for each in source.program.functions)).calls
    assert called <= {each.name for each in source.program.functions}
    assert {"chains", "waiting", "ranks", "plans"}.isdisjoint(source.arguments)
    assert {"queues", "nodes", "links", "trees", "counters", "least_keys"} <= set(source.arguments)
    assert "nodes[entry, KEY] = sort_key" in readable_text(source.program)
