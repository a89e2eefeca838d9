"""Stores a block once, however often it has to be sent.

    1. append it after the last block of its source, of any type
    2. no answer: send the same block again, later; the log rejects it if it has it
    3. rejected: look what the log has: first the last block of the source, then the last one of the type. If the latter is our
       block, it is stored; otherwise a block of another type is the last, or an attempt is still pending: again after the
       former. An attempt that is stored between the two looks, or later, has a higher sequence: then (1) is rejected again

Takes: a block and the sequence after which to store it. Gives: its sequence. Never: stores it twice, or out of order.
"""

from __future__ import annotations

from contextlib import suppress

from fairlead.errors import LogError, StateError
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Conflict, Log, Stored, Unavailable


async def stored_once(log: Log, block: Block, after: int, patience: float) -> Stored:
    """The stored block, or the later one in its place if several writers may write the same blocks. Raises LogError when there
    was no answer for `patience` seconds."""
    trying = Patience(patience)
    while True:
        try:
            return Stored(await log.append(block, after), 0, block)  # 1
        except Conflict:
            why = "another attempt is under way"
            with suppress(Unavailable):
                last = await log.last_of(block.topic, block.source)  # 3
                found = await log.last_of(block.topic, block.source, block.type)
                if found is not None and found.block.number >= block.number:
                    return found
                before, after = after, 0 if last is None else last.sequence
                if after != before:
                    continue
        except Unavailable as error:  # 2
            why = str(error)
        if trying.is_over:
            raise LogError(
                "N001", f"the server does not answer: {why}", "start it again: the events that were not stored are then sent"
            )
        await trying.pause()


class Tails:
    """The last blocks of sources that several writers may write, all with equal blocks. `fix`: the advice if blocks are
    missing."""

    def __init__(self, log: Log, patience: float, fix: str) -> None:
        self._log, self._patience, self._fix = log, patience, fix
        self._last: dict[tuple[str, str, str], tuple[int, int]] = {}

    async def store(self, block: Block) -> None:
        """Stores the block unless the log has it already. Raises StateError if an earlier block is missing."""
        source = block.topic, block.source, block.type
        if source not in self._last:
            await self._log.open_topics([block.topic])
            last = await self._log.last_of(*source)
            self._last[source] = (-1, 0) if last is None else (last.block.number, last.sequence)
        number, after = self._last[source]
        if block.number <= number:
            return  # an equal subscriber has stored it, or an earlier run of this one
        if block.number > number + 1:
            problem = f"derived blocks of '{block.type}' are missing: the log has {number + 1}, and {block.number} is next"
            raise StateError("S135", problem, self._fix)
        found = await stored_once(self._log, block, after, self._patience)
        self._last[source] = found.block.number, found.sequence


def require_ours(found: Stored, block: Block) -> None:
    """Raises StateError if another publisher uses the name."""
    if (found.block.number, found.block.writer, found.block.payload) != (block.number, block.writer, block.payload):
        problem = f"another publisher is storing '{block.type}' under the source name '{block.source}'"
        raise StateError("S131", problem, "give every concurrent publisher its own source name")
