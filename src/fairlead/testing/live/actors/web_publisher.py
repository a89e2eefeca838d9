"""A program that publishes through a gateway, as a separate process, to be killed: python -m
fairlead.testing.live.actors.web_publisher RECORD ADDRESS SOURCE TYPES PAUSE

It numbers its events (`_sequence`), each type from 0. A request without an answer is sent again until it has one, also by the
next process: the events that were sent and not answered are in the record. Every few requests it sends one again that was
answered. All of it must be stored once.
"""

from __future__ import annotations

import asyncio
import random
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from fairlead.testing.live.actors.end_of_input import asked_to_stop
from fairlead.testing.live.actors.gateway_process import AGAIN_SECONDS, TROUBLES
from fairlead.testing.live.actors.jitter import time_of
from fairlead.testing.live.actors.publisher import key_of
from fairlead.testing.live.actors.records import Line, RecordLines, Writer

EVENTS_MAX = 4
REPEATED_SHARE = 0.1
REQUEST_SECONDS_MAX = 30.0


def request_of(source: str, sent: list[Line]) -> list[dict[str, Any]]:
    """The body of a request: events as they are in the record."""
    return [
        {
            "type": line["type"],
            "k": key_of(source, line["type"], line["sent"]),
            "x": line["sent"],
            "at": line["time"],
            "_source": source,
            "_sequence": line["sent"],
        }
        for line in sent
    ]


class WebPublisher:
    """`before`: the lines of its record so far."""

    def __init__(self, record: Writer, address: str, source: str, types: list[str], before: list[Line]) -> None:
        self._record, self._address, self._source, self._types = record, address, source, types
        stored = {name: _stored(before, name) for name in types}
        self._next = {name: max([line["sent"] + 1 for line in before if _is_sent(line, name)], default=0) for name in types}
        self._left = [line for line in before if any(_is_sent(line, each) and line["sent"] >= stored[each] for each in types)]

    async def run(self, pause: float, stop: asyncio.Event) -> None:
        rolls = random.Random(f"{self._source} {self._next}")
        timeout = aiohttp.ClientTimeout(REQUEST_SECONDS_MAX)
        async with aiohttp.ClientSession(self._address, timeout=timeout) as session:
            while not stop.is_set() or self._left:
                sent = self._left or [self._event(rolls.choice(self._types)) for _ in range(rolls.randrange(1, EVENTS_MAX))]
                self._left = sent
                await self._until_stored(session, sent)
                for name in self._types:
                    mine = [line["sent"] for line in sent if line["type"] == name]
                    for x in mine:
                        self._record.note(published=x, type=name)
                    if mine:
                        self._record.note(stored=mine[-1] + 1, type=name)
                self._left = []
                if rolls.random() < REPEATED_SHARE:
                    await self._until_stored(session, sent)
                await asyncio.sleep(pause * 2 * rolls.random())

    def _event(self, name: str) -> Line:
        """The next event, recorded before it is sent."""
        x = self._next[name]
        self._next[name] += 1
        line = {"sent": x, "type": name, "time": time_of(self._source, name, x, datetime.now(UTC)).isoformat()}
        self._record.note(**line)
        return line

    async def _until_stored(self, session: aiohttp.ClientSession, sent: list[Line]) -> None:
        while True:
            try:
                async with session.post("/events", json=request_of(self._source, sent)) as response:
                    said = await response.json()
                    if response.status < 300:  # 202, or 200 if all of it was stored already
                        return
                    self._record.note(trouble=f"{said.get('code')} {said.get('problem')}")
            except TROUBLES as error:
                self._record.note(trouble=f"HTTP {type(error).__name__}: {error}")
            await asyncio.sleep(AGAIN_SECONDS)


def _is_sent(line: Line, name: str) -> bool:
    return "sent" in line and line["type"] == name


def _stored(lines: list[Line], name: str) -> int:
    return max([line["stored"] for line in lines if "stored" in line and line["type"] == name], default=0)


async def main(path: str, address: str, source: str, types: str, pause: str) -> None:
    before, record, stop = RecordLines(Path(path)).refresh(), Writer(path), asked_to_stop()
    if not before:
        record.note(begun=source)  # what was sent is not forgotten with the process: it has one life
    await WebPublisher(record, address, source, types.split(","), before).run(float(pause), stop)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
