"""Signs what a log holds by the first of a client's signing keys: all entries of its tables, and all states.

Takes: a log with keys. Gives: what was signed, and what has no valid signature. Never: changes a content; signs an entry whose
signature is wrong.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

from fairlead.dataclass import dataclass
from fairlead.runtime.live.subscriber.snapshots import STORE
from fairlead.runtime.rights.subjects import TABLES
from fairlead.transport.log.log_place import LogPlace
from fairlead.transport.log.protocol import Conflict
from fairlead.transport.log.signed_log import SignedLog, Signing, no_keys


@dataclass(frozen=True)
class SignedEntries:
    """How many entries are signed now, how many were before, and which have no valid signature."""

    signed: int
    kept: int
    refused: tuple[str, ...]


async def sign_all(place: LogPlace, *, adopt: bool) -> SignedEntries:
    """`adopt`: also entries without any signature. Raises LogError, UsageError."""
    if place.access.signing_keys is None:
        raise no_keys()
    with ExitStack() as held:
        log, _ = await place.open_signed(held)
        try:
            return await _all(log, adopt)
        finally:
            await log.close()


async def _all(log: SignedLog, adopt: bool) -> SignedEntries:
    count, refused = Counter[Signing](), list[str]()
    for table in TABLES:
        for key in await log.keys(table):
            try:
                found = await log.sign(table, key, adopt=adopt)
            except Conflict:
                found = Signing.KEPT  # another client has just written it
            count[found] += 1
            refused += [f"{table} {key}"] if found is Signing.REFUSED else []
    for name in await log.objects(STORE):
        found = await log.sign_object(STORE, name, adopt=adopt)
        count[found] += 1
        refused += [f"{STORE} {name}"] if found is Signing.REFUSED else []
    return SignedEntries(count[Signing.SIGNED], count[Signing.KEPT], tuple(refused))
