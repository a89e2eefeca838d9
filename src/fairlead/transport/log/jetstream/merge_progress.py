"""Whether a merged stream has stopped copying from one of its sources, though the server receives that source's heartbeats.

A server may receive heartbeats of a source and yet copy nothing from it. It does not report how much a merged stream has of
each source, but how much it has of each type: the last of its types is one source, and the others come from the other source.
This needs a list of subjects, so it is queried only if blocks are missing.

Takes: the server's reports on a stream, one per check. Gives: whether a source is stuck. Never: changes anything.
"""

from __future__ import annotations

from nats.js import JetStreamContext
from nats.js.api import StreamInfo

from fairlead.transport.log.jetstream.lag import types_of
from fairlead.transport.log.names import type_stream, type_subjects


class MergeProgress:
    """The progress of merged streams between checks."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js
        self._lacking: dict[str, dict[str, int]] = {}
        """By stream, the sources that had more blocks than it at the last check, and how many blocks it had of each."""

    async def stands_still(self, told: StreamInfo) -> bool:
        """Whether the stream has copied nothing from a source since the last check, when that source already had more."""
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
