"""A program to LLVM's text: functions over numbers and arrays, each once for the types it is called with.

Whole and wide numbers, floats and truth values are in variables; arrays are parameters only. A variable has one type: that in
which all its assignments meet. A function is lowered as if the types seen so far were all; when a later assignment widens
one, it is lowered again.

Variables are places on the stack, which LLVM makes registers of (mem2reg); one that is read before it was assigned is 0. Arrays
are a pointer and a length; the length of a row is known.

Takes: a program and the types of the arguments of `kernel`. Gives: a module as text, and what `kernel` returns and writes to.
Raises InvariantError for what cannot be compiled, with its line in the program's text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from fairlead.matching.compiled.machine_code.checked_build import site
from fairlead.matching.compiled.machine_code.instructions import LLVM, ZERO, Operations, Value
from fairlead.matching.compiled.machine_code.native import ArrayType
from fairlead.matching.compiled.machine_code.value_lowering import LEAVE, ArgumentType, Evaluation, Made
from fairlead.matching.compiled.representation.contents import elements_in
from fairlead.matching.compiled.representation.formulas import FLOAT, UNKNOWN, WHOLE, ArrayElement, Variable
from fairlead.matching.compiled.representation.statements import (
    Assign,
    Block,
    Evaluate,
    For,
    If,
    KernelFunction,
    Leave,
    Place,
    Prefetch,
    Proceed,
    Program,
    Return,
    Statement,
    Update,
    While,
)
from fairlead.matching.compiled.representation.text import statements_by_line

SUPPORT = "\n".join(
    (
        "declare double @llvm.fabs.f64(double)",
        "declare i64 @llvm.abs.i64(i64, i1 immarg)",
        "declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)",
    )
)


class Module:
    def __init__(self, program: Program, checked: bool = False) -> None:
        self.program, self.checked = program, checked
        self.functions: dict[str, KernelFunction] = {}
        self.texts = [SUPPORT]
        self.made: dict[tuple[str, tuple[ArgumentType, ...]], Made | None] = {}
        for each in program.functions:
            if each.name in self.functions:
                _Lowering(self, each, (), each.name).refuse("a second function of one name")
            self.functions[each.name] = each

    @cached_property
    def lines(self) -> dict[tuple[int, int], int]:
        """Where the functions and their statements stand in the program's text: the first place, if one stands at several."""
        found: dict[tuple[int, int], int] = {}
        for line, function, statement in statements_by_line(self.program):
            found.setdefault((id(function), id(statement)), line)
        return found

    def kernel(self, arguments: Sequence[ArgumentType]) -> Made:
        return self.function("kernel", tuple(arguments), Operations())

    def function(self, name: str, arguments: tuple[ArgumentType, ...], caller: Operations) -> Made:
        key = name, arguments
        if key not in self.made:
            if name not in self.functions:
                caller.refuse(f"a call of {name}, which is no function of the program")
            self.made[key] = None
            self.made[key] = _Lowering(self, self.functions[name], arguments, f"{name}.{len(self.made)}").lowered()
        made = self.made[key]
        return made if made is not None else caller.refuse(f"{name} calls itself")

    def text(self) -> str:
        return "\n\n".join(self.texts)


