"""The checker of histories finds every kind of damage; the whole history is that of a simulated run in which nothing fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from fairlead.testing.history.checker import check
from fairlead.testing.history.expectation import digest_of
from fairlead.testing.history.values import (
    Confirmed,
    History,
    Joining,
    LifeBegun,
    LoggedEvent,
    NotAccepted,
    PublisherHistory,
    ReceivedDelivery,
    Sent,
    SubscriberHistory,
)
from fairlead.testing.simulator.live.cases import AFTER, PAIR, WIDE, Item, LiveCase, PublisherPlan, SubscriberPlan
from fairlead.testing.simulator.live.simulation import LiveRun

LEFT, MAIN = "FL_TOPIC_left", "FL_TOPIC_main"


@cache
def whole() -> History:
    """p0 and p1 publish four pairs; s0 and s1 have the same rules."""
    items = tuple(Item(name, 0, 20, wait=True) for name in "AB" * 2)
    publishers = PublisherPlan("p0", items), PublisherPlan("p1", (*items, Item("C", 0), Item("C", 0, wait=True)))
    run = LiveRun(LiveCase(1, publishers, tuple(SubscriberPlan(name, (PAIR, AFTER, WIDE)) for name in ("s0", "s1"))))
    assert run.outcome().problems == ()
    assert run.history is not None
    return run.history


def publisher(history: History, change: Callable[[Sequence[Any]], Sequence[Any]]) -> History:
    first, *others = history.publishers
    return replace(history, publishers=[replace(first, steps=change(first.steps)), *others])


def subscriber(history: History, **changes: Any) -> History:
    first, *others = history.subscribers
    return replace(history, subscribers=[replace(first, **changes), *others])


def steps(history: History, change: Callable[[list[Any]], Sequence[Any]]) -> History:
    return subscriber(history, steps=change(list(history.subscribers[0].steps)))


def stream(history: History, topic: str, change: Callable[[list[LoggedEvent]], list[LoggedEvent]]) -> History:
    name = f"FL_TOPIC_{topic}"
    changed = change(list(history.topics[topic]))
    return replace(history, topics={**history.topics, topic: changed}, streams={**history.streams, name: changed})


def first_of(kind: type, found: Sequence[Any]) -> int:
    return next(at for at, each in enumerate(found) if isinstance(each, kind))


def swapped(some: list[Any], kind: type) -> list[Any]:
    """The first two of a kind change places."""
    one, other = [at for at, each in enumerate(some) if isinstance(each, kind)][:2]
    some[one], some[other] = some[other], some[one]
    return some


def without(some: list[Any], kind: type, number: int = 0) -> list[Any]:
    at = [at for at, each in enumerate(some) if isinstance(each, kind)][number]
    return some[:at] + some[at + 1 :]


def tokens_changed(some: list[LoggedEvent]) -> list[LoggedEvent]:
    (one, first), (other, second) = [(at, each) for at, each in enumerate(some) if each.source == "p0"][:2]
    some[one], some[other] = replace(first, token=second.token), replace(second, token=first.token)
    return some


def redelivered(some: list[Any]) -> list[Any]:
    """A new process receives what was acknowledged."""
    return [*some, LifeBegun(), some[first_of(ReceivedDelivery, some)]]


def of(history: History) -> ReceivedDelivery:
    found = history.subscribers[0].steps[first_of(ReceivedDelivery, history.subscribers[0].steps)]
    assert isinstance(found, ReceivedDelivery)
    return found


def receipt(history: History, **changes: Any) -> History:
    (key, first), *others = history.subscribers[0].receipts.items()
    return subscriber(history, receipts={key: replace(first, **changes), **dict(others)})


DAMAGES: dict[str, tuple[Callable[[History], History], str]] = {
    "a confirmed event is lost": (
        lambda h: stream(h, "left", lambda some: [each for each in some if each.token != h.publishers[0].steps[1].token]),  # type: ignore[union-attr]
        "was confirmed, and the log does not have it",
    ),
    "an event is stored twice": (
        lambda h: stream(h, "left", lambda some: [*some, replace(some[-1], position=some[-1].position + 1)]),
        "is 2 times in left",
    ),
    "an event that nobody sent": (
        lambda h: publisher(h, lambda some: [each for each in some if each != some[1] and each != some[2]]),
        "and nobody sent it there",
    ),
    "an event in another topic": (
        lambda h: publisher(h, lambda some: [replace(e, topic="right") if isinstance(e, Sent) else e for e in some]),
        "is in left, and nobody sent it there",
    ),
    "two events of a publisher change places": (lambda h: stream(h, "left", tokens_changed), "which was sent before it"),
    "a hole": (
        lambda h: publisher(h, lambda some: [some[0], Sent("never", "left"), *some[1:]]),
        "is stored, and never before it is not",
    ),
    "sequences of a source": (
        lambda h: stream(h, "left", lambda some: [replace(each, sequence=7) for each in some]),
        "has the sequence 7",
    ),
    "a merged stream lacks an event": (
        lambda h: replace(h, streams={**h.streams, **{name: h.streams[name][:-1] for name in h.merged}}),
        "the merged stream of left, right has",
    ),
    "a merged stream in another order": (
        lambda h: replace(h, streams={**h.streams, **{name: h.streams[name][::-1] for name in h.merged}}),
        "the merged stream of left, right has left in another order",
    ),
    "positions do not increase": (
        lambda h: stream(h, "left", lambda some: [replace(each, position=4096) for each in some]),
        "do not increase",
    ),
    "a delivery is left out": (lambda h: steps(h, lambda some: without(some, ReceivedDelivery, 3)), "is due"),
    "deliveries change places": (lambda h: steps(h, lambda some: swapped(some, ReceivedDelivery)), "s0 received"),
    "a delivery twice": (
        lambda h: steps(h, lambda some: [*some[:1], some[first_of(ReceivedDelivery, some)], *some[1:]]),
        "where 2 is due",
    ),
    "what was acknowledged is delivered again": (lambda h: steps(h, redelivered), "received number 1 of"),
    "the last delivery is missing": (
        lambda h: steps(
            h, lambda some: [each for each in some if not (isinstance(each, ReceivedDelivery) and each.number == 4)]
        ),
        "are due",
    ),
    "nothing of a subscription": (
        lambda h: steps(
            h, lambda some: [e for e in some if not (isinstance(e, ReceivedDelivery) and e.subscription == "Wide")]
        ),
        "received nothing of Wide",
    ),
    "another relation": (
        lambda h: steps(h, lambda some: [replace(e, id="0" * 32) if e == of(h) else e for e in some]),
        "received 00000000000000000000000000000000 as number 1",
    ),
    "an event at another position": (
        lambda h: steps(h, lambda some: [replace(e, members=((4096, "another"),)) if e == of(h) else e for e in some]),
        "received another at 4096",
    ),
    "a receipt that counts too few": (lambda h: receipt(h, count=1), "that is not theirs"),
    "a receipt of other relations": (lambda h: receipt(h, digest="0" * 32), "that is not theirs"),
    "an early end of the receipt": (lambda h: receipt(h, count=0, digest="0" * 32), "after 0 deliveries, and"),
    "an origin that is too late": (lambda h: receipt(h, origin=3 << 12), "and should from 0 at the latest"),
    "what was there before it joined": (
        lambda h: subscriber(h, joined=dict.fromkeys(h.subscribers[0].joined, Joining(1 << 40, 1 << 40))),
        "which was completed before it joined",
    ),
    "a derived event twice": (
        lambda h: stream(h, "main", lambda some: [*some, replace(some[-1], position=some[-1].position + 1)]),
        "events of Both",
    ),
    "a derived event is missing": (lambda h: stream(h, "main", lambda some: some[:-1]), "events of Both"),
}


def test_a_run_in_which_nothing_fails_has_no_problems() -> None:
    history = whole()
    assert check(history) == []
    assert sum(isinstance(each, ReceivedDelivery) for each in history.subscribers[0].steps) > 8


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found(name: str) -> None:
    damage, problem = DAMAGES[name]
    found = check(damage(whole()))
    assert any(problem in each for each in found), found


def sent_twice(*, lost: bool) -> History:
    """A publisher has sent four events, of which two are confirmed. A new process asks the log how many it has, and sends the
    others again, as the same content. With `lost`, the log has lost one that was confirmed."""
    first = [
        LifeBegun(),
        *(Sent(f"{x}/1", "t") for x in range(2)),
        Confirmed(("0/1", "1/1")),
        *(Sent(f"{x}/1", "t") for x in (2, 3)),
    ]
    kept = 1 if lost else 2
    second = [LifeBegun(), *(Sent(f"{x}/2", "t") for x in range(kept, 4)), Confirmed(("3/2",))]
    tokens = [*(f"{x}/1" for x in range(kept)), *(f"{x}/2" for x in range(kept, 4))]
    log = [LoggedEvent(at << 12, "t", "A", "p", token, (at,), None, at) for at, token in enumerate(tokens)]
    return History({"t": log}, {}, {}, [PublisherHistory("p", [*first, *second])], [])


def test_a_loss_is_found_although_the_event_was_sent_again() -> None:
    assert check(sent_twice(lost=False)) == []
    assert check(sent_twice(lost=True)) == ["1/1 of p was confirmed, and the log does not have it"]


def test_a_refused_event_need_not_be_stored() -> None:
    steps = [LifeBegun(), Sent("a", "t"), NotAccepted("a"), Sent("b", "t"), Confirmed(("b",))]
    log = [LoggedEvent(0, "t", "A", "p", "b", (), None, 0)]
    assert check(History({"t": log}, {}, {}, [PublisherHistory("p", steps)], [])) == []


def test_the_receipt_is_that_of_the_relations_and_of_their_signs() -> None:
    ids = [f"{number:032x}" for number in range(5)]
    plus = digest_of((each, 1) for each in ids)
    assert plus != digest_of((each, -1) for each in ids)
    assert plus != digest_of((each, 1) for each in reversed(ids))


def test_a_subscriber_that_joined_late_is_due_the_rest() -> None:
    history = whole()
    who = history.subscribers[0]
    key = of(history).group
    third = next(e for e in who.steps if isinstance(e, ReceivedDelivery) and e.group == key and e.number == 3)
    late = [e for e in who.steps if not (isinstance(e, ReceivedDelivery) and e.group == key and e.number < 3)]
    by = max(position for position, _ in third.members if isinstance(position, int)) - 1

    def judged(by: int) -> list[str]:
        joined = dict(who.joined) | {third.subscription: Joining(-1, by)}
        changed: SubscriberHistory = replace(who, steps=late, joined=joined)
        return check(replace(history, subscribers=[changed, *history.subscribers[1:]]))

    assert judged(by) == []
    assert any("was completed after it joined" in each for each in judged(0))
