"""One log, six ways to its relations: live, exported and matched event by event, on kernels, by the embedded runtime, by Spark
as a batch and as a stream. All of them have the same ids in the same order, over all subscriptions; on Spark, by the columns
that tell it.

Random plans (tests/fuzz/rules.py) with chains of derived types, unions, subtypes, absences and disjunctions, a few of them;
FAIRLEAD_RUNTIME_PLANS=50 asks for more. Positions are those of the log: the export has them, and all but the live subscriber
read that. The plans are such that live subscribers read one stream; those that read several are in
tests/runtime/live/test_disjunctions.py.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import fairlead
from fairlead import spark as fl
from fairlead.engine import Engine
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.core.event_table import only_group
from fairlead.runtime.spark.output.views import relations_of
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.events import read_events
from tests.runtime.live.given import Given, usable
from tests.runtime.live.test_conformance import read
from tests.runtime.spark.stream import streams
from tests.transport.log.logs import run

PLANS = int(os.environ.get("FAIRLEAD_RUNTIME_PLANS", "3"))
WANTED = ("EMIT", "UNION", "EXTENDS", " OF ", " OR (", " BEFORE ", "LIMIT", "CLOCK BY")
"""What the plans have between them: derived types, unions, subtypes, absences, disjunctions, the later clauses. Each has at
least three of these, and the first ones as many as are new."""

SLOTS_MAX = 4
"""Of a branch. The reference tries all combinations of the events, so longer ones can take it hours."""
Delivered = list[tuple[str, str]]
"""Names of subscriptions and ids, in the order of delivery."""


def one_stream() -> Iterator[Given]:
    """Plans of which something comes, that all runtimes can run and that read one stream of a log."""
    for each in usable(lambda text: sum(word in text for word in WANTED) >= 3):
        plan = fairlead.compile(each.text)
        most = max(len(branch.slots) for one in plan.subscriptions for branch in one.branches)
        if len(each.group.parts) == 1 and plan.emitters and most <= SLOTS_MAX:
            yield each


@cache
def chosen() -> list[Given]:
    """Such that all of WANTED is among them. Takes seconds, so the first test that runs makes them, not every collection."""
    left, found = set(WANTED), []
    for each in one_stream():
        new = {word for word in left if word in each.text}
        if len(new) * (PLANS - len(found)) >= len(left):  # else there is no room for the words that are left
            found.append(each)
            left -= new
        if len(found) >= PLANS and not left:
            break
    assert len(found) == PLANS, f"{PLANS} plans are too few for {', '.join(WANTED)}"
    return found


@pytest.mark.parametrize("number", range(PLANS))
def test_every_runtime_has_the_same_ids(number: int, spark: SparkSession, tmp_path: Path) -> None:
    given = chosen()[number]
    live, path = run(lambda: followed(given, tmp_path / "events.parquet")), tmp_path / "events.parquet"
    plan, table = fairlead.compile(given.text), pq.read_table(path)
    query = streams.start(
        fl.match(plan, streams.reading(spark, streams.written(tmp_path / "parts", in_order(table))), position="position"),
        tmp_path / "checkpoint",
    )
    found = {
        "event by event": by_engine(plan, table, None),
        "kernels": by_engine(plan, table, 0),
        "embedded": delivered(fairlead.match(plan, table, position="position")),
        "the reference": by_reference(plan, table),
        "Spark batch": by_columns(fl.match(plan, spark.read.parquet(str(path)), position="position")),
        "Spark stream": by_columns(streams.frame(query)),
    }
    assert live
    for name, ids in found.items():
        assert ids == live, f"{name} differs from live\n{given.text}"


RUNS = """
TYPE A (k INT, x INT, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, at TIMESTAMP) TIME at
SUBSCRIPTION Between MATCH A a THEN B b{,3} THEN A c WHERE b.x >= a.x PER k EMIT D (k = a.k, n = count(b), last = last(b.x))
SUBSCRIPTION Many MATCH B b+ HAVING count(DISTINCT b.x) >= 3 PER k WITHIN 20 SECONDS DISPOSAL FIRST PREFIX
SUBSCRIPTION Above MATCH D d{2,} THEN B b
SUBSCRIPTION Plain MATCH A a THEN B b PER k
"""


def test_every_runtime_has_the_same_ids_of_relations_with_runs(spark: SparkSession, tmp_path: Path) -> None:
    plan, batch = same_ids(RUNS, 5, spark, tmp_path)
    rows = relations_of(batch, plan, "Between").collect()
    assert sorted(len(row.b) for row in rows) == sorted(row.n for row in rows)
    assert {len(row.b) for row in rows} >= {0, 1, 3}
    assert all(row.last == (row.b[-1].x if row.b else None) and row.a.k == row.c.k for row in rows)


SEQUENCES = """
TYPE A (k INT, x INT, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, at TIMESTAMP) TIME at
SUBSCRIPTION Rising MATCH A a{2,} NEXT B b+ SHORTEST WHERE a.x > prev(a.x) PER k EMIT D (k = first(a.k), n = count(a))
SUBSCRIPTION Either MATCH A a NEXT (B b ELSE A c) THEN B d WITHIN 9 SECONDS DISPOSAL FIRST PREFIX
SUBSCRIPTION Session MATCH A a+ LONGEST WITHIN 4 SECONDS OF PREVIOUS PER k EMIT E (k = first(a.k), n = count(a))
SUBSCRIPTION Steps MATCH B b+ SHORTEST THEN A a HAVING sum(b.x) > 4 MATCHING STEPWISE PER k
SUBSCRIPTION Above MATCH D d NEXT E e+ SHORTEST
SUBSCRIPTION Late MATCH A a{2,} NEXT B b+ NEXT A c WHERE a.x >= prev(a.x) AND b.x != prev(b.x) AND c.x > 2
SUBSCRIPTION Buckets MATCH (A a NEXT B b+){1,2} NEXT A c PER k, bucket(at, 20 SECONDS) DISPOSAL ADVANCE 2 LIMIT 9
SUBSCRIPTION Both MATCH (A a NEXT A b NEXT A c) OR (B d+ LONGEST UNTIL d.x = 0) WITHIN 6 SECONDS DISPOSAL FIRST PREFIX
"""


def test_every_runtime_has_the_same_ids_of_sequences(spark: SparkSession, tmp_path: Path) -> None:
    plan, batch = same_ids(SEQUENCES, 6, spark, tmp_path)
    rows = relations_of(batch, plan, "Session").collect()
    assert sorted(len(row.a) for row in rows) == sorted(row.n for row in rows)


BOUNDS = """
TYPE A (k INT, x INT, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, at TIMESTAMP) TIME at
TABLE Last KEY (x) FROM B
SUBSCRIPTION Priced MATCH A a AND Last b WHERE b.x = a.x AND b.k > 0 EMIT D (k = a.k, x = b.x)
SUBSCRIPTION Keyed MATCH A a AND Last b PER k MATCHING RECENT
SUBSCRIPTION Above MATCH D d[2] AND B b RETAIN d 2 EVENTS BATCH, b 1 EVENT
SUBSCRIPTION Slides MATCH A a[2] AND B b PER k RETAIN a 3 EVENTS, b 5 SECONDS MATCHING ALL DISPOSAL NONE
SUBSCRIPTION Tumbles MATCH A a THEN B b PER k RETAIN a 10 SECONDS BATCH DISPOSAL INFIX
SUBSCRIPTION Hours MATCH A a[2] AND B b PER k, bucket(at, 20 SECONDS)
SUBSCRIPTION Cut MATCH B b{3,} PER bucket(at, 10 SECONDS)
"""


def test_every_runtime_has_the_same_ids_of_what_bounds_tables_and_buckets_find(spark: SparkSession, tmp_path: Path) -> None:
    same_ids(BOUNDS, 7, spark, tmp_path)


FOLDS = """
TYPE A (k INT, x INT, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, at TIMESTAMP) TIME at
SUBSCRIPTION Many MATCH A a+ HAVING count(a) >= 6 PER k FOLD a
    EMIT D (k = first(a.k), n = count(a), low = min(a.x), total = sum(a.x), different = count(DISTINCT a.x))
