"""A folder of the package is a room that a reader takes in at a glance: about fifteen modules at most, each of one idea."""

from __future__ import annotations

from collections import Counter

from tests.source_trees import HOME, modules

FIFTEEN = 15
LINES_MAX = 400


def test_a_folder_has_about_fifteen_modules_at_most() -> None:
    counted = Counter(path.parent.relative_to(HOME).as_posix() for path in modules() if path.name != "__init__.py")
    assert {folder: count for folder, count in counted.items() if count > FIFTEEN} == {}


def test_every_folder_says_what_it_holds() -> None:
    rooms = [path for path in modules() if path.name == "__init__.py"]
    assert [str(path.relative_to(HOME)) for path in rooms if not path.read_text("utf-8").startswith('"""')] == []


def test_a_module_has_at_most_400_lines() -> None:
    """Longer ones hold two ideas."""
    counted = {path.relative_to(HOME).as_posix(): len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert {path: lines for path, lines in counted.items() if lines > LINES_MAX} == {}
