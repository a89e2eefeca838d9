"""The handlers of all routes except streams.

Takes: requests. Gives: JSON. Never: responds before events are stored.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from fairlead.errors import FairleadError, UsageError
from fairlead.model.events.types import EventType
from fairlead.runtime.live.registry import TABLE
from fairlead.transport.files.documents import json_value
from fairlead.web.asked import start_of
from fairlead.web.bodies import Placed
from fairlead.web.gateway import GATEWAY, Gateway
from fairlead.web.metrics import CONTENT

HEALTH_SECONDS = 3.0


async def health(request: web.Request) -> web.Response:
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            await request.app[GATEWAY].client.log.keys(TABLE)
    except (TimeoutError, FairleadError):
        return web.json_response({"status": "the log does not answer"}, status=503)
    return web.json_response({"status": "ok"})


async def metrics(request: web.Request) -> web.Response:
    return web.Response(text=request.app[GATEWAY].metrics.text(), headers={"Content-Type": CONTENT})


async def publish(request: web.Request) -> web.Response:
    gateway = request.app[GATEWAY]
    counts = await gateway.publishing.publish(await _records(gateway, request, await request.read()))
    gateway.metrics.add("events_stored_total", counts.stored)
    gateway.metrics.add("events_repeated_total", counts.repeated)
    return web.json_response(counts._asdict(), status=202 if counts.stored else 200)


async def _records(gateway: Gateway, request: web.Request, body: bytes) -> list[Placed]:
    """Reads the records with the locally known types; if one is unknown, after a refresh from the log."""
    # Pairs, so that a repeated header is seen.
    headers = list(request.headers.items())
    bodies = await gateway.bodies()
    found = bodies.records(headers, body, request.query.get("type"))
    names = {each.get("type") for _, each in found if isinstance(each, dict)}
    if all(isinstance(name, str) and name in bodies.catalogue for name in names):
        return found
    await gateway.publishing.renew()
    return (await gateway.bodies()).records(headers, body, request.query.get("type"))


async def declare(request: web.Request) -> web.Response:
    gateway = request.app[GATEWAY]
    names = await gateway.client.declare(await _text(request))
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
    async with gateway.sessions.turn(name):
        await gateway.sessions.end(name)
        async with gateway.client.subscribe(rules, name=name, start=start) as sub:
            told = {"name": name, "subscriptions": [each.name for each in sub.plan.subscriptions], "digest": sub.plan.digest}
    return web.json_response(told, status=201, headers={"Location": f"/subscriptions/{name}/events"})


async def forget(request: web.Request) -> web.Response:
    gateway, name = request.app[GATEWAY], request.match_info["name"]
    await gateway.sessions.rules(name)
    await gateway.sessions.end(name)
    await gateway.client.forget(name)
    return web.Response(status=204)


async def acknowledge(request: web.Request) -> web.Response:
    gateway, asked = request.app[GATEWAY], await _object(request)
    id = asked.get("id")
    if not isinstance(id, str):
        raise UsageError("A274", "`id` is missing", 'send {"id": "<id of a delivery>"}')
    await gateway.sessions.find(request.match_info["name"]).feed.acknowledge(id)
    gateway.metrics.add("acknowledged_total")
    return web.json_response({"acknowledged": id})


async def receipts(request: web.Request) -> web.Response:
    gateway, name = request.app[GATEWAY], request.match_info["name"]
    await gateway.sessions.up_to_date(name)
    found = await gateway.client.receipts(name)
    return web.json_response({"receipts": {key: each.to_json() for key, each in found.items()}})


async def compare(request: web.Request) -> web.Response:
    a, b = request.query.get("a"), request.query.get("b")
    if not a or not b:
        raise UsageError("A274", "expected two names, `a` and `b`", "request /comparison?a=…&b=…")
    gateway = request.app[GATEWAY]
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
    try:
        found = json_value(await request.read())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UsageError("A274", "the body is not a JSON object", "send an object as /openapi.json describes", "body")
    return found
