"""Matcher state as bytes: versioned, checked against damage, the same bytes for the same state.

Takes: nested dicts and lists of plain values. Gives: `fairlead-state <version> <sha256>` on a line, then canonical JSON.
Old versions stay readable: a change of the format raises VERSION and keeps a decoder and a fixture for the old one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from decimal import Decimal
from typing import Any

from fairlead.errors import StateError
from fairlead.model.event import Event
from fairlead.model.position import Position
from fairlead.model.types import Catalogue

MAGIC = b"fairlead-state"
VERSION = 1


def encode(content: dict[str, Any]) -> bytes:
    body = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    return b"%s %d %s\n%s" % (MAGIC, VERSION, hashlib.sha256(body).hexdigest().encode(), body)


def decode(dumped: bytes, plan_digest: str) -> dict[str, Any]:
    header, _, body = dumped.partition(b"\n")
    words = header.split(b" ")
    if len(words) != 3 or words[0] != MAGIC:
        raise StateError("S001", "these bytes are not a Fairlead state", fix="pass what Engine.dump() gave")
    if words[1] != b"%d" % VERSION:
        version = words[1].decode(errors="replace")
        raise StateError(
            "S002",
            f"the state has version {version}, this release reads {VERSION}",
            fix="load it with the release that wrote it",
        )
    if words[2] != hashlib.sha256(body).hexdigest().encode():
        raise StateError("S003", "the state is damaged: its digest does not fit", fix="take an earlier dump")
    content: dict[str, Any] = json.loads(body)
    if content["plan"] != plan_digest:
        raise StateError(
            "S004", "the state belongs to another plan", fix="compile the rule text it was made with, or start anew"
        )
    return content


def plain(value: Any) -> Any:
    """A canonical value as JSON holds it without loss."""
    match value:
        case float() if not math.isfinite(value):
            return {"float": str(value)}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": base64.b64encode(value).decode("ascii")}
    return value


def restored(value: Any) -> Any:
    match value:
        case {"float": text}:
            return float(text)
        case {"decimal": text}:
            return Decimal(text)
        case {"bytes": text}:
            return base64.b64decode(text)
    return value


def plain_event(event: Event) -> list[Any]:
    return [event.type, list(event.position), event.time, event.source, event.sequence, [plain(value) for value in event.row]]


def restored_event(content: list[Any], catalogue: Catalogue) -> Event:
    name, position, time, source, sequence, row = content
    return Event(catalogue[name], tuple(map(restored, row)), Position(*position), time, source, sequence)
