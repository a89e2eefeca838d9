"""Entries of tables and objects: what is not signed for its place, by one of the keys, is not returned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.errors import StateError, UsageError
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.log import connect
from fairlead.transport.log.jetstream.predecessor import EXPECTED, EXPECTED_OF
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.protocol import Conflict
from fairlead.transport.log.signed_log import SignedLog, Signing, SigningKeys, parts_of, signing_keys
from tests.transport.log.logs import KINDS, a_log, run

OLD, NEW, OTHER = b"o" * 32, b"n" * 32, b"x" * 32
KEYS = SigningKeys((NEW, OLD))
T = ("table", "T", "k")

FORGERIES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "altered content": lambda mine, other: mine[:-1] + bytes([mine[-1] ^ 1]),
    "altered digest": lambda mine, other: mine.replace(parts_of(mine).tag.encode(), b"0" * 64),
    "altered revision": lambda mine, other: mine.replace(b"signed 1 ", b"signed 1 9", 1),
    "more content": lambda mine, other: mine + b" ",
    "truncated": lambda mine, other: mine[:-1],
    "truncated digest": lambda mine, other: mine[:60],
    "no digest": lambda mine, other: parts_of(mine).content,
    "nothing": lambda mine, other: b"",
    "another name": lambda mine, other: other,
    "another key": lambda mine, other: SigningKeys((OTHER,)).signed(T, parts_of(mine).after, parts_of(mine).content),
}
"""Of the stored value, and of that of another name with the same content."""


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_entry_is_not_returned_and_a_forged_object_neither(forgery: str) -> None:
    async def work() -> None:
        raw = MemoryLog()
        log = SignedLog(raw, KEYS)
        for name in ("k", "other"):
            await log.put("T", name, b"value", 0)
            await log.put_object("O", name, b"value")
        assert [(await log.get("T", "k") or (b"",))[0], await log.get_object("O", "k")] == [b"value", b"value"]
        entry, other = raw._tables["T"]["k"], raw._tables["T"]["other"]
        raw._tables["T"]["k"] = entry._replace(value=FORGERIES[forgery](entry.value, other.value))
        raw._objects["O"]["k"] = FORGERIES[forgery](raw._objects["O"]["k"], raw._objects["O"]["other"])
        with pytest.raises(StateError, match="S146 the entry 'k' of the table T is not signed"):
            await log.get("T", "k")
        with pytest.raises(StateError, match="S146 the object 'k' of O is not signed"):
            await log.get_object("O", "k")
        for found in (await log.sign("T", "k", adopt=False), await log.sign_object("O", "k", adopt=False)):
            assert found is Signing.REFUSED

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_version_is_refused_by_the_log_or_by_its_readers(kind: str) -> None:
    """Stored again in each way that the log has: with the comparison of then, with that of now, and without."""

    async def work() -> None:
        async with a_log(kind) as raw:
            log = SignedLog(raw, KEYS)
            first = await log.put("T", "k", b"1", 0)
            old = await raw.get("T", "k")
            assert old is not None
            second = await log.put("T", "k", b"2", first)
            with pytest.raises(Conflict):
                await raw.put("T", "k", old.value, old.after)
            for revision in (second, None):
                await raw.put("T", "k", old.value, revision)
                with pytest.raises(StateError, match="S146"):
                    await log.get("T", "k")
                second = await log.put("T", "k", b"2")  # whoever has the keys may replace it
                assert (await log.get("T", "k") or (b"",))[0] == b"2"
            await log.remove("T", "k")
            assert await log.get("T", "k") is None
            with pytest.raises(Conflict):
                await log.put("T", "k", b"3", second)
            await raw.put("T", "k", old.value, 0)  # after its removal
            with pytest.raises(StateError, match="S146"):
                await log.get("T", "k")
            with pytest.raises(Conflict):
                await log.put("T", "k", b"3", 0)

    run(work)


async def sent(url: str, subject: str, headers: list[str], value: bytes) -> None:
    """A message as nobody's client sends it, with these lines of headers."""
    reading, writing = await asyncio.open_connection(*url.removeprefix("nats://").split(":"))
    head = "\r\n".join(["NATS/1.0", *headers, "", ""]).encode()
    asked = f"SUB _INBOX.x 1\r\nHPUB {subject} _INBOX.x {len(head)} {len(head) + len(value)}\r\n"
    writing.write(b'CONNECT {"headers":true,"verbose":false}\r\n' + asked.encode() + head + value + b"\r\n")
    while not (await reading.readline()).startswith(b"MSG _INBOX.x"):
        pass
    writing.close()


