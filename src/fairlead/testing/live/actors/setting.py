"""The publishers and subscribers of a run with fault injection, with their types and rules.

Two subscribers have equal rules, one covers a subscription of theirs (its conjunction extends `Free`), one shares rules with
both, and one receives only the blocks that may have events for it. `Free`, `Covering` and `Either` are guaranteed every
property; `Joined` has conditions across events, and emits. A and B share a topic, and so mixed blocks; C has another, so
that some rules read a merged stream, or two streams.
"""

from __future__ import annotations

TYPES = "TOPIC both (A, B); TOPIC other (C); TYPE A (k INT, x INT); TYPE B (k INT, x INT); TYPE C (k INT, x INT);"
FREE = "SUBSCRIPTION Free MATCH A a AND B b"
JOINED = "SUBSCRIPTION Joined MATCH A a AND B b WHERE a.k = b.k EMIT Pair (k = a.k, total = a.x + b.x)"
COVERING = "SUBSCRIPTION Covering MATCH A a AND B b AND C c"
EITHER = "SUBSCRIPTION Either MATCH (A a AND B b) OR C c"
ROUTED = "SUBSCRIPTION Routed MATCH A a AND B b WHERE a.k = 1 AND b.k = 1"
RULES = {
    "one": f"{FREE} {JOINED}",
    "two": f"{FREE} {JOINED}",
    "covering": f"{COVERING} {EITHER}",
    "either": f"{EITHER} {FREE}",
    "routed": ROUTED,
}
EQUAL = "one", "two"
EMITTED, EMITTED_TOPIC = "Pair", "main"
RELAYED = {"covering": "C"}
"""The subscribers that answer relations with events, and of which type."""
SOURCES = {"left": "A,B", "right": "B,C", "more": "A,C"}
STREAMS: tuple[tuple[str, ...], ...] = (("both",), ("other",), ("both", "other"))
"""The streams that they read, by their topics; what one has in common with another has the same order in the longest."""
