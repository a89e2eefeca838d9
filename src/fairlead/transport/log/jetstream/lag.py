"""How far merged streams are behind what they are merged of, as the server tells it.

A server says of each source of a stream how many blocks it has yet to take from it. A source may be merged itself, and then
lacks blocks as well: the whole way counts.

Takes: what the server says of merged streams. Gives: for each, the blocks that it lacks. Never: asks the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nats.js.api import StreamInfo

from fairlead.transport.log.protocol import MergeLag


def behind_of(merged: Iterable[StreamInfo]) -> list[MergeLag]:
    told = {each.config.name or "": each for each in merged}
    return [MergeLag(name, types_of(each), _blocks(name, told)) for name, each in sorted(told.items())]


def types_of(told: StreamInfo) -> tuple[str, ...]:
    return tuple((told.config.metadata or {}).get("types", "").split())


def _blocks(name: str, told: Mapping[str, StreamInfo]) -> int:
    sources = (told[name].sources or ()) if name in told else ()
    return sum((each.lag or 0) + _blocks(each.name, told) for each in sources)
