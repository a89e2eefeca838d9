"""The publishers and subscribers of a run with fault injection, with their types and rules.

Two subscribers have equal rules, one covers a subscription of theirs (its conjunction extends `Free`), one shares rules with
both, and one receives only the blocks that may have events for it. `Free`, `Covering` and `Either` are guaranteed every
property; `Joined` has conditions across events, and emits. A and B share a topic, and so mixed blocks; C has another, so
that some rules read a merged stream, or two streams.

Three more have equal rules in event time (ORDERED); one of them joins late. Events have jittered times (jitter.py), so these
subscribers hold events back, revise for late ones, and report those that are too late, or ahead of the log's clock. `Next`
reads one topic, `Chain` two; what `Chain` emits is stored when it is final.

Two more join `one` late, with what is new and with a snapshot (STARTS), and two begin lineages of their own in the middle of
the log, at a position and at a time (BEGINNING). `gateway` is a gateway, with a subscriber and a publisher (`web`) that reach
the log through it. The clocks of some processes are wrong by minutes (skewed_clock.py).
"""

from __future__ import annotations

NAMES = "A", "B", "C"
TYPES = "TOPIC both (A, B); TOPIC other (C); " + " ".join(
    f"TYPE {name} (k INT, x INT, at TIMESTAMP) TIME at;" for name in NAMES
)
FREE = "SUBSCRIPTION Free MATCH A a AND B b"
JOINED = "SUBSCRIPTION Joined MATCH A a AND B b WHERE a.k = b.k EMIT Pair (k = a.k, total = a.x + b.x)"
COVERING = "SUBSCRIPTION Covering MATCH A a AND B b AND C c"
EITHER = "SUBSCRIPTION Either MATCH (A a AND B b) OR C c"
ROUTED = "SUBSCRIPTION Routed MATCH A a AND B b WHERE a.k = 1 AND b.k = 1"
DELAY_SECONDS, REVISE_SECONDS, AHEAD_SECONDS = 1, 4, 60
ORDER = f"ORDER BY at DELAY {DELAY_SECONDS} SECONDS AHEAD {AHEAD_SECONDS} SECONDS LATE REVISE WITHIN {REVISE_SECONDS} SECONDS"
NEXT = "SUBSCRIPTION Next MATCH A a THEN B b PER k"
CHAIN = "SUBSCRIPTION Chain MATCH A a THEN C c WITHOUT B b BETWEEN a AND c PER k EMIT Link (k = a.k, total = a.x + c.x)"
ORDERED = f"{ORDER} {NEXT} {CHAIN}"
RULES = {
    "one": f"{FREE} {JOINED}",
    "two": f"{FREE} {JOINED}",
    "covering": f"{COVERING} {EITHER}",
    "either": f"{EITHER} {FREE}",
    "routed": ROUTED,
    "timed": ORDERED,
    "timely": ORDERED,
    "joining": ORDERED,
    "at-position": f"{FREE} {JOINED}",
    "at-time": f"{COVERING} {EITHER}",
    "gateway": JOINED,
}
EQUAL = ("one", "two"), ("one", "gateway"), ("timed", "timely"), ("timed", "joining")
BEGINNING = {"at-position": "position", "at-time": "time"}
"""The subscribers that begin at an event, and at a time, that are the last when they come."""
JOINING = "joining", *BEGINNING
"""The subscribers that come in the middle of a run."""
GATEWAY, WEB = "gateway", "web"
WEB_TYPES = "A,C"
"""One type of each topic: a program numbers the events of each type."""
STARTS = {"joins-new": "new", "joins-snapshot": "snapshot"}
"""Subscribers that come with them and join `one`, whose rules they have, and how they start."""
ADDED = "added_"
"""How attributes begin that types get in the middle of a run."""
SKEW_SECONDS = 300.0
"""By how much the clocks of some processes are wrong, in either direction."""
EMITTED, FINAL, EMITTED_TOPIC = "Pair", "Link", "main"
RELAYED = {"covering": "C"}
"""The subscribers that answer relations with events, and of which type."""
SOURCES = {"left": "A,B", "right": "B,C", "more": "A,C"}
STREAMS: tuple[tuple[str, ...], ...] = (("both",), ("other",), ("both", "other"))
"""The streams that they read, by their topics; what one has in common with another has the same order in the longest."""
