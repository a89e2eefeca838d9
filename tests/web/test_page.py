"""docs/gateway.md shows what the gateway really answers: its commands are run, in their order, and their output compared.

`FAIRLEAD_UPDATE_DOCS=1 pytest tests/web/test_page.py` writes the new output into the page instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import shutil
import subprocess
import threading
from typing import Any

import pytest

from fairlead.web.gateway import Settings
from fairlead.web.serving import gateway
from tests.root import ROOT

PAGE = ROOT / "docs" / "gateway.md"
EXAMPLE = re.compile(r"^```(console|python)\n(.*?)^```$(?:\n```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
SHOWN = "http://127.0.0.1:8080"


@pytest.fixture
def address() -> Any:
    """A gateway in a thread, with a log of its own."""
    found: list[str] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serving() -> None:
        async with gateway(None, Settings()) as url:
            found.append(url)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serving()))
    thread.start()
    assert ready.wait(20)
    yield found[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join(20)
    loop.close()


def answered(command: str, address: str) -> str:
    made = subprocess.run(
        ["bash", "-c", command.replace(SHOWN, address)], capture_output=True, text=True, timeout=30, check=False
    )
    return "".join(f"{line}\n" for line in made.stdout.rstrip("\n").splitlines())


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page's examples are for curl")
def test_the_page_shows_real_answers(address: str) -> None:
    page = PAGE.read_text("utf-8")

    def rerun(block: re.Match[str]) -> str:
        if block[1] == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block[2].replace(SHOWN, address), PAGE.name, "exec"), {})
            return f"```python\n{block[2]}```\n```\n{printed.getvalue()}```"
        commands = [line for line in block[2].splitlines() if line.startswith("$ ")]
        return "```console\n" + "".join(f"{each}\n{answered(each[2:], address)}" for each in commands) + "```"

    now = EXAMPLE.sub(rerun, page)
    assert now.count("\n$ curl ") >= 8
    if os.environ.get("FAIRLEAD_UPDATE_DOCS"):
        PAGE.write_text(now, "utf-8")
    else:
        assert now.splitlines() == page.splitlines()
