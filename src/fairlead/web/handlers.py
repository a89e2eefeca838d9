"""The handlers of all routes except streams.

Takes: requests. Gives: JSON. Never: responds before events are stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from aiohttp import web

from fairlead.errors import FairleadError, UsageError
from fairlead.model.events.types import EventType
from fairlead.runtime.live.registry import TABLE
from fairlead.transport.files.documents import json_value
from fairlead.web.access.scopes import check_declarations, check_declare, check_name, check_operator, check_records, check_type
from fairlead.web.bodies import Bodies, Placed
from fairlead.web.faults import warning
from fairlead.web.gateway import CALLER, GATEWAY, Gateway, user_of
from fairlead.web.metrics import CONTENT
from fairlead.web.streams.asked import start_of

HEALTH_SECONDS = 3.0
LONG = 200_000
"""Bytes of a body from which parsing it takes more than some milliseconds."""
PARTS_MAX = 400_000
"""Lists, objects and lines of a body, each of which takes some hundred bytes in memory: twice what fits into a body of whole
records."""
OBJECT_BYTES_MAX = 1_000_000
"""A body that is no events: ten times the longest rules, which JSON may escape."""
UNKNOWN_MAX = 4
"""Unknown types of a request that are looked up in the log."""


async def health(request: web.Request) -> web.Response:
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            await request.app[GATEWAY].client.log.keys(TABLE)
    except (TimeoutError, FairleadError):
        return web.json_response({"status": "the log does not answer"}, status=503)
    return web.json_response({"status": "ok"})


async def metrics(request: web.Request) -> web.Response:
    check_operator(request[CALLER])
    gateway = request.app[GATEWAY]
    gateway.metrics.set_rejected(gateway.client.rejected)
    return web.Response(text=gateway.metrics.text(), headers={"Content-Type": CONTENT})


async def publish(request: web.Request) -> web.Response:
    gateway = request.app[GATEWAY]
    records = await _records(gateway, request, await request.read())
    check_records(request[CALLER], gateway.registry.catalogue, records)
    counts = await gateway.publishing.publish(records, partial(check_type, request[CALLER]))
    gateway.metrics.add("events_stored_total", counts.stored)
    gateway.metrics.add("events_repeated_total", counts.repeated)
    return web.json_response(counts._asdict(), status=202 if counts.stored else 200)


async def _records(gateway: Gateway, request: web.Request, body: bytes) -> list[Placed]:
    """Reads the records with the locally known types; if one is unknown, after a refresh from the log."""
    # Pairs, so that a repeated header is seen.
    headers = list(request.headers.items())
    bodies = await gateway.bodies()
    found = await _read(bodies, headers, body, request.query.get("type"))
    named = [each.get("type") for _, each in found if isinstance(each, dict)]
    names = {name for name in named if isinstance(name, str) and name not in bodies.catalogue}
    if not names or not await gateway.registry.is_behind(sorted(names)[:UNKNOWN_MAX]):
        return found
    await gateway.publishing.renew()
    return await _read(await gateway.bodies(), headers, body, request.query.get("type"))


async def _read(bodies: Bodies, headers: Sequence[tuple[str, str]], body: bytes, type: str | None) -> list[Placed]:
    """A long body is parsed in a thread, so that other requests are answered meanwhile."""
    if sum(map(body.count, (b"[", b"{", b"\n"))) > PARTS_MAX:
        problem = f"the body has more than {PARTS_MAX:,} records, lists and lines"
        raise UsageError("A270", problem, "send it in several requests", "body")
    if len(body) < LONG:
        return bodies.records(headers, body, type)
    return await asyncio.to_thread(bodies.records, headers, body, type)


async def declare(request: web.Request) -> web.Response:
    gateway, text = request.app[GATEWAY], await _text(request)
    check_declare(request[CALLER])
    gateway.check_size(text)
    if not request[CALLER].manage:
        types, kept = await gateway.registry.declared_by(text)
        check_declarations(request[CALLER], gateway.registry.catalogue, types, kept)
    names = await gateway.client.declare(text)
    await gateway.publishing.renew()
    return web.json_response({"types": names})


async def types(request: web.Request) -> web.Response:
    found = await request.app[GATEWAY].client.types()
    return web.json_response({"types": [_type(each) for each in found]})


def _type(each: EventType) -> dict[str, Any]:
    attributes = [{"name": attribute.name, "type": str(attribute.type)} for attribute in each.attributes]
    return {"name": each.name, "attributes": attributes, "time": each.time_attribute}


async def subscribe(request: web.Request) -> web.Response:
    """Creates the subscription, which then waits; its start is decided now."""
    gateway, asked = request.app[GATEWAY], await _object(request)
    name, rules = asked.get("name"), asked.get("rules")
    if not isinstance(name, str) or not isinstance(rules, str) or asked.keys() - {"name", "rules", "start"}:
        raise UsageError("A274", "expected `name` and `rules`, both text", 'send {"name": …, "rules": …, "start": …}')
    start = start_of(asked.get("start", "new"))
    await gateway.check_rules(request[CALLER], name, rules)
    async with gateway.sessions.turn(name):
        await gateway.sessions.end(name)
        async with gateway.sessions.subscription(user_of(request), name, rules, start) as sub:
            plan = sub.plan
    told = {
        "name": name,
        "subscriptions": [each.name for each in plan.subscriptions],
        "digest": plan.digest,
        "warnings": [warning(each) for each in plan.warnings],
    }
    return web.json_response(told, status=201, headers={"Location": f"/subscriptions/{name}/events"})


async def forget(request: web.Request) -> web.Response:
    gateway, name = request.app[GATEWAY], request.match_info["name"]
    check_name(request[CALLER], name)
    await gateway.sessions.rules(name)
    await gateway.sessions.end(name)
    await gateway.client.forget(name)
    return web.Response(status=204)


async def acknowledge(request: web.Request) -> web.Response:
    gateway, asked = request.app[GATEWAY], await _object(request)
    id = asked.get("id")
    if not isinstance(id, str):
        raise UsageError("A274", "`id` is missing", 'send {"id": "<id of a delivery>"}')
    check_name(request[CALLER], request.match_info["name"])
    await gateway.sessions.find(request.match_info["name"]).feed.acknowledge(id)
    gateway.metrics.add("acknowledged_total")
    return web.json_response({"acknowledged": id})


async def receipts(request: web.Request) -> web.Response:
    gateway, name = request.app[GATEWAY], request.match_info["name"]
    check_name(request[CALLER], name)
    await gateway.sessions.up_to_date(name)
    found = await gateway.client.receipts(name)
    return web.json_response({"receipts": {key: each.to_json() for key, each in found.items()}})


async def compare(request: web.Request) -> web.Response:
    a, b = request.query.get("a"), request.query.get("b")
    if not a or not b:
        raise UsageError("A274", "expected two names, `a` and `b`", "request /comparison?a=…&b=…")
    gateway = request.app[GATEWAY]
    for name in (a, b):
        check_name(request[CALLER], name)
    await gateway.sessions.up_to_date(a, b)
    found = await gateway.client.compare(a, b)
    return web.json_response(found.to_json())


async def _text(request: web.Request) -> str:
    """A body of text, or JSON with a `text`."""
    if request.content_type == "application/json":
        found = (await _object(request)).get("text")
        if not isinstance(found, str):
            raise UsageError("A274", "`text` is missing", 'send {"text": "TYPE …"}, or the text itself as text/plain')
        return found
    try:
        return (await request.read()).decode()
    except UnicodeDecodeError:
        raise UsageError("A274", "the text is not UTF-8", "send UTF-8") from None


async def _object(request: web.Request) -> dict[str, Any]:
    body = await request.read()
    if len(body) > OBJECT_BYTES_MAX:
        raise UsageError(
            "A270", f"the body is larger than {OBJECT_BYTES_MAX:,} bytes", "send an object as /openapi.json describes"
        )
    try:
        found = json_value(body) if len(body) < LONG else await asyncio.to_thread(json_value, body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UsageError("A274", "the body is not a JSON object", "send an object as /openapi.json describes", "body")
    return found
