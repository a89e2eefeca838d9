"""`fairlead run --state`: runs one after the other deliver what one run over all events would, whatever rules become."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from fairlead.runtime.run_state import decode_run
from tests.cli.shop import at, fairlead, write_lines

TYPES = "TYPE A (k INT, v INT, at TIMESTAMP) TIME at\nTYPE B (k INT, v INT, at TIMESTAMP) TIME at\n"
PAIR = "SUBSCRIPTION Pair MATCH A a AND B b WHERE a.v < b.v PER k WITHIN 20 SECONDS\n"
RISING = "SUBSCRIPTION Rising MATCH A a[3] WHERE a[1].v < a[2].v AND a[2].v < a[3].v EMIT Up(k = a[1].k)\n"
LONELY = "SUBSCRIPTION Lonely MATCH B b WITHOUT A a WITHIN 3 SECONDS OF b WHERE a.k = b.k\n"
CHAIN = "SUBSCRIPTION Chain MATCH Up u AND B b WHERE u.k = b.k\n"
ALL = TYPES + PAIR + RISING + LONELY + CHAIN


def events(seed: int, count: int = 120) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {"type": chance.choice("AB"), "k": chance.randrange(3), "v": chance.randrange(50), "at": at(n)}
        | {"_source": "s", "_sequence": n}
        for n in range(count)
    ]  # fmt: skip


class Runs:
    """Runs in a folder, with one state."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.ids: dict[str, list[str]] = {}
        self.told: dict[str, Any] = {}

    def __call__(self, rules: str, given: list[dict[str, Any]], *more: str, state: bool = True) -> dict[str, Any]:
        self.number += 1
        (self.folder / "rules.fl").write_text(rules)
        lines = write_lines(self.folder / "events.jsonl", given)
        out = self.folder / f"out{self.number}.jsonl"
        kept = ["--state", self.folder / "state"] if state else []
        result = fairlead("run", self.folder / "rules.fl", "--events", lines, "--out", out, "--json", *kept, *more)
        assert result.exit_code == 0, result.output
        for line in out.read_text().splitlines():
            each = json.loads(line)
            self.ids.setdefault(each["subscription"], []).append(each["id"])
        self.told = json.loads(result.stdout)
        return self.told


@pytest.mark.parametrize("more", [[], ["--event-by-event"]], ids=["lanes", "event by event"])
@pytest.mark.parametrize("cuts", [(1,), (60,), (0, 40, 40, 119)])
def test_several_runs_are_one(tmp_path: Path, cuts: tuple[int, ...], more: list[str]) -> None:
    given = events(1)
    whole, parts = Runs(tmp_path), Runs(tmp_path)
    expected = whole(ALL, given, *more, state=False)
    for low, high in zip((0, *cuts), (*cuts, len(given)), strict=True):
        told = parts(ALL, given[low:high], *more)
    assert parts.ids == whole.ids
    assert all(whole.ids[name] for name in ("Pair", "Rising", "Lonely", "Chain"))
    assert (told["receipt"], told["deliveries"]) == (expected["receipt"], expected["deliveries"])
    assert told["state"]["continues"] == ["Pair", "Rising", "Lonely", "Chain"]


def test_each_receipt_is_that_of_the_subscription_alone(tmp_path: Path) -> None:
    given = events(2)
    (alone := tmp_path / "alone").mkdir()
    together = Runs(tmp_path)
    for low in range(0, len(given), 50):
        together(ALL, given[low : low + 50])
    for name, rules in (("Pair", PAIR), ("Rising", RISING), ("Lonely", LONELY)):
        told = Runs(alone)(TYPES + rules, given, state=False)
        assert together.told["receipts"][name] == {"deliveries": told["deliveries"], "receipt": told["receipt"]}


