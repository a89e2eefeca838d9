"""Three servers as a cluster, to be killed, paused and started again."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

from fairlead.transport.log.server import Server


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in held]
    finally:
        for each in held:
            each.close()


class Cluster:
    def __init__(self, folder: Path, size: int = 3) -> None:
        ports, routes = free_ports(size), free_ports(size)
        named = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
        self.servers = [
            Server(
                folder / str(at),
                port=port,
                name=f"server-{at}",
                more=f'cluster {{ name: fairlead, listen: "127.0.0.1:{route}", routes: [{named}] }}',
            )
            for at, (port, route) in enumerate(zip(ports, routes, strict=True))
        ]
        self.url = ",".join(f"nats://127.0.0.1:{port}" for port in ports)

    def __enter__(self) -> Cluster:
        for each in self.servers:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.servers:
            if each.pid is not None:
                self.signal(each, signal.SIGCONT)
            each.stop()

    def kill(self, at: int) -> None:
        self.signal(self.servers[at], signal.SIGKILL)
        self.servers[at].stop()

    def start(self, at: int) -> None:
        self.servers[at].start()

    def pause(self, at: int) -> None:
        self.signal(self.servers[at], signal.SIGSTOP)

    def go_on(self, at: int) -> None:
        self.signal(self.servers[at], signal.SIGCONT)

    @staticmethod
    def signal(server: Server, number: int) -> None:
        if server.pid is not None:
            os.kill(server.pid, number)
