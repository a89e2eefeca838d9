"""Ctrl-C and termination end every command, whatever it is doing: with its exit code, no trace, and whole files or none."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from tests.cli.live.servers import ENVIRONMENT, up
from tests.cli.shop import write_lines
from tests.waiting import wait_until

TYPES = "\n".join(f"TYPE T{n} (x INT)" for n in range(5))
ENDLESS = f"""{TYPES}
SUBSCRIPTION S MATCH T0 a AND T1 b AND T2 c AND T3 d AND T4 e WHERE a.x + b.x + c.x + d.x + e.x > 1000000
"""
"""Nothing but trying finds out that there is none: with 1,000 events of each type that takes an hour."""
EACH = f"{TYPES}\nSUBSCRIPTION E MATCH T0 a\n"
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
pytestmark = pytest.mark.slow  # each starts a process or two
SIGNALS = pytest.mark.parametrize("number", CODES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "endless.fl").write_text(ENDLESS)
    (tmp_path / "each.fl").write_text(EACH)
    events: list[dict[str, Any]] = [{"type": f"T{n}", "x": x} for n in range(4) for x in range(1_000)]
    write_lines(tmp_path / "events.jsonl", [*events, {"type": "T4", "x": 1}])
    lines = "".join(f"\n      - {{type: {each['type']}, x: {each['x']}}}" for each in [*events, {"type": "T4", "x": 1}])
    (tmp_path / "endless.test.yaml").write_text(f"tests:\n  - name: none\n    events:{lines}\n    expect: {{S: 0}}\n")
    os.mkfifo(tmp_path / "endless.jsonl")
    return tmp_path


def ended(folder: Path, moment: str, arguments: Sequence[str | Path], number: signal.Signals) -> tuple[int, str, str]:
    """The command is sent a signal at that moment, and has ended soon. Gives code, output and errors."""
    reading, writing = os.pipe()
    announced = "none" if moment in ("reading", "serving") else moment
    command = [sys.executable, "-W", "error", "-m", "tests.cli.moments", str(writing), announced, *map(str, arguments)]
    environment = ENVIRONMENT | {"PYTHONPATH": os.getcwd(), "FAIRLEAD_CACHE": os.environ.get("FAIRLEAD_CACHE", "")}
    with (
        ExitStack() as held,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=[writing]
        ) as process,
    ):
        os.close(writing)
        try:
            if moment == "reading":
                pipe = held.enter_context((folder / "endless.jsonl").open("r+b", buffering=0))
                has_read(pipe, process)
            elif moment == "serving":
                assert process.stdout is not None
                assert process.stdout.readline()
            else:
                announced_soon = select.select([reading], [], [], 120)[0]
                assert announced_soon, f"two minutes without {moment}"
                assert os.read(reading, 1), process.communicate()
            process.send_signal(number)
            out, errors = process.communicate(timeout=60)
        finally:
            os.close(reading)
            if process.poll() is None:
                process.kill()
    return process.returncode, out or "", errors


def has_read(pipe: FileIO, process: subprocess.Popen[str]) -> None:
    """The command has read what stands in the pipe, and waits for more."""
    pipe.write(b'{"type": "T0", "x": 1}\n')

    def is_empty() -> bool:
        return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))) == (0,)

    wait_until(lambda: is_empty() or process.poll() is not None)


def ends_cleanly(folder: Path, moment: str, arguments: Sequence[str | Path], number: signal.Signals) -> None:
    before = sorted(each.name for each in folder.iterdir())
    code, _, errors = ended(folder, moment, arguments, number)
    assert code == CODES[number], errors
    assert "Traceback" not in errors
    assert "ignored" not in errors
    assert errors.strip() in ("", "interrupted")
    assert sorted(each.name for each in folder.iterdir()) == before


OUTPUTS = ["--out", "out.jsonl", "--receipt", "receipt.json", "--on-bad", "skip"]
RUN = {
    "reading": ["run", "each.fl", "--events", "endless.jsonl", *OUTPUTS],
    "python": ["run", "endless.fl", "--events", "events.jsonl", "--event-by-event", *OUTPUTS],
    "kernel": ["run", "endless.fl", "--events", "events.jsonl", *OUTPUTS],
    "writing": ["run", "each.fl", "--events", "events.jsonl", *OUTPUTS],
}
OTHERS = {
    "run to Parquet": ("writing", ["run", "each.fl", "--events", "events.jsonl", "--out", "out.parquet"]),
    "test, python": ("python", ["test", "endless.fl", "--event-by-event"]),
    "test, kernel": ("kernel", ["test", "endless.fl"]),
    "why, reading": ("reading", ["why", "each.fl", "--events", "endless.jsonl", "--at", "3"]),
    "why, python": ("python", ["why", "endless.fl", "--events", "events.jsonl", "--at", "3"]),
}


@SIGNALS
@pytest.mark.parametrize("moment", RUN)
def test_a_run_ends(folder: Path, moment: str, number: signal.Signals) -> None:
    ends_cleanly(folder, moment, RUN[moment], number)


@SIGNALS
@pytest.mark.parametrize("which", OTHERS)
def test_other_commands_on_files_end(folder: Path, which: str, number: signal.Signals) -> None:
    ends_cleanly(folder, *OTHERS[which], number)


@SIGNALS
@pytest.mark.parametrize("module", ["click", "fairlead.cli.commands.run", "numpy", "pyarrow.parquet", "llvmlite.binding"])
def test_a_run_ends_while_modules_are_imported(folder: Path, module: str, number: signal.Signals) -> None:
    ends_cleanly(folder, f"import:{module}", RUN["kernel"], number)


ALL = ["--state", "state", *OUTPUTS, "--json"]
WRITTEN = ["out.jsonl", "out.jsonl.rejects.jsonl", "receipt.json", "state"]


@SIGNALS
@pytest.mark.parametrize("moment", [f"prepare:{each}" for each in range(1, len(WRITTEN) + 1)])
def test_until_outputs_take_their_names_earlier_ones_stay(folder: Path, moment: str, number: signal.Signals) -> None:
    write_lines(folder / "few.jsonl", [{"type": "T0", "x": 1}])
    for each in WRITTEN[:-1]:
        (folder / each).write_text("of an earlier run")
    ends_cleanly(folder, moment, ["run", "each.fl", "--events", "few.jsonl", *ALL], number)
    assert {(folder / each).read_text() for each in WRITTEN[:-1]} == {"of an earlier run"}


@SIGNALS
@pytest.mark.parametrize("moment", [*(f"name:{each}" for each in range(1, len(WRITTEN) + 1)), "summary", "exit"])
def test_a_signal_comes_too_late_where_outputs_take_their_names(folder: Path, moment: str, number: signal.Signals) -> None:
    """The state has moved, so the exit code must not say that nothing was done."""
    write_lines(folder / "few.jsonl", [{"type": "T0", "x": 1}])
    before = sorted(each.name for each in folder.iterdir())
    code, out, errors = ended(folder, moment, ["run", "each.fl", "--events", "few.jsonl", *ALL], number)
    assert (code, errors) == (0, "complete: all files are written; the signal came too late\n")
    assert json.loads(out)["deliveries"] == 1
    assert sorted(each.name for each in folder.iterdir()) == sorted([*before, *WRITTEN])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with up(tmp_path_factory.mktemp("log")) as (_, told):
        yield told["url"]


@pytest.fixture
def stored(folder: Path, server: str) -> str:
    """A server with the events in it."""
    more = ["--quiet", "--batch-rows", "1000", "--source", folder.name]
    for arguments in (["declare", "endless.fl"], ["publish", "--from", "events.jsonl", *more]):
        command = [sys.executable, "-c", "from fairlead.cli.main import main; main()", *arguments, "--url", server]
        subprocess.run(command, cwd=folder, check=True, env=ENVIRONMENT, timeout=60)
    return server


@SIGNALS
def test_commands_on_a_log_end(folder: Path, stored: str, number: signal.Signals) -> None:
    log = ["--url", stored]
    ends_cleanly(folder, "reading", ["publish", "--from", "endless.jsonl", *log], number)
    ends_cleanly(folder, "waiting", ["export", "endless.fl", "--out", "out.parquet", *log], number)


@SIGNALS
@pytest.mark.parametrize("more", [[], ["--out", "out.jsonl", "--receipt", "receipt.json"]], ids=["screen", "file"])
def test_a_tail_ends_while_a_kernel_searches(folder: Path, stored: str, number: signal.Signals, more: list[str]) -> None:
    """What came by then stands in the file."""
    arguments = ["tail", "endless.fl", "--start", "earliest", "--url", stored, "--name", folder.name, *more]
    code, out, errors = ended(folder, "kernel", arguments, number)
    assert code == CODES[number], errors
    assert "Traceback" not in errors + out
    assert (folder / "out.jsonl").exists() == (folder / "receipt.json").exists() == bool(more)


@SIGNALS
@pytest.mark.parametrize("arguments", [["up", "--data", "log", "--json"], ["gateway"]], ids=["up", "gateway"])
@pytest.mark.server
def test_commands_that_serve_end(folder: Path, arguments: list[str], number: signal.Signals) -> None:
    code, _, errors = ended(folder, "serving", arguments, number)
    assert code in (0, CODES[number]), errors
    assert "Traceback" not in errors
