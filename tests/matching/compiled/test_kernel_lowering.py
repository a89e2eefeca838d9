"""A kernel's source as machine code means what it means as plain Python over NumPy's numbers, overflow included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.errors import InvariantError
from fairlead.matching.compiled.machine_code.compiler import Compiled, kernel_of
from tests.matching.compiled.kernel_text import parsed

pytestmark = pytest.mark.xdist_group("compiled kernels")
WHOLE = [0, 1, -1, 2, -3, 7, 63, 64, -64, 2**31, -(2**31), 2**32 + 5, 2**53 + 1, 2**62, 2**63 - 1, -(2**63) + 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 0.1, 1e-310, float(2**53), 9.3e18, -(2.0**63), 1.7e308, math.inf, -math.inf, math.nan]


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("FAIRLEAD_CACHE", str(tmp_path_factory.mktemp("kernels")))
        yield


def agree(source: str, *arguments: Any) -> tuple[int, ...]:
    """Runs both ways on copies; results and what was written must be equal."""
    given = [[each.copy() if isinstance(each, np.ndarray) else each for each in arguments] for _ in range(2)]
    found = Compiled(parsed(source))(*given[0])
    assert found == tuple(int(each) for each in kernel_of(parsed(source), jit=False)(*given[1])), source
    for made, expected in zip(*given, strict=True):
        if isinstance(made, np.ndarray):
            assert same(made, expected), f"{made} {expected}\n{source}"
    return found


def same(made: np.ndarray, expected: np.ndarray) -> bool:
    """Bit by bit, but NaN is NaN."""
    if made.dtype != np.float64:
        return bool((made == expected).all())
    return bool((np.isnan(made) == np.isnan(expected)).all()) and bool(
        (made.view(np.int64) == expected.view(np.int64))[~np.isnan(made)].all()
    )


def over(lines: list[str], before: str = "") -> str:
    """Each line once for every pair of rows: `a` and `b` are whole numbers, `x` and `y` floats."""
    return "\n".join(
        [
            "def kernel(whole, floats, out, rest):",
            "    n = 0",
            "    for i in range(len(whole)):",
            "        for j in range(len(whole)):",
            "            a, b = whole[i], whole[j]",
            "            x, y = floats[i], floats[j]",
            *(f"            {line}" for line in lines),
            "            n += 1",
            "    return n, 0",
            before,
        ]
    )


def everywhere(lines: list[str], before: str = "") -> None:
    size = min(len(WHOLE), len(FLOATS))
    for whole, floats in ((WHOLE[:size], FLOATS[:size]), (WHOLE[-size:], FLOATS[:size][::-1])):
        out, rest = np.zeros((size * size, 16), dtype=np.int64), np.zeros((size * size, 16))
        agree(over(lines, before), np.array(whole), np.array(floats), out, rest)


def test_operators_of_whole_numbers_wrap_around() -> None:
    everywhere([f"out[n, {at}] = a {sign} b" for at, sign in enumerate(("+", "-", "*", "&", "|", "^"))])
    everywhere(["out[n, 0] = -a", "out[n, 1] = ~a", "out[n, 2] = abs(a)", "out[n, 3] = +b"])


def test_divisions_round_down_and_are_0_for_0() -> None:
    everywhere(["out[n, 0] = a // b", "out[n, 1] = a % b"])
    for constant in (1, 2, 3, 7, 8, -1, -2, -3, 2**40, 10):
        everywhere([f"out[n, 0] = a // {constant}", f"out[n, 1] = a % {constant}"])


def test_shifts_of_any_width() -> None:
    everywhere(["out[n, 0] = a >> b", "out[n, 1] = a << b", "out[n, 2] = a >> 3", "out[n, 3] = a << 21", "out[n, 4] = a >> 63"])


def test_operators_of_floats_are_not_fused() -> None:
    everywhere([f"rest[n, {at}] = x {sign} y" for at, sign in enumerate(("+", "-", "*", "/"))])
    everywhere(
        ["rest[n, 0] = x * y + x", "rest[n, 1] = x - y * y", "rest[n, 2] = -x", "rest[n, 3] = abs(x)", "rest[n, 4] = a / b"]
    )
    everywhere(["rest[n, 0] = np.fmod(x, y)", "rest[n, 1] = x + a", "rest[n, 2] = float(a) * x", "rest[n, 3] = float(b)"])
    everywhere(
        ["rest[n, 0] = 1e999", "rest[n, 1] = -1e999 + x", "rest[n, 2] = 1e999 - 1e999", "rest[n, 3] = 9223372036854775808.0"]
    )
    third = np.array([1 / 3, 3.0, -1.0])
    source = "def kernel(f, o):\n    o[0] = f[0] * f[1] + f[2]\n    return len(o), 0"
    agree(source, third, np.ones(1))


SIGNS = ("==", "!=", "<", "<=", ">", ">=")


def test_comparisons() -> None:
    everywhere([f"out[n, {at}] = a {sign} b" for at, sign in enumerate(SIGNS)])
    everywhere([f"out[n, {at}] = x {sign} y" for at, sign in enumerate(SIGNS)])
    everywhere([f"out[n, {at}] = a {sign} y" for at, sign in enumerate(SIGNS)])
    everywhere([f"out[n, {at}] = (a < 0) {sign} (b < 0)" for at, sign in enumerate(SIGNS)])
    everywhere(["out[n, 0] = 0 <= a <= b", "out[n, 1] = x < y < 3.0 <= x + y", "out[n, 2] = 1 if a < b < 7 < a + b else 2"])


def test_conditions_and_their_values() -> None:
    tests = ["a", "x", "not a", "not x", "a & 1", "a < b and x < y", "a < b or x < y", "not (a and b or x)", "a and x", "True"]
    everywhere([f"out[n, {at}] = 1 if {test} else 2" for at, test in enumerate(tests)])
    everywhere(["out[n, 0] = a and b", "out[n, 1] = a or b", "out[n, 2] = (a < b) and (b < 7)", "out[n, 3] = a or x < y or b"])
    everywhere(
        ["rest[n, 0] = a and x", "rest[n, 1] = x or y", "out[n, 0] = (a < b) ^ (x < y)", "out[n, 1] = (a < b) & (x < y)"]
    )
    everywhere(["rest[n, 0] = a if b > 0 else x", "rest[n, 1] = x if a < b else 1 if b < 3 else True"])


def test_extremes_keep_the_first_beside_nan() -> None:
    everywhere(["out[n, 0] = min(a, b)", "out[n, 1] = max(a, b)", "out[n, 2] = min(a, 3, b)", "out[n, 3] = max(b, 3)"])
    everywhere(["rest[n, 0] = min(x, y)", "rest[n, 1] = max(x, y)", "rest[n, 2] = max(0.0, x)"])


def test_bits_of_floats_and_whole_numbers_of_floats() -> None:
    everywhere(
        ["rest[n, 0] = as_float(a)", "out[n, 0] = as_bits(x) if x == x else 0", "out[n, 1] = as_bits(-x) if x == x else 0"]
    )
    everywhere(
        ["out[n, 0] = int(x) if -9.3e18 < x - 1.0 and x < 9.2e18 else 0", "out[n, 1] = int(a < b)", "out[n, 2] = int(a)"]
    )


def test_unsigned_numbers() -> None:
    before = """
