"""Free ports that stay free while a server is down.

A port that the system assigns may be taken by any connection as soon as its server is killed, even by a client that tries to
reach that very port. So the ports are taken from below that range.

Takes: a number. Gives: this many ports of the loopback. Never: holds them.
"""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from pathlib import Path

LOWEST, HIGHEST = 10_000, 32_000


def free_ports(count: int) -> list[int]:
    rolls, top = random.SystemRandom(), _first_given_out()
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = rolls.randrange(LOWEST, top)
            tried = held.enter_context(socket.socket())
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found


def _first_given_out() -> int:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return HIGHEST
    return min(max(first, LOWEST + 1_000), HIGHEST)
