"""Merges several ordered inputs into one order, by the time at which each message was stored: the order of a disjunction.

The order is a function of the messages of the inputs, and of nothing else:

    1. the time of a message: the largest stored time of its input up to it (a clock that was set back moves nothing back)
    2. the name of the input
    3. the sequence within the input

Later messages of an input have at least the time of its last message. So a message is released once every other input has been
seen past it: at a later time, or at the same time if the other's name sorts after it. The rest is held. A quiet input delays
all others, until a heartbeat in it advances its time; a heartbeat is a message with a place in its input like every other. How
the inputs interleave on arrival changes when a message is released, never the order.

A state names the last released message of each input, and its time. Held messages are not in it: the log has them, and a reader
that resumes reads the messages after those in the state.

Takes: messages of named inputs, each input in its order. Gives: released messages, in the one order. Never: reads a clock,
drops a message, releases before the order is certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

from fairlead.errors import StateError, UsageError, require

Item = TypeVar("Item")
VERSION = 1


@dataclass(frozen=True, slots=True)
class ReleasedMessage(Generic[Item]):
    """A message in the one order. `time`: its stored time, made monotone within its input."""

    input: str
    time: int
    sequence: int
    item: Item


@dataclass(slots=True)
class MergedInput:
    """The progress of an input: the sequence and the time of its last message; None before the first. `ended`: there are no
    more messages. `done`: the last message before all held ones, as sequence and time."""

    sequence: int | None = None
    time: int | None = None
    ended: bool = False
    done: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Beat(Generic[Item]):
    """The item of a heartbeat, if it has one."""

    item: Item | None


class Merging(Generic[Item]):
    """`inputs`: the names of all inputs; each must be seen before anything is released, unless it is the only one. Times are
    integers of any one unit. `held`: the number of waiting messages, without heartbeats."""

    def __init__(self, inputs: Iterable[str]) -> None:
        given = list(inputs)
        if not given or len(set(given)) != len(given):
            fix = "name every input once, and at least one"
            raise UsageError("A230", f"the inputs to merge are {', '.join(map(repr, given)) or 'none'}", fix)
        self._inputs = {name: MergedInput() for name in sorted(given)}
        self._held: list[tuple[int, str, int, Item | Beat[Item]]] = []
        self.held = 0

    def push(self, name: str, stored: int, sequence: int, item: Item) -> list[ReleasedMessage[Item]]:
        """Add the next message of an input; returns the messages that can be released now."""
        return self._take(name, stored, sequence, item)

    def heartbeat(self, name: str, stored: int, sequence: int, item: Item | None = None) -> list[ReleasedMessage[Item]]:
        """A message of an input that only advances its time; nothing waits for it. It is released if it has an item."""
        return self._take(name, stored, sequence, Beat(item))

    def end(self, name: str) -> list[ReleasedMessage[Item]]:
        """This input has no more messages."""
        self._inputs[name].ended = True
        return self._release()

    def waits_for(self) -> tuple[str, ...]:
        """The inputs that delay the next message; empty if nothing is held."""
        return () if not self.held else self._behind(self._held[0])

    def after(self) -> dict[str, int | None]:
        """By input the sequence of the last released message; None if a reader that resumes starts at the beginning."""
        return {name: None if each.done is None else each.done[0] for name, each in self._inputs.items()}

    def _take(self, name: str, stored: int, sequence: int, item: Item | Beat[Item]) -> list[ReleasedMessage[Item]]:
        mine = self._inputs[name]
        rises = mine.sequence is None or sequence > mine.sequence
        require(rises and not mine.ended, "the sequences of an input rise", input=name, last=mine.sequence, got=sequence)
        time = stored if mine.time is None else max(stored, mine.time)
        mine.sequence, mine.time = sequence, time
        heappush(self._held, (time, name, sequence, item))
        self.held += not isinstance(item, Beat)
        return self._release()

    def _release(self) -> list[ReleasedMessage[Item]]:
        found: list[ReleasedMessage[Item]] = []
        while self._held and not self._behind(self._held[0]):
            time, name, sequence, item = heappop(self._held)
            self._inputs[name].done = sequence, time
            if not isinstance(item, Beat):
                self.held -= 1
                found.append(ReleasedMessage(name, time, sequence, item))
            elif item.item is not None:
                found.append(ReleasedMessage(name, time, sequence, item.item))
        return found

    def _behind(self, message: tuple[int, str, int, Item | Beat[Item]]) -> tuple[str, ...]:
        """The other inputs that may still have messages before this one."""
        place = message[0], message[1]
        return tuple(
            name
            for name, each in self._inputs.items()
            if name != message[1] and not each.ended and (each.time is None or (each.time, name) < place)
        )

    def dump(self) -> dict[str, Any]:
        """The progress of the inputs; equal states have equal bytes as JSON. Held messages have to be read again."""
        return {"version": VERSION, "inputs": {name: each.done and list(each.done) for name, each in self._inputs.items()}}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Merging[Item]:
        """The inverse of `dump`; continue with the messages after `after`. Raises StateError."""
        if state.get("version") != VERSION or not isinstance(state.get("inputs"), Mapping):
            problem = f"the state of merged inputs has version {state.get('version')!r}, wanted {VERSION}"
            raise StateError("S123", problem, "load it with the release that wrote it, or read the inputs from their beginning")
        loaded: Merging[Item] = cls(state["inputs"])
        for name, done in state["inputs"].items():
            if done is not None:
                sequence, time = map(int, done)
                loaded._inputs[name] = MergedInput(sequence, time, done=(sequence, time))
        return loaded