def mixed(word):
    z = np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)
    return z ^ (z >> np.uint64(29))
"""
    lines = ["out[n, 0] = np.int64(mixed(a))", "out[n, 1] = mixed(a) < mixed(b)", "out[n, 2] = mixed(a) >= mixed(b)"]
    lines += ["out[n, 3] = np.int64(np.uint64(a) & np.uint64(b))", "out[n, 4] = np.uint64(a) > np.uint64(b)"]
    lines += ["out[n, 5] = np.int64(mixed(a) // np.uint64(7))", "rest[n, 0] = float(np.uint64(a))", "out[n, 6] = mixed(b) > 5"]
    everywhere(lines, before)


def test_every_type_of_array_is_read_and_written_as_numpy_does() -> None:
    names = ["int8", "uint8", "bool", "int32", "int64", "uint64", "float64"]
    for name in names:
        source = """def kernel(a, table, whole):
    for i in range(len(a)):
        whole[i] = np.int64(a[i])
        a[i] = whole[i] > 3
        table[i, 1] = a[i]
        table[i, 2] += table[i, 1]
    return len(a), table.shape[1]"""
        values = np.array([0, 1, 5, 100, -7 if name.startswith(("int", "float")) else 7]).astype(name)
        assert agree(source, values, np.ones((5, 3), dtype=name), np.zeros(5, dtype=np.int64)) == (5, 3)


def test_what_guards_an_element_is_asked_first() -> None:
    source = """def kernel(empty, a, at):
    n = 0
    far = 1 << 60
    for i in range(len(a)):
        if i + at < len(a) and a[i + at] > 1:
            n += 1
        if i > 2 or a[i + 1] > 1:
            n += 10
        n += empty[i + far] if len(empty) > 0 else 100
        if not (len(empty) == 0 or empty[far] > 1):
            n += 1000
        n += 10000 if at < 0 and empty[far] > 1 else 0
        if 0 < len(empty) < empty[far]:
            n += 100000
    return n, far"""
    agree(source, np.zeros(0, dtype=np.int64), np.array([1, 2, 3, 4]), 2)


def test_loops_end_and_go_on_where_they_should() -> None:
    source = """def kernel(a, out):
    total = 0
    i = 50
    for i in range(2, len(a)):
        if a[i] == 3:
            continue
        j = 0
        while True:
            j += 1
            if j == 2:
                continue
            for m in range(j):
                if m == 3:
                    break
                if m == 1:
                    continue
                total += m + j
                m = 77
            if j > a[i]:
                break
        while j > 0:
            j -= 2
            if j == 5:
                break
        out[i] = total + j
        if total > 400:
            break
    for k in range(5, 3):
        total = -1
    return total, i"""
    for values in ([1, 2, 3, 4, 5, 3, 9, 9, 9], [], [1, 2, 3]):
        agree(source, np.array(values, dtype=np.int64), np.zeros(9, dtype=np.int64))


def test_a_variable_has_the_type_in_which_its_assignments_meet() -> None:
    source = """def kernel(a, f, out):
    seen = False
    best = 0
    for i in range(len(a)):
        if seen:
            out[i, 1] = last
        last = a[i] + 0.5
        seen = a[i] > 2 or seen
        best = best + f[i] if i > 1 else best
        out[i, 0] = best
        mark = i > 1
        if i == 3:
            mark = 7
        out[i, 2] = mark
        out[i, 3] = half(i) + half(f[i])
    return seen, len(a)

