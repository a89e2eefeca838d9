"""What the gateway withstands: the lines of the table in docs/gateway.md."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import random
import re
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from fairlead.errors import UsageError
from fairlead.runtime.live import registry
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.rights.policy import policy_of
from fairlead.web import gateway as gateways
from fairlead.web import routes
from fairlead.web.access import admission
from fairlead.web.access.rates import CALLERS_MAX, RequestRates
from fairlead.web.gateway import Settings
from fairlead.web.handlers import LONG, OBJECT_BYTES_MAX, PARTS_MAX, UNKNOWN_MAX
from fairlead.web.publishing import TYPES_MAX
from fairlead.web.serving import _tls, gateway
from tests.root import ROOT
from tests.waiting import SECONDS_MAX, until
from tests.web.served import RULES, Asker, asking, run
from tests.web.test_publishing import stored

pytestmark = pytest.mark.server


def numbered(number: int, source: str = "till") -> dict[str, Any]:
    return {"type": "A", "k": number, "x": 0, "_source": source, "_sequence": number}


def test_the_table_of_the_page_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "gateway.md").read_text("utf-8")
    table = page[page.index("## What it withstands") :].partition("\n## ")[0]
    tests = "".join(each.read_text("utf-8") for each in (ROOT / "tests" / "web").glob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", table):
        assert f"def {name}(" in tests, name
    for path in re.findall(r"`(tests/\S+\.py)`", table):
        assert (ROOT / path).is_file(), path


def test_a_name_that_is_pointed_here_is_refused() -> None:
    async def work() -> None:
        async with asking(Settings(hosts=("desk.example",))) as asker:
            port = asker.session._base_url.port  # type: ignore[union-attr]
            for host, status in [
                (f"evil.example:{port}", 421),
                ("evil.example", 421),
                ("127.0.0.1.evil.example", 421),
                ("", 421),
                ("[::1", 200),  # the address is complete up to here
                (f"[::1]:{port}", 200),
                (f"localhost:{port}", 200),
                (f"DESK.example:{port}", 200),
                ("10.1.2.3", 200),
            ]:
                found, told = await asker.ask("GET", "/types", headers={"Host": host})
                assert found == status, host
                assert ("code" in told and told["code"]) == ("A279" if status == 421 else False)
            rebound = {"Host": "evil.example", "Origin": "http://evil.example"}
            assert (await asker.post("/events", [], headers=rebound))[0] == 421

    run(work)


def test_an_origin_that_is_no_address_is_refused() -> None:
    async def work() -> None:
        async with asking() as asker:
            for origin in ("http://[evil", "http://[::1", "null", "//", "http://a:99999999", "http://]", "x" * 5000):
                status, told = await asker.ask("GET", "/types", headers={"Origin": origin})
                assert (status, told["code"]) == (403, "A273"), origin

    run(work)


def test_a_cross_site_request_without_an_origin_is_refused() -> None:
    async def work() -> None:
        async with asking() as asker:
            for site, status in [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]:
                assert (await asker.ask("GET", "/types", headers={"Sec-Fetch-Site": site}))[0] == status, site

    run(work)


UPGRADE = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
UPGRADE |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}


def test_a_get_changes_nothing() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            evil = {"rules": "TYPE Evil (q INT) SUBSCRIPTION L MATCH A a", "start": "earliest"}
            for kind in ("events", "socket"):
                path = f"/subscriptions/victim/{kind}"
                status, error = await asker.ask("GET", path, params=evil, headers=UPGRADE if kind == "socket" else {})
                assert (status, error.get("code")) == (400, "A289")
            assert [each["name"] for each in (await asker.ask("GET", "/types"))[1]["types"]] == ["A", "B"]
            assert (await asker.ask("GET", "/subscriptions/victim/events"))[0] == 404
            await asker.subscribe("victim")
            for rules in (evil["rules"], RULES + " "):  # others than those of the name
                status, error = await asker.ask("GET", "/subscriptions/victim/events", params={"rules": rules})
                assert (status, error.get("code")) == (400, "A289")

    run(work)


POLICY = f"""
users:
  till:
    token: sha256:{hashlib.sha256(b"t-till").hexdigest()}
    publish: [main.A]
    sources: [till-1, "/shop/*"]
  desk:
    token: sha256:{hashlib.sha256(b"t-desk").hexdigest()}
    subscribe: [main.A]
    names: [desk-*]
    emit: [main.Seen]
  both:
    token: sha256:{hashlib.sha256(b"t-both").hexdigest()}
    subscribe: [main]
    publish: [main]
    declare: true
  ops:
    token: sha256:{hashlib.sha256(b"t-ops").hexdigest()}
    gateway: true
  nobody:
    token: sha256:{hashlib.sha256(b"t-nobody").hexdigest()}
