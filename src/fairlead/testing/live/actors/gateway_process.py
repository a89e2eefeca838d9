"""A gateway as a separate process, to be killed, and a program that subscribes through it: python -m
fairlead.testing.live.actors.gateway_process RECORD URL NAME RULES PORT

The program listens by a WebSocket, over HTTP only. Deliveries are in the record before they are acknowledged, and
acknowledgements after the gateway has confirmed them; so the record is that of a subscriber (subscriber.py). The rules have one
subscription: then an id has one number, that of the delivery. Others publish through the gateway (web_publisher.py).
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import aiohttp

from fairlead.errors import FairleadError, LogError, require
from fairlead.testing.live.actors.end_of_input import asked_to_stop
from fairlead.testing.live.actors.records import Writer
from fairlead.testing.live.actors.skewed_clock import skew_clock
from fairlead.transport.log.tasks import ended
from fairlead.web.gateway import Settings
from fairlead.web.serving import gateway

AGAIN_SECONDS = 0.2
PATIENCE_SECONDS = 10.0
REPLICAS = 3
TROUBLES = (aiohttp.ClientError, ConnectionError, TimeoutError)


class WebSubscriber:
    """Follows one durable subscription of a gateway."""

    def __init__(self, record: Writer, address: str, name: str, rules: str) -> None:
        self._record, self._address, self._name, self._rules = record, address, name, rules

    async def run(self, stop: asyncio.Event) -> None:
        """Until it is asked to stop, over any number of connections."""
        while not stop.is_set():
            try:
                async with aiohttp.ClientSession(self._address) as session:
                    await self._connected(session, stop)
            except TROUBLES as error:
                self._record.note(trouble=f"HTTP {type(error).__name__}: {error}")
            await asyncio.sleep(0 if stop.is_set() else AGAIN_SECONDS)

    async def _connected(self, session: aiohttp.ClientSession, stop: asyncio.Event) -> None:
        asked = {"name": self._name, "rules": self._rules, "start": "earliest"}
        await self._answer(session.post("/subscriptions", json=asked))
        receipts = (await self._answer(session.get(f"/subscriptions/{self._name}/receipts")))["receipts"]
        (group,) = receipts
        self._record.note(begun=self._name)
        async with session.ws_connect(f"/subscriptions/{self._name}/socket") as ws:
            stopped = asyncio.create_task(stop.wait())
            try:
                await self._listen(ws, group, stopped)
            finally:
                await ended(stopped)
        if stop.is_set():
            found = await self._answer(session.get(f"/subscriptions/{self._name}/receipts"))
            self._record.note(receipts=found["receipts"])

    async def _answer(self, asking: Any) -> Any:
        async with asking as response:
            said = await response.json()
            if response.status >= 400:
                raise aiohttp.ClientError(f"{response.status} {said.get('code')}")
            return said

    async def _listen(self, ws: aiohttp.ClientWebSocketResponse, group: str, stopped: asyncio.Task[bool]) -> None:
        while True:
            coming = asyncio.create_task(ws.receive())
            await asyncio.wait((coming, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                await ended(coming)
                return
            message = coming.result()
            if message.type is not aiohttp.WSMsgType.TEXT:
                return
            told = message.json()
            if "relation" in told:
                self._note(told, group)
                await ws.send_json({"acknowledge": told["id"]})
            elif "acknowledged" in told:
                self._record.note(acked=_number(told["acknowledged"]), group=group)
            elif "error" in told:
                self._record.note(trouble=f"{told['error']['code']} {told['error']['problem']}")

    def _note(self, told: dict[str, Any], group: str) -> None:
        relation = told["relation"]
        require(told["id"].endswith(relation["id"]), "an id names its relation", id=told["id"], relation=relation["id"])
        self._record.note(
            number=_number(told["id"]),
            group=group,
            id=relation["id"],
            sign=1,
            subscription=relation["subscription"],
            branch=relation["branch"],
            positions=relation["positions"],
        )


def _number(id: str) -> int:
    return int(id.partition("-")[0])


async def main(path: str, url: str, name: str, rules: str, port: str) -> None:
    skew_clock(name)
    record, stop = Writer(path), asked_to_stop()
    record.note(begun=name)
    while not stop.is_set():
        try:
            async with gateway(url, Settings(port=int(port), patience=PATIENCE_SECONDS)) as address:
                await WebSubscriber(record, address, name, rules).run(stop)
        except (LogError, FairleadError) as error:
            record.note(trouble=str(error))
            await asyncio.sleep(AGAIN_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
