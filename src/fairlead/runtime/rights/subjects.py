"""The subjects of a NATS server on which a user of the policy may publish and subscribe: exactly those that the client uses.

    publish      append blocks under its sources, and look up the last of them; read declarations and routes
    subscribe    read the streams of its topics and of their merged streams; its own records; leases and origins
    emit         append blocks of these types; their source follows from the rules
    gateway      all of it, for every topic; no deletion, purge or change of a stream, except of the states that it saves
    manage       everything: no list

Streams and tables are created by a user that manages (`fairlead rights apply`). Where a server has no means for a line of the
policy, `notes_of` says so.

Takes: a user. Gives: lists of subjects, and notes. Never: grants more than a line says; does I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from fairlead.dataclass import dataclass
from fairlead.model.events.types import HEARTBEAT
from fairlead.runtime.live.merged_streams import TABLE as LEASES
from fairlead.runtime.live.registry import TABLE as TYPES
from fairlead.runtime.live.rejections import TABLE as REJECTED
from fairlead.runtime.live.retention import TABLE as KEPT
from fairlead.runtime.live.route_table import TABLE as ROUTES
from fairlead.runtime.live.subscriber.leading_lineage import TABLE as ORIGINS
from fairlead.runtime.live.subscriber.record import ACKNOWLEDGEMENTS, RECEIPTS
from fairlead.runtime.live.subscriber.record import TABLE as RECORDS
from fairlead.runtime.live.subscriber.snapshots import STORE
from fairlead.runtime.live.subscriber.snapshots import TABLE as LINEAGES
from fairlead.runtime.numbered import source_name
from fairlead.runtime.rights.policy import PolicyUser
from fairlead.transport.log.blocks.block_filter import MIXED
from fairlead.transport.log.names import merged_stream, source_subjects, topic_stream
from fairlead.transport.log.trims import TABLE as TRIMS

API = "$JS.API"
TABLES = (TYPES, ROUTES, ORIGINS, LEASES, RECORDS, ACKNOWLEDGEMENTS, RECEIPTS, LINEAGES, TRIMS, KEPT, REJECTED)
SUBSETS_MAX = 4
"""Topics of which every set may be read together: fifteen sets. Of more topics, those one by one and all together."""


@dataclass(frozen=True)
class Allowed:
    """`publish`: None is everything."""

    publish: tuple[str, ...] | None
    deny: tuple[str, ...]
    subscribe: tuple[str, ...]


def allowed(user: PolicyUser) -> Allowed:
    inbox = f"{inbox_of(user)}.>"
    if user.manage:
        return Allowed(None, (), (">",))
    if user.gateway:
        return Allowed((*GATEWAY,), (), (inbox,))
    found = dict.fromkeys(
        [*_everybody(), *_publishing(user), *_emitting(user), *_reading(user), *_owning(user), *_declaring(user)]
    )
    denied = [] if user.heartbeat else [f"fl.e.*.{HEARTBEAT.name}.>"]
    return Allowed(tuple(found), tuple(denied), (inbox,))


def inbox_of(user: PolicyUser) -> str:
    """The beginning of its inboxes, which the client takes from its credentials: others cannot listen there."""
    return f"_INBOX.{user.nkey or user.name}"


GATEWAY = (
    "fl.e.>",
    "$KV.>",
    f"$O.{STORE}.>",
    *(f"{API}.STREAM.{each}.>" for each in ("INFO", "CREATE", "MSG.GET")),
    *(f"{API}.CONSUMER.{each}.>" for each in ("CREATE", "MSG.NEXT", "DELETE")),
    *(f"{API}.{each}" for each in ("STREAM.LIST", "STREAM.NAMES", f"STREAM.PURGE.OBJ_{STORE}")),
    f"{API}.DIRECT.GET.>",
)


def _everybody() -> Iterator[str]:
    for table in (TYPES, ROUTES, TRIMS):
        yield f"{API}.STREAM.INFO.KV_{table}"
        yield f"{API}.STREAM.MSG.GET.KV_{table}"


def _publishing(user: PolicyUser) -> Iterator[str]:
    for source in (source_name(each) for each in user.sources if not each.endswith("*")):
        for grant in user.publish:
            yield source_subjects(grant.topic, source, grant.type)
            yield from _last_of(grant.topic, source)
        if user.heartbeat:
            yield f"fl.e.*.{HEARTBEAT.name}.{source}.>"


def _emitting(user: PolicyUser) -> Iterator[str]:
    for grant in user.emit:
        yield source_subjects(grant.topic, None, grant.type)
        yield from _last_of(grant.topic, None, grant.type)


def _last_of(topic: str, source: str | None, type: str | None = None) -> Iterator[str]:
    """How a source continues its numbers: by its own last block, which names no other."""
    stream = topic_stream(topic)
    yield f"{API}.STREAM.INFO.{stream}"
    yield f"{API}.DIRECT.GET.{stream}.{source_subjects(topic, source, type)}"


def _reading(user: PolicyUser) -> Iterator[str]:
    for topics in topic_sets(user):
        stream = topic_stream(topics[0]) if len(topics) == 1 else merged_stream(topics)
        yield f"{API}.STREAM.INFO.{stream}"
        yield f"{API}.STREAM.MSG.GET.{stream}"
        yield f"{API}.CONSUMER.CREATE.{stream}"
        yield f"{API}.CONSUMER.CREATE.{stream}.>"
        yield f"{API}.CONSUMER.MSG.NEXT.{stream}.*"
        yield f"{API}.CONSUMER.DELETE.{stream}.*"
    if user.heartbeat and user.subscribe:
        yield f"fl.e.*.{HEARTBEAT.name}.*.>"


def topic_sets(user: PolicyUser) -> list[tuple[str, ...]]:
    """The sets of topics that the user may read as one stream, each sorted, short ones first."""
    topics = sorted({each.topic for each in user.subscribe if each.type is None})
    if len(topics) <= SUBSETS_MAX:
        return [each for count in range(1, len(topics) + 1) for each in combinations(topics, count)]
    return [*((each,) for each in topics), tuple(topics)]


def _owning(user: PolicyUser) -> Iterator[str]:
    if not topic_sets(user):
        return
    for table in (ORIGINS, LEASES, RECORDS, ACKNOWLEDGEMENTS, RECEIPTS):
        yield f"{API}.STREAM.INFO.KV_{table}"
        yield f"{API}.STREAM.MSG.GET.KV_{table}"
    for table in (ORIGINS, LEASES):
        yield f"$KV.{table}.*"
    for name in (each for each in user.names if not each.endswith("*")):
        for table in (RECORDS, ACKNOWLEDGEMENTS, RECEIPTS):
            yield f"$KV.{table}.{name}"


def _declaring(user: PolicyUser) -> Iterator[str]:
    if user.declare:
        yield f"$KV.{TYPES}.*"


def notes_of(user: PolicyUser) -> list[str]:
    """What a server does not enforce as the policy says it, or not at all, and what does."""
    found = []
    for grant in user.subscribe:
        if grant.type is not None and not user.manage:
            found.append(
                f"{user.name} may read the type {grant}, not its topic: a server cannot separate them, because blocks may hold "
                f"several types. Nothing is granted. Give the type a topic of its own, or let {user.name} use the gateway."
            )
    topics = {each.topic for each in user.publish if each.type is None}
    for topic in sorted({each.topic for each in user.publish if each.type is not None} - topics):
        several = [each for each in user.publish if each.topic == topic]
        if len(several) > 1:
            found.append(
                f"{user.name} may publish some types of {topic}: mixed blocks ({MIXED}) are refused, so it must wait for each "
                "type (wait=True), publish all types of the topic, or use the gateway."
            )
    for name in (*user.sources, *user.names):
        if name.endswith("*") and not user.manage:
            found.append(f"{user.name} owns names by the prefix {name}: only the gateway can tell. List the names.")
    return found
