"""The lag of merged streams, as the server reports it.

A server reports for each source of a stream how many blocks the stream has yet to copy. A source may itself be merged and lag
too: the lags along the whole path add up.

Takes: the server's reports on merged streams. Gives: for each, the blocks that it lacks. Never: queries the server.
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
