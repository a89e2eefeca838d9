"""One branch, compiled once and shared by all its keys: accepting, matching, disposing, forgetting.

Before an arrival no relation is ready, so a new one contains the arriving event, and the search starts from it; under ALL,
NONE, UPTO and KEEP that is what a relation has to do (`Subscription.is_anchored`). Otherwise it fails in three cases, which are
tracked by `Instance.loose` and handled by a search over everything:
- FIRST PREFIX keeps matched events, so the remaining ones can already be a relation;
- under CONTIGUOUS, an event that leaves the middle of a queue makes neighbours of two that were not;
- an event that is in two queues (subtypes, unions) can take part in two ways; this is searched over everything in any case.

Takes: an instance and an event. Gives: the members of the relations that it completes. Never: decides an absence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.matching.attempt import QUEUED, Attempt
from fairlead.matching.expressions.closures import Check, compile_condition, slot_types
from fairlead.matching.interpreted.dead_events import is_circular, needs_in_front
from fairlead.matching.interpreted.disposal import Disposer, drop_dead
from fairlead.matching.interpreted.instance import Instance, Key
from fairlead.matching.interpreted.retention import LastEvents, make_room
from fairlead.matching.interpreted.routes import Route, Routes
from fairlead.matching.interpreted.runs import flat
from fairlead.matching.interpreted.search import Search
from fairlead.matching.noted_events import NotedEventPolicy, noted_event_policy
from fairlead.matching.outcome import too_many_relations
from fairlead.model.clauses.clause import NotingClause
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue, EventType
from fairlead.model.limits import LIMITS
from fairlead.model.plans.options import Disposal
from fairlead.model.plans.plan import Branch, Subscription
from fairlead.model.plans.retention import horizons


@dataclass(frozen=True)
class CompiledNoting:
    """A clause that notes events, compiled: which it notes, and when one of them forbids a relation."""

    clause: NotingClause
    since: int | None
    until: int | None
    apart_us: int | None
    accepts: Check
    forbids: tuple[Check, ...]
    policy: NotedEventPolicy
    anchor_queue: int
    """The queue of the member that `policy` names."""

    def inside(self, event: Event, members: tuple[Event, ...] | list[Event]) -> bool:
        """Whether the event is within the reach of the clause."""
        if self.since is None:
            anchor = members[self.until]  # type: ignore[index]
            near = self.apart_us is None or event.time >= anchor.time - self.apart_us  # type: ignore[operator]
            return event.position < anchor.position and near
        anchor = members[self.since]
        if self.until is not None:
            return anchor.position < event.position < members[self.until].position
        return event.position > anchor.position and abs(event.time - anchor.time) <= self.apart_us  # type: ignore[operator]

    def decides_nothing(self, event: Event, noted: list[Event]) -> bool:
        """Whether what is noted forbids whatever the event could."""
        if not noted or not self.policy.decisive:
            return False
        return not self.policy.timed or event.time <= noted[-1].time  # type: ignore[operator]

    def forget(self, noted: list[Event], anchors: list[Event], clock: int | None) -> None:
        """Noted events that can forbid nothing any more leave; `anchors`: what is queued where the policy says."""
        if not self.policy.before:
            if not anchors:
                noted.clear()
            elif noted and noted[0].position < anchors[0].position:
                noted[:] = [event for event in noted if event.position > anchors[0].position]
            return
        gone = 0
        if self.policy.decisive:
            free = self.policy.early or not anchors
            while gone + 1 < len(noted) and (free or noted[gone + 1].position < anchors[0].position):
                gone += 1
        if self.policy.horizon_us is not None and clock is not None:
            while gone < len(noted) and noted[gone].time < clock - self.policy.horizon_us:  # type: ignore[operator]
                gone += 1
        del noted[:gone]

    def forbidden(self, event: Event, members: tuple[Event, ...] | list[Event], width: int) -> bool:
        """Whether this noted event forbids these members. `width` is the number of slots, those of noted events included. In
        a reduced search (reduced_search.py) members can be missing that the clause does not read and that are of other types
        than the event."""
        if not self.inside(event, members) or any(event.position == each.position for each in flat(members) if each):
            return False
        binding: list[Event | None] = [*members, *[None] * (width - len(members))]
        binding[self.clause.slot] = event
        return all(check(binding) for check in self.forbids)


class Conjunction:
    """One branch, compiled once and shared by all its keys."""

    def __init__(
        self, subscription: Subscription, branch: Branch, catalogue: Catalogue, attempt: Attempt | None = None
    ) -> None:
        self.attempt = attempt or Attempt()
        self.disposal, self.matching = subscription.disposal_of(branch), subscription.matching
        self.clocked, self.horizons = subscription.is_clocked, horizons(subscription, branch)
        self.tables = {at: LastEvents(key) for at, key in branch.table_queues.items()}
        self.retained = [branch.retention.get(name) for name in branch.queue_types]
        self.name, self.limit = subscription.name, subscription.limit_per_event
        self.disposer, self.anchored = Disposer(subscription, branch), subscription.is_anchored(branch)
        self.waiting = branch.waiting
        self.search = Search(branch, subscription.matching, catalogue, self.attempt, self.anchored)
        types = slot_types(branch, catalogue)
        self.width = len(types)
        self.slots_of_queue = [branch.slots_of_type[name] for name in branch.queue_types]
        self.unary = [acceptor(branch, slots, types) for slots in self.slots_of_queue]
        policies = [noted_event_policy(subscription, branch, each, catalogue) for each in branch.noting]
        self.noting = [_noting(branch, *each, types) for each in zip(branch.noting, policies, strict=True)]
        self.prompt = [at for at, each in enumerate(branch.noting) if not each.waits]
        self.searched = [at for at in self.prompt if not policies[at].early]
        self.early = [at for at in self.prompt if policies[at].early]
        self.patient = [at for at, each in enumerate(branch.noting) if each.waits]
        """Of the clauses that note events: those that decide when the members are found, of which searches ask some and others
        are decided when a member arrives, and those that wait."""
        self.outlasts = any(each.before for each in policies)
        """What is noted can be all that an instance has."""
        self.routes = Routes(branch, catalogue)
        self.needs = needs_in_front(branch)
        self.circular = is_circular(self.needs)

    def create(self) -> Instance:
        return Instance([[] for _ in self.slots_of_queue], [[] for _ in self.noting])

    def arrivals(self, event: Event) -> Sequence[tuple[Key, Route]]:
        return self.routes.arrivals(event)

    def accept(self, route: Route, event: Event) -> tuple[list[int], list[int]]:
        """The queues that the event enters and the clauses that note it."""
        entered = [
            at for at in route.queues if (self.tables[at].accepts(event) if at in self.tables else self.unary[at](event))
        ]
        noted = [at for at in route.noting if self.noting[at].accepts(event)]
        return entered, noted

    def arrive(self, instance: Instance, event: Event, entered: list[int], noted: list[int]) -> list[tuple[Any, ...]]:
        """Of each relation what each slot holds: an event, or the tuple of a run. Tables have the event after that."""
        found = self._arrive(instance, event, [at for at in entered if at not in self.tables], noted)
        for at in (at for at in entered if at in self.tables):
            self.attempt.spend(len(instance.queues[at]))
            self.tables[at].put(instance.queues[at], event)
        return found

    def _arrive(self, instance: Instance, event: Event, entered: list[int], noted: list[int]) -> list[tuple[Any, ...]]:
        self.attempt.spend(sum(map(len, instance.queues)) // QUEUED)
        # 1. the window: events older than the window leave; an event that is itself too old does not enter
        if self.clocked and event.time is not None:
            self._expire(instance, event.time)
            entered = [at for at in entered if not self.is_late(instance, at, event)]
        # 2. enter and note
        barred = [at for at in entered if self.early and self.is_barred(instance, at, event)]
        for at in entered:
            if at not in barred:
                make_room(instance.queues[at], self.retained[at])
                instance.queues[at].append(event)
        for at in noted:
            if not self.noting[at].decides_nothing(event, instance.noted[at]):
                instance.noted[at].append(event)
            if at in self.patient:
                self._cancel(instance, at, event)
        # 3. match and dispose
        inside = [at for at in entered if at not in barred]
        if self.search.runs is not None:
            return self._match_with_runs(instance, inside, event)
        found = self._match(instance, event, inside) if inside or (entered and instance.loose) else []
        if found:
            self._dispose(instance, found)
        return found

    def displaced(self, instance: Instance, event: Event, entered: Sequence[int]) -> Iterator[tuple[int, Event]]:
        """The events that leave when this one enters, each with its queue: by RETAIN, or from a table."""
        for at in entered:
            queue = [*instance.queues[at]]
            if at in self.tables:
                self.tables[at].put(queue, event)
            elif self.retained[at] is None or self.is_late(instance, at, event):
                continue
            else:
                make_room(queue, self.retained[at])
            stays = {each.position for each in queue}
            yield from ((at, each) for each in instance.queues[at] if each.position not in stays)

    def is_forbidden(self, instance: Instance, members: tuple[Event, ...]) -> bool:
        """Whether an event noted so far forbids these members, which would have to wait."""
        self.attempt.spend(sum(len(instance.noted[at]) for at in self.patient))
        return any(self.noting[at].forbidden(event, members, self.width) for at in self.patient for event in instance.noted[at])

    def is_barred(self, instance: Instance, queue: int, event: Event) -> bool:
        """Whether noted events forbid every relation with the event in this queue."""
        return any(self.barring(instance.noted, queue, event))

    def barring(self, noted: Sequence[Sequence[Event]], queue: int, event: Event) -> Iterator[tuple[int, Event]]:
        """The clauses, and the noted events, that do so."""
        for at in self.early:
            clause = self.noting[at]
            if clause.anchor_queue == queue:
                self.attempt.spend(len(noted[at]))
                members: list[Any] = [None] * self.search.size
                members[clause.policy.anchor] = event
                yield from ((at, each) for each in noted[at] if clause.forbidden(each, members, self.width))

    def _match(self, instance: Instance, event: Event, entered: list[int]) -> list[tuple[Event, ...]]:
        unspoilt = [self._unspoilt(instance, at) for at in self.searched]
        if self.search.parted and self.anchored:
            unspoilt.append(lambda members: any(each and each.position == event.position for each in members))
        newest = entered[0] if not instance.loose and len(entered) == 1 else None
        if self.matching.all:
            most = LIMITS.relations_per_event_max
            made = self.search.find_all(instance.queues, newest, unspoilt, self.limit or most + 1)
            if len(made) > most:
                raise too_many_relations(self.name)
            return made
        found = self.search.find(instance.queues, newest, unspoilt)
        if newest is None:
            instance.loose = instance.loose and found is not None
        return [] if found is None else [tuple(found)]

    def _match_with_runs(self, instance: Instance, entered: list[int], event: Event) -> list[tuple[Any, ...]]:
        """A relation with runs contains the event, so nothing is ever ready before it."""
        if not entered:
            return []
        unspoilt = [self._unspoilt(instance, at) for at in self.searched]
        members = self.search.find_with_runs(instance.queues, entered[0], event, unspoilt)
        if members is None:
            return []
        self.disposer.dispose(instance.queues, [tuple(members)])
        return [tuple(members)]

    def _unspoilt(self, instance: Instance, at: int) -> Check:
        """That no event noted for a clause forbids members: as many of them as the clause can ask for are there."""
        clause, noted = self.noting[at], instance.noted[at]

        def unspoilt(members: Any) -> bool:
            self.attempt.spend(len(noted))
            return not any(clause.forbidden(event, members, self.width) for event in noted)

        return unspoilt

    def _expire(self, instance: Instance, time: int) -> None:
        """Advances the clock."""
        if instance.clock is not None and time <= instance.clock:
            return
        instance.clock = time
        for queue, bound in zip(instance.queues, self.horizons, strict=True):
            if not bound:
                continue
            horizon = bound.at(time)
            if any(each.time < horizon for each in queue):  # type: ignore[operator]
                queue[:] = [each for each in queue if each.time >= horizon]  # type: ignore[operator]
                instance.loose = instance.loose or (self.matching.contiguous and not self.anchored)

    def is_late(self, instance: Instance, queue: int, event: Event) -> bool:
        """Whether the event has left the queue before it arrives."""
        if not self.horizons[queue] or event.time is None or instance.clock is None:
            return False
        return event.time < self.horizons[queue].at(instance.clock)

    def _dispose(self, instance: Instance, found: list[tuple[Event, ...]]) -> None:
        self.disposer.dispose(instance.queues, found)
        parted = self.matching.contiguous and (self.disposal is Disposal.INFIX or self.search.overlapping)
        sliding = self.disposal in (Disposal.FIRST_PREFIX, Disposal.ADVANCE)
        if (sliding or parted) and not self.anchored:
            instance.loose = True

    def _cancel(self, instance: Instance, at: int, event: Event) -> None:
        self.attempt.spend(len(instance.pending))
        for pending in instance.pending:
            if not pending.cancelled and self.noting[at].forbidden(event, pending.match.members, self.width):
                pending.cancelled = True

    def forget(self, instance: Instance) -> list[tuple[int, Event]]:
        """Drop events that can be in no later relation, and noted events that can forbid none (noted_events.py). Returns the
        events that left a queue."""
        left = drop_dead(instance.queues, self.needs, self.circular) if self.needs else []
        for compiled, noted in zip(self.noting, instance.noted, strict=True):
            compiled.forget(noted, instance.queues[compiled.anchor_queue], instance.clock)
        if self.outlasts and not any(instance.queues):
            instance.loose = False
        return left


def acceptor(branch: Branch, slots: tuple[int, ...], types: list[EventType]) -> Check:
    """At least one instance of the type has all its unary predicates true."""
    by_slot = [
        (slot, [compile_condition(each.condition, types) for each in branch.predicates if each.slots == (slot,)])
        for slot in slots
    ]
    if any(not checks for _, checks in by_slot):
        return lambda event: True
    binding: list[Event | None] = [None] * len(types)

    def accepts(event: Event) -> bool:
        for slot, checks in by_slot:
            binding[slot] = event
            if all(check(binding) for check in checks):
                return True
        return False

    return accepts


def _noting(branch: Branch, clause: NotingClause, policy: NotedEventPolicy, types: list[EventType]) -> CompiledNoting:
    own = [compile_condition(each.condition, types) for each in clause.predicates if each.slots == (clause.slot,)]
    rest = tuple(compile_condition(each.condition, types) for each in clause.predicates if each.slots != (clause.slot,))
    binding: list[Event | None] = [None] * len(types)

    def accepts(event: Event) -> bool:
        binding[clause.slot] = event
        return all(check(binding) for check in own)

    queue = branch.queue_types.index(branch.slots[policy.anchor].type)
    return CompiledNoting(clause, clause.since, clause.until, clause.apart_us, accepts, rest, policy, queue)
