"""Which numbers of a source are stored, also when they arrive out of order: the largest one, and the gaps before it.

A number above the largest one is new, and so is one in a gap. Every other number is stored. If a block skips many numbers
between two of its own, there are too many gaps to remember: instead the block is remembered as a run, with a digest of its
numbers. Then the same numbers together are stored ones, and nobody can tell what others in the run are. The same holds for
numbers before the oldest gap that is remembered.

The text form stands in the last block of a source, so every process that continues the source knows the same.

Takes: increasing numbers that are stored. Gives: which others are new, or unknown; a text. Never: calls a number
repeated that was not stored, or remembers more than `SPANS_MAX` gaps and runs.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from fairlead.dataclass import dataclass

SPANS_MAX = 64
"""A client that sends over eight connections, some requests each, has fewer gaps at a time. A source that numbers events across
types has one for each of its requests. As text they have up to 1,000 characters as long as numbers skip less than 2**20."""
INNER_MAX = 8
"""Gaps within a block that are remembered one by one."""
FORM = re.compile(r"([0-9a-f]{1,16})\.([0-9a-f]{1,16})((?:\.[0-9a-f]{1,16}-[0-9a-f]{1,16}(?:-[0-9a-f]{10})?)*)")


class NumberSpan(NamedTuple):
    """Numbers from `low` to `high`: none of them is stored, or (with a digest) some are."""

    low: int
    high: int
    digest: str = ""


class Unordered(Exception):
    """Of a number, nobody can tell whether it is stored."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True)
class StoredNumbers:
    """`next`: the number after the largest stored one. `floor`: before it, gaps have been forgotten. `spans`: gaps and runs,
    increasing, all from `floor` on and below `next`."""

    next: int = 0
    floor: int = 0
    spans: tuple[NumberSpan, ...] = ()

    def new_of(self, numbers: Sequence[int]) -> list[int]:
        """Of increasing numbers, the indexes of those that are not stored. Raises Unordered."""
        found: list[int] = []
        start = bisect_left(numbers, self.floor)
        if start:
            raise Unordered(numbers[0])
        for span in self.spans:
            low, high = bisect_left(numbers, span.low), bisect_right(numbers, span.high)
            if not span.digest:
                found += range(low, high)
            elif low < high and digest_of(numbers[low:high]) != span.digest:
                raise Unordered(numbers[low])
        return [*found, *range(bisect_left(numbers, self.next), len(numbers))]

    def with_stored(self, numbers: Sequence[int]) -> StoredNumbers:
        """After increasing new numbers, of one block."""
        spans: list[NumberSpan] = []
        for span in self.spans:
            mine = numbers[bisect_left(numbers, span.low) : bisect_right(numbers, span.high)]
            spans += [span] if span.digest or not mine else _left_of(span, mine)
        above = numbers[bisect_left(numbers, self.next) :]
        end = above[-1] + 1 if above else self.next
        if above:
            spans += _left_of(NumberSpan(self.next, end - 1), above)
        forgotten = spans[:-SPANS_MAX]
        floor = forgotten[-1].high + 1 if forgotten else self.floor
        return StoredNumbers(end, floor, tuple(spans[-SPANS_MAX:]))

    def text(self) -> str:
        """Hexadecimal: next, floor, then for every span from the last one on its distance from what follows it, its length less
        one, and its digest."""
        words, after = [f"{self.next:x}.{self.floor:x}"], self.next
        for low, high, digest in reversed(self.spans):
            words.append(f"{after - high:x}-{high - low:x}{'-' if digest else ''}{digest}")
            after = low
        return ".".join(words)

    @classmethod
    def of(cls, text: str) -> StoredNumbers | None:
        """None if the text has another form, or contradicts itself."""
        found = FORM.fullmatch(text)
        if found is None:
            return None
        after = end = int(found[1], 16)
        floor, spans = int(found[2], 16), list[NumberSpan]()
        for word in found[3].split(".")[1:]:
            distance, length, *digest = word.split("-")
            high = after - int(distance, 16)
            after = high - int(length, 16)
            if high >= (spans[-1].low if spans else end) or after < floor:
                return None
            spans.append(NumberSpan(after, high, "".join(digest)))
        return cls(end, floor, tuple(reversed(spans))) if floor <= end and len(spans) <= SPANS_MAX else None


def digest_of(numbers: Sequence[int]) -> str:
    return hashlib.sha256(" ".join(map(str, numbers)).encode()).hexdigest()[:10]


def _left_of(gap: NumberSpan, numbers: Sequence[int]) -> Iterator[NumberSpan]:
    """What some of its numbers leave of a gap."""
    if gap.low < numbers[0]:
        yield NumberSpan(gap.low, numbers[0] - 1)
    inner = [NumberSpan(before + 1, after - 1) for before, after in pairwise(numbers) if after > before + 1]
    if len(inner) <= INNER_MAX:
        yield from inner
    else:
        yield NumberSpan(numbers[0], numbers[-1], digest_of(numbers))
    if numbers[-1] < gap.high:
        yield NumberSpan(numbers[-1] + 1, gap.high)
