"""Kernels written as text: a small part of Python, as the text of a program is, made into a program.

Takes: functions at the left margin; in them numbers in variables, arrays as parameters, `if`, `while`, `for … in range(…)` and
calls. A name is an array where it is indexed, measured, or passed on as one. Gives: a program. Raises InvariantError for the
rest of Python, with its line.
"""

from __future__ import annotations

import ast
from typing import NoReturn

from fairlead.errors import InvariantError
from fairlead.matching.compiled.representation.formulas import (
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
from fairlead.matching.compiled.representation.statements import (
    Assign,
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

SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not",
}  # fmt: skip


def parsed(text: str) -> Program:
    nodes = ast.parse(text).body
    for each in nodes:
        if not isinstance(each, ast.FunctionDef):
            _refuse(each)
    functions = [each for each in nodes if isinstance(each, ast.FunctionDef)]
    arrays, names = arrays_of(functions), {each.name for each in functions}
    return Program(_Parser(each, arrays[each.name], names).function() for each in functions)


def _refuse(node: ast.AST) -> NoReturn:
    what = f"{type(node).__name__}: {ast.unparse(node).splitlines()[0]}"
    raise InvariantError("X002", f"a kernel's source has what cannot be compiled: {what}", place=f"line {node.lineno}")  # type: ignore[attr-defined]


def arrays_of(functions: list[ast.FunctionDef]) -> dict[str, set[str]]:
    """The parameters of each function that are arrays."""
    found: dict[str, set[str]] = {each.name: set() for each in functions}
    by_name = {each.name: each for each in functions}
    while True:
        before = sum(map(len, found.values()))
        for function in functions:
            mine, names = found[function.name], {each.arg for each in function.args.args}
            for node in ast.walk(function):
                match node:
                    case ast.Subscript(value=ast.Name(id=name)) | ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
                        mine |= {name} & names
                    case ast.Attribute(value=ast.Name(id=name), attr="shape"):
                        mine |= {name} & names
                    case ast.Call(func=ast.Name(id=called), args=given) if called in by_name:
                        passed = zip(by_name[called].args.args, given, strict=False)
                        for parameter, each in passed:
                            if isinstance(each, ast.Name) and each.id in names and parameter.arg in found[called]:
                                mine.add(each.id)
        for function in functions:  # and what is passed as an array is one where it arrives
            for node in ast.walk(function):
                match node:
                    case ast.Call(func=ast.Name(id=called), args=given) if called in by_name:
                        for parameter, each in zip(by_name[called].args.args, given, strict=False):
                            if isinstance(each, ast.Name) and each.id in found[function.name]:
                                found[called].add(parameter.arg)
        if sum(map(len, found.values())) == before:
            return found


class _Parser:
    def __init__(self, node: ast.FunctionDef, arrays: set[str], functions: set[str]) -> None:
        self.node, self.arrays, self.functions = node, arrays, functions

    def function(self) -> KernelFunction:
        names = [each.arg for each in self.node.args.args]
        parameters = tuple(Array(name) if name in self.arrays else Variable(name) for name in names)
        return KernelFunction(self.node.name, parameters, self._block(self.node.body))

    def _block(self, body: list[ast.stmt]) -> tuple[Statement, ...]:
        return tuple(self._statement(each) for each in body if not isinstance(each, ast.Pass))

    def _statement(self, node: ast.stmt) -> Statement:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
                return Assign(tuple(map(self._place, targets)), tuple(map(self._value, values)))
            case ast.Assign(targets=[target], value=value):
                return Assign((self._place(target),), (self._value(value),))
            case ast.AugAssign(target=target, op=operator, value=value):
                return Update(self._place(target), SIGNS[type(operator)], self._value(value))
            case ast.If(test=test, body=body, orelse=otherwise):
                return If(self._value(test), self._block(body), self._block(otherwise))
            case ast.While(test=test, body=body, orelse=[]):
                return While(self._value(test), self._block(body))
            case ast.For(
                target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[*ends]), body=body, orelse=[]
            ):
                if len(ends) > 2:
                    _refuse(node)
                first = self._value(ends[0]) if len(ends) > 1 else None
                return For(Variable(name), first, self._value(ends[-1]), self._block(body))
            case ast.Break():
                return Leave()
            case ast.Continue():
                return Proceed()
            case ast.Return(value=None):
                return Return()
            case ast.Return(value=ast.Tuple(elts=values)):
                return Return(tuple(map(self._value, values)), True)
            case ast.Return(value=ast.expr() as value):
                return Return((self._value(value),))
            case ast.Expr(value=ast.Call(func=ast.Name(id="prefetch"), args=[ast.Subscript() as place])):
                made = self._place(place)
                assert isinstance(made, ArrayElement)
                return Prefetch(made)
            case ast.Expr(value=ast.Call() as called):
                if isinstance(made_call := self._value(called), FunctionCall):
                    return Evaluate(made_call)
        _refuse(node)

    def _place(self, node: ast.expr) -> Place:
        value = self._value(node)
        return value if isinstance(value, Variable | ArrayElement) else _refuse(node)

    def _value(self, node: ast.expr) -> Formula:
        match node:
            case ast.Constant(value=int() | float() as value):
                return Constant(value)
            case ast.Name(id=name):
                return Variable(name)
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant(value=int() as at)
            ):
                return Length(Array(name), at)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=indices)):
                return ArrayElement(Array(name), tuple(map(self._value, indices)))
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                return ArrayElement(Array(name), (self._value(index),))
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in SIGNS:
                return Binary(SIGNS[type(operator)], self._value(left), self._value(right))
            case ast.UnaryOp(op=unary, operand=operand):
                return Unary(SIGNS[type(unary)], self._value(operand))
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in SIGNS:
                return NumberComparison(self._value(left), SIGNS[type(sign)], self._value(right))
            case ast.Compare(left=left, ops=signs, comparators=others):
                return Between(self._value(left), tuple(SIGNS[type(each)] for each in signs), tuple(map(self._value, others)))
            case ast.BoolOp(op=either, values=values):
                return Boolean("and" if isinstance(either, ast.And) else "or", tuple(map(self._value, values)))
            case ast.IfExp(test=test, body=yes, orelse=no):
                return ChosenValue(self._value(yes), self._value(test), self._value(no))
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
                return Length(Array(name))
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]):
                if name in self.functions:
                    return FunctionCall(name, tuple(self._argument(each) for each in given))
                return Intrinsic(name, tuple(map(self._value, given)))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), args=given, keywords=[]):
                return Intrinsic(f"np.{name}", tuple(map(self._value, given)))
        _refuse(node)

    def _argument(self, node: ast.expr) -> Formula | Array:
        return Array(node.id) if isinstance(node, ast.Name) and node.id in self.arrays else self._value(node)
