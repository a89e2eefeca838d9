"""Which subscription is checked before which: the emitters of a derived type before its readers.

Takes: the subscriptions as written and the declared types. Gives: an order in which every type is known before it is read,
otherwise the order of the text; or a `Fault` that prints the cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault
from fairlead.model.events.types import Catalogue

Emitters = Mapping[str, tuple[int, ...]]
"""For each emitted type the subscriptions that emit it, by their place in the text."""


def emitters(subscriptions: Sequence[syntax.Subscription]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for at, each in enumerate(subscriptions):
        if each.emit:
            found.setdefault(each.emit.type.text, []).append(at)
    return {name: tuple(emitting) for name, emitting in found.items()}


def order(subscriptions: Sequence[syntax.Subscription], declared: Catalogue, emitting: Emitters) -> list[int]:
    """Depth-first with an explicit stack: a chain of ten thousand subscriptions is valid."""
    upstream = [_upstream(each, declared, emitting) for each in subscriptions]
    done: dict[int, None] = {}
    for start in range(len(subscriptions)):
        path: list[int] = []
        on_path: set[int] = set()
        stack = [(start, False)]
        while stack:
            at, finished = stack.pop()
            if finished:
                done[path.pop()] = None
                on_path.discard(at)
            elif at in on_path:
                raise _cycle([*path[path.index(at) :], at], subscriptions)
            elif at not in done:
                path.append(at)
                on_path.add(at)
                stack.append((at, True))
                stack.extend((each, False) for each in reversed(upstream[at]))
    return list(done)


def _upstream(node: syntax.Subscription, declared: Catalogue, emitting: Emitters) -> list[int]:
    named = [each.text for each in node.reads]
    read = dict.fromkeys(name for each in named for name in (declared.accepts(each) if each in declared else (each,)))
    return list(dict.fromkeys(at for name in read for at in emitting.get(name, ())))


def _cycle(path: list[int], subscriptions: Sequence[syntax.Subscription]) -> Fault:
    """`path` runs from a reader to its emitters; the message shows it in the other direction."""
    steps = []
    for at in reversed(path[1:]):
        emit = subscriptions[at].emit
        steps.append(f"{subscriptions[at].name.text} -> {emit.type.text if emit else '?'}")
    first = subscriptions[path[-1]]
    span = first.emit.span if first.emit else first.span
    problem = f"subscriptions feed themselves: {' -> '.join((*steps, first.name.text))}"
    return Fault("L063", span, problem, "emit a type that none of them reads")
