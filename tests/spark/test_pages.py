"""docs/spark.md lists every setting with its reason and every code. `FAIRLEAD_UPDATE_DOCS=1` writes the settings anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

from fairlead.runtime.spark.settings import LOCAL_SETTINGS, SETTINGS, settings_for

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "spark.md"
ROWS = re.compile(r"(?<=\| setting \| value \| why \|\n\|---\|---\|---\|\n)(?:\|.*\n)+")
SOURCES = [*(ROOT / "src" / "fairlead" / "runtime" / "spark").glob("*.py")]


def rows() -> str:
    """The table as it is now; what depends on the machine has no value there."""
    fixed = SETTINGS.keys() | LOCAL_SETTINGS.keys()
    table = ""
    for name, each in settings_for("local[*]", "…").items():
        value = f"`{each.value.rsplit('.', 1)[-1]}`" if name in fixed else "by the machine"
        table += f"| `{name}`{' *' if each.needed else ''} | {value} | {each.why} |\n"
    return table


def test_every_setting_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("FAIRLEAD_UPDATE_DOCS"):
        PAGE.write_text(ROWS.sub(lambda _: rows(), page), encoding="utf-8")
    else:
        assert ROWS.findall(page) == [rows()]


def test_every_code_is_on_the_page_and_every_code_of_the_page_exists() -> None:
    raised = {code for path in SOURCES for code in re.findall(r'"([UA]\d{3})"', path.read_text(encoding="utf-8"))}
    assert re.findall(r"^\| ([UA]\d{3}) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE) == sorted(
        raised, key=lambda code: (code[0] == "A", code)
    )
