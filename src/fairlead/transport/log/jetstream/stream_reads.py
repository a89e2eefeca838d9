"""Reads a stream of a NATS server, in order, from a sequence, without end: by a consumer, or by direct requests.

A consumer (reader.py) is the fast way. A client whose login lets it make no consumers gets an error when it tries one, and
asks for blocks by their sequences (direct_reader.py). Both give the same.

Before a reading begins, the stream must be the one that was read, with all its blocks (stream_health.py): a stream that was
deleted and created again would be read on from a sequence that means another block there. A server of a cluster may answer from
the past for a while, so there the problem must last.

A message that is not a block by the rules (block.py, predecessor.py) is given as a rejected block, to every reader alike.

Takes: a connection, a stream and a sequence. Gives: lists of stored blocks. Never: skips, repeats or reorders.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence

from nats.aio.msg import Msg

from fairlead.errors import DataError, LogError
from fairlead.transport.log.blocks.block import Block, rejected_block
from fairlead.transport.log.jetstream.direct_reader import DirectReading
from fairlead.transport.log.jetstream.failures import translated
from fairlead.transport.log.jetstream.reader import Again, Connection, Item, Parse, StreamConsumer, StreamReading, Take
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Stored, Stream, Unavailable, no_answer

LOGGER = logging.getLogger("fairlead")
AGAIN_SECONDS = 0.25
GIVE_UP_SECONDS = 60.0
DOUBT_SECONDS = 15.0
"""How long a cluster may report fewer blocks than were read: a leader that is cut off resigns after some seconds. And how long
servers may refuse a login that they accepted: they read new rights one after the other."""


def taking(stream: Stream, parse: Parse) -> Take[Stored]:
    """Reads blocks; those that are rejected are given as such."""

    def take(message: Msg, sequence: int, time: int) -> Stored:
        return Stored(sequence, time, parsed(parse, message, f"{stream.name} {sequence}"))

    return take


def parsed(parse: Parse, message: Msg, place: str) -> Block:
    try:
        return parse(message.headers, message.data, message.subject, place)
    except DataError as error:
        LOGGER.warning("%s: skipped by every reader", error)
        return rejected_block(error.code, message.subject)


async def read(
    way: Connection,
    stream: Stream,
    after: int,
    take: Take[Item],
    subjects: list[str] | None = None,
    *,
    headers_only: bool = False,
) -> AsyncGenerator[Sequence[Item], None]:
    """With `subjects`, only the blocks under these."""
    patience, doubts, time = Patience(GIVE_UP_SECONDS, AGAIN_SECONDS), Patience(DOUBT_SECONDS, AGAIN_SECONDS), None
    while True:
        direct = stream.name in way.readers.direct
        way_of: type[StreamReading[Item]] = DirectReading if direct else StreamConsumer
        reading = way_of(way, stream, after, time, subjects, take, headers_only)
        try:
            with translated(way.refusals):
                problem, clustered = await reading.problem()
                if problem is None:
                    await reading.open()
                    while True:
                        found = await reading.blocks()
                        after, time = reading.after, reading.time
                        patience.renew()
                        doubts.renew()
                        yield found
                elif not clustered or doubts.is_over:
                    raise problem
        except LogError as error:
            if error.code != "N003" or direct:
                raise
            way.readers.direct.add(stream.name)
            continue
        except Again:
            patience.extend(GIVE_UP_SECONDS / 2)
        except Unavailable as error:
            if way.client.is_closed or patience.is_over or (error.refused and doubts.is_over):
                raise no_answer(error, "start it, then subscribe again") from None
        finally:
            await reading.close()
        await patience.pause()
