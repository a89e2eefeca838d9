"""Every numbered example is a script that prints exactly what its docstring says."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.root import ROOT

EXAMPLES = ROOT / "examples"
NUMBERED = sorted(EXAMPLES.glob("[0-9][0-9]_*.py"))


def test_there_are_seven_of_them_numbered_without_a_gap() -> None:
    assert [path.name[:2] for path in NUMBERED] == [f"{number:02}" for number in range(1, 8)]


@pytest.mark.sampled
@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_it_prints_what_its_docstring_says(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    _, found, promised = docstring.partition("Prints:\n\n")
    assert found, "the docstring says what is printed, after 'Prints:'"
    # -X utf8 and -W error: the same on every machine, and no deprecated call goes unnoticed
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", path], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert ran.stderr == ""
    assert ran.stdout.rstrip() == textwrap.dedent(promised).rstrip()
    assert ran.returncode == 0


@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_it_is_short(path: Path) -> None:
    module = ast.parse(path.read_text(encoding="utf-8"))
    first = module.body[1].lineno
    assert len(path.read_text(encoding="utf-8").splitlines()) - first < 50
