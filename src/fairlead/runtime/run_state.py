"""The state of a run for the next one: the engine's state, the receipts, and the last sequence of each source.

    fairlead-run 1 <sha256 of what follows>
    {"receipts": {digest: …}, "names": {digest: name}, "sequences": …, "held": bytes of the last part}
    the engine's dump, then the events that are held back behind a frontier (event_time.py)

Receipts belong to subscriptions, by digest, as the state does: when rules change, the receipt of an unchanged subscription
continues, as if one run had read all the events. The receipt of a plan as a whole continues while the plan is the same.

Takes: a run, or the bytes of a saved one. Gives: bytes, `RunState`. Never: reads or writes a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from fairlead.dataclass import dataclass
from fairlead.deliver.receipt import Receipt
from fairlead.errors import FairleadError, StateError
from fairlead.transport.admission.sequences import LastSequences
from fairlead.transport.files.documents import json_value

MAGIC, VERSION = "fairlead-run", 1
HEAD_BYTES = len(MAGIC)
"""Enough bytes to distinguish a state from another file, however large that is."""


@dataclass(frozen=True)
class RunState:
    """`receipts` and `names` (of subscriptions, where they had one) by digest. `engine`: its dump."""

    engine: bytes
    receipts: Mapping[str, Receipt]
    names: Mapping[str, str]
    sequences: LastSequences
    held: bytes = b""

    def encode(self) -> bytes:
        head = {
            "receipts": {digest: self.receipts[digest].to_json() for digest in sorted(self.receipts)},
            "names": {digest: self.names[digest] for digest in sorted(self.names)},
            "sequences": self.sequences.dump(),
        } | ({"held": len(self.held)} if self.held else {})
        body = json.dumps(head).encode() + b"\n" + self.engine + self.held
        return f"{MAGIC} {VERSION} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def is_run(head: bytes) -> bool:
    """Whether a file that begins with `head` may be the state of a run."""
    return head.startswith(MAGIC.encode())


def decode_run(content: bytes, place: str | None = None) -> RunState:
    """Raises StateError."""
    line, _, body = content.partition(b"\n")
    words = line.split(b" ")
    if len(words) != 3 or words[0] != MAGIC.encode():
        raise StateError("S140", "this is not the state of a run", "name a file that `fairlead run --state` wrote", place)
    if words[1] != str(VERSION).encode():
        problem = f"the state of the run has version {words[1].decode(errors='replace')}, this release reads {VERSION}"
        raise StateError("S141", problem, "continue with the release that wrote it, or start with another file", place)
    if words[2] != hashlib.sha256(body).hexdigest().encode():
        raise _damaged(place)
    head, _, engine = body.partition(b"\n")
    try:
        told = json_value(head)
        receipts = {str(digest): Receipt.from_json(each) for digest, each in told["receipts"].items()}
        names = {str(digest): str(name) for digest, name in told["names"].items()}
        held = int(told.get("held", 0))
        engine, rest = (engine[:-held], engine[-held:]) if held else (engine, b"")
        return RunState(engine, receipts, names, LastSequences.load(told["sequences"]), rest)
    except (ValueError, KeyError, TypeError, AttributeError, FairleadError):
        raise _damaged(place) from None


def _damaged(place: str | None) -> StateError:
    return StateError("S142", "the state of the run is damaged", "copy it again, or start with another file", place)
