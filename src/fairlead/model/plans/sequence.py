"""The pattern of a sequence as a tree: which rows are taken, one after the other, in the order in which they are tried.

    Quote d{3,} NEXT (Trade t ELSE Cancel c)   →   Chain((Loop(Take(0), 3, None), Choice((Take(2), Take(1)))), (False,))

Gives: the nodes; `takes`, what of them an empty relation could be, and whether it can end open; how a tree prints in a digest;
`as_asked`, the form in which conditions are evaluated. Never: searches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fairlead.dataclass import dataclass
from fairlead.model.expressions.expression import (
    Atom,
    Condition,
    Expression,
    Field,
    Leaf,
    PositionOf,
    Predicate,
    Previous,
    TimeOf,
    with_leaves,
)


@dataclass(frozen=True)
class Take:
    """One row, for the slot. `gap_us`: its time is at most so much after that of the event before it. `until`: a row for which
    this is true is not taken."""

    slot: int
    gap_us: int | None = None
    until: Predicate | None = None


@dataclass(frozen=True)
class Chain:
    """One part after the other. `skips[i]`: rows may be skipped before `parts[i + 1]` (THEN)."""

    parts: tuple[SequencePart, ...]
    skips: tuple[bool, ...]


@dataclass(frozen=True)
class Choice:
    """One of the parts, the first preferred (ELSE)."""

    parts: tuple[SequencePart, ...]


@dataclass(frozen=True)
class Loop:
    """The body `least` to `most` times, None for any number; `longest`: another round is preferred to none."""

    body: SequencePart
    least: int
    most: int | None
    longest: bool = True


SequencePart = Take | Chain | Choice | Loop


def takes(part: SequencePart) -> Iterator[Take]:
    """In the order of the pattern."""
    match part:
        case Take():
            yield part
        case Loop():
            yield from takes(part.body)
        case _:
            for each in part.parts:
                yield from takes(each)


def can_be_empty(part: SequencePart) -> bool:
    match part:
        case Take():
            return False
        case Loop():
            return part.least == 0 or can_be_empty(part.body)
        case Chain():
            return all(map(can_be_empty, part.parts))
        case Choice():
            return any(map(can_be_empty, part.parts))


def first_takes(part: SequencePart) -> Iterator[Take]:
    """What can be taken first."""
    match part:
        case Take():
            yield part
        case Loop():
            yield from first_takes(part.body)
        case Choice():
            for each in part.parts:
                yield from first_takes(each)
        case Chain():
            for each in part.parts:
                yield from first_takes(each)
                if not can_be_empty(each):
                    return


def ends_by_time(part: SequencePart, limited: bool) -> bool:
    """Whether it ends with a run or group that another row would be added to, until a time has passed. `limited`: the whole
    pattern has a limit (WITHIN)."""
    match part:
        case Take():
            return False
        case Choice():
            return any(ends_by_time(each, limited) for each in part.parts)
        case Chain():
            for each in reversed(part.parts):
                if ends_by_time(each, limited):
                    return True
                if not can_be_empty(each):
                    return False
            return False
        case Loop():
            more = part.longest and (part.most is None or part.most > part.least)
            by_time = limited or any(each.gap_us is not None for each in first_takes(part.body))
            return (more and by_time) or ends_by_time(part.body, limited)


def as_asked(predicate: Predicate, width: int) -> Condition:
    """The condition over `width` slots, of which those of runs hold what they have taken so far: the row that is being taken
    stands at `width`, and the n-th event before it, of its type, at `width + n`."""

    def moved(leaf: Leaf) -> Expression:
        match leaf:
            case Previous():
                return Field(width + leaf.back, leaf.attribute, leaf.kind)
            case Field() | PositionOf() | TimeOf() if leaf.slot == predicate.about:
                return replace(leaf, slot=width)
        return leaf

    def changed(atom: Atom) -> Atom:
        made = with_leaves(atom, moved)
        assert isinstance(made, Atom)
        return made

    return Condition(tuple(tuple(changed(atom) for atom in term) for term in predicate.condition.terms))


def canonical_text(part: SequencePart, names: Sequence[str], conditions: dict[int, str]) -> str:
    """For digests. `conditions`: of the `until` of a slot."""
    match part:
        case Take():
            gap = "" if part.gap_us is None else f" gap {part.gap_us}"
            return names[part.slot] + gap + (f" until {conditions[part.slot]}" if part.until else "")
        case Loop():
            most = "" if part.most is None else part.most
            end = "" if part.longest else " shortest"
            return f"({canonical_text(part.body, names, conditions)}){{{part.least},{most}}}{end}"
        case Choice():
            return f"({' else '.join(canonical_text(each, names, conditions) for each in part.parts)})"
        case Chain():
            texts = [canonical_text(each, names, conditions) for each in part.parts]
            steps = [" then " if skip else " next " for skip in part.skips]
            return f"({''.join(text + step for text, step in zip(texts, [*steps, ''], strict=True))})"
