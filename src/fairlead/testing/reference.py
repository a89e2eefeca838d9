"""The reference matcher: the papers' algorithm, literal, exhaustive and slow. It is the definition, and not for use in
production.

One queue per type and branch; an accepted event is appended and MATCH runs once, by depth-first search over the signature,
testing whole assignments only; DEQUEUE then disposes. Extended as docs/semantics.md says by keys, windows, WITHOUT and
LIMIT. It keeps every negated event for ever and decides an absence by searching all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from fairlead.matching.expressions.functions import unknown
from fairlead.matching.outcome import Due, Match, too_many_relations
from fairlead.matching.unit import UnitEngine
from fairlead.model.clauses.then import Precedence
from fairlead.model.clauses.without import Absence, NegationBefore, NegationBetween, Timer
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue
from fairlead.model.limits import LIMITS
from fairlead.model.plans.key_parts import key_value
from fairlead.model.plans.options import Disposal
from fairlead.model.plans.plan import Branch, Plan, Subscription
from fairlead.model.plans.retention import Retention
from fairlead.model.relations.relation import Relation
from fairlead.testing.interpreter import holds
from fairlead.testing.sequences import LAST_TIME, ReferenceSequence

Run = tuple[Event, ...]
Members = tuple[Any, ...]
"""What each slot holds: an event, or a run (`q+`)."""
Negated = NegationBetween | NegationBefore | Absence | Timer


class ReferenceConjunction:
    """One branch for one key: its queues, its negated events, its clock."""

    def __init__(self, subscription: Subscription, branch: Branch) -> None:
        self.subscription, self.branch = subscription, branch
        self.queues: dict[str, list[Event]] = {name: [] for name in branch.queue_types}
        self.runs = {*branch.runs}
        self.precedences = [each for each in branch.clauses if isinstance(each, Precedence)]
        self.negations = [each for each in branch.clauses if isinstance(each, NegationBetween | NegationBefore)]
        self.absences = [each for each in branch.clauses if isinstance(each, Absence | Timer)]
        self.withouts: list[Negated] = [*self.negations, *self.absences]
        self.negated: dict[int, list[Event]] = {each.slot: [] for each in self.withouts}
        self.clock: int | None = None
        self.tables = dict(branch.tables)

    def arrive(self, event: Event, names: list[str]) -> list[Members]:
        """ENQUEUE, then MATCH, then DEQUEUE, for an event that the types `names` of the branch accept."""
        entered = [name for name in self.queues if name in names and self.accepts(name, event)]
        noted = [n for n in self.withouts if n.type in names and self.notes(n, event)]
        if not entered and not noted:
            return []
        into = [name for name in entered if name not in self.tables]
        for name in into:
            self.queues[name].append(event)
        for each in noted:
            self.negated[each.slot].append(event)
        if self.subscription.is_clocked and event.time is not None:
            self.clock = event.time if self.clock is None else max(self.clock, event.time)
        for name, queue in self.queues.items():
            for bound in self.bounds(name):
                queue[:] = self.in_bounds(queue, bound)
        found = self.match(event) if any(event in self.queues[name] for name in into) else []
        if found:
            self.dequeue(found)
        for name in (each for each in entered if each in self.tables):
            row = self.row(name, event)
            self.queues[name][:] = [each for each in self.queues[name] if self.row(name, each) != row] + [event]
        return found

    def row(self, name: str, event: Event) -> tuple[Any, ...]:
        """The key of an event in a table."""
        return tuple(event.raw(attribute) for attribute in self.tables[name])

    def bounds(self, name: str) -> list[Retention]:
        """WITHIN, a bound of every queue that is no table, then the queue's own."""
        if name in self.tables:
            return []
        window = [] if self.subscription.within_us is None else [Retention(span_us=self.subscription.within_us)]
        return window + [each for queue, each in self.branch.retained if queue == name]

    def in_bounds(self, queue: list[Event], bound: Retention) -> list[Event]:
        """What a bound leaves of a queue: by number, or by the clock."""
        if bound.count is not None:
            few = len(queue) <= bound.count
            return queue if few else queue[-1:] if bound.batch else queue[-bound.count :]
        assert self.clock is not None
        assert bound.span_us is not None
        cut = self.clock - self.clock % bound.span_us if bound.batch else self.clock - bound.span_us
        return [each for each in queue if each.time is None or each.time >= cut]

    def accepts(self, name: str, event: Event) -> bool:
        """At least one instance of the type has all its unary predicates true. A table accepts what has a key."""
        if name in self.tables:
            return not any(map(unknown, self.row(name, event)))
        return any(
            all(holds(p.condition, {slot: event}) for p in self.branch.predicates if p.slots == (slot,))
            for slot in self.branch.slots_of_type[name]
        )

    def notes(self, negation: Negated, event: Event) -> bool:
        return all(holds(p.condition, {negation.slot: event}) for p in negation.predicates if p.slots == (negation.slot,))

    def match(self, event: Event) -> list[Members]:
        """The first relation, or with ALL each, up to a limit; only those with the event, if members can stay queued."""
        anchored, limit = self.subscription.is_anchored(self.branch), self.subscription.limit_per_event
        found = (members for members in self.assignments((), event) if not anchored or event in flat(members))
        if not self.subscription.matching.all:
            return list(islice(found, 1))
        made = list(islice(found, limit or LIMITS.relations_per_event_max + 1))
        if len(made) > LIMITS.relations_per_event_max:
            raise too_many_relations(self.subscription.name)
        return made

    def assignments(self, members: Members, event: Event) -> Iterator[Members]:
        """Those that fit, in the order of the search. Runs follow from the other members, and a relation with runs contains the
        arriving event."""
        if len(members) < len(self.branch.slots):
            for candidate in [()] if len(members) in self.branch.runs else self.candidates(members):
                yield from self.assignments((*members, candidate), event)
        elif self.fits(members):
            members = tuple(self.run(at, members) if at in self.branch.runs else each for at, each in enumerate(members))
            forbidden = any(self.forbidden(each, members) for each in self.negations)
            if not forbidden and (not self.branch.runs or self.is_whole(members, event)):
                yield members

    def run(self, slot: int, members: Members) -> Run:
        """The events that a run has beside these members."""
        orders = [(a, b) for p in self.precedences for a in p.left for b in p.right if a not in self.runs or b not in self.runs]
        found = [
            event
            for event in self.queues[self.branch.slots[slot].type]
            if event not in members
            and all(members[a].position < event.position for a, b in orders if b == slot)
            and all(event.position < members[b].position for a, b in orders if a == slot)
            and all(
                holds(p.condition, dict(enumerate(members)) | {slot: event}) for p in self.branch.predicates if slot in p.slots
            )
        ]
        most = self.branch.runs[slot].most
        if most is None or len(found) <= most:
            return tuple(found)
        return tuple(found[-most:] if self.subscription.matching.recent else found[:most])

    def is_whole(self, members: Members, event: Event) -> bool:
        """The runs are long enough, HAVING is true, and the event is a member."""
        lengths = all(len(members[slot]) >= run.least for slot, run in self.branch.runs.items())
        having = all(holds(each.condition, dict(enumerate(members))) for each in self.branch.having)
        return lengths and having and event in flat(members)

    def candidates(self, members: Members) -> Iterator[Event]:
        """The events to try for the next slot, in the order of the matching option."""
        slot, matching = self.branch.slots[len(members)], self.subscription.matching
        queue = self.queues[slot.type]
        step = -1 if matching.recent else 1
        at = len(queue) - 1 if matching.recent else 0
        again = bool(members) and self.branch.slots[len(members) - 1].type == slot.type
        if again:
            at = queue.index(members[-1]) + step
        while 0 <= at < len(queue):
            if queue[at] not in members:
                yield queue[at]
            if again and matching.contiguous:
                return
            at += step

    def fits(self, members: Members) -> bool:
        """The members that are no runs."""
        binding, single = dict(enumerate(members)), [p for p in self.branch.predicates if self.runs.isdisjoint(p.slots)]
        pairs = [(a, b) for p in self.precedences for a in p.left for b in p.right if self.runs.isdisjoint((a, b))]
        return all(holds(predicate.condition, binding) for predicate in single) and all(
            members[a].position < members[b].position for a, b in pairs
        )

    def forbidden(self, negation: Negated, members: Members) -> bool:
        """Some negated event, other than a member, is where it must not be."""
        binding = dict(enumerate(members))
        return any(
            event not in flat(members)
            and self.inside(negation, event, members)
            and all(holds(p.condition, binding | {negation.slot: event}) for p in negation.predicates)
            for event in self.negated[negation.slot]
        )

    def inside(self, negation: Negated, event: Event, members: Members) -> bool:
        if isinstance(negation, NegationBetween):
            left, right = members[negation.left], members[negation.right]
            return bool(left.position < event.position < right.position)
        anchor: Event = members[negation.anchor]
        if isinstance(negation, NegationBefore):
            near = negation.within_us is None or event.time >= anchor.time - negation.within_us  # type: ignore[operator]
            return event.position < anchor.position and near
        assert event.time is not None
        assert anchor.time is not None
        return event.position > anchor.position and abs(event.time - anchor.time) <= negation.within_us

    def dequeue(self, found: list[Members]) -> None:
        """What leaves after these relations: by the option, the matched events that KEEP does not name decide."""
        branch, disposal = self.branch, self.subscription.disposal_of(self.branch)
        kept = flat(members[slot] for members in found for slot in branch.kept)
        leaving = [slot for slot in range(len(branch.slots)) if slot not in branch.kept and slot not in branch.read]
        matched = flat(members[slot] for members in found for slot in leaving)
        places = [event.position for event in flat(members[slot] for members in found for slot in branch.upto)]
        for name, queue in self.queues.items():
            if name in self.tables:
                continue
            slots = [slot for slot in branch.slots_of_type[name] if slot not in branch.kept]
            named = flat(members[slot] for members in found for slot in slots)
            mine = [at for at, event in enumerate(queue) if event in named]
            left = list(queue)
            if disposal.upto:
                place = min(places) if disposal is Disposal.UPTO_FIRST else max(places)
                left = [event for event in queue if event.position >= place]
            elif mine:
                left = {
                    Disposal.PREFIX_INFIX: queue[mine[-1] + 1 :],
                    Disposal.INFIX: [event for at, event in enumerate(queue) if at not in mine],
                    Disposal.INFIX_POSTFIX: queue[: mine[0]],
                    Disposal.FIRST_PREFIX: queue[mine[0] + 1 :],
                    Disposal.ADVANCE: queue[mine[: self.subscription.advance or 1][-1] + 1 :],
                    Disposal.NONE: queue[:],
                }[disposal]
            if disposal in (Disposal.PREFIX_INFIX, Disposal.INFIX, Disposal.INFIX_POSTFIX):
                left = [event for event in left if event not in matched]  # from every queue, where types overlap
            queue[:] = [event for event in queue if event in left or event in kept]