def half(value):
    if value > 2:
        value = value / 2
    return value"""
    agree(source, np.array([1, 5, 2, 7]), np.array([0.5, 1.5, 2.5, 3.5]), np.zeros((4, 4)))


def test_functions_call_functions_and_change_arrays() -> None:
    source = """def swapped(a, i, j):
    a[i], a[j] = a[j], a[i]

def sorted_in_place(a, n):
    for i in range(n):
        for j in range(i + 1, n):
            if less(a[j], a[i]):
                swapped(a, i, j)
    return n

def less(x, y):
    if x == y:
        return False
    return x < y

def kernel(a, b):
    return sorted_in_place(a, len(a)), sorted_in_place(b, len(b) - 1)"""
    agree(source, np.array([5, 3, 9, -1]), np.array([2.5, -1.0, 0.0]))


# Generated programs


def wholes(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from(("a", "b", "c", "n[0]", "n[1]", "n[c & 3]", "t[b & 3, 1]", "np.int64(len(n))")) | st.sampled_from(
        WHOLE[1:]
    ).map(lambda each: f"np.int64({each})" if each > -(2**63) else "np.int64(-9223372036854775807 - 1)")
    if depth == 0:
        return leaf
    less, test, real = wholes(depth - 1), truths(depth - 1), floats(depth - 1)
    return st.one_of(
        leaf,
        st.tuples(less, st.sampled_from(("+", "-", "*", "//", "%", "&", "|", "^", ">>", "<<")), less).map(
            "({0[0]} {0[1]} {0[2]})".format
        ),
        less.map("(-{})".format),
        less.map("(~{})".format),
        less.map("abs({})".format),
        st.tuples(st.sampled_from(("min", "max")), less, less).map("{0[0]}({0[1]}, {0[2]})".format),
        st.tuples(less, test, less).map("({0[0]} if {0[1]} else {0[2]})".format),
        real.map("(as_bits({0}) if {0} == {0} else a)".format),
        real.map("np.int64({0} if -1e18 < {0} < 1e18 else 0.0)".format),
        st.tuples(less, less).map("mixed({0[0]}, {0[1]})".format),
    )


def floats(depth: int) -> st.SearchStrategy[str]:
    leaf = st.sampled_from(("x", "y", "f[0]", "f[b & 3]", "1.5", "-0.0", "1e999", "as_float(n[2])"))
    if depth == 0:
        return leaf
    less, test, whole = floats(depth - 1), truths(depth - 1), wholes(depth - 1)
    return st.one_of(
        leaf,
        st.tuples(less, st.sampled_from("+-*"), less).map("({0[0]} {0[1]} {0[2]})".format),
        st.tuples(less, less, less).map("({0[0]} / {0[1]} if {0[1]} != 0.0 else {0[2]})".format),
        less.map("(-{})".format),
        less.map("abs({})".format),
        st.tuples(less, less).map("np.fmod({0[0]}, {0[1]})".format),
        st.tuples(st.sampled_from(("min", "max")), less, less).map("{0[0]}({0[1]}, {0[2]})".format),
        st.tuples(less, test, less).map("({0[0]} if {0[1]} else {0[2]})".format),
        whole.map("float({})".format),
        st.tuples(whole, less).map("({0[0]} + {0[1]})".format),
    )


def truths(depth: int) -> st.SearchStrategy[str]:
    whole, real = wholes(max(depth - 1, 0)), floats(max(depth - 1, 0))
    sign = st.sampled_from(SIGNS)
    leaf = st.one_of(
        st.tuples(whole, sign, whole).map(" ".join),
        st.tuples(real, sign, real).map(" ".join),
        st.tuples(whole, sign, whole, sign, whole).map(" ".join),
        st.tuples(whole, st.integers(0, 63)).map("({0[0]} >> {0[1]}) & 1".format),
        st.sampled_from(("True", "False", "a", "x")),
    )
    if depth == 0:
        return leaf
    less = truths(depth - 1)
    return st.one_of(
        leaf,
        st.lists(less, min_size=2, max_size=3).map(lambda each: f"({' and '.join(each)})"),
        st.lists(less, min_size=2, max_size=3).map(lambda each: f"({' or '.join(each)})"),
        less.map("(not {})".format),
    )


@st.composite
def blocks(draw: st.DrawFn, depth: int, looped: bool) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kinds = ["whole", "float", "item", "row", "add", "swap"]
        kinds += ["if", "for", "while"] if depth else []
        kinds += ["break", "continue"] if looped else []
        match draw(st.sampled_from(kinds)):
            case "whole":
                lines.append(f"{draw(st.sampled_from('abc'))} = {draw(wholes(2))}")
            case "float":
                lines.append(f"{draw(st.sampled_from('xy'))} = {draw(floats(2))}")
            case "item":
                lines.append(f"n[{draw(wholes(1))} & 3] {draw(st.sampled_from(('=', '+=', '^=', '-=')))} {draw(wholes(1))}")
            case "row":
                lines.append(f"f[a & 3] {draw(st.sampled_from(('=', '+=', '*=')))} {draw(floats(1))}")
            case "add":
                lines.append(f"{draw(st.sampled_from('abc'))} {draw(st.sampled_from(('+=', '*=', '>>=')))} {draw(wholes(1))}")
            case "swap":
                lines.append("t[a & 3, 0], t[b & 3, 1] = t[c & 3, 1], t[b & 3, 0]")
            case "if":
                lines += [f"if {draw(truths(2))}:", *indented(draw(blocks(depth - 1, looped)))]
                if draw(st.booleans()):
                    lines += [f"elif {draw(truths(1))}:", *indented(draw(blocks(depth - 1, looped)))]
                if draw(st.booleans()):
                    lines += ["else:", *indented(draw(blocks(depth - 1, looped)))]
            case "for":
                name = f"i{depth}"
                lines += [
                    f"for {name} in range({draw(wholes(1))} & 7):",
                    f"    c += {name}",
                    *indented(draw(blocks(depth - 1, True))),
                ]
            case "while":
                lines += [f"left{depth} = 5", f"while left{depth} > 0 and {draw(truths(1))}:", f"    left{depth} -= 1"]
                lines += indented(draw(blocks(depth - 1, True)))
            case word:
                lines += [f"if {draw(truths(1))}:", f"    {word}"]
    return lines


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


PROGRAM = """def mixed(p, q):
    z = np.uint64(p) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(q)
    return np.int64(z ^ (z >> np.uint64(31)))

