"""Rules and events that the tests of the command line share, and ways to call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from fairlead.cli.command_table import cli

MARKET = """\
TYPE EarningsReport (symbol STRING, at TIMESTAMP) TIME at
TYPE StockQuote (symbol STRING, value DOUBLE, at TIMESTAMP) TIME at

SUBSCRIPTION Rally
MATCH EarningsReport r AND StockQuote q[3]
WHERE q[1].at > r.at AND q[2].value > q[1].value AND q[3].value > q[2].value
PER symbol
WITHIN 5 MINUTES
MATCHING FIRST
DISPOSAL PREFIX INFIX
EMIT RallySeen(symbol = r.symbol, gain = q[3].value - q[1].value)
"""


def at(second: int) -> str:
    return f"2026-01-31T10:{second // 60:02}:{second % 60:02}Z"


def report(symbol: str, second: int) -> dict[str, Any]:
    return {"type": "EarningsReport", "symbol": symbol, "at": at(second)}


def quote(symbol: str, value: Any, second: int) -> dict[str, Any]:
    return {"type": "StockQuote", "symbol": symbol, "value": value, "at": at(second)}


RALLY = [
    report("ACME", 0),
    quote("ACME", 10.0, 10),
    quote("XYZ", 5.0, 15),
    quote("ACME", 11.5, 20),
    quote("ACME", 12.5, 30),
]
"""One relation of Rally, at positions 0, 1, 3, 4."""


def write_lines(path: Path, events: Iterable[Any]) -> Path:
    """JSON Lines; text stands as it is."""
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in events), "utf-8")
    return path


def fairlead(*arguments: str | Path, stdin: str | None = None) -> Result:
    """The command in this process."""
    return CliRunner().invoke(cli, [str(each) for each in arguments], input=stdin)


def fairlead_process(
    *arguments: str | Path, cwd: Path | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as users start it."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        cwd=cwd,
        input=stdin,
        timeout=120,
        env=os.environ | {"COLUMNS": "120"},
    )


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-W", "error", "-c", "from fairlead.cli.main import main; main()", *map(str, arguments)]
