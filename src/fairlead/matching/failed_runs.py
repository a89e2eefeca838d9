"""Where a search of a sequence may remember that it failed: runs whose continuation depends on nothing before their last row.

    d{4,} NEXT u{3,}   with conditions on neighbours   →   what failed after a row of d fails there for a later start too

Without this, a start that fails late costs all its rows again for each of them that begins the next one. Two paths that stand
in such a run at the same row have the same ways on, but that one may have too few rows for `least`. So a search that comes to
a row where one failed before with as many rows, or with `least` of them, fails there too.

Takes: a branch. Gives: the slots of such runs, and for `explain` what sequences have that costs more. Never: decides what
failed, or that it was no time limit that made it fail: these depend on the start.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import DISTINCT, Aggregate, Leaf, Predicate, Previous, leaves
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.sequence import Chain, Choice, Loop, SequencePart, Take, takes


def remembered_runs(subscription: Subscription, branch: Branch, catalogue: Catalogue) -> frozenset[int]:
    """None where nothing is tried twice (STEPWISE), or where the time of other keys closes paths, which may open again."""
    if branch.sequence is None or subscription.matching.stepwise or branch.timed:
        return frozenset()
    found = _runs(branch.sequence, frozenset())
    return frozenset(slot for slot, after in found if _only_goes_on(slot, after, branch, catalogue))


def lasting_runs(subscription: Subscription, catalogue: Catalogue) -> bool:
    """Whether this holds for all elements of sequences that can take any number of rows."""
    return all(
        remembered_runs(subscription, each, catalogue).issuperset(_endless(each.sequence, False))
        for each in subscription.branches
        if each.sequence is not None
    )


def _endless(part: SequencePart, inside: bool) -> Iterator[int]:
    match part:
        case Take():
            if inside:
                yield part.slot
        case Loop():
            yield from _endless(part.body, inside or part.most is None)
        case _:
            for each in part.parts:
                yield from _endless(each, inside)


def counts_different(branch: Branch) -> bool:
    """Whether a sequence counts the different values of a run."""
    assert branch.sequence is not None
    untils = [each.until for each in takes(branch.sequence) if each.until is not None]
    read = [leaf for each in (*branch.predicates, *branch.having, *untils) for leaf in _leaves(each)]
    return any(isinstance(leaf, Aggregate) and leaf.function == DISTINCT for leaf in read)


def _runs(part: SequencePart, after: frozenset[int]) -> Iterator[tuple[int, frozenset[int]]]:
    """The runs of at least one row and any number, outside of repeated groups, each with the slots that follow it."""
    match part:
        case Loop(body=Take(slot=slot), least=least, most=None) if least:
            yield slot, after
        case Choice():
            for each in part.parts:
                yield from _runs(each, after)
        case Chain():
            for each in reversed(part.parts):
                yield from _runs(each, after)
                after = after | {take.slot for take in takes(each)}


def _only_goes_on(run: int, after: frozenset[int], branch: Branch, catalogue: Catalogue) -> bool:
    """Whether nothing that is asked from here on reads what was taken before the last row of the run."""
    assert branch.sequence is not None
    untils = [each.until for each in takes(branch.sequence) if each.until is not None]
    asked = [each for each in (*branch.predicates, *untils) if each.about == run or each.about in after]
    types = {*catalogue.accepts(branch.signature[run])}

    def goes_on(leaf: Leaf, about: int | None) -> bool:
        match leaf:
            case Previous():
                return leaf.back == 1 and types <= {*catalogue.accepts(branch.signature[leaf.slot])}
            case Aggregate():
                return after.issuperset(leaf.slots) or (leaf.function == "last" and leaf.slots == (run,))
        return leaf.slot == about or leaf.slot in after

    return all(goes_on(leaf, each.about) for each in (*asked, *branch.having) for leaf in _leaves(each))


def _leaves(predicate: Predicate) -> Iterator[Leaf]:
    for term in predicate.condition.terms:
        for atom in term:
            yield from leaves(atom)
