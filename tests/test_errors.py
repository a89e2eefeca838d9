"""Messages that people can read, whatever they quote."""

from __future__ import annotations

import pickle

import pytest

from fairlead import compile
from fairlead.errors import DataError, FairleadError, LanguageError, Place

MOST = 6_000
LONG = "9" * 100_000
RULES = "TYPE B (k INT, s STRING, at TIMESTAMP) TIME at\nSUBSCRIPTION S MATCH B b[2] "
WRONG = [
    f"WHERE b[1].k = {LONG}",
    f"WHERE b[1].s = '{LONG}",
    f"WHERE b[1].a{LONG} = 1",
    f"WHERE b[1].k > '{LONG}'",
    f"WITHIN {LONG} SECONDS",
    f"EMIT E{LONG}(x = 1, x = 2)",
    f"AND C{LONG} c",
    LONG,
]


@pytest.mark.parametrize("clause", WRONG, ids=range(len(WRONG)))
def test_no_rule_makes_a_message_that_is_too_long(clause: str) -> None:
    with pytest.raises(LanguageError) as caught:
        compile(RULES + clause)
    assert len(str(caught.value)) < MOST
    assert caught.value.problem


def test_what_is_too_long_loses_its_middle() -> None:
    error = DataError("D004", "a" * 5_000 + "end", "b" * 5_000, "file")
    assert error.problem.startswith("aaa")
    assert error.problem.endswith("end")
    assert "… 3,103 characters …" in error.problem
    assert len(str(error)) < MOST
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert DataError("D004", "a" * 2_000).problem == "a" * 2_000


@pytest.mark.parametrize("column", [1, 50, 150, 201, 500, 900, 1_000])
@pytest.mark.parametrize("width", [1, 7, 100_000])
def test_of_a_long_line_the_part_around_the_place_is_shown(column: int, width: int) -> None:
    line = "".join(chr(0x4E00 + n) for n in range(1_000))
    error = FairleadError("X001", "p", None, Place(1, column, width), line)
    _, shown, carets = str(error).splitlines()
    at = carets.index("^")
    assert shown[at] == line[column - 1]
    assert len(shown) <= 210
    assert len(carets) <= 210
    assert carets.count("^") == min(width, carets.count("^"))


def test_a_short_line_is_shown_as_it_is() -> None:
    error = FairleadError("X001", "p", None, Place(1, 3, 2), "x" * 200)
    assert str(error).splitlines()[1:] == ["    " + "x" * 200, "      ^^"]
