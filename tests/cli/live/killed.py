"""A command that is killed (kill -9) where it sends something to the server, before or after that has arrived."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.cli.live.servers import ENVIRONMENT
from tests.cli.shop import command

SECONDS_MAX = 120.0


class KillingProxy:
    """Between one command and a server. What the command sends at a time is a request, or a few: it waits for answers. Before
    number `at` is passed on, or after that (`arrives`), the process is killed; None: it is not. `sent`: how many there were."""

    def __init__(self, url: str, at: int | None, *, arrives: bool) -> None:
        host, _, port = url.rpartition("/")[2].rpartition(":")
        self._server, self._at, self._arrives = (host, int(port)), at, arrives
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self._listening.getsockname()[1]}"
        self.sent = 0
        self._process: subprocess.Popen[str] | None = None

    def run(self, arguments: Sequence[str | Path]) -> tuple[int, str]:
        """The exit code, and the output. `URL` in the arguments is the address of the proxy."""
        given = [self.url if each == "URL" else each for each in arguments]
        threading.Thread(target=self._accept, daemon=True).start()
        with subprocess.Popen(
            command(*given), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT
        ) as process:
            self._process = process
            try:
                output, _ = process.communicate(timeout=SECONDS_MAX)
            finally:
                process.kill()
                self._listening.close()
        return process.returncode, output

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._server)
                threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()
                threading.Thread(target=_copied, args=(server, client), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, suppress(OSError):
            while data := client.recv(1 << 20):
                ends = self.sent == self._at
                self.sent += 1
                if not ends or self._arrives:
                    server.sendall(data)
                if ends and self._process is not None:
                    self._process.kill()
                    self._process.wait()  # nothing that it did later arrives
                    return


def _copied(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while data := server.recv(1 << 20):
            client.sendall(data)