SUBSCRIPTION Above MATCH D d{2,} FOLD d EMIT E (n = sum(d.n))
SUBSCRIPTION Last MATCH E e THEN B b
SUBSCRIPTION Cut MATCH B b+ HAVING max(b.x) > 2 AND count(b) > 2 RETAIN b 30 SECONDS BATCH FOLD b
SUBSCRIPTION Hours MATCH B b{3,} PER k, bucket(at, 40 SECONDS) FOLD b
SUBSCRIPTION Either MATCH (A a{4,}) OR (B b AND A c) PER k FOLD a LIMIT 9
SUBSCRIPTION Session MATCH A a+ LONGEST WITHIN 3 SECONDS OF PREVIOUS HAVING count(a) > 1 PER k FOLD a EMIT F (n = count(a))
"""


def test_every_runtime_has_the_same_ids_of_folded_runs(spark: SparkSession, tmp_path: Path) -> None:
    plan, batch = same_ids(FOLDS, 10, spark, tmp_path)
    plain = fairlead.compile(re.sub("FOLD .", "", FOLDS))
    table = pq.read_table(tmp_path / "events.parquet")
    assert by_engine(plain, table, 0) == by_engine(plan, table, 0)
    rows = relations_of(batch, plan, "Many").collect()
    assert all((row.n, row.positions) == (6, []) and row.a.last - row.a.first >= 5 for row in rows)
    assert all(row.a.last == row.completed_at and row.a.first_time < row.a.last_time for row in rows)


DATES = """
TYPE A (k INT, x INT, d DATE, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, d DATE, at TIMESTAMP) TIME at
SUBSCRIPTION Later MATCH A a AND B b WHERE b.d - a.d BETWEEN 1 DAY AND 2 DAYS PER k
    EMIT D (d = coalesce(a.d, b.d), m = max(b.d))
