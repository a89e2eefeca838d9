"""Relations by WebSocket, with acknowledgements.

    ◄─ {"id": "12-3f…e0", "relation": {…}}
    ◄─ {"id": "13-3f…e0", "retraction": {…}} the relation is taken back
    ◄─ {"early": {…}}                        before the delay has passed; or {"early-retraction": {…}}
    ◄─ {"verdict": {…}}                      an event that took no part
    ─► {"acknowledge": "12-3f…e0"}           everything up to it
    ◄─ {"acknowledged": "12-3f…e0"}          once that is stored
    ◄─ {"error": {"code": …, …}}             before the socket is closed

At most `window` relations are sent and not acknowledged; then the gateway waits for the listener.

Takes: a session. Gives: messages. Never: sends more than the window.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from fairlead.errors import FairleadError, UsageError
from fairlead.transport.files.documents import json_value
from fairlead.web.access.scopes import check_name
from fairlead.web.faults import told
from fairlead.web.gateway import CALLER, GATEWAY, Gateway, user_of
from fairlead.web.streams.asked import ListenerQuery
from fairlead.web.streams.feed import Writing
from fairlead.web.streams.sessions import Session

MESSAGE_BYTES_MAX = 64_000
BEAT_SECONDS, CLOSE_SECONDS = 20.0, 3.0


async def socket(request: web.Request) -> web.StreamResponse:
    gateway, asked = request.app[GATEWAY], ListenerQuery.of(request)
    check_name(request[CALLER], asked.name)
    ws = web.WebSocketResponse(timeout=CLOSE_SECONDS, heartbeat=BEAT_SECONDS, max_msg_size=MESSAGE_BYTES_MAX)
    if not ws.can_prepare(request).ok:
        raise UsageError("A274", "expected a WebSocket handshake", "connect with a WebSocket client")
    code = WSCloseCode.GOING_AWAY
    async with AsyncExitStack() as held:
        rules = await gateway.known_rules(request[CALLER], asked.name, asked.rules)
        session = await gateway.sessions.open(held, asked.name, "websocket", rules, asked.after, asked.early, user_of(request))
        await ws.prepare(request)
        try:
            await gateway.sessions.run(session, _talk(gateway, ws, session, asked))
            code = WSCloseCode.OK
        except FairleadError as error:
            gateway.metrics.add("errors_total", code=error.code)
            code = WSCloseCode.POLICY_VIOLATION
            with suppress(ConnectionError):
                await ws.send_json({"error": told(error)})
        except ConnectionError:
            pass  # the listener is gone
    await ws.close(code=code)
    return ws


async def _talk(gateway: Gateway, ws: web.WebSocketResponse, session: Session, asked: ListenerQuery) -> None:
    """Both directions, until one of them ends."""
    room = asyncio.Event()
    tasks = {
        asyncio.create_task(_listen(gateway, ws, session, room)),
        asyncio.create_task(_send(gateway, ws, session, asked, room)),
    }
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)


async def _send(
    gateway: Gateway, ws: web.WebSocketResponse, session: Session, asked: ListenerQuery, room: asyncio.Event
) -> None:
    writing = Writing(session.sub.plan, asked.cloudevents)
    async for message in session.feed:
        id = {} if message.id is None else {"id": message.id}
        await ws.send_str(writing.text(id | {message.kind: writing.value(message)}))
        gateway.metrics.count_sent(message.kind, message.content)
        while session.feed.unacknowledged >= asked.window:
            room.clear()
            await room.wait()


async def _listen(gateway: Gateway, ws: web.WebSocketResponse, session: Session, room: asyncio.Event) -> None:
    async for message in ws:
        if message.type is not WSMsgType.TEXT:
            raise _not_understood()
        id = _named(message.data)
        await session.feed.acknowledge(id)
        gateway.metrics.add("acknowledged_total")
        room.set()
        await ws.send_json({"acknowledged": id})


def _named(text: str) -> str:
    try:
        found: Any = json_value(text)["acknowledge"]
    except (ValueError, KeyError, TypeError):
        raise _not_understood() from None
    if not isinstance(found, str):
        raise _not_understood()
    return found


def _not_understood() -> UsageError:
    return UsageError("A274", "the message has an unknown form", 'send {"acknowledge": "<id of a delivery>"}')
