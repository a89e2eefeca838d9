"""Where the durable subscribers of a log resume: from the newest snapshot that has no more deliveries than they acknowledged,
or from the origin of their lineage.

What is before that can be trimmed. So the snapshot has to stay, although there are newer ones: retention marks it in its list
before it trims (`hold`), and whoever saves later ones keeps what is marked (subscriber/snapshots.py). The mark is a new
revision of the list, so somebody who is about to replace an older one is refused, and looks again. Marks stay until the next
trimming finds others: a subscriber that acknowledges more in the meantime has newer snapshots, and lacks nothing with this one.

Takes: a log. Gives: places in its streams, and the snapshots that they are the places of. Never: creates a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fairlead.dataclass import dataclass
from fairlead.model.events.types import HEARTBEAT
from fairlead.runtime.live.core.lineage import head_of
from fairlead.runtime.live.core.stream_groups import Origin, places_from_json
from fairlead.runtime.live.subscriber.leading_lineage import TABLE as ORIGINS
from fairlead.runtime.live.subscriber.leading_lineage import base_key, leading_origin
from fairlead.runtime.live.subscriber.record import TABLE as SUBSCRIBERS
from fairlead.runtime.live.subscriber.record import groups_of_name
from fairlead.runtime.live.subscriber.snapshots import TABLE, snapshot_list, snapshot_lists, state_of
from fairlead.transport.log.blocks.block import INDEX_BITS
from fairlead.transport.log.blocks.block_filter import Only
from fairlead.transport.log.entry_values import unreadable
from fairlead.transport.log.names import TYPES, token
from fairlead.transport.log.protocol import Conflict, Log, Stream


class ResumePoint(NamedTuple):
    """`places`: in each stream of the lineage, the sequence after which it reads. `held`: the list and the steps of the
    snapshot; None: the origin."""

    places: Sequence[int]
    held: tuple[str, int] | None = None


@dataclass(frozen=True)
class ResumePoints:
    """`places`: by the topics of a stream and durable subscriber, the sequence after which it reads there when it resumes, or
    the last of the stream if nothing that it reads is after that. `held`: by list, the steps of the snapshots."""

    places: Mapping[tuple[tuple[str, ...], str], int]
    held: Mapping[str, tuple[int, ...]]

    async def hold(self, log: Log) -> bool:
        """Marks the snapshots. False if one of them is not listed any more: then look again."""
        for key, steps in sorted(self.held.items()):
            while True:
                told = await snapshot_list(log, key)
                if not {*steps} <= {each for each, _ in told.snapshots}:
                    return False
                joined = [each for each in told.held if each > steps[-1]]  # it may not be recorded yet who needs these
                if told.held == (*steps, *joined):
                    break
                try:
                    await log.put(TABLE, key, told.holding((*steps, *joined)).to_bytes(), told.revision)
                except Conflict:
                    continue  # somebody has saved another snapshot
                break
        return True


async def resume_points(log: Log, streams: Mapping[tuple[str, ...], Stream]) -> ResumePoints:
    """The place is 0 in others than these streams. Users write records: no stream is created because one names it, and types
    that are not declared are not looked for."""
    declared = {*await log.keys(TYPES)}
    places: dict[tuple[tuple[str, ...], str], int] = {}
    held: dict[str, set[int]] = {}
    for name in await log.keys(SUBSCRIBERS):
        for key, told in (await groups_of_name(log, name)).items():
            points = await _points(log, key, told)
            for list_key, steps in (each.held for each in points if each.held is not None):
                held.setdefault(list_key, set()).add(steps)
            for part, at in zip(told["parts"], map(min, *(each.places for each in points), points[0].places), strict=True):
                topics = tuple(sorted(part["topics"]))
                types = [each for each in dict.fromkeys(part["types"]) if token(each) in declared]
                only, stream = Only((*types, HEARTBEAT.name), told.get("routes", {})), streams.get(topics)
                if stream is None:
                    at = 0
                elif await log.last(stream, only) <= at:
                    at = await log.last(stream)
                places[topics, name] = min(at, places.get((topics, name), at))
    return ResumePoints(places, {key: tuple(sorted(each)) for key, each in held.items()})


async def _points(log: Log, key: str, told: Mapping[str, Any]) -> list[ResumePoint]:
    """Where a group resumes; if it also stores what another lineage derives, where that one does, too."""
    origin, silent = places_from_json(told["origin"]), told["silent_until"]
    border = None if silent is None or told["count"] is not None else sum(places_from_json(silent))
    stores = bool(told.get("emits"))
    reports = bool(told.get("reports"))
    mine = await _newest(log, snapshot_lists(key, origin, whole=stores), origin, told["count"], border, reports=reports)
    leading = await leading_origin(log, key) if stores else None
    if leading is None or leading == origin:
        return [mine]
    if len(leading) != len(origin):
        raise unreadable(ORIGINS, base_key(key))
    return [mine, await _newest(log, snapshot_lists(base_key(key), leading, whole=True), leading, None, None)]


async def _newest(
    log: Log, lists: Iterable[str], origin: Origin, count_max: int | None, border: int | None, *, reports: bool = False
) -> ResumePoint:
    """The newest snapshot that a lineage may resume from, or its origin. `reports`: its subscriber gets reports, and may have
    to repeat those after the last of `count_max` deliveries (`Snapshots.begin`)."""
    listed: list[tuple[int, int, str]] = []
    for each in lists:
        for steps, count in (await snapshot_list(log, each)).snapshots:
            if (count_max is None or count <= count_max) and (border is None or steps <= border):
                listed.append((steps, count, each))
    for steps, count, each in sorted(listed, reverse=True):
        repeats = reports and count == count_max
        if len(origin) == 1 and not repeats:
            return ResumePoint([steps], (each, steps))
        try:
            head = head_of(await state_of(log, each, steps) or b"")
        except ValueError:
            continue
        found = [strand["after"] for strand in head["strands"]]
        if len(found) == len(origin) and not (repeats and head.get("verdicts")):
            return ResumePoint(found, (each, steps))
    return ResumePoint([max(0, (each >> INDEX_BITS) - 1) for each in origin])
