"""The parser that is shipped is the one that the grammar describes.

`FAIRLEAD_UPDATE_TABLES=1 pytest tests/language/test_tables.py` writes it anew.
"""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import lark
import pytest

from fairlead.language import parse

FOLDER = Path(parse.__file__).parent
GRAMMAR = (FOLDER / "grammar.lark").read_text(encoding="utf-8")
RULES = """
TYPE Login (user STRING, at TIMESTAMP) TIME at
TYPE Alarm (user STRING, level DECIMAL(4, 1), at TIMESTAMP) TIME at
SUBSCRIPTION Suspicious
MATCH Login l[2] THEN Alarm a
WHERE l[1].user <> l[2].user AND (a.level > 2.5 OR a.user LIKE 'a%')
PER user WITHIN 5 MINUTES MATCHING FIRST DISPOSAL PREFIX INFIX
EMIT Seen(user = a.user)
"""


def edition() -> bytes:
    return (FOLDER / parse.TABLES).read_bytes().partition(b"\n")[0]


def test_the_tables_are_of_the_grammar() -> None:
    if os.environ.get("FAIRLEAD_UPDATE_TABLES"):
        saved = BytesIO()
        parse.made(GRAMMAR).save(saved)
        (FOLDER / parse.TABLES).write_bytes(parse.edition_of(GRAMMAR) + b"\n" + saved.getvalue())
    assert edition().split()[-1] == parse.edition_of(GRAMMAR).split()[-1], "the grammar has changed: write the tables anew"


def test_the_loaded_parser_reads_as_the_made_one() -> None:
    if edition() != parse.edition_of(GRAMMAR):
        pytest.skip("the tables are of another version of Lark")
    loaded, made = parse.grammar(), parse.made(GRAMMAR)
    assert loaded.parse(RULES) == made.parse(RULES)
    words = RULES.split(" ")
    for end in range(1, len(words)):
        text = " ".join(words[:end])
        assert outcome(loaded, text) == outcome(made, text)


def outcome(parser: lark.Lark, text: str) -> Any:
    try:
        return parser.parse(text)
    except lark.UnexpectedToken as error:
        return str(error.token), error.pos_in_stream, error.accepts, error.expected


def test_tables_of_another_lark_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lark, "__version__", "0.0")
    monkeypatch.setattr(lark.Lark, "load", None)
    assert parse.grammar.__wrapped__().parse(RULES) == parse.made(GRAMMAR).parse(RULES)
