"""Runs in one, two and three processes write the same bytes, and an end of any of the processes leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

import fairlead
from fairlead.cli.process.worker import COMMAND
from fairlead.deliver.receipt import dumps
from fairlead.errors import DataError, FairleadError
from fairlead.matching.results.transferred import Wanted
from fairlead.model.relations.layout import layout_of
from fairlead.runtime.embedded import Run
from fairlead.runtime.spread.spreading import Spreading, SpreadLimits
from fairlead.transport.files.event_files import read_files
from fairlead.transport.output.relation_files import RejectWriter, open_relations
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # each starts processes
RULES = """
TYPE A (k INT, s STRING, x INT, at TIMESTAMP) TIME at
TYPE B (k INT, s STRING, x INT, at TIMESTAMP) TIME at
SUBSCRIPTION S MATCH A a THEN B b PER k WITHIN 20 SECONDS MATCHING FIRST DISPOSAL PREFIX INFIX EMIT E(x = a.x + b.x)
SUBSCRIPTION T MATCH A a[2] AND B b WHERE a[1].x < b.x PER k MATCHING ALL LIMIT 2 PER EVENT
SUBSCRIPTION V MATCH A a THEN B b PER s MATCHING RECENT
SUBSCRIPTION W MATCH A a{2} HAVING sum(a.x) > 2 PER k
"""
AT_ONCE = SpreadLimits(run_seconds=0.0, event_seconds=0.0)
KEYS: dict[str, tuple[int | None, ...]] = {"many": tuple(range(40)), "one": (7,), "null": (1, 2, None), "none": (None,)}


def lines(seed: int, keys: Sequence[int | None], count: int = 400) -> Iterator[str]:
    """Events, repeats of a sequence among them, and records that are refused."""
    random = Random(seed)
    for number in range(count):
        record: dict[str, Any] = {"type": random.choice("AB"), "k": random.choice(keys), "s": random.choice(["é", "b", None])}
        record |= {"x": random.randrange(4), "at": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"}
        record |= {"_source": random.choice("pq"), "_sequence": number - random.choice((0, 0, 0, 5))}
        yield (
            json.dumps(record)
            if random.randrange(20)
            else random.choice(("{", '{"type": "N"}', json.dumps(record | {"x": ""})))
        )


def outcome(folder: Path, events: Path, jobs: int, suffix: str, batch_rows: int, limits: SpreadLimits = AT_ONCE) -> list[Any]:
    """The bytes of every output, and the counts."""
    plan = fairlead.compile(RULES)
    run = Run(plan, rejects=True)
    target, refused = folder / f"{jobs}{suffix}", folder / f"{jobs}.rejects.jsonl"
    wanted = Wanted(layout_of(plan)) if suffix == ".parquet" else Wanted(lines=True)
    with (
        Spreading(run, COMMAND, jobs, wanted, limits) as spread,
        open_relations(target, plan) as relations,
        RejectWriter(refused) as rejects,
        closing(
            read_files(
                events, plan.catalogue, on_bad="skip", rejects=rejects, batch_rows=batch_rows, last_sequences=run.sequences
            )
        ) as batches,
    ):
        for columns in batches:
            for found in spread.feed(columns):
                relations.write(found)
        for found in spread.rest():
            relations.write(found)
        assert (spread.workers is not None) == (jobs > 1 and limits is AT_ONCE)
    return [target.read_bytes(), refused.read_bytes(), dumps(run.receipt), run.events, run.duplicates, dict(run.found)]


@pytest.mark.sampled
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize(("suffix", "batch_rows"), [(".parquet", 30), (".jsonl", 7), (".parquet", 1000)])
def test_the_bytes_are_those_of_one_process(tmp_path: Path, keys: str, suffix: str, batch_rows: int) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("\n".join(lines(len(keys) + batch_rows, KEYS[keys])))
    one, two, three = (outcome(tmp_path, events, jobs, suffix, batch_rows) for jobs in (1, 2, 3))
    assert one == two == three
    assert one[4] > 0
    assert one[1] != b""
    assert (one[5].get("S", 0) > 0) == (keys != "none")
    assert one[5]["V"] > 0


def test_a_short_run_starts_no_process(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("\n".join(lines(1, KEYS["many"])))
    outcome(tmp_path, events, 2, ".jsonl", 50, SpreadLimits())


def fed(command: Sequence[str]) -> Spreading:
    """A run whose workers are other programs, and have got a batch."""
    plan = fairlead.compile(RULES)
    spread = Spreading(Run(plan), command, 2, Wanted(lines=True), AT_ONCE)
    record = {"type": "A", "k": 1, "s": "a", "x": 1, "at": "2026-01-01T00:00:00Z"}
    from fairlead.transport.events import read_events

    for columns in read_events([record], plan.catalogue):
        assert list(spread.feed(columns)) == []
    return spread


def program(text: str) -> list[str]:
    return [sys.executable, "-c", f"import os, sys\nfrom fairlead.runtime.spread.frames import *\n{text}"]


DYING: dict[str, tuple[str, str]] = {
    "killed": ("read_frame(sys.stdin.buffer); os.kill(os.getpid(), 9)", "signal 9 ended it"),
    "ended": ("read_frame(sys.stdin.buffer); sys.exit(3)", "exit code 3"),
    "in the middle of a reply": ("sys.stdout.buffer.write(bytes(7) + b'x' + b'y' * 20); sys.exit(4)", "exit code 4"),
}


@pytest.mark.parametrize("how", DYING)
def test_a_worker_that_ends_is_an_error_with_a_code(how: str) -> None:
    text, said = DYING[how]
    with fed(program(text)) as spread, pytest.raises(FairleadError, match=said) as raised:
        list(spread.rest())
    assert raised.value.code == "A288"
    assert not spread.workers


def test_an_error_of_a_worker_is_raised_as_it_is() -> None:
    text = "from fairlead.errors import DataError\nread_frame(sys.stdin.buffer)\n"
    text += "write_frame(sys.stdout.buffer, DataError('D004', 'a problem', 'a fix'))\nsys.stdin.buffer.read()"
    with fed(program(text)) as spread, pytest.raises(DataError, match="a problem"):
        list(spread.rest())


def test_a_worker_ends_when_the_run_is_gone() -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


def children(pid: int) -> list[int]:
    """The processes that one has started, and that have not ended."""
    found = []
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(each))
    return found


ENDS: dict[str, tuple[Callable[[int], None], int, str]] = {
    "Ctrl-C": (lambda pid: os.kill(pid, signal.SIGINT), 130, "interrupted"),
    "termination": (lambda pid: os.kill(pid, signal.SIGTERM), 143, ""),
    "a killed worker": (lambda pid: os.kill(children(pid)[0], signal.SIGKILL), 1, "A288"),
    "a killed run": (lambda pid: os.kill(pid, signal.SIGKILL), -9, ""),
}


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks at /proc")
@pytest.mark.parametrize("how", ENDS)
def test_whatever_ends_a_run_leaves_no_process_and_no_file(tmp_path: Path, how: str) -> None:
    act, code, said = ENDS[how]
    (tmp_path / "rules.fl").write_text(RULES)
    event = {"type": "A", "k": 1, "s": "a", "x": 1, "at": "2026-01-01T00:00:00Z"}
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event | {"k": k % 99}) + "\n" for k in range(120_000)))
    options = ["--event-by-event", "--jobs", "2", "--batch-rows", "60000", "--out", "out.parquet", "--quiet"]
    command = [sys.executable, "-m", "fairlead", "run", "rules.fl", "--events", "events.jsonl", *options]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: len(children(process.pid)) == 2)
        workers = children(process.pid)
        act(process.pid)
        assert process.wait(60) == code
        wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in workers))
        assert process.stderr is not None
        assert said in process.stderr.read()
    left = {each.name for each in tmp_path.iterdir()}
    assert {each for each in left if not each.endswith(".part") or how != "a killed run"} == {"rules.fl", "events.jsonl"}
