"""Stores a block once, however often it has to be sent.

    1. append it after the last message of its source
    2. no answer: send the same block again, later; the log refuses it if it has it. If it names no message, look first (4): it
       may be stored and trimmed by now
    3. stored, but it names no message: readers may reject it as a repeat of what was trimmed. Blocks that name it would count,
       so the log is looked at as in (4)
    4. refused: look what the log has: first the last message of the source, then the last blocks. What follows from that is
       a table (refused_append.py): the block is there, or was trimmed; another writer has stored; append it after another
       message; or wait
    5. the log has less than it had for a while: blocks that it had acknowledged are gone

Takes: a block and the sequence after which to store it. Gives: its sequence. Never: stores it twice, or out of order.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace

from fairlead.errors import LogError, StateError
from fairlead.transport.log.blocks.block import Block
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.blocks.refused_append import AppendAttempt, LogView, Next, is_same, verdict
from fairlead.transport.log.blocks.repeats import without_repeats
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
    trying, doubts = Patience(patience), Patience(min(patience, DOUBT_SECONDS))
    attempt, look = AppendAttempt(block, after, after, shared, alone), False
    while True:
        silence = Unavailable("another attempt is under way")
        try:
            stored = None if look else await _appended(log, attempt)
            if stored is not None:
                return stored
            view = await _view(log, attempt)  # 4
            found = verdict(attempt, view)
            if found.next is Next.AGAIN or (look and found.stored is None):
                attempt, look = attempt.again(view.last), False
                continue
            if found.stored is not None:
                return found.stored if found.next is Next.STORED else await _ours_or_last(log, attempt, found.stored)
            if found.next is Next.DOUBT and doubts.is_over:
                raise _lost(block, attempt.known)  # 5
        except Unavailable as error:  # 2
            silence, look = error, not attempt.after
        if trying.is_over:
            raise no_answer(silence, "start it again: the events that were not stored are then sent")
        await trying.pause()


async def _appended(log: Log, attempt: AppendAttempt) -> Stored | None:
    """The stored block; None if the log has refused it, or its readers reject it."""
    try:
        stored = Stored(await log.append(attempt.block, attempt.after), 0, attempt.block)  # 1
    except Conflict:
        return None
    if attempt.after or (await log.state(await log.open_topics([attempt.block.topic]))).first <= 1:
        return stored
    (judged,) = await without_repeats(log, [stored._replace(block=replace(attempt.block, begins=True))])  # 3
    return None if judged.block.rejected else stored


async def _view(log: Log, attempt: AppendAttempt) -> LogView:
    block = attempt.block
    last = await log.last_of(block.topic, block.source, order_type(block.source, block.type))
    of_type = await log.last_block_of(block.topic, block.source, block.type)
    of_any = await log.last_block_of(block.topic, block.source) if attempt.alone else None
    return LogView(0 if last is None else last.sequence, of_type, of_any, await first_kept(log, topic_stream(block.topic)))


async def _ours_or_last(log: Log, attempt: AppendAttempt, last: Stored) -> Stored:
    """Our block, if it is stored before a later one of another writer; else that one. Of trimmed blocks, only the writer of the
    last one is known."""
    block, known = attempt.block, attempt.known
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
