"""RETAIN: the bounds of the queues that its elements share with others of their type.

Takes: the clause, the branches and their members. Gives: the branches with the bounds. Never: looks at a condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairlead.language.checking.pattern import BranchPattern
from fairlead.language.checking.typing.literals import DIGITS_MAX, duration
from fairlead.language.checking.typing.scope import AliasMember
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, did_you_mean, listed
from fairlead.model.plans.plan import Branch
from fairlead.model.plans.retention import Retention

COUNT_MAX = 1_000_000_000
"""Events of one queue: more than a machine has room for."""


def retaining(clause: syntax.Retaining, branches: tuple[Branch, ...], shapes: Sequence[BranchPattern]) -> tuple[Branch, ...]:
    for each in clause.bounds:
        if not any(each.alias.text in shape.members for shape in shapes):
            known = list(dict.fromkeys(name for shape in shapes for name in shape.members))
            fix = did_you_mean(each.alias.text, known) or f"name one of {listed(known)}"
            raise Fault("L120", each.alias.span, f"the pattern has no element '{each.alias.text}'", fix)
    bounds = [_bound(each) for each in clause.bounds]
    if any(each.span_us is not None for each in bounds):
        _check_times(clause, shapes)
    return tuple(
        replace(branch, retained=_retained(clause, bounds, branch, shape.members))
        for branch, shape in zip(branches, shapes, strict=True)
    )


def _bound(node: syntax.QueueBound) -> Retention:
    amount = node.amount
    if amount.unit.upper not in ("EVENT", "EVENTS"):
        return Retention(span_us=duration(amount), batch=node.batch)
    whole = amount.amount.isdigit() and len(amount.amount) < DIGITS_MAX
    if not whole or not 1 <= int(amount.amount) <= COUNT_MAX:
        problem = f"RETAIN {amount.amount} EVENTS: a queue keeps a whole number of events, from 1 to {COUNT_MAX:,}"
        raise Fault("L121", amount.span, problem, f"write, for example, RETAIN {node.alias.text} 10 EVENTS")
    return Retention(count=int(amount.amount), batch=node.batch)


def _retained(
    clause: syntax.Retaining, bounds: Sequence[Retention], branch: Branch, members: Mapping[str, AliasMember]
) -> tuple[tuple[str, Retention], ...]:
    found: dict[str, Retention] = {}
    for node, bound in zip(clause.bounds, bounds, strict=True):
        member = members.get(node.alias.text)
        if member is None:
            continue
        name = member.type.name
        if name in found:
            problem = f"RETAIN bounds the queue of '{name}' twice: elements of one type share it"
            raise Fault("L120", node.alias.span, problem, "name one of these elements")
        _check_room(node, bound, branch, name)
        found[name] = bound
    return tuple(sorted(found.items()))


def _check_room(node: syntax.QueueBound, bound: Retention, branch: Branch, name: str) -> None:
    """A match needs all its events of a type in the queue at once."""
    slots = branch.slots_of_type[name]
    needed = sum(branch.runs[slot].least if slot in branch.runs else 1 for slot in slots)
    if bound.count is not None and bound.count < needed:
        problem = f"RETAIN {node.alias.text} {bound.words}: a match needs {needed} events of '{name}' at once"
        raise Fault("L121", node.amount.span, problem, f"write RETAIN {node.alias.text} {needed} EVENTS, or more")


def _check_times(clause: syntax.Retaining, shapes: Sequence[BranchPattern]) -> None:
    """The clock of a key is moved by all events of the pattern."""
    for shape in shapes:
        for each in shape.nodes:
            type_ = shape.members[each.alias.text].type
            if not type_.timed:
                problem = f"RETAIN by time needs times, and events of type '{type_.name}' have none"
                raise Fault("L122", clause.span, problem, f"declare {type_.name} with TIME, or retain a number of EVENTS")
