"""One request to a JetStream server and its answer, without a client that handles failures itself.

Takes: ports, the subject of the API, a request. Gives: the answer. Never: waits longer than `seconds`; asks twice.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterable
from typing import Any

Answer = dict[str, Any]


def ask(ports: Iterable[int], subject: str, request: Answer | None = None, seconds: float = 1.0) -> Answer | None:
    """The answer of the first server that answers; None if none does."""
    for port in ports:
        try:
            return _asked(port, subject, b"" if request is None else json.dumps(request).encode(), seconds)
        except (OSError, ValueError):
            continue
    return None


def _asked(port: int, subject: str, request: bytes, seconds: float) -> Answer:
    end = time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as held, held.makefile("rb") as lines:
        held.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB answer 1\r\n')
        held.sendall(f"PUB $JS.API.{subject} answer {len(request)}\r\n".encode() + request + b"\r\n")
        while time.monotonic() < end:
            words = lines.readline().split()
            if not words:
                raise OSError("the server has closed the connection")
            if words[0] == b"PING":
                held.sendall(b"PONG\r\n")
            elif words[0] == b"MSG":
                answer: Answer = json.loads(lines.read(int(words[-1])))
                return answer
    raise TimeoutError(f"no answer to {subject}")
