"""A class name means one thing in the package. The nodes of the syntax tree are always written `syntax.Compare`, as what they
become has the same names."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.root import ROOT

HOME = ROOT / "src" / "fairlead"
QUALIFIED = HOME / "language" / "parsing" / "syntax.py"


def test_class_names_are_unique() -> None:
    places = defaultdict[str, list[str]](list)
    for path in sorted(HOME.rglob("*.py")):
        if path != QUALIFIED:
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path.relative_to(HOME)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_nodes_of_the_syntax_tree_are_written_with_their_module() -> None:
    names = [node.name for node in ast.parse(QUALIFIED.read_text("utf-8")).body if isinstance(node, ast.ClassDef)]
    assert len(names) > 20
    for path in sorted(HOME.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "fairlead.language.parsing.syntax":
                assert not {each.name for each in node.names} & set(names), path
