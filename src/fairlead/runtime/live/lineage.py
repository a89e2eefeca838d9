"""What a group of subscriptions makes of a stream, from an origin on: a function of the log alone.

Two processes that follow the same group from the same origin go through the same states: the same relations under the same
numbers, the same derived blocks, the same receipt. Where each of them has got to is a matter of speed. So a state that one of
them has put down serves all of them.

Takes: blocks in the order of the stream. Gives: relations, numbered; derived blocks; its state as bytes. Never: reads a
clock, does I/O; skips a block.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from fairlead.dataclass import dataclass
from fairlead.deliver.receipt import ReceiptBook
from fairlead.engine import Engine
from fairlead.errors import StateError
from fairlead.model.identity import Words
from fairlead.model.relation import Relation
from fairlead.order.continuity import Continuity
from fairlead.runtime.embedded import id_words
from fairlead.runtime.live.deriving import derivings_of
from fairlead.runtime.live.gathering import columns_of
from fairlead.runtime.live.grouping import Group
from fairlead.transport.log.block import INDEX_BITS, Block
from fairlead.transport.log.protocol import Stored

VERSION = 1
KERNELS_FROM = 1_000
"""Events after which kernels take over, sooner than elsewhere (engine.py): a subscriber stays, so they pay off, and whatever
comes in the meantime waits."""


@dataclass(frozen=True, eq=False)
class Found:
    """`first`: the number of the first relation, from 1."""

    first: int
    relations: Sequence[Relation]
    ids: Words
    derived: Sequence[Block]


class Lineage:
    """`origin`: the position from which events are read; `after`: the sequence of the last block that was read. `emits`: give
    the derived blocks too."""

    def __init__(self, group: Group, origin: int, *, emits: bool) -> None:
        self.group, self.origin = group, origin
        self.after = max(0, (origin >> INDEX_BITS) - 1)
        self.events = 0
        self.engine = Engine(group.plan, kernels_from=KERNELS_FROM)
        self.continuity = Continuity(from_beginning=origin == 0)
        self.book = book_of(group, origin)
        self.derivings = derivings_of(group.plan, origin) if emits else ()
        self._derived = {each.subscription.name: (0, 0) for each in self.derivings}

    def feed(self, blocks: Sequence[Stored]) -> Found:
        """Raises StateError where blocks are missing, DataError where one is damaged."""
        fresh = []
        for each in blocks:
            if self.continuity.check(each.block.type, each.block.source, each.block.number, each.block.count):
                fresh.append(each)
        relations: Sequence[Relation] = []
        if fresh:
            columns = columns_of(fresh, self.group.plan.catalogue, self.origin)
            relations = self.engine.feed(columns)
            self.events += len(columns)
        self.after = blocks[-1].sequence
        ids, first = id_words(relations), self.book.count + 1
        self.book.note(ids)
        return Found(first, relations, ids, self._derived_blocks(relations))

    def _derived_blocks(self, relations: Sequence[Relation]) -> list[Block]:
        found: list[Block] = []
        if len(relations):
            for each in self.derivings:
                number, sequence = self._derived[each.subscription.name]
                for block in each.blocks(relations, number, sequence):
                    found.append(block)
                    number, sequence = block.number + 1, block.sequence + block.count
                self._derived[each.subscription.name] = number, sequence
        return found

    @property
    def is_whole(self) -> bool:
        """Its state serves everybody, also those who store what is derived."""
        return len(self.derivings) == sum(each.emits is not None for each in self.group.plan.subscriptions)

    def dump(self) -> bytes:
        """A line of JSON, and the engine's own state."""
        head = {
            "version": VERSION,
            "after": self.after,
            "events": self.events,
            "continuity": self.continuity.dump(),
            "book": dump_book(self.book),
            "derived": self._derived,
        }
        return json.dumps(head).encode() + b"\n" + self.engine.dump()

    @classmethod
    def load(cls, group: Group, origin: int, dumped: bytes, *, emits: bool) -> Lineage:
        """Raises StateError."""
        head, _, state = dumped.partition(b"\n")
        try:
            told = json.loads(head)
            if told["version"] != VERSION:
                raise ValueError(told["version"])
            made = cls(group, origin, emits=emits)
            made.after, made.events = told["after"], told["events"]
            made.continuity = Continuity.load(told["continuity"])
            load_book(made.book, told["book"])
            made._derived |= {name: tuple(pair) for name, pair in told["derived"].items() if name in made._derived}
        except (ValueError, KeyError, TypeError):
            raise StateError(
                "S132", "the stored state of a subscription cannot be read", "remove it: it is made anew"
            ) from None
        made.engine = Engine.load(group.plan, state, kernels_from=KERNELS_FROM)
        return made


def book_of(group: Group, origin: int) -> ReceiptBook:
    """Receipts of the same plan from different origins need not agree, so they are told apart."""
    return ReceiptBook(group.plan.digest if origin == 0 else f"{group.plan.digest}@{origin}")


def dump_book(book: ReceiptBook) -> dict[str, object]:
    total = [int(each) for each in book.total]
    return {"count": book.count, "total": total, "stride": book.stride, "samples": book.samples}


def load_book(book: ReceiptBook, told: dict[str, object]) -> None:
    book.count, book.stride, book.samples = told["count"], told["stride"], list(told["samples"])  # type: ignore[assignment,call-overload]
    book.total = np.array(told["total"], dtype=np.uint64)


def copied(book: ReceiptBook) -> ReceiptBook:
    made = ReceiptBook(book.plan)
    made.count, made.stride, made.samples, made.total = book.count, book.stride, list(book.samples), book.total.copy()
    return made