def test_rules_change_and_what_is_unchanged_goes_on(tmp_path: Path) -> None:
    """Renamed, in another order, beside others: by digest it is the same."""
    given = events(3)
    expected, runs = Runs(tmp_path), Runs(tmp_path)
    expected(ALL, given, state=False)
    first = runs(ALL, given[:50])
    assert first["state"] == {
        "file": str(tmp_path / "state"), "continues": [], "new": ["Pair", "Rising", "Lonely", "Chain"], "gone": [],
    }  # fmt: skip
    changed = (
        TYPES + "SUBSCRIPTION Fresh MATCH A a\n" + LONELY.replace("3 SECONDS", "4 SECONDS") + PAIR.replace("Pair", "Couple")
    )
    told = runs(changed, given[50:])
    assert told["state"]["continues"] == ["Couple"]
    assert told["state"]["new"] == ["Fresh", "Lonely"]
    assert sorted(told["state"]["gone"]) == ["Chain", "Lonely", "Rising"]
    assert runs.ids["Pair"] + runs.ids["Couple"] == expected.ids["Pair"]
    assert told["receipts"]["Couple"]["deliveries"] == len(expected.ids["Pair"])
    assert told["receipts"]["Fresh"]["deliveries"] == sum(each["type"] == "A" for each in given[50:])


def test_the_text_says_which_is_which(tmp_path: Path) -> None:
    Runs(tmp_path)(TYPES + PAIR + RISING, events(4)[:50])
    (tmp_path / "rules.fl").write_text(TYPES + PAIR + LONELY)
    result = fairlead("run", tmp_path / "rules.fl", "--events", tmp_path / "events.jsonl", "--state", tmp_path / "state")
    assert f"state in {tmp_path / 'state'}; continues: Pair; new: Lonely; gone: Rising" in result.stdout
    assert " of Pair\n" in result.stdout


def test_repeats_are_dropped_and_positions_count_over_all_runs_and_rejects(tmp_path: Path) -> None:
    given = events(5)
    bad = {"type": "A"}
    whole, runs = Runs(tmp_path), Runs(tmp_path)
    skip = ["--on-bad", "skip"]
    whole(ALL, [*given[:30], bad, *given[20:]], *skip, state=False)
    runs(ALL, [*given[:30], bad], *skip)
    told = runs(ALL, given[20:], *skip)
    assert told["duplicates"] == 10
    assert runs.ids == whole.ids


def test_positions_of_a_field_go_on_rising(tmp_path: Path) -> None:
    given = [each | {"p": 10 * n} for n, each in enumerate(events(6))]
    whole, runs = Runs(tmp_path), Runs(tmp_path)
    by = ["--position", "p"]
    whole(ALL, given, *by, state=False)
    runs(ALL, given[:50], *by)
    runs(ALL, given[50:], *by)
    assert runs.ids == whole.ids
    old = write_lines(tmp_path / "old.jsonl", given[:1])
    again = fairlead("run", tmp_path / "rules.fl", "--events", old, "--state", tmp_path / "state", *by)
    assert (again.exit_code, again.stderr[:4]) == (1, "D023")


def test_a_run_that_fails_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs(ALL, events(7)[:50])
    before = (tmp_path / "state").read_bytes()
    lines = write_lines(tmp_path / "bad.jsonl", [*events(7)[50:], {"type": "A"}])
    for out in ("-", "out.jsonl"):
        result = fairlead(
            "run", tmp_path / "rules.fl", "--events", lines, "--state", tmp_path / "state", "--out",
            out if out == "-" else tmp_path / out,
        )  # fmt: skip
        assert (result.exit_code, result.stdout) == (1, "")
    assert (tmp_path / "state").read_bytes() == before


def test_a_state_that_is_none_is_damaged_or_is_of_another_version_is_refused(tmp_path: Path) -> None:
    Runs(tmp_path)(ALL, events(8)[:50])
    state = tmp_path / "state"
    whole = state.read_bytes()
    for content, code in (
        (b"", "S140"),
        (b"{}", "S140"),
        (whole.replace(b"fairlead-run 1", b"fairlead-run 9", 1), "S141"),
        (whole[:-1], "S142"),
        (whole.replace(b'"names"', b'"nomes"', 1), "S142"),
    ):
        state.write_bytes(content)
        result = fairlead("run", tmp_path / "rules.fl", "--events", tmp_path / "events.jsonl", "--state", state)
        assert (result.exit_code, result.stderr[:4]) == (1, code), content[:40]
    assert decode_run(whole).encode() == whole


@pytest.mark.parametrize("more", [["--until", "2026-02-01"], ["--position", "p", "--stream", "s"]])
def test_an_end_or_several_streams_have_no_state(tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "rules.fl").write_text(ALL)
    lines = write_lines(tmp_path / "events.jsonl", events(9))
    result = fairlead("run", tmp_path / "rules.fl", "--events", lines, "--state", tmp_path / "state", *more)
    assert result.exit_code == 2
    assert "--state" in result.stderr
