"""What a sequence is made of: what, besides matching, disposal and limits of time, decides which properties it keeps.

    A a NEXT B b+ WHERE b.x > prev(b.x)    NEXT, LONGEST, an endless run, prev

What a sequence of some constructs loses, a sequence with more of them loses too, as far as the verdicts say: like shapes, a
verdict for constructs says that some sequence of these constructs loses the property.

For the validities it has to have the same limits of time: a start that waits for ever without one is given up with it.

Takes: a subscription and its branch that is a sequence. Gives: its constructs, its cell, how many rows it takes. Never: sees an
event.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from fairlead.model.expressions.expression import Aggregate, Predicate, Previous, leaves
from fairlead.model.plans.options import Disposal
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.sequence import Chain, Choice, Loop, SequencePart, Take, can_be_empty, first_takes, takes


class Construct(Enum):
    """Each in words."""

    THEN = "rows may be left out"
    NEXT = "rows next to each other (NEXT, counted elements)"
    LONGEST = "a run or group that takes as many rows as it can"
    SHORTEST = "a run or group that takes as few rows as it can"
    ENDLESS = "a run or group without a largest number"
    OPTIONAL = "a run or group that can be empty"
    GROUP = "a quantified group"
    ELSE = "alternatives"
    UNTIL = "a run that ends before an event"
    WHERE = "conditions on single events"
    LINK = "conditions between elements"
    PREV = "conditions with prev"
    AGGREGATE = "conditions with an aggregate of a run so far"
    HAVING = "conditions on whole runs"
    PER = "a key"
    LIMIT = "a largest number of relations"
    OR = "several branches"
    WITHIN = "a limit of time"
    OF_PREVIOUS = "limits of time from row to row"

    @property
    def code(self) -> str:
        """Its name in the table and in explanations."""
        return self.name.replace("_", " ")

    @property
    def words(self) -> str:
        return self.value


Constructs = frozenset[Construct]
LIMITS_OF_TIME = frozenset({Construct.WITHIN, Construct.OF_PREVIOUS})


def constructs_of(subscription: Subscription, branch: Branch) -> Constructs:
    assert branch.sequence is not None
    found = {*_of_pattern(branch.sequence)}
    conditions = [*branch.predicates, *(each.until for each in takes(branch.sequence) if each.until is not None)]
    found |= {construct for each in conditions for construct in _of_condition(each)}
    said = {
        Construct.HAVING: branch.having,
        Construct.PER: subscription.per,
        Construct.LIMIT: subscription.limit,
        Construct.OR: len(subscription.branches) > 1,
        Construct.WITHIN: subscription.within_us is not None,
        Construct.OF_PREVIOUS: any(each.gap_us is not None for each in takes(branch.sequence)),
    }
    return frozenset(found | {construct for construct, is_there in said.items() if is_there})


def _of_pattern(part: SequencePart) -> Iterator[Construct]:
    match part:
        case Take():
            if part.until is not None:
                yield Construct.UNTIL
        case Chain():
            yield from (Construct.THEN if skips else Construct.NEXT for skips in part.skips)
            for each in part.parts:
                yield from _of_pattern(each)
        case Choice():
            yield Construct.ELSE
            for each in part.parts:
                yield from _of_pattern(each)
        case Loop():
            yield from _of_loop(part)
            yield from _of_pattern(part.body)


def _of_loop(loop: Loop) -> Iterator[Construct]:
    if loop.most != loop.least:
        yield Construct.LONGEST if loop.longest else Construct.SHORTEST
    if loop.most is None or loop.most > 1:
        yield Construct.NEXT
    if loop.most is None:
        yield Construct.ENDLESS
    if loop.least == 0:
        yield Construct.OPTIONAL
    if not isinstance(loop.body, Take):
        yield Construct.GROUP


def _of_condition(predicate: Predicate) -> Iterator[Construct]:
    read = [leaf for term in predicate.condition.terms for atom in term for leaf in leaves(atom)]
    if any(isinstance(each, Previous) for each in read):
        yield Construct.PREV
    if any(isinstance(each, Aggregate) for each in read):
        yield Construct.AGGREGATE
    elif len(predicate.slots) > 1:
        yield Construct.LINK
    elif not any(isinstance(each, Previous) for each in read):
        yield Construct.WHERE


def sequence_cell(subscription: Subscription, branch: Branch) -> str:
    """`FR-PI`, `FS-FP`: matching and disposal."""
    return f"{subscription.matching.code}-{effective_disposal(subscription, branch).code}"


def effective_disposal(subscription: Subscription, branch: Branch) -> Disposal:
    """PREFIX INFIX where the option disposes of the same rows: of one row, whatever it says, and where ADVANCE reaches the
    end."""
    most = rows_max(branch)
    advance = subscription.disposal is Disposal.ADVANCE and most is not None and subscription.advance >= most
    return Disposal.PREFIX_INFIX if most == 1 or advance else subscription.disposal


def rows_max(branch: Branch) -> int | None:
    """The largest number of rows that a relation has; None without one."""
    assert branch.sequence is not None
    return _most(branch.sequence)


def _most(part: SequencePart) -> int | None:
    match part:
        case Take():
            return 1
        case Loop():
            body = _most(part.body)
            return None if part.most is None or body is None else part.most * body
    counts = [_most(each) for each in part.parts]
    known = [each for each in counts if each is not None]
    if len(known) < len(counts):
        return None
    return sum(known) if isinstance(part, Chain) else max(known)


def is_straight(branch: Branch) -> bool:
    """A fixed number of elements, each next to the one before: `A a NEXT B b[2]`."""
    return branch.sequence is not None and _is_straight(branch.sequence)


def _is_straight(part: SequencePart) -> bool:
    return isinstance(part, Take) or (isinstance(part, Chain) and not any(part.skips) and all(map(_is_straight, part.parts)))


def is_adjacent(subscription: Subscription, branch: Branch) -> bool:
    """All rows of a relation are next to each other. STEPWISE may leave out rows between rounds."""
    assert branch.sequence is not None
    found = {*_of_pattern(branch.sequence)}
    return Construct.THEN not in found and not (subscription.matching.stepwise and _repeats(branch.sequence))


def _repeats(part: SequencePart) -> bool:
    match part:
        case Take():
            return False
        case Loop():
            return part.most is None or part.most > 1 or _repeats(part.body)
    return any(map(_repeats, part.parts))


def is_of_elements(branch: Branch) -> bool:
    """A fixed number of elements, in any order of NEXT and THEN."""
    return branch.sequence is not None and _is_of_elements(branch.sequence)


def _is_of_elements(part: SequencePart) -> bool:
    return isinstance(part, Take) or (isinstance(part, Chain) and all(map(_is_of_elements, part.parts)))


def is_of_steps(branch: Branch) -> bool:
    """A fixed number of steps, each of which takes one row: of an element, of one of several (`A a ELSE B b`), or of a run of a
    fixed number of rows."""
    return branch.sequence is not None and _is_of_steps(branch.sequence)


def _is_of_steps(part: SequencePart) -> bool:
    match part:
        case Take():
            return part.until is None
        case Choice():
            return all(isinstance(each, Take) and each.until is None for each in part.parts)
        case Loop():
            return part.least == part.most and _is_of_steps(part.body)
    return all(map(_is_of_steps, part.parts))


def begins_anew_after_the_first(subscription: Subscription, branch: Branch) -> bool:
    """A match drops the first of its rows alone: FIRST PREFIX, or UPTO where it names the row that comes first."""
    if effective_disposal(subscription, branch) is Disposal.FIRST_PREFIX:
        return True
    tree = branch.sequence
    first = tree.parts[0] if isinstance(tree, Chain) else tree
    return subscription.disposal.upto and isinstance(first, Take) and branch.upto == (first.slot,)


def begins_with_a_row(branch: Branch) -> bool:
    """What it begins with takes a row, so no two of its relations have the same beginning."""
    tree = branch.sequence
    assert tree is not None
    return not can_be_empty(tree.parts[0] if isinstance(tree, Chain) else tree)


def free_beginnings(branch: Branch) -> tuple[int, ...]:
    """The slots whose row a relation can begin with, and no condition ties to others."""
    assert branch.sequence is not None
    ended = {each.slot for each in takes(branch.sequence) if each.until is not None}
    tied = {slot for each in branch.having for slot in each.slots} | ended
    for each in branch.predicates:
        if {*_of_condition(each)} != {Construct.WHERE}:
            tied |= {*each.slots}
    return tuple(sorted({each.slot for each in first_takes(branch.sequence)} - tied))