def flat(members: Iterable[Event | Run]) -> list[Event]:
    return [event for each in members for event in (each if isinstance(each, tuple) else (each,))]


def match_of(number: int, branch: Branch, members: Members, deadline: int | None = None) -> Match:
    runs = tuple(len(each) if isinstance(each, tuple) else 1 for each in members) if branch.runs else None
    return Match(number, tuple(flat(members)), deadline, runs)


class ReferenceSubscription:
    """A disjunction: its branches in order, an instance of each for every key, and the relations that wait for a deadline."""

    def __init__(self, subscription: Subscription, catalogue: Catalogue) -> None:
        self.subscription = subscription
        self.conjunctions: dict[Any, ReferenceConjunction] = {}
        self.sequences: dict[Any, ReferenceSequence] = {}
        self.ended: list[tuple[Due, Match, Any]] = []
        """What a deadline of a sequence has decided, and is not yet taken."""
        self.catalogue = catalogue
        self.pending: list[tuple[Due, Match, ReferenceConjunction, Any]] = []
        self.delivered: list[Any] = []
        """The keys of all relations that were delivered."""
        self.seen: int | None = None

    def arrive(self, event: Event) -> list[Match]:
        if event.time is not None:
            self.tell(event.time)
        delivered = []
        for number, branch in enumerate(self.subscription.branches):
            for key, names in self.keys(branch, event).items():
                if branch.sequence is not None:
                    sequence = self.sequences.setdefault((number, key), ReferenceSequence(self.subscription, branch))
                    for members in sequence.arrive(event, names, self.seen):
                        delivered += self.limited(match_of(number, branch, members), key)
                    continue
                conjunction = self.conjunctions.setdefault((number, key), ReferenceConjunction(self.subscription, branch))
                for members in conjunction.arrive(event, names):
                    deadlines = [(members[each.anchor].time or 0) + each.within_us for each in conjunction.absences]
                    match = match_of(number, branch, members, max(deadlines, default=None))
                    if match.deadline is None:
                        delivered += self.limited(match, key)
                    elif self.seen is not None and self.seen > match.deadline:
                        if not any(conjunction.forbidden(each, members) for each in conjunction.absences):
                            delivered += self.limited(match, key)
                    else:
                        due = match.deadline, tuple(each.position for each in match.members), number
                        self.pending.append((due, match, conjunction, key))
        return delivered

    def limited(self, match: Match, key: Any) -> list[Match]:
        """The relation, unless as many were delivered before as LIMIT allows: of all keys, or of this one."""
        limit = self.subscription.limit
        if limit is not None:
            before = self.delivered.count(key) if limit.per_key else len(self.delivered)
            if before >= limit.count:
                return []
        self.delivered.append(key)
        return [match]

    def keys(self, branch: Branch, event: Event) -> dict[tuple[Any, ...], list[str]]:
        """The event's key in this branch, with the types of the branch that accept it under that key (one key, unless
        overlapping types name different key attributes). An event whose key has a NULL or NaN belongs to none."""
        found: dict[tuple[Any, ...], list[str]] = {}
        for name in branch.types:
            if event.type in self.catalogue.accepts(name):
                key = tuple(key_value(event, part) for part in dict(branch.keys).get(name, ()))
                if not any(map(unknown, key)):
                    found.setdefault(key, []).append(name)
        return found

    def tell(self, time: int) -> None:
        self.seen = time if self.seen is None else max(self.seen, time)

    def next_due(self) -> Due | None:
        if self.ended:
            return self.ended[0][0]
        return min([*self.open_sequences(), *(due for due, *_ in self.pending)], default=None)

    def open_sequences(self) -> dict[Due, Any]:
        """When something is decided of them: those that are timed, by their deadline; the others when nothing follows."""
        return {
            (each.open.deadline if each.branch.timed else LAST_TIME, (each.rows[0].event.position,), at[0]): at
            for at, each in self.sequences.items()
            if each.open is not None
        }

    def take_due(self) -> Match | None:
        due = self.next_due()
        assert due is not None
        at = self.open_sequences().get(due)
        if at is not None and not self.ended:
            sequence, number = self.sequences[at], at[0]
            for members in sequence.decide(due[0] + 1):
                self.ended.append((due, match_of(number, sequence.branch, members), at[1]))
        if at is not None or self.ended:
            ended = self.ended.pop(0) if self.ended else None
            return next(iter(self.limited(*ended[1:])), None) if ended else None
        entry = min(self.pending, key=lambda each: each[0])
        self.pending.remove(entry)
        _, match, conjunction, key = entry
        if any(conjunction.forbidden(each, match.members) for each in conjunction.absences):
            return None
        return next(iter(self.limited(match, key)), None)


