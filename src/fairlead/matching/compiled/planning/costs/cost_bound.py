"""Bounds on steps, as data: sums of products of what a key has queued, noted and waiting.

    n  queued events of one key      k  those of them with an equal value, where a hash index serves the equality
    c  events of the key that a clause has noted      w  relations of the key that wait for a deadline

Gives: `Cost`, its sum (`plus`) and product (`times`), simplified, and its text. Never: knows what costs it (cost.py).
"""

from __future__ import annotations

Term = tuple[int, int, int, int, int]
"""Powers of n, k, c, w and log n."""
Cost = frozenset[Term]
ONE: Cost = frozenset({(0, 0, 0, 0, 0)})
N: Cost = frozenset({(1, 0, 0, 0, 0)})
K: Cost = frozenset({(0, 1, 0, 0, 0)})
C: Cost = frozenset({(0, 0, 1, 0, 0)})
W: Cost = frozenset({(0, 0, 0, 1, 0)})
LOG: Cost = frozenset({(0, 0, 0, 0, 1)})

LETTERS = {
    "n": "n: queued events of a key",
    "k": "k: queued events of a key with an equal value",
    "c": "c: events of the key that {clause} has noted",
    "w": "w: relations of the key that wait for a deadline",
}
"""What each letter means; `clause` is the word of the clause that notes events."""


def plus(*costs: Cost) -> Cost:
    terms = frozenset().union(*costs)
    return frozenset(each for each in terms if not any(each != other and _below(each, other) for other in terms))


def times(one: Cost, two: Cost) -> Cost:
    return frozenset((a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4]) for a in one for b in two)


def _below(one: Term, two: Term) -> bool:
    """`one` is at most `two`, since k is at most n and log n less."""
    more = two[0] > one[0] and two[0] + two[1] > one[0] + one[1]
    return (
        two[0] >= one[0]
        and two[0] + two[1] >= one[0] + one[1]
        and two[2] >= one[2]
        and two[3] >= one[3]
        and (two[4] >= one[4] or more)
    )


def shown(cost: Cost) -> str:
    """`O(n log n + c)`"""
    return f"O({' + '.join(_term(each) for each in sorted(plus(cost), reverse=True))})"


def _term(term: Term) -> str:
    powers = ["" if n == 0 else name + {1: "", 2: "²", 3: "³"}.get(n, f"^{n}") for name, n in zip("nkcw", term, strict=False)]
    return " ".join(each for each in (*powers, "log n" if term[4] else "") if each) or "1"


def letters_of(cost: Cost) -> frozenset[str]:
    """The letters in its text."""
    found = {name for term in cost for name, power in zip("nkcw", term, strict=False) if power}
    return frozenset(found | {"n" for term in cost if term[4]})


def size_of(cost: Cost) -> tuple[int, int]:
    """For comparing: the greatest power of lengths, then that of the logarithm beside it."""
    return power_of(cost), max(term[4] for term in cost if term[0] + term[1] == power_of(cost))


def power_of(cost: Cost) -> int:
    """The greatest power of the lengths of queues."""
    return max(term[0] + term[1] for term in cost)


def lengths_of(cost: Cost) -> int:
    """The greatest power of the lengths of queues and of what was noted, together."""
    return max(term[0] + term[1] + term[2] for term in cost)
