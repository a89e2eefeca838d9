"""Names in a log: streams, subjects, sources and keys.

Takes: names of types, sources and subscribers. Gives: names that every server accepts, equal for equal input. Never: does I/O.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from fairlead.errors import UsageError
from fairlead.transport.log.block_filter import ROUTES

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MERGED = "FL_M_"


def token(name: str) -> str:
    """A type's name, in any script, as a word of a subject, a key or a stream's name."""
    return "".join(each if each.isascii() and (each.isalnum() or each == "_") else f"={each.encode().hex()}" for each in name)


def checked(name: str, what: str) -> str:
    """Checks a name that a user chose for a source or a subscriber."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        fix = "use up to 64 letters, digits, - and _"
        raise UsageError("A240", f"{name!r} is not a valid name of a {what}", fix)
    return name


def type_stream(name: str) -> str:
    return f"FL_T_{token(name)}"


def type_subjects(name: str) -> str:
    return f"fl.t.{token(name)}.>"


def source_subjects(type_name: str, source: str) -> str:
    return f"fl.t.{token(type_name)}.{source}.>"


def unmarked_subject(type_name: str, source: str) -> str:
    """The subject of blocks from versions without letters."""
    return f"fl.t.{token(type_name)}.{source}"


def subject(type_name: str, source: str, letters: str) -> str:
    """The subject of a block. `letters`: by route (block_filter.py), each a word of its own, so that readers can filter by one
    of them."""
    return f"fl.t.{token(type_name)}.{source}.{'.'.join(letters)}"


def source_of(found: str) -> str:
    """The source of a subject, in both forms."""
    return found.split(".")[3]


def route_subjects(type_name: str, route: int) -> list[str]:
    """The subjects of a type's blocks that a route includes."""
    words = [["*"] * route + [letter] + ["*"] * (ROUTES - route - 1) for letter in "yu"]
    return [*(f"fl.t.{token(type_name)}.*.{'.'.join(each)}" for each in words), unmarked_subject(type_name, "*")]


def merged_stream(types: Iterable[str]) -> str:
    """The name of the merged stream of these types, in the order of their names, and heartbeats."""
    joined = "\n".join(sorted(types))
    return f"{MERGED}{hashlib.sha256(joined.encode()).hexdigest()[:16]}"


def merged_sources(types: Iterable[str], heartbeat: str) -> tuple[str, str]:
    """The two sources of the merged stream: the stream of all types but the last, and that of the last. So the order of the
    first types is the same in every stream that has them. Heartbeats come first."""
    *before, last = sorted(types)
    return merged_stream(before) if before else type_stream(heartbeat), type_stream(last)
