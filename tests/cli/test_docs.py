"""docs/cli.md shows what the commands really print: its files are written, its commands run, their output compared.

`FAIRLEAD_UPDATE_DOCS=1 pytest tests/cli/test_docs.py` writes the new output into the page instead.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.shop import fairlead
from tests.root import ROOT

PAGE = ROOT / "docs" / "cli.md"
FILE = re.compile(r"^`([\w.]+)`:\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = (
    (re.compile(r"in [\d.]+ s, [\d,]+/s"), "in 0.0 s, 0/s"),
    (re.compile(r'"seconds": [\d.]+'), '"seconds": 0.0'),
    (re.compile(r"none found in [\d,]+"), "none found in 0"),
)


def settled(output: str) -> list[str]:
    """Without what differs from run to run."""
    for pattern, fixed in VARYING:
        output = pattern.sub(fixed, output)
    return output.splitlines()


def printed(command: str) -> str:
    name, *arguments = shlex.split(command)
    output = Path(arguments[0]).read_text() if name == "cat" else fairlead(*arguments).output
    return "".join(f"{line.rstrip()}\n" for line in output.splitlines())


def rerun(block: re.Match[str]) -> str:
    """The console block with the output that its commands have now."""
    shown = [line.removeprefix("$ ") for line in block[1].splitlines() if line.startswith("$ ")]
    return "```console\n" + "".join(f"$ {command}\n{printed(command)}" for command in shown) + "```"


def test_the_page_shows_real_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    for name, content in FILE.findall(page):
        Path(name).write_text(content)
    now = CONSOLE.sub(rerun, page)
    assert now.count("\n$ fairlead ") >= 12
    if os.environ.get("FAIRLEAD_UPDATE_DOCS"):
        PAGE.write_text(now, "utf-8")
    else:
        assert settled(now) == settled(page)
