"""A class name means one thing in the package. The nodes of the syntax tree are always written `syntax.Compare`, as what they
become has the same names."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.source_trees import HOME, modules, nodes_of, tree_of

QUALIFIED = HOME / "language" / "parsing" / "syntax"


def test_class_names_are_unique() -> None:
    places = defaultdict[str, list[str]](list)
    for path in modules():
        if path.parent != QUALIFIED:
            for node in tree_of(path).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path.relative_to(HOME)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_nodes_of_the_syntax_tree_are_written_with_their_module() -> None:
    names = [
        node.name
        for path in modules()
        if path.parent == QUALIFIED
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef)
    ]
    assert len(names) == len(set(names)) > 20
    for path in modules():
        if path.parent == QUALIFIED:
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairlead.language.parsing.syntax"):
                assert not {each.name for each in node.names} & set(names), path
