"""A cluster of servers on this machine whose links can be cut; every block is on the disks before it is acknowledged.

Takes: a folder. Gives: servers to kill, pause and restart; the leader of a stream; limits of streams and disks. Never: leaves a
server running.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from itertools import combinations, product
from pathlib import Path
from typing import Self

from fairlead.errors import LogError
from fairlead.testing.live.cluster.links import Links, Way
from fairlead.testing.live.cluster.ports import free_ports
from fairlead.testing.live.cluster.request import Answer, ask
from fairlead.transport.log.jetstream.server import Server
from fairlead.transport.log.patience import Patience

READY_SECONDS_MAX = 60.0
ROUTES = """\
cluster {{
  name: fairlead, listen: "127.0.0.1:{listen}", advertise: "127.0.0.1:9", no_advertise: true, routes: [{routes}]
}}
"""
"""Servers exchange their addresses; port 9, where nobody listens, makes them use the links that can be cut. They do not send
clients the addresses of other servers, so clients use their links as well."""


class Cluster:
    def __init__(self, folder: Path, size: int = 3) -> None:
        self._folder, self._size = folder, size
        self._held = ExitStack()
        self.paused: set[int] = set()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.links = stack.enter_context(Links())
            self.ports, listening = free_ports(self._size), free_ports(self._size)
            self.servers = [self._server(at, listening) for at in range(self._size)]
            self.url = ",".join(f"nats://127.0.0.1:{port}" for port in self.ports)
            stack.callback(self._stop)
            for each in self.servers:
                each.start()
            self._wait_until_ready()
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _server(self, at: int, listening: Sequence[int]) -> Server:
        others = [other for other in range(self._size) if other != at]
        ports = [self.links.between(at, other, listening[other]) for other in others]
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
        more = ROUTES.format(listen=listening[at], routes=routes)
        return Server(self._folder / f"server-{at}", port=self.ports[at], name=f"server-{at}", more=more)

    def _stop(self) -> None:
        for at, each in enumerate(self.servers):
            self._send(at, signal.SIGKILL)  # an orderly stop is not what is tested
            each.stop()

    def _wait_until_ready(self) -> None:
        """Waits until all servers know each other, and have a leader."""
        patience = Patience(READY_SECONDS_MAX)
        while not patience.is_over:
            answers = [ask([port], "INFO") for port in self.ports]
            if all(each is not None and "error" not in each for each in answers):
                return
            patience.wait()
        raise LogError("N007", "the servers did not form a cluster", f"see the logs in {self._folder}")

    def _send(self, at: int, number: int) -> None:
        pid = self.servers[at].pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self, *which: int) -> None:
        for at in which:
            self._send(at, signal.SIGKILL)
        for at in which:
            self.servers[at].stop()
            self.paused.discard(at)

    def start(self, *which: int) -> None:
        for at in which:
            self.servers[at].start()

    def pause(self, at: int) -> None:
        self._send(at, signal.SIGSTOP)
        self.paused.add(at)

    def go_on(self, at: int) -> None:
        self._send(at, signal.SIGCONT)
        self.paused.discard(at)

    def turn(self, way: Way, *which: int) -> None:
        """Sets the links of these servers: between two, or all of one."""
        pairs = [pair for pair in combinations(range(self._size), 2) if set(which) <= set(pair)]
        self.links.turn(pairs, way)

    def url_of(self, client: str) -> str:
        """The address of the servers for a client, over its own links."""
        ports = [self.links.between(client, at, port) for at, port in enumerate(self.ports)]
        return ",".join(f"nats://127.0.0.1:{port}" for port in ports)

    def turn_clients(self, way: Way, clients: Iterable[str], servers: Iterable[int]) -> None:
        """Sets the links of each of these clients to each of these servers."""
        self.links.turn(list(product(clients, servers)), way)

    def info(self, stream: str) -> Answer | None:
        """The servers' report on a stream; None while there is no answer."""
        told = ask([port for at, port in enumerate(self.ports) if at not in self.paused], f"STREAM.INFO.{stream}")
        return None if told is None or "error" in told else told

    def leader(self, stream: str) -> int | None:
        told = self.info(stream)
        name = str(((told or {}).get("cluster") or {}).get("leader") or "")
        return int(name.removeprefix("server-")) if name else None

    def limit(self, stream: str, bytes_more: int | None) -> bool:
        """Let the stream accept this many more bytes, or as many as the disk does. Returns whether the servers agreed."""
        told = self.info(stream)
        if told is None:
            return False
        most = -1 if bytes_more is None else told["state"]["bytes"] + bytes_more
        answer = ask(self.ports, f"STREAM.UPDATE.{stream}", {**told["config"], "max_bytes": most}, seconds=5.0)
        return answer is not None and "error" not in answer

    def used(self) -> int | None:
        """Bytes that each server stores: replicas are everywhere. None while unknown."""
        told = ask(self.ports, "STREAM.LIST", {"offset": 0}, seconds=5.0)
        streams = None if told is None else told.get("streams")
        return None if not streams else sum(int(each["state"]["bytes"]) for each in streams)

    def restart_with(self, bytes_max: int | None, *which: int) -> None:
        """kill -9, and a disk of that size."""
        self.kill(*which)
        for at in which:
            self.servers[at].bytes_max = bytes_max
        self.start(*which)
