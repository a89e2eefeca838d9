"""`fairlead explain`: plan, signature, guarantees, and counterexamples on demand."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from fairlead.cli.commands.explain import property_named
from fairlead.engine import compile
from fairlead.explanation import explain
from fairlead.model.guarantee import Property
from tests.cli.shop import MARKET, fairlead

TWO = MARKET + "\nSUBSCRIPTION Latest MATCH StockQuote q[2] MATCHING RECENT DISPOSAL INFIX\n"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "market.fl"
    path.write_text(TWO)
    return path


def test_plan_signature_and_guarantees_are_shown(rules: Path) -> None:
    result = fairlead("explain", rules)
    assert result.exit_code == 0, result.output
    for part in (
        "SUBSCRIPTION Rally",
        "signature  [EarningsReport[1] r, StockQuote[1] q[1], StockQuote[2] q[2], StockQuote[3] q[3]]",
        "per        symbol",
        "within     300 s",
        "SUBSCRIPTION Latest",
        "RECENT (MR): instance 2 of a type is older than instance 1",
    ):
        assert part in result.stdout
    for each in Property:
        assert result.stdout.count(f"\n{each}  ") == 2, each


def test_the_code_of_a_kernel_is_shown_and_means_what_runs(rules: Path) -> None:
    result = fairlead("explain", rules, "--kernel", "Latest")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("# Latest\n\ndef search_0(")
    for part in ("def kernel(codes, local, words,", "links[before, NEXT] = entry", "counters[QUEUED] += 1"):
        assert part in result.stdout
    assert "Rally" not in result.stdout
    ast.parse(result.stdout)


def test_the_code_of_every_branch(rules: Path, tmp_path: Path) -> None:
    both = fairlead("explain", rules, "--kernel").stdout
    assert [line for line in both.splitlines() if line.startswith("#")] == [
        "# Rally",
        "# value0: StockQuote.at",
        "# value1: EarningsReport.at",
        "# value2: StockQuote.value",
        "# Latest",
    ]
    given = json.loads(fairlead("explain", rules, "--kernel", "--json").stdout)["kernels"]
    assert {name: len(codes) for name, codes in given.items()} == {"Rally": 1, "Latest": 1}
    several = tmp_path / "several.fl"
    several.write_text("TYPE A () TYPE B () SUBSCRIPTION S MATCH A a OR B b")
    text = fairlead("explain", several, "--kernel").stdout
    assert [line for line in text.splitlines() if line.startswith("#")] == ["# S, branch 0", "# S, branch 1"]
    assert fairlead("explain", rules, "--kernel", "Nobody").exit_code == 2


def test_only_one_subscription(rules: Path) -> None:
    result = fairlead("explain", rules, "--subscription", "Latest")
    assert "SUBSCRIPTION Latest" in result.stdout
    assert "SUBSCRIPTION Rally" not in result.stdout


def test_the_guarantees_of_a_runtime(tmp_path: Path) -> None:
    rules = tmp_path / "union.fl"
    types = "TYPE A (x INT) TYPE B (x INT) TYPE C (x INT) EVENT UNION W = A + B"
    rules.write_text(f"{types} TOPIC other (C) SUBSCRIPTION S MATCH W w AND C c")
    embedded = fairlead("explain", rules)
    assert "spark also loses type FIFO order" in embedded.stdout
    assert "live       lost   across A in main, B in main, C in other" in embedded.stdout
    for runtime, verdict in (("live", "kept"), ("spark", "lost")):
        told = json.loads(fairlead("explain", rules, "--runtime", runtime, "--json").stdout)["subscriptions"][0]
        verdicts = {each["property"]: each["verdict"] for each in told["guarantees"]}
        assert verdicts["type FIFO order"] == verdict
        assert verdicts["no duplication"] == "kept"
    assert fairlead("explain", rules, "--runtime", "flink").exit_code == 2


def test_a_counterexample_to_every_property_that_is_lost(rules: Path) -> None:
    expected = explain(compile(TWO), counterexamples=True).counterexamples
    assert expected
    result = fairlead("explain", rules, "--counterexample")
    for (_, lost), text in expected.items():
        assert f"counterexample to {lost}" in result.stdout
        assert text.splitlines()[0] in result.stdout


def test_a_counterexample_to_one_property(rules: Path) -> None:
    name, lost = next(iter(explain(compile(TWO), counterexamples=True).counterexamples))
    result = fairlead("explain", rules, "--subscription", name, "--counterexample", lost.replace(" ", "-"))
    assert result.exit_code == 0
    assert result.stdout.count("counterexample to ") == 1


def test_json_carries_the_counterexamples_too(rules: Path) -> None:
    expected = explain(compile(TWO), counterexamples=True)
    result = fairlead("explain", rules, "--counterexample", "--json")
    found = json.loads(result.stdout)
    assert [each["name"] for each in found["subscriptions"]] == ["Rally", "Latest"]
    shown = {
        (each["name"], Property(guarantee["property"])): guarantee["counterexample"]
        for each in found["subscriptions"]
        for guarantee in each["guarantees"]
        if "counterexample" in guarantee
    }
    assert shown == dict(expected.counterexamples)
    assert all(len(each["guarantees"]) == 14 for each in found["subscriptions"])


@pytest.mark.parametrize("typed", ["covering-agreement", "Covering Agreement", "COVERING_AGREEMENT"])
def test_a_property_may_be_typed_in_several_ways(typed: str) -> None:
    assert property_named(typed) == Property.COVERING_AGREEMENT


def test_the_primed_property_has_a_name_without_a_quote() -> None:
    assert property_named("no-duplication-in-place") == Property.NO_DUPLICATION_IN_PLACE


@pytest.mark.parametrize(
    ("arguments", "message"), [(["--subscription", "Nope"], "A001"), (["--counterexample", "fairness"], "A002")]
)
def test_names_that_do_not_exist(rules: Path, arguments: list[str], message: str) -> None:
    result = fairlead("explain", rules, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "use one of" in result.stderr
