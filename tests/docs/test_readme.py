"""The README's commands work as printed: its shell blocks are run, in their order, and the output of the first is compared.

`FAIRLEAD_UPDATE_DOCS=1 pytest tests/docs/test_readme.py` writes the new output into the page instead.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli.command_table import cli
from fairlead.transport.log.jetstream.server import Server
from tests.cli.test_docs import settled
from tests.root import ROOT

PAGE = ROOT / "README.md"
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIRST = re.compile(r"(?<=^```sh\n)(.*?)^```\n```\n(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def run(script: str, folder: Path, **environment: str) -> str:
    """What a shell prints that stops at the first error; installing is left out."""
    text = "\n".join(line for line in script.splitlines() if "pip install" not in line)
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    made = subprocess.run(
        ["bash", "-e", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": commands, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return "".join(f"{line.rstrip()}\n" for line in made.stdout.splitlines())


@pytest.mark.server
def test_the_commands_work_as_printed(tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    first, shell, live = SHELL.findall(page)
    shown = FIRST.search(page)
    assert shown is not None
    printed = run(first, tmp_path)
    if os.environ.get("FAIRLEAD_UPDATE_DOCS"):
        PAGE.write_text(page.replace(f"{shown[1]}```\n```\n{shown[2]}", f"{shown[1]}```\n```\n{printed}"), "utf-8")
    else:
        assert settled(printed) == settled(shown[2])
    run(shell, tmp_path)
    with Server(tmp_path / "server", durable=False) as server:
        assert run(live, tmp_path, FAIRLEAD_URL=server.url).splitlines()[-1].startswith("equal: ")
    embedded, followed = (
        [json.loads(line) for line in (tmp_path / name).read_text("utf-8").splitlines()]
        for name in ("relations.jsonl", "desk-1.jsonl")
    )
    assert [(each["subscription"], each["events"]) for each in followed] == [
        (each["subscription"], each["events"]) for each in embedded
    ]


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`fairlead ([a-z]+(?: [a-z]+)?)[^`]*`", PAGE.read_text("utf-8")))))
def test_every_command_that_is_named_exists(named: str) -> None:
    group, *rest = named.split()
    command = cli.get_command(None, group)  # type: ignore[arg-type]
    assert command is not None
    if rest and hasattr(command, "get_command"):
        assert command.get_command(None, rest[0]) is not None
