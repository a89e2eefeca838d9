"""MATCHING, DISPOSAL, KEEP, RETAIN and LIMIT: what is selected, what leaves, what stays.

Takes: the syntax of a subscription and its branches. Gives: the options, and the branches with the slots that they name.
Never: looks at a condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairlead.dataclass import dataclass
from fairlead.language.checking.pattern import BranchPattern
from fairlead.language.checking.retention import retaining
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, did_you_mean, listed
from fairlead.model.limits import LIMITS
from fairlead.model.plans.options import Disposal, Matching
from fairlead.model.plans.plan import Branch


@dataclass(frozen=True)
class Options:
    matching: Matching
    disposal: Disposal
    advance: int
    limit_per_event: int | None
    branches: tuple[Branch, ...]


def options(node: syntax.Subscription, branches: tuple[Branch, ...], shapes: Sequence[BranchPattern]) -> Options:
    clauses = {type(each): each for each in node.clauses}
    leaving = clauses.get(syntax.DisposalClause)
    matching = _matching(clauses.get(syntax.MatchingClause))
    disposal, advance = Disposal.PREFIX_INFIX, 0
    if isinstance(leaving, syntax.DisposalClause):
        if leaving.advance is not None:
            disposal, advance = _advance(leaving.advance, branches, matching)
        elif leaving.upto is not None:
            branches = tuple(
                replace(branch, upto=_slots(leaving.upto, shape, shapes))
                for branch, shape in zip(branches, shapes, strict=True)
            )
            single = not matching.all and all(
                len(branch.upto) == 1 and branch.upto[0] not in branch.runs for branch in branches
            )
            disposal = Disposal.UPTO_LAST if _is_last(leaving) or single else Disposal.UPTO_FIRST
        else:
            disposal = next(each for each in Disposal if each.words == leaving.words)
    keeping = clauses.get(syntax.Keeping)
    if isinstance(keeping, syntax.Keeping):
        branches = _keeping(keeping, branches, shapes)
    bounding = clauses.get(syntax.Retaining)
    if isinstance(bounding, syntax.Retaining):
        branches = retaining(bounding, branches, shapes)
    return Options(matching, disposal, advance, _limit(clauses.get(syntax.EventLimit), matching), branches)


def _matching(clause: syntax.Clause | None) -> Matching:
    if not isinstance(clause, syntax.MatchingClause):
        return Matching.FIRST
    if "STEPWISE" in clause.words:
        if "RECENT" in clause.words:
            fix = (
                "write MATCHING FIRST STEPWISE, with which an attempt continues until it fails; if the newest attempt should"
                " count, write a subscription for each step, with MATCHING RECENT, that reads what the one before emits"
            )
            raise Fault("L101", clause.span, "MATCHING RECENT STEPWISE is not supported", fix)
        return Matching.FIRST_STEPWISE
    return next(each for each in Matching if each.words == clause.words)


def _advance(number: syntax.Whole, branches: Sequence[Branch], matching: Matching) -> tuple[Disposal, int]:
    """One event is FIRST PREFIX; as many as a match has of any type are PREFIX INFIX."""
    if not 1 <= number.value <= LIMITS.instances_max:
        nothing = ", or DISPOSAL NONE if nothing should leave"
        fix = "write ADVANCE 2" + ("" if any(branch.sequence for branch in branches) else nothing)
        problem = f"ADVANCE {number.value}: a match has between 1 and {LIMITS.instances_max} events"
        raise Fault("L076", number.span, problem, fix)
    if number.value == 1:
        return Disposal.FIRST_PREFIX, 0
    fixed = not matching.all and not any(branch.runs or branch.sequence for branch in branches)
    if fixed and all(number.value >= len(slots) for branch in branches for slots in branch.slots_of_type.values()):
        return Disposal.PREFIX_INFIX, 0
    return Disposal.ADVANCE, number.value


def _is_last(clause: syntax.DisposalClause) -> bool:
    """As SKIP TO x in SQL, UPTO x means the last."""
    word = "LAST" if clause.end is None else clause.end.text.upper()
    if word not in ("FIRST", "LAST") and clause.end is not None:
        raise Fault("L001", clause.end.span, f"unexpected '{clause.end.text}'", "write UPTO x, UPTO FIRST x or UPTO LAST x")
    return word == "LAST"


def _slots(alias: syntax.Word, shape: BranchPattern, shapes: Sequence[BranchPattern]) -> tuple[int, ...]:
    member = shape.members.get(alias.text)
    if member is None and any(alias.text in each.members for each in shapes):
        problem = f"UPTO names '{alias.text}', which a part of the OR does not have"
        raise Fault("L075", alias.span, problem, "name an element of every part, or write subscriptions of their own")
    if member is None:
        raise _unknown(alias, shapes)
    return member.slots


def _keeping(clause: syntax.Keeping, branches: tuple[Branch, ...], shapes: Sequence[BranchPattern]) -> tuple[Branch, ...]:
    named = [each.text for each in clause.aliases]
    for at, alias in enumerate(clause.aliases):
        if not any(alias.text in shape.members for shape in shapes):
            raise _unknown(alias, shapes)
        if alias.text in named[:at]:
            raise Fault("L075", alias.span, f"KEEP names '{alias.text}' twice", "name each element once")
    return tuple(
        replace(
            branch, kept=tuple(sorted(slot for name in named if name in shape.members for slot in shape.members[name].slots))
        )
        for branch, shape in zip(branches, shapes, strict=True)
    )


def _unknown(alias: syntax.Word, shapes: Sequence[BranchPattern]) -> Fault:
    known = list(dict.fromkeys(name for shape in shapes for name in shape.members))
    fix = did_you_mean(alias.text, known) or f"name one of {listed(known)}"
    return Fault("L075", alias.span, f"the pattern has no element '{alias.text}'", fix)


def _limit(clause: syntax.Clause | None, matching: Matching) -> int | None:
    if not isinstance(clause, syntax.EventLimit):
        return None
    most = LIMITS.relations_per_event_max
    if not 1 <= clause.count.value <= most:
        raise Fault(
            "L076",
            clause.count.span,
            f"LIMIT {clause.count.value}: a limit is between 1 and {most:,}",
            "write LIMIT 10 PER EVENT",
        )
    if not matching.all:
        problem = f"LIMIT … PER EVENT, and MATCHING {matching.words} selects one relation"
        raise Fault("L077", clause.span, problem, "write MATCHING ALL, or leave out the limit")
    return clause.count.value
