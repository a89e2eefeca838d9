"""Rule texts, random and mutated: compiling gives a Plan, which can be explained, or a LanguageError with code, place and fix.

Words of the language in any order, characters in any order, rules of the documentation, the examples and the conformance cases
with words changed, and generated rules with words changed; some made long or deep.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from random import Random

import fairlead
from fairlead.errors import LanguageError, Place
from fairlead.explanation import explain
from fairlead.model.expressions.expression import AGGREGATES
from fairlead.model.expressions.function_table import FUNCTIONS
from tests.conformance.cases import CASES
from tests.fuzz.rules import rules
from tests.root import ROOT

TEXTS = 20
"""Of one seed."""
SECONDS_MAX = 10.0
"""Of processor time for one text of some thousand characters."""
WORDS = r"""
TYPE EXTENDS TIME EVENT UNION TOPIC SUBSCRIPTION MATCH WHERE PER WITHIN MATCHING DISPOSAL EMIT WITHOUT AND OR THEN AS OF IS IN
BETWEEN LIKE NOT NULL TRUE FALSE FIRST RECENT CONTIGUOUS PREFIX INFIX POSTFIX TIMESTAMP INTERVAL A B S T a b x y at k Heartbeat
position time INT BIGINT DOUBLE STRING BOOLEAN BINARY DECIMAL DECIMAL(38,38) DECIMAL(39,2) SECONDS DAYS 0 1 3 64 65 1.5 1e400
99999999999999999999 -1 0.000001 'a' '2024-01-01' '2024-13-01' '' ' ( ) [ ] { } , . ; + - * / % = == != <> < <= > >= ? :
-- /* */ [0] [64] [65] [99999999999] {1,2} é 日本 "a" `a` # $ \
"""
VOCABULARY = (*WORDS.split(), *"\n\u00a0\u2028\ufeff\0\t", *FUNCTIONS, *AGGREGATES)
HEAD = (
    "TYPE A (k INT, x INT, y DOUBLE, s STRING, at TIMESTAMP) TIME at TYPE B EXTENDS A (z DECIMAL(9,2)) EVENT UNION U = A + B "
)
PIECES = re.compile(r"'[^'\n]*'|\w+|\s+|[^\w\s]")

seen: Counter[str] = Counter()


def case(seed: int) -> None:
    rng = Random(seed)
    for _ in range(TEXTS):
        compiles_or_says_why(text(rng))


def text(rng: Random) -> str:
    return rng.choice(WAYS)(rng)


def compiles_or_says_why(text: str) -> None:
    began = time.process_time()
    seen["texts"] += 1
    try:
        plan = fairlead.compile(text)
    except LanguageError as error:
        seen["refused"] += 1
        _require_told(error, text)
    else:
        seen["compiled"] += 1
        assert all(each.code.startswith("W") and each.problem and each.fix for each in plan.warnings), (
            f"{plan.warnings} of {text!r}"
        )
        assert all(len(plan.guarantees[each.name]) == 14 for each in plan.subscriptions)
        str(explain(plan))
        assert fairlead.compile(text).digest == plan.digest
    took = time.process_time() - began
    assert took < SECONDS_MAX, f"{took:.1f} s for {text!r}"


def _require_told(error: LanguageError, text: str) -> None:
    assert isinstance(error.place, Place), f"no place: {error!r} of {text!r}"
    assert re.fullmatch(r"L\d{3}", error.code), f"code {error.code} of {text!r}"
    assert error.problem, f"no problem: {error!r} of {text!r}"
    assert error.fix, f"no fix: {error!r} of {text!r}"
    assert 1 <= error.place.line <= text.count("\n") + 2, f"line {error.place.line} of {text!r}"
    assert str(error)


# --- ways to a text


@cache
def sound() -> tuple[str, ...]:
    """Rules that people wrote."""
    found = [case.rules for case in CASES]
    for page in sorted(ROOT.glob("docs/*.md")):
        found += re.findall(r"```fairlead\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    found += [each.read_text(encoding="utf-8") for each in sorted(ROOT.glob("examples/**/*.fl"))]
    return tuple(found)


def _words(rng: Random) -> str:
    return HEAD * (rng.random() < 0.7) + " ".join(rng.choices(VOCABULARY, k=rng.randrange(40)))


def _condition(rng: Random) -> str:
    return f"{HEAD} SUBSCRIPTION S MATCH A a[2] AND B b WHERE {' '.join(rng.choices(VOCABULARY, k=rng.randrange(1, 20)))}"


def _characters(rng: Random) -> str:
    return "".join(
        chr(rng.choice((rng.randrange(32, 127), rng.randrange(0xD800), rng.randrange(128)))) for _ in range(rng.randrange(60))
    )


def _mutated(rng: Random, of: str) -> str:
    pieces = PIECES.findall(of)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(pieces)) if pieces else 0
        what = rng.random()
        if what < 0.4:
            pieces[at : at + 1] = [rng.choice(VOCABULARY)]
        elif what < 0.55:
            pieces[at : at + 1] = []
        elif what < 0.7:
            pieces[at:at] = [" ", rng.choice(VOCABULARY), " "]
        elif what < 0.85 and pieces:
            pieces[at:at] = pieces[at : at + rng.randrange(12)]
        elif pieces:
            other = rng.randrange(len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
    return "".join(pieces)


def _written(rng: Random) -> str:
    return _mutated(rng, rng.choice(sound()))


def _generated(rng: Random) -> str:
    made = str(rules(rng))
    return made if rng.random() < 0.4 else _mutated(rng, made)


def _long(rng: Random) -> str:
    count = rng.choice((60, 65, 200))
    made = (
        "(" * count + "a.x" + ")" * count + " = 1",
        "NOT " * count + "a.x = 1",
        "-" * count + "a.x = 1",
        " AND ".join(f"a.x != {n}" for n in range(count)),
        " OR ".join(f"(a.x = {n} AND a.y = {n})" for n in range(count)),
        " AND ".join(f"(a.x = {n} OR a.y = {n})" for n in range(rng.choice((5, 9, 12)))),
        "a.x " + "+ a.x " * count + "= 1",
        f"a.s = '{'x' * 10 * count}'",
        f"a.s LIKE '{'%a' * count}'",
        f"a.x IN ({', '.join(map(str, range(count)))})",
        "coalesce(" * count + "a.x" + ", 1)" * count + " = 1",
    )
    condition = rng.choice(made).replace("a.", rng.choice(("a.", "a[1].")))
    return f"{HEAD} SUBSCRIPTION S MATCH A a[{rng.choice((1, 2, 64))}] WHERE {condition}"


WAYS: tuple[Callable[[Random], str], ...] = (
    _words,
    _condition,
    _characters,
    _written,
    _written,
    _written,
    _generated,
    _generated,
    _long,
)
