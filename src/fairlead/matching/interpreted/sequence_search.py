"""The search for relations of a sequence in the rows of one key, which is suspended where it needs the next row.

It is the ordered search of the definition with its choices on a stack, so a row costs what is new to try. It equals a search
that begins again after every row, because what has failed on rows alone fails again. What failed by the time that the
subscription has seen, and not by rows, may not: such a search begins again with the next row (`_parked`).

Takes: rows, and the time that the subscription has seen. Gives: relations, and until when the open path is open. Never:
decides when to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fairlead.matching.attempt import Attempt
from fairlead.matching.interpreted.sequence_program import Asked, Instruction, Operation, SequenceProgram, TakeStep
from fairlead.model.events.event import Event
from fairlead.model.events.values import TIMESTAMP_RANGE

COUNTED = 32
"""Steps that are counted together: what an event takes is mostly less, and counted with it (attempt.py)."""
LAST_TIME = TIMESTAMP_RANGE[1]
"""No event is later. A path without a limit is open until nothing follows at all."""
SequenceRow = tuple[Event, tuple[int, ...]]
"""An event, and the queues of the types that accept it."""
Frame = tuple[int, int, Any]
"""Of the innermost loop: how many rounds have begun, how many rows were taken before the last; and of the loops around."""
Step = tuple[int, Frame | None, bool]
"""The instruction of a TAKE, its loops, and whether rows may be skipped before it."""
COMPLETE: Step = (-1, None, False)


class SequenceSearch:
    """`open` is the time after which the path is closed that may still get the next row; None: there are no rows."""

    def __init__(self, program: SequenceProgram, attempt: Attempt | None = None) -> None:
        self.program, self.attempt = program, attempt or Attempt()
        self.rows: list[SequenceRow] = []
        self.open: int | None = None
        self._first = 0
        """How many rows have left."""
        self._failed: dict[tuple[int, int], int] = {}
        """By ROUND and row: after so many rounds, at most up to the smallest number, a run failed there."""
        self._fresh()

    def _fresh(self) -> None:
        """At the first row, with nothing taken."""
        program = self.program
        self._at, self._place = 0, 0
        self._frame: Frame | None = None
        self._stack: list[tuple[int, int, int, Frame | None]] = []
        self._slots: list[int] = []
        self._places: list[int] = []
        self._spans: list[tuple[int, int]] = []
        """Of the rows taken so far, at each of them: the smallest and the largest time."""
        self._held: list[Any] = [[] if run else None for run in program.is_run] + [None] * (1 + program.back)
        """By slot what it holds; then the row that is being taken, and those before it."""
        self._highs: list[int] = []
        """For each row the largest time from the first one on."""
        self._steps: list[Step] | None = None
        self._parked = False
        self._late = False
        """The first row has failed, among others, by a time, which depends on the first row: another one may not fail."""

    def add(self, row: SequenceRow) -> None:
        self.rows.append(row)
        if self._parked:
            self._fresh()

    def decided(self, told: int | None) -> Iterator[tuple[tuple[Any, ...], list[SequenceRow]]]:
        """The relations that are decided now, each with the rows that leave; without members, for a row that begins none."""
        self.open = None
        while self.rows:
            found = self._stepwise(told) if self.program.stepwise else self._ordered(told)
            if found is None:
                return
            leaving = self.program.leaving(self._slots, self._places) if found else 1
            members, left = self._members() if found else (), self.rows[:leaving]
            del self.rows[:leaving]
            self._leave(leaving, keep=not found and not self._late)
            self._fresh()
            yield members, left

    # ---- the ordered search: True, it has found a relation; False, none begins with the first row; None, it is open

    def _ordered(self, told: int | None) -> bool | None:
        code, rows = self.program.code, self.rows
        steps = 0
        while True:
            steps += 1
            if steps == COUNTED:
                self.attempt.spend(steps)
                steps = 0
            instruction = code[self._at]
            match instruction.operation:
                case Operation.TAKE:
                    take: TakeStep = instruction.take  # type: ignore[assignment]
                    limit = self._limit(take)
                    if self._has_passed(limit, told, remember=True):
                        if not self._back():
                            return False
                    elif self._place == len(rows):
                        self.open = limit
                        return None
                    elif self._fits(take, self._place):
                        self._take(take, self._place)
                        self._place += 1
                        self._at += 1
                    elif not self._back():
                        return False
                case Operation.SKIP:
                    if self._slots:
                        self._choice(self._at, self._place + 1)
                    self._at += 1
                case Operation.FORK:
                    for target in reversed(instruction.targets[1:]):
                        self._choice(target, self._place)
                    self._at = instruction.targets[0]
                case Operation.ENTER:
                    self._frame = (0, len(self._slots), self._frame)
                    self._at += 1
                case Operation.JUMP:
                    self._at = instruction.targets[0]
                case Operation.ROUND if instruction.remembers and self._fails_again(instruction):
                    if not self._back():
                        return False
                case Operation.ROUND:
                    ways = _ways(instruction, self._at, self._frame, len(self._slots))
                    for at, frame in ways[1:]:
                        self._stack.append((at, self._place, len(self._slots), frame))
                    if ways:
                        self._at, self._frame = ways[0]
                    elif not self._back():
                        return False
                case Operation.END:
                    if self._is_relation():
                        return True
                    if not self._back():
                        return False

    def _fails_again(self, instruction: Instruction) -> bool:
        """Whether a run failed here before; if not, it does now, or there is a match."""
        assert self._frame is not None
        key, rounds = (self._at, self._first + self._place), min(self._frame[0], instruction.least)
        if rounds == 0:
            return False  # no row of the run
        if self._failed.get(key, 0) >= rounds:
            return not self._late
        self._failed[key] = rounds
        return False

    def _leave(self, leaving: int, keep: bool) -> None:
        """So many rows leave. `keep`: what has failed fails again."""
        self._first += leaving
        if not keep or not self.rows:
            self._failed.clear()
        elif self._failed:
            for at, instruction in enumerate(self.program.code):
                if instruction.remembers:
                    self._failed.pop((at, self._first), None)

    def _choice(self, at: int, place: int) -> None:
        self._stack.append((at, place, len(self._slots), self._frame))

    def _back(self) -> bool:
        """To the last choice."""
        while self._stack:
            at, place, taken, frame = self._stack.pop()
            if place > len(self.rows):
                continue  # there is no row yet that could be skipped
            while len(self._slots) > taken:
                self._give_back()
            self._at, self._place, self._frame = at, place, frame
            return True
        return False

    # ---- without a way back

    def _stepwise(self, told: int | None) -> bool | None:
        if self._steps is None:
            self._steps = self._next_steps(0, None)
        while True:
            steps = self._steps
            if self.program.limited or self._place == len(self.rows):
                steps = [each for each in steps if not self._is_over(each, told)]
            if not steps:
                return False
            if steps[0] is COMPLETE:
                return True
            if self._place == len(self.rows):
                self.open = self._limit(self._take_of(steps[0]))
                return None
            place = self._place
            self._place += 1
            self.attempt.spend(len(steps))
            for each in steps:
                if each is not COMPLETE and self._fits(self._take_of(each), place):
                    self._take(self._take_of(each), place)
                    self._steps = self._next_steps(each[0] + 1, each[1])
                    break
            else:
                self._steps = [
                    each
                    for each in steps
                    if each is COMPLETE or (each[2] and not self._is_ended(self._take_of(each), self.rows[place]))
                ]

    def _is_over(self, step: Step, told: int | None) -> bool:
        return step is not COMPLETE and self._has_passed(self._limit(self._take_of(step)), told, remember=False)

    def _take_of(self, step: Step) -> TakeStep:
        return self.program.code[step[0]].take  # type: ignore[return-value]

    def _next_steps(self, at: int, frame: Frame | None) -> list[Step]:
        """What can come next, in order, up to where a relation is complete."""
        found: list[Step] = []
        stack: list[Step] = [(at, frame, False)]
        taken = len(self._slots)
        while stack:
            at, frame, loose = stack.pop()
            instruction = self.program.code[at]
            match instruction.operation:
                case Operation.TAKE:
                    found.append((at, frame, loose))
                case Operation.SKIP:
                    stack.append((at + 1, frame, loose or taken > 0))
                case Operation.FORK:
                    stack += [(target, frame, loose) for target in reversed(instruction.targets)]
                case Operation.ENTER:
                    stack.append((at + 1, (0, taken, frame), loose))
                case Operation.JUMP:
                    stack.append((instruction.targets[0], frame, loose))
                case Operation.ROUND:
                    again = frame is not None and taken > frame[1]  # rows may be skipped between rounds
                    for target, inner in reversed(_ways(instruction, at, frame, taken)):
                        stack.append((target, inner, loose or (again and target == at + 1)))
                case Operation.END:
                    if self._is_relation():
                        found.append(COMPLETE)
                        break
        return found

    # ---- one row

    def _limit(self, take: TakeStep) -> int:
        """The time after which nothing can be taken any more."""
        limit = LAST_TIME
        if self._slots:
            if self.program.within_us is not None:
                limit = min(limit, self._time(self._places[0]) + self.program.within_us)
            if take.gap_us is not None:
                limit = min(limit, self._time(self._places[-1]) + take.gap_us)
        return limit

    def _has_passed(self, limit: int, told: int | None, remember: bool) -> bool:
        """`remember`: where only the time of other events is later, the search begins again with the next row."""
        if self._slots and self.program.limited and self._clock() > limit:
            self._late = True
            return True
        if told is None or self._place < len(self.rows) or not (told > LAST_TIME or (self._slots and told > limit)):
            return False
        self._parked = self._parked or remember
        return True

    def _clock(self) -> int:
        """The largest time of the rows before this place."""
        highs = self._highs
        while len(highs) < self._place:
            time = self._time(len(highs))
            highs.append(time if not highs else max(time, highs[-1]))
        return highs[self._place - 1]

    def _time(self, place: int) -> int:
        return self.rows[place][0].time or 0

    def _fits(self, take: TakeStep, place: int) -> bool:
        row = self.rows[place]
        if take.queue not in row[1]:
            return False
        if self.program.limited and self._slots:
            time, (low, high) = row[0].time or 0, self._spans[-1]
            if self.program.within_us is not None and max(high, time) - min(low, time) > self.program.within_us:
                self._late = True
                return False
            if take.gap_us is not None and time - self._time(self._places[-1]) > take.gap_us:
                return False
        return not self._is_ended(take, row) and all(self._holds(each, take, row, True) for each in take.asked)

    def _is_ended(self, take: TakeStep, row: SequenceRow) -> bool:
        return take.until is not None and take.queue in row[1] and self._holds(take.until, take, row, False)

    def _holds(self, asked: Asked, take: TakeStep, row: SequenceRow, otherwise: bool) -> bool:
        """Of the row as the next one of the slot; `otherwise`: what it is if it looks back too far."""
        found: bool = self._with_row(take, row, asked.back, asked.check, otherwise)
        return found

    def _with_row(self, take: TakeStep, row: SequenceRow, looks_back: int, ask: Callable[[Any], Any], otherwise: Any) -> Any:
        held, width = self._held, self.program.width
        place, back = len(self._places), 0
        while back < looks_back:
            place -= 1
            if place < 0:
                return otherwise
            before = self.rows[self._places[place]]
            if take.queue in before[1]:
                back += 1
                held[width + back] = before[0]
        held[width] = row[0]
        if not self.program.is_run[take.slot]:
            held[take.slot] = row[0]
            return ask(held)
        held[take.slot].append(row[0])
        found = ask(held)
        held[take.slot].pop()
        return found

    def _take(self, take: TakeStep, place: int) -> None:
        event = self.rows[place][0]
        if self.program.limited:
            time = event.time or 0
            low, high = self._spans[-1] if self._spans else (time, time)
            self._spans.append((min(low, time), max(high, time)))
        self._slots.append(take.slot)
        self._places.append(place)
        if self.program.is_run[take.slot]:
            self._held[take.slot].append(event)
        else:
            self._held[take.slot] = event

    def _give_back(self) -> None:
        slot = self._slots.pop()
        self._places.pop()
        if self.program.limited:
            self._spans.pop()
        if self.program.is_run[slot]:
            self._held[slot].pop()

    def _is_relation(self) -> bool:
        return bool(self._slots) and all(check(self._held) for check in self.program.having)

    def _members(self) -> tuple[Any, ...]:
        return tuple(tuple(each) if isinstance(each, list) else each for each in self._held[: self.program.width])


def _ways(instruction: Any, at: int, frame: Frame | None, taken: int) -> list[tuple[int, Frame | None]]:
    """Another round, and the end of the loop, in the order of preference. A round without a row counts only up to `least`."""
    assert frame is not None
    count, since, around = frame
    if count > instruction.least and taken == since:
        return []
    more = [(at + 1, (count + 1, taken, around))] if instruction.most is None or count < instruction.most else []
    leave = [(instruction.targets[0], around)] if count >= instruction.least else []
    return [*more, *leave] if instruction.longest else [*leave, *more]
