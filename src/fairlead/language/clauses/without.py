"""WITHOUT in the language: `WITHOUT type alias BETWEEN a AND b`, `WITHOUT type alias BEFORE a [WITHIN duration]`, and
`WITHOUT type alias WITHIN duration OF a [CLOCK BY type, …]`; and AFTER, where nothing is absent: `AFTER duration OF a [CLOCK BY
type, …]`.

Gives: the syntax nodes and their builders, the checks that make a NegationBetween, a NegationBefore, an Absence or a Timer of
them, and W006, W007, W018, W019, and W016, whose remedy WITHOUT is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from fairlead.language.checking.subscription import Checked
from fairlead.language.checking.typing.literals import duration
from fairlead.language.checking.typing.scope import AliasMember
from fairlead.language.lint.finding import LintFinding, Rule
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span
from fairlead.model.clauses.without import Absence, NegationBefore, NegationBetween, Timer, never
from fairlead.model.events.types import Catalogue
from fairlead.model.expressions.expression import Predicate
from fairlead.model.plans.plan import Branch

# Syntax


@syntax.node
class WithoutNode(syntax.NotingNode):
    """`WITHOUT type alias BETWEEN anchors[0] AND anchors[1]`, `… BEFORE anchors[0] [WITHIN duration]`, or else with a duration
    `… WITHIN duration OF anchors[0]`."""

    word: ClassVar[str] = "WITHOUT"

    type: syntax.Word
    alias: syntax.Word
    anchors: tuple[syntax.Reference, ...]
    duration: syntax.Duration | None
    span: Span
    where: syntax.Where | None = None
    before: bool = False
    clock: tuple[syntax.Word, ...] = ()
    """Types whose events tell the time, too."""

    @property
    def reads(self) -> tuple[syntax.Word, ...]:
        return (self.type, *self.clock)

    def followed_by(self, clause: syntax.Clause) -> syntax.NotingNode | None:
        """A WITHIN right after `BEFORE a` is part of it."""
        if self.before and isinstance(clause, syntax.Within) and self.duration is None and self.where is None:
            return replace(self, duration=clause.duration)
        return syntax.NotingNode.followed_by(self, clause)

    @property
    def awaited(self) -> str:
        return "WITHOUT … WITHIN"

    def noted(self, members: Mapping[str, AliasMember]) -> str:
        return self.type.text

    def check_types(self, catalogue: Catalogue) -> None:
        _check_clock(self.clock, catalogue)

    def planned(
        self, member: AliasMember, slots: Sequence[int], members: Mapping[str, AliasMember], predicates: tuple[Predicate, ...]
    ) -> NegationBetween | NegationBefore | Absence:
        mine = member.alias, member.type.name, member.slots[0]
        if self.duration is not None:
            _check_timed(self, member, members[self.anchors[0].head.text])
        within = None if self.duration is None else duration(self.duration)
        if self.before:
            return NegationBefore(*mine, slots[0], within, predicates)
        if within is not None:
            return Absence(*mine, slots[0], within, predicates, _clock_of(self.clock, member, members))
        left, right = slots
        if left == right:
            raise Fault("L056", self.anchors[1].span, "nothing lies between an event and itself", "name two members")
        return NegationBetween(*mine, left, right, predicates)


@syntax.node
class TimerNode(syntax.NotingNode):
    """`AFTER duration OF anchors[0] [CLOCK BY clock]`. Its alias, which nobody can write, tells it from others."""

    word: ClassVar[str] = "AFTER"

    alias: syntax.Word
    anchors: tuple[syntax.Reference, ...]
    duration: syntax.Duration
    span: Span
    where: syntax.Where | None = None
    clock: tuple[syntax.Word, ...] = ()

    @property
    def reads(self) -> tuple[syntax.Word, ...]:
        return self.clock

    def noted(self, members: Mapping[str, AliasMember]) -> str:
        return members[self.anchors[0].head.text].type.name

    def followed_by(self, clause: syntax.Clause) -> syntax.NotingNode | None:
        return None

    def check_types(self, catalogue: Catalogue) -> None:
        _check_clock(self.clock, catalogue)

    def planned(
        self, member: AliasMember, slots: Sequence[int], members: Mapping[str, AliasMember], predicates: tuple[Predicate, ...]
    ) -> Timer:
        if not member.type.timed:
            problem = f"AFTER needs times, and events of type '{member.type.name}' have none"
            raise Fault("L057", self.anchors[0].span, problem, f"declare {member.type.name} with TIME")
        mine = member.alias, member.type.name, member.slots[0]
        clock = _clock_of(self.clock, member, members)
        return Timer(*mine, slots[0], duration(self.duration), (never(member.slots[0]),), clock)


def _negated(span: Span, parts: list[Any]) -> tuple[syntax.Word, syntax.Word]:
    """The type of the absent event, and its alias or else the type's own word."""
    named = syntax.Word(parts[0].text, Span(parts[0].start, parts[0].end))
    return named, next((each for each in parts if isinstance(each, syntax.Word)), named)


