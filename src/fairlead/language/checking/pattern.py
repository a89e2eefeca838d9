"""MATCH to branches: elements to slots in signature order, THEN to clauses.

    A x AND A y[2] THEN B   →   slots A[1]=x, A[2]=y[1], A[3]=y[2], B[1]   and   {A[1], A[2], A[3]} before {B[1]}

Takes: the pattern as written and the types. Gives: one `BranchPattern` per branch. Never: reads another clause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import product

from fairlead.dataclass import dataclass
from fairlead.language.checking.sequence import check_bounds, nested_aliases
from fairlead.language.checking.type_declarations import unknown_type
from fairlead.language.checking.typing.scope import AliasMember
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault
from fairlead.model.clauses.clause import Clause
from fairlead.model.clauses.then import Precedence
from fairlead.model.events.types import HEARTBEAT, Catalogue
from fairlead.model.limits import LIMITS
from fairlead.model.plans.pattern import Element, Quantifier, Slot

ALTERNATIVES_SHOWN_MAX = 6
"""A fix longer than this many patterns is no help."""


@dataclass(frozen=True)
class BranchPattern:
    """A branch before its conditions."""

    nodes: tuple[syntax.Element, ...]
    elements: tuple[Element, ...]
    slots: tuple[Slot, ...]
    clauses: tuple[Clause, ...]
    members: Mapping[str, AliasMember]
    pattern: syntax.Pattern
    """As it is written."""
    elsewhere: frozenset[str] = frozenset()
    """Aliases of other branches."""


def shapes(pattern: syntax.Pattern, catalogue: Catalogue) -> tuple[BranchPattern, ...]:
    found = [_shape(branch, catalogue) for branch in _branches(pattern)]
    names = frozenset(alias for each in found for alias in each.members)
    return tuple(replace(each, elsewhere=names - each.members.keys()) for each in found)


def _branches(pattern: syntax.Pattern) -> list[syntax.Pattern]:
    if isinstance(pattern, syntax.AnyOf):
        return [branch for part in pattern.parts for branch in _branches(part)]
    inner = _inner_or(pattern)
    if inner:
        raise Fault("L020", inner.span, "OR is only allowed between whole patterns", _spelt_out(pattern))
    return [pattern]


def _inner_or(pattern: syntax.Pattern) -> syntax.AnyOf | None:
    if isinstance(pattern, syntax.AnyOf):
        return pattern
    if isinstance(pattern, syntax.Element):
        return None
    return next(filter(None, map(_inner_or, pattern.parts)), None)


def _spelt_out(pattern: syntax.Pattern) -> str:
    texts = _alternatives(pattern)
    if texts is None:
        return "write each alternative as a whole pattern, with OR between them"
    return "write " + " OR ".join(f"({each})" for each in texts)


def _alternatives(pattern: syntax.Pattern) -> list[str] | None:
    """The patterns that an inner OR expands to; None if they are too many to show."""
    if isinstance(pattern, syntax.Element):
        alias = "" if pattern.alias.text == pattern.type.text else f" {pattern.alias.text}"
        repeat = _quantifier(pattern).canonical if pattern.repeat else ""
        return [pattern.type.text + alias + (f"[{pattern.count.value}]" if pattern.count else "") + repeat]
    parts = [_alternatives(part) for part in pattern.parts]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if isinstance(pattern, syntax.AnyOf):
        texts = [text for part in known for text in part]
    else:
        joined = " AND " if isinstance(pattern, syntax.AllOf) else " THEN "
        if len(known) > ALTERNATIVES_SHOWN_MAX:
            return None
        texts = [joined.join(_grouped(text, joined) for text in choice) for choice in product(*known)]
    return texts if len(texts) <= ALTERNATIVES_SHOWN_MAX else None


def _grouped(text: str, joined: str) -> str:
    return f"({text})" if joined == " AND " and " THEN " in text else text


def _shape(pattern: syntax.Pattern, catalogue: Catalogue) -> BranchPattern:
    nodes = tuple(syntax.elements(pattern))
    _check(nodes, catalogue)
    nested = frozenset(nested_aliases(pattern))
    elements, slots, places = _layout(tuple((n.alias.text, n.type.text, _held(n, nested)) for n in nodes))
    members = {
        each.alias: AliasMember(
            each.alias, catalogue[each.type], places[each.alias], len(places[each.alias]), each.quantifier.run
        )
        for each in elements
    }
    return BranchPattern(nodes, elements, slots, _precedences(pattern, places), members, pattern)


def _held(node: syntax.Element, nested: frozenset[str]) -> Quantifier:
    """An element of a group or an ELSE holds all its events, or none."""
    return Quantifier(0, None, run=True) if node.alias.text in nested else _quantifier(node)


def _quantifier(node: syntax.Element) -> Quantifier:
    if node.repeat:
        return Quantifier(node.repeat.least, node.repeat.most, run=True)
    count = node.count.value if node.count else 1
    return Quantifier(count, count)


@lru_cache(maxsize=1024)
def _layout(
    named: tuple[tuple[str, str, Quantifier], ...],
) -> tuple[tuple[Element, ...], tuple[Slot, ...], Mapping[str, tuple[int, ...]]]:
    """The elements, given as alias, type and quantifier, their slots, and the slots of each alias. Of one type, runs come after
    the others. The ten thousand subscriptions of a long text have few patterns, and share these."""
    elements = tuple(Element(*each) for each in named)
    used: Counter[str] = Counter()
    unsorted: list[Slot] = []
    for element in sorted(elements, key=lambda each: each.quantifier.run):
        quantifier = element.quantifier
        for index in range(1, 2 if quantifier.run else quantifier.least + 1):
            used[element.type] += 1
            run = quantifier if quantifier.run else None
            unsorted.append(Slot(element.type, used[element.type], element.alias, index, run))
    slots = tuple(sorted(unsorted, key=lambda slot: (slot.type, slot.instance)))
    places = {alias: tuple(at for at, slot in enumerate(slots) if slot.alias == alias) for alias, _, _ in named}
    return elements, slots, places


def _check(nodes: tuple[syntax.Element, ...], catalogue: Catalogue) -> None:
    total, seen = 0, set[str]()
    for node in nodes:
        check_readable(node.type, catalogue)
        alias = node.alias.text
        if alias in seen:
            fix = "give each element its own alias" if node.alias.span != node.type.span else f"write {alias} x AND {alias} y"
            raise Fault("L021", node.alias.span, f"two elements are called '{alias}'", fix)
        seen.add(alias)
        if node.repeat and node.count:
            raise Fault("L022", node.repeat.span, "an element has either a count or a run", "write q[3] or q{3}")
        if node.repeat:
            check_bounds(node.repeat)
        count = node.count.value if node.count else 1
        total += count
        if count < 1 or total > LIMITS.instances_max:
            problem = "an element needs at least one instance" if count < 1 else "the pattern has too many instances"
            span = node.count.span if node.count else node.span
            raise Fault("L022", span, problem, f"use 1 to {LIMITS.instances_max} events in a pattern")


def check_readable(word: syntax.Word, catalogue: Catalogue) -> None:
    if word.text == HEARTBEAT.name:
        raise Fault("L019", word.span, "Heartbeat only advances clocks; it never matches", "match a type of your own")
    if word.text not in catalogue:
        raise unknown_type(word, [each.name for each in catalogue])


def _precedences(pattern: syntax.Pattern, places: Mapping[str, tuple[int, ...]]) -> tuple[Precedence, ...]:
    """The same for `a THEN b THEN c` with any brackets: for each set of slots, what all of them must follow."""
    before: dict[int, set[int]] = {}
    _order(pattern, places, before)
    grouped: dict[tuple[int, ...], list[int]] = {}
    for right in sorted(before):
        grouped.setdefault(tuple(sorted(before[right])), []).append(right)
    return tuple(Precedence(left, tuple(right)) for left, right in sorted(grouped.items()))


def _order(pattern: syntax.Pattern, places: Mapping[str, tuple[int, ...]], before: dict[int, set[int]]) -> list[int]:
    """The slots of a pattern; records in `before` every slot that must precede another."""
    if isinstance(pattern, syntax.Element):
        return list(places[pattern.alias.text])
    seen: list[int] = []
    for part in pattern.parts:
        slots = _order(part, places, before)
        if isinstance(pattern, syntax.InOrder) and seen:
            for slot in slots:
                before.setdefault(slot, set()).update(seen)
        seen += slots
    return seen
