"""A sequence of one run that is folded (a session), event by event: a key has an open run in place of rows.

    MATCH Quote q+ LONGEST WITHIN 5 MINUTES OF PREVIOUS PER symbol FOLD q

Such a run takes every row that fits after its last one; the first that does not ends it, or the time after which none can fit.
Conditions look at no row before the last, so no row has to be searched again: a row either is added to the open run, or is the
first of the next one, or begins nothing.

Takes: rows of a key, times. Gives: folded runs. Never: keeps a row that stands for no other.
"""

from __future__ import annotations

from typing import Any

from fairlead.matching.attempt import Attempt
from fairlead.matching.folded_run import FoldedRun
from fairlead.matching.interpreted.folds.folded_conjunction import folded_start
from fairlead.matching.interpreted.instance import Instance
from fairlead.matching.interpreted.sequence_conjunction import SequenceConjunction
from fairlead.matching.interpreted.sequence_program import Asked
from fairlead.matching.interpreted.sequence_search import LAST_TIME
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.plan import Branch, Subscription


class FoldedSequence(SequenceConjunction):
    def __init__(
        self, subscription: Subscription, branch: Branch, catalogue: Catalogue, attempt: Attempt | None = None
    ) -> None:
        super().__init__(subscription, branch, catalogue, attempt)
        self.folding, self.seeds = folded_start(subscription, branch, catalogue)
        (self.take,) = (each.take for each in self.program.code if each.take is not None)

    def arrive(self, instance: Instance, event: Event, queues: tuple[int, ...], seen: int | None) -> list[tuple[Any, ...]]:
        found = [] if self._fits(instance.folded, event) else self._ended(instance)
        if instance.folded is None and self._fits(None, event):
            instance.folded = FoldedRun(self.folding, self.seeds)
        if instance.folded is not None:
            instance.folded.add(event)
        return found + self.decide(instance, seen if self.program.timed else None)

    def decide(self, instance: Instance, told: int | None) -> list[tuple[Any, ...]]:
        """The open run, if its last row was too long before the latest time that is known."""
        run = instance.folded
        if run is None:
            return []
        known = max(time for time in (run.latest, told, -LAST_TIME) if time is not None)
        return self._ended(instance) if known > self._deadline(run) or known > LAST_TIME else []

    def closes(self, instance: Instance) -> int:
        run = instance.folded
        return LAST_TIME if run is None or not self.program.timed else self._deadline(run)

    def begins(self, instance: Instance) -> Position | None:
        return None if instance.folded is None else instance.folded.first.position

    def _deadline(self, run: FoldedRun) -> int:
        gap = self.take.gap_us
        return LAST_TIME if gap is None else (run.last.time or 0) + gap

    def _ended(self, instance: Instance) -> list[tuple[Any, ...]]:
        """HAVING asks for no more than that the run is long, so no part of a run has it if the whole has not."""
        run, instance.folded = instance.folded, None
        binding = (run,)
        return [binding] if run is not None and all(check(binding) for check in self.program.having) else []

    def _fits(self, run: FoldedRun | None, event: Event) -> bool:
        """As the next row of the run, or as the first of one."""
        before = None if run is None else run.last
        binding = (run, event, before)

        def holds(asked: Asked) -> bool | None:
            """None: it looks back too far."""
            return None if asked.back and before is None else bool(asked.check(binding))

        if self.take.until is not None and holds(self.take.until):
            return False
        gap = self.take.gap_us
        if before is not None and gap is not None and (event.time or 0) - (before.time or 0) > gap:
            return False
        return all(holds(each) is not False for each in self.take.asked)
