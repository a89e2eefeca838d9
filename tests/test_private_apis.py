"""Private interfaces of libraries are used in one module for each library, which has a test that fails when they change:
tests/spark/test_jvm.py for pyspark, tests/language/test_automaton.py for Lark, tests/runtime/rights/test_changed_policy.py for
nats-py."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.source_trees import HOME, modules, nodes_of

WRAPPED = {
    "runtime/spark/setup/jvm.py": {"_active_spark_context", "_find_spark_home", "_jdf", "_jsparkSession", "_jvm"},
    "language/parsing/table_builder.py": {"_parse_table"},
    "transport/log/jetstream/connection.py": {"_transport"},
}
DOCUMENTED = {"_asdict", "_exit", "_fields", "_make", "_replace"} | {
    "_ALL_BROKERS_DOWN", "_AUTO_OFFSET_RESET", "_PARTITION_EOF", "_TRANSPORT",
}  # fmt: skip
"""Of named tuples, of `os`, and codes of `KafkaError`: public, in spite of how they are written."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_" and name not in DOCUMENTED


def own_names() -> set[str]:
    """Names with an underscore that something of ours defines: functions, classes, variables, attributes of `self`."""
    found: set[str] = set()
    for path in modules():
        for node in nodes_of(path):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    found.add(name)
                case ast.Constant(value=str(name)):  # __slots__
                    found.add(name)
    return found


def used(path: Path) -> Iterator[str]:
    """Private attributes and names that are imported from elsewhere."""
    for node in nodes_of(path):
        match node:
            case ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(module=str(module), names=names) if not module.startswith("fairlead"):
                yield from module.split(".")
                yield from (each.name for each in names)
            case ast.Import(names=names):
                yield from (part for each in names for part in each.name.split("."))


def test_private_interfaces_of_libraries_are_used_in_one_module_each() -> None:
    own = own_names()
    found: dict[str, set[str]] = {}
    for path in modules():
        foreign = {name for name in used(path) if is_private(name) and name not in own}
        if foreign:
            found[path.relative_to(HOME).as_posix()] = foreign
    assert found == WRAPPED
