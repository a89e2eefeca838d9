"""What the tests of routes share: types, conditions and events of all kinds, and readers of a route or of everything."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from fairlead.runtime.live.client import Client
from fairlead.runtime.live.subscriber.subscription import LiveSubscription

TYPES = """
TYPE A (k INT, x DOUBLE, s STRING, b BOOLEAN, at TIMESTAMP) TIME at
TYPE B (k INT, x DOUBLE, s STRING, at TIMESTAMP) TIME at
TYPE C EXTENDS B (z INT)
EVENT UNION AB = A + B
"""
NUMBERS = st.sampled_from((None, 0, 1, 2, -1))
FLOATS = st.sampled_from((None, 0.0, 1.5, float("nan"), float("inf"), -2.0))
WORDS = st.sampled_from((None, "", "x", "xy", "X"))
EVENTS = st.fixed_dictionaries(
    {
        "type": st.just("A"),
        "k": NUMBERS,
        "x": FLOATS,
        "s": WORDS,
        "b": st.sampled_from((None, True, False)),
        "at": st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")),
    }
)
ATOMS = st.sampled_from(
    (
        "{0}.k = 1", "{0}.k > 0", "{0}.k IS NULL", "{0}.k IN (1, 2)", "{0}.k NOT IN (1, NULL)", "{0}.x > 1", "{0}.x = {0}.k",
        "{0}.x + 1 < 2.5", "isnan({0}.x)", "NOT isnan({0}.x)", "{0}.x / {0}.k > 0", "{0}.s = 'x'", "{0}.s LIKE 'x%'",
        "upper({0}.s) = 'X'", "length({0}.s) > {0}.k", "coalesce({0}.s, 'x') = 'x'", "{0}.b", "NOT {0}.b",
        "{0}.s IN ('x', 'X')", "{0}.b OR {0}.k = 2", "hour({0}.at) = 0", "time({0}) > TIMESTAMP '2026-01-01T00:00:00Z'",
        "coalesce({0}.x, {0}.k) = 1", "concat({0}.s, cast({0}.k AS STRING)) = 'x1'",
        "CASE WHEN {0}.b THEN {0}.s ELSE 'x' END = 'x'",
        "cast({0}.at AS DATE) = DATE '2026-01-01'",
        "coalesce(cast({0}.s AS DATE), cast({0}.at AS DATE)) < DATE '2026-01-02'",
        "({0}.k = 1 AND {0}.x > 0 OR NOT ({0}.s = 'x' OR {0}.k >= 1))",
    )
)  # fmt: skip
IBM = "SUBSCRIPTION S MATCH A a AND B b WHERE a.s = 'IBM' AND b.s = 'IBM' AND a.k = b.k"
MIXED = ["IBM", "X", "Y", "IBM", "X"]


async def all_of(sub: LiveSubscription) -> list[str]:
    """The ids of all that comes of what is stored now."""
    ends, found = await sub.ends(), []
    while True:
        relation = await sub.next_within(0.02)
        if relation is not None:
            found.append(relation.id)
        elif await sub.has_passed(ends):
            return found


def whole(sub: LiveSubscription) -> LiveSubscription:
    """It reads everything."""
    sub.routed = False
    return sub


async def publish_one_by_one(fl: Client, name: str, words: Sequence[str], second: int = 0) -> None:
    """One event a block."""
    for at, word in enumerate(words):
        moment = f"2026-01-01T00:{second:02d}:{at % 60:02d}Z"
        more = {"b": True} if name == "A" else {}
        await fl.publish(name, k=at, x=1.0, s=word, at=moment, wait=True, **more)


async def renewed(fl: Client) -> None:
    """The publisher looks at the routes again, as it does every second."""
    for outbox in fl._publisher._outboxes.values():
        for name, lane in outbox._lanes.items():
            if lane.marks is not None:
                await lane.marks._ask(name)
