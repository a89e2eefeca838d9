"""Documents from users, as JSON, YAML or TOML: a value that is safe to traverse, or an error that says what is wrong.

Python's parsers fail in many ways on hand-written text: RecursionError for thousands of brackets, ValueError without a place
for the 30th of February, advice on `sys` for a number of 5,000 digits, and one page of YAML can expand to a billion values.
This module raises Malformed, a ValueError, for all of them.

Takes: text. Gives: its value, no deeper than DEPTH_MAX. Never: opens a file, or assigns an error code.
"""

from __future__ import annotations

import json
import tomllib
from typing import Any

DEPTH_MAX = 200
"""Nested lists and maps. Traversing a value takes a few of Python's 1,000 frames per level."""
VALUES_MAX = 10_000_000
"""Values of a document that uses parts several times (YAML aliases), each use counted."""
DIGITS = "a number has more than 4,300 digits"
TOO_DEEP = f"nested deeper than {DEPTH_MAX} levels"


class Malformed(ValueError):
    """`line` and `column` count from 1, if they are known."""

    def __init__(self, problem: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column

    def at(self, file: str) -> str:
        """The place in a file."""
        return file if self.line is None else f"{file}, line {self.line}, column {self.column or 1}"


def malformed(error: Exception) -> Malformed:
    """The error of a parser, in words for the author of the text."""
    if isinstance(error, Malformed):
        return error
    if isinstance(error, json.JSONDecodeError):
        return Malformed(error.msg, error.lineno, error.colno)
    if isinstance(error, RecursionError):
        return Malformed(TOO_DEEP)
    text = str(error)
    if "integer string conversion" in text:
        return Malformed(DIGITS)
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or (text.splitlines() or ["unknown"])[0]
    return Malformed(problem, *((mark.line + 1, mark.column + 1) if mark is not None else ()))


def json_value(text: str | bytes) -> Any:
    """Raises Malformed."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise malformed(error) from None
    brackets = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    return value if brackets <= DEPTH_MAX else _walkable(value)


def toml_value(text: str) -> Any:
    """Raises Malformed."""
    try:
        return _walkable(tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        raise malformed(error) from None


def yaml_value(text: str) -> Any:
    """Raises Malformed."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            """PyYAML takes the last of two equal keys, and says nothing."""
            known = set[tuple[str, str]]()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if isinstance(key, yaml.ScalarNode):
                    if (key.tag, key.value) in known:
                        problem = f"the key {key.value[:40]!r} is there twice"
                        raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                    known.add((key.tag, key.value))
            return super().construct_mapping(node, deep)

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            try:
                return super().construct_object(node, deep)
            except (ValueError, OverflowError) as error:  # an error in a date or number: PyYAML does not say where
                problem = f"{str(node.value)[:40]!r}: {malformed(error).problem}"
                raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    try:
        return _walkable(yaml.load(text, Loader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise malformed(error) from None


def _walkable(value: Any) -> Any:
    """The value, if it can be traversed: not too deep, not circular, not too large."""
    if _values_of(value, 1, {}) > VALUES_MAX:
        raise Malformed(f"more than {VALUES_MAX:,} values, where aliases are counted as often as they are used")
    return value


def _values_of(value: Any, depth: int, known: dict[int, int]) -> int:
    if not isinstance(value, (dict, list, set)):
        return 1
    if depth > DEPTH_MAX:
        raise Malformed(TOO_DEEP)
    if id(value) not in known:
        inside = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_values_of(each, depth + 1, known) for each in inside)
    return known[id(value)]
