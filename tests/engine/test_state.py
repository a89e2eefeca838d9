"""State is a value: the same history gives the same bytes, damage is refused, and yesterday's dumps still load."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime
from decimal import Decimal
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest

import fairlead
from fairlead.engine import Engine
from fairlead.errors import StateError
from fairlead.matching.state.encoding import MAGIC, VERSION, Change
from fairlead.model.relations.relation import Relation
from fairlead.runtime.spark.stream.resumption import RuleChange
from fairlead.transport.admission.records import RecordReader
from fairlead.transport.events import read_events
from tests.engine import everything

FIXTURES = Path(__file__).parent.parent / "fixtures"
RULES = """
TYPE Order (id INT, buyer STRING, price DECIMAL(10,2), note BINARY, at TIMESTAMP) TIME at
TYPE Shipment (id INT, at TIMESTAMP) TIME at
SUBSCRIPTION Late MATCH Order o WITHOUT Shipment s WITHIN 2 HOURS OF o WHERE s.id = o.id PER id EMIT Delay (id = o.id)
SUBSCRIPTION Pair MATCH Order o[2] WHERE o[2].price > o[1].price PER buyer WITHIN 1 DAY
SUBSCRIPTION Chain MATCH Delay d[2]
"""
BEFORE = [
    {"type": "Order", "id": 1, "buyer": "ä", "price": "10.00", "note": b"\x00\xff", "at": "2026-01-01T00:00:00Z"},
    {"type": "Order", "id": 2, "buyer": "ä", "price": "9.50", "note": None, "at": "2026-01-01T01:00:00Z"},
    {"type": "Shipment", "id": 1, "at": "2026-01-01T01:30:00Z"},
    {"type": "Order", "id": 3, "buyer": "b", "price": "1.00", "note": b"", "at": "2026-01-01T01:45:00Z"},
    {"type": "Order", "id": 4, "buyer": "b", "price": "0.50", "note": b"", "at": "2026-01-01T03:30:00Z"},
]
AFTER = [{"type": "Order", "id": 5, "buyer": "b", "price": "0.75", "note": b"", "at": "2026-01-01T09:00:00Z"}]


def engine_after(events: list[dict[str, object]]) -> Engine:
    plan = fairlead.compile(RULES)
    engine = Engine(plan)
    for columns in read_events(events, plan.catalogue):
        engine.feed(columns)
    return engine


def test_the_same_history_gives_the_same_bytes() -> None:
    assert engine_after(BEFORE).dump() == engine_after(BEFORE).dump()


def shown(relations: list[Relation]) -> list[tuple[object, ...]]:
    return [
        (r.subscription, r.branch, r.positions, str(r.completed_at), r.emitted_row, r.id, str(r.members)) for r in relations
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_states_of_earlier_versions_are_refused_with_a_code(version: int) -> None:
    with pytest.raises(StateError) as caught:
        Engine.load(everything.plan(), (FIXTURES / f"state-v{version}.bin").read_bytes())
    assert caught.value.code == "S006"


@pytest.mark.parametrize("kernels_from", [None, 0])
def test_both_matchers_write_the_fixture_byte_for_byte(kernels_from: int | None) -> None:
    """Should a later pyarrow frame the same columns in other bytes, it is this test that goes, not the fixture."""
    assert everything.engine_before(kernels_from).dump() == everything.FIXTURE.read_bytes()


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("kernels", [False, True])
def test_a_written_state_loads_and_goes_on(kernels: bool, version: int) -> None:
    written = (FIXTURES / f"state-v{version}.bin").read_bytes()
    loaded = Engine.load(everything.plan(), written, kernels_from=0) if kernels else Engine.load(everything.plan(), written)
    whole = everything.engine_before()
    assert (loaded.lane is not None) is kernels
    expected = everything.fed(whole, everything.AFTER, len(everything.BEFORE))
    assert {each.subscription for each in expected} == {"Keys", "Pairs", "Either", "Low", "High", "Unpaid", "Twice"}
    assert shown(everything.fed(loaded, everything.AFTER, len(everything.BEFORE))) == shown(expected)
    assert loaded.dump() == whole.dump()


def test_whatever_reads_arrow_reads_a_state() -> None:
    _, _, body = everything.FIXTURE.read_bytes().partition(b"\n")
    (row,) = pa.ipc.open_stream(body).read_all().to_pylist()
    assert row["major"] == len(everything.BEFORE) - 1
    assert [each["word"] for each in row["events 0"]] == sorted(each["word"] for each in row["events 0"])
    assert row["types 0"] == ["Order", "Payment", "Refund", "Rush", "Tick"]
    assert row["types 1"] == ["Order", "Reminder"]


def test_a_large_state_is_loaded_into_kernels_at_once() -> None:
    plan = fairlead.compile(
        "TYPE A (k INT, x INT) TYPE B (k INT, x INT) SUBSCRIPTION S MATCH A a AND B b WHERE a.x < b.x PER k"
    )
    events = [{"type": "A", "k": n % 7, "x": n} for n in range(3000)]
    engine = Engine(plan)
    for columns in read_events(events, plan.catalogue):
        engine.feed(columns)
    loaded = Engine.load(plan, engine.dump())
    assert engine.lane is None
    assert loaded.lane is not None
    assert loaded.dump() == engine.dump()
    (columns,) = read_events([{"type": "B", "k": 2, "x": 5000}] * 3, plan.catalogue, start=3000)
    assert shown(list(loaded.feed(columns))) == shown(list(engine.feed(columns)))
    assert loaded.dump() == engine.dump()


def test_damage_and_another_version_are_refused_with_a_code_and_another_plan_is_told() -> None:
    dumped = engine_after(BEFORE).dump()
    plan, other = fairlead.compile(RULES), fairlead.compile(RULES.replace("2 HOURS", "3 HOURS"))
    for broken, code in (
        (b"nonsense", "S001"),
        (dumped.replace(b"fairlead-state %d" % VERSION, b"fairlead-state 99"), "S002"),
        (dumped[:-2] + b"}}", "S003"),
        (dumped[: len(dumped) // 2], "S003"),
    ):
        with pytest.raises(StateError) as caught:
            Engine.load(plan, broken)
        assert caught.value.code == code
    assert Engine.load(plan, dumped).change == Change(("Late", "Pair", "Chain"))
    gone = tuple(plan[name].digest for name in ("Late", "Chain"))
    assert Engine.load(other, dumped).change == Change(("Pair",), ("Late", "Chain"), gone)


@pytest.mark.parametrize(
    ("change", "summary", "said"),
    [
        (Change(("Y",)), "resumed: Y", ""),
        (Change((), ("Z",)), "started: Z", ""),
        (Change((), (), ("X",)), "dropped: X", "dropped: X"),
        (Change(("Y", "V"), ("Z",), ("X",)), *["resumed: Y, V; started: Z; dropped: X"] * 2),
        (RuleChange(("Y",), ("Z",), (), 7), "resumed: Y; started: Z", "resumed: Y; started: Z; from position 7 on"),
        (RuleChange(("Y",), (), (), 7), "resumed: Y", ""),
    ],
)
def test_a_change_of_rules_is_said_in_one_form(change: Change, summary: str, said: str) -> None:
    assert (change.summary(), str(change)) == (summary, said)


def test_what_can_no_longer_match_is_not_kept() -> None:
    plan = fairlead.compile("TYPE A (k INT, x INT) TYPE B (k INT, x INT) SUBSCRIPTION S MATCH A a AND B b PER k")
    engine = Engine(plan)
    empty = engine.dump()
    events = [{"type": name, "k": k, "x": 0} for k in range(50) for name in "AB"]
    for columns in read_events(events, plan.catalogue):
        assert len(engine.feed(columns)) == 50
    assert len(engine.dump()) < len(empty) + 40  # only the counters grew


@pytest.mark.parametrize("kernels_from", [None, -1])
def test_rules_change_under_a_state_and_what_is_unchanged_goes_on(kernels_from: int | None) -> None:
    types = "TYPE A (k INT, x INT) TYPE B (k INT, x INT)"
    old = fairlead.compile(f"{types} SUBSCRIPTION S MATCH A a AND B b PER k SUBSCRIPTION Gone MATCH B b[2]")
    engine = Engine(old, kernels_from=kernels_from)
    for columns in read_events([{"type": "A", "k": 1, "x": 7}, {"type": "B", "k": 2, "x": 8}], old.catalogue):
        engine.feed(columns)
    wider = types.replace("(k INT, x INT)", "(more STRING, x INT, k INT, again DECIMAL(5,2))")
    new = fairlead.compile(f"{wider} SUBSCRIPTION Renamed MATCH B q AND A p PER k SUBSCRIPTION New MATCH A a[2]")
    loaded = Engine.load(new, engine.dump(), kernels_from=kernels_from)
    assert loaded.change == Change(("Renamed",), ("New",), (old["Gone"].digest,))
    more = [{"type": name, "k": 1, "x": 9, "more": "m", "again": "1.50"} for name in "BA"]
    (columns,) = read_events(more, new.catalogue, start=2)
    (relation,) = loaded.feed(columns)
    assert relation.positions == (0, 2)
    assert [each.values for each in relation.members] == [
        {"more": None, "x": 7, "k": 1, "again": None},
        {"more": "m", "x": 9, "k": 1, "again": Decimal("1.50")},
    ]
    (columns,) = read_events(more[1:], new.catalogue, start=4)
    assert [(each.subscription, each.positions) for each in loaded.feed(columns)] == [("New", (3, 4))]


def test_texts_that_differ_in_the_order_of_their_absences_are_one_subscription() -> None:
    """Same ids, same bytes, and the one goes on with the state of the other, in the middle of all clauses."""
    types = "TYPE A (k INT, v INT, at TIMESTAMP) TIME at; TYPE B (k INT, v INT, at TIMESTAMP) TIME at"
    clauses = (
        "WITHOUT B x BETWEEN a[1] AND a[2] WHERE x.v > 6",
        "WITHOUT B y WITHIN 3 SECONDS OF a[2] WHERE y.k = a[1].k",
        "WITHOUT A z BETWEEN a[1] AND a[2] WHERE z.k != a[1].k AND z.v > 7",
    )
    texts = [f"{types}; SUBSCRIPTION S MATCH A a[2] {' '.join(order)}" for order in permutations(clauses)]
    plans = [fairlead.compile(text) for text in texts]
    chance = random.Random(1)
    rows = [
        {"type": chance.choice("AB"), "k": chance.randrange(3), "v": chance.randrange(10), "at": datetime.fromtimestamp(n, UTC)}
        for n in range(200)
    ]
    expected = [each.id for each in fairlead.match(plans[0], rows)]
    assert len(expected) > 10
    reader = RecordReader(plans[0].catalogue)
    columns = [batch for low in range(0, len(rows), 20) for batch in reader.read(rows[low : low + 20])]
    for lane in (None, 0):
        engines = [Engine(plan, kernels_from=lane) for plan in plans]
        found: list[list[str]] = [[] for _ in engines]
        for batch in columns:
            for each, ids in zip(engines, found, strict=True):
                ids += [relation.id for relation in each.feed(batch)]
            dumps = {each.dump() for each in engines}
            assert len(dumps) == 1
            engines = [Engine.load(plan, *dumps, kernels_from=lane) for plan in (*plans[1:], plans[0])]
            plans = [*plans[1:], plans[0]]
        assert all(ids == expected for ids in found)


UNITS = """
TYPE A (k INT, v DOUBLE, at TIMESTAMP) TIME at
TYPE B (k INT, v DOUBLE, at TIMESTAMP) TIME at
SUBSCRIPTION One MATCH A a EMIT M (k = a.k)
SUBSCRIPTION Two MATCH A a WHERE a.k > 0 EMIT N (k = a.k)
SUBSCRIPTION First MATCH M m AND A a AND B b WHERE a.k = b.k + 7
SUBSCRIPTION Both MATCH M m AND N n AND A a AND B b WHERE a.k = b.k + 7
SUBSCRIPTION Plain MATCH A a AND B b WHERE a.k = b.k + 7
"""


def several_units() -> tuple[fairlead.Plan, bytes, dict[str, pa.Array]]:
    plan = fairlead.compile(UNITS)
    engine = Engine(plan)
    rows = [
        {
            "type": "AB"[n % 2],
            "k": n % 3,
            "v": float("nan"),
            "at": datetime.fromtimestamp(n, UTC),
            "_source": "s",
            "_sequence": n,
        }
        for n in range(20)
    ]
    for columns in RecordReader(plan.catalogue, allow_nan=True).read(rows):
        engine.feed(columns)
    assert len(engine.units) > 2
    dumped = engine.dump()
    batch = pa.ipc.open_stream(dumped.partition(b"\n")[2]).read_next_batch()
    return plan, dumped, dict(zip(batch.schema.names, batch.columns, strict=True))


def test_units_that_keep_one_event_differently_are_refused() -> None:
    """Each would be right by itself: what the log has at a place is one event."""
    plan, dumped, columns = several_units()
    assert Engine.load(plan, dumped).dump() == dumped
    tried = 0
    for name, column in columns.items():
        kind = name.split()[0]
        if kind not in ("events", "rows") or not pa.types.is_struct(column.type.value_type):
            continue
        rows = column.values
        fields = {rows.type.field(at).name: rows.field(at) for at in range(rows.type.num_fields)}
        for field in {"events": ("source", "sequence"), "rows": ("k", "v", "at")}[kind]:
            if field not in fields or (kind == "rows" and "v" not in fields):  # derived events have places of their own
                continue
            other = fields | {field: changed(fields[field])}
            made = pa.StructArray.from_arrays(list(other.values()), names=list(other))
            damaged = columns | {name: pa.ListArray.from_arrays(pa.array([0, len(made)], pa.int32()), made)}
            with pytest.raises(StateError) as caught:
                Engine.load(plan, signed(damaged))
            assert caught.value.code == "S005"
            tried += 1
    assert tried > 8


def changed(column: pa.Array) -> pa.Array:
    """One value of it is another."""
    at = column.is_valid().index(True).as_py()
    value = column[at].as_py()
    match value:
        case str():
            other: object = "t"
        case datetime():
            other = value.replace(year=2001)
        case int():
            other = value + 100
        case _:
            other = 1.0
    return pa.concat_arrays([column.slice(0, at), pa.array([other], column.type), column.slice(at + 1)])


def signed(columns: dict[str, pa.Array]) -> bytes:
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    body = sink.getvalue().to_pybytes()
    return b"%s %d %s\n%s" % (MAGIC, VERSION, hashlib.sha256(body).hexdigest().encode(), body)
