"""A kernel's source to LLVM's text: functions over numbers and arrays, each once for the types it is called with.

The source is a small part of Python: whole and wide numbers, floats and truth values in variables; arrays only as parameters;
`if`, `while`, `for … in range(…)`, calls of other functions of the source. A variable has one type: that in which all its
assignments meet. A function is lowered as if the types seen so far were all; when a later assignment widens one, it is lowered
again.

Variables are places on the stack, which LLVM makes registers of (mem2reg); one that is read before it was assigned is 0. Arrays
are a pointer and a length; the length of a row is known. No element is reached by way of two parameters, so all pointers are
`noalias` (`nn` and `ni` are views of one memory, but of different elements, node_layout.py); indices are never negative and
never out of range, and LLVM may rely on that only where an element is reached (`inbounds`). In a checked build
(checked_build.py) that is tested: a function that fails writes a report and returns, and so do all that called it.

Takes: a source and the types of the arguments of `kernel`. Gives: a module as text, and what `kernel` returns and writes to.
Raises InvariantError for what cannot be compiled, with its line.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.machine_code.checked_build import OUTSIDE, UNWRITTEN, poison_of, site
from fairlead.matching.compiled.machine_code.instructions import (
    FLOAT,
    LLVM,
    TRUTH,
    UNKNOWN,
    UNSIGNED,
    WHOLE,
    WIDE,
    ZERO,
    Operations,
    Value,
    literal,
)
from fairlead.matching.compiled.machine_code.native import Array

ITEM = {"int8": "i8", "uint8": "i8", "bool": "i8", "int32": "i32", "int64": "i64", "uint64": "i64", "float64": "double"}
SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
SUPPORT = "\n".join(
    (
        "declare double @llvm.fabs.f64(double)",
        "declare i64 @llvm.abs.i64(i64, i1 immarg)",
        "declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)",
    )
)
RARE = frozenset({"attach", "detach", "built", "rowed", "least", "fire", "trim", "halted"}) | frozenset(
    {"reduced", "pruned", "compared", "tested", "revived", "holds", "key"}
)
"""Functions of the source that few events reach: kept out of the loop. Without, registers run short in it (5 % slower)."""
LEAVE = "leave"
"""Stands for the return of a function after a failed check, until it is known what it returns."""
Argument = str | Array
"""The type of an argument."""


@dataclass
class Made:
    """A function for the types of its arguments."""

    name: str
    returns: str | None
    results: int
    written: tuple[int, ...]
    """The arguments whose elements it changes."""


class Module:
    def __init__(self, source: str, checked: bool = False) -> None:
        self.checked = checked
        self.functions: dict[str, ast.FunctionDef] = {}
        self.texts = [SUPPORT]
        self.made: dict[tuple[str, tuple[Argument, ...]], Made | None] = {}
        for node in ast.parse(source).body:
            if not isinstance(node, ast.FunctionDef) or node.name in self.functions:
                outside = Operations()
                outside.line = node.lineno
                outside.refuse("a second function of one name" if isinstance(node, ast.FunctionDef) else _shown(node))
            self.functions[node.name] = node

    def kernel(self, arguments: Sequence[Argument]) -> Made:
        return self.function("kernel", tuple(arguments), Operations())

    def function(self, name: str, arguments: tuple[Argument, ...], caller: Operations) -> Made:
        key = name, arguments
        if key not in self.made:
            self.made[key] = None
            self.made[key] = _Function(self, self.functions[name], arguments, f"{name}.{len(self.made)}").lowered()
        made = self.made[key]
        return made if made is not None else caller.refuse(f"{name} calls itself")

    def text(self) -> str:
        return "\n\n".join(self.texts)


class _Function(Operations):
    def __init__(self, module: Module, node: ast.FunctionDef, arguments: tuple[Argument, ...], name: str) -> None:
        super().__init__()
        self.module, self.node, self.name, self.line = module, node, name, node.lineno
        given = node.args
        self.parameters = [each.arg for each in given.args]
        if given.vararg or given.kwarg or given.kwonlyargs or given.defaults or given.posonlyargs or node.decorator_list:
            self.refuse("a function with more than plain parameters")
        if len(arguments) != len(self.parameters):
            self.refuse(f"{node.name} of {len(arguments)} arguments")
        self.arguments = dict(zip(self.parameters, arguments, strict=True))
        self.arrays = {name: each for name, each in self.arguments.items() if isinstance(each, Array)}
        self.types = {name: each for name, each in self.arguments.items() if isinstance(each, str)}
        self.written: set[str] = set()
        self.returns: str | None = None
        self.results = 0
        self.empty = False

    # The function

    def lowered(self) -> Made:
        while True:
            self._begin()
            known = set(self.types)
            self._block(self.node.body)
            if self.open:
                self._return_nothing()
            if not self.changed:
                break
            if set(self.types) == known and self.unknown:
                self.line = self.unknown[0][1]
                self.refuse(f"{self.unknown[0][0]} is read and never assigned")
        if self.empty and self.returns is not None:
            self.line = self.node.lineno
            self.refuse(f"{self.node.name} returns a value here and nothing there")
        leave = "ret void" if self.returns is None else f"ret {LLVM[self.returns]} {ZERO[self.returns]}"
        lines = [leave if line == LEAVE else line for line in self.lines]
        self.module.texts.append("\n".join([self._head(), "entry:", *self._opening(), *lines, "}"]))
        written = tuple(at for at, name in enumerate(self.parameters) if name in self.written)
        return Made(self.name, self.returns, self.results, written)

    def _begin(self) -> None:
        self.lines, self.numbers, self.labels = [], 0, 0
        self.block, self.open, self.reached = "entry", True, {"entry"}
        self.loops: list[tuple[str, str]] = []
        self.counters = 0
        self.changed = False
        self.unknown: list[tuple[str, int]] = []

    def _head(self) -> str:
        parts = []
        for name, given in self.arguments.items():
            if isinstance(given, Array):
                parts += [f"ptr noalias %a.{name}", f"i64 %n.{name}"]
            else:
                parts.append(f"{LLVM[given]} %a.{name}")
        if self.node.name == "kernel":
            parts.append("ptr noalias %results")
        if self.module.checked:
            parts.append("ptr noalias %report")
        returned = "void" if self.returns is None else LLVM[self.returns]
        rare = self.node.name in RARE or self.node.name.startswith("spent_")
        inlining = "noinline" if rare else "inlinehint"
        return f"define internal {returned} @{self.name}({', '.join(parts)}) nounwind {inlining} {{"

    def _opening(self) -> list[str]:
        """Places for the variables."""
        made = [f"%f{at} = alloca i64" for at in range(self.counters)]
        for name, type in self.types.items():
            made.append(f"%v.{name} = alloca {LLVM[type]}")
            made.append(f"store {LLVM[type]} {ZERO[type]}, ptr %v.{name}")
        for name, given in self.arguments.items():
            if isinstance(given, str):
                conversion = Operations()
                conversion.numbers = self.numbers
                value = conversion.converted(Value(f"%a.{name}", given), self.types[name])
                self.numbers = conversion.numbers
                made += [*conversion.lines, f"store {LLVM[value.type]} {value.code}, ptr %v.{name}"]
        return made

    def _return_nothing(self) -> None:
        if self.node.name == "kernel" and not self.results:
            self.refuse("kernel without a result")
        self._end("ret void" if self.returns is None else f"ret {LLVM[self.returns]} {ZERO[self.returns]}")

    # Blocks

    def _label(self, what: str) -> str:
        self.labels += 1
        return f"{what}{self.labels}"

    def _start(self, label: str) -> None:
        """What nothing jumps to is left out."""
        self.open = label in self.reached
        if self.open:
            self.lines.append(f"{label}:")
            self.block = label

    def _end(self, instruction: str) -> None:
        self.lines.append(instruction)
        self.open = False

    def _jump(self, label: str) -> None:
        if self.open:
            self.reached.add(label)
            self._end(f"br label %{label}")

    def _fork(self, test: Value, yes: str, no: str) -> None:
        if test.code in ("true", "false"):
            self._jump(yes if test.code == "true" else no)
            return
        self.reached |= {yes, no}
        self._end(f"br i1 {test.code}, label %{yes}, label %{no}")

    # Statements

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for each in statements:
            if not self.open:
                return
            self.line = each.lineno
            self._statement(each)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value)
            case ast.AugAssign(target=target, op=operator, value=value):
                self._augment(target, operator, value)
            case ast.If():
                self._if(node)
            case ast.While(orelse=[]):
                self._while(node)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=ends, keywords=[]), orelse=[]):
                self._for(name, ends, node.body)
            case ast.Break() if self.loops:
                self._jump(self.loops[-1][1])
            case ast.Continue() if self.loops:
                self._jump(self.loops[-1][0])
            case ast.Return(value=value):
                self._return(value)
            case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=arguments, keywords=[])) if name in self.module.functions:
                self._call(name, arguments)
            case ast.Expr(value=ast.Call(func=ast.Name(id="prefetch"), args=[place], keywords=[])):
                self.lines.append(f"call void @llvm.prefetch.p0(ptr {self._place(place)[1]}, i32 1, i32 3, i32 1)")
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                self.refuse(_shown(node))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
                self.refuse(_shown(target))
            values = [self._value(each) for each in value.elts]
            for one, each in zip(target.elts, values, strict=True):
                self._store(one, each)
        elif isinstance(target, ast.Subscript) and isinstance(value, ast.Subscript) and not _is_length(value):
            self._store(target, self._item(*self._place(value)))  # memory is copied, not used
        else:
            self._store(target, self._value(value))

    def _store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, value)
        else:
            array, place = self._place(target, written=True)
            self._put_item(array, place, value)

    def _set(self, name: str, value: Value) -> None:
        if name in self.arrays:
            self.refuse(f"{name} is an array and assigned")
        before = self.types.get(name, UNKNOWN)
        type = self.common(before, value.type)
        if type != before:
            self.types[name] = type
            self.changed |= before != UNKNOWN
        self.lines.append(f"store {LLVM[type]} {self.converted(value, type).code}, ptr %v.{name}")

    def _get(self, name: str) -> Value:
        if name in self.arrays:
            self.refuse(f"the array {name} as a value")
        type = self.types.get(name, UNKNOWN)
        if type == UNKNOWN:
            self.changed = True
            self.unknown.append((name, self.line))
            return Value("0", UNKNOWN)
        return Value(self.put(f"load {LLVM[type]}, ptr %v.{name}"), type)

    def _augment(self, target: ast.expr, operator: ast.operator, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, self.binary(self._sign(operator), self._get(target.id), self._value(value)))
            return
        array, place = self._place(target, written=True)
        before = self._written(target, array, self._item(array, place))
        self._put_item(array, place, self.binary(self._sign(operator), before, self._value(value)))

    def _if(self, node: ast.If) -> None:
        yes, no, end = self._label("then"), self._label("else"), self._label("end")
        self._branch(node.test, yes, no if node.orelse else end)
        self._start(yes)
        self._block(node.body)
        self._jump(end)
        if node.orelse:
            self._start(no)
            self._block(node.orelse)
            self._jump(end)
        self._start(end)

    def _while(self, node: ast.While) -> None:
        head, body, end = self._label("while"), self._label("body"), self._label("end")
        self._jump(head)
        self._start(head)
        self._branch(node.test, body, end)
        self._inside(head, body, end, node.body)
        self._jump(head)
        self._start(end)

    def _for(self, name: str, ends: list[ast.expr], body: list[ast.stmt]) -> None:
        if not 1 <= len(ends) <= 2:
            self.refuse("range with a step")
        values = [self.converted(self._value(each), WHOLE) for each in ends]
        first, last = (Value("0", WHOLE), values[0]) if len(values) == 1 else values
        counter = f"%f{self.counters}"
        self.counters += 1
        head, inside, onwards, end = self._label("for"), self._label("body"), self._label("next"), self._label("end")
        self.lines.append(f"store i64 {first.code}, ptr {counter}")
        self._jump(head)
        self._start(head)
        at = Value(self.put(f"load i64, ptr {counter}"), WHOLE)
        self._fork(self.compared("<", at, last), inside, end)
        self.reached.add(inside)
        self._start(inside)
        self._set(name, at)
        self.loops.append((onwards, end))
        self._block(body)
        self.loops.pop()
        self._jump(onwards)
        self._start(onwards)
        if self.open:
            self.lines.append(f"store i64 {self.put(f'add nsw i64 {at.code}, 1')}, ptr {counter}")
        self._jump(head)
        self._start(end)

    def _inside(self, head: str, body: str, end: str, statements: list[ast.stmt]) -> None:
        self.loops.append((head, end))
        self._start(body)
        self._block(statements)
        self.loops.pop()

    def _return(self, value: ast.expr | None) -> None:
        if self.node.name == "kernel":
            self._return_results(value)
        elif value is None:
            self.empty = True
            self._end("ret void")
        else:
            made = self._value(value)
            type = self.common(self.returns or UNKNOWN, made.type)
            if type != (self.returns or type):
                self.changed = True
            self.returns = type
            self._end(f"ret {LLVM[type]} {self.converted(made, type).code}")

    def _return_results(self, value: ast.expr | None) -> None:
        if not isinstance(value, ast.Tuple) or self.results not in (0, len(value.elts)):
            self.refuse("kernel returns something else than a tuple, always of one length")
        self.results = len(value.elts)
        for at, each in enumerate(value.elts):
            made = self._value(each)
            if made.type == FLOAT:
                self.refuse("kernel returns a float")
            place = self.put(f"getelementptr inbounds i64, ptr %results, i64 {at}")
            self.lines.append(f"store i64 {self.converted(made, WHOLE).code}, ptr {place}")
        self._end("ret void")

    # Conditions

    def _branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Goes where a condition leads, with no more evaluated than Python does."""
        match node:
            case ast.BoolOp(op=operator, values=values):
                for each in values[:-1]:
                    more = self._label("more")
                    self._branch(each, *((more, no) if isinstance(operator, ast.And) else (yes, more)))
                    self._start(more)
                    if not self.open:
                        return
                self._branch(values[-1], yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._branch(operand, no, yes)
            case ast.Compare(left=left, ops=signs, comparators=others):
                value = self._value(left)
                for at, (sign, other) in enumerate(zip(signs, others, strict=True)):
                    right = self._value(other)
                    more = yes if at == len(signs) - 1 else self._label("more")
                    self._fork(self.compared(self._sign(sign), value, right), more, no)
                    if more != yes:
                        self._start(more)
                    value = right
            case _:
                self._fork(self.truth(self._value(node)), yes, no)

    # Expressions

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=given):
                return literal(given) or self.refuse(f"the constant {given!r}")
            case ast.Name(id=name):
                return self._get(name)
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant(value=at)):
                return self._length(name, at)
            case ast.Subscript():
                array, place = self._place(node)
                return self._written(node, array, self._item(array, place))
            case ast.BinOp(left=left, op=operator, right=right):
                return self.binary(self._sign(operator), self._value(left), self._value(right))
            case ast.UnaryOp(op=operator, operand=operand):
                return self._unary(operator, self._value(operand))
            case ast.Compare(left=left, ops=[sign], comparators=[right]):
                return self.compared(self._sign(sign), self._value(left), self._value(right))
            case ast.Compare():
                return self._chain(node)
            case ast.BoolOp():
                return self._either(node)
            case ast.IfExp():
                return self._conditional(node)
            case ast.Call(func=function, args=arguments, keywords=[]):
                return self._called(function, arguments)
        return self.refuse(_shown(node))

    def _sign(self, operator: ast.AST) -> str:
        return SIGNS.get(type(operator)) or self.refuse(f"the operator {type(operator).__name__}")

    def _unary(self, operator: ast.unaryop, value: Value) -> Value:
        match operator:
            case ast.USub():
                return self.negative(value)
            case ast.Invert():
                return self.inverted(value)
            case ast.Not():
                return self.denied(value)
        return self.number(value)

    def _chain(self, node: ast.Compare) -> Value:
        yes, no, end = self._label("yes"), self._label("no"), self._label("end")
        self._branch(node, yes, no)
        ways = []
        for label, code in ((yes, "true"), (no, "false")):
            self._start(label)
            if self.open:
                ways.append((Value(code, TRUTH), self.block, self._hole()))
        return self._met(ways, TRUTH, [f"br label %{end}"] * len(ways), end)

    def _conditional(self, node: ast.IfExp) -> Value:
        yes, no, end = self._label("yes"), self._label("no"), self._label("end")
        self._branch(node.test, yes, no)
        ways = []
        for label, each in ((yes, node.body), (no, node.orelse)):
            self._start(label)
            if self.open:
                value = self._value(each)
                ways.append((value, self.block, self._hole()))
        type = ways[0][0].type if len(ways) == 1 else self.common_of(ways[0][0], ways[1][0])
        return self._met(ways, type, [f"br label %{end}"] * len(ways), end)

    def _either(self, node: ast.BoolOp) -> Value:
        """`and` and `or` give one of their operands, as in Python."""
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
            yes, no = (more, end) if isinstance(node.op, ast.And) else (end, more)
            ends.append(f"br i1 {test}, label %{yes}, label %{no}")
            ways.append((value, self.block, self._hole()))
            self.reached.add(more)
            self._start(more)
        return self._met(ways, type, ends, end)

    def _hole(self) -> int:
        """The end of a block that is written once the type of all ways is known."""
        self.lines.append("")
        return len(self.lines) - 1

    def _met(self, ways: list[tuple[Value, str, int]], type: str, ends: list[str], end: str) -> Value:
        parts = []
        lines = self.lines
        for (value, block, hole), last in zip(ways, ends, strict=True):
            self.lines = []
            parts.append(f"[ {self.converted(value, type).code}, %{block} ]")
            lines[hole] = "\n".join([*self.lines, last])
        self.lines = lines
        self.reached.add(end)
        self._start(end)
        return Value(self.put(f"phi {LLVM[type]} {', '.join(parts)}"), type)

    # Arrays

    def _length(self, name: str, at: object) -> Value:
        array = self.arrays.get(name)
        if array is None or at not in range(array.dimensions):
            self.refuse(f"length {at} of {name}")
        return Value(f"%n.{name}", WHOLE) if at == 0 else Value(str(array.width), WHOLE, array.width)

    def _place(self, node: ast.expr, written: bool = False) -> tuple[Array, str]:
        """The address of an element."""
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name in self.arrays:
                array = self.arrays[name]
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                if len(parts) != array.dimensions:
                    self.refuse(f"{_shown(node)}, an array of {array.dimensions} dimensions")
                indices = [self.number(self._value(each)) for each in parts]
                if any(each.type == FLOAT for each in indices):
                    self.refuse(f"{_shown(node)}, a float as an index")
                if written:
                    self.written.add(name)
                if self.module.checked:
                    for at, each in enumerate(indices):
                        length = self._length(name, at)
                        inside = self.put(f"icmp ult i64 {each.code}, {length.code}")
                        self._check(inside, node, OUTSIDE, each.code, length.code)
                item = ITEM[array.dtype] if array.dimensions == 1 else f"[{array.width} x {ITEM[array.dtype]}]"
                steps = ", ".join(f"i64 {each.code}" for each in indices)
                return array, self.put(f"getelementptr inbounds {item}, ptr %a.{name}, {steps}")
        return self.refuse(_shown(node))

    def _item(self, array: Array, place: str) -> Value:
        item = ITEM[array.dtype]
        found = self.put(f"load {item}, ptr {place}")
        if item in ("i8", "i32"):
            found = self.put(f"{'s' if array.dtype.startswith('int') else 'z'}ext {item} {found} to i64")
        return Value(found, {"float64": FLOAT, "uint64": UNSIGNED}.get(array.dtype, WHOLE))

    def _put_item(self, array: Array, place: str, value: Value) -> None:
        item = ITEM[array.dtype]
        if array.dtype == "bool":
            code = self.put(f"zext i1 {self.truth(value).code} to i8")
        elif array.dtype == "float64":
            code = self.converted(value, FLOAT).code
        else:
            code = self.converted(value, UNSIGNED if value.type == UNSIGNED else WHOLE).code
            code = code if item == "i64" else self.put(f"trunc i64 {code} to {item}")
        self.lines.append(f"store {item} {code}, ptr {place}")

    def _written(self, node: ast.expr, array: Array, value: Value) -> Value:
        """A value that was read, checked not to be that of unwritten memory."""
        poison = poison_of(array.dtype) if self.module.checked else None
        if poison is not None:
            bits = self.as_bits(value) if value.type == FLOAT else value
            self._check(self.put(f"icmp ne i64 {bits.code}, {poison}"), node, UNWRITTEN, "0", "0")
        return value

    def _check(self, holds: str, node: ast.expr, what: int, index: str, length: str) -> None:
        """Goes on only if it holds; otherwise the function reports what is wrong and returns."""
        onwards, wrong = self._label("checked"), self._label("wrong")
        self._fork(Value(holds, TRUTH), onwards, wrong)
        self._start(wrong)
        where = site(node.lineno, node.col_offset, node.end_col_offset or 0)
        for at, word in enumerate((where, what, index, length)):
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

    def _called(self, function: ast.expr, arguments: list[ast.expr]) -> Value:
        match function, arguments:
            case ast.Name(id=name), _ if name in self.module.functions:
                return self._call(name, arguments) or self.refuse(f"{name} gives nothing")
            case ast.Name(id="len"), [ast.Name(id=name)]:
                return self._length(name, 0)
            case ast.Name(id="float"), [given]:
                return self.converted(self._value(given), FLOAT)
            case ast.Name(id="int"), [given]:
                return self.converted(self._value(given), WHOLE)
            case ast.Name(id="wide"), [given]:
                return self.converted(self._value(given), WIDE)
            case ast.Name(id="joined"), [high, low]:
                return self.joined(self._value(high), self._value(low))
            case ast.Name(id="abs"), [given]:
                return self.size(self._value(given))
            case ast.Name(id="min"), [_, _, *_]:
                return self.extreme("<", [self._value(each) for each in arguments])
            case ast.Name(id="max"), [_, _, *_]:
                return self.extreme(">", [self._value(each) for each in arguments])
            case ast.Name(id="as_float"), [given]:
                return self.as_float(self._value(given))
            case ast.Name(id="as_bits"), [given]:
                return self.as_bits(self._value(given))
            case ast.Name(id="asked"), [address]:
                return self.asked(self._value(address))
            case ast.Attribute(value=ast.Name(id="np"), attr="fmod"), [one, other]:
                return self.remainder(self._value(one), self._value(other))
            case ast.Attribute(value=ast.Name(id="np"), attr="uint64"), [given]:
                return self.converted(self._value(given), UNSIGNED)
            case ast.Attribute(value=ast.Name(id="np"), attr="int64"), [given]:
                return self.converted(self._value(given), WHOLE)
        return self.refuse(f"a call of {_shown(function)} with {len(arguments)} arguments")

    def _call(self, name: str, arguments: list[ast.expr]) -> Value | None:
        types: list[Argument] = []
        passed: list[str] = []
        names: list[str | None] = []
        for each in arguments:
            if isinstance(each, ast.Name) and each.id in self.arrays:
                types.append(self.arrays[each.id])
                passed += [f"ptr %a.{each.id}", f"i64 %n.{each.id}"]
                names.append(each.id)
            else:
                value = self._value(each)
                types.append(WHOLE if value.type == UNKNOWN else value.type)
                passed.append(f"{LLVM[value.type]} {value.code}")
                names.append(None)
        made = self.module.function(name, tuple(types), self)
        for at in made.written:
            if names.count(names[at]) > 1:
                self.refuse(f"{names[at]} twice as an argument of {name}, which writes to it")
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


def _is_length(node: ast.Subscript) -> bool:
    return isinstance(node.value, ast.Attribute)


def _shown(node: ast.AST) -> str:
    return f"{type(node).__name__}: {ast.unparse(node).splitlines()[0]}"