def _between(span: Span, parts: list[Any]) -> WithoutNode:
    (type_, alias), left, right = parts
    return WithoutNode(type_, alias, (left, right), None, span)


def _before(span: Span, parts: list[Any]) -> WithoutNode:
    (type_, alias), anchor = parts
    return WithoutNode(type_, alias, (anchor,), None, span, before=True)


def _within(span: Span, parts: list[Any]) -> WithoutNode:
    (type_, alias), length, anchor, *clock = parts
    return WithoutNode(type_, alias, (anchor,), length, span, clock=tuple(clock[0]) if clock else ())


def _after(span: Span, parts: list[Any]) -> TimerNode:
    length, anchor, *clock = parts
    return TimerNode(syntax.Word(f"AFTER {span.start}", span), (anchor,), length, span, clock=tuple(clock[0]) if clock else ())


def _clock(span: Span, parts: list[Any]) -> list[syntax.Word]:
    return [syntax.Word(each.text, Span(each.start, each.end)) for each in parts]


BUILDERS: Mapping[str, Callable[[Span, list[Any]], Any]] = {
    "negated": _negated,
    "without_between": _between,
    "without_before": _before,
    "without_within": _within,
    "after": _after,
    "clock": _clock,
}


# Checks


def _check_timed(clause: WithoutNode, member: AliasMember, anchor: AliasMember) -> None:
    for word, type_ in ((clause.type, member.type), (clause.anchors[0].head, anchor.type)):
        if not type_.timed:
            problem = f"WITHOUT … WITHIN needs times, and events of type '{type_.name}' have none"
            other = "leave out its WITHIN" if clause.before else "use WITHOUT … BETWEEN"
            raise Fault("L057", word.span, problem, f"declare {type_.name} with TIME, or {other}")


def _check_clock(clock: Sequence[syntax.Word], catalogue: Catalogue) -> None:
    for word in clock:
        if not catalogue[word.text].timed:
            problem = f"CLOCK BY needs times, and events of type '{word.text}' have none"
            raise Fault("L057", word.span, problem, f"declare {word.text} with TIME, or leave it out")


def _clock_of(clock: Sequence[syntax.Word], member: AliasMember, members: Mapping[str, AliasMember]) -> tuple[str, ...]:
    """Without the types that tell the time anyway."""
    return tuple(sorted({each.text for each in clock} - {member.type.name, *(each.type.name for each in members.values())}))


# Lint


