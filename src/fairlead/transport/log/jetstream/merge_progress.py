"""Whether a merged stream has stopped taking up what one of its sources holds, though the server has heard of that source.

A server may be sent a sign of life of a source again and again and yet take up nothing of it. How much a merged stream has of
each source it does not say, but how much it has of a type: the last one of its types is a source of its own, and the rest comes
from the other. That takes a look at the subjects, so it is asked only where blocks are missing.

Takes: what the server says of a stream, look by look. Gives: whether a source stands still. Never: changes anything.
"""

from __future__ import annotations

from nats.js import JetStreamContext
from nats.js.api import StreamInfo

from fairlead.transport.log.jetstream.lag import types_of
from fairlead.transport.log.names import type_stream, type_subjects


class MergeProgress:
    """Of merged streams, from one look to the next."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js
        self._lacking: dict[str, dict[str, int]] = {}
        """By stream, the sources that had more than it at the last look, and how many blocks it had of each."""

    async def stands_still(self, told: StreamInfo) -> bool:
        """Whether the stream has taken up nothing of a source since the look before, at which that had more already."""
        name, types = told.config.name or "", types_of(told)
        sources = [each.name for each in told.sources or () if types]
        held = {each: (await self._js.stream_info(each)).state.last_seq for each in sources}
        if not sources or told.state.last_seq >= sum(held.values()):
            self._lacking.pop(name, None)
            return False
        found = await self._js.stream_info(name, subjects_filter=type_subjects(types[-1]))
        of_last = sum((found.state.subjects or {}).values())
        has = {each: of_last if each == type_stream(types[-1]) else found.state.last_seq - of_last for each in sources}
        lacking, before = {each: has[each] for each in sources if has[each] < held[each]}, self._lacking.get(name, {})
        self._lacking[name] = lacking
        return any(before.get(each) == count for each, count in lacking.items())
