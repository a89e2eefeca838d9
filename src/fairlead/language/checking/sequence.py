"""Sequences: which branches are one, their pattern as a tree, and what their conditions are about.

    Quote d{3,} NEXT Quote u+ WHERE u.value > prev(u.value)
    →   Chain((Loop(Take(0), 3, None), Loop(Take(1), 1, None)), (False,))

Takes: a branch's pattern as written, its slots and its conditions. Gives: the tree, and the conditions with the slot that each
is about; or a `Fault`. Never: searches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fairlead.language.checking.typing.conditions import Conjunct, predicate
from fairlead.language.checking.typing.literals import duration
from fairlead.language.checking.typing.scope import AliasMember, Scope
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span
from fairlead.language.parsing.text import RuleText
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import Aggregate, Leaf, Predicate, Previous, leaves
from fairlead.model.plans.plan import Branch
from fairlead.model.plans.sequence import Chain, Choice, Loop, SequencePart, Take, takes

Placed = tuple[Conjunct, Predicate]


def nested_aliases(pattern: syntax.Pattern, inside: bool = False) -> Iterator[str]:
    """The elements in a quantified group or an ELSE: they hold any number of events."""
    if isinstance(pattern, syntax.Element):
        if inside:
            yield pattern.alias.text
        return
    for part in pattern.parts:
        yield from nested_aliases(part, inside or isinstance(pattern, syntax.Group | syntax.OneOf))


def written_sequence(pattern: syntax.Pattern) -> bool:
    """Whether the pattern alone says that it is one."""
    match pattern:
        case syntax.Element():
            return bool(pattern.gap or pattern.until or (pattern.repeat and pattern.repeat.end))
        case syntax.Group() | syntax.OneOf():
            return True
        case syntax.InOrder() if pattern.next_span is not None:
            return True
    return any(map(written_sequence, pattern.parts))


def asked_as_sequence(predicates: Sequence[Predicate], runs: Sequence[int]) -> bool:
    """Whether a condition of WHERE looks back, or has an aggregate of a run."""
    read = [leaf for each in predicates for leaf in _leaves(each)]
    return any(isinstance(leaf, Previous) or (isinstance(leaf, Aggregate) and leaf.slots[0] in runs) for leaf in read)


def _leaves(predicate: Predicate) -> Iterator[Leaf]:
    for term in predicate.condition.terms:
        for atom in term:
            yield from leaves(atom)


class SequencePattern:
    """The pattern of one branch, as a sequence."""

    def __init__(self, pattern: syntax.Pattern, members: Mapping[str, AliasMember], source: RuleText) -> None:
        self.members, self.source = members, source
        self.nested = frozenset(nested_aliases(pattern))
        self.tree = self._part(pattern)
        self.order = [each.slot for each in takes(self.tree)]
        """The slots in the order of the pattern."""
        self.runs = {slot for each in members.values() if each.run for slot in each.slots}
        self.elements = tuple(syntax.elements(pattern))

    def _part(self, pattern: syntax.Pattern) -> SequencePart:
        match pattern:
            case syntax.Element():
                return self._element(pattern)
            case syntax.Group():
                check_bounds(pattern.repeat)
                return _loop(self._part(pattern.pattern), pattern.repeat)
            case syntax.OneOf():
                return Choice(tuple(map(self._part, pattern.parts)))
            case syntax.InOrder():
                return Chain(tuple(map(self._part, pattern.parts)), pattern.skips or (True,) * (len(pattern.parts) - 1))
            case syntax.AllOf():
                problem = "AND in a sequence, whose events are one after the other"
                raise Fault("L100", pattern.span, problem, "write NEXT, or each order with ELSE between them")
        raise Fault("L020", pattern.span, "OR is only allowed between whole patterns", "write ELSE between parts of a sequence")

    def _element(self, node: syntax.Element) -> SequencePart:
        member = self.members[node.alias.text]
        gap = None if node.gap is None else duration(node.gap.duration)
        if node.gap is not None and not member.type.timed:
            problem = f"WITHIN needs times, and events of type '{member.type.name}' have none"
            raise Fault("L054", node.gap.span, problem, f"declare {member.type.name} with TIME, or leave out WITHIN")
        if node.until is not None and node.repeat is None:
            raise Fault("L105", node.until.span, "UNTIL ends a run, and this is one event", f"write {node.alias.text}* UNTIL …")
        if node.repeat is not None:
            return _loop(Take(member.slots[0], gap), node.repeat)
        if node.count is None:
            return Take(member.slots[0], gap)
        if member.run:
            return Loop(Take(member.slots[0], gap), node.count.value, node.count.value)
        parts = tuple(Take(slot, gap) for slot in member.slots)
        return parts[0] if len(parts) == 1 else Chain(parts, (False,) * (len(parts) - 1))

    def whole(self, scope: Scope) -> SequencePart:
        """The tree with the conditions of UNTIL."""
        scope, untils = replace(scope, steps=True), dict[int, Predicate]()
        for node in self.elements:
            if node.until is not None:
                found = predicate(Conjunct(node.until.condition), scope, self.source)
                asked = self.about(found, node.until.span)
                slot = self.members[node.alias.text].slots[0]
                if asked.about != slot:
                    problem = f"UNTIL is about the events of '{node.alias.text}', and names a later element or not this one"
                    raise Fault("L105", node.until.span, problem, f"compare an attribute of {node.alias.text}")
                untils[slot] = asked
        return _with_untils(self.tree, untils)

    def about(self, predicate: Predicate, span: Span) -> Predicate:
        """The condition, asked when the last element that it names takes a row."""
        if not predicate.slots:
            problem = "the condition names no element, so nothing says when it is asked"
            raise Fault("L106", span, problem, "use an attribute of an element, or remove it")
        about = max(predicate.slots, key=self.order.index)
        alias, back = self._alias(about), 0
        for leaf in _leaves(predicate):
            if isinstance(leaf, Previous):
                back = max(back, leaf.back)
                if leaf.slot != about:
                    problem = f"prev goes back from the event that is taken, here of '{alias}'"
                    raise Fault("L104", span, problem, f"write prev({alias}.{leaf.attribute})")
            elif not isinstance(leaf, Aggregate) and leaf.slot in self.runs and leaf.slot != about:
                run = self._alias(leaf.slot)
                problem = f"the condition is about each event of '{alias}', when '{run}' holds any number of events"
                attribute = getattr(leaf, "attribute", "x")
                fix = f"write first({run}.{attribute}), last({run}.{attribute}) or another aggregate"
                raise Fault("L103", span, problem, fix)
        return replace(predicate, about=about, looks_back=back)

    def _alias(self, slot: int) -> str:
        return next(alias for alias, member in self.members.items() if slot in member.slots)


def _loop(body: SequencePart, repeat: syntax.Repeat) -> Loop:
    return Loop(body, repeat.least, repeat.most, repeat.end != "SHORTEST")


def _with_untils(part: SequencePart, untils: Mapping[int, Predicate]) -> SequencePart:
    match part:
        case Take():
            return replace(part, until=untils.get(part.slot))
        case Loop():
            return replace(part, body=_with_untils(part.body, untils))
        case _:
            return replace(part, parts=tuple(_with_untils(each, untils) for each in part.parts))


def check_bounds(repeat: syntax.Repeat) -> None:
    if repeat.most is not None and repeat.most < max(repeat.least, 1):
        if repeat.most == 0:
            raise Fault("L022", repeat.span, "a run of no events", "write q? for at most one event, or leave the element out")
        fix = "write the smaller number first, such as q{2,5}"
        raise Fault("L022", repeat.span, "the run ends before it begins", fix)


def check_keys(branch: Branch, catalogue: Catalogue, span: Span) -> None:
    """An event is one row of one key."""
    keys = dict(branch.keys)
    for one in branch.queue_types:
        for other in branch.queue_types:
            if keys.get(one) != keys.get(other) and {*catalogue.accepts(one)} & {*catalogue.accepts(other)}:
                problem = f"an event of '{one}' and '{other}' has two keys, and in a sequence it is one row"
                raise Fault("L107", span, problem, "use the same attribute for both types")
