"""Blocks that are stored a second time, after all blocks of their source were trimmed.

An append names the last block of its source, so a log refuses a block that it has, however late a copy of it arrives. Only a
block that names none is not protected: once all blocks of a source are trimmed, a copy of such a block is accepted again. But
before blocks are removed, their heads are noted (trims.py), so the log says what it had. A block at the sequence P of its
topic that names no block before it:

    1. no head of its source is noted: it is the first
    2. heads before P are noted: it is a repeat unless its number is higher than the last one of its type, and its sequence than
       the last one of its source
    3. a head at P or after it is noted, because P has been trimmed since: then repeats are recorded, before any of these heads

All blocks of the source before P were noted before P was stored. So the answer is a function of the log: every reader finds the
same one, whenever it looks.

Takes: blocks, and the table of what was trimmed. Gives: the blocks, repeats as rejected ones. Never: asks for other blocks than
those that name no block before them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from fairlead.transport.log.blocks.block import SEQUENCE_MAX, Block, rejected_block
from fairlead.transport.log.names import subject as subject_of
from fairlead.transport.log.names import topic_stream
from fairlead.transport.log.patience import Patience
from fairlead.transport.log.protocol import Stored, Unavailable, no_answer
from fairlead.transport.log.trims import Heads, TableReader, TrimRecord, trim_record, trimmed_heads

REPEATED = "D038"
PATIENCE_SECONDS = 60.0
Answer = TypeVar("Answer")


async def without_repeats(records: TableReader, blocks: Sequence[Stored]) -> Sequence[Stored]:
    """Blocks of one topic, in which repeats are rejected. Raises LogError if the table cannot be read."""
    begin = [each for each in blocks if each.block.begins]
    if not begin:
        return blocks
    stream = topic_stream(begin[0].block.topic)
    record = await answered(lambda: trim_record(records, stream))
    if record == TrimRecord():
        return blocks  # nothing was ever trimmed
    asked = [_is_repeat(records, stream, each) for each in begin]
    judged = [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked)
    found = {each.sequence for each, is_repeat in zip(begin, judged, strict=True) if is_repeat}
    return [_rejected(each) if each.sequence in found else each for each in blocks]


def _rejected(stored: Stored) -> Stored:
    block = stored.block
    return stored._replace(block=rejected_block(REPEATED, subject_of(block.topic, block.type, block.source, block.letters)))


async def _is_repeat(records: TableReader, stream: str, stored: Stored) -> bool:
    heads = await answered(lambda: trimmed_heads(records, stream, stored.block.source))
    if any(each.at >= stored.sequence for each in heads.values()):  # 3
        return stored.sequence in (await answered(lambda: trim_record(records, stream))).repeats
    return repeats(stored.block, heads)


def repeats(block: Block, heads: Heads) -> bool:
    """Whether a block that names none before it repeats one of those before it, of which these were the last heads."""
    counted = [each for each in heads.values() if max(each.number, each.sequence) < SEQUENCE_MAX]
    if not counted:  # 1
        return False
    same, last = heads.get(block.lane), max(counted, key=lambda each: each.at)
    if same in counted and block.number <= same.number:  # 2
        return True
    return not block.numbers and block.sequence < last.sequence + last.count


async def answered(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Asks again while there is no answer. Raises LogError."""
    trying = Patience(PATIENCE_SECONDS)
    while True:
        try:
            return await ask()
        except Unavailable as error:
            if trying.is_over:
                raise no_answer(error, "start it, then subscribe again") from None
        await trying.pause()
