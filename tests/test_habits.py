"""What tests do only where nothing else serves: replace a constant of the code, and sleep.

A limit that a test needs small is passed to what it limits, and what a test waits for is awaited (tests/waiting.py). The few
exceptions are named here, with their reason; none is to be added without one.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.root import ROOT
from tests.source_trees import nodes_of

TESTS = ROOT / "tests"
IN_MACHINE_CODE = "it is part of the generated code, and kernels are made far below what the test calls"
OF_STRUCTURES = "a size of inner structures that every engine of the test has, whoever makes it"
OF_JOBS = "Spark's jobs are started by the public calls, which have no such option"
LIVE = "the parts of the live client have no parameters for it yet"
CONSTANTS: dict[str, tuple[str, set[str]]] = {
    "matching/compiled/test_interruption.py": (IN_MACHINE_CODE, {"EVERY"}),
    "matching/compiled/test_kernel.py": (IN_MACHINE_CODE, {"BUILD", "KEEP", "STEPS"}),
    "matching/compiled/test_kernel_compiled.py": (IN_MACHINE_CODE, {"BUILD", "KEEP", "STEPS"}),
    "matching/compiled/test_kernel_checked.py": ("what was made before is not to be used", {"_FORMS"}),
    "matching/compiled/test_retention.py": (OF_STRUCTURES, {"FEW"}),
    "matching/compiled/test_sequence_kernel.py": (IN_MACHINE_CODE, {"FEW", "LIMITS"}),
    "matching/compiled/test_shared_columns.py": (OF_STRUCTURES, {"FEW"}),
    "matching/equality/test_every_match.py": (IN_MACHINE_CODE, {"EACH", "ROOM"}),
    "matching/generators/keyed.py": (OF_STRUCTURES, {"FEW", "LEAST", "SMALL", "SPREAD", "WORTH"}),
    "matching/interpreted/test_reduced_search.py": (IN_MACHINE_CODE, {"STEPS_EACH", "STEPS_FIRST"}),
    "matching/results/test_delivery_order.py": (OF_STRUCTURES, {"PAGE"}),
    "matching/results/test_event_store.py": (OF_STRUCTURES, {"BISECTED", "PEELED_MAX"}),
    "runtime/live/test_disjunctions.py": (LIVE, {"PULSE_SECONDS"}),
    "runtime/live/test_merged_streams.py": (LIVE, {"BEHIND_SECONDS_MAX"}),
    "runtime/live/test_strangers.py": ("a client of NATS that sends lines as they are", {"_HEADER_VALUE_NEWLINES"}),
    "runtime/live/test_throttle.py": (LIVE, {"BEHIND_MAX", "LOOK_BLOCKS", "LOOK_SECONDS"}),
    "testing/live/test_mutated_runtimes.py": ("an error is put into the runtime", {"SAMPLES_MAX"}),
    "transport/log/test_direct_reader.py": ("a client of NATS that sends lines as they are", {"_HEADER_VALUE_NEWLINES"}),
    "runtime/spark/input/test_parquet_scans.py": (OF_JOBS, {"SMALL_ROWS"}),
    "runtime/spark/job/test_agreement.py": (OF_JOBS, {"BUCKET_ROWS", "EVEN", "SHARE_ROWS", "SLICE_ROWS", "SMALL_ROWS"}),
    "runtime/spark/test_bad_input.py": (OF_JOBS, {"SMALL_ROWS"}),
    "runtime/spark/setup/test_workers.py": ("what was asked before is not to be used", {"_ANSWERED"}),
}
"""By file, why it replaces constants, and which."""
SLEEPS = {
    "runtime/kafka/test_kafka.py": 1,
    "runtime/live/reading.py": 1,
    "runtime/live/test_disjunctions.py": 1,
    "runtime/live/test_failures.py": 1,
    "runtime/rights/served.py": 1,
    "runtime/spark/stream/test_crash.py": 2,
    "runtime/spark/test_cancelling.py": 1,
    "testing/live/test_mutated_runtimes.py": 2,
    "transport/log/test_full.py": 1,
    "transport/log/test_logs.py": 1,
    "transport/log/test_shared_reader.py": 5,
    "waiting.py": 2,
    "web/test_streams.py": 1,
}
"""How often a file sleeps: the comment beside each says why no event can be awaited. `waiting.py` is what awaits."""
OWN_CLOCKS = {"transport/test_patience.py", "testing/simulator/test_event_loop.py"}
"""Their time is simulated, so nobody waits."""
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
ASSIGNED = re.compile(r"\.\s*_?[A-Z][A-Z0-9_]*\s*=[^=]")
"""Only what has it is parsed."""


def calls(name: str) -> Iterator[tuple[str, ast.Call, str]]:
    """The calls of functions and methods of this name: the file, the call, and its first line."""
    for path in sorted(TESTS.rglob("*.py")):
        if path == Path(__file__):
            continue
        text = path.read_text("utf-8")
        if name not in text:
            continue
        lines = text.splitlines()
        for node in nodes_of(path):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
                if called == name:
                    yield path.relative_to(TESTS).as_posix(), node, lines[node.lineno - 1]


def test_constants_are_replaced_only_where_no_limit_can_be_passed() -> None:
    found = defaultdict[str, set[str]](set)
    for file, call, _ in calls("setattr"):
        by_path = len(call.args) == 2
        if isinstance(call.func, ast.Name):
            continue  # Python's own, of objects that the test made
        assert by_path or isinstance(call.args[1], ast.Constant), f"{file}:{call.lineno} names no attribute"
        for given in call.args[:2]:
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                name = given.value.rsplit(".", 1)[-1]
                if CONSTANT.fullmatch(name):
                    found[file].add(name)
                assert not re.fullmatch(r"__(kw)?defaults__", name), f"{file}: pass the argument"
    assert found == {file: names for file, (_, names) in CONSTANTS.items()}


def test_constants_are_not_assigned_to_either() -> None:
    """`module.LIMIT = 3` is the same, and stays so for the tests after it."""
    for path in sorted(TESTS.rglob("*.py")):
        if not ASSIGNED.search(path.read_text("utf-8")):
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Attribute) and CONSTANT.fullmatch(target.attr) and len(target.attr) > 1:
                        raise AssertionError(f"{path.relative_to(TESTS)}:{node.lineno} assigns {ast.unparse(target)}")


def test_nobody_sleeps_where_an_event_can_be_awaited() -> None:
    found = defaultdict[str, int](int)
    for file, call, line in calls("sleep"):
        yields = bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0  # lets others run
        if not yields and file not in OWN_CLOCKS:
            assert "  # " in line or file == "waiting.py", f"{file}:{call.lineno} sleeps and does not say why"
            found[file] += 1
    assert found == SLEEPS
