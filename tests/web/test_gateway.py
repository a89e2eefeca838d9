"""What surrounds the gateway's work: its description, who may ask, health, counters, the command."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families

from fairlead.language.compiler import compile_text
from fairlead.transport.log.jetstream.server import Server
from fairlead.web.gateway import Settings
from fairlead.web.metrics import METRICS
from fairlead.web.routes import DOCUMENT, ROUTES, application
from fairlead.web.serving import gateway
from tests.cli.shop import fairlead
from tests.waiting import until
from tests.web.served import RULES, Asker, asking, run


def test_the_description_is_valid_and_has_every_route() -> None:
    validate(DOCUMENT)
    described = {(method.upper(), path) for path, each in DOCUMENT["paths"].items() for method in each}
    assert described == {(method, path) for method, path, *_ in ROUTES}

    async def work() -> None:
        async with asking() as asker:
            assert await asker.ask("GET", "/openapi.json") == (200, json.loads(json.dumps(DOCUMENT)))

    run(work)


def test_the_application_has_no_route_that_is_not_described() -> None:
    class Nobody:
        settings = Settings()

    made = application(Nobody())  # type: ignore[arg-type]
    found = {(each.method, each.resource.canonical) for each in made.router.routes() if each.resource is not None}
    assert {each for each in found if each[0] != "HEAD"} == {(method, path) for method, path, *_ in ROUTES}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    from openapi_schema_validator import OAS31Validator

    return bool(OAS31Validator(schema | {"components": DOCUMENT["components"]}).is_valid(value))


def test_answers_are_as_described() -> None:
    """Statuses and bodies of a round through all operations."""

    async def work() -> None:
        async with asking() as asker:
            asked: list[tuple[str, str, str, dict[str, Any]]] = [
                ("GET", "/health", "/health", {}),
                ("POST", "/types", "/types", {"json": {"text": "TYPE A (k INT, x INT); TYPE B (k INT, x INT)"}}),
                ("POST", "/types", "/types", {"data": "TYPE A ("}),
                ("POST", "/types", "/types", {"json": {}}),
                ("GET", "/types", "/types", {}),
                ("POST", "/events", "/events", {"json": {"type": "A", "k": 1, "x": 1}}),
                ("POST", "/events", "/events", {"json": []}),
                ("POST", "/events", "/events", {"json": {"type": "Z"}}),
                ("POST", "/events", "/events", {"data": b"{", "headers": {"Content-Type": "application/json"}}),
                ("POST", "/events", "/events", {"data": b"", "headers": {"Content-Type": "text/plain"}}),
                ("POST", "/subscriptions", "/subscriptions", {"json": {"name": "one", "rules": RULES}}),
                ("POST", "/subscriptions", "/subscriptions", {"json": {"name": "one", "rules": RULES, "start": "never"}}),
                ("POST", "/subscriptions", "/subscriptions", {"json": {"name": "o n e", "rules": RULES}}),
                ("GET", "/subscriptions/{name}/receipts", "/subscriptions/one/receipts", {}),
                ("GET", "/subscriptions/{name}/receipts", "/subscriptions/nobody/receipts", {}),
                ("GET", "/subscriptions/{name}/events", "/subscriptions/nobody/events", {}),
                ("GET", "/subscriptions/{name}/events", "/subscriptions/one/events?format=xml", {}),
                ("GET", "/subscriptions/{name}/socket", "/subscriptions/one/socket", {}),
                (
                    "POST",
                    "/subscriptions/{name}/acknowledgements",
                    "/subscriptions/one/acknowledgements",
                    {"json": {"id": "0"}},
                ),
                ("GET", "/comparison", "/comparison?a=one&b=one", {}),
                ("GET", "/comparison", "/comparison?a=one", {}),
                ("DELETE", "/subscriptions/{name}", "/subscriptions/one", {}),
                ("DELETE", "/subscriptions/{name}", "/subscriptions/one", {}),
                ("GET", "/metrics", "/metrics", {}),
            ]
            for method, path, address, more in asked:
                async with asker.session.request(method, address, **more) as response:
                    answers = DOCUMENT["paths"][path][method.lower()]["responses"]
                    assert str(response.status) in answers, (method, address, response.status)
                    content = answers[str(response.status)].get("content", {})
                    body = await response.read()
                    assert bool(body) == bool(content)
                    if body:
                        assert response.content_type in content
                    if response.content_type == "application/json":
                        assert fits(json.loads(body), content["application/json"]["schema"]), (method, address, body)

    run(work)


def test_who_bears_the_token_may_ask() -> None:
    async def work() -> None:
        async with asking(Settings(token="secret-7")) as asker:
            assert (await asker.ask("GET", "/health"))[0] == 200
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic secret-7"}):
                for method, path in [(each[0], each[1].replace("{name}", "x")) for each in ROUTES if each[1] != "/health"]:
                    status, error = await asker.ask(method, path, headers=headers)
                    assert (status, error["code"]) == (401, "A272"), path
            assert (await asker.ask("GET", "/types", headers={"Authorization": "Bearer secret-7"}))[0] == 200
            assert "secret-7" not in repr(Settings(token="secret-7"))

    run(work)


def test_pages_from_elsewhere_may_not_ask_unless_they_are_named() -> None:
    async def work() -> None:
        async with asking(Settings(origins=("https://desk.example",))) as asker:
            here = str(asker.session._base_url).rstrip("/")
            for origin, status in [("https://evil.example", 403), ("null", 403), ("https://desk.example", 200), (here, 200)]:
                found, told = await asker.ask("GET", "/types", headers={"Origin": origin})
                assert (found, "code" in told and told["code"]) == (status, "A273" if status == 403 else False)

    run(work)


def test_counters_are_in_the_format_of_prometheus() -> None:
    async def work() -> None:
        async with asking() as asker:
            await asker.declare()
            await asker.pairs(range(3))
            await asker.post("/events", {"type": "Z"})
            await asker.ask("GET", "/no/such/thing")
            status, text = await asker.ask("GET", "/metrics")
            assert status == 200
            found = {each.name: each for each in text_string_to_metric_families(text)}
            assert {f"{each.name}_total" if each.type == "counter" else each.name for each in found.values()} == {
                f"fairlead_gateway_{name}" for name in METRICS
            }
            samples = {(each.name, *sorted(each.labels.items())): each.value for one in found.values() for each in one.samples}
            assert samples["fairlead_gateway_events_stored_total",] == 6
            assert samples["fairlead_gateway_errors_total", ("code", "D001")] == 1
            requests = "fairlead_gateway_requests_total"
            assert samples[requests, ("method", "POST"), ("path", "/events"), ("status", "202")] == 2
            assert samples[requests, ("method", "other"), ("path", "other"), ("status", "404")] == 1
            assert samples["fairlead_gateway_streams_open", ("kind", "sse")] == 0
            assert samples["fairlead_gateway_request_seconds_total", ("path", "/events")] > 0

    run(work)


def test_the_warnings_of_the_plan_are_in_the_answer() -> None:
    """The same as `compile` gives, with their places in the text that was sent; also if the subscription is there already."""

    async def work() -> None:
        async with asking() as asker:
            types = "TOPIC a (A); TOPIC b (B); TYPE A (k INT, at TIMESTAMP) TIME at; TYPE B (k INT, at TIMESTAMP) TIME at"
            assert (await asker.post("/types", {"text": types}))[0] == 200
            for number, rules in enumerate(
                (
                    "SUBSCRIPTION S MATCH A a AND B b PER k",
                    "SUBSCRIPTION S MATCH A a THEN B b PER k",
                    "SUBSCRIPTION R MATCH A a\nSUBSCRIPTION S MATCH A a THEN B b",
                    "ORDER BY at SUBSCRIPTION S MATCH A a THEN B b PER k",
                )
            ):
                wanted = compile_text(f"{types}; {rules}").warnings
                for _ in range(2):
                    status, told = await asker.post("/subscriptions", {"name": f"desk-{number}", "rules": rules})
                    assert status == 201
                    assert [each["code"] for each in told["warnings"]] == [each.code for each in wanted]
                    assert all(each["problem"] and each["fix"] for each in told["warnings"])
                assert any(each["code"] == "W017" for each in told["warnings"]) is (number in (1, 2))

    run(work)


def test_a_log_that_does_not_answer_is_said() -> None:
    async def work() -> None:
        with tempfile.TemporaryDirectory() as folder, Server(folder, durable=False) as server:
            async with (
                gateway(server.url, Settings(patience=1.0)) as address,
                aiohttp.ClientSession(address) as session,
            ):
                asker = Asker(session, server.url)
                await asker.declare()
                await asker.pairs(range(1))
                port = server.port = int(server.url.rpartition(":")[2])
                server.stop()
                numbered = {"type": "A", "k": 7, "x": 0, "_source": "s", "_sequence": 7}
                for record in (numbered, {"type": "A", "k": 8, "x": 0}):
                    status, error = await asker.post("/events", record)
                    assert (status, error["code"]) == (503, "N001")
                assert (await asker.ask("GET", "/health"))[0] == 503
                server.port = port
                server.start()

                async def is_well() -> bool:
                    return (await asker.ask("GET", "/health"))[0] == 200

                await until(is_well, 30)
                assert (await asker.post("/events", numbered))[0] in (200, 202)  # 200: the first attempt was stored after all
                assert await asker.post("/events", numbered) == (200, {"stored": 0, "repeated": 1})

    run(work)


def test_an_address_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = fairlead("gateway", "--url", "memory:", "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 2
    assert "A278" in result.stderr


@pytest.mark.parametrize(
    ("package", "ours", "arguments", "code"),
    [
        ("aiohttp", "fairlead.web", ["gateway"], "U130"),
        ("confluent_kafka", "fairlead.runtime.kafka", ["kafka", "in", "--brokers", "b", "--topic", "t", "--type", "A"], "U131"),
    ],
)
def test_what_is_not_installed_is_said(
    package: str, ours: str, arguments: list[str], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith(ours)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    result = fairlead(*arguments)
    assert result.exit_code == 1
    assert code in result.stderr
    assert "pip install 'fairlead[" in result.stderr


@pytest.fixture
def command(tmp_path: Path) -> Any:
    """The gateway as a process: its address and the process."""
    environment = os.environ | {"FAIRLEAD_GATEWAY_TOKEN": "t0"}
    arguments = [sys.executable, "-c", "from fairlead.cli.main import main; main()", "gateway", "--data", str(tmp_path / "log")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        yield process.stdout.readline().removeprefix("gateway at ").strip(), process
        process.send_signal(signal.SIGTERM)


def test_the_command_serves_until_it_is_told_to_stop(command: Any) -> None:
    address, process = command

    def ask(path: str, body: bytes | None = None, token: str = "t0") -> Any:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(address + path, body, headers)) as response:
            return json.load(response)

    assert ask("/health") == {"status": "ok"}
    assert ask("/types", b'{"text": "TYPE A (k INT)"}') == {"types": ["A"]}
    assert ask("/events", b'{"type": "A", "k": 1}') == {"stored": 1, "repeated": 0}
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask("/types", token="t1")
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
