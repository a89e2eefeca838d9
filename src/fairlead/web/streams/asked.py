"""A listener's request: the query of a stream.

Takes: a request. Gives: `ListenerQuery`. Never: opens anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from aiohttp import web

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.runtime.live.subscriber.request import Early, Start

WINDOW, WINDOW_MAX = 1000, 20_000
FORMATS = ("json", "cloudevents")
EARLY: Mapping[str, Early] = {"false": False, "true": True, "final": "final"}


@dataclass(frozen=True)
class ListenerQuery:
    """`after`: the id of the last delivery that the listener has received."""

    name: str
    rules: str | None
    after: str | None
    cloudevents: bool
    window: int
    early: Early

    @classmethod
    def of(cls, request: web.Request) -> ListenerQuery:
        query = request.query
        kind = query.get("format") or ("cloudevents" if "cloudevents" in request.headers.get("Accept", "") else "json")
        if kind not in FORMATS:
            raise UsageError("A274", f"the format is {kind!r}", f"use one of {', '.join(FORMATS)}")
        return cls(
            request.match_info["name"],
            query.get("rules"),
            request.headers.get("Last-Event-ID") or query.get("after"),
            kind == "cloudevents",
            _window(query.get("window")),
            _early(query.get("early", "false")),
        )


def start_of(text: object) -> Start:
    """A word, a position or a time; the subscription checks which of them are valid (A251)."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    if not isinstance(text, str):
        raise UsageError("A251", f"start is {text!r}", "use 'new', 'earliest', 'snapshot', a position or a time")
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def _early(text: str) -> Early:
    if text not in EARLY:
        raise UsageError("A274", f"early is {text!r}", f"use one of {', '.join(EARLY)}")
    return EARLY[text]


def _window(text: str | None) -> int:
    if text is None:
        return WINDOW
    if text.isascii() and text.isdigit() and 1 <= int(text) <= WINDOW_MAX:
        return int(text)
    raise UsageError("A274", f"the window is {text!r}", f"use a number from 1 to {WINDOW_MAX:,}")
