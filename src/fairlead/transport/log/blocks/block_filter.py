"""Routes: a block's marks for them, and which blocks a reader wants.

A route is a condition on the events of a type (runtime/live/core/routes.py); a type has up to four. For a block and a route

    y   some event of the block satisfies the condition
    n   none does
    u   the publisher did not know the condition when it sent the block

A reader of a route receives the blocks with y or u, and checks by the number of the previous block that none is missing. As
text, marks are `y3 n-1 u7 u7`: the letter, and the number of the last block before this one that is not n on that route (-1:
none). An empty text stands for a block of unknown routes: u, and the previous block is the number less one.

Takes: letters; the types of a stream, and by type the route. Gives: marks as text, and back; whether a block is wanted. Never:
reads events; rejects a block because its publisher did not know the route (u).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from fairlead.dataclass import dataclass

if TYPE_CHECKING:
    from fairlead.transport.log.blocks.block import Block


MIXED = "=mixed"
"""Instead of a type: the block has events of several types. No type has this name."""


@dataclass(frozen=True)
class Only:
    """`types`: those that are read; mixed blocks always are. `routes`: by type, the number of the route; types without one are
    read completely."""

    types: tuple[str, ...]
    routes: Mapping[str, int] = field(default_factory=dict)

    def wants(self, block: Block) -> bool:
        route = self.routes.get(block.type)
        return block.type == MIXED or (block.type in self.types and (route is None or block.letters[route] != "n"))


ROUTES = 4
UNKNOWN = "u" * ROUTES
MARKS = re.compile(r"[ynu]-?\d{1,18}( [ynu]-?\d{1,18}){3}")


def letters_of(marks: str) -> str:
    return "".join(each[0] for each in marks.split(" ")) if marks else UNKNOWN


def before_of(marks: str) -> tuple[int, ...]:
    """By route, the number of the previous block; empty if there are no marks."""
    return tuple(int(each[1:]) for each in marks.split(" ")) if marks else ()


def is_marks(text: str) -> bool:
    return not text or MARKS.fullmatch(text) is not None


class Standing:
    """The last block of one source on each route. Begins empty, or after a block (`passed`)."""

    def __init__(self) -> None:
        self._last = [-1] * ROUTES

    def marks(self, letters: str, number: int) -> str:
        """The marks of the next block, which has this number."""
        if letters == UNKNOWN and all(each == number - 1 for each in self._last):
            return ""
        return " ".join(f"{letter}{last}" for letter, last in zip(letters, self._last, strict=True))

    def passed(self, marks: str, number: int) -> None:
        """Records that this block is stored."""
        before = before_of(marks) or self._last
        self._last = [was if letter == "n" else number for letter, was in zip(letters_of(marks), before, strict=True)]
