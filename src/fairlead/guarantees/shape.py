"""The shape of a conjunction: what, besides matching and disposal, decides which properties it keeps.

    MATCH A a AND B b                        several types, one instance each            NS
    MATCH A a AND B b WHERE a.x < b.x        the same, with a link between the types     NSX
    MATCH A a[2] WHERE a[2].x = 5            one type, instances with unlike conditions  1U

A *link* is anything that connects two members: a predicate over both, a THEN, a WITHOUT … BETWEEN, a WITHOUT … BEFORE that
reads both or could note one of them, or types that overlap (a subtype, a union), whose members must be distinct. A WITHOUT …
BEFORE that is about one member alone is a condition on that member: what stands before an event is the same for everybody.
The instances of a type are *alike* if they have the same conditions on an event and no link touches them: then they are
interchangeable.

Takes: a branch. Gives: its shape, its links, and the slots whose event nothing but itself can keep from delivery.
Never: looks at values; two branches of one shape may still differ in their losses, so a verdict for a shape says that some
branch of this shape loses it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import lru_cache, wraps
from itertools import combinations
from typing import Protocol, TypeVar

from fairlead.guarantees.constructs import free_beginnings
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import render_condition
from fairlead.model.plans.options import Matching
from fairlead.model.plans.plan import Branch


class ConjunctionShape(Enum):
    """Each with its code in the table and its words. A later one is never simpler than an earlier one."""

    EVENT = ("E", "a single event")
    ALIKE = ("1A", "one type, interchangeable instances")
    UNLIKE = ("1U", "one type, instances with unlike conditions")
    WITHIN = ("1W", "one type, conditions between its instances")
    SINGLES = ("NS", "several types, one instance each, no conditions between members")
    SINGLES_ACROSS = ("NSX", "several types, one instance each, conditions between types")
    SEVERAL_ALIKE = ("NA", "several types, interchangeable instances, no conditions between members")
    SEVERAL_ALIKE_ACROSS = ("NAX", "several types, interchangeable instances of one, conditions between others")
    SEVERAL_UNLIKE = ("NU", "several types, instances with unlike conditions, no conditions between members")
    SEVERAL_WITHIN = ("NW", "several types, conditions between instances of one type")
    SEVERAL_ACROSS = ("NX", "several types, several instances, conditions between types")

    @property
    def code(self) -> str:
        return self.value[0]

    @property
    def words(self) -> str:
        return self.value[1]


SIMPLER: dict[ConjunctionShape, tuple[ConjunctionShape, ...]] = {
    ConjunctionShape.EVENT: (),
    ConjunctionShape.ALIKE: (ConjunctionShape.EVENT,),
    ConjunctionShape.UNLIKE: (ConjunctionShape.ALIKE,),
    ConjunctionShape.WITHIN: (ConjunctionShape.UNLIKE,),
    ConjunctionShape.SINGLES: (ConjunctionShape.EVENT,),
    ConjunctionShape.SINGLES_ACROSS: (ConjunctionShape.SINGLES,),
    ConjunctionShape.SEVERAL_ALIKE: (ConjunctionShape.SINGLES, ConjunctionShape.ALIKE),
    ConjunctionShape.SEVERAL_ALIKE_ACROSS: (ConjunctionShape.SEVERAL_ALIKE, ConjunctionShape.SINGLES_ACROSS),
    ConjunctionShape.SEVERAL_UNLIKE: (ConjunctionShape.SEVERAL_ALIKE, ConjunctionShape.UNLIKE),
    ConjunctionShape.SEVERAL_WITHIN: (ConjunctionShape.SEVERAL_UNLIKE, ConjunctionShape.WITHIN),
    ConjunctionShape.SEVERAL_ACROSS: (ConjunctionShape.SEVERAL_WITHIN, ConjunctionShape.SEVERAL_ALIKE_ACROSS),
}
"""The shapes directly below each. What a simpler shape loses, a richer one loses too (the table is checked for it)."""


def is_at_most(simple: ConjunctionShape, rich: ConjunctionShape) -> bool:
    """`simple` is `rich` or below it."""
    return simple is rich or any(is_at_most(simple, below) for below in SIMPLER[rich])


Found = TypeVar("Found", covariant=True)


class OfBranch(Protocol[Found]):
    def __call__(self, branch: Branch, catalogue: Catalogue | None = None) -> Found: ...


class _Asked:
    """A branch and its catalogue, equal if they are the same objects: comparing their contents would cost as much as asking."""

    __slots__ = ("branch", "catalogue")

    def __init__(self, branch: Branch, catalogue: Catalogue | None) -> None:
        self.branch, self.catalogue = branch, catalogue

    def __hash__(self) -> int:
        return id(self.branch)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self.branch is other.branch and self.catalogue is other.catalogue


def once_per_branch(compute: Callable[[Branch, Catalogue | None], Found]) -> OfBranch[Found]:
    """Every property of every runtime asks the same about a branch; a subscription of 16 branches is asked about in turn."""
    computed = lru_cache(maxsize=16)(lambda asked: compute(asked.branch, asked.catalogue))

    @wraps(compute)
    def found(branch: Branch, catalogue: Catalogue | None = None) -> Found:
        result: Found = computed(_Asked(branch, catalogue))
        return result

    return found


@once_per_branch
def links(branch: Branch, catalogue: Catalogue | None = None) -> tuple[frozenset[int], ...]:
    """The sets of member slots that are linked. With a catalogue, overlapping types are linked too."""
    members = range(len(branch.slots))
    conditions = (*branch.predicates, *branch.having)
    found = [frozenset(slot for slot in each.slots if slot in members) for each in conditions]
    found += [each.members(len(members)) for each in branch.clauses if not each.waits]
    if catalogue is not None:
        before = [each for each in branch.prompt if each.since is None]
        found += [branch.twins(each, catalogue) | each.members(len(members)) for each in before]
    for one, other in overlaps(branch, catalogue):
        found.append(frozenset((*branch.slots_of_type[one], *branch.slots_of_type[other])))
    return tuple(each for each in found if len(each) > 1)


@once_per_branch
def overlaps(branch: Branch, catalogue: Catalogue | None) -> tuple[tuple[str, str], ...]:
    """The pairs of types of the branch such that one event can be in both queues."""
    if catalogue is None:
        return ()
    return tuple(
        (one, other)
        for one, other in combinations(branch.queue_types, 2)
        if set(catalogue.accepts(one)) & set(catalogue.accepts(other))
    )


def unary_texts(branch: Branch, slot: int) -> frozenset[str]:
    """The slot's conditions on a single event, in words that do not name the slot."""
    names = ["·"] * (slot + 1)
    own = {render_condition(each.condition, names) for each in branch.predicates if each.slots == (slot,)}
    run = branch.runs.get(slot)  # beside another instance of its type, a run is not alike
    said = () if run is None else (run.canonical,)
    return frozenset({*own, *said, *(each.line for each in branch.prompt if each.anchors == (slot,))})


