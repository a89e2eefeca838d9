"""Stores a block once, however often it has to be sent.

    1. append it after the last block of its source, of any type
    2. no answer: send the same block again, later; the log refuses it if it has it
    3. refused: look what the log has: first the last message of the source, then the last block of the type. If there is one
       that was not there before, it is ours, or that of another writer. Otherwise a block of another type is the last, or a
       message that is no block, or an attempt is still pending: again after the former. An attempt that is stored between the
       two looks, or later, has a higher sequence: then (1) is refused again
    4. a block of a former process of the source, sent before it ended, is stored now: its sequences would be given twice
    5. the log has less than it had: blocks that it had acknowledged are gone
    6. an attempt was not answered, and was stored and trimmed since: the log does not refuse another one after what it has now.
       Then a head of it is noted (trims.py): seen in (3), or before (2), if it would be the first of its source
    7. several write the same blocks; others have stored this one, and all blocks of the source were trimmed, before (1): every
       reader rejects what was stored now as a repeat, but would accept blocks that name it. The last head says which blocks
       the log has had

Takes: a block and the sequence after which to store it. Gives: its sequence. Never: stores it twice, or out of order.
"""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import TypeGuard

from fairlead.errors import LogError, StateError
from fairlead.transport.log.blocks.block import SEQUENCE_MAX, Block
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.blocks.room import require_room
from fairlead.transport.log.names import order_type, topic_stream
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Conflict, Log, Stored, Stream, Trimmed, Unavailable, no_answer
from fairlead.transport.log.trims import first_kept

TAKEN = ("S131", "N022")
"""Codes of errors that say that the log is not as its publisher has left it."""
DOUBT_SECONDS = 15.0
"""How long the log may have less than it had: a leader that is cut off answers from the past."""


async def stored_once(
    log: Log, block: Block, after: int, patience: float, *, shared: bool = False, alone: bool = False
) -> Stored:
    """The stored block, or the later one in its place. `shared`: several writers write the same blocks, by their numbers.
    `alone`: the sequences of all types continue one another, so no other writer may store in between. Raises LogError when
    there was no answer for `patience` seconds."""
    require_room(block.topic, after, left=1)
    trying, known, doubts = Patience(patience), after, Patience(min(patience, DOUBT_SECONDS))
    unanswered = False
    while True:
        try:
            if after == 0 and (unanswered or shared):  # 6
                gone = await log.last_block_of(block.topic, block.source, block.type)
                if _is_trimmed(gone, block):
                    return gone if shared else Stored(0, gone.time, block)
            stored = Stored(await log.append(block, after), 0, block)  # 1
            if after == 0 and shared:  # 7
                last = await log.last_block_of(block.topic, block.source, block.type)
                return last if _is_trimmed(last, block) else stored
            return stored
        except Conflict:
            silence = Unavailable("another attempt is under way")
            with suppress(Unavailable):
                last = await log.last_of(block.topic, block.source, order_type(block.source, block.type))  # 3
                found = await log.last_block_of(block.topic, block.source, block.type)
                if unanswered and _is_trimmed(found, block):  # 6
                    return Stored(0, found.time, block)
                if found is not None and (found.block.number >= block.number if shared else found.sequence > known):
                    return found if shared or is_same(found.block, block) else await _ours_or_last(log, block, known, found)
                now = 0 if last is None else last.sequence
                if now > after and alone and (other := await _of_another(log, block, known)) is not None:
                    return other  # 4
                if now > after:
                    after = now
                    continue
                if now < after < await first_kept(log, topic_stream(block.topic)):  # what it would have named was trimmed
                    after, known = now, min(known, now)
                    continue
                if now < known and doubts.is_over:
                    raise _lost(block, known) from None  # 5
        except Unavailable as error:  # 2
            silence, unanswered = error, True
        if trying.is_over:
            raise no_answer(silence, "start it again: the events that were not stored are then sent")
        await trying.pause()


def _is_trimmed(last: Stored | None, block: Block) -> TypeGuard[Stored]:
    """Whether the last block of its source and type, which is this one or a later one, has been trimmed. Nothing follows a
    stranger's largest number."""
    return last is not None and last.sequence == 0 and block.number <= last.block.number < SEQUENCE_MAX


async def _of_another(log: Log, block: Block, known: int) -> Stored | None:
    """The last block of the source, of any type, if another writer has stored it since."""
    last = await log.last_block_of(block.topic, block.source)
    return None if last is None or last.sequence <= known or last.block.writer == block.writer else last


async def _ours_or_last(log: Log, block: Block, known: int, last: Stored) -> Stored:
    """Our block, if it is stored before a later one of another writer; else that one. Of trimmed blocks nobody knows the
    writer."""
    stream = await log.open_topics([block.topic])
    while True:
        try:
            return await _ours_between(log, stream, block, known, last)
        except Trimmed as trimmed:
            known = trimmed.first - 1
            if known >= last.sequence:
                return last


async def _ours_between(log: Log, stream: Stream, block: Block, known: int, last: Stored) -> Stored:
    async with aclosing(log.read(stream, known, Only((block.type,)))) as reading:  # type: ignore[type-var]
        async for some in reading:
            for each in some:
                if is_same(each.block, block):
                    return each
                if each.sequence >= last.sequence:
                    return last
    return last


def is_same(found: Block, block: Block) -> bool:
    return (found.source, found.number, found.writer, found.payload) == (
        block.source,
        block.number,
        block.writer,
        block.payload,
    )


def _lost(block: Block, known: int) -> LogError:
    problem = f"the log has lost blocks of source '{block.source}': it had acknowledged one at sequence {known:,}"
    return LogError("N022", problem, "publish the events again that were lost; the next call continues after what the log has")


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
            last = await self._log.last_block_of(*source)
            self._last[source] = (-1, 0) if last is None else (last.block.number, last.sequence)
        number, after = self._last[source]
        if block.number <= number:
            return  # an equal subscriber has stored it, or an earlier run of this one
        if block.number > number + 1:
            problem = f"derived blocks of '{block.type}' are missing: the log has {number + 1}, and {block.number} is next"
            raise StateError("S135", problem, self._fix)
        found = await stored_once(self._log, block, after, self._patience, shared=True)
        self._last[source] = found.block.number, found.sequence


def require_ours(found: Stored, block: Block) -> None:
    """Raises StateError if another publisher uses the name."""
    if not is_same(found.block, block):
        problem = f"another publisher is storing '{block.type}' under the source name '{block.source}'"
        raise StateError("S131", problem, "give every concurrent publisher its own source name")
