"""Functions of a text that several events make, moved to where the text of one event is.

    lower(coalesce(a.s, b.s))       coalesce(lower(a.s), lower(b.s))          First
    length(min(q.s))                length(q[i].s), where q[i].s is least     Extreme
    min(q.s) LIKE 'x%'              q[i].s LIKE 'x%', where q[i].s is least

A kernel knows texts by their numbers and can compute nothing of them, but a function of one event's text is computed for whole
columns beforehand (vector.py). This is sound since functions of texts are strict (NULL of NULL) and total (never NULL of a
text): `f(a)` is NULL exactly where `a` is, so coalesce chooses the same place. Of equal texts the results are equal too.

Takes: an expression. Gives: how its value is chosen among expressions; `None` if it reads several events in another way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fairlead.model.events.types import Kind
from fairlead.model.expressions.expression import Aggregate, Call, Expression, Field, Like, slots_of

OF_TEXT = frozenset({"lower", "upper", "trim", "length", "substring", "instr", "rlike"})
"""Their first argument is a text; they are strict and total."""


@dataclass(frozen=True)
class First:
    """The first option that is not NULL."""

    options: tuple[Pushed, ...]


@dataclass(frozen=True)
class Extreme:
    """`values[i]` where `texts[i]` is the least, or the greatest, of those that are not NULL."""

    least: bool
    texts: tuple[Field, ...]
    values: tuple[Expression, ...]


Pushed = Expression | First | Extreme
"""A choice; an expression alone stands for itself and reads at most one event."""


def pushed(node: Expression) -> Pushed | None:
    if len(slots_of(node)) <= 1:
        return node
    match node:
        case Call(function="coalesce"):
            options = [each for each in map(pushed, node.arguments) if each is not None]
            return First(tuple(options)) if len(options) == len(node.arguments) else None
        case Aggregate(function="min" | "max", attribute=str() as name, kind=Kind.STRING):
            texts = tuple(Field(slot, name, node.kind) for slot in node.slots)
            return Extreme(node.function == "min", texts, texts)
        case Call() if node.function in OF_TEXT:
            return _applied(lambda text: replace(node, arguments=(text, *node.arguments[1:])), pushed(node.arguments[0]))
        case Like():
            return _applied(lambda text: replace(node, operand=text), pushed(node.operand))
    return None


def _applied(function: Callable[[Expression], Expression], chosen: Pushed | None) -> Pushed | None:
    match chosen:
        case None:
            return None
        case First():
            options = [each for each in (_applied(function, option) for option in chosen.options) if each is not None]
            return First(tuple(options)) if len(options) == len(chosen.options) else None
        case Extreme():
            made = tuple(map(function, chosen.values))
            return replace(chosen, values=made) if all(len(slots_of(each)) <= 1 for each in made) else None
    made_of_one = function(chosen)
    return made_of_one if len(slots_of(made_of_one)) <= 1 else None
