"""Formulas of a kernel to LLVM's text: values, conditions, elements of arrays, calls.

Conditions become jumps, with no more evaluated than Python does. No element is reached by way of two parameters, so all
pointers are `noalias` (`links` and `nodes` are views of one memory, but of different elements, node_layout.py); indices are
never negative and never out of range, and LLVM may rely on that only where an element is reached (`inbounds`). In a checked
build (checked_build.py) that is tested: a function that fails writes a report and returns, and so do all that called it.

Takes: formulas. Gives: lines of one function. Never: statements (lowering.py).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.machine_code.checked_build import OUTSIDE, UNWRITTEN, poison_of
from fairlead.matching.compiled.machine_code.control_flow import ControlFlow
from fairlead.matching.compiled.machine_code.instructions import LLVM, Operations, Value, literal
from fairlead.matching.compiled.machine_code.native import ArrayType
from fairlead.matching.compiled.representation.formulas import (
    FLOAT,
    TRUTH,
    UNKNOWN,
    UNSIGNED,
    WHOLE,
    WIDE,
    Array,
    ArrayElement,
    Between,
    Binary,
    Boolean,
    ChosenValue,
    Constant,
    Formula,
    FunctionCall,
    Intrinsic,
    Length,
    NumberComparison,
    Unary,
    Variable,
)
from fairlead.matching.compiled.representation.text import text_of

ITEM = {"int8": "i8", "uint8": "i8", "bool": "i8", "int32": "i32", "int64": "i64", "uint64": "i64", "float64": "double"}
LEAVE = "leave"
"""Stands for the return of a function after a failed check, until it is known what it returns."""
ArgumentType = str | ArrayType


@dataclass
class Made:
    """A function for the types of its arguments."""

    name: str
    returns: str | None
    results: int
    written: tuple[int, ...]
    """The arguments whose elements it changes."""


class Functions(Protocol):
    """What a call needs of the module around it (lowering.py)."""

    checked: bool

    def function(self, name: str, arguments: tuple[ArgumentType, ...], caller: Operations) -> Made: ...


class Evaluation(ControlFlow):
    """The values in the lines of one function."""

    module: Functions
    arrays: dict[str, ArrayType]
    types: dict[str, str]
    written: set[str]

    @abstractmethod
    def unassigned(self, name: str) -> None:
        """A variable is read whose type is not known yet."""

    @abstractmethod
    def site_of(self, node: ArrayElement) -> int:
        """The place of an element in the program, as a number."""

    # Conditions

    def _branch(self, node: Formula, yes: str, no: str) -> None:
        """Goes where a condition leads, with no more evaluated than Python does."""
        kind = type(node)
        if kind is NumberComparison:
            assert isinstance(node, NumberComparison)
            left = self._value(node.left)
            self._fork(self.compared(node.sign, left, self._value(node.right)), yes, no)
        elif kind is Boolean:
            assert isinstance(node, Boolean)
            for each in node.values[:-1]:
                more = self._label("more")
                self._branch(each, *((more, no) if node.operator == "and" else (yes, more)))
                self._start(more)
                if not self.open:
                    return
            self._branch(node.values[-1], yes, no)
        elif isinstance(node, Unary) and node.operator == "not":
            self._branch(node.operand, no, yes)
        elif isinstance(node, Between):
            value = self._value(node.left)
            for at, (sign, other) in enumerate(zip(node.signs, node.others, strict=True)):
                right = self._value(other)
                more = yes if at == len(node.signs) - 1 else self._label("more")
                self._fork(self.compared(sign, value, right), more, no)
                if more != yes:
                    self._start(more)
                value = right
        else:
            self._fork(self.truth(self._value(node)), yes, no)

    # Expressions

    def _value(self, node: Formula) -> Value:
        lower = _VALUES.get(type(node))
        return lower(self, node) if lower is not None else self.refuse(type(node).__name__)

    def _constant(self, node: Constant) -> Value:
        return literal(node.value) or self.refuse(f"the constant {node.value!r}")

    def _variable(self, node: Variable) -> Value:
        return self._get(node.name)

    def _get(self, name: str) -> Value:
        if name in self.arrays:
            self.refuse(f"the array {name} as a value")
        type = self.types.get(name, UNKNOWN)
        if type == UNKNOWN:
            self.unassigned(name)
            return Value("0", UNKNOWN)
        return Value(self.put(f"load {LLVM[type]}, ptr %v.{name}"), type)

    def _element(self, node: ArrayElement) -> Value:
        array, place = self._place(node)
        return self._written(node, array, self._item(array, place))

    def _binary(self, node: Binary) -> Value:
        left = self._value(node.left)
        return self.binary(node.operator, left, self._value(node.right))

    def _unary(self, node: Unary) -> Value:
        value = self._value(node.operand)
        match node.operator:
            case "-":
                return self.negative(value)
            case "~":
                return self.inverted(value)
            case "not":
                return self.denied(value)
        return self.number(value)

    def _comparison(self, node: NumberComparison) -> Value:
        left = self._value(node.left)
        return self.compared(node.sign, left, self._value(node.right))

    def _between(self, node: Between) -> Value:
        yes, no, end = self._label("yes"), self._label("no"), self._label("end")
        self._branch(node, yes, no)
        ways = []
        for label, code in ((yes, "true"), (no, "false")):
            self._start(label)
            if self.open:
                ways.append((Value(code, TRUTH), self.block, self._hole()))
        return self._met(ways, TRUTH, [f"br label %{end}"] * len(ways), end)

    def _choice(self, node: ChosenValue) -> Value:
        yes, no, end = self._label("yes"), self._label("no"), self._label("end")
        self._branch(node.test, yes, no)
        ways = []
        for label, each in ((yes, node.yes), (no, node.no)):
            self._start(label)
            if self.open:
                value = self._value(each)
                ways.append((value, self.block, self._hole()))
        type = ways[0][0].type if len(ways) == 1 else self.common_of(ways[0][0], ways[1][0])
        return self._met(ways, type, [f"br label %{end}"] * len(ways), end)

    def _boolean(self, node: Boolean) -> Value:
        """`and` and `or` evaluate to one of their operands, as in Python."""
        end, ways, ends = self._label("end"), [], []
        type = UNKNOWN
        for at, each in enumerate(node.values):
            value = self._value(each)
            type = self.common(type, value.type)
            if at == len(node.values) - 1:
                ends.append(f"br label %{end}")
                ways.append((value, self.block, self._hole()))
                break
            test, more = self.truth(value).code, self._label("more")
            yes, no = (more, end) if node.operator == "and" else (end, more)
            ends.append(f"br i1 {test}, label %{yes}, label %{no}")
            ways.append((value, self.block, self._hole()))
            self.reached.add(more)
            self._start(more)
        return self._met(ways, type, ends, end)

    # Arrays

    def _length(self, node: Length) -> Value:
        return self._length_of(node.array.name, node.dimension)

    def _length_of(self, name: str, at: int) -> Value:
        array = self.arrays.get(name)
        if array is None or at not in range(array.dimensions):
            self.refuse(f"length {at} of {name}")
        return Value(f"%n.{name}", WHOLE) if at == 0 else Value(str(array.width), WHOLE, array.width)

    def _place(self, node: ArrayElement, written: bool = False) -> tuple[ArrayType, str]:
        """The address of an element."""
        name = node.array.name
        array = self.arrays.get(name) or self.refuse(f"{name}, which is no array")
        if len(node.indices) != array.dimensions:
            self.refuse(f"{text_of(node)}, an array of {array.dimensions} dimensions")
        indices = [self.number(self._value(each)) for each in node.indices]
        for each in indices:
            if each.type == FLOAT:
                self.refuse(f"{text_of(node)}, a float as an index")
        if written:
            self.written.add(name)
        if self.module.checked:
            for at, each in enumerate(indices):
                length = self._length_of(name, at)
                inside = self.put(f"icmp ult i64 {each.code}, {length.code}")
                self._check(inside, node, OUTSIDE, each.code, length.code)
        item = ITEM[array.dtype] if array.dimensions == 1 else f"[{array.width} x {ITEM[array.dtype]}]"
        steps = ", ".join([f"i64 {each.code}" for each in indices])
        return array, self.put(f"getelementptr inbounds {item}, ptr %a.{name}, {steps}")

    def _item(self, array: ArrayType, place: str) -> Value:
        item = ITEM[array.dtype]
        found = self.put(f"load {item}, ptr {place}")
        if item in ("i8", "i32"):
            found = self.put(f"{'s' if array.dtype.startswith('int') else 'z'}ext {item} {found} to i64")
        return Value(found, {"float64": FLOAT, "uint64": UNSIGNED}.get(array.dtype, WHOLE))

    def _put_item(self, array: ArrayType, place: str, value: Value) -> None:
        item = ITEM[array.dtype]
        if array.dtype == "bool":
            code = self.put(f"zext i1 {self.truth(value).code} to i8")
        elif array.dtype == "float64":
            code = self.converted(value, FLOAT).code
        else:
            code = self.converted(value, UNSIGNED if value.type == UNSIGNED else WHOLE).code
            code = code if item == "i64" else self.put(f"trunc i64 {code} to {item}")
        self.lines.append(f"store {item} {code}, ptr {place}")

    # Checks

    def _written(self, node: ArrayElement, array: ArrayType, value: Value) -> Value:
        """A value that was read, checked not to be that of unwritten memory."""
        poison = poison_of(array.dtype) if self.module.checked else None
        if poison is not None:
            bits = self.as_bits(value) if value.type == FLOAT else value
            self._check(self.put(f"icmp ne i64 {bits.code}, {poison}"), node, UNWRITTEN, "0", "0")
        return value

    def _check(self, holds: str, node: ArrayElement, what: int, index: str, length: str) -> None:
        """Continues only if it holds; otherwise the function reports what is wrong and returns."""
        onwards, wrong = self._label("checked"), self._label("wrong")
        self._fork(Value(holds, TRUTH), onwards, wrong)
        self._start(wrong)
        for at, word in enumerate((self.site_of(node), what, index, length)):
            place = self.put(f"getelementptr inbounds i64, ptr %report, i64 {at}")
            self.lines.append(f"store i64 {word}, ptr {place}")
        self._end(LEAVE)
        self._start(onwards)

    def _check_call(self) -> None:
        """A function that was called may have failed: its caller goes no further."""
        if self.module.checked:
            onwards, wrong = self._label("checked"), self._label("wrong")
            failed = self.put("load i64, ptr %report")
            self._fork(Value(self.put(f"icmp eq i64 {failed}, 0"), TRUTH), onwards, wrong)
            self._start(wrong)
            self._end(LEAVE)
            self._start(onwards)

    # Calls

    def _intrinsic(self, node: Intrinsic) -> Value:
        lower, least = _INTRINSICS.get(node.function, (None, 0))
        count = len(node.arguments)
        if lower is None or count < least or (count > least and node.function not in ("min", "max")):
            self.refuse(f"a call of {node.function} with {count} arguments")
        return lower(self, [self._value(each) for each in node.arguments])

    def _called(self, node: FunctionCall) -> Value:
        return self._call(node) or self.refuse(f"{node.function} gives nothing")

    def _call(self, node: FunctionCall) -> Value | None:
        types: list[ArgumentType] = []
        passed: list[str] = []
        names: list[str | None] = []
        for each in node.arguments:
            if isinstance(each, Array):
                types.append(self.arrays.get(each.name) or self.refuse(f"{each.name}, which is no array"))
                passed += [f"ptr %a.{each.name}", f"i64 %n.{each.name}"]
                names.append(each.name)
            else:
                value = self._value(each)
                types.append(WHOLE if value.type == UNKNOWN else value.type)
                passed.append(f"{LLVM[value.type]} {value.code}")
                names.append(None)
        made = self.module.function(node.function, tuple(types), self)
        for at in made.written:
            if names.count(names[at]) > 1:
                self.refuse(f"{names[at]} twice as an argument of {node.function}, which writes to it")
            self.written.add(names[at] or "")
        passed += ["ptr %report"] if self.module.checked else []
        line = f"call {'void' if made.returns is None else LLVM[made.returns]} @{made.name}({', '.join(passed)})"
        if made.returns is None:
            self.lines.append(line)
            self._check_call()
            return None
        value = Value(self.put(line), made.returns)
        self._check_call()
        return value


_VALUES: dict[type, Callable[[Evaluation, Any], Value]] = {
    Constant: Evaluation._constant,
    Variable: Evaluation._variable,
    ArrayElement: Evaluation._element,
    Length: Evaluation._length,
    Binary: Evaluation._binary,
    Unary: Evaluation._unary,
    NumberComparison: Evaluation._comparison,
    Between: Evaluation._between,
    Boolean: Evaluation._boolean,
    ChosenValue: Evaluation._choice,
    FunctionCall: Evaluation._called,
    Intrinsic: Evaluation._intrinsic,
}
_INTRINSICS: dict[str, tuple[Callable[[Evaluation, list[Value]], Value], int]] = {
    "float": (lambda lines, given: lines.converted(given[0], FLOAT), 1),
    "int": (lambda lines, given: lines.converted(given[0], WHOLE), 1),
    "wide": (lambda lines, given: lines.converted(given[0], WIDE), 1),
    "joined": (lambda lines, given: lines.joined(given[0], given[1]), 2),
    "abs": (lambda lines, given: lines.size(given[0]), 1),
    "min": (lambda lines, given: lines.extreme("<", given), 2),
    "max": (lambda lines, given: lines.extreme(">", given), 2),
    "as_float": (lambda lines, given: lines.as_float(given[0]), 1),
    "as_bits": (lambda lines, given: lines.as_bits(given[0]), 1),
    "asked": (lambda lines, given: lines.asked(given[0]), 1),
    "np.fmod": (lambda lines, given: lines.remainder(given[0], given[1]), 2),
    "np.uint64": (lambda lines, given: lines.converted(given[0], UNSIGNED), 1),
    "np.int64": (lambda lines, given: lines.converted(given[0], WHOLE), 1),
}
INTRINSICS = frozenset(_INTRINSICS)
"""The functions that an `Intrinsic` may name, with how many arguments they have (two or more: `min` and `max`)."""
