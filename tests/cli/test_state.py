"""`fairlead run --state`: runs one after the other deliver what one run over all events would, whatever rules become."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
import signal
import stat
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.files.state_file import held
from fairlead.errors import StateError
from fairlead.runtime.run_state import decode_run
from tests.cli.shop import at, command, fairlead, write_lines

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
    assert told["state"]["resumed"] == ["Pair", "Rising", "Lonely", "Chain"]


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
        "file": str(tmp_path / "state"), "resumed": [], "started": ["Pair", "Rising", "Lonely", "Chain"], "dropped": [],
    }  # fmt: skip
    changed = (
        TYPES + "SUBSCRIPTION Fresh MATCH A a\n" + LONELY.replace("3 SECONDS", "4 SECONDS") + PAIR.replace("Pair", "Couple")
    )
    told = runs(changed, given[50:])
    assert told["state"]["resumed"] == ["Couple"]
    assert told["state"]["started"] == ["Fresh", "Lonely"]
    assert sorted(told["state"]["dropped"]) == ["Chain", "Lonely", "Rising"]
    assert runs.ids["Pair"] + runs.ids["Couple"] == expected.ids["Pair"]
    assert told["receipts"]["Couple"]["deliveries"] == len(expected.ids["Pair"])
    assert told["receipts"]["Fresh"]["deliveries"] == sum(each["type"] == "A" for each in given[50:])


def test_the_text_says_which_is_which(tmp_path: Path) -> None:
    Runs(tmp_path)(TYPES + PAIR + RISING, events(4)[:50])
    (tmp_path / "rules.fl").write_text(TYPES + PAIR + LONELY)
    result = fairlead("run", tmp_path / "rules.fl", "--events", tmp_path / "events.jsonl", "--state", tmp_path / "state")
    assert f"state in {tmp_path / 'state'}; resumed: Pair; started: Lonely; dropped: Rising" in result.stdout
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
    assert (again.exit_code, again.stderr[:4]) == (1, "D034")


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


@pytest.fixture
def few(tmp_path: Path) -> Path:
    (tmp_path / "rules.fl").write_text(ALL)
    write_lines(tmp_path / "events.jsonl", events(10))
    return tmp_path


def run(folder: Path, state: object, *more: object, given: str = "events.jsonl") -> Any:
    return fairlead("run", folder / "rules.fl", "--events", folder / given, "--state", state, *more)


@pytest.mark.parametrize("exists", [False, True], ids=["new", "exists"])
def test_a_state_belongs_to_one_run_at_a_time(few: Path, exists: bool) -> None:
    """Also under another name; and a run that was killed holds nothing."""
    if exists:
        assert run(few, few / "state").exit_code == 0
    (few / "link").symlink_to("state")
    os.mkfifo(few / "pipe.jsonl")
    before = sorted(each.name for each in few.iterdir())
    first = command("run", few / "rules.fl", "--events", few / "pipe.jsonl", "--state", few / "state", "--out", few / "o.jsonl")
    with (
        subprocess.Popen(first) as process,
        (few / "pipe.jsonl").open("wb"),  # this waits until the run reads from it, and by then has the state
    ):
        for name in ("state", "link"):
            refused = run(few, few / name, "--out", few / "second.jsonl")
            assert (refused.exit_code, refused.stderr[:4]) == (1, "S143")
            assert f"{few / name}: another run is using this state\n  fix: wait" in refused.stderr
        assert not (few / "second.jsonl").exists()
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert run(few, few / "link").exit_code == 0
    for each in (few / f".o.jsonl.{process.pid}.part", few / f".state.{process.pid}.part"):
        each.unlink()
    assert sorted(each.name for each in few.iterdir()) == sorted({*before, "state"})
    assert (few / "link").is_symlink()


def test_a_lock_whose_file_has_just_been_removed_is_none(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of a lock goes with it. A run that opened it before that must not take it for the one that is there now."""
    flock, state = fcntl.flock, str(few / "state")
    with ExitStack() as third:

        def overtaken(descriptor: int, how: int) -> None:
            monkeypatch.setattr(fcntl, "flock", flock)
            (few / ".state.lock").unlink()  # the first run ends
            third.enter_context(held(state))
            flock(descriptor, how)

        monkeypatch.setattr(fcntl, "flock", overtaken)
        with pytest.raises(StateError, match="S143"), held(state):
            pass
    with held(state), pytest.raises(StateError, match="S143"), held(state):
        pass
    assert not list(few.glob(".state*"))


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_files_that_are_replaced_keep_their_permissions(few: Path, mode: int) -> None:
    outputs = ["--out", few / "out.jsonl", "--receipt", few / "receipt.json"]
    assert run(few, few / "state", *outputs).exit_code == 0
    names = ("state", "out.jsonl", "receipt.json")
    for name in names:
        (few / name).chmod(mode)
    (few / "link").symlink_to("state")
    assert run(few, few / "link", *outputs).exit_code == 0
    assert {stat.S_IMODE((few / name).stat().st_mode) for name in names} == {mode}


