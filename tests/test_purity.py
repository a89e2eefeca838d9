"""The core does no I/O. `make layers` refuses modules that could; here are the builtins, and a process that watches it work."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import fairlead

ROOT = Path(fairlead.__file__).parent
CORE = ("model", "language", "guarantees", "order", "matching", "deliver")
FORBIDDEN = {
    "open",
    "print",
    "input",
    "breakpoint",
    "OSFile",
    "memory_map",
    "memmap",
    "fromfile",
    "tofile",
    "environ",
    "getenv",
}
"""Names by which something is read or written without an import of its own: builtins, and those of Arrow and NumPy."""
A_COMMAND = ROOT / "language/parsing/table_builder.py"
"""`make grammar` runs it as a program; nothing of the core imports it."""

WATCHED = """import sys
import fairlead
from fairlead.matching.compiled.machine_code import surroundings
from fairlead.transport import read_records

RULES = '''TYPE A (v INT, at TIMESTAMP) TIME at
TYPE B (v INT, at TIMESTAMP) TIME at
SUBSCRIPTION S MATCH A a AND B b WHERE a.v + {number} == b.v + {number} EMIT C(v = a.v, at = b.at) TIME at
SUBSCRIPTION T MATCH C c WITHOUT A x WITHIN {number} SECONDS OF c WHERE x.v > c.v + 5'''
EVENTS = [{"type": "AB"[i % 2], "v": i // 2, "at": f"2026-01-01T00:00:{i:02d}Z"} for i in range(40)]

def work(number, kernels_from):
    plan = fairlead.compile(RULES.format(number=number))
    fairlead.explain(plan).to_json()
    engine = fairlead.Engine(plan, kernels_from=kernels_from)
    (columns,) = read_records(EVENTS, plan.catalogue)
    found = [each.id for each in engine.feed(columns)]
    assert (engine.lane is not None) == (kernels_from == 0)
    engine = fairlead.Engine.load(plan, engine.dump(), kernels_from)
    return found + [each.id for each in engine.finish(2**50)]

def watch(event, arguments):
    if watching and event.split(".")[0] in ("open", "os", "socket", "subprocess", "shutil", "tempfile", "glob", "pathlib"):
        seen.append((event, str(arguments)))

watching, seen = False, []
for alone in (True, False):
    surroundings.give(surroundings.MemoryOnly if alone else fairlead._user_cache)
    for kernels_from in (0, None):
        work(1, kernels_from)  # modules are imported
sys.addaudithook(watch)
watching = True
surroundings.give(surroundings.MemoryOnly)
assert work(2, 0) == work(2, None) != []
print(len(seen), *seen)
surroundings.give(fairlead._user_cache)  # the watch would have seen it
work(3, 0)
print(len(seen) > 0)
"""


def core_modules() -> list[Path]:
    found = [path for room in CORE for path in (ROOT / room).rglob("*.py")]
    return sorted([*found, ROOT / "engine.py", ROOT / "explanation.py", ROOT / "errors.py"])


def test_the_core_calls_nothing_that_reads_or_writes() -> None:
    for path in core_modules():
        if path != A_COMMAND:
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                    assert name not in FORBIDDEN, f"{path.relative_to(ROOT)}, line {node.lineno}: {name}"


def test_a_core_that_is_given_nothing_touches_nothing(tmp_path: Path) -> None:
    environment = os.environ | {"FAIRLEAD_CACHE": str(tmp_path), "FAIRLEAD_JIT": "1", "FAIRLEAD_KERNELS": ""}
    done = subprocess.run([sys.executable, "-c", WATCHED], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout.split("\n"), done.stderr) == (["0", "True", ""], "")