class _Lowering(Evaluation):
    """One function for the types of its arguments."""

    def __init__(self, module: Module, node: KernelFunction, arguments: tuple[ArgumentType, ...], name: str) -> None:
        super().__init__()
        self.module: Module = module
        self.node, self.name = node, name
        self.statement: Statement | None = None
        self.parameters = [each.name for each in node.parameters]
        self.arguments = dict(zip(self.parameters, arguments, strict=False))
        self.arrays = {name: each for name, each in self.arguments.items() if isinstance(each, ArrayType)}
        self.types = {name: each for name, each in self.arguments.items() if isinstance(each, str)}
        self.written: set[str] = set()
        self.declared = {
            each.name: each.type for each in node.parameters if isinstance(each, Variable) and each.type != UNKNOWN
        }
        self.returns: str | None = None
        self.results = 0
        self.empty = False

    @property
    def line(self) -> int:
        return self.module.lines[id(self.node), id(self.statement)]

    # The function

    def lowered(self) -> Made:
        if len(self.arguments) != len(self.parameters):
            self.refuse(f"{self.node.name} of {len(self.arguments)} arguments")
        while True:
            self._begin()
            known = set(self.types)
            self._block(self.node.body)
            if self.open:
                self._return_nothing()
            if not self.changed:
                break
            if set(self.types) == known and self.unknown:
                name, self.statement = self.unknown[0]
                self.refuse(f"{name} is read and never assigned")
        if self.empty and self.returns is not None:
            self.statement = None
            self.refuse(f"{self.node.name} returns a value here and nothing there")
        for name, type in self.declared.items():
            if self.types.get(name, UNKNOWN) not in (type, UNKNOWN):
                self.statement = None
                self.refuse(f"{name}, which is to be a {type}, is a {self.types[name]}")
        leave = "ret void" if self.returns is None else f"ret {LLVM[self.returns]} {ZERO[self.returns]}"
        lines = [leave if line == LEAVE else line for line in self.lines]
        self.module.texts.append("\n".join([self._head(), "entry:", *self._opening(), *lines, "}"]))
        written = tuple(at for at, name in enumerate(self.parameters) if name in self.written)
        return Made(self.name, self.returns, self.results, written)

    def _begin(self) -> None:
        super()._begin()
        self.loops: list[tuple[str, str]] = []
        self.counters = 0
        self.unknown: list[tuple[str, Statement | None]] = []

    def unassigned(self, name: str) -> None:
        self.changed = True
        self.unknown.append((name, self.statement))

    def site_of(self, node: ArrayElement) -> int:
        assert self.statement is not None
        ordinal = next(at for at, each in enumerate(elements_in(self.statement)) if each is node)
        return site(self.line, ordinal)

    def _head(self) -> str:
        parts = []
        for name, given in self.arguments.items():
            if isinstance(given, ArrayType):
                parts += [f"ptr noalias %a.{name}", f"i64 %n.{name}"]
            else:
                parts.append(f"{LLVM[given]} %a.{name}")
        if self.node.name == "kernel":
            parts.append("ptr noalias %results")
        if self.module.checked:
            parts.append("ptr noalias %report")
        returned = "void" if self.returns is None else LLVM[self.returns]
        inlining = "noinline" if self.node.rare else "inlinehint"
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

    # Statements

    def _block(self, statements: Block) -> None:
        for each in statements:
            if not self.open:
                return
            self.statement = each
            _STATEMENTS[type(each)](self, each)

    def _assign(self, node: Assign) -> None:
        if len(node.targets) == 1:
            target, value = node.targets[0], node.values[0]
            if isinstance(target, ArrayElement) and isinstance(value, ArrayElement):
                self._store(target, self._item(*self._place(value)))  # memory is copied, not used
            else:
                self._store(target, self._value(value))
            return
        values = [self._value(each) for each in node.values]
        for target, each in zip(node.targets, values, strict=True):
            self._store(target, each)

    def _store(self, target: Place, value: Value) -> None:
        if isinstance(target, Variable):
            self._set(target, value)
        else:
            array, place = self._place(target, written=True)
            self._put_item(array, place, value)

    def _set(self, variable: Variable, value: Value) -> None:
        name = variable.name
        if variable.type != UNKNOWN:
            self.declared[name] = variable.type
        if name in self.arrays:
            self.refuse(f"{name} is an array and assigned")
        before = self.types.get(name, UNKNOWN)
        type = self.common(before, value.type)
        if type != before:
            self.types[name] = type
            self.changed |= before != UNKNOWN
        self.lines.append(f"store {LLVM[type]} {self.converted(value, type).code}, ptr %v.{name}")

    def _change(self, node: Update) -> None:
        target = node.target
        if isinstance(target, Variable):
            before = self._get(target.name)
            self._set(target, self.binary(node.operator, before, self._value(node.value)))
            return
        array, place = self._place(target, written=True)
        before = self._written(target, array, self._item(array, place))
        self._put_item(array, place, self.binary(node.operator, before, self._value(node.value)))

    def _if(self, node: If) -> None:
        yes, no, end = self._label("then"), self._label("else"), self._label("end")
        self._branch(node.test, yes, no if node.otherwise else end)
        self._start(yes)
        self._block(node.body)
        self._jump(end)
        if node.otherwise:
            self._start(no)
            self._block(node.otherwise)
            self._jump(end)
        self._start(end)

    def _while(self, node: While) -> None:
        head, body, end = self._label("while"), self._label("body"), self._label("end")
        self._jump(head)
        self._start(head)
        self._branch(node.test, body, end)
        self.loops.append((head, end))
        self._start(body)
        self._block(node.body)
        self.loops.pop()
        self._jump(head)
        self._start(end)

    def _for(self, node: For) -> None:
        first = Value("0", WHOLE) if node.first is None else self.converted(self._value(node.first), WHOLE)
        last = self.converted(self._value(node.end), WHOLE)
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
        self._set(node.variable, at)
        self.loops.append((onwards, end))
        self._block(node.body)
        self.loops.pop()
        self._jump(onwards)
        self._start(onwards)
        if self.open:
            self.lines.append(f"store i64 {self.put(f'add nsw i64 {at.code}, 1')}, ptr {counter}")
        self._jump(head)
        self._start(end)

    def _leave(self, node: Leave) -> None:
        self._jump(self.loops[-1][1] if self.loops else self.refuse("break outside a loop"))

    def _proceed(self, node: Proceed) -> None:
        self._jump(self.loops[-1][0] if self.loops else self.refuse("continue outside a loop"))

    def _return(self, node: Return) -> None:
        if self.node.name == "kernel":
            self._return_results(node)
        elif node.several:
            self.refuse(f"{self.node.name} returns several values")
        elif not node.values:
            self.empty = True
            self._end("ret void")
        else:
            made = self._value(node.values[0])
            type = self.common(self.returns or UNKNOWN, made.type)
            if type != (self.returns or type):
                self.changed = True
            self.returns = type
            self._end(f"ret {LLVM[type]} {self.converted(made, type).code}")

    def _return_results(self, node: Return) -> None:
        if not node.several or self.results not in (0, len(node.values)):
            self.refuse("kernel returns something else than a tuple, always of one length")
        self.results = len(node.values)
        for at, each in enumerate(node.values):
            made = self._value(each)
            if made.type == FLOAT:
                self.refuse("kernel returns a float")
            place = self.put(f"getelementptr inbounds i64, ptr %results, i64 {at}")
            self.lines.append(f"store i64 {self.converted(made, WHOLE).code}, ptr {place}")
        self._end("ret void")

    def _evaluate(self, node: Evaluate) -> None:
        self._call(node.call)

    def _prefetch(self, node: Prefetch) -> None:
        self.lines.append(f"call void @llvm.prefetch.p0(ptr {self._place(node.place)[1]}, i32 1, i32 3, i32 1)")


_STATEMENTS: dict[type, Callable[[_Lowering, Any], None]] = {
    Assign: _Lowering._assign,
    Update: _Lowering._change,
    If: _Lowering._if,
    While: _Lowering._while,
    For: _Lowering._for,
    Leave: _Lowering._leave,
    Proceed: _Lowering._proceed,
    Return: _Lowering._return,
    Evaluate: _Lowering._evaluate,
    Prefetch: _Lowering._prefetch,
}
