"""The cookbook: its page shows the rules of the example, their tests pass, and Spark and live subscribers find the same."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from pyspark.sql import SparkSession

import fairlead
from fairlead import spark as fl
from fairlead.cli.command_table import cli
from fairlead.runtime.live.core.event_table import only_group
from tests.root import ROOT
from tests.runtime.live.given import Given
from tests.runtime.test_same_ids import by_columns, delivered, followed
from tests.transport.log.logs import run

FOLDER = ROOT / "examples" / "cookbook"
RULES = (FOLDER / "rules.fl").read_text("utf-8")


def test_the_rules_find_what_their_tests_say() -> None:
    found = CliRunner().invoke(cli, ["test", str(FOLDER)])
    assert found.exit_code == 0, found.output
    assert re.search(r"\b19 passed, 0 failed", found.output)


def test_the_page_shows_every_rule_as_it_is() -> None:
    page = (ROOT / "docs" / "cookbook.md").read_text("utf-8")
    shown = re.findall(r"SUBSCRIPTION \w+\n(?:.+\n)+?(?=\n|```)", page)
    assert shown == re.findall(r"SUBSCRIPTION \w+\n(?:.+\n)+", RULES)


def test_nothing_is_warned_of() -> None:
    assert fairlead.compile(RULES).warnings == ()


@pytest.mark.spark
def test_spark_and_live_subscribers_find_the_same(spark: SparkSession, tmp_path: Path) -> None:
    tests = yaml.safe_load((FOLDER / "rules.test.yaml").read_text("utf-8"))["tests"]
    events = tuple(event for each in tests for event in each["events"])
    live = run(lambda: followed(Given(1, RULES, (), events, only_group(fairlead.compile(RULES))), tmp_path / "events.parquet"))
    plan, table = fairlead.compile(RULES), pq.read_table(tmp_path / "events.parquet")
    assert delivered(fairlead.match(plan, table, position="position")) == live
    batch = fl.match(plan, spark.read.parquet(str(tmp_path / "events.parquet")), position="position")
    assert by_columns(batch) == live
    assert {name for name, _ in live} >= {
        "BruteForce",
        "PortScan",
        "Session",
        "FunnelRate",
        "Rising",
        "ImpossibleTravel",
        "Turned",
        "Visited",
    }
