"""A subscription has the frontier of the events that it reads, alone with its upstream: what it delivers beside others, and the
verdicts on its events, are those that it has alone; and all deliveries are in one order, however the sequence is cut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

import fairlead
from fairlead.matching.results.delivery_order import delivery_words
from fairlead.model.plans.partition import alone
from fairlead.model.relations.identity import to_hex
from fairlead.runtime.embedded import Run
from fairlead.runtime.event_time import EventTimeMatcher, EventVerdicts, frontier_groups, taking_part
from fairlead.runtime.run_state import decode_run
from fairlead.runtime.sorting import AllFresh
from fairlead.transport.events import read_events
from tests.marks import sample_size

TYPES = "".join(f"TYPE {name} (k INT, n INT, at TIMESTAMP) TIME at\n" for name in "ABCD")
SUBSCRIPTIONS = """
SUBSCRIPTION Ones MATCH A a WHERE a.k > 0
SUBSCRIPTION Both MATCH A a THEN B b PER k EMIT Pair(k = a.k, n = b.n)
SUBSCRIPTION Bs MATCH B b
SUBSCRIPTION Above MATCH Pair p AND C c PER k
SUBSCRIPTION Again MATCH A a
SUBSCRIPTION Missing MATCH C c WITHOUT A a WITHIN 3 SECONDS OF c PER k
"""
ORDERS = ["DELAY 2 SECONDS", "DELAY 1 SECOND LATE REVISE WITHIN 4 SECONDS", "DELAY 1 SECOND PER SOURCE IDLE 5 SECONDS"]


def records(seed: int, count: int = 120) -> list[dict[str, Any]]:
    random = Random(seed)
    lag = {name: random.choice((0, 0, 3, 8)) for name in "ABCD"}
    made = []
    for number in range(count):
        name = random.choice("AABBCCD")
        moment = 20 + number * 0.3 - lag[name] + random.choice((0, 0, 0, 0.7, 2, -5))
        time = f"2026-01-01T00:{int(moment // 60):02}:{moment % 60:09.6f}Z"
        made.append(
            {
                "type": name,
                "k": random.randrange(3),
                "n": number,
                "at": time,
                "_source": random.choice("pq"),
                "_sequence": number,
            }
        )
        if random.random() < 0.05:
            made.append({"type": "Heartbeat", "at": time})
    return made


def batches(plan: fairlead.Plan, given: Sequence[dict[str, Any]], random: Random | None) -> Any:
    (whole,) = read_events(given, plan.catalogue, last_sequences=AllFresh())
    low = 0
    while low < len(whole):
        high = len(whole) if random is None else min(len(whole), low + random.choice((1, 2, 7, 30)))
        yield whole.part(low, high)
        low = high


class Heard:
    def __init__(self) -> None:
        self.deliveries: list[tuple[str, str]] = []
        self.verdicts: dict[str, list[tuple[int, str]]] = defaultdict(list)

    def take(self, found: Sequence[fairlead.Relation]) -> None:
        words = to_hex(delivery_words(found))
        self.deliveries += [(each.subscription, word) for each, word in zip(found, words, strict=True)]

    def judge(self, told: EventVerdicts) -> None:
        for name in told.subscriptions or ("",):
            self.verdicts[name] += zip(
                told.columns.position_array.tolist(), (each.value for each in told.verdicts), strict=True
            )


def followed(plan: fairlead.Plan, given: Sequence[dict[str, Any]], random: Random | None = None, reload: bool = False) -> Heard:
    heard = Heard()
    run = Run(plan, event_by_event=True, late=heard.judge, keep=reload)
    for columns in batches(plan, given, random):
        heard.take(run.feed(columns))
        if reload and random is not None and random.random() < 0.2:
            run = Run(plan, event_by_event=True, resumed=decode_run(run.kept().encode()), late=heard.judge, keep=True)
    run.keep = False
    heard.take(run.finish())
    return heard


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(4))
def test_beside_others_a_subscription_delivers_what_it_delivers_alone(seed: int, order: str) -> None:
    plan = fairlead.compile(f"{TYPES}ORDER BY at {order}{SUBSCRIPTIONS}")
    given = records(seed)
    together = followed(plan, given)
    late = 0
    for each in plan.subscriptions:
        mine = alone(plan, [each.name])
        (group,) = frontier_groups(mine)
        matcher, heard = EventTimeMatcher(mine), Heard()
        for columns in batches(plan, given, None):
            found = matcher.step(group.share(columns), columns.stored)
            heard.take(found.relations)
            heard.judge(found.verdicts)
        heard.take(matcher.finish().relations)
        assert [one for one in together.deliveries if one[0] == each.name] == heard.deliveries
        assert together.verdicts[each.name] == heard.verdicts[""]
        late += len(heard.verdicts[""])
    assert late


@pytest.mark.sampled
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_what_takes_part_is_what_some_subscription_accepts_and_what_nobody_reads(order: str, cut: bool) -> None:
    """Also late events that revise. Each subscription is followed alone."""
    plan = fairlead.compile(f"{TYPES}ORDER BY at {order}{SUBSCRIPTIONS}")
    given = records(1)
    refused = {name: {at for at, verdict in told if verdict == "late"} for name, told in followed(plan, given).verdicts.items()}
    readers = {each: [group for group in frontier_groups(plan) if each in group.types] for each in "ABCD"}
    wanted, gone = list[int](), list[int]()
    for at, each in enumerate(given):
        groups = readers.get(each["type"], [])
        accepted = any(at not in refused.get(name, ()) for group in groups for name in group.names)
        (wanted if accepted or not groups else gone).append(at)
    told, apart = list[int](), {group: dict[int, Any]() for group in frontier_groups(plan)}
    taken = taking_part(
        batches(plan, given, Random(1) if cut else None),
        plan,
        lambda each: told.extend(each.columns.position_array.tolist()),
        apart,
    )
    assert [at for columns in taken for at in columns.position_array.tolist()] == wanted
    assert (told, bool(gone)) == (gone, True)
    for group, verdicts in apart.items():
        assert verdicts.keys() == refused.get(group.names[0], set())


def test_the_types_of_a_group_are_in_one_order_in_every_process() -> None:
    """They are its name in a state, which another process resumes."""
    plan = fairlead.compile(f"{TYPES}ORDER BY at DELAY 1 SECOND{SUBSCRIPTIONS}")
    found = [each.types for each in frontier_groups(plan)]
    assert found == [("A",), ("A", "B"), ("B",), ("A", "B", "C"), ("A", "C")]


def test_only_what_has_no_state_begins_when_a_run_is_resumed() -> None:
    before, after = ("SUBSCRIPTION RA MATCH A a SUBSCRIPTION RB MATCH B b", " SUBSCRIPTION RC MATCH C c")
    run = Run(fairlead.compile(f"{TYPES}ORDER BY at DELAY 1 SECOND {before}"), event_by_event=True, keep=True)
    for columns in batches(run.plan, records(1), None):
        run.feed(columns)
    state = decode_run(run.kept().encode())
    again = Run(fairlead.compile(f"{TYPES}ORDER BY at DELAY 1 SECOND {before}{after}"), event_by_event=True, resumed=state)
    assert (again.change.resumed, again.change.started) == (("RA", "RB"), ("RC",))


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
def test_deliveries_and_verdicts_do_not_depend_on_batches_and_restarts(order: str) -> None:
    plan = fairlead.compile(f"{TYPES}ORDER BY at {order}{SUBSCRIPTIONS}")
    for seed, count in ((1, 100), (2, 100), (0, 1100))[: sample_size(3)]:
        given, random = records(seed, count), Random(seed)
        whole = followed(plan, given)
        for reload in (False, True):
            again = followed(plan, given, random, reload)
            assert again.deliveries == whole.deliveries
            assert again.verdicts == whole.verdicts


def test_an_event_that_nobody_reads_moves_no_frontier_and_has_no_verdict() -> None:
    plan = fairlead.compile(f"{TYPES}ORDER BY at DELAY 1 SECOND SUBSCRIPTION RA MATCH A a SUBSCRIPTION RB MATCH B b")
    times = [("A", 10), ("B", 50), ("D", 59), ("A", 20), ("B", 30), ("D", 1), ("A", 40)]
    given = [{"type": name, "k": 1, "n": at, "at": f"2026-01-01T00:00:{at:02}Z"} for name, at in times]
    heard = followed(plan, given)
    assert [name for name, _ in heard.deliveries] == ["RA", "RA", "RA", "RB"]
    assert heard.verdicts == {"RB": [(4, "late")]}


@pytest.mark.parametrize("order", ["DELAY 1 SECOND", "DELAY 1 SECOND LATE REVISE WITHIN 1 MINUTE"])
def test_a_heartbeat_moves_the_frontier_of_every_group(order: str) -> None:
    plan = fairlead.compile(f"{TYPES}ORDER BY at {order} SUBSCRIPTION RA MATCH A a SUBSCRIPTION RB MATCH B b")
    times = [("A", 10), ("B", 11), ("Heartbeat", 30), ("A", 20), ("B", 21)]
    given = [
        {"type": name, "at": f"2026-01-01T00:00:{at:02}Z"} | ({} if name == "Heartbeat" else {"k": 1, "n": at})
        for name, at in times
    ]
    run, heard = Run(plan, event_by_event=True, keep=True), Heard()
    run.late = heard.judge
    for columns in batches(plan, given, None):
        heard.take(run.feed(columns))
    assert sorted(name for name, _ in heard.deliveries) == ["RA", "RB"]
    assert heard.verdicts == ({} if "REVISE" in order else {"RA": [(3, "late")], "RB": [(4, "late")]})


def test_a_round_ends_with_the_sequence_and_revises_after_what_its_last_event_releases() -> None:
    """Rounds of files are 1,024 events, of whatever type. The subscription that is revised has no event after the round."""
    order = "ORDER BY at DELAY 1 SECOND LATE REVISE WITHIN 1 HOUR"
    plan = fairlead.compile(f"{TYPES}{order} SUBSCRIPTION RB MATCH B b SUBSCRIPTION RA MATCH A a")
    times = [("B", 10), ("B", 50), ("B", 30), *[("D", 1)] * 1019, ("A", 10), ("A", 50), ("D", 1)]
    given = [{"type": name, "k": 1, "n": at, "at": f"2026-01-01T00:00:{at:02}Z"} for name, at in times]
    run = Run(plan, event_by_event=True, keep=True)
    found = [(each.subscription, each.events[0]["n"]) for columns in batches(plan, given, None) for each in run.feed(columns)]
    assert found == [("RB", 10), ("RA", 10), ("RB", 30)]


def test_what_one_event_releases_is_in_the_order_of_the_text() -> None:
    plan = fairlead.compile(
        f"{TYPES}ORDER BY at DELAY 5 SECONDS SUBSCRIPTION One MATCH A a SUBSCRIPTION Two MATCH A a SUBSCRIPTION Three MATCH B b"
    )
    times = [("A", 1), ("B", 2), ("A", 3), ("B", 30), ("A", 31)]
    given = [{"type": name, "k": 1, "n": at, "at": f"2026-01-01T00:00:{at:02}Z"} for name, at in times]
    run = Run(plan, keep=True)
    found = [(each.subscription, each.events[0]["n"]) for columns in batches(plan, given, None) for each in run.feed(columns)]
    assert found == [("Three", 2), ("One", 1), ("One", 3), ("Two", 1), ("Two", 3)]