"""
ONE, TWO = "SUBSCRIPTION S MATCH A a", "SUBSCRIPTION S MATCH A a AND B b"
WHAT: list[tuple[str, str, Any, set[str]]] = [
    ("POST", "/events", {"type": "A", "k": 1, "x": 1}, {"till", "both"}),
    ("POST", "/events", {"type": "B", "k": 1, "x": 1}, {"both"}),
    ("POST", "/events", [{"type": "A", "k": 1, "x": 1}, {"type": "B", "k": 1, "x": 1}], {"both"}),
    ("POST", "/events", {"type": "Heartbeat", "at": "2026-01-01T00:00:00Z"}, set()),
    ("POST", "/events", numbered(1, "till-1"), {"till"}),
    ("POST", "/events", numbered(1, "till-11"), set()),
    ("POST", "/events", numbered(1, "/shop/7"), {"till"}),
    ("POST", "/events", numbered(1, "both"), {"both"}),
    ("POST", "/events", [numbered(2, "till-1"), numbered(2, "both")], set()),
    ("POST", "/types", {"text": "TYPE C (k INT)"}, {"both"}),
    ("POST", "/types", {"text": "TOPIC main KEEP 1 DAYS"}, set()),
    ("POST", "/types", {"text": "TOPIC mine (Mine) KEEP 1 DAYS TYPE Mine (k INT)"}, set()),
    ("POST", "/types", {"text": "TYPE Sub2 EXTENDS A (y INT)"}, set()),
    ("POST", "/types", {"text": "TYPE Own (k INT) TYPE OwnSub EXTENDS Own (y INT)"}, {"both"}),
    ("POST", "/subscriptions", {"name": "both", "rules": f"TYPE Sub3 EXTENDS A (y INT) {TWO}"}, set()),
    ("POST", "/subscriptions", {"name": "desk-1", "rules": ONE}, {"desk"}),
    ("POST", "/subscriptions", {"name": "desk-2", "rules": TWO}, set()),
    ("POST", "/subscriptions", {"name": "desk-3", "rules": ONE + " EMIT Seen (k = a.k)"}, {"desk"}),
    ("POST", "/subscriptions", {"name": "desk-4", "rules": ONE + " EMIT B (k = a.k, x = 666)"}, set()),
    ("POST", "/subscriptions", {"name": "desk-5", "rules": "TYPE D (k INT) " + ONE}, set()),
    ("POST", "/subscriptions", {"name": "desk-6", "rules": "EVENT UNION U = A + B SUBSCRIPTION S MATCH U u"}, set()),
    ("POST", "/subscriptions", {"name": "both", "rules": TWO}, {"both"}),
    ("GET", "/subscriptions/desk-1/receipts", None, {"desk"}),
    ("GET", "/subscriptions/both/receipts", None, {"both"}),
    ("GET", "/comparison?a=desk-1&b=desk-3", None, {"desk"}),
    ("GET", "/comparison?a=desk-1&b=both", None, set()),
    ("POST", "/subscriptions/desk-1/acknowledgements", {"id": "0"}, {"desk"}),
    ("GET", "/subscriptions/both/socket", None, {"both"}),
    ("GET", "/subscriptions/both/events", None, {"both"}),
    ("GET", "/subscriptions/nobody-has-it/events", None, set()),  # not even whether it exists
    ("GET", "/metrics", None, {"ops"}),
    ("GET", "/types", None, {"till", "desk", "both", "ops", "nobody"}),
    ("DELETE", "/subscriptions/desk-1", None, {"desk"}),
]


def test_every_token_does_what_its_user_may_and_nothing_else() -> None:
    async def work() -> None:
        async with asking(Settings(token="t-operator", policy=policy_of(POLICY))) as asker:
            operator, as_desk = ({"Authorization": f"Bearer t-{user}"} for user in ("operator", "desk"))
            types = "TYPE A (k INT, x INT); TYPE B (k INT, x INT); TYPE Seen (k INT)"
            assert (await asker.post("/types", {"text": types}, headers=operator))[0] == 200
            for method, path, body, allowed in WHAT:
                for user in ("till", "desk", "both", "ops", "nobody", "stranger"):
                    headers = {"Authorization": f"Bearer t-{user}"}
                    status, told = await asker.ask(method, path, headers=headers, **({} if body is None else {"json": body}))
                    asked = user, method, path, body, status, told
                    if user == "stranger":
                        assert (status, told["code"]) == (401, "A272"), asked
                    elif user not in allowed:
                        assert (status, told["code"]) == (403, "A284"), asked
                        assert told["fix"].startswith("add to the policy: ") or told["place"], asked
                    else:
                        assert status < 300 or told["code"] in ("A274", "A277"), asked
            body = {"name": "desk-9", "rules": TWO}  # under its name, but of what it may not read
            assert (await asker.post("/subscriptions", body, headers=operator))[0] == 201
            for kind in ("events", "socket"):
                status, told = await asker.ask(
                    "GET", f"/subscriptions/desk-9/{kind}", headers=(UPGRADE if kind == "socket" else {}) | as_desk
                )
                assert (status, told["code"]) == (403, "A284"), kind

    run(work)


def test_a_policy_has_hashes_of_tokens_which_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hash is compared as a whole, also after one that is equal."""
    with pytest.raises(UsageError, match="A422"):
        policy_of("users: {till: {token: t-till}}")
    policy, compared = policy_of(POLICY), list[tuple[bytes, bytes]]()

    def compare_digest(given: bytes, known: bytes) -> bool:
        compared.append((given, known))
        return given == known

    monkeypatch.setattr(admission, "hmac", SimpleNamespace(compare_digest=compare_digest))
    made = admission.Admission((), (), "t-operator", policy)
    everybody = ["operator", *policy.users]
    known = [hashlib.sha256(f"t-{user}".encode()).digest() for user in everybody]
    for user in (*everybody, "stranger"):
        compared.clear()
        with suppress(UsageError):
            assert made.caller({"Authorization": f"Bearer t-{user}"}).name == user
        assert compared == [(hashlib.sha256(f"t-{user}".encode()).digest(), each) for each in known]