def anything_cancels(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W006: a WITHOUT with neither WHERE nor PER is about every event of its type."""
    for clause in _withouts(checked):
        if clause.where is None and not checked.subscription.per:
            name = clause.type.text
            fix = f"add WHERE {clause.alias.text}.… = …, or PER"
            yield LintFinding("W006", clause.span, f"any {name} counts here: the WITHOUT has neither WHERE nor PER", fix)


def condition_beside_the_absent_event(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W007: a conjunct of a WITHOUT's WHERE that is about members only does not restrict the pattern."""
    said: set[str] = set()
    clauses = {each.alias.text: each for each in _withouts(checked)}
    for branch in checked.subscription.branches:
        for negation in (*branch.prompt, *branch.waiting):
            where = clauses[negation.alias].where if negation.alias in clauses else None
            for predicate in negation.predicates:
                if where and predicate.slots and negation.slot not in predicate.slots and predicate.text not in said:
                    said.add(predicate.text)
                    problem = f"'{predicate.text}' does not name '{negation.alias}': if it is false, no event is ruled out"
                    yield LintFinding(
                        "W007", where.condition.span, problem, "move it to the WHERE of the pattern, before WITHOUT"
                    )


def kept_for_ever(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W018: events before a member that nothing makes superfluous: neither an equal one, nor a window with a WITHIN."""
    clauses = {each.alias.text: each for each in _withouts(checked)}
    said: set[str] = set()
    for branch in checked.subscription.branches:
        for each in branch.prompt:
            if each.since is not None or each.alias in said:
                continue
            alone = not each.reads_members and branch.twins(each, catalogue) <= {each.until}
            if not alone and (checked.subscription.within_us is None or not each.timed):
                said.add(each.alias)
                problem = (
                    f"every {each.type} is kept that this {each.keyword} can count: its WHERE reads members, or it can be one"
                )
                fix = "say with PER what must be equal, or add WITHIN both to BEFORE and to the pattern, if memory matters"
                yield LintFinding("W018", clauses[each.alias].span, problem, fix)


def window_of_one_event(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W019: a WITHIN that is the window of a pattern of one event, where BEFORE has none."""
    within = next((each for each in checked.node.clauses if isinstance(each, syntax.Within)), None)
    single = all(len(branch.slots) == 1 for branch in checked.subscription.branches)
    before = next((each for each in _withouts(checked) if each.before and each.duration is None), None)
    if within is not None and single and before is not None:
        problem = "this WITHIN is the window of the pattern, which has one event: how far back BEFORE reaches is not limited"
        yield LintFinding("W019", within.span, problem, f"write it directly after BEFORE {before.anchors[0].head.text}")


def refused_between_neighbours(checked: Checked, catalogue: Catalogue) -> Iterator[LintFinding]:
    """W016: CONTIGUOUS is about neighbours in the queue, and an event that fits no instance by itself is not queued."""
    if not checked.subscription.matching.contiguous:
        return
    said: set[str] = set()
    for branch, shape in zip(checked.subscription.branches, checked.shapes, strict=True):
        unary = {each.slots[0] for each in branch.predicates if len(each.slots) == 1}
        for element in shape.nodes:
            name, slots = element.type.text, [at for at, slot in enumerate(branch.slots) if slot.type == element.type.text]
            if len(slots) == 1 or name in said or not unary.issuperset(slots) or any(name == x.type for x in branch.prompt):
                continue
            said.add(name)
            problem = f"CONTIGUOUS allows any {name} between these that fits none of them: it is not queued"
            ends = (slots[-1], slots[0]) if checked.subscription.matching.recent else (slots[0], slots[-1])
            first, last = (_written(branch, at) for at in ends)
            fix = f"if there must be none, add WITHOUT {name} x BETWEEN {first} AND {last} WHERE NOT …"
            yield LintFinding("W016", element.span, problem, fix)


def _written(branch: Branch, at: int) -> str:
    slot = branch.slots[at]
    several = sum(each.alias == slot.alias for each in branch.slots) > 1
    return f"{slot.alias}[{slot.alias_index}]" if several else slot.alias


def _withouts(checked: Checked) -> list[WithoutNode]:
    return [each for each in checked.node.clauses if isinstance(each, WithoutNode)]


LINT: tuple[Rule, ...] = (
    refused_between_neighbours,
    anything_cancels,
    condition_beside_the_absent_event,
    kept_for_ever,
    window_of_one_event,
)
