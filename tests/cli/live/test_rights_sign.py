"""`fairlead rights sign`: keys are introduced, changed, and what nobody has signed is listed."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

import fairlead as fl
from fairlead.errors import StateError
from fairlead.transport.log.file_log import FileLog
from tests.cli.shop import fairlead

TYPES = "TYPE A (k INT); TYPE B (k INT)"
RULES = "SUBSCRIPTION S MATCH A a AND B b PER k"


def keys(folder: Path, name: str, *given: str) -> str:
    path = folder / name
    path.write_text("\n".join(given) + "\n", "utf-8")
    return str(path)


def used(url: str, signing_keys: str | None, low: int) -> int:
    """A client with these keys publishes, and resumes a subscriber: how many relations it gets."""

    async def work() -> int:
        async with fl.connect(url, source="p", signing_keys=signing_keys) as client:
            await client.declare(TYPES)
            for name in "AB":
                await client.publish(name, k=low, wait=True)
            async with client.subscribe(RULES, name="desk", start="earliest") as sub:
                count = 0
                while not await sub.has_passed(await sub.ends()):
                    count += (await sub.next_within(0.01)) is not None
                while await sub.next_within(0.01) is not None:
                    count += 1
                await sub.ack()
                return count

    return asyncio.run(work())


def forge(folder: Path, table: str, key: str) -> None:
    """Somebody without the keys changes what somebody with them has written, and leaves the signature."""

    async def work() -> None:
        log = FileLog(folder)
        entry = await log.get(table, key)
        assert entry is not None
        at = entry.value.rindex(b"}")
        await log.put(table, key, entry.value[:at] + b" " + entry.value[at:], entry.revision)
        await log.close()

    asyncio.run(work())


def test_keys_are_introduced_and_changed(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'log'}"
    first, second = secrets.token_hex(32), secrets.token_hex(32)
    one, both, other = keys(tmp_path, "1", first), keys(tmp_path, "2", second, first), keys(tmp_path, "3", second)
    assert used(url, None, 0) == 1
    result = fairlead("rights", "sign", "--url", url)
    assert (result.exit_code, "A299" in result.stderr) == (2, True)
    result = fairlead("rights", "sign", "--url", url, "--signing-keys", one)
    assert result.exit_code == 1
    assert "FL_TYPES A has no valid signature" in result.stderr
    assert "0 signed, 0 had the signature of the first key, " in result.stdout
    with pytest.raises(StateError, match="S146"):
        used(url, one, 1)
    result = fairlead("rights", "sign", "--url", url, "--signing-keys", one, "--adopt")
    assert (result.exit_code, result.stderr) == (0, "")
    count = int(result.stdout.split()[0])
    assert count >= 5
    assert used(url, one, 1) == 1
    again = fairlead("rights", "sign", "--url", url, "--signing-keys", one)
    assert again.stdout.startswith("0 signed, ")
    changed = fairlead("rights", "sign", "--url", url, "--signing-keys", both)
    assert (changed.exit_code, int(changed.stdout.split()[0]) >= count) == (0, True)
    assert used(url, other, 2) == 1  # the first key is not needed any more
    with pytest.raises(StateError, match="S146"):
        used(url, one, 3)


@pytest.mark.parametrize(("table", "key"), [("FL_TYPES", "A"), ("FL_SUBS", "desk"), ("FL_ACKS", "desk")])
@pytest.mark.parametrize("adopt", [False, True])
def test_a_forged_entry_is_listed_and_not_signed(table: str, key: str, adopt: bool, tmp_path: Path) -> None:
    """Not even when entries without a signature are adopted: this one has a wrong one."""
    url, signing = f"file:{tmp_path / 'log'}", keys(tmp_path, "1", secrets.token_hex(32))
    assert used(url, signing, 0) == 1
    forge(tmp_path / "log", table, key)
    result = fairlead("rights", "sign", "--url", url, "--signing-keys", signing, *(["--adopt"] if adopt else []))
    assert result.exit_code == 1
    assert f"{table} {key} has no valid signature" in result.stderr
    assert "1 refused" in result.stdout
    with pytest.raises(StateError, match="S146"):
        used(url, signing, 1)