def kernel(n, f, t):
    a, b, c = n[0], n[1], n[2]
    x, y = f[0], f[1]
{}
    n[0], n[1], n[2] = a, b, c
    f[2], f[3] = x, y
    return len(n), a < b"""


@settings(max_examples=max(80, settings.default.max_examples), deadline=None)
@given(
    blocks(2, False), st.lists(st.tuples(*[st.sampled_from(WHOLE)] * 4, *[st.sampled_from(FLOATS)] * 4), min_size=1, max_size=8)
)
def test_a_generated_program_means_what_it_means_in_python(block: list[str], inputs: list[tuple[Any, ...]]) -> None:
    source = PROGRAM.format("\n".join(indented(block)))
    compiled = Compiled(parsed(source))
    plain = kernel_of(parsed(source), jit=False)
    for each in inputs:
        given = [
            (np.array(each[:4]), np.array(each[4:]), np.array([each[:2], each[1:3], each[2:4], each[:2]])) for _ in range(2)
        ]
        assert compiled(*given[0]) == tuple(int(one) for one in plain(*given[1])), source
        for made, expected in zip(*given, strict=True):
            assert same(made, expected), f"{made} {expected}\n{source}"


# What cannot be compiled


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("    return [a[0]], 0", "line 2: .*List"),
        ("    b = 1\n    b = a\n    return b, 0", "line 3: .*array a as a value"),
        ("    return c, 0", "line 2: .*c is read and never assigned"),
        ("    while a[0] > 1:\n        pass\n    else:\n        a[0] = 2\n    return 0, 0", "line 2: .*While"),
        ("    for i in a:\n        pass\n    return 0, 0", "line 2: .*For"),
        ("    for i in range(1, 2, 3):\n        pass\n    return 0, 0", "line 2: .*range\\(1, 2, 3\\)"),
        ("    return a[0] ** 2, 0", "line 2: .*BinOp"),
        ("    return a[0], 1.5", "line 2: .*returns a float"),
        ("    return 1.5 // 2.0 > 1, 0", "line 2: .*// of floats"),
        ("    return a[0, 1], 0", "line 2: .*1 dimensions"),
        ("    return round(a[0]), 0", "line 2: .*call of .*round"),
        ("    return np.uint64(a[0]) + a[1] > 3, 0", "line 2: .*unsigned number beside a whole"),
        ("    return 0", "line 2: .*tuple"),
        ("    a[0] = 1", "line 2: .*kernel without a result"),
        ("    a = 3\n    return a, 0", "line 2: .*a is an array and assigned"),
        ("    import os\n    return 0, 0", "line 2: .*Import"),
        ("    return 'x', 0", "line 2: .*'x'"),
        ("    return f(a[0]), 0\n\ndef f(b):\n    return f(b)", "line 5: .*f calls itself"),
        ("    return f(a, a), 0\n\ndef f(b, c):\n    b[0] = 1\n    return c[0]", "line 2: .*a twice"),
        ("    return f(a[0]), 0\n\ndef f(b):\n    if b:\n        return\n    return b", "line 4: .*f returns a value here"),
        ("    return 0, 0\n\ndef kernel(b):\n    return 1, 1", "line 4: .*second function"),
    ],
)
def test_what_cannot_be_compiled_is_named_with_its_line(body: str, what: str) -> None:
    with pytest.raises(InvariantError, match=what):
        Compiled(parsed(f"def kernel(a):\n{body}"))(np.array([1, 2, 3]))
