"""FOLD: which runs can be kept as what is read of them, in place of their events.

A run can be folded if it only ever grows until it is a relation, or until all of it leaves. Then an aggregate over its events
so far is one over the run, and no event of it has to leave before the others.

Takes: the clause, the branches and the options. Gives: the branches with the slots that are folded, or a `Fault` with what
stands in the way. Never: decides what is kept (model/plans/folding.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairlead.language.checking.pattern import BranchPattern
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, did_you_mean, listed
from fairlead.model.events.types import Catalogue, Kind
from fairlead.model.expressions.expression import DISTINCT, Aggregate, Atom, Compare, Literal, Predicate, leaves
from fairlead.model.plans.folding import DIGITS_MAX, folding_of
from fairlead.model.plans.options import Disposal
from fairlead.model.plans.plan import Branch
from fairlead.model.plans.sequence import Loop, Take, takes

Reason = tuple[str, str]
"""Why a run cannot be folded, and what to write."""


def folded(
    clause: syntax.Fold,
    branches: tuple[Branch, ...],
    shapes: Sequence[BranchPattern],
    disposal: Disposal,
    within: bool,
) -> tuple[Branch, ...]:
    named = [each.text for each in clause.aliases]
    for at, alias in enumerate(clause.aliases):
        if not any(alias.text in shape.members for shape in shapes):
            known = list(dict.fromkeys(name for shape in shapes for name in shape.members))
            fix = did_you_mean(alias.text, known) or f"name one of {listed(known)}"
            raise Fault("L129", alias.span, f"the pattern has no element '{alias.text}'", fix)
        if alias.text in named[:at]:
            raise Fault("L129", alias.span, f"FOLD names '{alias.text}' twice", "name each run once")
    made = []
    for branch, shape in zip(branches, shapes, strict=True):
        slots: list[int] = []
        for alias in (each for each in clause.aliases if each.text in shape.members):
            (slot, *_) = shape.members[alias.text].slots
            if slot not in branch.runs:
                fix = f"write FOLD with a run, such as {alias.text}+, or leave it out"
                raise Fault("L129", alias.span, f"'{alias.text}' is one event or a fixed number of them, not a run", fix)
            reason = against(branch, slot, alias.text, disposal, within)
            if reason is not None:
                raise Fault("L130", alias.span, f"'{alias.text}' cannot be folded: {reason[0]}", reason[1])
            slots.append(slot)
        made.append(replace(branch, folded=tuple(sorted(slots))))
    return tuple(made)


def against(branch: Branch, slot: int, name: str, disposal: Disposal, within: bool) -> Reason | None:
    """`within`: the subscription has a WITHIN."""
    bound = branch.retention.get(branch.slots[slot].type)
    most = branch.runs[slot].most
    if branch.sequence is not None:
        return _against_sequence(branch, name, disposal, within)
    if len(branch.slots) > 1:
        return (
            "which of the queued events are in it depends on the other elements of the pattern",
            f"fold it in a subscription of its own, MATCH {branch.slots[slot].type} {name}+, and read what that emits",
        )
    if most is not None:
        return f"it holds at most {most} events", f"leave out FOLD, or write {name}{{{branch.runs[slot].least},}}"
    if within:
        fix = f"write RETAIN {name} 1 HOUR BATCH, or PER bucket(…, 1 HOUR), with which all of it leaves at once"
        return "with WITHIN, its events leave one by one", fix
    if bound is not None and not bound.batch:
        return "with RETAIN, its events leave one by one", f"write RETAIN {name} {bound.words} BATCH"
    if disposal is Disposal.FIRST_PREFIX:
        return "DISPOSAL FIRST PREFIX leaves all but its first event queued", "write DISPOSAL PREFIX INFIX, or leave it out"
    return None


def _against_sequence(branch: Branch, name: str, disposal: Disposal, within: bool) -> Reason | None:
    """A session: every row is added to the open run or ends it, and no row is searched again."""
    tree = branch.sequence
    single = isinstance(tree, Loop) and isinstance(tree.body, Take) and tree.longest and tree.most is None and tree.least <= 1
    if not single or within or disposal is not Disposal.PREFIX_INFIX:
        return (
            "a sequence can give up its rows one by one, and search the others again",
            f"leave out FOLD, or write a session: {name}+ LONGEST WITHIN 5 MINUTES OF PREVIOUS, without WITHIN and DISPOSAL",
        )
    asked = [*branch.predicates, *(each.until for each in takes(tree) if each.until is not None)] if tree is not None else []
    read = [leaf for each in asked for term in each.condition.terms for atom in term for leaf in leaves(atom)]
    if any(isinstance(leaf, Aggregate) for leaf in read) or any(each.looks_back > 1 for each in asked):
        return "its conditions read more than a row and the one before it", "leave out FOLD, or compare with prev(…) alone"
    if any(not _grows(each) for each in branch.having):
        fix = f"ask for a count, HAVING count({name}) >= 5, or EMIT the values and ask a reader of them"
        return "where HAVING is not true of all of it, it can be true of a part", fix
    return None


def _grows(predicate: Predicate) -> bool:
    """Counts that are large: true of no part of a run if not of the whole."""
    return len(predicate.condition.terms) == 1 and all(map(_is_large_count, predicate.condition.terms[0]))


def _is_large_count(atom: Atom) -> bool:
    if not isinstance(atom, Compare) or not isinstance(atom.left, Aggregate) or not isinstance(atom.right, Literal):
        return False
    return atom.left.function in ("count", DISTINCT) and atom.operator in (">", ">=")


def check_totals(clause: syntax.Fold, branches: Sequence[Branch], catalogue: Catalogue) -> None:
    """The sums that are kept are exact."""
    for branch in branches:
        folding = folding_of(branch, catalogue)
        for each in () if folding is None else folding.totals:
            if each.function == "sum" and each.type.kind is Kind.DECIMAL and each.type.precision > DIGITS_MAX:
                problem = f"a folded run keeps sums of DECIMALs of at most {DIGITS_MAX} digits, and '{each.attribute}' has"
                fix = f"declare it as DECIMAL({DIGITS_MAX}, {min(each.type.scale, DIGITS_MAX)}), or use avg"
                raise Fault("L131", clause.span, f"{problem} {each.type.precision}", fix)
