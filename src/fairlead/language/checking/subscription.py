"""One subscription: its clauses, checked against the types and put together.

Takes: the syntax of a subscription and the catalogue with every type it reads. Gives: `Checked`: the Subscription (without
its digest), the type it emits, and what lint needs. Never: looks at another subscription.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from fairlead.dataclass import dataclass
from fairlead.language.checking.emission import emission
from fairlead.language.checking.keys import display, keys
from fairlead.language.checking.noted_events import belonging, in_canonical_order, noting
from fairlead.language.checking.options import Options, options
from fairlead.language.checking.pattern import BranchPattern, shapes
from fairlead.language.checking.tables import with_tables
from fairlead.language.checking.typing.literals import duration
from fairlead.language.checking.typing.scope import AliasMember, Scope
from fairlead.language.checking.where import Placed, where
from fairlead.language.clauses.limit import limit
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault
from fairlead.language.parsing.text import RuleText
from fairlead.model.events.types import Catalogue, EventType
from fairlead.model.plans.options import PAPER_DISPOSALS
from fairlead.model.plans.plan import Branch, Emission, Subscription

ClauseType = TypeVar("ClauseType", bound=syntax.Clause)


@dataclass(frozen=True)
class Checked:
    node: syntax.Subscription
    subscription: Subscription
    shapes: tuple[BranchPattern, ...]
    conjuncts: tuple[tuple[Placed, ...], ...]
    """For each branch its predicates with their places in the text."""
    emitted: EventType | None = None


def checked(node: syntax.Subscription, catalogue: Catalogue, declared: frozenset[str], source: RuleText) -> Checked:
    """1. clauses, each once · 2. pattern to slots · 3. clauses that note events · 4. WHERE, HAVING · 5. PER · 6. options ·
    7. EMIT"""
    _check_repeats(node)  # 1
    built = shapes(node.pattern, catalogue)  # 2
    mine = belonging(node.noting, built, catalogue)  # 3
    mine = [in_canonical_order(each, shape, source) for each, shape in zip(mine, built, strict=True)]
    hidden = {each.alias.text: each.word for each in node.noting}
    noted = [noting(each, shape, source) for each, shape in zip(mine, built, strict=True)]
    scopes = [Scope(shape.members, hidden) for shape in built]
    condition = _find(node, syntax.Where)  # 4
    placed = where(condition, scopes, source) if condition else [[] for _ in built]
    whole = _find(node, syntax.Having)
    aggregated = where(whole, [replace(each, whole=True) for each in scopes], source) if whole else [[] for _ in built]
    branches = tuple(
        Branch(
            shape.elements,
            shape.slots,
            tuple(each for _, each in found),
            (*shape.clauses, *clauses),
            having=tuple(each for _, each in conditions),
        )
        for shape, found, clauses, conditions in zip(built, placed, noted, aggregated, strict=True)
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
    _check_runs(node, branches, chosen)
    emit = _find(node, syntax.Emit)  # 7
    made: EventType | None = None
    if emit:
        made, fields = emission(emit, _joint_scopes(built, hidden), catalogue, emit.type.text in declared)
        branches = _emitting(branches, fields)
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
            raise Fault("L099", clause.span, f"{clause.word} … WITHIN is not supported with runs", fix)


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
    return [Scope({**everywhere, **shape.members}, hidden, whole=True) for shape in built]


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
