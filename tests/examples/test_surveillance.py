"""The surveillance example: its data can be made again, its rules pass their tests, and its run finds what was planted."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import fairlead
from tests.root import ROOT

FOLDER = ROOT / "examples" / "surveillance"
SLICE = 23_000
"""Events of the day that the tests run on: all four kinds of episodes are among them, and so is the place at which the live
part publishes an event of the past."""
ENDED_WORKER = re.compile(r"^Traceback \(most recent call last\):\n((  .*\n)*BrokenPipeError: .*\n|\Z)", re.MULTILINE)
"""A worker of Spark that was ended as it wrote says so, or begins to."""


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"surveillance_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def plan() -> fairlead.Plan:
    return fairlead.compile((FOLDER / "rules.fl").read_text(encoding="utf-8"), "rules.fl")


@pytest.fixture(scope="module")
def day() -> pa.Table:
    return pq.read_table(FOLDER / "market.parquet")


@pytest.fixture(scope="module")
def planted() -> dict[str, Any]:
    return json.loads((FOLDER / "planted.json").read_text(encoding="utf-8"))


def test_the_day_can_be_made_again_value_by_value(day: pa.Table, planted: dict[str, Any]) -> None:
    table, episodes = loaded("generate").market()
    assert table.equals(day)
    assert episodes == planted["episodes"]
    assert planted["events"] == day.num_rows


def test_the_day_is_large_and_its_file_small(day: pa.Table) -> None:
    assert day.num_rows >= 120_000
    assert (FOLDER / "market.parquet").stat().st_size < 4_000_000


def test_times_rise_with_a_few_ties_and_a_little_disorder(day: pa.Table) -> None:
    times = day["at"].cast(pa.int64()).to_pylist()
    steps = [after - before for before, after in pairwise(times)]
    assert 0 < sum(step == 0 for step in steps) < 0.05 * len(steps)
    assert 0 < sum(step < 0 for step in steps) < 0.05 * len(steps)
    assert min(steps) > -20_000


def test_the_rules_compile_without_a_warning(plan: fairlead.Plan) -> None:
    assert plan.warnings == ()
    assert [each.name for each in plan.subscriptions] == ["Spoofing", "WashTrade", "Unacknowledged", "RepeatOffender"]


TESTS = yaml.safe_load((FOLDER / "rules.test.yaml").read_text(encoding="utf-8"))["tests"]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test["name"].replace(" ", "-"))
def test_the_rule_tests_pass(plan: fairlead.Plan, test: dict[str, Any]) -> None:
    result = fairlead.match(plan, test["events"])
    assert [(each.subscription, list(each.positions)) for each in result] == [
        (each["subscription"], each["positions"]) for each in test["expect"]
    ]
    for relation, expected in zip(result, test["expect"], strict=True):
        assert expected.get("emitted", {}).items() <= relation.emitted.items()


def test_a_slice_of_the_day_gives_exactly_what_was_planted_in_it(
    plan: fairlead.Plan, day: pa.Table, planted: dict[str, Any]
) -> None:
    found = {(each.subscription, each.positions) for each in fairlead.match(plan, day.slice(0, SLICE))}
    expected = {
        (each["kind"], tuple(each["positions"]))
        for each in planted["episodes"]
        if each["decided_at"] < SLICE and not each["near_miss"]
    }
    assert found == expected
    assert {kind for kind, _ in expected} == {each.name for each in plan.subscriptions}


@pytest.mark.spark
@pytest.mark.server
@pytest.mark.slow
def test_the_run_finds_them_and_everybody_agrees_who_must(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", FOLDER / "run.py", "--events-limit", str(SLICE)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | {"TMPDIR": str(tmp_path)},
        check=False,
    )
    said = ENDED_WORKER.sub("", ran.stderr)
    assert said in ("", "WARNING: Using incubator modules: jdk.incubator.vector\n")
    assert ran.returncode == 0, ran.stdout
    assert "A and B  equal:" in ran.stdout
    assert "A and C  delivery" in ran.stdout
    for line in (
        "desk-1 and desk-2  equal: ",
        "deliveries that both delivered agree",
        "Spoofing)  the same alerts\n",
        "2 relations taken back)  the same relations, under the same ids\n",
        "a Spark job over the exported log, which is sorted there  the same relations, under the same ids\n",
    ):
        assert line in ran.stdout, ran.stdout
    revision = ran.stdout[ran.stdout.index("One late event") : ran.stdout.index("Desks")].splitlines()
    assert [line.split()[1:3] for line in revision[2:] if line.strip() and "late" not in line] == [
        ["+", "Spoofing"],
        ["+", "RepeatOffender"],
        ["-", "Spoofing"],
        ["+", "Spoofing"],
        ["-", "RepeatOffender"],
        ["+", "RepeatOffender"],
    ]
    assert "\x1b[" not in ran.stdout, "no colours where there is no terminal"
    assert list(tmp_path.iterdir()) == [], "the run cleans up after itself"


def test_the_readme_counts_exported_events_without_heartbeats_which_depend_on_the_machine(day: pa.Table) -> None:
    live, text = loaded("live"), (FOLDER / "rules.fl").read_text(encoding="utf-8")
    types = live.TOPICS + text[: text.index("-- A large order")]
    plan = fairlead.compile(types + (FOLDER / "live.fl").read_text(encoding="utf-8"))
    read = {name for each in plan.subscriptions for name in each.types} & set(day.column("type").unique().to_pylist())
    count = sum(each in read for each in day.column("type").to_pylist())
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"over the exported log ({count:,} events, " in page


def test_a_late_event_is_published_in_its_place_of_the_day_and_later(day: pa.Table, planted: dict[str, Any]) -> None:
    live = loaded("live")
    late = live.late_event(day, planted["episodes"])
    order = late.order(day.num_rows)
    assert sorted(order) == list(range(day.num_rows))
    place = order.index(late.at)
    before, behind = (day["at"][order[at]].as_py() for at in (place - 1, place + 1))
    assert before < late.values["at"] + live.LATE_BY <= behind + timedelta(milliseconds=20)
    assert day["type"][late.at].as_py() == "Cancel"


def delivery(sign: int, id: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    return {"sign": sign, "id": id, "subscription": "Spoofing", "events": events, "emitted": {"account": id}}


def test_deliveries_fold_and_those_of_the_late_event_are_named() -> None:
    live = loaded("live")
    late = live.LateEvent(3, 9, {"type": "Cancel", "order_id": 7})
    other, mine = {"type": "Cancel", "order_id": 8}, {"type": "Cancel", "order_id": 7}
    given = [
        delivery(1, "a", [other]),
        delivery(1, "b", [{"type": "SpoofingAlert", "account": "a"}]),
        delivery(-1, "a", [other]),
        delivery(1, "c", [mine]),
        delivery(-1, "b", [{"type": "SpoofingAlert", "account": "a"}]),
        delivery(1, "d", [{"type": "SpoofingAlert", "account": "c"}]),
    ]
    assert list(live.folded(given)) == ["c", "d"]
    assert live.caused_by(late, given) == [3, 5]
    with pytest.raises(KeyError):
        live.folded([delivery(-1, "a", [other])])


def test_the_run_says_how_many_events_it_needs() -> None:
    ran = subprocess.run(
        [sys.executable, FOLDER / "run.py", "--events-limit", "100"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "too few events" in ran.stderr
    assert tempfile.gettempdir() not in ran.stderr
