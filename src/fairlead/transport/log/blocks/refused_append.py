"""What to do with a block after an append that the log has refused, or that its readers reject.

An append names the message that must be the last one of its source. What the log has then is looked at in one order (LogView),
and the first line that applies decides:

    several write the same blocks, and the log has this number, or has had it                  that one counts
    a block of the type is stored after all that was known                                     it, or one before it: search
    the last one of the type is trimmed, and has this number or a later one                    it is ours, or another writer's
    one writer alone, and another one has stored, or has used sequences of this block           another writer's
    the last message is after the one that was named: of another type, or no block             again, after it
    the last message is before the one that was named, and that one was trimmed                again, after the last one
    the last message is before what the log has acknowledged                                   doubt: blocks may be lost
    nothing has changed: another attempt is under way                                          wait

Why this is right: everything that was stored in the source before its last message is in the log then, or noted as trimmed, so
the looks that follow see it. An append that names a message of the log is stored only if nothing came after that message. One
that names none (0) is stored only if the log has no message of the source; then the heads of what was trimmed say whether
readers take it (repeats.py).

Takes: an attempt, and what the log had. Gives: a verdict. Never: asks the log.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from fairlead.transport.log.blocks.block import SEQUENCE_MAX, Block
from fairlead.transport.log.protocol import Stored


class LogView(NamedTuple):
    """What the log has of a source, in the order in which it is asked. `last`: the sequence of the last message, 0 if there is
    none. `of_type`, `of_any`: the last block of the type, and of any type; trimmed ones have the sequence 0. `first`: what was
    before it was trimmed."""

    last: int
    of_type: Stored | None
    of_any: Stored | None
    first: int


class AppendAttempt(NamedTuple):
    """`after`: what the append named. `known`: the sequence up to which the log has acknowledged blocks of the source.
    `shared`: several writers write the same blocks. `alone`: the sequences of all types continue one another."""

    block: Block
    after: int
    known: int
    shared: bool = False
    alone: bool = False

    def again(self, last: int) -> AppendAttempt:
        return self._replace(after=last, known=min(self.known, last) if last < self.after else self.known)


class Next(Enum):
    STORED = auto()
    """The block of the verdict counts: this one, or the one in its place."""
    SEARCH = auto()
    """This block may be stored before the one of the verdict."""
    AGAIN = auto()
    """Append it after the last message."""
    DOUBT = auto()
    """The log has less than it has acknowledged, or a leader that is cut off has answered."""
    WAIT = auto()


class AppendVerdict(NamedTuple):
    next: Next
    stored: Stored | None = None


def verdict(attempt: AppendAttempt, view: LogView) -> AppendVerdict:
    block, found = attempt.block, view.of_type
    if attempt.shared and found is not None and found.block.number >= block.number:
        return AppendVerdict(Next.STORED, found)
    if not attempt.shared and found is not None and found.sequence > attempt.known and not _is_earlier(found.block, block):
        return AppendVerdict(Next.STORED if is_same(found.block, block) else Next.SEARCH, found)
    if not attempt.shared and found is not None and _was_reached(found, block):
        ours = found.block.writer == block.writer
        return AppendVerdict(Next.STORED, found._replace(block=block) if ours else found)
    if attempt.alone and view.of_any is not None and _is_of_another(view.of_any, attempt):
        return AppendVerdict(Next.STORED, view.of_any)
    if view.last > attempt.after or view.last < attempt.after < view.first:
        return AppendVerdict(Next.AGAIN)
    return AppendVerdict(Next.DOUBT if view.last < attempt.known else Next.WAIT)


def is_same(found: Block, block: Block) -> bool:
    return (found.source, found.number, found.writer, found.payload) == (
        block.source,
        block.number,
        block.writer,
        block.payload,
    )


def _is_earlier(found: Block, block: Block) -> bool:
    """Whether this writer stored it before: one that was about to be trimmed when it was confirmed may still be there."""
    return found.writer == block.writer and found.number < block.number


def _was_reached(found: Stored, block: Block) -> bool:
    """Whether the number of a block was used, and has been trimmed. Nothing follows a stranger's largest number."""
    return found.sequence == 0 and block.number <= found.block.number < SEQUENCE_MAX


def _is_of_another(found: Stored, attempt: AppendAttempt) -> bool:
    block = found.block
    if block.writer == attempt.block.writer:
        return False
    used = attempt.block.sequence < block.sequence + block.count and block.sequence < SEQUENCE_MAX
    return found.sequence > attempt.known or (found.sequence == 0 and used)
