"""A gateway with signing keys over a log in which somebody else has written: it answers with a code, serving nothing of it."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import fairlead
from fairlead.transport.log.file_log import FileLog
from fairlead.web.gateway import Settings
from fairlead.web.serving import gateway
from tests.web.served import Asker, run

TYPES = "TYPE A (k INT, x INT); TYPE B (k INT, x INT)"
RULES = "SUBSCRIPTION S MATCH A a AND B b WHERE a.k = b.k"
DESK: dict[str, Any] = {"name": "desk", "rules": RULES}
ASKED: list[tuple[str, str, str, dict[str, Any]]] = [
    ("FL_TYPES", "GET", "/types", {}),
    ("FL_TYPES", "POST", "/subscriptions", {"json": DESK}),
    ("FL_SUBS", "POST", "/subscriptions", {"json": DESK}),
    ("FL_SUBS", "GET", "/subscriptions/desk/events", {}),
    ("FL_ACKS", "POST", "/subscriptions", {"json": DESK}),
    ("FL_RECEIPTS", "GET", "/subscriptions/desk/receipts", {}),
    ("FL_RECEIPTS", "GET", "/comparison?a=desk&b=desk", {}),
]


async def forge(folder: Path, table: str, how: str) -> None:
    log = FileLog(folder)
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


@pytest.mark.parametrize("how", ["altered", "unsigned", "truncated"])
@pytest.mark.parametrize(("table", "method", "path", "more"), ASKED)
def test_a_forged_entry_is_refused_with_its_code(
    table: str, method: str, path: str, more: dict[str, Any], how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, folder = tmp_path / "keys", tmp_path / "log"
    keys.write_text(secrets.token_hex(32) + "\n", "utf-8")
    monkeypatch.setenv("FAIRLEAD_SIGNING_KEYS", str(keys))

    async def work() -> None:
        async with fairlead.connect(f"file:{folder}") as fl:
            await fl.declare(TYPES)
            async with fl.subscribe(RULES, name="desk", start="earliest") as sub:
                for name in "AB":
                    await fl.publish(name, k=1, x=1, wait=True)
                await sub.next_within(60)
                await sub.ack()
        await forge(folder, table, how)
        async with (
            gateway(f"file:{folder}", Settings()) as address,
            aiohttp.ClientSession(address) as session,
        ):
            status, told = await Asker(session, "").ask(method, path, **more)
            assert (status, told["code"]) == (409, "S146")
            assert (await Asker(session, "").ask("GET", "/health"))[0] == 200

    run(work)
