"""The pages on live subscribers show what really happens: their examples run on a server; and docs/live.md has every code.

`FAIRLEAD_UPDATE_DOCS=1 pytest tests/cli/live/test_docs.py` writes the new output into the page instead.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

import pytest

from fairlead.transport.log.jetstream.server import Server
from tests.cli.test_docs import FILE, rerun
from tests.root import ROOT

PAGE = ROOT / "docs" / "live.md"
PAGES = (PAGE, ROOT / "docs" / "live-order.md")
EXAMPLE = re.compile(r"^```python\n((?:(?!```).)*?)^```\n```\n(.*?)^```$|^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = (
    (re.compile(r"in [\d.]+ s"), "in 0.0 s"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "(digest)"),  # of positions, which the order of two blocks decides
)
CODED = ("transport/log", "runtime/live", "cli/live")
ELSEWHERE = {"A001", "A103", "A423", "D001", "D008", "D026"}
"""Codes that other pages have."""


def settled(text: str) -> list[str]:
    for pattern, fixed in VARYING:
        text = pattern.sub(fixed, text)
    return text.splitlines()


def again(block: re.Match[str], names: dict[str, Any]) -> str:
    if block[1] is None:
        return rerun(re.match(r"```console\n(.*)```", block[0], re.DOTALL) or block)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block[1], "page", "exec"), names)
    return f"```python\n{block[1]}```\n```\n{printed.getvalue()}```"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_page_shows_what_happens(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = path.read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    for name, content in FILE.findall(page):
        Path(name).write_text(content)
    if path == PAGE:
        Path("market.fl").write_text(Path("types.fl").read_text() + Path("rally.fl").read_text())
    names: dict[str, Any] = {}
    with Server(tmp_path / "server", durable=False) as server:
        monkeypatch.setenv("FAIRLEAD_URL", server.url)
        now = EXAMPLE.sub(lambda block: again(block, names), page)
    assert len(EXAMPLE.findall(page)) >= 4
    if os.environ.get("FAIRLEAD_UPDATE_DOCS"):
        path.write_text(now, "utf-8")
    else:
        assert settled(now) == settled(page)


def test_every_code_is_on_the_page_and_every_code_of_the_page_exists() -> None:
    home = ROOT / "src" / "fairlead"
    sources = [home / "order" / "continuity.py", *(path for folder in CODED for path in (home / folder).rglob("*.py"))]
    raised = {code for path in sources for code in re.findall(r'"([ADNSU]\d{3})"', path.read_text("utf-8"))} - ELSEWHERE
    rows = re.findall(r"^\| ((?:[ADNSU]\d{3}(?:, )?)+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [code for row in rows for code in row.split(", ")] == sorted(raised)
