"""Subscribing, on a real server: who has the same rules gets the same relations, in the same order, under the same ids."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.deliver.receipt import ReceiptBook
from fairlead.engine import Engine
from fairlead.errors import LanguageError, StateError, UsageError
from fairlead.model.relation import Relation
from fairlead.runtime.embedded import id_words
from fairlead.runtime.live import keeping
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.subscribing import LiveSubscription
from fairlead.transport.admission.records import read_records
from fairlead.transport.log import shared_reader as sharing
from fairlead.transport.log.block import decode, positions
from fairlead.transport.log.jetstream import reader as jetstream_reading
from tests.live.logs import run
from tests.live.test_logs import taken

TYPES = "TYPE A (k INT, x INT); TYPE B (k INT, x INT); TYPE C (k INT, x INT)"
RULES = "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k"
COVERING = f"{RULES} SUBSCRIPTION T MATCH A a AND B b AND C c WHERE a.k = b.k AND b.k = c.k"


async def some(sub: LiveSubscription, count: int) -> list[Relation]:
    found: list[Relation] = []
    if count:
        async for relation in sub:
            found.append(relation)
            if len(found) == count:
                break
    return found


async def more(sub: LiveSubscription, seconds: float = 0.5) -> list[Relation]:
    """What comes until nothing came for a while and all that is stored was read."""
    found: list[Relation] = []
    while True:
        relation = await sub.next_within(seconds)
        if relation is not None:
            found.append(relation)
        elif await settled(sub):
            return found


async def settled(sub: LiveSubscription) -> bool:
    """Whether everything published is merged and read: on a busy machine that takes its time."""
    return await sub.has_passed(await sub.ends())


def ids(relations: Sequence[Relation]) -> list[str]:
    return [each.id for each in relations]


async def publish_some(fl: Client, seed: int, rounds: int = 40) -> None:
    """Three publishers at once, in blocks of all sizes."""
    rolls = random.Random(seed)

    async def one(name: str) -> None:
        async with fairlead.connect(fl.url) as mine:
            for _ in range(rounds):
                count = rolls.choice([1, 2, 7, 30])
                rows = {"k": [rolls.randrange(5) for _ in range(count)], "x": [rolls.randrange(1000) for _ in range(count)]}
                await mine.publish_many(name, rows, wait=rolls.random() < 0.3)
                await asyncio.sleep(rolls.random() * 0.003)

    await asyncio.gather(*(one(name) for name in "ABC"))


async def exported(fl: Client, types: Sequence[str]) -> list[tuple[int, dict[str, Any]]]:
    """The events of a merged stream with their positions, as a file would have them."""
    stream, catalogue = await fl.log.open_merged(types), await fl.types()
    await merged(fl, types, sum([await fl.log.last(await fl.log.open_type(name)) for name in types]))
    found: list[tuple[int, dict[str, Any]]] = []
    for each in await taken(fl.log, stream, await fl.log.last(stream)):
        rows = decode(each.block, catalogue[each.block.type]).to_pylist()
        for position, row in zip(positions(each.sequence, each.block.count).tolist(), rows, strict=True):
            found.append((position, {"type": each.block.type} | row))
    return found


async def merged(fl: Client, types: Sequence[str], count: int) -> None:
    """Wait until so many blocks are merged: what is published one after the other may be merged otherwise."""
    while await fl.log.last(await fl.log.open_merged(types)) < count:
        await asyncio.sleep(0.01)


def matched(text: str, events: list[tuple[int, dict[str, Any]]]) -> list[Relation]:
    """By the embedded engine, over the exported events."""
    plan = fairlead.compile(text)
    engine = Engine(plan)
    (columns,) = read_records([event for _, event in events], plan.catalogue, batch_rows=10**6)
    return list(engine.feed(replace(columns, positions=[at for at, _ in events])))


def test_subscribers_of_one_client_read_together_and_one_that_has_stopped_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "UNREAD_MAX", 20_000)
    monkeypatch.setattr(sharing, "KEPT_MAX", 5_000)
    monkeypatch.setattr(sharing, "SLOW_SECONDS", 0.1)
    begun: list[str] = []
    opening = jetstream_reading.Reading.open

    async def counted(self: jetstream_reading.Reading, *given: Any) -> None:
        begun.append(self._stream.name)
        await opening(self, *given)

    monkeypatch.setattr(jetstream_reading.Reading, "open", counted)

    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            async with (
                fl.subscribe(RULES, start="earliest") as one,
                fl.subscribe(RULES, start="earliest") as two,
                fl.subscribe(COVERING, start="earliest") as covering,
                fl.subscribe(RULES, start="earliest") as stuck,
            ):
                reading = [asyncio.create_task(more(each, 1.0)) for each in (one, two, covering)]
                await publish_some(fl, seed=7)
                first, second, wider = [
                    [*await each, *await more(sub)] for each, sub in zip(reading, (one, two, covering), strict=True)
                ]
                assert len(begun) <= 6  # two streams, each once for all who keep up and, of one, once more for who did not
                expected = matched(f"{TYPES}; {RULES}", await exported(fl, ["A", "B"]))
                assert ids(first) == ids(expected) != []  # how many they are is a matter of how the publishers took turns
                assert ids(first) == ids(second) == ids([each for each in wider if each.subscription == "S"])
                async with fl.subscribe(RULES, start="earliest") as late:
                    assert ids(await more(late)) == ids(first)
                assert ids(await more(stuck)) == ids(first)
                assert len({each.receipt.digest for each in (one, two, stuck)}) == 1

    run(work)


def test_equal_subscribers_agree_and_so_does_the_embedded_engine_over_the_exported_events(tmp_path: Path) -> None:
    async def work() -> None:
        async with fairlead.connect() as fl, fairlead.connect(fl.url) as other:
            await fl.declare(TYPES)
            async with (
                fl.subscribe(RULES, name="desk-1", start="earliest") as one,
                other.subscribe(RULES, name="desk-2", start="earliest") as two,
                other.subscribe(COVERING, name="desk-3", start="earliest") as three,
            ):
                await publish_some(fl, seed=1)
                first, second, third = await asyncio.gather(more(one), more(two), more(three))
                assert len(first) > 50
                assert ids(first) == ids(second)
                assert ids(first) == [each.id for each in third if each.subscription == "S"]
                assert one.receipt == two.receipt
                assert one.receipt.count == len(first)
                assert await one.lag() == 0
                await asyncio.gather(one.ack(), two.ack(), three.ack())
            assert await fl.compare("desk-1", "desk-2")
            assert (await fl.compare("desk-1", "desk-2")).agreed == len(first)
            assert await fl.compare("desk-1", "desk-3")

            expected = matched(f"{TYPES}; {RULES}", await exported(fl, ["A", "B"]))
            assert ids(expected) == ids(first)
            book = ReceiptBook(fairlead.compile(f"{TYPES}; {RULES}").digest)
            book.note(id_words(expected))
            assert book.receipt() == one.receipt
            assert [each.members for each in expected][:1][0][0].values == first[0].members[0].values
            await fl.export(RULES, tmp_path / "events.parquet")
            table = pq.read_table(tmp_path / "events.parquet")
            by_table = fairlead.match(fairlead.compile(f"{TYPES}; {RULES}"), table, position="position")
            assert ids(by_table[:]) == ids(first)
            assert by_table.receipt.digest == one.receipt.digest
            of_three = matched(f"{TYPES}; {COVERING}", await exported(fl, ["A", "B", "C"]))
            assert [each.id for each in of_three if each.subscription == "T"] == [
                each.id for each in third if each.subscription == "T"
            ]

    run(work)


def test_a_restarted_subscriber_goes_on_behind_what_it_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "EVERY_EVENTS", 100)

    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            await publish_some(fl, seed=2)
            async with fl.subscribe(RULES, name="whole", start="earliest") as sub:
                whole = ids(await more(sub))
                assert len(whole) > 40
            got: list[str] = []
            for count in (1, 20, 0, 3, 11):
                async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                    for relation in await some(sub, count):
                        got.append(relation.id)
                        await sub.ack(relation)
                    await some(sub, 2)  # which are not acknowledged, and so come again
            async with fl.subscribe(RULES, name="desk") as sub:
                async for batch in sub.batches():
                    got += ids(batch)
                    assert batch.to_arrow().column("id").to_pylist() == ids(batch)
                    await sub.ack(batch)
                    if len(got) >= len(whole):
                        break
            assert got == whole
            assert await fl.log.objects("FL_STATES")
            async with fl.subscribe(RULES, name="desk") as sub:
                assert await more(sub) == []
                assert sub.receipt.count == len(whole)
            with pytest.raises(UsageError, match="A245"):
                async with fl.subscribe("SUBSCRIPTION S MATCH A a", name="desk"):
                    pass

    run(work)


def test_a_late_joiner_delivers_what_the_others_deliver_from_there_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "EVERY_EVENTS", 50)

    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(RULES, start="earliest") as early:
                await publish_some(fl, seed=3)
                before = await more(early)
                async with (
                    fl.subscribe(RULES, start="new") as late,
                    fl.subscribe(RULES, start="snapshot") as later,
                    fl.subscribe(RULES, start="earliest") as whole,
                ):
                    await publish_some(fl, seed=4)
                    after = await more(early)
                    assert ids(await more(late)) == ids(after)
                    assert late.receipt == early.receipt == whole_receipt(await more(whole), whole)
                    joined = await more(later)
                    assert ids(joined) == ids([*before, *after])[-len(joined) :]
                    assert len(after) <= len(joined) < len(before) + len(after)
                    assert later.receipt == early.receipt

    def whole_receipt(_: list[Relation], sub: LiveSubscription) -> Any:
        return sub.receipt

    run(work)


def test_the_first_of_several_decides_where_new_begins() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            await publish_some(fl, seed=5, rounds=10)
            async with fl.subscribe(RULES) as one:
                await publish_some(fl, seed=6, rounds=10)
                first = await more(one)
                async with fl.subscribe(RULES) as two:
                    await publish_some(fl, seed=7, rounds=10)
                    assert ids(await more(one)) == ids(await more(two))
                    assert one.receipt == two.receipt
                    assert one.receipt.count > len(first) > 0

    run(work)


def test_start_at_a_position_or_a_time() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            await publish_some(fl, seed=8, rounds=10)
            events = await exported(fl, ["A", "B"])
            middle = events[len(events) // 2][0] + 1
            async with fl.subscribe(RULES, start=middle) as sub:
                assert ids(await more(sub)) == ids(matched(f"{TYPES}; {RULES}", [each for each in events if each[0] >= middle]))
            await asyncio.sleep(0.05)
            now = datetime.now(UTC)
            await fl.publish("A", k=99, x=1, wait=True)
            await fl.publish("B", k=99, x=2, wait=True)
            async with fl.subscribe(RULES, start=now) as sub:
                (only,) = await more(sub)
                assert only.members[0]["k"] == 99
            for wrong in ("newest", -1, True, 1.5, 10**30, datetime(2999, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)):
                with pytest.raises(UsageError, match="A251"):
                    fl.subscribe(RULES, start=wrong)  # type: ignore[arg-type]

    run(work)


EMITTING = "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k EMIT Pair (k = a.k, total = a.x + b.x)"


def test_several_equal_subscribers_and_a_restarted_one_store_each_derived_event_once() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl, fairlead.connect(fl.url) as other:
            await fl.declare(TYPES)
            async with fl.subscribe(EMITTING, name="a", start="earliest") as one:
                async with other.subscribe(EMITTING, name="b", start="earliest") as two:
                    await publish_some(fl, seed=9, rounds=10)
                    found, again = await asyncio.gather(more(one), more(two))
                    assert ids(found) == ids(again)
                    await two.ack(again[3])
                async with other.subscribe(EMITTING, name="b") as two:
                    await publish_some(fl, seed=10, rounds=10)
                    rest, again = await asyncio.gather(more(one), more(two))
            whole = [*found, *rest]
            assert ids(again) == ids(whole[4:])
            stream = await fl.log.open_type("Pair")
            blocks = await taken(fl.log, stream, await fl.log.last(stream))
            pair = (await fl.types())["Pair"]
            rows = [row for each in blocks for row in decode(each.block, pair).to_pylist()]
            assert rows == [each.emitted for each in whole]
            assert len({each.block.source for each in blocks}) == 1
            async with fl.subscribe("SUBSCRIPTION Next MATCH Pair p WHERE p.total >= 0", start="earliest") as sub:
                assert [each.members[0].values for each in await more(sub)] == rows
            with pytest.raises(fairlead.DataError, match="D008"):
                await fl.publish("Pair", k=1, total=1)

    run(work)


def test_absences_are_decided_by_heartbeats_in_the_log() -> None:
    types = "TYPE Order (id INT, at TIMESTAMP) TIME at; TYPE Payment (id INT, at TIMESTAMP) TIME at"
    rules = "SUBSCRIPTION Unpaid MATCH Order o WITHOUT Payment p WITHIN 1 MINUTE OF o WHERE p.id = o.id"

    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(types)
            noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
            async with fl.subscribe(rules, start="earliest") as one, fl.subscribe(rules, start="earliest") as two:
                for number in range(3):
                    await fl.publish("Order", id=number, at=noon + timedelta(seconds=number), wait=True)
                await merged(fl, ["Order", "Payment"], 3)
                await fl.publish("Payment", id=1, at=noon + timedelta(seconds=30), wait=True)
                await merged(fl, ["Order", "Payment"], 4)
                assert await more(one) == []
                await fl.publish("Heartbeat", at=noon + timedelta(minutes=5), wait=True)
                found = await more(one)
                assert [each.members[0]["id"] for each in found] == [0, 2]
                assert ids(await more(two)) == ids(found)

    run(work)


def test_types_that_grow_do_not_disturb_a_subscriber() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                await fl.publish("A", k=1, x=1, wait=True)
                await fl.publish("B", k=1, x=1, wait=True)
                (first,) = await some(sub, 1)
                await fl.declare("TYPE A (k INT, x INT, note STRING)")
                await fl.publish("A", k=2, x=2, note="new", wait=True)
                await fl.publish("B", k=2, x=2, wait=True)
                (second,) = await some(sub, 1)
                assert "note" not in second.members[0].values
                await sub.ack(first)
            async with fl.subscribe(RULES, name="desk") as sub:
                assert ids(await some(sub, 1)) == [second.id]
            noted = "SUBSCRIPTION N MATCH A a WHERE a.k > 0"
            async with fl.subscribe(noted, start="earliest") as sub:
                assert [each.members[0]["note"] for each in await some(sub, 2)] == [None, "new"]

    run(work)


def test_bad_rules_and_names_are_refused() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            with pytest.raises(LanguageError, match="L010 line 1, column 22"):
                async with fl.subscribe("SUBSCRIPTION S MATCH D d"):
                    pass
            with pytest.raises(UsageError, match="A252"):
                async with fl.subscribe(""):
                    pass
            with pytest.raises(UsageError, match="A240"):
                fl.subscribe(RULES, name="desk 1")
            with pytest.raises(UsageError, match="A250"):
                await fl.compare("nobody", "no one")

    run(work)


def test_who_takes_a_name_over_shuts_the_other_out() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(RULES, name="desk", start="earliest") as one:
                await fl.publish("A", k=1, x=1, wait=True)
                await fl.publish("B", k=1, x=1, wait=True)
                (relation,) = await some(one, 1)
                async with fl.subscribe(RULES, name="desk") as two:
                    assert ids(await some(two, 1)) == [relation.id]
                    with pytest.raises(StateError, match="S134"):
                        await one.ack(relation)
                    await two.ack(relation)

    run(work)


def test_a_gap_in_the_log_stops_the_reader() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            for number in range(3):
                await fl.publish("A", k=number, x=0, wait=True)
            del fl.log._log._streams["FL_T_A"][1]  # type: ignore[attr-defined]
            async with fl.subscribe("SUBSCRIPTION S MATCH A a", start="earliest") as sub:
                with pytest.raises(StateError, match="S120"):
                    await some(sub, 3)

    run(work)


def test_streams_that_nobody_needs_are_swept() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(RULES, name="desk"):
                pass
            async with fl.subscribe(COVERING):
                assert await fl.sweep() == []
            assert len(await fl.sweep()) == 1
            await fl.forget("desk")
            assert len(await fl.sweep()) == 2
            async with fl.subscribe(RULES, start="earliest") as sub:
                await fl.publish("A", k=1, x=1)
                await fl.publish("B", k=1, x=1)
                assert len(await some(sub, 1)) == 1

    run(work)


def test_a_client_that_beats_decides_absences_by_its_clock() -> None:
    types = "TYPE Ping (id INT, at TIMESTAMP) TIME at; TYPE Pong (id INT, at TIMESTAMP) TIME at"
    rules = "SUBSCRIPTION Lost MATCH Ping i WITHOUT Pong o WITHIN 300 MILLISECONDS OF i WHERE o.id = i.id"

    async def work() -> None:
        async with fairlead.connect(heartbeat=0.1) as fl:
            await fl.declare(types)
            async with fl.subscribe(rules, start="earliest") as sub:
                await fl.publish("Ping", id=7, at=datetime.now(UTC))
                (lost,) = await some(sub, 1)
                assert lost.members[0]["id"] == 7

    run(work)


def test_a_log_in_a_file_is_subscribed_to_as_any_other(tmp_path: Path) -> None:
    async def work() -> None:
        url, got = f"file:{tmp_path}", []
        for life in range(3):
            async with fairlead.connect(url, source="s") as fl:
                await fl.declare(TYPES)
                async with fl.subscribe(EMITTING, name="desk", start="earliest") as sub:
                    for k in range(3):
                        await fl.publish("A", k=k, x=life, wait=True)
                        await fl.publish("B", k=k, x=k, wait=True)
                    for relation in await some(sub, 3 if life == 1 else 2):
                        got.append(relation.id)
                        await sub.ack(relation)
                whole = ids(await rest(fl))
        assert got == whole[: len(got)]
        assert (len(got), len(whole)) == (7, 9)

    async def rest(fl: Client) -> list[Relation]:
        async with fl.subscribe(EMITTING, start="earliest") as sub:
            return await more(sub)

    run(work)


def test_subtypes_unions_and_names_of_all_letters() -> None:
    types = "TYPE Größe (x INT); TYPE Höhe EXTENDS Größe (y STRING); TYPE Ort (x INT); EVENT UNION Alles = Größe + Ort"
    rules = "SUBSCRIPTION S MATCH Größe g SUBSCRIPTION U MATCH Alles a[2]"

    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(types)
            async with fl.subscribe(rules, name="one", start="earliest") as sub:
                await fl.publish("Größe", x=1, wait=True)
                await fl.publish("Höhe", x=2, y="zwei", wait=True)
                await fl.publish("Ort", x=3, wait=True)
                await fl.publish("Ort", x=4, wait=True)
                found = await more(sub)
                assert [each.members[0].type for each in found if each.subscription == "S"] in (
                    ["Größe", "Höhe"],
                    ["Höhe", "Größe"],
                )
                assert len([each for each in found if each.subscription == "U"]) == 2
                with pytest.raises(UsageError, match="A253"):
                    _ = sub.receipt
                assert sorted(each.count for each in sub.receipts.values()) == [2, 2]
                await sub.ack(found[0])
            async with fl.subscribe(rules, name="one") as sub:
                again = await more(sub)
                assert {each.id for each in found} - {each.id for each in again} == {found[0].id}

    run(work)


def test_new_is_what_is_published_from_now_on_also_where_the_stream_is_new() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(TYPES)
            for name in "AB":
                for k in range(200):
                    await fl.publish(name, k=k, x=0, wait=True)
            async with fl.subscribe(RULES) as sub:
                await fl.publish("A", k=1000, x=1, wait=True)
                await fl.publish("B", k=1000, x=2, wait=True)
                assert [each.members[0]["k"] for each in await more(sub)] == [1000]

    run(work)


def test_rules_may_declare_a_type_again_that_others_have_extended() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare("TYPE A (k INT); TYPE B (k INT)")
            await fl.declare("TYPE Sub EXTENDS A (x INT); EVENT UNION Both = A + B")
            await fl.declare("TYPE Lower EXTENDS Sub (y INT)")
            assert await fl.declare("TYPE A (k INT)") == ["A"]
            rules = "SUBSCRIPTION S MATCH A a"
            async with fl.subscribe(f"TYPE A (k INT) {rules} -- and no more", start="earliest") as sub:
                await fl.publish("Lower", k=1, x=2, y=3)
                (found,) = await some(sub, 1)
            async with fl.subscribe(rules, start="earliest") as sub:
                assert ids(await some(sub, 1)) == [found.id]

    run(work)