def alike(branch: Branch, name: str, tied: tuple[frozenset[int], ...]) -> bool:
    """The instances of the type are interchangeable: they have the same conditions, and no link touches them."""
    slots = branch.slots_of_type[name]
    return len({unary_texts(branch, slot) for slot in slots}) == 1 and not any(link & set(slots) for link in tied)


@once_per_branch
def shape_of(branch: Branch, catalogue: Catalogue | None = None) -> ConjunctionShape:
    tied = links(branch, catalogue)
    return _shape(branch, tied, [name for name in branch.queue_types if len(branch.slots_of_type[name]) > 1])


def _shape(branch: Branch, tied: tuple[frozenset[int], ...], multiple: list[str]) -> ConjunctionShape:
    interchangeable = all(alike(branch, name, tied) for name in multiple)
    if len(branch.slots) == 1:
        return ConjunctionShape.EVENT
    if len(branch.queue_types) == 1:
        return ConjunctionShape.WITHIN if tied else ConjunctionShape.ALIKE if interchangeable else ConjunctionShape.UNLIKE
    if not multiple:
        return ConjunctionShape.SINGLES_ACROSS if tied else ConjunctionShape.SINGLES
    if interchangeable:
        return ConjunctionShape.SEVERAL_ALIKE_ACROSS if tied else ConjunctionShape.SEVERAL_ALIKE
    across = any(len({branch.slots[slot].type for slot in link}) > 1 for link in tied)
    return (
        ConjunctionShape.SEVERAL_ACROSS
        if across
        else ConjunctionShape.SEVERAL_WITHIN
        if tied
        else ConjunctionShape.SEVERAL_UNLIKE
    )


def oldest_slot(branch: Branch, name: str, matching: Matching) -> int:
    """The slot of the instance that is the oldest in a relation: the first under FIRST, the last under RECENT."""
    slots = [slot for slot in branch.slots_of_type[name] if slot not in branch.runs] or branch.slots_of_type[name]
    return slots[-1] if matching.recent else slots[0]


def free_slots(branch: Branch, matching: Matching, catalogue: Catalogue | None = None) -> tuple[int, ...]:
    """The slots that event validity is about: no link and no clause about other events touches them, and later partners fit,
    since the slot is the oldest instance of its type, or a run that HAVING does not name. Of a sequence, what a relation can
    begin with."""
    if branch.sequence is not None:
        return free_beginnings(branch)
    tied = links(branch, catalogue)
    bound = frozenset().union(*tied, *(each.anchors for each in branch.noting), *(each.slots for each in branch.having))
    oldest = {oldest_slot(branch, name, matching) for name in branch.queue_types}
    return tuple(slot for slot in range(len(branch.slots)) if slot in oldest | branch.runs.keys() and slot not in bound)


def shape_for_event_validity(branch: Branch, catalogue: Catalogue | None = None) -> ConjunctionShape:
    """The shape as far as FIRST is concerned: a type with several instances of which the oldest is linked has no event for
    which the property guarantees anything, and FIRST takes the head of every free queue whatever the linked ones do."""
    tied = links(branch, catalogue)
    free = free_slots(branch, Matching.FIRST, catalogue)
    multiple = [name for name in branch.queue_types if len(branch.slots_of_type[name]) > 1]
    promising = [name for name in multiple if branch.slots_of_type[name][0] in free]
    return _shape(branch, tied, promising)
