"""Reads an object of a NATS server: its description, then chunk after chunk, each asked for by itself.

The client's own way is a consumer that waits for chunks without an end, so it waits for ever if some are gone, and joins what
it has with every chunk. Here a chunk that is missing is an answer like others, and what is read is joined once.

Takes: a connection, the store and the name. Gives: the bytes, complete and with the right digest, or None. Never: waits longer
than the server's answers take; holds more than the description says.
"""

from __future__ import annotations

import base64
import hashlib

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError, ObjectDeletedError, ObjectNotFoundError
from nats.js.object_store import ObjectStore

DIGEST = "SHA-256="


async def read_object(js: JetStreamContext, store: ObjectStore, bucket: str, name: str) -> bytes | None:
    """None if there is no such object, or not all of it: it is being replaced or removed, or damaged."""
    try:
        info = await store.get_info(name)
        chunks, size, after = list[bytes](), 0, 0
        while size < (info.size or 0):
            found = await js.get_msg(f"OBJ_{bucket}", after + 1, f"$O.{bucket}.C.{info.nuid}", next=True)
            if found.seq is None or not found.data:
                return None
            chunks.append(found.data)
            after, size = found.seq, size + len(found.data)
    except (ObjectNotFoundError, ObjectDeletedError, NotFoundError):
        return None
    value = b"".join(chunks)
    digest = base64.urlsafe_b64encode(hashlib.sha256(value).digest()).decode()
    return value if size == info.size and info.digest in (f"{DIGEST}{digest}", digest) else None
