"""What a user of the policy may ask of a NATS server: exactly what the client asks.

    publish      append blocks under its sources, and look up the last of them; read declarations and routes
    subscribe    read the streams of its topics and of their merged streams; its own records and leases; origins
    emit         append derived blocks of these types, which have subjects of their own (names.py), and look up the last of them
    gateway      all of it, for every topic; no deletion, purge or change of a stream, except of the states that it saves
    manage       everything: no list

Users that manage, and gateways, are in the account that has the streams. Every other user is in an account of its own, and what
it may ask is forwarded from there, request by request (server_config.py). A request that fits two of the lines would be
forwarded twice, so no two lines of a user have a subject in common.

Streams and tables are created by a user that manages (`fairlead rights apply`). Where a server has no means for a line of the
policy, `notes_of` says so.

Takes: a user, the topics of the policy. Gives: lists of subjects, and notes. Never: grants more than a line says; does I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import combinations

from fairlead.dataclass import dataclass
from fairlead.model.events.types import HEARTBEAT, MAIN
from fairlead.runtime.live.core.stream_merge import PULSE
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
from fairlead.runtime.rights.policy import Grant, Policy, PolicyUser
from fairlead.transport.log.blocks.block_filter import MIXED
from fairlead.transport.log.names import (
    SINKS,
    derived_subjects,
    lease_key,
    merged_stream,
    source_subjects,
    topic_stream,
    wake_subjects,
)
from fairlead.transport.log.trims import TABLE as TRIMS

API = "$JS.API"
TABLES = (TYPES, ROUTES, ORIGINS, LEASES, RECORDS, ACKNOWLEDGEMENTS, RECEIPTS, LINEAGES, TRIMS, KEPT, REJECTED, SINKS)
SUBSETS_MAX = 4
"""Topics of which every set may be read together: fifteen sets. Of more topics, those one by one and all together; for that
the first two, three and so on in the order of their names, of which the stream of all is made (names.merged_sources)."""


@dataclass(frozen=True)
class Allowed:
    """`requests`: what it may publish, and ask; None is everything. `streamed`: those of them that have several answers.
    `announcements`: what it may listen to, beside its inbox."""

    requests: tuple[str, ...] | None
    streamed: frozenset[str] = frozenset()
    announcements: tuple[str, ...] = ()


def is_inside(user: PolicyUser) -> bool:
    """Whether the user is in the account that has the streams: nothing there can be kept from it."""
    return user.manage or user.gateway


def allowed(user: PolicyUser, topics: Collection[str]) -> Allowed:
    """`topics`: all that the policy names."""
    if user.manage:
        return Allowed(None)
    if user.gateway:
        return Allowed(GATEWAY)
    found = dict.fromkeys(
        [
            *_everybody(),
            *_publishing(user),
            *_beating(user, topics),
            *_emitting(user),
            *_reading(user),
            *_owning(user),
            *_declaring(user),
        ]
    )
    streams = [_stream(each) for each in topic_sets(user)]
    direct = frozenset(f"{API}.DIRECT.GET.{each}" for each in streams)
    return Allowed(tuple(found), direct, tuple(wake_subjects(each) for each in streams))


def topics_of(policy: Policy) -> list[str]:
    """The topics that a policy names, and the one of types without a topic."""
    users = policy.users.values()
    return sorted({MAIN, *(each.topic for user in users for each in (*user.publish, *user.emit, *user.subscribe))})


def inbox_of(user: PolicyUser) -> str:
    """The beginning of its inboxes, which the client takes from its credentials: others cannot listen there."""
    return f"_INBOX.{owner_of(user)}"


def owner_of(user: PolicyUser) -> str:
    """The word for it in subjects, which the client takes from its credentials, too."""
    return user.nkey or user.name


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


def _sources(user: PolicyUser) -> list[str]:
    return [source_name(each) for each in user.sources if not each.endswith("*")]


def _publishing(user: PolicyUser) -> Iterator[str]:
    """Heartbeats of a topic are a right of their own (`_beating`), which a right to all types of it includes."""
    for source in _sources(user):
        for topic, type in _widest(user.publish):
            if type != HEARTBEAT.name:
                yield source_subjects(topic, source, type)
                yield from _last_of(topic, source_subjects(topic, source))


def _widest(grants: Iterable[Grant]) -> list[Grant]:
    """Without types of topics that are granted as a whole."""
    whole = {each.topic for each in grants if each.type is None}
    return [each for each in grants if each.type is None or each.topic not in whole]


def _beating(user: PolicyUser, topics: Collection[str]) -> Iterator[str]:
    """Heartbeats of every topic of the policy, except those that the user publishes as a whole."""
    if not user.heartbeat:
        return
    whole = {each.topic for each in user.publish if each.type is None}
    for topic, source in ((topic, source) for topic in sorted({*topics} - whole) for source in _sources(user)):
        yield source_subjects(topic, source, HEARTBEAT.name)
        yield from _last_of(topic, source_subjects(topic, source))
    for topic in sorted({each.topic for each in user.subscribe if each.type is None}):
        yield source_subjects(topic, PULSE, HEARTBEAT.name)


def _emitting(user: PolicyUser) -> Iterator[str]:
    for topic, type in _widest(user.emit):
        yield derived_subjects(topic, type)
        yield from _last_of(topic, derived_subjects(topic, type))


def _last_of(topic: str, subjects: str) -> Iterator[str]:
    """How a source continues its numbers: by its own last block, which names no other."""
    stream = topic_stream(topic)
    yield f"{API}.STREAM.INFO.{stream}"
    yield f"{API}.DIRECT.GET.{stream}.{subjects}"


def _reading(user: PolicyUser) -> Iterator[str]:
    """Without consumers: who may make one may have the server send stored messages to any subject of the account."""
    for stream in (_stream(each) for each in topic_sets(user)):
        yield f"{API}.STREAM.INFO.{stream}"
        yield f"{API}.STREAM.MSG.GET.{stream}"
        yield f"{API}.DIRECT.GET.{stream}"


def _stream(topics: tuple[str, ...]) -> str:
    return topic_stream(topics[0]) if len(topics) == 1 else merged_stream(topics)


def topic_sets(user: PolicyUser) -> list[tuple[str, ...]]:
    """The sets of topics that the user may read as one stream, each sorted, short ones first."""
    topics = sorted({each.topic for each in user.subscribe if each.type is None})
    if len(topics) <= SUBSETS_MAX:
        return [each for count in range(1, len(topics) + 1) for each in combinations(topics, count)]
    return [*((each,) for each in topics), *(tuple(topics[:count]) for count in range(2, len(topics) + 1))]


def _owning(user: PolicyUser) -> Iterator[str]:
    if not topic_sets(user):
        return
    for table in (ORIGINS, LEASES, RECORDS, ACKNOWLEDGEMENTS, RECEIPTS, SINKS):
        yield f"{API}.STREAM.INFO.KV_{table}"
        yield f"{API}.STREAM.MSG.GET.KV_{table}"
    yield f"$KV.{ORIGINS}.*"
    yield f"$KV.{LEASES}.{lease_key(owner_of(user), '*')}"
    for name in (each for each in user.names if not each.endswith("*")):
        for table in (RECORDS, ACKNOWLEDGEMENTS, RECEIPTS, SINKS):
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
