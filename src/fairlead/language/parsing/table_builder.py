"""The parser's tables, made of grammar.lark by Lark: `make grammar` writes them to tables.json.

Takes: the grammar. Gives: its terminals and its LALR(1) automaton as plain values, which automaton.py runs. Never: runs when a
text is compiled; a test rebuilds the tables and compares.

Lark numbers its states and names its helper rules arbitrarily. Here rules are sorted, and states numbered in the order in which
they are reached from the first, so that the same grammar produces the same file.
"""

from __future__ import annotations

import json
import re
from collections import deque
from typing import Any

from lark.parsers.lalr_analysis import Shift

from fairlead.errors import require
from fairlead.language.parsing.parser import grammar

END = "END"
"""The end of the text, which Lark calls $END: automaton.py needs it as the name of a group in a regular expression."""
NAMES = ("NAME", "ANY")
_WORD = r"\(\?a:([A-Z]+)\)"
_KEYWORD = re.compile(rf"\(\?i:{_WORD}\\b\)")
_PHRASE = re.compile(rf"\(\?i:{_WORD}(?:\(\?>\\s\|.*\)\+\+{_WORD}\\b|\(\?=.*\))\)", re.DOTALL)
"""Two words, between which are blanks and comments, or a word that is a keyword only before certain text; its group is the
first word."""


def tables() -> dict[str, Any]:
    automaton: Any = grammar().parser.parser._parse_table
    first, last = automaton.start_states["start"], automaton.end_states["start"]
    reduced = {each: _rule(each) for row in automaton.states.values() for action, each in row.values() if action is not Shift}
    rules = sorted({json.dumps(each) for each in reduced.values()})
    states = {first: 0}
    waiting, rows = deque([first]), []
    while waiting:
        row: dict[str, int] = {}
        for symbol, (action, target) in sorted(automaton.states[waiting.popleft()].items()):
            name = END if symbol == "$END" else symbol
            if action is not Shift:
                row[name] = ~rules.index(json.dumps(reduced[target]))
                continue
            if target not in states:
                states[target] = len(states)
                waiting.append(target)
            row[name] = states[target]
        rows.append(row)
    read = {str(each.name) for rule in reduced for each in rule.expansion if each.is_term and not each.filter_out}
    return {
        **_terminals(),
        "read": sorted(read),
        "rules": [json.loads(each) for each in rules],
        "states": rows,
        "end": states[last],
    }


def _terminals() -> dict[str, dict[str, str]]:
    """Regular expressions by name, in the order in which Lark's lexer tries them: ignored text, words (a keyword if one fits,
    else a name), and all others, which never begin like a word. Of a phrase, the first word is among the words, and all of it
    among the phrases."""
    found: dict[str, dict[str, str]] = {"ignored": {}, "words": {}, "phrases": {}, "signs": {}}
    for each in sorted(grammar().terminals, key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name)):
        expression = each.pattern.to_regexp()
        if each.name in grammar().ignore_tokens:
            found["ignored"][each.name] = expression
        elif each.name in NAMES or _KEYWORD.fullmatch(expression):
            found["words"][each.name] = expression
        elif phrase := _PHRASE.fullmatch(expression):
            found["words"][each.name] = rf"(?i:(?a:{phrase[1]})\b)"
            found["phrases"][each.name] = expression
        else:
            require(not re.match(r"(\(\?\w:)?[A-Za-z]", expression), "only words begin like words", terminal=each.name)
            found["signs"][each.name] = expression
    return found


def _rule(rule: Any) -> dict[str, Any]:
    """The effect of reducing by a rule: the symbols it removes from the stack, which of them are parts (and which of these are
    lists to splice in), and its builder: null for a helper rule of Lark's, whose value is the list of its parts, and "" if the
    one symbol is the value."""
    symbols = [(str(each.name), each.is_term, each.is_term and each.filter_out) for each in rule.expansion]
    parts = [[at, not term and name.startswith("_")] for at, (name, term, dropped) in enumerate(symbols) if not dropped]
    builder = rule.alias or (None if rule.origin.name.startswith("_") else str(rule.origin.name))
    if rule.options.expand1 and not rule.alias:
        require(len(symbols) == len(parts) == 1, "a rule that is inlined is one symbol for another", rule=rule)
        builder = ""
    require(bool(symbols) or rule.origin.name == "start", "what a rule matches has a place in the text", rule=rule)
    return {"origin": str(rule.origin.name), "size": len(symbols), "parts": parts, "builder": builder}


def printed(made: dict[str, Any]) -> str:
    """One line for each rule and state, so that a change of the grammar shows as a change of lines."""
    entries = []
    for name, value in made.items():
        lines = ",\n".join(map(json.dumps, value)) if name in ("rules", "states") else ""
        entries.append(f"{json.dumps(name)}: " + (f"[\n{lines}\n]" if lines else json.dumps(value)))
    return "{\n" + ",\n".join(entries) + "\n}\n"


if __name__ == "__main__":
    print(printed(tables()), end="")
