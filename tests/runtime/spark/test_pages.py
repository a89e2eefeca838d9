"""docs/spark.md lists every setting with its reason and every code, and its examples print what it shows.

`FAIRLEAD_UPDATE_DOCS=1` writes the settings and the output of the examples anew.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fairlead.runtime.spark.setup.settings import LOCAL_SETTINGS, SETTINGS, settings_for
from tests.cli.test_docs import rerun
from tests.root import ROOT

PAGE = ROOT / "docs" / "spark.md"
ROWS = re.compile(r"(?<=\| setting \| value \| why \|\n\|---\|---\|---\|\n)(?:\|.*\n)+")
FILE = re.compile(r"^`([\w./]+)`:\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```python\n((?:(?!```).)*?)^```\n```\n(.*?)^```$|^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r"in [\d.]+ s(, [\d,]+/s)?")
SPARK_PATH = re.compile(r'((?:json|parquet)\("|"(?:path|checkpointLocation)", ")')
"""What stands before a path that Spark reads or writes."""
SOURCES = [*(ROOT / "src" / "fairlead" / "runtime" / "spark").rglob("*.py")]


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
    raised = {"A003"} | {code for path in SOURCES for code in re.findall(r'"([UA]\d{3})"', path.read_text(encoding="utf-8"))}
    assert re.findall(r"^\| ([UA]\d{3}) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE) == sorted(
        raised, key=lambda code: (code[0] == "A", code)
    )


def test_every_refusal_of_a_state_is_on_the_page() -> None:
    raised = {code for path in SOURCES for code in re.findall(r'"(S\d{3})"', path.read_text(encoding="utf-8"))}
    rows = re.findall(r"^\| ((?:S\d{3}(?:, )?)+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    told = [code for row in rows for code in row.split(", ")]
    assert len(told) == len(set(told))
    assert raised <= set(told)


@pytest.mark.server
def test_the_examples_print_what_the_page_shows(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, started = PAGE.read_text(encoding="utf-8"), Path.cwd()
    before = set(started.glob("[!.]*"))
    monkeypatch.chdir(tmp_path)
    for name, content in FILE.findall(page):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(content)
    names: dict[str, Any] = {}

    def again(block: re.Match[str]) -> str:
        if block[1] is None:
            return rerun(re.match(r"```console\n(.*)```", block[0], re.DOTALL) or block)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            # the JVM runs in the folder where it was started
            exec(compile(SPARK_PATH.sub(rf"\1{tmp_path}/", block[1]), "docs/spark.md", "exec"), names)
        return f"```python\n{block[1]}```\n```\n{printed.getvalue()}```"

    now = EXAMPLE.sub(again, page)
    assert len(EXAMPLE.findall(page)) >= 6
    assert set(started.glob("[!.]*")) == before, "another run would find what this one wrote"
    if os.environ.get("FAIRLEAD_UPDATE_DOCS"):
        PAGE.write_text(now, encoding="utf-8")
    else:
        assert SECONDS.sub("", now).splitlines() == SECONDS.sub("", page).splitlines()
