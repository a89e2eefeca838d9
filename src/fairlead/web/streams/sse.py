"""Relations as server-sent events.

    id: 12-3f…e0
    event: relation                      or retraction: the relation is taken back
    data: {"subscription": …}

    event: early                         before the delay has passed; or early-retraction; without an id
    data: {"subscription": …, "early": true}

    event: verdict                       an event that took no part; without an id
    data: {"verdict": "late", …}

A browser's EventSource, and every client that follows the standard, sends the last id back when it connects again: so it
resumes directly after it, and what it has is acknowledged. A stream ends by itself when `sent_max` relations are not
acknowledged; the listener connects again, and all is well.

Takes: a session. Gives: a stream. Never: reads ahead of a slow listener by more than a few batches and its socket's buffers.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from itertools import count

from aiohttp import web

from fairlead.errors import FairleadError
from fairlead.web.faults import told
from fairlead.web.gateway import CALLER, GATEWAY, Gateway, user_of
from fairlead.web.streams.asked import ListenerQuery
from fairlead.web.streams.feed import Writing
from fairlead.web.streams.sessions import Session

RETRY_MILLISECONDS = 500
LOOK_SECONDS, TURNS = 0.25, 40
"""How often to check whether the listener is connected, and after how many checks to send a comment: a dead connection does not
accept it."""


async def events(request: web.Request) -> web.StreamResponse:
    gateway, asked = request.app[GATEWAY], ListenerQuery.of(request)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    async with AsyncExitStack() as held:
        rules = await gateway.known_rules(request[CALLER], asked.name, asked.rules)
        session = await gateway.sessions.open(held, asked.name, "sse", rules, asked.after, asked.early, user_of(request))
        await response.prepare(request)
        await response.write(f"retry: {RETRY_MILLISECONDS}\n\n".encode())
        beating = asyncio.create_task(_beat(request, response, session))
        held.callback(beating.cancel)
        try:
            await gateway.sessions.run(session, _pump(gateway, response, session, Writing(session.sub.plan, asked.cloudevents)))
        except FairleadError as error:
            gateway.metrics.add("errors_total", code=error.code)
            writing = Writing(session.sub.plan, False)
            await response.write(f"event: error\ndata: {writing.text(told(error))}\n\n".encode())
        except ConnectionError:
            pass  # the listener is gone
    return response


async def _pump(gateway: Gateway, response: web.StreamResponse, session: Session, writing: Writing) -> None:
    async for message in session.feed:
        id = "" if message.id is None else f"id: {message.id}\n"
        text = f"{id}event: {message.kind}\ndata: {writing.text(writing.value(message))}\n\n"
        await response.write(text.encode())  # waits if the listener is slow
        gateway.metrics.count_sent(message.kind, message.content)
        if session.feed.unacknowledged >= gateway.settings.sent_max:
            return


async def _beat(request: web.Request, response: web.StreamResponse, session: Session) -> None:
    """Detects when the listener is gone."""
    try:
        for turn in count(1):
            await asyncio.sleep(LOOK_SECONDS)
            if request.transport is None or request.transport.is_closing():
                break
            if turn % TURNS == 0:
                await response.write(b":\n\n")
    except ConnectionError:
        pass
    if session.task is not None:
        session.task.cancel()
