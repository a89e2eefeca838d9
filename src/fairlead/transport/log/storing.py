"""Storing a block once, however often it has to be sent.

    1. append it behind the last block of its source
    2. no answer: send the same again, later; the log refuses it if it has it
    3. refused: look what the log has. If that is our block, it is stored; if nothing has changed, an attempt is still under way

Takes: a block and the sequence it is to stand behind. Gives: its sequence. Never: stores it twice, or out of order.
"""

from __future__ import annotations

import asyncio

from fairlead.errors import LogError, StateError
from fairlead.transport.log.block import Block
from fairlead.transport.log.protocol import Conflict, Log, Stored, Unavailable

PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.05, 1.0


async def stored_once(log: Log, block: Block, after: int, patience: float) -> Stored:
    """The block as it is stored, or the later one that stands in its place where several may write the same blocks. Raises
    LogError when there was no answer for `patience` seconds."""
    loop = asyncio.get_running_loop()
    end, pause = loop.time() + patience, PAUSE_SECONDS
    while True:
        try:
            return Stored(await log.append(block, after), 0, block)  # 1
        except Conflict:
            found = await _found(log, block)  # 3
            if found is not None and found.block.number >= block.number:
                return found
            why = "another attempt is under way"
        except Unavailable as error:  # 2
            why = str(error)
        if loop.time() > end:
            raise LogError("N001", f"the server does not answer: {why}", "start it again; what was not stored is sent then")
        await asyncio.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)


async def _found(log: Log, block: Block) -> Stored | None:
    try:
        return await log.last_of(block.type, block.source)
    except Unavailable:
        return None


def require_ours(found: Stored, block: Block) -> None:
    """Raises StateError where another publisher has the name."""
    if (found.block.number, found.block.writer, found.block.payload) != (block.number, block.writer, block.payload):
        problem = f"another publisher stores '{block.type}' under the source name '{block.source}'"
        raise StateError("S131", problem, "give every publisher that runs at the same time a source name of its own")
