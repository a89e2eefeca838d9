"""Errors that hardly ever happen: each is raised once, from the smallest cause."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fairlead
from fairlead.errors import FairleadError
from fairlead.testing.conformance import load_cases
from fairlead.transport.admission.sequences import LastSequences
from fairlead.transport.log.file_log import FileLog

RULES = "TYPE A (k INT)\nSUBSCRIPTION S MATCH A a"
EVENTS = [{"type": "A", "k": 1}, {"type": "A", "k": 2}]


def receipts_that_contradict(folder: Path) -> None:
    receipt = fairlead.match(fairlead.compile(RULES), EVENTS).receipt
    assert receipt.ids is not None
    fairlead.compare(receipt, replace(receipt, digest="0" * 32))


def a_url_and_a_folder(folder: Path) -> None:
    fairlead.connect("nats://localhost:4222", data=folder)


def a_file_in_place_of_the_folder(folder: Path) -> None:
    (folder / "log").write_text("")
    FileLog(folder / "log")


def a_journal_damaged_in_the_middle(folder: Path) -> None:
    with (folder / "journal").open("wb") as file:
        file.write(b"damaged\n")
        file.truncate(FileLog.bytes_max * 64 + 100)
    FileLog(folder)


def sequences_of_another_version(folder: Path) -> None:
    LastSequences.load({"version": 99, "sources": {}})


def no_conformance_files(folder: Path) -> None:
    load_cases(folder)


def columns_of_unequal_length(folder: Path) -> None:
    async def work() -> None:
        async with fairlead.connect(data=folder) as fl:
            await fl.declare("TYPE A (k INT)")
            await fl.publish_many("A", {"k": [1, 2], "x": [1]})

    asyncio.run(work())


def an_interval_that_a_log_does_not_store(folder: Path) -> None:
    from fairlead.runtime.live.core.derived_blocks import emitting_of

    text = "TYPE A (at TIMESTAMP) TIME at\nSUBSCRIPTION S MATCH A a THEN A b EMIT E(apart = b.at - a.at)"
    emitting_of(fairlead.compile(text), "origin")


def a_relation_that_was_not_delivered(folder: Path) -> None:
    async def work() -> None:
        async with fairlead.connect(data=folder) as fl:
            await fl.declare("TYPE A (k INT)")
            relation = fairlead.match(fairlead.compile(RULES), EVENTS)[0]
            async with fl.subscribe("SUBSCRIPTION S MATCH A a", name="s") as sub:
                await sub.ack(relation)

    asyncio.run(work())


def a_stream_into_iceberg(folder: Path) -> None:
    from fairlead.runtime.spark.output.folders import require_format

    require_format(None, "iceberg", streaming=True)  # type: ignore[arg-type]


def a_backtest_that_ends_before_it_starts(folder: Path) -> None:
    from fairlead.runtime.spark.backtest import backtest

    backtest(fairlead.compile(RULES), None, None, "2026-02-01", "2026-01-01")  # type: ignore[arg-type]


def generated_code_of_an_unknown_kind(folder: Path) -> None:
    from fairlead.matching.compiled.machine_code.instructions import Operations

    Operations().refuse("a lambda")


class Long(bytes):
    def __len__(self) -> int:
        return 1 << 31


def a_state_beyond_two_gigabytes(folder: Path) -> None:
    from fairlead.runtime.spark.stream.processors import update

    update(None, Long(), "what is remembered", "shorter windows")  # type: ignore[arg-type]


def a_search_that_was_stopped(folder: Path) -> None:
    from fairlead.runtime.live.core.lineage import Lineage

    Lineage._check(SimpleNamespace(_stopped=True))  # type: ignore[arg-type]


def derived_blocks_that_are_missing(folder: Path) -> None:
    from fairlead.transport.log.blocks.block import Block
    from fairlead.transport.log.blocks.block_store import Tails
    from fairlead.transport.log.memory_log import MemoryLog

    asyncio.run(Tails(MemoryLog(), 1.0, "subscribe again").store(Block("A", "s", 7, 7, 1, "", b"")))


def a_picture_without_matplotlib(folder: Path) -> None:
    from fairlead.runtime.spark.backtest import plot

    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "matplotlib.figure", None)
        plot(None, "plot.png")  # type: ignore[arg-type]


def kafka_that_does_not_answer(folder: Path) -> None:
    from fairlead.runtime.kafka.brokers import watermarks

    watermarks(SimpleNamespace(get_watermark_offsets=lambda *_, **__: None), "orders", 0)  # type: ignore[arg-type]


def a_topic_that_does_not_exist(folder: Path) -> None:
    from fairlead.runtime.kafka.brokers import partitions

    found = SimpleNamespace(error=SimpleNamespace(str=lambda: "unknown topic"))
    partitions(SimpleNamespace(list_topics=lambda *_, **__: SimpleNamespace(topics={"orders": found})), "orders")  # type: ignore[arg-type]


def answers_of_the_server(code: int | None) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        import nats

        from fairlead.transport.log.jetstream.failures import translated

        refusals: Any = SimpleNamespace(take=lambda: None)
        with translated(refusals):
            raise nats.errors.MaxPayloadError if code is None else nats.js.errors.APIError(code=code, description="no")

    return act


CAUSES: dict[str, Callable[[Path], None]] = {
    "A006": receipts_that_contradict,
    "A222": a_backtest_that_ends_before_it_starts,
    "A244": columns_of_unequal_length,
    "A246": a_url_and_a_folder,
    "A249": a_relation_that_was_not_delivered,
    "A281": a_topic_that_does_not_exist,
    "A301": no_conformance_files,
    "N005": a_file_in_place_of_the_folder,
    "N008": answers_of_the_server(400),
    "N009": answers_of_the_server(None),
    "N010": answers_of_the_server(404),
    "N030": kafka_that_does_not_answer,
    "S101": sequences_of_another_version,
    "S113": a_state_beyond_two_gigabytes,
    "S115": a_search_that_was_stopped,
    "S130": a_journal_damaged_in_the_middle,
    "S135": derived_blocks_that_are_missing,
    "U112": a_stream_into_iceberg,
    "U113": a_picture_without_matplotlib,
    "U122": an_interval_that_a_log_does_not_store,
    "X002": generated_code_of_an_unknown_kind,
}


SERVED = {"A244", "A249"}
"""Those of a client, which starts a server."""


@pytest.mark.parametrize("code", [pytest.param(each, marks=pytest.mark.server) if each in SERVED else each for each in CAUSES])
def test_a_rare_error_has_its_code(code: str, tmp_path: Path) -> None:
    with pytest.raises(FairleadError) as raised:
        CAUSES[code](tmp_path)
    assert raised.value.code == code, str(raised.value)
    assert raised.value.fix or code in ("A301", "X002")
