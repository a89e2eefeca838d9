"""Names in a log: streams, subjects, sources and keys.

Takes: names of types, sources and subscribers. Gives: names that every server accepts, equal for equal input. Never: does I/O.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from fairlead.errors import UsageError
from fairlead.transport.log.blocks.block_filter import MIXED, ROUTES

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
TYPE_NAME = re.compile(r"[^\W\d]\w{0,199}")
"""Of a type that others read. With more letters, of a script of which each is nine in a subject, it does not fit into a line of
the server's protocol."""
TOPIC_MAX = 240
"""A server's stream has a name of up to 255 letters."""
MERGED = "FL_M_"
TYPES = "FL_TYPES"
"""The table of declarations, by type."""
LEASES = "FL_LEASES"
"""The table of leases. Its entries may go when `LEASES_KEPT_SECONDS` have passed."""
TRIMS = "FL_TRIMS"
"""The table of what was trimmed (trims.py)."""
TOPICS = "FL_TOPICS"
"""The table of what is kept: by topic how much, and merged streams that users need and may not create."""
SINKS = "FL_SINKS"
"""The table of streams on Spark that store what they find (runtime/spark/log/sink.py)."""
LEASES_KEPT_SECONDS = 8 * 24 * 3600
"""A day more than the longest lease."""
LINEAGES = "FL_LINEAGES"
"""The table of snapshots (runtime/live/subscriber/snapshots.py)."""
TRACELESS = (LEASES, TRIMS, LINEAGES)
"""Tables with an entry for each subscriber, source, or lineage that ever was: nothing is left of removed ones after
`REMOVED_SECONDS`, the shortest time for which a server keeps a message."""
REMOVED_SECONDS = 1
DERIVED = re.compile(r"e-[0-9a-f]{24}-[0-9a-f]{1,16}")
"""The sources of derived events: the digest of a subscription, and the origin of its lineage. No publisher has such a name."""
APART = "=e"
"""The word before such a source in a subject: a server that lets a user write under it lets it write as no publisher, and the
other way round."""


def token(name: str) -> str:
    """The name of a type or a topic, in any script, as a word of a subject, a key or a stream's name."""
    return "".join(each if each.isascii() and (each.isalnum() or each == "_") else f"={each.encode().hex()}" for each in name)


def checked(name: str, what: str) -> str:
    """Checks a name that a user chose for a source or a subscriber."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or is_derived(name):
        fix = "use up to 64 letters, digits, - and _"
        raise UsageError("A240", f"{name!r} is not a valid name of a {what}", fix)
    return name


def require_storable(type_name: str, topic: str) -> None:
    """Raises UsageError if others could not read a declaration of these names, or a server would have no stream for them."""
    if not TYPE_NAME.fullmatch(type_name):
        raise UsageError("A240", f"{type_name[:40]!r}… is too long for the name of a type", "use up to 200 letters")
    if len(token(topic)) > TOPIC_MAX:
        fix = f"use up to {TOPIC_MAX} letters, digits and _; each letter of another script counts as five to nine"
        raise UsageError("A240", f"{topic[:40]!r}… is too long for the name of a topic", fix)


def is_derived(source: str) -> bool:
    return DERIVED.fullmatch(source) is not None


def topic_stream(name: str) -> str:
    return f"FL_TOPIC_{token(name)}"


def topic_subjects(name: str) -> str:
    return f"fl.e.{token(name)}.>"


def type_subjects(type_name: str, topic: str = "*") -> str:
    """The subjects of a type's blocks; `topic`: its name as a word, or any."""
    return f"fl.e.{topic}.{_lane(type_name)}.>"


def source_subjects(topic: str, source: str | None, type_name: str | None = None, *, apart: bool = True) -> str:
    """The subjects of the blocks of a source, or of any, in a topic, of one type or of any."""
    lane = "*" if type_name is None else _lane(type_name)
    return f"fl.e.{token(topic)}.{lane}.{'*' if source is None else _source(source, apart)}.>"


def derived_subjects(topic: str, type_name: str | None = None) -> str:
    """The subjects of the derived events of a topic, of one type or of any, of all subscriptions."""
    return source_subjects(topic, APART, type_name)


def order_subjects(topic: str, source: str, type_name: str, *, apart: bool = True) -> str:
    """The subjects whose last block an append names: those of its source. A source of derived events has one type; if others
    are stored under its name, that is not its matter."""
    return source_subjects(topic, source, order_type(source, type_name) if apart else None, apart=apart)


def order_type(source: str, type_name: str) -> str | None:
    """The type whose blocks are counted in the order of a source; None: all."""
    return type_name if is_derived(source) else None


def subject(topic: str, type_name: str, source: str, letters: str, *, apart: bool = True) -> str:
    """The subject of a block. `letters`: by route (block_filter.py), each a word of its own, so that readers can filter by one
    of them. `apart`: derived events have subjects of their own; in topics of earlier releases they have not."""
    return f"fl.e.{token(topic)}.{_lane(type_name)}.{_source(source, apart)}.{'.'.join(letters)}"


def _source(source: str, apart: bool) -> str:
    return f"{APART}.{source}" if apart and is_derived(source) else source


def stream_of_subject(found: str) -> str:
    """The stream of the topic of a subject."""
    return f"FL_TOPIC_{found.split('.')[2]}"


def source_of(found: str) -> str:
    """The source of a subject; empty if it has none."""
    words = [*found.split(".")[4:6], ""]
    return words[1] if words[0] == APART else words[0]


def route_subjects(type_name: str, route: int) -> list[str]:
    """The subjects of a type's blocks that a route includes, and of derived ones, which are on no route."""
    words = [["*"] * route + [letter] + ["*"] * (ROUTES - route - 1) for letter in "yu"]
    before = f"fl.e.*.{_lane(type_name)}"
    return [*(f"{before}.*.{'.'.join(each)}" for each in words), f"{before}.{APART}.*{'.*' * ROUTES}"]


def wake_subjects(stream: str) -> str:
    """Where the server says that a stream has a new block, with its headers."""
    return f"fl.w.{stream}.>"


def _lane(type_name: str) -> str:
    return type_name if type_name == MIXED else token(type_name)


def merged_stream(topics: Iterable[str]) -> str:
    """The name of the merged stream of these topics, in the order of their names."""
    joined = "\n".join(sorted(topics))
    return f"{MERGED}{hashlib.sha256(joined.encode()).hexdigest()[:16]}"


def merged_streams_of(topics: Iterable[str]) -> list[str]:
    """The names of the merged streams of the first two of these topics, of the first three and so on: the stream of all, and
    those that it copies. In one pass: others decide how many topics they name."""
    first, *others = sorted(topics) or [""]
    digest, found = hashlib.sha256(first.encode()), []
    for each in others:
        digest.update(f"\n{each}".encode())
        found.append(f"{MERGED}{digest.hexdigest()[:16]}")
    return found


def merged_sources(topics: Iterable[str]) -> tuple[str, str]:
    """The two sources of the merged stream: the stream of all topics but the last, and that of the last. So the order of the
    first topics is the same in every stream that has them."""
    *before, last = sorted(topics)
    return topic_stream(before[0]) if len(before) == 1 else merged_stream(before), topic_stream(last)


def lease_key(owner: str, name: str) -> str:
    """The key of a lease: of those of a user, which only that user may write, or without one. They are not the key of what a
    sweep plans (runtime/live/stream_removal.py)."""
    return f"user.{owner}.{name}" if owner else name