@pytest.mark.parametrize(
    ("state", "exit_code", "code"),
    [
        ("", 2, "A293"),
        ("-", 2, "A293"),
        ("loop", 1, "D013"),
        ("/dev/zero", 1, "D013"),
        ("/dev/null", 1, "D013"),
        ("pipe", 1, "D013"),
        ("folder", 1, "D013"),
        ("huge", 1, "S140"),
        ("none/state", 1, "D018"),
    ],
)
def test_what_cannot_be_a_state_is_refused_and_stays(few: Path, state: str, exit_code: int, code: str) -> None:
    (few / "loop").symlink_to("loop")
    (few / "folder").mkdir()
    os.mkfifo(few / "pipe")
    with (few / "huge").open("wb") as file:
        file.truncate(10**12)
    writer = os.open(few / "pipe", os.O_RDWR)  # otherwise opening it would wait
    before = {each.name: each.lstat().st_ino for each in few.iterdir()}
    result = run(few, state if state in ("", "-") else few / state)
    os.close(writer)
    assert (result.exit_code, result.stderr[:4]) == (exit_code, code)
    assert "fix: " in result.stderr
    assert {each.name: each.lstat().st_ino for each in few.iterdir()} == before


@pytest.mark.parametrize("option", ["--out", "--receipt", "--rejects", "--state"])
@pytest.mark.parametrize("name", ["", "-"])
def test_outputs_have_names(few: Path, option: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(few)  # where rejects go that nobody named
    result = fairlead("run", few / "rules.fl", "--events", few / "events.jsonl", "--on-bad", "skip", option, name)
    if name == "-" and option in ("--out", "--rejects"):
        assert result.exit_code == 0
    else:
        assert (result.exit_code, result.stderr[:4]) == (2, "A293")


@pytest.mark.parametrize("full", ["--out", "--receipt", "--rejects"])
@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet"])
def test_an_output_that_cannot_be_written_leaves_all_others_as_they_were(few: Path, full: str, out: str) -> None:
    assert run(few, few / "state").exit_code == 0
    kept = (few / "state").read_bytes()
    outputs = {"--out": out, "--receipt": "receipt.json", "--rejects": "rejects.jsonl"}
    for each in outputs.values():
        (few / each).write_text("of an earlier run")
    (few / "full.jsonl").symlink_to("/dev/full")
    write_lines(few / "again.jsonl", [*events(11, 200)[120:], "{"])
    named = {option: few / name for option, name in outputs.items()} | {full: few / "full.jsonl"}
    result = run(
        few, few / "state", "--on-bad", "skip", *(each for pair in named.items() for each in pair), given="again.jsonl"
    )
    assert (result.exit_code, result.stderr[:4]) == (1, "D018")
    assert "No space left" in result.stderr
    assert {(few / each).read_text() for each in outputs.values()} == {"of an earlier run"}
    assert (few / "state").read_bytes() == kept
    assert not [each.name for each in few.iterdir() if each.name.startswith(".")]


@pytest.mark.parametrize(
    "head", [b"[" * 100_000, b'{"receipts": ' * 900 + b"1" + b"}" * 900, b"9" * 5_000, b"[]", b"{}"], ids=range(5)
)
def test_a_state_whose_head_no_parser_reads_is_damaged(head: bytes) -> None:
    body = head + b"\n"
    with pytest.raises(StateError, match="S142"):
        decode_run(b"fairlead-run 1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
