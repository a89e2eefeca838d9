"""The source of the package as syntax trees, parsed once in a process for all tests that read it."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

from tests.root import ROOT

HOME = ROOT / "src" / "fairlead"


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module, from the outside in. Half a million of them stay: while they are made, none is garbage."""
    gc.disable()
    try:
        return tuple(ast.walk(tree_of(path)))
    finally:
        gc.enable()


@cache
def modules() -> tuple[Path, ...]:
    return tuple(sorted(HOME.rglob("*.py")))
