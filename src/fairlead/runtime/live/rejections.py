"""The blocks of a topic that every reader rejects, for operators: how many, and which were the last.

The topic is read once, from its beginning; what was found is a table entry, from which the next look continues. So a look costs
what was stored since. It ends after `BYTES_MAX` bytes: then the counts are those up to `checked`, and the next look continues.

Takes: a log and the declared types. Gives: counts by code, and the last few with place and source. Never: needs permission to
write: without it, every look begins at the same place; trusts an entry of another stream.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict, field
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.errors import FairleadError, StateError
from fairlead.model.events.types import Catalogue
from fairlead.transport.log.blocks.mixed_block import wanted_events
from fairlead.transport.log.names import token
from fairlead.transport.log.protocol import Log, Stored
from fairlead.transport.log.signed_log import ignored

TABLE = "FL_REJECTED"
BYTES_MAX = 64_000_000
"""About a second of reading."""
LAST = 5


@dataclass(frozen=True)
class RejectedBlock:
    """`place`: the sequence in the topic's stream. `source`: by its subject."""

    code: str
    place: int
    source: str


@dataclass(frozen=True)
class Rejections:
    """`checked`: the sequence up to which the topic was looked at. `counts`: rejected blocks by code; of a block whose events
    are rejected in part, the code counts once."""

    checked: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    last: tuple[RejectedBlock, ...] = ()

    @property
    def count(self) -> int:
        return sum(self.counts.values())


async def rejections_of(log: Log, topic: str, catalogue: Catalogue, bytes_max: int = BYTES_MAX) -> Rejections:
    stream = await log.open_topics([topic])
    known, state = await _known(log, topic, stream.made), await log.state(stream)
    end, begin = state.last, max(known.checked, state.first - 1)
    if begin >= end:
        return known
    types = {each.name: each for each in catalogue if not each.is_union}
    counts, last, checked, size = Counter(known.counts), deque(known.last, LAST), begin, 0
    async with aclosing(log.read(stream, checked)) as reading:  # type: ignore[type-var]
        async for some in reading:
            for each in some:
                for code in _codes(each, types):
                    counts[code] += 1
                    last.append(RejectedBlock(code, each.sequence, each.block.source))
                checked, size = each.sequence, size + len(each.block.payload)
            if checked >= end or size > bytes_max:
                break
    found = Rejections(checked, dict(sorted(counts.items())), tuple(last))
    with suppress(FairleadError):
        await log.put(TABLE, token(topic), json.dumps({"made": stream.made} | asdict(found)).encode())
    return found


def _codes(stored: Stored, types: Mapping[str, Any]) -> set[str]:
    if stored.block.rejected:
        return {stored.block.rejected}
    return {each.code for each in wanted_events(stored.block, types).rejected}


async def _known(log: Log, topic: str, made: str) -> Rejections:
    try:
        entry = await log.get(TABLE, token(topic))
        told = {} if entry is None else json.loads(entry.value)
        if told and told["made"] == made:
            last = tuple(RejectedBlock(str(each["code"]), int(each["place"]), str(each["source"])) for each in told["last"])
            return Rejections(int(told["checked"]), {str(code): int(count) for code, count in told["counts"].items()}, last)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # an unreadable entry is made again
    except StateError as error:
        ignored(error)
    return Rejections()
