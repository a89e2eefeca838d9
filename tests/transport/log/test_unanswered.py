"""A reading continues whichever of its requests the server does not answer."""

from __future__ import annotations

import tempfile
from contextlib import aclosing
from itertools import count
from typing import Any

import nats.errors
import pytest

from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.jetstream.log import JetStreamLog, connect
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.protocol import Stored, Stream
from tests.transport.log.logs import run
from tests.transport.log.test_logs import block

pytestmark = pytest.mark.server
EACH = 3


class Requests:
    """Those of a log. The one with this number is not answered; `said`: the numbers that were asked."""

    def __init__(self, log: JetStreamLog, lost: int) -> None:
        self._request, self._lost, self.said = log._client.request, lost, 0
        log._client.request = self._asked  # type: ignore[method-assign]

    async def _asked(self, *given: Any, **named: Any) -> Any:
        self.said += 1
        if self.said == self._lost:
            raise nats.errors.TimeoutError
        return await self._request(*given, **named)


async def all_of(log: JetStreamLog, stream: Stream, wanted: int, heads: bool) -> list[Stored]:
    found: list[Stored] = []
    reading = log.heads(stream, 0, wanted) if heads else log.read(stream, 0)
    async with aclosing(reading) as blocks:  # type: ignore[type-var]
        async for some in blocks:
            found += some
            if len(found) == wanted:
                break
    return found


@pytest.mark.slow
@pytest.mark.parametrize("heads", [False, True])
@pytest.mark.parametrize("topics", [["A"], ["A", "B"], ["A", "B", "C"]])
def test_a_reading_continues_whichever_request_is_not_answered(topics: list[str], heads: bool) -> None:
    async def work() -> None:
        with tempfile.TemporaryDirectory(prefix="fairlead-log-") as folder, Server(folder, durable=False) as server:
            log = await connect(server.url, Credentials(), 1)
            for size in range(1, len(topics) + 1):
                await log.open_topics(topics[:size])
            for name in topics:
                after = 0
                for number in range(EACH):
                    after = await log.append(block(name, "s", number), after)
            stream = await log.open_topics(topics)
            wanted = await all_of(log, stream, EACH * len(topics), heads)
            await log.close()
            for lost in count(1):
                log = await connect(server.url, Credentials(), 1)
                assert isinstance(log, JetStreamLog)
                requests = Requests(log, lost)
                assert await all_of(log, stream, len(wanted), heads) == wanted, lost
                await log.close()
                if requests.said < lost:
                    break
            assert lost > len(topics)

    run(work)
