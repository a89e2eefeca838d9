"""`compare` where a subscriber has several subscriptions: each is compared with its own relations, in a file and in another
subscriber's receipts; and rules with ORDER BY, where positions are no part of the identity."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.transport.log.jetstream.server import Server
from tests.cli.shop import fairlead

TYPES = "TYPE A (n INT, at TIMESTAMP) TIME at\nTYPE B (n INT, at TIMESTAMP) TIME at\nTOPIC both (A, B)\n"
SUBSCRIPTIONS = "SUBSCRIPTION R MATCH A a\nSUBSCRIPTION S MATCH B b\nSUBSCRIPTION N MATCH A a WHERE a.n > 9\n"
EVENTS = [
    {"type": name, "n": n, "at": f"2026-01-01T10:0{n if name == 'A' else 8}:0{n}Z"} for n in range(1, 6) for name in "AB"
]  # those of B are minutes ahead of those of A, whose frontier they do not move


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Server(tmp_path_factory.mktemp("server"), durable=False) as server:
        yield server.url


@pytest.fixture(params=["", "ORDER BY at DELAY 1 SECOND\n"], ids=["plain", "ordered"])
def work(request: pytest.FixtureRequest, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two equal subscribers, of rules with and without an order; returns the ending of their names."""
    monkeypatch.setenv("FAIRLEAD_URL", url)
    monkeypatch.chdir(tmp_path)
    mark = "o" if request.param else "p"
    Path("r.fl").write_text((TYPES + request.param + SUBSCRIPTIONS).replace("both", f"both{mark}"))
    text = Path("r.fl").read_text()
    for name in "AB":
        text = (
            text.replace(f"{name} ", f"{name}{mark} ")
            .replace(f"{name},", f"{name}{mark},")
            .replace(f"{name})", f"{name}{mark})")
        )
    Path("r.fl").write_text(text)
    Path("e.jsonl").write_text("\n".join(json.dumps(each | {"type": each["type"] + mark}) for each in EVENTS))
    fine("declare", "r.fl")
    fine("publish", "--from", "e.jsonl", "--quiet")
    for name in ("one", "two"):
        fine("tail", "r.fl", "--name", name + mark, "--start", "earliest", "--until-end", "--no-emit", "--out", f"{name}.jsonl")
    fine("export", "r.fl", "--out", "x.parquet")
    position = () if request.param else ("--position", "position")
    fine("run", "r.fl", "--events", "x.parquet", *position, "--out", "run.jsonl", "--state", "s")
    return mark


def fine(*arguments: str) -> str:
    done = fairlead(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_each_subscription_is_compared_with_its_own_relations(work: str) -> None:
    count = len(Path("one.jsonl").read_text().splitlines())
    equal = f"equal: {count} relations, the same in the same order\n"
    pairs = [("one" + work, "two" + work), ("one" + work, "two.jsonl"), ("run.jsonl", "two" + work), ("one.jsonl", "two.jsonl")]
    for pair in pairs:
        assert fine("compare", *pair) == equal
    assert fine("compare", "one.jsonl", "run.jsonl") == equal


def test_what_is_missing_or_other_is_found_in_its_subscription(work: str) -> None:
    lines = Path("run.jsonl").read_text().splitlines()
    of = {name: [line for line in lines if json.loads(line)["subscription"] == name] for name in "RS"}
    Path("short.jsonl").write_text("\n".join(line for line in lines if line != of["S"][-1]))
    short = fairlead("compare", "one" + work, "short.jsonl")
    assert (short.exit_code, short.stdout) == (3, f"S: {len(of['S']) - 1} deliveries agree; the first has 1 more\n")
    turned = {of["S"][1]: of["S"][2], of["S"][2]: of["S"][1]}
    swapped = [turned.get(line, line) for line in lines]
    Path("swapped.jsonl").write_text("\n".join(swapped))
    other = fairlead("compare", "one" + work, "swapped.jsonl")
    assert other.exit_code == 1
    assert other.stdout.startswith("S: ")
    for name in "RS":  # as many deliveries as in the receipt, from the last to the first
        back = [line for line in lines if line not in of[name]] + of[name][::-1]
        Path("reversed.jsonl").write_text("\n".join(back))
        for pair in (("one" + work, "reversed.jsonl"), ("reversed.jsonl", "one" + work)):
            turned_round = fairlead("compare", *pair, "--json")
            assert (turned_round.exit_code, json.loads(turned_round.stdout)["outcome"]) == (1, "differ")
    Path("r.jsonl").write_text("\n".join(of["R"]))
    one = fairlead("compare", "r.jsonl", "one" + work, "--json")
    assert one.exit_code == 3
    assert json.loads(one.stdout)["agreed"] == len(of["R"])
    Path("else.jsonl").write_text(
        "\n".join(lines)
        .replace('"subscription": "', '"subscription": "Other')
        .replace('"subscription":"', '"subscription":"Other')
    )
    unrelated = fairlead("compare", "else.jsonl", "one" + work, "--json")
    assert (unrelated.exit_code, json.loads(unrelated.stdout)["outcome"]) == (1, "unrelated")


@pytest.mark.parametrize("chosen", ["R", "S", "N", "RS", "RSN"])
def test_a_receipt_of_a_run_is_compared_with_its_subscription_or_refused_with_what_to_do(work: str, chosen: str) -> None:
    position = () if work == "o" else ("--position", "position")
    names = [each for name in chosen for each in ("--subscription", name)]
    fine("run", "r.fl", "--events", "x.parquet", *position, *names, "--state", "kept", "--receipt", "some.json", "--quiet")
    for pair in (("one" + work, "some.json"), ("some.json", "one" + work)):
        found = fairlead("compare", *pair)
        if len(chosen) == 1:
            assert (found.exit_code, found.stdout.split(":")[0]) == (0, "equal"), found.output
        else:
            assert found.exit_code == 1
            assert "compare the relations (`run --out`)" in found.stdout
