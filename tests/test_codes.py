"""One code, one meaning: the documentation, tests and users' scripts go by it.

Two parts of the code that choose a code by themselves can choose the same one. So a code belongs to the part that raises it
(a package, a room of the runtime), unless it is listed here with what it means wherever it is raised.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.transport.admission.problems import CODES

HOME = Path(__file__).parents[1] / "src" / "fairlead"
ERRORS = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, errors.FairleadError)}
SHARED = {
    "A101": "on_bad is neither stop nor skip",
    "A103": "the file's name does not say a format that can be written",
    "A210": "both order_by and position are given",
    "A211": "nothing says in which order events stand",
    "A214": "a frontier is none of its forms, or not needed",
    "A215": "a delay is no length of time, or delays nothing",
    "A217": "streams are told apart where they are not named",
    "A250": "there is no such subscriber",
    "A251": "start has none of its forms",
    "A264": "a disjunction of several streams starts at a position",
    "N001": "a server does not answer",
    "N007": "a server has not started, or has ended",
    "U110": "nothing says how far a stream is complete",
}
LETTERS = {
    "LanguageError": "L", "DataError": "D", "StateError": "S", "LogError": "N", "UnsupportedError": "U", "UsageError": "A",
    "InvariantError": "X",
}  # fmt: skip


def raised() -> Iterator[tuple[str, str, Path]]:
    """Every error that is made with a code that stands there: its class, the code, the file."""
    for path in sorted(HOME.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(code)), *_]) if name in ERRORS:
                    yield name, code, path


def part_of(path: Path) -> str:
    inside = path.relative_to(HOME).parts
    return "/".join(inside[: 2 if inside[0] == "runtime" and len(inside) > 2 else 1])


RAISED = list(raised())


def test_a_code_belongs_to_one_part_or_is_listed_with_its_meaning() -> None:
    parts: dict[str, set[str]] = {}
    for _, code, path in RAISED:
        parts.setdefault(code, set()).add(part_of(path))
    several = {code for code, found in parts.items() if len(found) > 1 and code[0] not in "DL"}  # problems.CODES has those
    assert several == SHARED.keys()


@pytest.mark.parametrize("name", LETTERS)
def test_the_letter_of_a_code_is_that_of_its_error(name: str) -> None:
    codes = {code for each, code, _ in RAISED if each == name}
    assert all(code[0] == LETTERS[name] and code[1:].isdecimal() and len(code) == 4 for code in codes)


def test_every_code_of_data_has_its_meaning() -> None:
    assert {code for _, code, _ in RAISED if code[0] == "D"} <= CODES.keys()
