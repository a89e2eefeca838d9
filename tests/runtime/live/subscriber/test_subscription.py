"""Subscribing, on a real server: who has the same rules gets the same relations, in the same order, under the same ids."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import fairlead
from fairlead.deliver.receipt import ReceiptBook
from fairlead.errors import LanguageError, LogError, UsageError
from fairlead.matching.results.delivery_order import ids_of
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.client import Client
from fairlead.transport.log.jetstream import reader as jetstream_reading
from fairlead.transport.log.shared_reader import Sharing, Window
from tests.runtime.live.reading import APART, COVERING, EMITTING, RULES, TYPES, exported, ids, matched, more, publish_some, some
from tests.transport.log.logs import run


@pytest.mark.server
def test_subscribers_of_one_client_read_together_and_one_that_has_stopped_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[str] = []
    opening = jetstream_reading.StreamConsumer.open

    async def counted(self: jetstream_reading.StreamConsumer[Any], *given: Any) -> None:
        if not self._headers_only:  # of topics beside a merged stream
            begun.append(self._stream.name)
        await opening(self, *given)

    monkeypatch.setattr(jetstream_reading.StreamConsumer, "open", counted)

    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(APART)
            fl.log.read = Sharing(fl.log._log, Window(20_000, 5_000, 0.1)).read  # type: ignore[attr-defined]
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


@pytest.mark.parametrize("types", [TYPES, APART], ids=["one topic", "topics"])
@pytest.mark.server
def test_equal_subscribers_agree_and_so_does_the_embedded_engine_over_the_exported_events(tmp_path: Path, types: str) -> None:
    async def work() -> None:
        async with fairlead.connect() as fl, fairlead.connect(fl.url) as other:
            await fl.declare(types)
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
            book.note(ids_of(expected))
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


@pytest.mark.server
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


@pytest.mark.server
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


def test_a_gap_in_the_log_stops_the_reader() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare(TYPES)
            for number in range(3):
                await fl.publish("A", k=number, x=0, wait=True)
            del fl.log._log._log._streams["FL_TOPIC_main"][1]  # type: ignore[attr-defined]
            async with fl.subscribe("SUBSCRIPTION S MATCH A a", start="earliest") as sub:
                with pytest.raises(LogError, match="N020"):
                    await some(sub, 3)

    run(work)


@pytest.mark.server
def test_streams_that_nobody_needs_are_swept() -> None:
    async def work() -> None:
        async with fairlead.connect() as fl:
            await fl.declare(APART)
            async with fl.subscribe(RULES, name="desk"):
                pass
            async with fl.subscribe(COVERING):
                assert await fl.sweep() == []
            assert len(await fl.sweep()) == 1
            await fl.forget("desk")
            assert len(await fl.sweep()) == 1
            async with fl.subscribe(RULES, start="earliest") as sub:
                await fl.publish("A", k=1, x=1)
                await fl.publish("B", k=1, x=1)
                assert len(await some(sub, 1)) == 1

    run(work)
