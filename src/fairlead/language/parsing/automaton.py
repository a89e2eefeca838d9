"""The parser: an LALR(1) automaton with its stack, over the tables that Lark made of the grammar (see table_builder.py).

Takes: a text. Gives: `syntax.Rules`; for an invalid text, how far it is valid. Never: reports an error, except for text that is
nested too deep to continue. parser.py lets Lark read the rest of an invalid text again, so message and place come from Lark.

It does what Lark does with these tables, in a quarter of the time: there is no object for a token that no builder reads, no
tree between the text and the syntax nodes, and no call for a rule that only passes its one part on, as all eight levels between
a number and a condition do. A program whose texts are all valid never loads Lark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pkgutil import get_data
from typing import Any, NamedTuple

from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span
from fairlead.language.parsing.tree_builder import BUILDERS, DEPTH_MAX, Leaf, LongChain, TooDeep

WORD = "WORD"
END = "END"
STATEMENT = "statement"
CHAINED = BUILDERS["arithmetic"]
CHAIN_MAX = 10 * DEPTH_MAX
"""Operators of a chain. A text with so many is not read on, since Lark takes ten times as long to say the same."""


class Rule(NamedTuple):
    origin: str
    size: int
    """Symbols that it removes from the stack."""
    parts: list[int]
    """Which of them are parts, counted from the top of the stack (-1)."""
    spliced: frozenset[int]
    """Which of these are lists whose items are parts."""
    build: Callable[[Span, list[Any]], Any] | None
    """None for Lark's helpers, whose value is the list of their parts."""
    passes: bool
    """The value of its one symbol is its value."""


class Words(dict[str, tuple[str, ...]]):
    """For each word of a text the terminals that it can be or begin, keywords first. The state, and for a phrase the text after
    it, decides which of them it is."""

    def __init__(self, terminals: dict[str, re.Pattern[str]]) -> None:
        self.terminals = terminals

    def __missing__(self, word: str) -> tuple[str, ...]:
        self[word] = found = tuple(name for name, pattern in self.terminals.items() if pattern.fullmatch(word))
        return found


class Automaton(NamedTuple):
    scan: Callable[[str, int], re.Match[str] | None]
    """Skips ignored text up to the next terminal, a word or the end; the matching group has the terminal's name."""
    words: dict[str, re.Pattern[str]]
    """By terminal, the words that it can be; for a phrase, its first word."""
    phrases: dict[str, re.Pattern[str]]
    """Terminals of two words, or that depend on the text after the word: `ORDER BY`, `TOPIC` before a name and a list."""
    rules: list[Rule]
    rows: list[dict[str, int]]
    """For each state, by symbol: the state to go to, or ~n, to reduce by rule n first."""
    read: frozenset[str]
    """The terminals that builders read. For the others only the place is kept."""
    end: int
    open_max: int
    """Symbols on the stack. More would mean more than DEPTH_MAX open nodes: each open node has all its symbols but the last
    there, and those of the list that continues it."""


@cache
def automaton() -> Automaton:
    made = json.loads(get_data("fairlead.language.parsing", "tables.json") or b"")
    ignored = "|".join(made["ignored"].values())
    groups = {WORD: made["words"]["ANY"], **made["signs"], END: r"\Z"}
    named = "|".join(f"(?P<{name}>{expression})" for name, expression in groups.items())
    scan = re.compile(f"(?:{ignored})*+(?:{named})").match  # skipped text is not scanned again
    words, phrases = ({name: re.compile(each) for name, each in made[kind].items()} for kind in ("words", "phrases"))
    rules = [_rule(**each) for each in made["rules"]]
    own, listed = (max(each.size - 1 for each in rules if (each.build is not None) == built) for built in (True, False))
    open_max = DEPTH_MAX * (own + listed)
    return Automaton(scan, words, phrases, rules, made["states"], frozenset(made["read"]), made["end"], open_max)


def _rule(origin: str, size: int, parts: list[tuple[int, bool]], builder: str | None) -> Rule:
    spliced = frozenset(at - size for at, splice in parts if splice)
    build = BUILDERS[builder] if builder else None
    return Rule(origin, size, [at - size for at, _ in parts], spliced, build, builder == "")


def read(text: str) -> syntax.Rules | int:
    """The rules; for an invalid text, the start of the last complete statement before the word that does not fit. 0 if every
    word fits and a node is rejected: the text after it may not fit, and that is reported first. Raises TooDeep if more is open
    than any text may have, or a chain of operators is much too long: nothing is read beyond that."""
    try:
        found = _read(text, automaton(), True)
    except TooDeep:
        raise
    except Fault:
        found = 0
    if found == 0:
        _read(text, automaton(), False)
    return found


def _read(text: str, automaton: Automaton, building: bool) -> syntax.Rules | int:
    """The stack is five lists: for each symbol the state it led to, its value, its start and end in the text, and its depth.
    `building` False: only measures how much is open at once, whatever nodes the text has, and how long its chains of operators
    are: these are the depths then."""
    scan, terminals, phrases, rules, rows, read, end, open_max = automaton
    words = Words(terminals)
    states, values, starts, ends, depths = [0], list[Any](), list[int](), list[int](), list[int]()
    row, at, last_statement = rows[0], 0, 0
    while (found := scan(text, at)) is not None:
        # 1. the next token, and which terminal it is here
        terminal = found.lastgroup or END
        start, at = found.span(terminal)
        token = text[start:at]
        if terminal == WORD:
            for terminal in words[token]:
                if terminal in row:
                    if terminal not in phrases:
                        break
                    if phrase := phrases[terminal].match(text, start):
                        at = phrase.end()
                        break
        # 2. reduce by the rules that it completes
        while (target := row.get(terminal)) is not None and target < 0:
            origin, size, parts, spliced, build, passes = rules[~target]
            if passes:
                states.pop()
                if origin == STATEMENT:
                    last_statement = starts[-1]
            else:
                value: Any = _spliced(parts, spliced, values) if spliced else [values[each] for each in parts]
                span = Span(starts[-size], ends[-1]) if size else Span(0, 0)
                depth = max(depths[-size:]) if size else 0
                if build and building:
                    depth += 1
                    value = build(span, value)
                    if depth > DEPTH_MAX:
                        return 0
                elif build:
                    depth = depths[-size] + 1 if build is CHAINED else 0
                    if depth > CHAIN_MAX:
                        raise LongChain(span)
                if size:
                    del states[-size:], values[-size:], starts[-size:], ends[-size:], depths[-size:]
                values.append(value)
                starts.append(span.start)
                ends.append(span.end)
                depths.append(depth)
            state = rows[states[-1]][origin]
            if state == end:
                rules_read: syntax.Rules = values[-1]
                return rules_read
            states.append(state)
            row = rows[state]
        # 3. shift
        if target is None:
            break
        if len(states) > open_max:
            raise TooDeep(Span(start, at))
        states.append(target)
        values.append(Leaf(terminal, token, start, at) if terminal in read else None)
        starts.append(start)
        ends.append(at)
        depths.append(0)
        row = rows[target]
    return last_statement


def _spliced(parts: list[int], spliced: frozenset[int], values: list[Any]) -> list[Any]:
    """The parts of a rule, with the items of those that are lists. A list in first place is extended, not copied: 10,000
    statements are 10,000 reductions of it."""
    found: list[Any] = values[parts[0]] if parts[0] in spliced else [values[parts[0]]]
    for at in parts[1:]:
        if at in spliced:
            found += values[at]
        else:
            found.append(values[at])
    return found