SUBSCRIPTION Keyed MATCH A a AND B b PER d WHERE a.d != DATE '2024-02-29'
SUBSCRIPTION Above MATCH D d[2] WHERE d[1].d < d[2].d
SUBSCRIPTION Days MATCH B b+ HAVING count(DISTINCT b.d) >= 2 PER k EMIT E (low = min(b.d), day = day(first(b.d)))
SUBSCRIPTION Next MATCH A a{2} NEXT B b WHERE b.d > first(a.d) PER k
"""


def test_every_runtime_has_the_same_ids_of_what_dates_decide(spark: SparkSession, tmp_path: Path) -> None:
    days = (date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1), date(1, 1, 1), date(9999, 12, 31), None)
    plan, batch = same_ids(DATES, 8, spark, tmp_path, lambda rolls: {"d": rolls.choice(days)})
    rows = relations_of(batch, plan, "Later").collect()
    assert {row.m for row in rows} == {date(2024, 2, 29), date(2024, 3, 1)}
    assert all(row.m == row.b.d and 1 <= (row.b.d - row.a.d).days <= 2 for row in rows)


NESTED = """
TYPE A (k INT, x INT, s STRUCT<k: INT, in: STRUCT<at: DATE, ok: BOOLEAN>>,
        l ARRAY<STRUCT<n: DECIMAL(20,2), t: STRING>>, v ARRAY<DOUBLE>, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, s STRUCT<k: INT, in: STRUCT<at: DATE, ok: BOOLEAN>>,
        l ARRAY<STRUCT<n: DECIMAL(20,2), t: STRING>>, v ARRAY<DOUBLE>, at TIMESTAMP) TIME at
SUBSCRIPTION Joined MATCH A a AND B b WHERE a.s.in.at <= b.s.in.at AND element_at(a.l, 1).n < element_at(b.l, -1).n PER s.k
    EMIT D (s = b.s, l = a.l, first = element_at(a.v, 1), has = array_contains(b.v, 1.0), xs = collect(a.x))
SUBSCRIPTION Above MATCH D d[2] WHERE d[1].s.in.ok AND size(d[2].l) > 1 EMIT E (ss = collect(d.s), t = element_at(d[1].l, 1).t)
SUBSCRIPTION Runs MATCH B b+ HAVING count(DISTINCT b.s.k) >= 2 AND max(b.s.in.at) > DATE '2024-02-28' PER k
    EMIT F (ks = collect(b.s.k), vs = collect(b.v), low = min(b.s.in.at), last = last(b.s).in.ok)
