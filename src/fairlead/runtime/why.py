"""Why did this event (not) match? A replay that watches one event and reports what happened to it, branch by branch.

    not read   the branch does not read its type          refused    an attribute condition is not true of it
    no key     its PER key is NULL or NaN                  noted      it counts for a WITHOUT clause only
    expired    WITHIN dropped it                           disposed   another relation's DISPOSAL dropped it
    waiting    it is still queued at the end               cancelled  its relation was complete, but a WITHOUT event came
    pending    its relation waits for a deadline           matched    it was delivered
    too early  THEN: what must precede it is not queued, so it can never be a member
    limited    its relation was complete, but LIMIT was reached before it was decided
    forbidden  WITHOUT … BEFORE: what must not precede it did, so it can never be a member

For an event that expired, was disposed of or waits, the *closest miss* is shown: of the assignments with its partners at that
moment, the one with the fewest conditions that fail.

Takes: a plan, batches of events, a position. Gives: findings. Never: changes what the engine does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.matching.interpreted.conjunction import Conjunction
from fairlead.matching.interpreted.event_lane import Delivered, EventLane
from fairlead.matching.interpreted.instance import Instance, Key, Pending
from fairlead.matching.interpreted.runs import flat
from fairlead.matching.outcome import Match
from fairlead.model.events.columns import Columns
from fairlead.model.events.event import Event, Places
from fairlead.model.events.position import Position, parse_position
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.partition import partition
from fairlead.model.plans.plan import Plan, Subscription
from fairlead.runtime.closest import ClosestMiss
from fairlead.runtime.finding_words import (
    forbidding,
    has_queued,
    in_relation,
    keyless_words,
    leaving_words,
    limited,
    not_read,
    nothing_there,
    shown,
    stands_before,
    time_words,
    unmet,
    waits,
)
from fairlead.runtime.sequence_watch import WatchedBranch, WatchedEvent, WatchedSequences

GONE_MAX = 1000
"""Events that WITHIN or a DISPOSAL dropped and that are remembered for a branch: a missing partner is among the last few."""

GONE_SHOWN = 3

EARLY_MAX = 1000
"""Events that THEN dropped and that are remembered for a branch: partners on the wrong side are among the last few."""


@dataclass(frozen=True)
class BranchFinding:
    """What happened to the event in one branch of one subscription."""

    subscription: str
    branch: int
    verdict: str
    reasons: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "subscription": self.subscription,
            "branch": self.branch,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
        }

    def __str__(self) -> str:
        return f"{self.subscription} (branch {self.branch}): {self.verdict}" + "".join(f"\n  {each}" for each in self.reasons)


def why(plan: Plan, batches: Iterable[Columns], position: int | str, until: int | None = None) -> list[BranchFinding]:
    """What happened to the event at `position`, for each branch of each subscription. Runs are not folded here: the event may
    be one that a folded run does not keep."""
    plan = plan.unfolded
    lanes = [WatchedLane(each.plan, WatchedEvent(wanted_position(position))) for each in partition(plan)]
    last = Position(-1)
    for columns in batches:
        events = list(columns.events(plan.catalogue))
        for lane in lanes:
            lane.feed(events)
        last = Position(columns.last_after(last.major))
    for lane in lanes:
        if until is not None:
            lane.finish(until + 1, last)
        for running in lane.running:
            assert isinstance(running.matcher, WatchedSubscription)
            running.matcher.conclude()
    found = [each.target.event for each in lanes if each.target.event is not None]
    if not found:
        raise nothing_there(wanted_position(position), last)
    targets = {each.name: lane.target for lane in lanes for each in lane.plan.subscriptions if lane.delivers(each)}
    return [
        BranchFinding(each.name, number, watch.verdict, watch.reasons)
        for each in plan.subscriptions
        if each.name in targets
        for number in each.in_text_order
        for watch in (
            targets[each.name].watches.get((each.name, number), WatchedBranch(reasons=(not_read(each, number, found[0]),))),
        )
    ]


def wanted_position(position: int | str) -> Position:
    try:
        return parse_position(position)
    except ValueError:
        raise UsageError(
            "A008", f"{position!r} is not a position", fix="use a whole number, or 7+1 for a derived event"
        ) from None


class WatchedPlaces(Places):
    """The places of the engine; watches which event settles where, so that an event is found that no subscription reads."""

    def __init__(self, places: Places, target: WatchedEvent) -> None:
        self.places, self.target = places, target

    def free(self) -> Position:
        return self.places.free()

    def settle(self, event: Event) -> Event:
        settled = self.places.settle(event)
        if settled.position == self.target.position:
            self.target.event = settled
        return settled


class WatchedLane(EventLane):
    def __init__(self, plan: Plan, target: WatchedEvent) -> None:
        super().__init__(plan, lambda subscription, catalogue: WatchedSubscription(subscription, catalogue, target))
        self.target = target

    def delivers(self, subscription: Subscription) -> bool:
        return subscription.name not in self.plan.silent

    def _handle(self, event: Event, places: Places, delivered: Delivered) -> None:
        watched = places if isinstance(places, WatchedPlaces) else WatchedPlaces(places, self.target)
        super()._handle(event, watched, delivered)


class WatchedSubscription(WatchedSequences):
    """The engine's matcher; watches one event."""

    def __init__(self, subscription: Subscription, catalogue: Catalogue, target: WatchedEvent) -> None:
        super().__init__(subscription, catalogue, target)
        self.plain = {at: each for at, each in enumerate(self.conjunctions) if isinstance(each, Conjunction)}
        """The branches that are no sequences."""
        pairs = [(subscription.branches[at], conjunction) for at, conjunction in self.plain.items()]
        found = [ClosestMiss(branch, conjunction, catalogue) for branch, conjunction in pairs]
        self.closest = dict(zip(self.plain, found, strict=True))
        self.early: list[deque[tuple[Key, int, Event]]] = [deque(maxlen=EARLY_MAX) for _ in self.conjunctions]
        """By branch, events that an order dropped: their key and queue."""
        self.turned_away = False
        """LIMIT refused the last relation that was decided."""
        self.gone: list[deque[tuple[Key, int, Event, str]]] = [deque(maxlen=GONE_MAX) for _ in self.conjunctions]
        """By branch, events that WITHIN or a DISPOSAL dropped: their key, queue, and the cause."""

    def arrive(self, event: Event) -> list[Match]:
        if event.position == self.target.position:
            for number, conjunction in self.plain.items():
                if event.type in conjunction.routes.by_type:
                    self._judge(number, conjunction, event)
        return super().arrive(event)

    @property
    def is_done(self) -> bool:
        """It continues: what became of an event does not depend on what LIMIT lets through."""
        return False

    def _admits(self, key: Key) -> bool:
        self.turned_away = not super()._admits(key)
        return not self.turned_away

    def _judge(self, number: int, conjunction: Conjunction, event: Event) -> None:
        """Key and attribute conditions, before the event enters."""
        watch = self.target.watches[self.subscription.name, number] = WatchedBranch("no key")
        for route in conjunction.routes.by_type[event.type]:
            keyless = [at for at in route.key if event.row[at] is None or event.row[at] != event.row[at]]
            if keyless:
                watch.reasons = (f"PER {', '.join(self.subscription.per)}: {keyless_words(event, keyless[0])}",)
        for key, route in conjunction.arrivals(event):
            watch.keys += (key,)
            entered, noted = conjunction.accept(route, event)
            if entered:
                watch.verdict, watch.reasons = "waiting", ()
                watch.queued.append(key)
            elif noted and not watch.queued:
                word = conjunction.noting[noted[0]].clause.keyword
                watch.verdict, watch.reasons = "noted", (f"it counts for a {word} clause only",)
            elif watch.verdict == "no key":
                watch.verdict, watch.reasons = "refused", tuple(self.closest[number].refusals(event))

    def _arrive(
        self, number: int, conjunction: Conjunction, key: Key, event: Event, entered: list[int], noted: list[int]
    ) -> Iterator[Match]:
        watch = self.target.watches.get((self.subscription.name, number))
        left = leaving_words(conjunction, self.instances[number].get(key), event, entered)
        self.gone[number] += [(key, *each) for each in left]
        if watch is None or key not in watch.keys:
            yield from super()._arrive(number, conjunction, key, event, entered, noted)
            return
        before = self.instances[number].get(key) or conjunction.create()
        undecided = [each for each in before.pending if not each.cancelled]
        is_queued = key in watch.queued
        barred = self._barred(number, conjunction, key, event, entered) if event.position == self.target.position else ()
        queues = [[*queue, event] if at in entered else [*queue] for at, queue in enumerate(before.queues) if is_queued]
        marked = [[*events, event] if at in noted else [*events] for at, events in enumerate(before.noted) if is_queued]
        yield from super()._arrive(number, conjunction, key, event, entered, noted)
        words = [conjunction.noting[at].clause.keyword for at in noted if at in conjunction.patient]
        self._note_cancelled(number, watch, undecided, event, words)
        after = self.instances[number].get(key)
        if is_queued and (after is None or not has_queued(after, self.target.position)):
            watch.queued.remove(key)
            if watch.queued:
                return  # it is still queued under another key
            if watch.verdict == "waiting" and barred:
                watch.verdict, watch.reasons = "forbidden", barred
            if watch.verdict == "waiting":
                watch.verdict = "expired"
                clock = time_words(after.clock if after else None)
                word = "RETAIN" if self.subscription.within_us is None else "WITHIN"
                behind = f"{word}: at event {event.position} the key's clock had left it behind (clock {clock})"
                took = [why for _, each, why in left if each.position == self.target.position and why.startswith("left")]
                watch.reasons = tuple(f"it {said}" for said in took[:1]) or (behind,)
            if watch.verdict in ("expired", "disposed") and self.target.event is not None:
                watch.reasons += self.closest[number].miss(queues, marked, self.target.event)
                watch.reasons += self._left(number, key, queues)

    def _barred(self, number: int, conjunction: Conjunction, key: Key, event: Event, entered: Sequence[int]) -> tuple[str, ...]:
        """Why the event can be in no relation, if that is so in every queue that it enters; noted events are as before it."""
        instance = self.instances[number].get(key)
        if instance is None:
            return ()
        entered = [queue for queue in entered if not conjunction.is_late(instance, queue, event)]
        found = [next(conjunction.barring(instance.noted, queue, event), None) for queue in entered]
        names = self.subscription.branches[number].alias_names()
        said = [f"{conjunction.noting[each[0]].clause.words(names)}: {stands_before(each[1])}" for each in found if each]
        return tuple(dict.fromkeys(said)) if said and len(said) == len(entered) else ()

    def _left(self, number: int, key: Key, queues: Sequence[Sequence[Event]]) -> tuple[str, ...]:
        """For each missing partner, the last events that could have been it and left."""
        branch, needed = self.subscription.branches[number], self.plain[number].search.needed
        said: list[str] = []
        for queue, (events, n) in enumerate(zip(queues, needed, strict=True)):
            if len(events) < n:
                left = [(each, why) for mine, at, each, why in self.gone[number] if (mine, at) == (key, queue)]
                left = [(each, why) for each, why in left if each.position != self.target.position]
                said += [f"{branch.queue_types[queue]} at {each.position} {why}" for each, why in left[-GONE_SHOWN:]]
        return tuple(said)

    def _forget(self, number: int, conjunction: Conjunction, key: Key, instance: Instance) -> None:
        watch = self.target.watches.get((self.subscription.name, number))
        for queue, event in conjunction.forget(instance):
            self.early[number].append((key, queue, event))
            if watch is not None and event.position == self.target.position and self._leaves(watch, key, instance):
                watch.verdict, watch.reasons = (
                    "too early",
                    (
                        *unmet(self.subscription, number, conjunction, instance, queue),
                        *self._missing(number, conjunction, key, instance, queue, event),
                    ),
                )

    def _missing(
        self, number: int, conjunction: Conjunction, key: Key, instance: Instance, queue: int, event: Event
    ) -> tuple[str, ...]:
        """What could have been before it and left; of an event that is not kept beside tables, which conditions no row met."""
        if dict(conjunction.needs)[queue]:
            return self._left(number, key, instance.queues)
        queues = [[*each, event] if at == queue else [*each] for at, each in enumerate(instance.queues)]
        return self.closest[number].miss(queues, [[*each] for each in instance.noted], event)

    def _leaves(self, watch: WatchedBranch, key: Key, instance: Instance) -> bool:
        """It waited, and is now in no queue: not in another of this key either, nor under another key."""
        waited = watch.verdict == "waiting" and watch.queued == [key]
        return waited and not has_queued(instance, self.target.position)

    def _note_cancelled(
        self, number: int, watch: WatchedBranch, undecided: list[Pending], event: Event, words: Sequence[str]
    ) -> None:
        for each in undecided:
            if each.cancelled and watch.verdict != "matched" and self._is_member(each.match.members):
                watch.verdict = "cancelled"
                watch.reasons = (in_relation(each.match.members), f"{words[0]}: the event at {event.position} forbids it")
                self._note_pending(number, watch)
            elif each.cancelled and event.position == self.target.position and watch.verdict == "noted":
                watch.reasons += (f"it cancelled the relation [{shown(each.match.members)}]",)

    def _note_pending(self, number: int, watch: WatchedBranch) -> None:
        """With DISPOSAL FIRST PREFIX an event can be in several relations: of these, one that still waits."""
        instances = [self.instances[number].get(key) for key in watch.keys]
        pending = [each for instance in instances if instance is not None for each in instance.pending if not each.cancelled]
        for each in pending:
            if self._is_member(each.match.members):
                watch.verdict = "pending"
                watch.reasons = (in_relation(each.match.members), waits(each))
                return

    def _is_member(self, members: tuple[Event, ...]) -> bool:
        return any(member.position == self.target.position for member in members)

    def _complete(
        self, number: int, conjunction: Conjunction, key: Key, instance: Instance, held: tuple[Any, ...]
    ) -> Iterator[Match]:
        watch, members = self.target.watches.get((self.subscription.name, number)), flat(held)
        for slot, each in enumerate(held):
            queue = next(at for at, slots in enumerate(conjunction.slots_of_queue) if slot in slots)
            for member in flat((each,)):
                if not has_queued(instance, member.position):
                    self.gone[number].append((key, queue, member, f"left with the relation [{shown(members)}] (DISPOSAL)"))
        self.turned_away = False
        found = list(super()._complete(number, conjunction, key, instance, held))
        if watch is None or key not in watch.keys:
            yield from found
            return
        pending = next((each for each in instance.pending if each.match.members == members), None)
        against = [] if found or pending else forbidding(conjunction, instance, members)
        if self._is_member(members):
            told = "matched" if found else "pending" if pending else "limited" if self.turned_away else "cancelled"
            if watch.verdict != "matched" and (told not in ("cancelled", "limited") or watch.verdict != "pending"):
                watch.verdict, watch.reasons = told, (in_relation(members),)
                if pending:
                    watch.reasons += (waits(pending),)
                if told == "limited":
                    watch.reasons += (limited(self.subscription),)
                watch.reasons += tuple(f"{word}: the event at {each.position} forbids it" for word, each in against[:1])
        elif self._leaves(watch, key, instance):
            watch.verdict = "disposed"
            done = "was delivered" if found else "was complete"
            words = self.subscription.disposal_words
            watch.reasons = (f"DISPOSAL {words}: dropped when the relation [{shown(members)}] {done}",)
        elif watch.verdict == "noted" and any(each.position == self.target.position for _, each in against):
            watch.reasons += (f"it cancelled the relation [{shown(members)}]",)
        yield from found

    def take_due(self) -> Match | None:
        if not self.is_pending:
            return super().take_due()
        pending = self.pending[0]
        watch = self.target.watches.get((self.subscription.name, pending.match.branch))
        self.turned_away = False
        found = super().take_due()
        decided = watch is not None and watch.verdict != "matched" and self._is_member(pending.match.members)
        if watch is not None and decided and found is not None:
            watch.verdict, watch.reasons = "matched", (in_relation(pending.match.members),)
        elif watch is not None and decided and self.turned_away:
            watch.verdict, watch.reasons = "limited", (in_relation(pending.match.members), limited(self.subscription))
        return found

    def conclude(self) -> None:
        """At the end: what waiting relations still lack."""
        self.conclude_sequences()
        for (name, number), watch in self.target.watches.items():
            if name != self.subscription.name or watch.verdict != "waiting" or not watch.queued or number not in self.plain:
                continue
            key = watch.queued[0]
            instance = self.instances[number].get(key)
            if instance is not None and self.target.event is not None:
                watch.reasons = self.closest[number].miss(instance.queues, instance.noted, self.target.event)
                watch.reasons += self._wrong_side(number, key, instance, self.target.event)
                watch.reasons += self._left(number, key, instance.queues)

    def _wrong_side(self, number: int, key: Key, instance: Instance, target: Event) -> tuple[str, ...]:
        """If a partner is missing, the conditions that fail for events that came too early."""
        needed = self.plain[number].search.needed
        early = [
            [event for mine, at, event in self.early[number] if (mine, at) == (key, queue)] for queue in range(len(needed))
        ]
        short = [len(queue) < n for queue, n in zip(instance.queues, needed, strict=True)]
        queues = [
            [*dropped, *queue] if few else queue for queue, dropped, few in zip(instance.queues, early, short, strict=True)
        ]
        if not any(short) or any(len(queue) < n for queue, n in zip(queues, needed, strict=True)):
            return ()
        return self.closest[number].miss(queues, instance.noted, target)
