"""A stream's note in its checkpoint: its rules, and the format of its state.

A checkpoint of another order would fail inside a task, later and with a traceback. The note is read before anything starts.
Rules may change: the note says which of them continue.

Takes: a folder and the description of the job. Gives: the choices of the first run, or an error (S110, S111, S116 to S118).
Never: reads Spark's own files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import fairlead
from fairlead.errors import StateError
from fairlead.matching.state.encoding import Change
from fairlead.runtime.spark.output.folders import exists, read_text, write_text
from fairlead.runtime.spark.stream.resumption import VERSION, agree_in_buckets, agree_in_zone
from fairlead.transport.files.documents import json_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "fairlead.json"
FIX = "begin with a new checkpoint folder, or run it as it was begun"


@dataclass(frozen=True)
class Note:
    """`plan`: the digest of the stream's first rules, which identifies it. `subscriptions`: those of the last run, their
    digests by name. `buckets`: the number at the beginning. `zone`: the zone of times without one in files, if there may be
    any."""

    plan: str
    order_by: tuple[str, ...]
    position: str | None
    subscriptions: Mapping[str, str] = field(default_factory=dict)
    buckets: int | None = None
    zone: str | None = None
    state: int = VERSION
    fairlead: str = fairlead.__version__

    def text(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"


def noted(spark: SparkSession, folder: str) -> Note | None:
    """The note of a checkpoint; None if nothing has run."""
    path = f"{folder.rstrip('/')}/{NAME}"
    text = read_text(spark, path)
    if text is None:
        if exists(spark, f"{folder.rstrip('/')}/offsets"):
            problem = f"the checkpoint {folder} belongs to another program: it has no {NAME}"
            raise StateError("S117", problem, "use a new checkpoint folder for this stream")
        return None
    try:
        content = json_value(text)
        return Note(**content | {"order_by": tuple(content["order_by"])})
    except (ValueError, TypeError, KeyError):
        problem = f"{path} is damaged: it is not what a stream writes into its checkpoint"
        raise StateError("S118", problem, "restore the file from a backup, or use a new checkpoint folder") from None


def agree(spark: SparkSession, folder: str, wanted: Note, asked: int | None = None) -> tuple[Note, Change]:
    """Write the note, or compare with the existing one. Returns the note of the stream, and the changes of its rules. `asked`:
    the number of buckets, if the user wants a certain one."""
    found = noted(spark, folder)
    path = f"{folder.rstrip('/')}/{NAME}"
    if found is None:
        write_text(spark, path, wanted.text())
        return wanted, Change(started=tuple(wanted.subscriptions))
    if found.state != wanted.state:
        problem = f"the checkpoint has version {found.state}, this release reads version {wanted.state}"
        raise StateError("S110", problem, f"run it with fairlead {found.fairlead}, or use a new checkpoint")
    for name in ("order_by", "position"):
        before, now = getattr(found, name), getattr(wanted, name)
        if before != now:
            problem = f"the checkpoint {folder} was started with {name} = {_shown(before)}, and this run has {_shown(now)}"
            raise StateError("S111", problem, FIX)
    if found.buckets is not None:
        agree_in_buckets(found.buckets, asked)
    if found.zone is not None and wanted.zone is not None:
        agree_in_zone(found.zone, wanted.zone)
    before, now = set(found.subscriptions.values()), set(wanted.subscriptions.values())
    resumed, started = ([n for n, d in wanted.subscriptions.items() if (d in before) is kept] for kept in (True, False))
    dropped = [name for name, digest in found.subscriptions.items() if digest not in now]
    note = replace(wanted, plan=found.plan, buckets=found.buckets, zone=wanted.zone or found.zone)
    if note.subscriptions != found.subscriptions:
        write_text(spark, path, note.text())
    return note, Change(tuple(resumed), tuple(started), tuple(dropped))


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else "nothing" if value is None else str(value)
