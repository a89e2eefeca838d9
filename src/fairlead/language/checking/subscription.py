"""One subscription: its clauses, checked against the types and put together.

Takes: the syntax of a subscription and the catalogue with every type it reads. Gives: `Checked`: the Subscription (without
its digest), the type it emits, and what lint needs. Never: looks at another subscription.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from fairlead.dataclass import dataclass
from fairlead.language.checking.emission import emission
from fairlead.language.checking.keys import display, keys
from fairlead.language.checking.noted_events import belonging, in_canonical_order, noting
from fairlead.language.checking.options import Options, options
from fairlead.language.checking.pattern import BranchPattern, shapes
from fairlead.language.checking.runs import check_each, check_runs
from fairlead.language.checking.sequence import SequencePattern, asked_as_sequence, check_keys, written_sequence
from fairlead.language.checking.tables import with_tables
from fairlead.language.checking.type_declarations import with_type
from fairlead.language.checking.typing.literals import duration
from fairlead.language.checking.typing.scope import AliasMember, Scope
from fairlead.language.checking.where import Placed, where
from fairlead.language.clauses.fold import check_totals, folded
from fairlead.language.clauses.limit import limit
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault
from fairlead.language.parsing.text import RuleText
from fairlead.model.events.types import Catalogue, EventType
from fairlead.model.expressions.expression import Predicate
from fairlead.model.plans.options import PAPER_DISPOSALS, Disposal, Matching
from fairlead.model.plans.pattern import Emission, Slot
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.sequence import SequencePart, ends_by_time

ClauseType = TypeVar("ClauseType", bound=syntax.Clause)


@dataclass(frozen=True)
class Checked:
    node: syntax.Subscription
    subscription: Subscription
    shapes: tuple[BranchPattern, ...]
    conjuncts: tuple[tuple[Placed, ...], ...]
    """For each branch its predicates with their places in the text."""
    emitted: EventType | None = None

    @property
    def assignments(self) -> tuple[BranchPattern, ...]:
        """The branches that are no sequences."""
        return tuple(shape for shape in self.shapes if shape.slots not in self.sequences)

    @cached_property
    def sequences(self) -> Mapping[tuple[Slot, ...], SequencePart]:
        """Those that are, by their slots."""
        return {each.slots: each.sequence for each in self.subscription.branches if each.sequence is not None}


def checked(node: syntax.Subscription, catalogue: Catalogue, declared: frozenset[str], source: RuleText) -> Checked:
    """1. clauses, each once · 2. pattern to slots · 3. clauses that note events · 4. WHERE, HAVING · 5. PER · 6. options ·
    7. FOLD, EMIT"""
    _check_repeats(node)  # 1
    built = shapes(node.pattern, catalogue)  # 2
    mine = belonging(node.noting, built, catalogue)  # 3
    mine = [in_canonical_order(each, shape, source) for each, shape in zip(mine, built, strict=True)]
    hidden = {each.alias.text: each.word for each in node.noting}
    noted = [noting(each, shape, source) for each, shape in zip(mine, built, strict=True)]
    scopes = [Scope(shape.members, hidden, shape.elsewhere) for shape in built]
    condition = _find(node, syntax.Where)  # 4
    placed = where(condition, [replace(each, steps=True) for each in scopes], source) if condition else [[] for _ in built]
    ordered = [
        _sequence(node, shape, found, scope, source) or _checked_runs(shape, found, scope, catalogue)
        for shape, found, scope in zip(built, placed, scopes, strict=True)
    ]
    whole = _find(node, syntax.Having)
    aggregated = where(whole, [replace(each, whole=True) for each in scopes], source) if whole else [[] for _ in built]
    branches = tuple(
        Branch(
            shape.elements,
            shape.slots,
            predicates,
            clauses if tree is not None else (*shape.clauses, *clauses),
            having=tuple(each for _, each in conditions),
            sequence=tree,
            timed=tree is not None and ends_by_time(tree, _find(node, syntax.Within) is not None),
        )
        for shape, (tree, predicates), clauses, conditions in zip(built, ordered, noted, aggregated, strict=True)
    )
    per = _find(node, syntax.Per)  # 5
    if per:
        members = [
            {**shape.members, **{alias: member for alias, (_, member) in each.items()}}
            for shape, each in zip(built, mine, strict=True)
        ]
        branches = _keyed(per, branches, members, catalogue)
    branches = with_tables(node, branches, built, catalogue)
    chosen = options(node, branches, built)  # 6
    branches = chosen.branches
    _check_runs(node, [each for each in branches if each.sequence is None], chosen)
    _check_sequences(node, branches, chosen, catalogue)
    folding = _find(node, syntax.Fold)
    if folding:
        branches = folded(folding, branches, built, chosen.disposal, _find(node, syntax.Within) is not None)
    emit = _find(node, syntax.Emit)  # 7
    made: EventType | None = None
    if emit:
        made, fields = emission(emit, _joint_scopes(built, hidden), catalogue, emit.type.text in declared)
        branches = _emitting(branches, fields)
    if folding:
        check_totals(folding, branches, catalogue if made is None else with_type(catalogue, made))
    subscription = Subscription(
        node.name.text,
        branches,
        per=tuple(display(key) for key in per.keys) if per else (),
        within_us=_window(node, built),
        matching=chosen.matching,
        disposal=chosen.disposal,
        advance=chosen.advance,
        limit_per_event=chosen.limit_per_event,
        limit=limit(node),
        emits=made.name if made else None,
        text=source.text[node.span.start : node.span.end],
    )
    return Checked(node, subscription, built, tuple(map(tuple, placed)), made)


def _check_repeats(node: syntax.Subscription) -> None:
    seen: set[type[syntax.Clause]] = set()
    for clause in node.clauses:
        if type(clause) in seen and not clause.several:
            fix = "join the conditions with AND" if isinstance(clause, syntax.Where) else f"keep one {clause.word}"
            raise Fault("L050", clause.span, f"a subscription has one {clause.word} clause", fix)
        seen.add(type(clause))


def _sequence(
    node: syntax.Subscription, shape: BranchPattern, found: Sequence[Placed], scope: Scope, source: RuleText
) -> tuple[SequencePart, tuple[Predicate, ...]] | None:
    """The pattern as a tree, and its conditions; None if the branch is no sequence."""
    option = _find(node, syntax.MatchingClause)
    written = written_sequence(shape.pattern) or (option is not None and "STEPWISE" in option.words)
    if not written:
        if not asked_as_sequence([each for _, each in found], scope.runs):
            return None
        if syntax.has_all_of(shape.pattern):
            return None  # what is asked of a whole run belongs to HAVING
    made = SequencePattern(shape.pattern, shape.members, source)
    return made.whole(scope), tuple(made.about(each, conjunct.span) for conjunct, each in found)


def _checked_runs(
    shape: BranchPattern, found: Sequence[Placed], scope: Scope, catalogue: Catalogue
) -> tuple[None, tuple[Predicate, ...]]:
    """The conditions of a branch that is no sequence."""
    check_runs(shape.nodes, shape.slots, [pair for each in shape.clauses for pair in each.orders], catalogue)
    for conjunct, each in found:
        check_each([atom for term in each.condition.terms for atom in term], scope.runs, conjunct.span)
    return None, tuple(each for _, each in found)


def _check_sequences(node: syntax.Subscription, branches: Sequence[Branch], chosen: Options, catalogue: Catalogue) -> None:
    """What sequences do not go together with."""
    if not any(branch.sequence is not None for branch in branches):
        return
    option, leaving = _find(node, syntax.MatchingClause), _find(node, syntax.DisposalClause)
    if option and chosen.matching not in (Matching.FIRST, Matching.FIRST_STEPWISE):
        fix = "write MATCHING FIRST or MATCHING FIRST STEPWISE, or leave it out"
        raise Fault("L101", option.span, f"MATCHING {option.words} is not supported with sequences", fix)
    if leaving and chosen.disposal in (Disposal.INFIX, Disposal.INFIX_POSTFIX, Disposal.NONE):
        fix = "write DISPOSAL PREFIX INFIX, FIRST PREFIX, ADVANCE n or UPTO x"
        raise Fault("L102", leaving.span, f"DISPOSAL {leaving.words} is not supported with sequences", fix)
    for further in (_find(node, syntax.Keeping), _find(node, syntax.Retaining)):
        if further:
            fix = "write DISPOSAL UPTO x or FIRST PREFIX, or WITHIN"
            raise Fault("L102", further.span, f"{further.word} is not supported with sequences", fix)
    for branch in branches:
        if branch.sequence is not None and branch.noting:
            clause = next(each for each in node.noting if each.alias.text == branch.noting[0].alias)
            fix = "EMIT what was found, and write this clause in a subscription that reads it"
            raise Fault("L102", clause.span, f"{clause.word} is not supported with sequences", fix)
        if branch.sequence is not None and branch.tables:
            element = next(each for each in syntax.elements(node.pattern) if each.type.text == branch.tables[0][0])
            fix = "EMIT what was found, and read the table in a subscription that reads it"
            raise Fault("L102", element.span, "a TABLE is not supported in sequences", fix)
        per = _find(node, syntax.Per)
        if branch.sequence is not None and per:
            check_keys(branch, catalogue, per.span)


def _check_runs(node: syntax.Subscription, branches: Sequence[Branch], chosen: Options) -> None:
    """What runs do not go together with."""
    if not any(branch.runs for branch in branches):
        return
    contiguous = _find(node, syntax.MatchingClause)
    if contiguous and chosen.matching.contiguous:
        fix = "leave out CONTIGUOUS, or write the elements with a count, such as q[3]"
        raise Fault("L099", contiguous.span, "CONTIGUOUS is not supported with runs", fix)
    keeping, leaving = _find(node, syntax.Keeping), _find(node, syntax.DisposalClause)
    further = leaving if chosen.disposal not in PAPER_DISPOSALS else contiguous if chosen.matching.all else keeping
    if further:
        words = f"{further.word} {getattr(further, 'words', '')}".strip()
        fix = "write the elements with a count, such as q[3]; or EMIT what was found, and write this clause in a reader of it"
        raise Fault("L099", further.span, f"{words} is not supported with runs", fix)
    for clause in node.noting:
        waits = any(
            each.waits and each.alias == clause.alias.text for branch in branches for each in branch.noting if branch.runs
        )
        if waits:
            fix = "EMIT what was found, and write this clause in a subscription that reads it"
            raise Fault("L099", clause.span, f"{clause.awaited} is not supported with runs", fix)


def _find(node: syntax.Subscription, wanted: type[ClauseType]) -> ClauseType | None:
    return next((each for each in node.clauses if isinstance(each, wanted)), None)


def _keyed(
    per: syntax.Per, branches: tuple[Branch, ...], members: Sequence[dict[str, AliasMember]], catalogue: Catalogue
) -> tuple[Branch, ...]:
    types = [tuple(catalogue[name] for name in branch.types) for branch in branches]
    found = keys(per, list(zip(members, types, strict=True)))
    return tuple(replace(branch, keys=each) for branch, each in zip(branches, found, strict=True))


def _emitting(branches: tuple[Branch, ...], fields: tuple[Emission, ...]) -> tuple[Branch, ...]:
    return tuple(replace(branch, emission=each) for branch, each in zip(branches, fields, strict=True))


def _joint_scopes(built: Sequence[BranchPattern], hidden: Mapping[str, str]) -> list[Scope]:
    """For EMIT: the aliases that another branch has, and this one has not, read as NULL."""
    everywhere = {alias: replace(member, slots=()) for shape in reversed(built) for alias, member in shape.members.items()}
    return [Scope({**everywhere, **shape.members}, hidden, whole=True, collects=True) for shape in built]


def _window(node: syntax.Subscription, built: Sequence[BranchPattern]) -> int | None:
    clause = _find(node, syntax.Within)
    if clause is None:
        return None
    for shape in built:
        for element in shape.nodes:
            type_ = shape.members[element.alias.text].type
            if not type_.timed:
                problem = f"WITHIN needs times, and events of type '{type_.name}' have none"
                raise Fault("L054", clause.span, problem, f"declare {type_.name} with TIME, or leave out WITHIN")
    return duration(clause.duration)
