"""Spark's reader of a log with signing keys, over tables in which somebody else has written. It starts no job: what a frame
reads is decided before."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import closing
from pathlib import Path

import pytest

import fairlead
from fairlead.errors import StateError
from fairlead.runtime.spark.log.link import LogLink, extent_of
from fairlead.runtime.spark.log.options import log_options
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.log import connect
from fairlead.transport.log.jetstream.server import Server

TYPES = "TYPE A (k INT, x INT); TYPE B (k INT, x INT)"
RULES = "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k"


async def written(url: str, keys: Path) -> None:
    """A trimmed log, signed."""
    async with fairlead.connect(url, source="p", signing_keys=str(keys)) as fl:
        await fl.declare(TYPES)
        for k in range(4):
            for name in "AB":
                await fl.publish(name, k=k, x=k, wait=True)
        await fl.declare("TOPIC main KEEP 1 B")
        await fl.retain(apply=True)
        await fl.publish("A", k=9, x=9, wait=True)


async def forge(url: str, table: str, how: str) -> None:
    log = await connect(url, Credentials(), 1)
    for key in await log.keys(table):
        entry = await log.get(table, key)
        assert entry is not None
        at = entry.value.rindex(b"}")
        changed = {
            "altered": entry.value[:at] + b" " + entry.value[at:],
            "unsigned": entry.value[entry.value.index(b"{") : at + 1],
            "truncated": entry.value[: at // 2],
        }[how]
        await log.put(table, key, changed, entry.revision)
    await log.close()


@pytest.mark.server
@pytest.mark.parametrize("how", ["", "altered", "unsigned", "truncated"])
@pytest.mark.parametrize("table", ["FL_TYPES", "FL_TRIMS"])
def test_a_frame_over_a_forged_table_is_refused(table: str, how: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(secrets.token_hex(32) + "\n", "utf-8")
    with Server(tmp_path / "log", durable=False) as server:
        asyncio.run(written(server.url, keys))
        if how:
            asyncio.run(forge(server.url, table, how))
        options = log_options({"url": server.url, "signing_keys": str(keys), "rules": RULES, "start": "earliest"})
        with closing(LogLink(options)) as link:
            if not how:
                assert link.call(lambda log: extent_of(log, options)).lasts == (9,)
                return
            with pytest.raises(StateError, match="S146"):
                link.call(lambda log: extent_of(log, options))
