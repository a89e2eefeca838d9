"""The canonical form of a subscription, equal for all equivalent texts, and its digest.

    A a AND B b OR C c WHERE a.x > b.x   ≡   C AND … whatever the names, the order of branches and predicates, b.x < a.x

The digest covers the pattern and its options and, of the types that it reads, the parts that it reads: the concrete types that
it accepts, the attributes that it names with their types, the event time if time matters, and the subscriptions that emit
derived types. It does not cover names, other subscriptions in the file, and attributes that none of these reads.

Takes: a checked subscription. Gives: its branches in canonical order, and its identity. Never: changes what is found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fairlead.dataclass import dataclass
from fairlead.model.clauses.clause import Clause, NotingClause
from fairlead.model.events.types import HEARTBEAT, Catalogue
from fairlead.model.expressions.expression import (
    Aggregate,
    Atom,
    Compare,
    Condition,
    Expression,
    Field,
    Predicate,
    Previous,
    TimeOf,
    render,
)
from fairlead.model.plans.buckets import in_order
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.plans.key_parts import part_of
from fairlead.model.plans.plan import Branch, Plan, Subscription
from fairlead.model.plans.sequence import canonical_text, takes

MIRRORED = {">": "<", ">=": "<="}


@dataclass(frozen=True)
class Identity:
    """`timed`: the digest of the subscription and of the source of its members' times, which determine the times of emitted
    events. `waits`: it or a subscription upstream has an absence to decide."""

    digest: str
    timed: str
    waits: bool
    unfolded: Identity | None = None
    """Without FOLD, here and upstream; None if nothing is folded."""


def in_canonical_order(subscription: Subscription, catalogue: Catalogue) -> Subscription:
    """The subscription with each branch once, ordered by content; of equal ones the first of the text is kept."""
    if len(subscription.branches) < 2:
        return subscription
    said: dict[str, Branch] = {}
    texts = ["\n".join(branch_lines(branch, catalogue)) for branch in subscription.branches]
    for text, branch in zip(texts, subscription.branches, strict=True):
        said.setdefault(text, branch)
    ordered = sorted(said)
    numbers = {text: number for number, text in enumerate(ordered)}
    branches = tuple(said[text] for text in ordered)
    return replace(subscription, branches=branches, written=tuple(numbers[text] for text in texts))


def identified(subscription: Subscription, identity: Identity) -> Subscription:
    """The subscription with its digests."""
    unfolded = "" if identity.unfolded is None else identity.unfolded.digest
    return replace(subscription, digest=identity.digest, unfolded=unfolded)


def identity_of(subscription: Subscription, catalogue: Catalogue, upstream: Mapping[str, Sequence[Identity]]) -> Identity:
    """`upstream`: by derived type that it reads, the identities of its emitters. The branches must be in canonical order."""
    made = _identity(subscription, catalogue, upstream)
    if not subscription.has_folds and all(each.unfolded is None for emitting in upstream.values() for each in emitting):
        return made
    plain = replace(subscription, branches=tuple(replace(branch, folded=()) for branch in subscription.branches))
    above = {name: [each.unfolded or each for each in emitting] for name, emitting in upstream.items()}
    return replace(made, unfolded=_identity(plain, catalogue, above))


def _identity(subscription: Subscription, catalogue: Catalogue, upstream: Mapping[str, Sequence[Identity]]) -> Identity:
    above = [each for emitting in upstream.values() for each in emitting]
    waits = any(each.waits for each in above)  # absences upstream are also decided by the time of the events that are read here
    uses_time = waits or subscription.is_clocked or any(map(_uses_time, subscription.branches))
    concrete = sorted(subscription.reads(catalogue) - {HEARTBEAT.name})
    disposal = f"{subscription.disposal.code}{subscription.advance or ''}"
    lines = [f"{subscription.matching.code} {disposal} within={subscription.within_us}"]
    lines += [] if subscription.limit_per_event is None else [f"limit {subscription.limit_per_event} per event"]
    lines += [] if subscription.limit is None else [str(subscription.limit)]
    lines += [] if subscription.order is None else [subscription.order.canonical]
    lines += _type_lines(subscription, catalogue)
    times = [f"time {name} {_time(name, catalogue)}" for name in concrete]
    timed_above = _from(upstream, [(name, each.timed) for name, emitting in upstream.items() for each in emitting])
    plain_above = _from(upstream, [(name, each.digest) for name, emitting in upstream.items() for each in emitting])
    lines += [*times, *timed_above] if uses_time else plain_above
    for branch in subscription.branches:
        lines += branch_lines(branch, catalogue)
    lines += [f"fold {at} {' '.join(map(str, each.folded))}" for at, each in enumerate(subscription.branches) if each.folded]
    digest = _hashed(lines)
    return Identity(digest, _hashed([digest, *times, *timed_above]), subscription.waits or waits)


def with_order(plan: Plan, order: EventOrder) -> Plan:
    """The plan with its events in another order, which is part of what its subscriptions ask for."""
    done: dict[str, tuple[Subscription, Identity]] = {}
    for each in plan.emitters_first:
        mine = in_order(each, order, plan.catalogue)
        upstream = {name: [done[one.name][1] for one in plan.emitters[name]] for name in plan.derived_types(each)}
        identity = identity_of(mine, plan.catalogue, upstream)
        done[each.name] = identified(mine, identity), identity
    return replace(plan, subscriptions=tuple(done[each.name][0] for each in plan.subscriptions))


def _from(upstream: Mapping[str, Sequence[Identity]], named: Iterable[tuple[str, str]]) -> list[str]:
    return [f"from {name} {digest}" for name, digest in sorted(named)] if upstream else []


def _hashed(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()  # the only line breaks in a line are in texts, in quotes


def _time(name: str, catalogue: Catalogue) -> str:
    schema = catalogue[name]
    return schema.time_attribute or ("of its members" if schema.implicit_time else "none")


def _type_lines(subscription: Subscription, catalogue: Catalogue) -> Iterator[str]:
    """For each named type: what it accepts, and what is read of it."""
    read: dict[str, set[str]] = {name: set() for name in subscription.types}
    for branch in subscription.branches:
        types = [*branch.signature, *(each.type for each in branch.noting)]
        for node in _nodes(branch):
            match node:
                case Field():
                    read[types[node.slot]].add(node.attribute)
                case Previous():
                    read[types[node.slot]].add(node.attribute)
                case Aggregate(attribute=str()):
                    read[types[node.slots[0]]].add(str(node.attribute))
        for name, attributes in (*branch.keys, *branch.tables):
            read[name].update(part_of(each).attribute for each in attributes)
    for name, named in read.items():
        yield f"type {name} accepts {' '.join(catalogue.accepts(name))}"
        for each in sorted(named):
            yield f"  {catalogue[name].attribute(each)}"


def _predicates(branch: Branch) -> Iterator[Predicate]:
    yield from branch.predicates
    yield from branch.having
    if branch.sequence is not None:
        yield from (each.until for each in takes(branch.sequence) if each.until is not None)
    for clause in branch.clauses:
        yield from clause.predicates


def _nodes(branch: Branch) -> Iterator[Expression]:
    """Every expression of a branch, and every part of one."""
    stack: list[Expression] = [atom for each in _predicates(branch) for term in each.condition.terms for atom in term]
    if branch.emission is not None:
        stack += [value for _, value in branch.emission.fields]
    while stack:
        node = stack.pop()
        yield node
        stack += node.parts


def _uses_time(branch: Branch) -> bool:
    if branch.sequence is not None and any(each.gap_us is not None for each in takes(branch.sequence)):
        return True
    return any(each.timed for each in branch.noting) or any(isinstance(node, TimeOf) for node in _nodes(branch))


def branch_lines(branch: Branch, catalogue: Catalogue) -> list[str]:
    """The content of a branch, without its aliases and without FOLD, so that branches have the numbers that they have without
    it."""
    names = branch.canonical_names()
    lines = [f"branch {' '.join(names)}", *_where("where", branch.predicates, names)]
    if branch.sequence is not None:
        ends = {each.slot: canonical_condition(each.until.condition, names) for each in takes(branch.sequence) if each.until}
        lines.append(f"sequence {canonical_text(branch.sequence, names, ends)}")
    lines += _where("having", branch.having, names)
    lines += sorted(each.line for each in branch.clauses if not isinstance(each, NotingClause))
    for clause in branch.noting:
        lines += _clause_lines(clause, names)
    lines += [f"keep {' '.join(names[slot] for slot in branch.kept)}"] if branch.kept else []
    lines += [f"upto {' '.join(names[slot] for slot in branch.upto)}"] if branch.upto else []
    lines += [f"table {name} {' '.join(key)}" for name, key in branch.tables]
    lines += [f"retain {name} {each.canonical}" for name, each in branch.retained]
    lines += [f"key {name} {' '.join(attributes)}" for name, attributes in branch.keys]
    if branch.emission:
        schema = catalogue[branch.emission.type]
        fields = ", ".join(f"{schema.attribute(name)} = {render(value, names)}" for name, value in branch.emission.fields)
        lines.append(f"emit {branch.emission.type}({fields})")
    return lines


def clauses_in_order(clauses: Iterable[NotingClause], members: Sequence[str]) -> list[NotingClause]:
    """The clauses of a branch that note events, each once, ordered by content. A relation has to meet all of them, and none
    can refer to another's event, so their order in a text means nothing; but states use this order."""
    said: dict[tuple[str, ...], NotingClause] = {}
    for each in clauses:
        names = [*members, *["" for _ in range(each.slot - len(members))], "!"]
        said.setdefault(tuple(_clause_lines(each, names)), each)
    return [said[text] for text in sorted(said)]


def _clause_lines(clause: Clause, names: Sequence[str]) -> list[str]:
    return [clause.line, *_where("  where", clause.predicates, names)]


def _where(word: str, predicates: Sequence[Predicate], names: Sequence[str]) -> list[str]:
    return sorted({f"{word} {canonical_condition(each.condition, names)}" for each in predicates})


def canonical_condition(condition: Condition, names: Sequence[str]) -> str:
    """Terms and their atoms sorted, each once, and comparisons from left to right: AND, OR, = and < are symmetric."""
    terms = {" AND ".join(sorted({_atom(atom, names) for atom in term})) or "TRUE" for term in condition.terms}
    return " OR ".join(sorted(terms)) if terms else "FALSE"


def _atom(atom: Atom, names: Sequence[str]) -> str:
    if not isinstance(atom, Compare):
        return render(atom, names)
    left, right, operator = render(atom.left, names), render(atom.right, names), atom.operator
    if operator in MIRRORED:
        left, right, operator = right, left, MIRRORED[operator]
    elif operator in ("=", "!=") and left > right:
        left, right = right, left
    return f"({left} {operator} {right})"
