"""What users may ask: no request twice, derived events apart from those of publishers, logs of before."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

import nats
import pytest
from nats.js.api import StreamConfig

import fairlead
from fairlead.errors import UsageError
from fairlead.runtime.numbered import source_name
from fairlead.runtime.rights.policy import Policy, policy_of
from fairlead.runtime.rights.server_config import server_config
from fairlead.runtime.rights.subjects import allowed, topics_of
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.names import checked, source_of, source_subjects, subject
from tests.runtime.live.reading import rows_of, some
from tests.runtime.rights.served import POLICY, connected
from tests.transport.log.logs import run

DERIVED = f"e-{'0123456789abcdef' * 2}"[:26] + "-7f"
GRANTS = ("a", "a.A", "a.B", "b", "b.B", "c.C", "c.Heartbeat", "main", "main.M")
RULES = "SUBSCRIPTION S MATCH A a EMIT Seen (k = a.k)"
TYPES = "TOPIC a (A, Seen) TYPE A (k INT) TYPE Seen (k INT)"


def overlap(one: str, two: str) -> bool:
    """Whether a subject fits both patterns."""
    first, second = one.split("."), two.split(".")
    for at in range(max(len(first), len(second))):
        if at >= min(len(first), len(second)):
            return False
        if ">" in (first[at], second[at]):
            return True
        if first[at] != second[at] and "*" not in (first[at], second[at]):
            return False
    return True


def random_policy(draw: random.Random) -> Policy:
    lines = []
    for number in range(4):
        words = {
            word: draw.sample(GRANTS, draw.randrange(4)) for word in ("publish", "subscribe", "emit") if draw.random() < 0.7
        }
        owned = {
            word: draw.sample(("u0", "u1", more, "same", "Heartbeat", "e-commerce", DERIVED), draw.randrange(1, 4))
            for word, more in (("sources", "/a/uri"), ("names", "x-1"))
            if draw.random() < 0.5
        }
        flags = {word: "true" for word in ("heartbeat", "declare") if draw.random() < 0.5}
        told = ", ".join(
            [
                *(f"{word}: [{', '.join(value)}]" for word, value in {**words, **owned}.items()),
                *(f"{word}: {value}" for word, value in flags.items()),
            ]
        )
        lines.append(f"  u{number}: {{password: $PASSWORD, {told}}}")
    return policy_of("users:\n" + "\n".join(lines))


@pytest.mark.parametrize("seed", range(60))
def test_no_request_is_forwarded_twice(seed: int) -> None:
    policy = random_policy(random.Random(seed))
    for user in policy.users.values():
        asked = allowed(user, topics_of(policy)).requests or ()
        assert [pair for pair in combinations(asked, 2) if overlap(*pair)] == []
        assert all(not each.startswith(("$JS.API.CONSUMER", "$JS.API.STREAM.CREATE", "$JS.API.STREAM.PURGE")) for each in asked)


@pytest.mark.server
@pytest.mark.parametrize("seed", range(3))
def test_a_server_accepts_what_is_made_of_a_policy(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "pass")
    with Server(tmp_path, durable=False, more=server_config(random_policy(random.Random(seed)))) as server:
        assert server.running


def test_sources_of_derived_events_and_of_publishers_have_no_subject_in_common() -> None:
    for source in ("shop", "e-commerce", "=pulse", source_name(DERIVED), source_name("/a/uri")):
        own = source_subjects("a", source)
        assert not overlap(own, source_subjects("a", DERIVED))
        assert not overlap(own, "fl.e.a.*.=e.>")
        assert source_of(subject("a", "A", source, "uuuu")) == source
    assert (
        source_of(subject("a", "A", DERIVED, "uuuu")) == source_of(subject("a", "A", DERIVED, "uuuu", apart=False)) == DERIVED
    )
    assert source_name(DERIVED) != DERIVED
    with pytest.raises(UsageError, match="A240"):
        checked(DERIVED, "source")


async def emitted(url: str | None, **more: str) -> list[int]:
    """What the rules have derived, in this run and before."""
    async with fairlead.connect(url, **more) as fl:
        async with fl.subscribe(RULES, start="earliest", name="maker") as sub:
            await some(sub, 1)
            await fl.publish("A", k=2, wait=True)
            await some(sub, 1)
            await sub.ack()
        return [each["k"] for each in await rows_of(fl, "Seen")]


@pytest.mark.server
@pytest.mark.parametrize("old", [False, True])
def test_derived_events_are_stored_apart_and_in_topics_of_before_as_they_were(old: bool, tmp_path: Path) -> None:
    async def work() -> None:
        with Server(tmp_path, durable=False) as server:
            client = await nats.connect(server.url)
            js = client.jetstream()
            if old:
                told = {"topics": "a", "fairlead-message-ids": "none"}
                await js.add_stream(StreamConfig("FL_TOPIC_a", subjects=["fl.e.a.>"], allow_direct=True, metadata=told))
            async with fairlead.connect(server.url) as fl:
                await fl.declare(TYPES)
                await fl.publish("A", k=1, wait=True)
            assert await emitted(server.url) == [1, 2]
            found = await js.stream_info("FL_TOPIC_a", subjects_filter="fl.e.a.Seen.>")
            (one,) = found.state.subjects or {}
            assert (one.split(".")[4] == "=e") is not old
            # a copy under the other subject is no block
            last = await js.get_last_msg("FL_TOPIC_a", "fl.e.a.Seen.>")
            other = subject("a", "Seen", source_of(one), "uuuu", apart=old)
            kept = {name: each for name, each in (last.headers or {}).items() if not name.startswith("Nats-")}
            forged = kept | {
                "Fl-Number": "2",
                "Nats-Expected-Last-Subject-Sequence": "0",
                "Nats-Expected-Last-Subject-Sequence-Subject": source_subjects("a", source_of(one), "Seen", apart=old),
            }
            await js.publish(other, last.data or b"", headers=forged)
            async with fairlead.connect(server.url) as fl:
                assert [each["k"] for each in await rows_of(fl, "Seen")] == [1, 2]
            await client.close()

    run(work)


@pytest.mark.server
def test_a_log_of_before_is_moved_into_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/rights.md says: the folder of the account without a name becomes that of FL_LOG, while the server is stopped."""
    monkeypatch.setenv("PASSWORD", "pass")

    async def publish(url: str) -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare("TOPIC a (A) TYPE A (k INT)")
            await fl.publish("A", k=1, wait=True)

    async def read(url: str) -> None:
        async with connected(url, "boss") as boss:
            assert await rows_of(boss, "A") == [{"k": 1}]
            await boss.publish("A", k=2, wait=True)
            assert await rows_of(boss, "A") == [{"k": 1}, {"k": 2}]

    with Server(tmp_path) as server:
        run(lambda: publish(server.url))
    (tmp_path / "data/jetstream/$G").rename(tmp_path / "data/jetstream/FL_LOG")
    with Server(tmp_path, more=server_config(POLICY)) as server:
        run(lambda: read(server.url))
