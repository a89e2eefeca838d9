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
MERGED = "FL_M_"
LEASES = "FL_LEASES"
"""The table of leases. Its entries may go when `LEASES_KEPT_SECONDS` have passed."""
TRIMS = "FL_TRIMS"
"""The table of what was trimmed (trims.py)."""
LEASES_KEPT_SECONDS = 8 * 24 * 3600
"""A day more than the longest lease."""
TRACELESS = (LEASES, TRIMS)
"""Tables with an entry for each subscriber, or each source, that ever was: nothing is left of removed ones after
`REMOVED_SECONDS`, the shortest time for which a server keeps a message."""
REMOVED_SECONDS = 1


def token(name: str) -> str:
    """The name of a type or a topic, in any script, as a word of a subject, a key or a stream's name."""
    return "".join(each if each.isascii() and (each.isalnum() or each == "_") else f"={each.encode().hex()}" for each in name)


def checked(name: str, what: str) -> str:
    """Checks a name that a user chose for a source or a subscriber."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        fix = "use up to 64 letters, digits, - and _"
        raise UsageError("A240", f"{name!r} is not a valid name of a {what}", fix)
    return name


def topic_stream(name: str) -> str:
    return f"FL_TOPIC_{token(name)}"


def topic_subjects(name: str) -> str:
    return f"fl.e.{token(name)}.>"


def type_subjects(type_name: str, topic: str = "*") -> str:
    """The subjects of a type's blocks; `topic`: its name as a word, or any."""
    return f"fl.e.{topic}.{_lane(type_name)}.>"


def source_subjects(topic: str, source: str | None, type_name: str | None = None) -> str:
    """The subjects of the blocks of a source, or of any, in a topic, of one type or of any."""
    return f"fl.e.{token(topic)}.{'*' if type_name is None else _lane(type_name)}.{source or '*'}.>"


def subject(topic: str, type_name: str, source: str, letters: str) -> str:
    """The subject of a block. `letters`: by route (block_filter.py), each a word of its own, so that readers can filter by one
    of them."""
    return f"fl.e.{token(topic)}.{_lane(type_name)}.{source}.{'.'.join(letters)}"


def stream_of_subject(found: str) -> str:
    """The stream of the topic of a subject."""
    return f"FL_TOPIC_{found.split('.')[2]}"


def source_of(found: str) -> str:
    """The source of a subject."""
    return found.split(".")[4]


def route_subjects(type_name: str, route: int) -> list[str]:
    """The subjects of a type's blocks that a route includes."""
    words = [["*"] * route + [letter] + ["*"] * (ROUTES - route - 1) for letter in "yu"]
    return [f"fl.e.*.{_lane(type_name)}.*.{'.'.join(each)}" for each in words]


def _lane(type_name: str) -> str:
    return type_name if type_name == MIXED else token(type_name)


def merged_stream(topics: Iterable[str]) -> str:
    """The name of the merged stream of these topics, in the order of their names."""
    joined = "\n".join(sorted(topics))
    return f"{MERGED}{hashlib.sha256(joined.encode()).hexdigest()[:16]}"


def merged_sources(topics: Iterable[str]) -> tuple[str, str]:
    """The two sources of the merged stream: the stream of all topics but the last, and that of the last. So the order of the
    first topics is the same in every stream that has them."""
    *before, last = sorted(topics)
    return topic_stream(before[0]) if len(before) == 1 else merged_stream(before), topic_stream(last)
