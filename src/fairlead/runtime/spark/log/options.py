"""Spark's options for a log: texts, checked, and completed from the environment.

    url, user, password, token, nkey, ca, certificate, key, signing_keys     as in `fairlead.connect`
    types        names of event types, with commas between them; or
    rules        a text of rules, whose events are read; it may omit types that are declared
    heartbeats   true: include heartbeats even for a single type (several always include them)
    start        earliest, new, a position, or a time in ISO 8601
    position     the name of the column of positions
    partitions   the number of parallel reading tasks
    blocks       of a stream: the most blocks of a micro-batch; a block has up to 4096 events
    sink, into   of a sink (sink.py): its name; the type as which relations are stored

Takes: options from Spark. Gives: `LogOptions`. Never: connects.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime

from fairlead.dataclass import dataclass
from fairlead.errors import UnsupportedError, UsageError
from fairlead.transport.admission.problems import did_you_mean
from fairlead.transport.log.credentials import Credentials

ACCESS = tuple(each.name for each in fields(Credentials))
NAMES = ("url", *ACCESS, "types", "rules", "heartbeats", "start", "position", "partitions", "blocks", "sink", "into")
OF_SPARK = ("path", "checkpointlocation", "queryname", "outputmode")
"""Options that Spark sets, or that are meant for it."""


@dataclass(frozen=True)
class LogOptions:
    """`what`: rules as a text, or names of types."""

    url: str
    access: Credentials
    what: str | tuple[str, ...]
    heartbeats: bool
    start: str | int | datetime
    position: str
    partitions: int
    blocks: int | None
    sink: str | None
    into: str | None


def log_options(given: Mapping[str, str]) -> LogOptions:
    """Raises UsageError, UnsupportedError."""
    told = {name.lower(): value for name, value in given.items()}
    for name in told:
        if name not in NAMES and name not in OF_SPARK:
            fix = did_you_mean(name, NAMES) or f"there are {', '.join(NAMES)}"
            raise UsageError("A224", f"the log source has no option {name!r}", fix)
    access = Credentials(**{name: told[name] for name in ACCESS if name in told}).with_environment()
    return LogOptions(
        _url(told.get("url")),
        access,
        _what(told),
        _flag(told.get("heartbeats", "false")),
        _start(told.get("start", "earliest")),
        told.get("position", "position"),
        _count("partitions", told.get("partitions")) or os.cpu_count() or 1,
        _count("blocks", told.get("blocks")),
        told.get("sink"),
        told.get("into"),
    )


def _url(given: str | None) -> str:
    url = given or os.environ.get("FAIRLEAD_URL")
    if not url:
        raise UsageError("A225", "the url of the log is not set", 'option("url", "nats://HOST:4222"), or set FAIRLEAD_URL')
    if url.startswith(("memory:", "file:")):
        raise UnsupportedError(
            "U123", f"{url!r} is a log of one process, and Spark needs a server", "start a server: fairlead up"
        )
    return url


def _what(told: Mapping[str, str]) -> str | tuple[str, ...]:
    if ("types" in told) == ("rules" in told):
        raise UsageError(
            "A226", "the log source needs either types or rules", 'option("types", "A,B"), or option("rules", text)'
        )
    if "rules" in told:
        return told["rules"]
    return tuple(name.strip() for name in told["types"].split(",") if name.strip())


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UsageError("A227", f"heartbeats is {text!r}", "use true or false")
    return text.lower() == "true"


def _count(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise UsageError("A227", f"{name} is {text!r}", "use a whole number from 1 on")
    return int(text)


def _start(text: str) -> str | int | datetime:
    if text in ("earliest", "new"):
        return text
    if text.isdecimal():
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError("A251", f"start is {text!r}", "use earliest, new, a position or a time in ISO 8601") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
