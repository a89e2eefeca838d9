"""Groups of a subscriber beside retention: where they read, what is about to be trimmed there, and whether they can resume.

Takes: opened groups, and the record of their subscriber. Gives: places, risks, answers. Never: changes the log.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.errors import LogError
from fairlead.runtime.live.core.strand import StreamPlace
from fairlead.runtime.live.core.stream_groups import places_from_json
from fairlead.runtime.live.subscriber.group_task import OpenedGroup
from fairlead.runtime.live.subscriber.record import SubscriberRecord
from fairlead.runtime.live.subscriber.trim_check import TrimRisk, has_lost, trim_risk
from fairlead.transport.log.protocol import Log, Stream


def group_places(opened: OpenedGroup) -> list[tuple[Stream, StreamPlace]]:
    """Where the lineages of a group begin to read."""
    followers = [opened.follower, *([] if opened.beside is None else [opened.beside.follower])]
    return [pair for each in followers for pair in zip(opened.streams, each.lineage.places, strict=True)]


async def group_risk(log: Log, opened: OpenedGroup) -> TrimRisk:
    """The worst that can become of what the group needs."""
    return max([await trim_risk(log, stream, place) for stream, place in group_places(opened)])


async def resumes(log: Log, record: SubscriberRecord, groups: Iterable[OpenedGroup]) -> bool:
    """Whether the subscriber can resume, although blocks were trimmed that it was about to read: an equal one has read them,
    and has saved its state. Retention asks the same (retention.py), so what its routes leave out does not count."""
    try:
        for each in groups:
            saved = record.groups[each.key]
            silent = saved["silent_until"] if saved["count"] is None else None
            border = None if silent is None else places_from_json(silent)
            lineages = [await each.snapshots.resumed(saved["count"], border)]
            if each.beside is not None:
                lineages.append(await each.beside.snapshots.resumed(None, None))
            reads = [*zip(each.streams, each.group.sources, strict=True)]
            for read, place in (pair for one in lineages for pair in zip(reads, one.places, strict=True)):
                if await has_lost(log, *read, place, saved.get("routes")):
                    return False
    except LogError:
        return False
    return True
