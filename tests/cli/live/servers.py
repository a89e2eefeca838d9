"""Servers and processes that the tests of the commands on a log share."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.shop import command

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}


@contextmanager
def up(data: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`fairlead up` as a process, and what it says about itself; stopped at the end."""
    arguments = command("up", "--data", data, "--json", *more)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else ""
            yield process, json.loads(line)
        finally:
            process.terminate()
            process.communicate(timeout=30)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
