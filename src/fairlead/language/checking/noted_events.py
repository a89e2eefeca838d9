"""The clauses of a subscription that note events beside the members: which branches they belong to, and at which slots.

Takes: the clauses and the branches' shapes. Gives: for each branch the clauses that belong to it (it has their anchors), on
slots after the members'. Never: lets a clause belong to no branch, or knows what one asks for (language/clauses/).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairlead.language.checking.pattern import BranchPattern, check_readable
from fairlead.language.checking.typing.conditions import conjuncts, predicate
from fairlead.language.checking.typing.scope import AliasMember, Scope, check_index
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, did_you_mean, listed
from fairlead.language.parsing.text import RuleText
from fairlead.model.clauses.clause import NotingClause
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import Predicate
from fairlead.model.plans.canonical import clauses_in_order

Belonging = dict[str, tuple[syntax.NotingNode, AliasMember]]
"""The clauses of a branch by alias, each with the slot of the events that it notes."""


def belonging(clauses: Sequence[syntax.NotingNode], shapes: Sequence[BranchPattern], catalogue: Catalogue) -> list[Belonging]:
    """For each branch the clauses that belong to it, as the text has them."""
    found: list[Belonging] = [{} for _ in shapes]
    for clause in clauses:
        for word in clause.reads:
            check_readable(word, catalogue)
        clause.check_types(catalogue)
        fitting = [at for at, shape in enumerate(shapes) if all(each.head.text in shape.members for each in clause.anchors)]
        if not fitting:
            raise _unknown_anchor(clause, shapes)
        alias = clause.alias.text
        for at in fitting:
            noted = clause.noted(shapes[at].members)
            if alias in shapes[at].members or alias in found[at]:
                problem = f"the absent event has the same name as another element, '{alias}'"
                raise Fault("L021", clause.alias.span, problem, f"give it an alias: {clause.word} {noted} x …")
            slot = len(shapes[at].slots) + len(found[at])
            found[at][alias] = (clause, AliasMember(alias, catalogue[noted], (slot,)))
    return found


def in_canonical_order(mine: Belonging, shape: BranchPattern, source: RuleText) -> Belonging:
    """The clauses of one branch as `clauses_in_order` has them, with slots in that order."""
    if len(mine) < 2:
        return mine
    found: Belonging = {}
    for each in clauses_in_order(noting(mine, shape, source), [f"{slot.type}[{slot.instance}]" for slot in shape.slots]):
        clause, member = mine[each.alias]
        found[each.alias] = clause, replace(member, slots=(len(shape.slots) + len(found),))
    return found


def noting(mine: Belonging, shape: BranchPattern, source: RuleText) -> tuple[NotingClause, ...]:
    """The clauses of one branch, checked, in the order of their slots."""
    made = []
    for clause, member in mine.values():
        slots = [_slot(each, shape.members) for each in clause.anchors]
        hidden = {alias: each.word for alias, (each, _) in mine.items()}
        scope = Scope({**shape.members, member.alias: member}, hidden, shape.elsewhere)
        predicates = _predicates(clause, member, scope, source)
        made.append(clause.planned(member, slots, shape.members, predicates))
    return tuple(made)


def _slot(anchor: syntax.Reference, members: Mapping[str, AliasMember]) -> int:
    member = members[anchor.head.text]
    if member.run:
        fix = "name an element that is no run"
        raise Fault("L099", anchor.span, f"the clause is about single members, and '{member.alias}' is a run", fix)
    if anchor.index is None and member.count > 1:
        problem = f"'{member.alias}' has {member.count} instances"
        raise Fault("L056", anchor.span, problem, f"name one of them, such as {member.alias}[{member.count}]")
    return member.slots[(check_index(anchor.index, member) if anchor.index else 1) - 1]


def _predicates(clause: syntax.NotingNode, member: AliasMember, scope: Scope, source: RuleText) -> tuple[Predicate, ...]:
    if clause.where is None:
        return ()
    found = tuple(predicate(each, scope, source) for each in conjuncts(clause.where.condition))
    if any(slot in scope.runs for each in found for slot in each.slots):
        problem = f"the WHERE of a {clause.word} is about single members, and this one names a run"
        raise Fault("L099", clause.where.condition.span, problem, "compare with an element that is no run")
    if not any(member.slots[0] in each.slots for each in found):
        problem = f"this WHERE belongs to the {clause.word} before it, but does not name '{member.alias}'"
        raise Fault("L055", clause.where.condition.span, problem, f"put the WHERE of the pattern before {clause.word}")
    return found


def _unknown_anchor(clause: syntax.NotingNode, shapes: Sequence[BranchPattern]) -> Fault:
    known = list(dict.fromkeys(alias for shape in shapes for alias in shape.members))
    for anchor in clause.anchors:
        if anchor.head.text not in known:
            fix = did_you_mean(anchor.head.text, known, f"known are {listed(known, 'and')}")
            return Fault("L030", anchor.head.span, f"there is no element '{anchor.head.text}' in the pattern", fix)
    return Fault(
        "L056", clause.anchors[1].span, "no single branch of the pattern has both members", "name members of one branch"
    )
