"""The parts of a process that is simulated: the input of a step, and its outputs.

A process is a pure function, `step(state, given, now) -> (state, outputs)`. It reads no clock and no random number: `now` is
its own clock, in seconds, which may be wrong. States and bodies are values that nobody changes.

Takes: nothing. Gives: types. Never: runs anything.
"""

from __future__ import annotations

from typing import Any

from fairlead.dataclass import dataclass


@dataclass(frozen=True)
class Message:
    """From another process."""

    sender: str
    body: Any

    def __str__(self) -> str:
        return f"gets {self.body} from {self.sender}"


@dataclass(frozen=True)
class Request:
    """Of the application that uses the process."""

    body: Any

    def __str__(self) -> str:
        return f"is asked {self.body}"


@dataclass(frozen=True)
class Alarm:
    """An alarm that the process has set."""

    name: Any

    def __str__(self) -> str:
        return f"has the alarm {self.name}"


@dataclass(frozen=True)
class Restart:
    """The first input after a crash: the state is the last one that was stored, and alarms are gone."""

    def __str__(self) -> str:
        return "starts again"


Given = Message | Request | Alarm | Restart


@dataclass(frozen=True)
class Send:
    to: str
    body: Any

    def __str__(self) -> str:
        return f"sends {self.body} to {self.to}"


@dataclass(frozen=True)
class SetAlarm:
    """After so many seconds; an alarm of this name that is set already is replaced."""

    name: Any
    seconds: float

    def __str__(self) -> str:
        return f"sets the alarm {self.name}"


@dataclass(frozen=True)
class Deliver:
    """To the application."""

    body: Any

    def __str__(self) -> str:
        return f"delivers {self.body}"


@dataclass(frozen=True)
class StoreState:
    """The state after this step survives a crash."""

    def __str__(self) -> str:
        return "stores its state"


Produced = Send | SetAlarm | Deliver | StoreState


@dataclass(frozen=True)
class ProcessStep:
    """One step of a run: when, who, its input, its outputs."""

    at: float
    process: str
    given: Given
    produced: tuple[Produced, ...]

    def __str__(self) -> str:
        told = ", ".join(map(str, self.produced))
        return f"{self.at:9.3f}  {self.process:6} {self.given}{': ' + told if told else ''}"
