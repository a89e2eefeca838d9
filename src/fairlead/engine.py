"""The whole flow on one page.

    text ──language──► Plan ──guarantees──► Plan with its verdicts                               compile
    Plan ──partition──► units: subscriptions whose derived events are in one order               Engine(plan)
    a batch of ordered events                                                                    feed, arrive, finish
     ├─► each unit (matching/unit.py), on its current lane:
     │     event by event, at first: the definition, step by step (interpreted/event_lane.py)
     │         │ after about a tenth of a second of work, with its state, in the middle of any batch
     │         ▼
     │     on kernels, from then on: machine code over whole batches (compiled/running/lane.py)
     └─► the relations of all units ──► one order of delivery (results/delivery_order.py) ──► relations
    the state of every unit, the same bytes from either lane ──► another engine                  dump, load

A plan is split into units (model/plans/partition.py), each a function of its subscriptions, those upstream, and the events. The
engine passes the same events to every unit and merges their relations. Units move to kernels one by one; the deliveries and the
dumped state do not depend on when.

Takes: a Plan, and events with increasing positions. Gives: relations. Never: reads a clock, does I/O, reorders.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from fairlead.errors import StateError, UsageError
from fairlead.matching.interpreted.event_lane import Delivered, Make, Running
from fairlead.matching.interpreted.matcher import IncrementalSubscription
from fairlead.matching.results.delivery_order import Objects, in_one_order
from fairlead.matching.results.relations import Relations
from fairlead.matching.state.decoding import decode
from fairlead.matching.state.encoding import Change, encode
from fairlead.matching.thresholds import THRESHOLDS, Thresholds
from fairlead.matching.unit import KERNELS_FROM, UnitEngine
from fairlead.model.arguments import require_call, require_kind, require_names, require_plan, wrong_kind
from fairlead.model.events.columns import Columns
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.values import TIMESTAMP_RANGE
from fairlead.model.plans.partition import START, partition
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation

if TYPE_CHECKING:
    from fairlead.matching.compiled.machine_code.interruption import Check
    from fairlead.matching.compiled.running.batch import Prepared
    from fairlead.matching.compiled.running.lane import KernelLane


def compile(text: str, file: str | PathLike[str] | None = None, *, dialect: str = "fairlead") -> Plan:
    """Compile the text of rules into a checked plan, with the guarantees of each subscription.

    `file` is the name that errors show, `dialect` the language of the text. Raises LanguageError.
    """
    require_kind("compile", "text", text, (str,), "the text of the rules", 'compile(Path("rules.fl").read_text("utf-8"))')
    require_kind("compile", "file", file, (str, PathLike, type(None)), "a path or None", 'compile(text, "rules.fl")')
    require_kind("compile", "dialect", dialect, (str,), "the name of a dialect", "leave it out")
    from fairlead.guarantees import derive
    from fairlead.language import DIALECTS, compile_text
    from fairlead.matching.compiled.planning.eligibility import slow, too_expensive, without_kernels

    if dialect not in DIALECTS:
        known = ", ".join(sorted(DIALECTS))
        raise UsageError("A012", f"there is no dialect '{dialect}'", f"use one of: {known}", place="compile(dialect=…)")
    plan = compile_text(text, None if file is None else fspath(file), dialect)
    return replace(
        plan, guarantees=derive(plan), warnings=(*plan.warnings, *without_kernels(plan), *slow(plan), *too_expensive(plan))
    )


class Engine:
    """Matches one plan against events that you pass in order.

    `arrive` accepts one event and `feed` a batch; both return the relations that became complete. `finish` ends a finite input.
    `dump` and `load` save and restore the state: the same history always dumps the same bytes.

    Relations are delivered by the position at which they became complete. At one position, relations that a deadline decided
    come first, by deadline; then those that were completed there; ties follow the order of the text. The order of a
    subscription never depends on the other subscriptions of the plan.

    A plan with a part that does not compile to machine code is rejected (U001), unless you pass `kernels_from=None` or a
    `matcher`: both run event by event.

    `check` is called periodically during long searches; raise an exception in it to interrupt them. After an interrupt in the
    middle of a call (Ctrl-C too) the engine is incomplete, and every further call raises S114.
    """

    def __init__(
        self,
        plan: Plan,
        matcher: Make = IncrementalSubscription,
        kernels_from: int | None = KERNELS_FROM,
        since: Mapping[str, int] | None = None,
        *,
        check: Check | None = None,
        thresholds: Thresholds = THRESHOLDS,
    ) -> None:
        require_plan("Engine", plan, "Engine(fairlead.compile(text))")
        require_call("Engine", "matcher", matcher, "leave it out")
        require_kind("Engine", "kernels_from", kernels_from, (int, type(None)), "a number or None", "leave it out, or None")
        if check is not None:
            require_call("Engine", "check", check, "leave it out")
        require_kind("Engine", "thresholds", thresholds, (Thresholds,), "Thresholds", "leave it out")
        _require_since(since)
        self.plan, self.torn = plan, False
        if kernels_from is not None and matcher is IncrementalSubscription:
            from fairlead.matching.compiled.planning.eligibility import require_kernels

            require_kernels(plan)
        self.parts = partition(plan, since)
        self.units = tuple(
            UnitEngine(each.plan, matcher, kernels_from, check=check, thresholds=thresholds) for each in self.parts
        )
        self.last = Position(START)
        self.change = Change(started=tuple(each.name for each in plan.subscriptions if each.name not in plan.silent))

    def feed(self, columns: Columns, prepared: Prepared | None = None) -> Sequence[Relation]:
        """Match a batch of ordered events, and return the relations that it completes.

        `prepared`: the same batch, prepared once for several engines.
        """
        require_kind("Engine.feed", "columns", columns, (Columns,), "Columns", "for records and tables, fairlead.match")
        self._require_risen(columns.follow(self.last.major), "Engine.feed")
        self._require_ordered(columns.identities is not None or not len(columns), "Engine.feed")
        events = cache(lambda: list(columns.events(self.plan.catalogue))) if len(self.units) > 1 else None
        delivered = self._in_one_order(lambda: [unit.feed(columns, prepared, events) for unit in self.units])
        self.last = Position(columns.last_after(self.last.major))
        return delivered

    def arrive(self, event: Event) -> Sequence[Relation]:
        """Match one event, and return all relations that it and its derived events complete."""
        require_kind("Engine.arrive", "event", event, (Event,), "an Event", "for records and tables, fairlead.match")
        self._require_risen(event.position > self.last, "Engine.arrive")
        self._require_ordered(event.identity is not None, "Engine.arrive")
        delivered = self._in_one_order(lambda: [unit.arrive(event) for unit in self.units])
        self.last = event.position
        return delivered

    def finish(self, until: int | None = None) -> Sequence[Relation]:
        """End a finite input, and return the relations that its end decides.

        `until` (microseconds): no further event has a time up to and including this.
        """
        fix = "microseconds since 1970, or fairlead.match(…, until=datetime)"
        require_kind("Engine.finish", "until", until, (int, type(None)), "whole microseconds or None", fix)
        if until is None:
            return []
        if not TIMESTAMP_RANGE[0] <= until <= TIMESTAMP_RANGE[1]:
            raise wrong_kind("Engine.finish", "until", until, "microseconds of the years 1 to 9999", fix)
        return self._in_one_order(lambda: [unit.finish(until) for unit in self.units])

    def _in_one_order(self, handled: Callable[[], Sequence[Relations | Delivered]]) -> Sequence[Relation]:
        """The relations of all units in the order of delivery: columns from kernels, objects from event-by-event matching.
        After an interruption, some units have handled the input and others have not."""
        self._require_whole()
        self.torn = True
        found = handled()
        if not self._is_in_order:
            delivered = in_one_order(found, [part.numbers for part in self.parts], self._number)
        else:
            delivered = found[0] if isinstance(found[0], Relations) else Objects.of(found[0])
        self.torn = False
        return delivered

    def _require_whole(self) -> None:
        if self.torn:
            problem = "the engine was interrupted in the middle of a batch, so its state is incomplete"
            raise StateError("S114", problem, "load the last dump: Engine.load(plan, state); or start with a new Engine")

    def _require_risen(self, risen: bool, call: str) -> None:
        if not risen:
            problem = f"positions must increase from event to event, and the last one was {self.last}"
            raise UsageError(
                "A011", problem, "pass each event once, in order; fairlead.match numbers events itself", place=call
            )

    def _require_ordered(self, identified: bool, call: str) -> None:
        if self.plan.order is not None and not identified:
            problem = f"the rules say {self.plan.order}, and the events are not ordered by value"
            raise UsageError("A013", problem, "use fairlead.match or fairlead.Run, which order them", place=call)

    @cached_property
    def _is_in_order(self) -> bool:
        """Whether the units' relations are already in the order of delivery. A unit handles subscriptions in the order of its
        plan, which is that of the text if it has no frame; but of equal deadlines it decides those upstream first."""
        waiting = [{each.depth for each in unit.running if each.subscription.by_time} for unit in self.units]
        return len(self.units) == 1 and not self.parts[0].frame and len(waiting[0]) < 2

    @cached_property
    def _number(self) -> Mapping[str, int]:
        return {each.name: number for number, each in enumerate(self.plan.subscriptions)}

    @property
    def running(self) -> tuple[Running, ...]:
        """The subscriptions that are delivered, in the order of the text, with their event-by-event matchers."""
        found = [each for unit in self.units for each in unit.running if each.subscription.name not in unit.plan.silent]
        return tuple(sorted(found, key=lambda each: self._number[each.subscription.name]))

    @property
    def lane(self) -> KernelLane | None:
        """The kernels of the first unit, once it has moved to them."""
        return self.units[0].lane if self.units else None

    @property
    def owed(self) -> int:
        """Steps that kernels would have saved so far. This decides the switch to kernels, and is carried over beside a dump."""
        return max((unit.owed for unit in self.units), default=0)

    @owed.setter
    def owed(self, steps: int) -> None:
        for unit in self.units:
            unit.owed = steps

    def waiting(self) -> list[str]:
        """The names of the subscriptions with relations that wait for a deadline, in the order of the text."""
        found = {name for unit in self.units for name in unit.waiting() if name not in unit.plan.silent}
        return [each.name for each in self.plan.subscriptions if each.name in found]

    def dump(self) -> bytes:
        """The state as bytes. The same history always returns the same bytes."""
        self._require_whole()
        return encode(self.last, [(part, unit.content()) for part, unit in zip(self.parts, self.units, strict=True)])

    @classmethod
    def load(
        cls,
        plan: Plan,
        dumped: bytes,
        kernels_from: int | None = KERNELS_FROM,
        without: Collection[str] = (),
        *,
        check: Check | None = None,
        thresholds: Thresholds = THRESHOLDS,
    ) -> Engine:
        """An engine that resumes from a dumped state.

        The plan may have changed: subscriptions with the same digest resume, whatever their name; new ones start here; others
        are dropped (`change` reports which). `without`: digests of subscriptions that start again although the state has them.
        Raises StateError.
        """
        require_plan("Engine.load", plan, "Engine.load(fairlead.compile(text), dumped)")
        require_kind("Engine.load", "dumped", dumped, (bytes,), "bytes", "pass what Engine.dump returned")
        require_names("Engine.load", "without", without, "without=[subscription.digest]")
        found = decode(dumped, without)
        since = found.since(plan)
        engine = cls(plan, kernels_from=kernels_from, since=since, check=check, thresholds=thresholds)
        engine.last, engine.change = found.last, found.change(plan)
        for part, unit in zip(engine.parts, engine.units, strict=True):
            unit.last = found.last
            unit.restore(found.content(part))
        return engine


def _require_since(since: Any) -> None:
    if since is None:
        return
    names = isinstance(since, Mapping) and all(isinstance(name, str) and isinstance(at, int) for name, at in since.items())
    if not names:
        raise wrong_kind("Engine", "since", since, "positions by name of subscription, or None", "leave it out")
