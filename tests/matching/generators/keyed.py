"""Generated plans and streams for what kernels know between batches: keys, equal values, texts, and their indexes.

Keys of every kind and of several attributes; values that lie close together, then far apart, across every threshold of
numbering and hashing; DOUBLEs that are NULL, NaN and -0.0; equalities between instances of one type, and of unlike values
across overlapping types; up to six members. A stream is cut into batches anywhere, also such that have no row,
heartbeats only, or types that nothing keyed reads, and a state may be dumped and loaded between any two.

A plan costs ten times what a stream of twenty events does: to draw, to compile, and to make kernels of. So a case has several
streams for one plan, each with thresholds of its own, and a stream is one draw, of bytes: all zeros are the simplest one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import strategies as st

from fairlead.matching.compiled.running import key_table as hashing
from fairlead.matching.compiled.running import keys
from fairlead.matching.compiled.running import retention as forgetting
from fairlead.matching.state import packed_columns
from tests.matching.generators.bounds import bound_lines
from tests.matching.generators.generated import START, befores, limits
from tests.matching.generators.options import option_lines

ATTRIBUTES = "k BIGINT, j INT, s STRING, d DOUBLE, t TIMESTAMP, f BOOLEAN, x INT, y INT"
TYPES = f"""
TYPE A ({ATTRIBUTES}, at TIMESTAMP) TIME at
TYPE B ({ATTRIBUTES}, at TIMESTAMP) TIME at
TYPE C ({ATTRIBUTES}, at TIMESTAMP) TIME at
TYPE D EXTENDS A (z INT)
EVENT UNION U = B + C
EVENT UNION V = A + B
TYPE N (x INT)
"""
KEYS = ("", "", "k", "k", "j", "s", "d", "t", "f", "k, s", "j, d", "s, k, x")
OVERLAPPING = (("A", "D"), ("D", "A"), ("U", "B"), ("C", "U"), ("V", "A"), ("U", "V"))
SPREADS = {
    "close": (0, 1, 2, 3),
    "around zero": (-3, -2, -1, 0, 1, 2),
    "growing": (0, 1, 2, 5, 9, 17, 33, 65, 70_000),
    "far": (0, 10**12, 2 * 10**12, 3 * 10**12 + 1, 5),
    "edges": (-(2**63), 2**63 - 1, 0, -1, 2**31 - 1, -(2**31), 2**31),
}
EDGES_OF_INT = (-(2**31), 2**31 - 1, 0, -1, 1)
DOUBLES = (0.0, -0.0, 1.0, 1.0, 2.0, 0.5, float("nan"), float("inf"), 5e-324, None)
TEXTS = ("a", "a", "A", "b", "", "é", None)


@dataclass(frozen=True)
class Thresholds:
    """Small, so that short streams reach what otherwise takes millions of keys."""

    small: int
    spread: int
    few: int
    table: int
    packing: int

    def set(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(keys, "SMALL", self.small)
        patch.setattr(keys, "SPREAD", self.spread)
        patch.setattr(forgetting, "FEW", self.few)
        patch.setattr(hashing, "LEAST", self.table)
        patch.setattr(packed_columns, "WORTH", self.packing)


THRESHOLDS = (
    (2, 8, 40, keys.SMALL),
    (1, 2, keys.SPREAD),
    (0, 2, forgetting.FEW),
    (2, 8, hashing.LEAST),
    (1, packed_columns.WORTH),
)


@dataclass(frozen=True)
class KeyedStream:
    batches: list[list[dict[str, Any]]]
    """Some of them empty."""
    reloads: frozenset[int]
    """After which batches the state is dumped, and loaded into kernels."""
    compared: frozenset[int]
    """After which batches, beside those and the last, the state is compared: most of the time goes into that."""
    thresholds: Thresholds

    def __repr__(self) -> str:
        line = f"{self.thresholds}, loaded after {sorted(self.reloads)}, compared after {sorted(self.compared)}"
        return "\n".join([line, *(f"batch {at}:\n  " + "\n  ".join(map(str, each)) for at, each in enumerate(self.batches))])


@dataclass(frozen=True)
class KeyedCase:
    rules: str
    streams: list[KeyedStream]

    def __repr__(self) -> str:
        return "\n".join([self.rules, *map(repr, self.streams)])


@st.composite
def members(draw: st.DrawFn, most: int) -> tuple[str, list[str]]:
    """A pattern, and the names of its members."""
    room = draw(st.integers(1, most))
    types = draw(st.one_of(st.sampled_from(OVERLAPPING), st.just(("A", "B", "C")), st.just(("A", "B"))))
    pattern, named, at = "", [], 0
    while room:
        count = min(room, draw(st.sampled_from((1, 1, 2, 3))))
        room -= count
        alias = f"p{at}"
        name = types[at] if at < len(types) else draw(st.sampled_from(types))
        joined = draw(st.sampled_from(("AND", "AND", "THEN")))
        pattern += (f" {joined} " if pattern else "") + f"{name} {alias}" + (f"[{count}]" if count > 1 else "")
        named += [f"{alias}[{i}]" for i in range(1, count + 1)] if count > 1 else [alias]
        at += 1
    return pattern, named


@st.composite
def joins(draw: st.DrawFn, named: list[str]) -> str:
    """An equality between two members, mostly one that the hash index serves; sometimes an order."""
    if len(named) < 2:
        return draw(st.sampled_from((f"{named[0]}.x >= 0", f"{named[0]}.d = {named[0]}.d", f"{named[0]}.s != 'b'")))
    one, two = draw(st.permutations(named))[:2]
    same = draw(st.sampled_from(("x", "k", "j", "s", "d", "d", "t")))
    return draw(
        st.sampled_from(
            (
                f"{one}.{same} = {two}.{same}",
                f"{one}.{same} = {two}.{same}",
                f"{one}.d = {two}.d",
                f"{one}.x = {two}.y",
                f"{one}.x = {two}.x + 1",
                f"{one}.s = lower({two}.s)",
                f"{one}.d * 2 = {two}.d",
                f"{one}.k = {two}.j",
                f"{one}.x < {two}.y",
                f"{one}.s <= {two}.s",
                f"{one}.d != {two}.d",
            )
        )
    )


@st.composite
def instances(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """Instances of one type that are equal in something, beside another type: chains of the hash index are followed."""
    one, two = draw(st.sampled_from((*OVERLAPPING, ("A", "B"), ("A", "B"))))
    counts = draw(st.sampled_from(((2, 1), (3, 1), (2, 2), (3, 3), (1, 3))))
    named = [[f"p{at}[{i}]" for i in range(1, n + 1)] if n > 1 else [f"p{at}"] for at, n in enumerate(counts)]
    joined, same = draw(st.sampled_from(("AND", "THEN"))), draw(st.sampled_from(("d", "d", "s", "x", "k")))
    several = max(named, key=len)
    conditions = [f"{a}.{same} = {b}.{same}" for a, b in pairwise(several)]
    pattern = f" {joined} ".join(f"{name} p{at}[{n}]" for at, (name, n) in enumerate(zip((one, two), counts, strict=True)))
    return pattern.replace("[1]", ""), [*named[0], *named[1]], conditions


@st.composite
def circles(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """Types that THEN puts before and after one another."""
    one, two = draw(st.sampled_from((*OVERLAPPING, ("A", "B"))))
    three = draw(st.sampled_from("ABC"))
    pattern = draw(
        st.sampled_from(
            (
                f"{one} p0 THEN {two} p1 THEN {one} p2",
                f"{three} p0[2] THEN {one} p1[2] THEN {two} p2 THEN {one} p3",
                f"{three} p0 THEN {one} p1 THEN {two} p2 THEN {one} p3 THEN {two} p4",
            )
        )
    )
    named = [f"p{at}[1]" if f"p{at}[" in pattern else f"p{at}" for at in range(pattern.count(" p"))]
    return pattern, named, draw(st.sampled_from(([], [f"time({named[-1]}) > time({named[1]})"])))


@st.composite
def keyed_subscription(draw: st.DrawFn, name: str, most: int, key: str) -> str:
    form = draw(st.sampled_from(("any", "any", "instances", "circle")))
    if form == "any":
        pattern, named = draw(members(most))
        conditions = [draw(joins(named)) for _ in range(draw(st.sampled_from((0, 1, 1, 2, 3))))]
    else:
        pattern, named, conditions = draw(instances() if form == "instances" else circles())
        key = draw(st.sampled_from(("", "", key)))
    per = draw(st.sampled_from((key, key, key, draw(st.sampled_from(KEYS))))) if form == "any" else key
    lines = [f"SUBSCRIPTION {name}", f"MATCH {pattern}"]
    lines += ["WHERE " + " AND ".join(conditions)] if conditions else []
    lines += [f"PER {per}"] if per else []
    lines += [f"WITHIN {draw(st.sampled_from((1, 4, 30)))} SECONDS"] if draw(st.integers(0, 2)) == 0 else []
    if draw(st.integers(0, 5)) == 0:
        where = draw(st.sampled_from(("", f" WHERE n.x = {named[0]}.y", f" WHERE n.d = {named[0]}.d")))
        ways = (f"WITHIN {draw(st.integers(1, 4))} SECONDS OF {named[0]}", f"BEFORE {named[0]}{draw(befores)}")
        lines.append(f"WITHOUT {draw(st.sampled_from('ABC'))} n {draw(st.sampled_from(ways))}{where}")
    return "\n".join([*lines, *draw(option_lines([named])), *draw(bound_lines([pattern])), *draw(limits(bool(per)))])


@st.composite
def keyed_cases(draw: st.DrawFn, streams: int, most: int = 6) -> KeyedCase:
    """One to three subscriptions, of which some have keys of the same kinds, or are alike but for a condition."""
    key, count = draw(st.sampled_from(KEYS)), draw(st.sampled_from((1, 1, 1, 2, 3)))
    texts = [draw(keyed_subscription(f"S{at}", most, key)) for at in range(count)]
    if draw(st.integers(0, 2)) == 0 and "WHERE" in texts[0] and "WITHOUT" not in texts[0]:
        alias = "p0[1]" if "p0[" in texts[0] else "p0"
        for name in ("Q0", "R0"):  # with conditions on one event more, at the same place: a family
            condition = f"WHERE {alias}.x {draw(st.sampled_from(('>', '<=')))} {draw(st.integers(0, 3))} AND"
            texts.append(texts[0].replace("S0", name).replace("WHERE", condition))
    drawn = [draw(st.binary(min_size=STREAM_BYTES, max_size=STREAM_BYTES)) for _ in range(streams)]
    return KeyedCase("\n".join([TYPES, *texts]), [keyed_stream(each) for each in drawn])


EVENTS_MAX, CUTS_MAX, EMPTY_MAX, RELOADS_MAX, COMPARED_MAX = 18, 8, 3, 3, 2
BATCHES_MAX = CUTS_MAX + 1 + EMPTY_MAX
STREAM_BYTES = 1 + 10 * EVENTS_MAX + 1 + CUTS_MAX + 1 + EMPTY_MAX + 1 + BATCHES_MAX + 2 + RELOADS_MAX + COMPARED_MAX + 6
"""More than any stream reads."""


def keyed_stream(drawn: bytes) -> KeyedStream:
    rest = iter(drawn)

    def one(choices: Sequence[Any]) -> Any:
        return choices[next(rest) % len(choices)]

    def some(most: int, choices: Sequence[Any]) -> list[Any]:
        return [one(choices) for _ in range(one(range(most + 1)))]

    spread, size = one(tuple(SPREADS)), one((EVENTS_MAX, EVENTS_MAX, EVENTS_MAX // 2))
    values = values_of(spread)
    records = timed([{name: one(choices) for name, choices in values.items()} for _ in range(size)])
    cuts = sorted(some(CUTS_MAX, range(size + 1)))
    batches = [records[low:high] for low, high in zip([0, *cuts], [*cuts, size], strict=True)]
    for at in some(EMPTY_MAX, range(len(batches) + 1)):
        batches.insert(at, [])
    batches = list(with_others(batches, some(len(batches), ("N", "Heartbeat", "both"))))
    reloads, compared = (frozenset(some(most, range(len(batches)))) for most in (RELOADS_MAX, COMPARED_MAX))
    return KeyedStream(batches, reloads, compared, Thresholds(*(one(each) for each in THRESHOLDS)))


def values_of(spread: str) -> dict[str, tuple[Any, ...]]:
    numbers = SPREADS[spread]
    return {
        "type": tuple("AAABBBCDD"),
        "k": (*numbers, *numbers, None),
        "j": EDGES_OF_INT if spread == "edges" else (0, 0, 1, 2, 50, None),
        "s": TEXTS,
        "d": DOUBLES,
        "t": (0, 1, 10**15, None),
        "f": (True, False, None),
        "x": (0, 1, 1, 2, 3, None),
        "y": (0, 1, 1, 2, 3, None),
        "step": (0, 1, 1, 2, -1, 5),
    }


def timed(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made, now = [], START
    for record in records:
        now += timedelta(seconds=record["step"])
        own = {name: value for name, value in record.items() if name != "step"} | {"at": now}
        own["t"] = None if own["t"] is None else START + timedelta(microseconds=own["t"])
        made.append(own | ({"z": 1} if own["type"] == "D" else {}))
    return made


def with_others(batches: list[list[dict[str, Any]]], kinds: list[str]) -> Iterator[list[dict[str, Any]]]:
    """Between batches, or at the end of one, what nothing keyed reads."""
    now = START
    for at, batch in enumerate(batches):
        now = batch[-1]["at"] if batch else now
        yield batch
        if at < len(kinds):
            other = {"type": "N", "x": at}
            heartbeat = {"type": "Heartbeat", "at": now}
            yield {"N": [other], "Heartbeat": [heartbeat], "both": [heartbeat, other, heartbeat]}[kinds[at]]


def long_stream(length: int, spread: str, seed: int) -> list[dict[str, Any]]:
    """Keys that come, meet a partner or not, and mostly never come again: close together, or far apart from some point on."""
    draw, made = random.Random(seed), []
    for n in range(length):
        near = n // 5 + draw.randint(0, 3)
        key = {"close": near, "far": near * 10**12, "turning": near if n < length // 3 else 10**12 + near * 1000}[spread]
        made.append(
            {
                "type": draw.choice("AAABBBCD"),
                "k": draw.choice((key, key, key, key, key, None)),
                "j": near % 50,
                "s": draw.choice((f"t{near}", f"T{near}", f"t{near}", None)),
                "d": draw.choice((near / 2, near / 2, -0.0, float("nan"), None)),
                "t": near * 1000,
                "f": bool(near % 2),
                "x": near % 7,
                "y": draw.randint(0, 6),
                "step": draw.choice((0, 0, 0, 1, -1)),
            }
        )
    return timed(made)
