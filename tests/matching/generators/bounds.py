"""RETAIN of generated subscriptions: small bounds, so that short streams exceed them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

ELEMENT = re.compile(r"\b(?!AND\b|OR\b|THEN\b)([A-Z]\w*) (\w+)(?:\[(\d+)\]|\{(\d*)(,?)\d*\}|([+*?]))?")


def bound_words(rng: Random, branches: Sequence[str], timed: bool = True, often: float = 0.3) -> list[str]:
    """`branches`: the patterns. One element of each of some types, with room for what a match needs."""
    if rng.random() >= often:
        return []
    said: dict[str, str] = {}
    for text in branches:
        needed, named = Counter[str](), dict[str, list[str]]()
        for name, alias, count, least, _, sign in ELEMENT.findall(text):
            needed[name] += int(count or least or {"*": 0, "?": 0}.get(sign, 1))
            named.setdefault(name, []).append(alias)
        for name, aliases in named.items():
            if rng.random() < 0.6 and not said.keys() & set(aliases):
                said[rng.choice(aliases)] = _amount(rng, max(1, needed[name]), timed)
    return [f"RETAIN {', '.join(f'{alias} {amount}' for alias, amount in said.items())}"] if said else []


def _amount(rng: Random, needed: int, timed: bool) -> str:
    counted = f"{needed + rng.choice((0, 0, 1, 2))} EVENTS"
    amount = f"{rng.choice((1, 2, 3, 5))} SECONDS" if timed and rng.random() < 0.5 else counted
    return amount + rng.choice(("", "", " BATCH"))


@st.composite
def bound_lines(draw: st.DrawFn, branches: Sequence[str], often: float = 0.3) -> list[str]:
    return bound_words(Random(draw(st.integers(0, 1 << 16))), branches, often=often)
