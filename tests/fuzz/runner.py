"""Targets by turns, each in a child process with successive seeds, until the time is over.

Takes: targets, a first seed, minutes. Gives: a `Report`, and what happens line by line. A case that raises, crashes, hangs or
takes too much memory is a finding. Never: stops at one, or runs a case in this process.
"""

from __future__ import annotations

import json
import os
import pkgutil
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.root import ROOT

CORPUS = Path(__file__).parent / "corpus.txt"
SLICE_SECONDS = 60.0
"""How long a target runs before the next one has its turn, in a process of its own: a leak ends with it."""
SILENCE_SECONDS = 300.0
"""Without a word from the child although it takes no processor time (see child.py for the limit of that)."""


@dataclass(frozen=True)
class Finding:
    target: str
    seed: int
    problem: str
    place: str = ""

    @property
    def command(self) -> str:
        return f"python -m tests.fuzz --case {self.target} {self.seed}"


@dataclass
class Report:
    first_seed: int
    seconds: float = 0.0
    cases: Counter[str] = field(default_factory=Counter)
    seen: dict[str, Counter[str]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "first_seed": self.first_seed,
            "seconds": round(self.seconds, 1),
            "cases": dict(self.cases),
            "seen": {name: dict(each) for name, each in self.seen.items()},
            "findings": [vars(each) | {"command": each.command} for each in self.findings],
        }


def targets() -> list[str]:
    """The modules beside this one that have a `case`."""
    import tests.fuzz as here

    found = [each.name for each in pkgutil.iter_modules(here.__path__) if not each.name.startswith(("test_", "_"))]
    own = {"child", "runner", "shrinking"}
    return [name for name in found if name not in own and hasattr(import_module(f"tests.fuzz.{name}"), "case")]


def run(
    names: Sequence[str],
    minutes: float,
    first_seed: int,
    say: Callable[[str], None],
    cases_max: int = sys.maxsize,
    slice_seconds: float = SLICE_SECONDS,
) -> Report:
    """`cases_max`: of each target."""
    report, began = Report(first_seed), time.monotonic()
    ends = began + minutes * 60
    following = dict.fromkeys(names, first_seed)
    while (now := time.monotonic()) < ends and any(report.cases[name] < cases_max for name in names):
        for name in names:
            left = min(slice_seconds, ends - time.monotonic())
            room = cases_max - report.cases[name]
            if left > 0 and room > 0:
                _slice(report, name, following, room, left, say)
        if time.monotonic() - now < 0.01:
            break
    report.seconds = time.monotonic() - began
    return report


def _slice(report: Report, name: str, following: dict[str, int], room: int, seconds: float, say: Callable[[str], None]) -> None:
    before, known = report.cases[name], len(report.findings)
    with Child(name, following[name], room, seconds) as child:
        for word, seed, told in child.lines():
            if word == "end":
                report.cases[name] += 1
                following[name] = seed + 1
            elif word == "bad":
                report.findings.append(Finding(name, seed, told["problem"], told["place"]))
            elif word == "seen":
                report.seen.setdefault(name, Counter()).update(told)
        problem = child.ended()
    if problem:
        report.findings.append(Finding(name, child.seed, problem))
        report.cases[name] += 1
        following[name] = child.seed + 1
    for each in report.findings[known:]:
        say(f"FOUND {each.target} {each.seed}: {each.problem.splitlines()[0][:200]}\n      {each.command}")
    say(f"{name}: {report.cases[name] - before} cases, {report.cases[name]} in all, next seed {following[name]}")


class Child:
    """One process with cases of one target."""

    def __init__(self, target: str, first: int, count: int, seconds: float) -> None:
        command = [sys.executable, "-m", "tests.fuzz.child", target, str(first), str(count), str(seconds)]
        self.seed, self.running, self.silent = first, False, False
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment())

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def lines(self) -> Any:
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        waiting, rest = selectors.DefaultSelector(), b""
        waiting.register(self.process.stdout, selectors.EVENT_READ)
        spent = -1
        while True:
            if not waiting.select(SILENCE_SECONDS):
                spent, before = _processor_time(self.process.pid), spent
                if spent != before:
                    continue  # on a machine with more to do, it has a limit of its own
                self.silent = True
                self.process.kill()
                return
            read = self.process.stdout.read()
            if not read:
                return
            *whole, rest = (rest + read).split(b"\n")
            for line in whole:
                word, number, *more = line.decode().split(" ", 2)
                if word == "seen":
                    yield word, -1, json.loads(" ".join([number, *more]))
                    continue
                self.seed, self.running = int(number), word != "end"
                if word != "begin":
                    yield word, self.seed, json.loads(more[0]) if more else {}

    def ended(self) -> str | None:
        """How the process ended, if a case ended it."""
        _, told = self.process.communicate()
        status = self.process.returncode
        if self.silent:
            return f"hang: no processor time and no end for {SILENCE_SECONDS:.0f} s"
        if status == 0:
            return None
        if status == -signal.SIGPROF:
            return "hang: too much processor time (tests/fuzz/child.py has the limit)"
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        last = told.decode(errors="replace").strip().splitlines()[-1:] or [""]
        return f"crash: the process ended with {name} {last[0]}".strip()


def _processor_time(process: int) -> int:
    """In ticks; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))}


# --- what was found before


@dataclass(frozen=True)
class Kept:
    """A line of the corpus: a target, a seed, and what it was. `open`: not fixed yet."""

    target: str
    seed: int
    what: str

    @property
    def open(self) -> bool:
        return self.what.startswith("open")

    def __str__(self) -> str:
        return f"{self.target} {self.seed}"


def corpus(path: Path = CORPUS) -> list[Kept]:
    lines = path.read_text(encoding="utf-8").splitlines()
    split = [line.split(maxsplit=2) for line in lines if line.strip() and not line.startswith("#")]
    return [Kept(target, int(seed), rest[0] if rest else "") for target, seed, *rest in split]


def keep(findings: Sequence[Finding], path: Path = CORPUS) -> None:
    """Seeds that are new, at the end of the corpus."""
    known = {(each.target, each.seed) for each in corpus(path)}
    new = [each for each in findings if (each.target, each.seed) not in known]
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{each.target} {each.seed} open: {' '.join(each.problem.split())[:120]}\n" for each in new)