class ReferenceMatcher:
    """A whole plan on reference matchers: each subscription alone with its upstream, whatever else the plan has. Relations that
    an event or the end completes are delivered by place, those that deadlines decided first, by deadline, and then in the order
    of the text."""

    def __init__(self, plan: Plan) -> None:
        self.engines = [UnitEngine(_alone(plan, each), ReferenceSubscription) for each in plan.subscriptions]

    def arrive(self, event: Event) -> list[Relation]:
        return _in_order([engine.arrive(event) for engine in self.engines])

    def finish(self, until: int | None = None) -> list[Relation]:
        return [] if until is None else _in_order([engine.finish(until) for engine in self.engines])

    def run(self, events: Iterable[Event], until: int | None = None) -> list[Relation]:
        return [*(relation for event in events for relation in self.arrive(event)), *self.finish(until)]


def _alone(plan: Plan, subscription: Subscription) -> Plan:
    """The subscription after its upstream, which is silent, in the order of their digests."""
    upstream: dict[str, Subscription] = {}
    waiting = [subscription]
    while waiting:
        for name in plan.derived_types(waiting.pop()):
            for each in plan.emitters[name]:
                if each.name not in upstream:
                    upstream[each.name] = each
                    waiting.append(each)
    ordered = sorted(upstream.values(), key=lambda each: (each.id_digest, each.name))
    return replace(plan, subscriptions=(*ordered, subscription), guarantees={}, silent=frozenset(upstream))


def _in_order(found: Iterable[Any]) -> list[Relation]:
    """By engine, in the order of the text: relations and their deadlines."""
    numbered = [(r.completed_at, due, at, n, r) for at, some in enumerate(found) for n, (r, due) in enumerate(some)]
    return [relation for *_, relation in sorted(numbered, key=lambda each: each[:4])]