SUBSCRIPTION Read MATCH F f WHERE element_at(f.ks, 2) = 1 AND NOT f.last
SUBSCRIPTION Next MATCH A a{2} NEXT B b WHERE b.s.k >= first(a.s.k) AND element_at(b.l, 1).t IS NOT NULL PER k
"""


def drawn_nested(rolls: Random) -> dict[str, Any]:
    days, texts = (date(2024, 2, 28), date(2024, 2, 29), None), ("a", "b", None)
    inner = rolls.choice(
        ({"at": rolls.choice(days), "ok": rolls.choice((True, False, None))}, {"at": rolls.choice(days), "ok": True}, None)
    )
    lines = [
        {"n": rolls.choice((Decimal("1.50"), Decimal("2.00"), None)), "t": rolls.choice(texts)}
        for _ in range(rolls.randrange(4))
    ]
    return {
        "s": rolls.choice(({"k": rolls.choice((0, 1, None)), "in": inner}, {"k": 1, "in": inner}, None)),
        "l": rolls.choice((lines, [*lines, None], None)),
        "v": rolls.choice(([1.0, None, math.nan], [-0.0], [], None, [math.inf, 1.0])),
    }


def test_every_runtime_has_the_same_ids_of_what_arrays_and_structs_decide(spark: SparkSession, tmp_path: Path) -> None:
    plan, batch = same_ids(NESTED, 15, spark, tmp_path, drawn_nested)
    rows = relations_of(batch, plan, "Joined").collect()
    assert all(row.s == row.b.s and row.l == row.a.l and row.xs == [row.a.x] for row in rows)
    runs = relations_of(batch, plan, "Runs").collect()
    assert all(row.ks == [each.s and each.s.k for each in row.b] for row in runs)


TIMERS = """
TYPE A (k INT, x INT, at TIMESTAMP) TIME at
TYPE B (k INT, x INT, at TIMESTAMP) TIME at
SUBSCRIPTION Due MATCH A a WHERE a.x > 0 AFTER 7 SECONDS OF a PER k EMIT D (k = a.k, x = a.x)
SUBSCRIPTION Next MATCH D d THEN B b PER k
SUBSCRIPTION Both MATCH A a AND B b AFTER 2 SECONDS OF b AFTER 5 SECONDS OF a CLOCK BY A PER k
SUBSCRIPTION Quiet MATCH A a WITHOUT B b WITHIN 3 SECONDS OF a AFTER 6 SECONDS OF a PER k
SUBSCRIPTION Either MATCH (A a) OR (B b AND B c) AFTER 4 SECONDS OF c
"""


def test_every_runtime_has_the_same_ids_of_what_waits_for_a_time(spark: SparkSession, tmp_path: Path) -> None:
    plan, batch = same_ids(TIMERS, 9, spark, tmp_path)
    assert all(row.place < 0 for row in relations_of(batch, plan, "Due").select("place").collect())


def same_ids(
    rules: str, seed: int, spark: SparkSession, folder: Path, further: Callable[[Random], dict[str, Any]] = lambda _: {}
) -> tuple[Plan, DataFrame]:
    """All runtimes have the same ids of these rules over events of A and B, of which each subscription finds something. Gives
    the plan and what Spark found as a batch."""
    rolls, events = Random(seed), []
    for second in range(160):
        event = {"type": rolls.choice("AB"), "k": rolls.randrange(3), "x": rolls.choice((0, 1, 2, 3, None))}
        events.append(event | further(rolls) | {"at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)})
    given = Given(seed, rules, (), tuple(events), only_group(fairlead.compile(rules)))
    live, path = run(lambda: followed(given, folder / "events.parquet")), folder / "events.parquet"
    plan, table = fairlead.compile(rules), pq.read_table(path)
    query = streams.start(
        fl.match(plan, streams.reading(spark, streams.written(folder / "parts", in_order(table))), position="position"),
        folder / "checkpoint",
    )
    batch = fl.match(plan, spark.read.parquet(str(path)), position="position")
    found = {
        "event by event": by_engine(plan, table, None),
        "kernels": by_engine(plan, table, 0),
        "embedded": delivered(fairlead.match(plan, table, position="position")),
        "the reference": by_reference(plan, table),
        "Spark batch": by_columns(batch),
        "Spark stream": by_columns(streams.frame(query)),
    }
    assert {name for name, _ in live} == {each.name for each in plan.subscriptions}
    for name, ids in found.items():
        assert ids == live, f"{name} differs from live"
    return plan, batch


async def followed(given: Given, path: Path) -> Delivered:
    """Published in blocks of all sizes, read by a subscriber from the beginning; and exported."""
    rolls = Random(given.seed)
    async with (
        fairlead.connect("memory:") as client,
        client.subscribe(given.text, start="earliest", emit=False) as sub,
    ):
        found: list[Relation] = []
        for event in given.events:
            values = {name: value for name, value in event.items() if name != "type"}
            await client.publish(event["type"], values, wait=rolls.random() < 0.5)
            if rolls.random() < 0.2:
                found += await read(sub)
        await client.flush()
        found += await read(sub)
        await client.export(given.text, path)
        return delivered(found)


def in_order(table: pa.Table) -> list[pa.Table]:
    cuts = [0, 1, len(table) // 3, len(table) // 2, len(table)]
    return [table.slice(low, high - low) for low, high in pairwise(cuts) if low < high]


def by_engine(plan: Plan, table: pa.Table, kernels_from: int | None) -> Delivered:
    engine = Engine(plan, kernels_from=kernels_from)
    batches = read_events(table, plan.catalogue, position="position")
    return delivered(each for columns in batches for each in engine.feed(columns))


def by_reference(plan: Plan, table: pa.Table) -> Delivered:
    batches = read_events(table, plan.catalogue, position="position")
    return delivered(ReferenceMatcher(plan).run(event for each in batches for event in each.events(plan.catalogue)))


def delivered(relations: Iterable[Relation]) -> Delivered:
    return [(each.subscription, each.id) for each in relations]


def by_columns(rows: DataFrame) -> Delivered:
    told = rows.where("verdict = 'in order'").orderBy("completed_at", "turn").select("subscription", "relation_id")
    return [(row.subscription, row.relation_id) for row in told.collect()]