def test_numbers_over_several_connections_are_each_stored_once() -> None:
    async def work() -> None:
        async with asking() as one, asking(url=one.url) as two:
            await one.declare()
            assert await one.post("/events", numbered(2)) == (202, {"stored": 1, "repeated": 0})
            assert await two.post("/events", numbered(1)) == (202, {"stored": 1, "repeated": 0})
            for number in (1, 1, 2):  # also by what it remembers
                assert await one.post("/events", numbered(number)) == (200, {"stored": 0, "repeated": 1})
            shuffled = random.Random(7).sample(range(200), 200)
            answers: dict[int, Any] = {}

            async def send(low: int) -> None:
                for number in shuffled[low::8]:
                    while (found := await (one if low % 2 else two).post("/events", numbered(number, "pool")))[0] == 409:
                        assert found[1]["code"] == "S131"  # the two gateways were in each other's way
                    answers[number] = found

            await asyncio.gather(*map(send, range(8)))
            known = {number: found for number, found in answers.items() if found != (202, {"stored": 1, "repeated": 0})}
            # a number that was sent again after an attempt that failed half may be stored already
            assert all(found == (200, {"stored": 0, "repeated": 1}) for found in known.values())
            assert len(known) < 20
            assert sorted(await stored(one)) == [(n, 0) for n in sorted([1, 2, *range(200)])]

    run(work)


def test_numbers_of_which_nobody_can_tell_are_refused_and_nothing_is_stored() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            every_third = [numbered(number) for number in range(0, 60, 3)]
            assert await asker.post("/events", every_third) == (202, {"stored": 20, "repeated": 0})
            assert await asker.post("/events", every_third) == (200, {"stored": 0, "repeated": 20})
            status, error = await asker.post("/events", [{"type": "B", "k": 1, "x": 1}, numbered(1)])
            assert (status, error["code"]) == (409, "D036")
            assert await stored(asker, "B") == []
            # a source that numbers across types can send all of a request again
            mixed = [numbered(number, "m") | {"type": "AB"[number % 2]} for number in range(200)]
            assert await asker.post("/events", mixed) == (202, {"stored": 200, "repeated": 0})
            assert await asker.post("/events", mixed) == (200, {"stored": 0, "repeated": 200})

    run(work)


