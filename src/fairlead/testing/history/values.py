"""A history: what was published and confirmed, what the log holds, what each subscriber received and acknowledged.

Every publication has a token of its own, which is one of its values: an event that is sent again after a restart is another
publication of the same content. So a loss cannot hide behind a repetition.

Takes: what a run recorded. Gives: values. Never: knows how the run came about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.dataclass import dataclass


@dataclass(frozen=True)
class LoggedEvent:
    """An event in a stream. `token`: of its publication; None if no publisher of the history sent it (derived events,
    heartbeats). `row`: its canonical values, in the order of the attributes. `stored`: when, in microseconds."""

    position: int
    topic: str
    type: str
    source: str
    token: str | None
    row: tuple[Any, ...]
    time: int | None = None
    sequence: int | None = None
    stored: int = 0


@dataclass(frozen=True)
class LifeBegun:
    """A process starts: everything after it is of that process."""


@dataclass(frozen=True)
class Sent:
    """An event is about to be published."""

    token: str
    topic: str


@dataclass(frozen=True)
class NotAccepted:
    """Publishing has raised, and said that the event was not accepted."""

    token: str


@dataclass(frozen=True)
class Confirmed:
    """The log has confirmed that these events are stored."""

    tokens: tuple[str, ...]


@dataclass(frozen=True)
class ReceivedDelivery:
    """A delivery. `group`: what is numbered and acknowledged together. `members`: of each its position, as users see it, and
    its token if it has one."""

    group: str
    number: int
    id: str
    sign: int
    subscription: str
    members: tuple[tuple[int | str, str | None], ...]


@dataclass(frozen=True)
class Acknowledged:
    """Everything of the group up to this number is acknowledged, and the log has confirmed it."""

    group: str
    number: int


@dataclass(frozen=True)
class Acknowledging:
    """Everything of the group up to this number is about to be acknowledged."""

    group: str
    number: int


@dataclass(frozen=True)
class SeenReceipt:
    """The receipt of a group that the log has at this time: so many deliveries, of which `joined` are from before."""

    group: str
    count: int
    joined: int = 0


@dataclass(frozen=True)
class NotedReceipt:
    """A receipt, as the log has it in the end. `origin`: the position from which its relations are counted. `subscription`: of
    which it is, also if nothing was delivered. `leading`: the position at which the lineage begins that stores what the
    subscription derives; a subscriber decides it before it has begun, and can fail in between."""

    count: int
    digest: str
    joined: int = 0
    origin: int = 0
    subscription: str = ""
    leading: int | None = None


SubscriberStep = LifeBegun | ReceivedDelivery | Acknowledging | Acknowledged | SeenReceipt


@dataclass(frozen=True)
class Joining:
    """Where a subscriber may begin to deliver. Relations that were completed up to `before` are not delivered, those after `by`
    are; what lies between depends on when exactly it joined. `origin_max`: where its relations begin, at the latest."""

    before: int = -1
    by: int = -1
    origin_max: int = 0


@dataclass(frozen=True)
class PublisherHistory:
    """One that publishes one event after the other. `source`: under which name, if it is not its own."""

    name: str
    steps: Sequence[LifeBegun | Sent | NotAccepted | Confirmed]
    source: str | None = None


@dataclass(frozen=True)
class SubscriberHistory:
    """`text`: the rules with all types. `streams`: by subscription, the name of the stream that it reads; with ORDER BY the
    streams of its topics, separated by blanks, which are read by the times at which blocks were stored. `joined`: by
    subscription, where it began. `receipts`: by group. `is_done`: it had time to receive and acknowledge everything."""

    name: str
    text: str
    streams: Mapping[str, str]
    steps: Sequence[SubscriberStep]
    joined: Mapping[str, Joining]
    receipts: Mapping[str, NotedReceipt]
    is_done: bool = True


@dataclass(frozen=True)
class History:
    """`topics`: by topic, the events of its stream; `streams`: by name, those of every stream that somebody reads, without
    repeats. `merged`: by the name of a merged stream, its topics."""

    topics: Mapping[str, Sequence[LoggedEvent]]
    streams: Mapping[str, Sequence[LoggedEvent]]
    merged: Mapping[str, Sequence[str]]
    publishers: Sequence[PublisherHistory]
    subscribers: Sequence[SubscriberHistory]
