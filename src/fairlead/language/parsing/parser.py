"""From text to syntax tree.

    1. automaton.py reads the text. Valid texts end here.
    2. Lark reads the part that automaton.py rejected, with the same grammar: it says what does not fit and what would, or
       returns the tree with the invalid node. So a word that does not fit is reported before a node, wherever they are; but
       text that is nested too deep to continue is reported at once.

Takes: the text of a rule set. Gives: `syntax.Rules`, or a `Fault`. Never: knows a type or a name; exposes a Lark type.
"""

from __future__ import annotations

from functools import cache
from pkgutil import get_data
from typing import TYPE_CHECKING, Any

from fairlead.language.parsing import automaton, syntax
from fairlead.language.parsing.fault import Fault, Span
from fairlead.language.parsing.tree_builder import BUILDERS, DEPTH_MAX, Leaf, TooDeep
from fairlead.model.limits import LIMITS

if TYPE_CHECKING:
    from lark import Lark, Token, Tree


def parse(text: str) -> syntax.Rules:
    _check_size(text)
    found = automaton.read(text)
    if isinstance(found, syntax.Rules):
        return found
    if found:  # the text before is valid: blanks spare Lark a gigabyte for the tree of a long text
        parse_with_lark(" " * found + text[found:], text)
    return parse_with_lark(text)


@cache
def grammar() -> Lark:
    from lark import Lark

    text = (get_data("fairlead.language.parsing", "grammar.lark") or b"").decode()
    return Lark(text, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False)


def parse_with_lark(text: str, shown: str | None = None) -> syntax.Rules:
    """`shown`: the text for error messages, if `text` is a part of it."""
    from lark import UnexpectedCharacters, UnexpectedToken

    from fairlead.language.parsing import complaint

    try:
        tree = grammar().parse(text)
    except UnexpectedToken as error:
        raise complaint.of_token(shown or text, error) from None
    except UnexpectedCharacters as error:
        raise complaint.of_character(shown or text, error.pos_in_stream or 0) from None
    return build(tree)


def build(tree: Tree[Token]) -> syntax.Rules:
    """Bottom-up and without recursion, so that no input can exhaust the stack."""
    built: dict[int, Any] = {}
    depths: dict[int, int] = {}
    for each in tree.iter_subtrees():  # children come before their parents
        span = Span(getattr(each.meta, "start_pos", 0), getattr(each.meta, "end_pos", 0))
        depth = 1 + max((depths.get(id(child), 0) for child in each.children), default=0)
        parts = [built[id(child)] if id(child) in built else _leaf(child) for child in each.children]
        if depth > DEPTH_MAX:
            raise TooDeep(span, parts)
        depths[id(each)] = depth
        built[id(each)] = BUILDERS[str(each.data)](span, parts)
    rules: syntax.Rules = built[id(tree)]
    return rules


def _leaf(token: Any) -> Leaf:
    return Leaf(token.type, str(token), token.start_pos or 0, token.end_pos or 0)


def _check_size(text: str) -> None:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise Fault("L018", Span(error.start, error.end), "the text is not valid Unicode", "save the file as UTF-8") from None
    if size > LIMITS.text_bytes_max:
        problem = f"the text has {size:,} bytes, more than {LIMITS.text_bytes_max:,}"
        raise Fault("L003", Span(0, 1), problem, "split it into several files")