def test_the_largest_number_ends_no_source() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            for number in (1, 2**62 - 1, 2, 3):
                assert await asker.post("/events", numbered(number) | {"k": 0}) == (202, {"stored": 1, "repeated": 0})
            assert (await asker.post("/events", numbered(2**62)))[0] == 422

    run(work)


async def connection(asker: Asker) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = asker.session._base_url
    assert address is not None
    return await asyncio.open_connection(address.host, address.port)


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    """What arrives until the other side closes."""
    with suppress(ConnectionError):
        return await asyncio.wait_for(reader.read(), 20)
    return b""


def test_a_head_that_never_ends_is_cut_off() -> None:
    async def work() -> None:
        async with asking(Settings(head_seconds=0.5)) as asker:
            for beginning in (b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: "):
                reader, writer = await connection(asker)
                writer.write(beginning)
                assert await until_closed(reader) == b""
                writer.close()
            reader, writer = await connection(asker)  # the same after a first request
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health HT")
            assert (await until_closed(reader)).startswith(b"HTTP/1.1 200")
            writer.close()

    run(work)


def test_a_body_that_never_ends_is_cut_off() -> None:
    async def work() -> None:
        async with asking(Settings(body_seconds=0.3)) as asker:
            for kind in ("Content-Length: 1000", "Transfer-Encoding: chunked"):
                reader, writer = await connection(asker)
                writer.write(f"POST /events HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n\r\n".encode())
                assert b"HTTP/1.1 408" in await reader.readline()
                assert b"A286" in await reader.read(2000)
                writer.close()

    run(work)


def test_bodies_have_room_for_so_many_bytes_together() -> None:
    async def work() -> None:
        async with asking(Settings(bodies_bytes_max=10_000, body_bytes_max=6_000)) as asker:
            await asker.declare()
            reader, writer = await connection(asker)
            head = "POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 6000\r\n\r\n"
            writer.write(f"{head}[".encode())
            await writer.drain()
            json_type = {"Content-Type": "application/json"}
            while (await asker.ask("POST", "/events", data="[" + " " * 5900 + "]", headers=json_type))[0] != 503:
                await asyncio.sleep(0)  # until the first one has been noticed
            async with asker.session.post("/events", data="[" + " " * 5900 + "]", headers=json_type) as response:
                assert (response.status, response.headers["Retry-After"]) == (503, "1")
                assert (await response.json())["code"] == "N041"
            assert (await asker.post("/events", []))[0] == 200
            # nobody knows what it unpacks to
            packed = {"Content-Encoding": "gzip"} | json_type
            assert (await asker.ask("POST", "/events", data=gzip.compress(b"[]"), headers=packed))[0] == 503
            writer.write(b" " * 5998 + b"]")
            assert b"HTTP/1.1 200" in await reader.readline()
            writer.close()

    run(work)


def test_the_room_of_a_body_is_given_back_whatever_became_of_the_request() -> None:
    async def work() -> None:
        async with asking(Settings(bodies_bytes_max=300, body_bytes_max=250)) as asker:
            await asker.declare()
            for _ in range(5):
                assert (await asker.post("/events", {"type": "A", "k": 1, "x": 1}))[0] == 202
                assert (await asker.post("/events", {"type": "A", "k": "no" * 80}))[0] == 422
                assert (await asker.post("/nothing", " " * 200))[0] == 404

    run(work)


def test_headers_are_limited() -> None:
    async def work() -> None:
        async with asking() as asker:
            for head in ("X: " + "a" * 10_000, "\r\n".join(f"X-{n}: a" for n in range(200))):
                reader, writer = await connection(asker)
                writer.write(f"GET /health HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode())
                assert b"HTTP/1.1 400" in (await reader.readline()).replace(b"HTTP/1.0", b"HTTP/1.1")
                writer.close()

    run(work)


def test_long_rules_do_not_stop_other_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of compiling them begins, and goes on when another request has been answered."""
    begun, answered = list[str](), threading.Semaphore(0)

    def waiting(name: str, compiling: Callable[[str], Any]) -> Callable[[str], Any]:
        def compiled(text: str) -> Any:
            begun.append(name)
            assert answered.acquire(timeout=SECONDS_MAX), "no other request was answered"
            return compiling(text)

        return compiled

    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            monkeypatch.setattr(registry, "compile_names", waiting("compile_names", registry.compile_names))
            monkeypatch.setattr(registry, "compiled", waiting("compiled", registry.compiled))
            monkeypatch.setattr(gateways, "compile_names", waiting("compile_names", gateways.compile_names))
            long = " ".join(f"SUBSCRIPTION L{n} MATCH A a WHERE a.k = {n}" for n in range(100))
            asked, others = asyncio.create_task(asker.post("/subscriptions", {"name": "many", "rules": long})), list[int]()
            while not asked.done():
                await until(lambda: asked.done() or len(others) < len(begun))
                if len(others) < len(begun):
                    others.append((await asker.ask("GET", "/health"))[0])
                    answered.release()
            assert {*others} == {200}
            assert (await asked)[0] == 201
            assert {"compile_names", "compiled"} <= set(begun)

    run(work)


def test_rules_have_a_budget() -> None:
    async def work() -> None:
        async with asking(Settings(rules_bytes_max=10_000, compile_seconds=0.001)) as asker:
            await asker.declare()
            for size, said in ((20_000, "longer than 10,000 bytes"), (9_000, "longer than 0.001 seconds")):
                rules = f"SUBSCRIPTION S MATCH A a WHERE a.k IN ({', '.join(map(str, range(size // 6)))})"
                status, error = await asker.post("/subscriptions", {"name": "desk", "rules": rules})
                assert (status, error["code"]) == (413, "A283")
                assert said in error["problem"]
            for text in ("TYPE Z (k INT) " + " " * 10_000, "TYPE Z (k INT) // " + "é" * 6_000):
                status, error = await asker.post("/types", {"text": text})
                assert (status, error["code"]) == (413, "A283")

    run(work)


def test_an_unknown_type_does_not_load_all_types_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, asked = list[int](), list[int]()

    async def is_behind(self: Registry, names: Sequence[str], original: Any = Registry.is_behind) -> bool:
        asked.append(len(names))
        return bool(await original(self, names))

    async def refresh(self: Registry, original: Any = Registry.refresh) -> None:
        loaded.append(1)
        await original(self)

    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.post("/events", {"type": "A", "k": 1, "x": 1})
            monkeypatch.setattr(Registry, "refresh", refresh)
            for record in ({"type": "Nope"}, {"type": "A", "k": 1, "x": 1, "y": 1}, {"type": "n" * 5000}, {"type": "a.b>*"}):
                status, _ = await asker.post("/events", record)
                assert status == 422
            monkeypatch.setattr(Registry, "is_behind", is_behind)
            assert (await asker.post("/events", [{"type": f"Nope{number}"} for number in range(100)]))[0] == 422
            assert loaded == []
            assert (asked[0], asked[-1]) == (UNKNOWN_MAX, TYPES_MAX)
            assert sum(asked) < 30

    run(work)


def test_a_caller_has_so_many_requests_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(routes, "time", SimpleNamespace(monotonic=lambda: now[0]))
    policy = policy_of(POLICY.replace("  desk:\n", "  desk:\n    rate: 2\n"))

    async def work() -> None:
        async with asking(Settings(policy=policy, rate=1.0)) as asker:
            desk, till = ({"Authorization": f"Bearer t-{user}"} for user in ("desk", "till"))
            assert [(await asker.ask("GET", "/types", headers=desk))[0] for _ in range(6)] == [200] * 4 + [429] * 2
            async with asker.session.get("/types", headers=desk) as response:
                assert (response.status, response.headers["Retry-After"]) == (429, "1")
                assert (await response.json())["code"] == "A285"
            assert [(await asker.ask("GET", "/types", headers=till))[0] for _ in range(3)] == [200, 200, 429]
            now[0] += 1
            assert [(await asker.ask("GET", "/types", headers=desk))[0] for _ in range(3)] == [200, 200, 429]
            assert [(await asker.ask("GET", "/types", headers=till))[0] for _ in range(2)] == [200, 429]

    run(work)


def test_streams_are_requests_and_without_users_each_address_has_a_rate_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "time", SimpleNamespace(monotonic=lambda: 100.0))

    async def work() -> None:
        elsewhere = aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))
        async with (
            asking(Settings(rate=1.0)) as asker,
            aiohttp.ClientSession(asker.session._base_url, connector=elsewhere) as other,
        ):
            paths = ["/subscriptions/desk/events", "/subscriptions/desk/socket", "/subscriptions/desk/events"]
            assert [(await asker.ask("GET", path, headers=UPGRADE))[0] for path in paths] == [404, 404, 429]
            async with other.get("/types") as response:
                assert response.status == 200

    run(work)


def test_the_callers_of_which_rates_are_known_are_those_that_asked_last() -> None:
    rates = RequestRates()
    assert not rates.wait("often", 0.5, 0.0)
    for number in range(CALLERS_MAX + 2):
        assert rates.wait("often", 0.5, 0.0), "it was forgotten, and has all its requests again"
        assert not rates.wait(f"caller {number}", 0.5, 0.0)
    assert len(rates._buckets) == CALLERS_MAX
    assert not rates.wait("caller 0", 0.5, 0.0)


def test_a_request_that_takes_too_long_is_answered() -> None:
    async def work() -> None:
        async with asking(Settings(request_seconds=0.0)) as asker:
            status, error = await asker.post("/events", [])
            assert (status, error["code"]) == (504, "N042")

    run(work)


def test_streams_are_limited() -> None:
    async def work() -> None:
        async with asking(Settings(streams_max=1)) as asker:
            await asker.declare()
            await asker.subscribe("one")
            await asker.subscribe("two")
            async with asker.session.get("/subscriptions/one/events") as first:
                assert first.status == 200
                status, error = await asker.ask("GET", "/subscriptions/two/events")
                assert (status, error["code"]) == (503, "N041")
                async with asker.session.get("/subscriptions/one/events") as again:  # takes over its own
                    assert again.status == 200

    run(work)


@asynccontextmanager
async def with_tls(folder: Path) -> AsyncIterator[tuple[str, Path]]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*made.split(), "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    async with gateway("memory:", Settings(certificate=str(certificate), key=str(key))) as address:
        yield address, certificate


def test_tls(tmp_path: Path) -> None:
    async def work() -> None:
        async with with_tls(tmp_path) as (address, certificate), aiohttp.ClientSession() as session:
            assert address.startswith("https://")
            context = ssl.create_default_context(cafile=str(certificate))
            async with session.get(address + "/health", ssl=context) as response:
                assert response.status == 200
                assert response.headers["Strict-Transport-Security"] == "max-age=31536000"
            with pytest.raises(aiohttp.ClientError):
                await session.get(address.replace("https", "http") + "/health")
            made = _tls(Settings(certificate=str(certificate), key=str(tmp_path / "key.pem")))
            assert made is not None
            assert made.minimum_version >= ssl.TLSVersion.TLSv1_2  # a client of today may not be able to ask for less
        with pytest.raises(UsageError, match="A287"):
            async with gateway("memory:", Settings(certificate=str(tmp_path / "none"))):
                pass

    run(work)


HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Server": "fairlead",
}


def test_every_response_has_security_headers() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.subscribe()
            for path in ("/health", "/types", "/nothing", "/subscriptions/desk/events", "/comparison"):
                for host in ({}, {"Host": "evil.example"}):
                    async with asker.session.get(path, headers=host) as response:
                        assert {name: response.headers.get(name) for name in HEADERS} == HEADERS, (path, response.status)

    run(work)


@pytest.mark.parametrize("part", [b"[],", b"{},", b"0\n"], ids=["lists", "objects", "lines"])
def test_bodies_of_countless_records_are_not_read(part: bytes) -> None:
    """A body that takes eighty times its size in memory."""

    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            kind = {"Content-Type": "application/x-ndjson" if part.endswith(b"\n") else "application/json"}
            body = part * (PARTS_MAX + 1)
            status, told = await asker.ask("POST", "/events", data=io.BytesIO(b"[" + body + b"0]"), headers=kind)
            assert (status, told["code"]) == (413, "A270")
            some = [{"type": "A", "k": k, "x": 0} for k in range(20_000)]
            assert (await asker.post("/events", some))[0] == 202

    run(work)


def test_only_events_have_large_bodies() -> None:
    async def work() -> None:
        async with asking() as asker:
            for path in ("/types", "/subscriptions", "/subscriptions/desk/acknowledgements"):
                body = b'{"text": [' + b"[]," * (OBJECT_BYTES_MAX // 3) + b"1]}"
                json = {"Content-Type": "application/json"}
                status, told = await asker.ask("POST", path, data=io.BytesIO(body), headers=json)
                assert (status, told["code"]) == (413, "A270"), path
                status, told = await asker.ask("POST", path, data=body[: LONG * 2] + b"1]}", headers=json)  # parsed in a thread
                assert (status, told["code"]) == (400, "A274"), path

    run(work)