COMPARISONS = {
    "none": [],
    "twice": [f"{EXPECTED}: NOW", f"{EXPECTED}: 0"],
    "another subject": [f"{EXPECTED}: 0", f"{EXPECTED_OF}: $KV.T.nobody"],
    "small letters": [f"{EXPECTED.lower()}: 0"],
    "a space": [f"{EXPECTED} : 0"],
    "of then": [f"{EXPECTED}: 0"],
    "in a value": [f"X: {EXPECTED}", f"{EXPECTED}: 0"],
}
"""Of an old version that was the first one; NOW is the revision that a server would accept."""


@pytest.mark.server
def test_a_server_that_compared_something_else_has_not_compared(tmp_path: Path) -> None:
    async def work() -> list[str]:
        stored = []
        with Server(tmp_path, durable=False) as server:
            raw = await connect(server.url, Credentials(), 1)
            log = SignedLog(raw, KEYS)
            first = await log.put("T", "k", b"1", 0)
            old = await raw.get("T", "k")
            assert old is not None
            now = await log.put("T", "k", b"2", first)
            for name, lines in COMPARISONS.items():
                await sent(server.url, "$KV.T.k", [each.replace("NOW", str(now)) for each in lines], old.value)
                if await raw.revision_of("T", "k") != now:
                    stored.append(name)
                    with pytest.raises(StateError, match="S146"):
                        await log.get("T", "k")
                now = await log.put("T", "k", b"2")
            await raw.close()
        return stored

    assert {"none", "twice", "another subject"} <= {*run(work)}  # which the server stores, so that readers have to refuse them


@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_changed_one_after_the_other(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as raw:
            before, both, after = (SignedLog(raw, SigningKeys(keys)) for keys in ((OLD,), (NEW, OLD), (NEW,)))
            await before.put("T", "k", b"1")
            await before.put_object("O", "o", b"1")
            assert (await both.get("T", "k") or (b"",))[0] == await both.get_object("O", "o") == b"1"
            with pytest.raises(StateError, match="S146"):
                await after.get("T", "k")
            for expected in (Signing.SIGNED, Signing.KEPT):
                assert await both.sign("T", "k", adopt=False) is expected
                assert await both.sign_object("O", "o", adopt=False) is expected
            assert (await after.get("T", "k") or (b"",))[0] == await after.get_object("O", "o") == b"1"
            with pytest.raises(StateError, match="S146"):
                await before.get("T", "k")

    run(work)


@pytest.mark.parametrize("kind", KINDS)
def test_without_keys_all_is_read_and_what_was_there_before_can_be_signed(kind: str) -> None:
    async def work() -> None:
        async with a_log(kind) as raw:
            plain, log = SignedLog(raw, SigningKeys()), SignedLog(raw, KEYS)
            revision = await plain.put("T", "k", b"1", 0)
            await plain.put_object("O", "o", b"1")
            assert [await raw.get_object("O", "o"), (await raw.get("T", "k") or (b"",))[0]] == [b"1", b"1"]
            with pytest.raises(StateError, match="S146"):
                await log.get("T", "k")
            assert await log.sign("T", "k", adopt=False) is Signing.REFUSED
            assert await log.sign("T", "k", adopt=True) is await log.sign_object("O", "o", adopt=True) is Signing.SIGNED
            found = await plain.get("T", "k")
            assert found is not None
            assert (found.value, await plain.get_object("O", "o")) == (b"1", b"1")
            assert found.revision > revision
            large = bytes(3_000_000)
            await log.put_object("O", "large", large)
            assert await plain.get_object("O", "large") == await log.get_object("O", "large") == large
            assert await log.get("T", "none") is await log.get_object("O", "none") is None

    run(work)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "no signing key"), ("# none\n\n", "no signing key"), ("short\n", "shorter than 32"), (f"{'a' * 32}\nb", "shorter")],
)
def test_a_file_of_keys_has_keys(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(UsageError, match=f"A299.*{problem}"):
        signing_keys(str(path))
    with pytest.raises(UsageError, match="A299"):
        signing_keys(str(tmp_path / "none"))
    path.write_text(f"# the first signs\n{'a' * 32}\n\n  {'b' * 64}\n")
    assert signing_keys(str(path)) == SigningKeys((b"a" * 32, b"b" * 64))
    assert "aaaa" not in repr(signing_keys(str(path)))
    assert not signing_keys(None)
