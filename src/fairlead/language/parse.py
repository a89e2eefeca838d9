"""From text to syntax tree.

Takes: the text of a rule set. Gives: `syntax.Rules`, or a Fault that says what does not fit and what would.
Never: knows a type or a name.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib import resources
from io import BytesIO

import lark
from lark import Lark, UnexpectedCharacters, UnexpectedToken

from fairlead.language import complaint, syntax
from fairlead.language.build import build
from fairlead.language.fault import Fault, Span
from fairlead.model.limits import LIMITS

FOLDER = resources.files("fairlead.language")
TABLES = "grammar.tables"
"""The parser as `Lark.save` gives it, after a line that says of which Lark and which grammar. Loading it takes 10 ms,
making it 100 ms. `FAIRLEAD_UPDATE_TABLES=1 pytest tests/language/test_tables.py` writes it after a change of the grammar."""


@cache
def grammar() -> Lark:
    """The parser: from the tables if they are of this grammar and of the Lark that is installed, else from the grammar."""
    text = FOLDER.joinpath("grammar.lark").read_text(encoding="utf-8")
    edition, _, tables = FOLDER.joinpath(TABLES).read_bytes().partition(b"\n")
    return Lark.load(BytesIO(tables)) if edition == edition_of(text) else made(text)


def made(text: str) -> Lark:
    return Lark(text, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False)


def edition_of(text: str) -> bytes:
    return f"lark {lark.__version__} grammar {sha256(text.encode()).hexdigest()}".encode()


def parse(text: str) -> syntax.Rules:
    _check_size(text)
    try:
        tree = grammar().parse(text)
    except UnexpectedToken as error:
        raise complaint.of_token(text, error) from None
    except UnexpectedCharacters as error:
        raise complaint.of_character(text, error.pos_in_stream or 0) from None
    return build(tree)


def _check_size(text: str) -> None:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise Fault("L003", Span(error.start, error.end), "the text is not valid Unicode", "save the file as UTF-8") from None
    if size > LIMITS.text_bytes_max:
        problem = f"the text has {size:,} bytes, more than {LIMITS.text_bytes_max:,}"
        raise Fault("L003", Span(0, 1), problem, "split it into several files")
