"""The store gives back what was put in, by position word, whatever was packed away in between."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import InvariantError
from fairlead.language import compile_text
from fairlead.matching.results import event_store as module
from fairlead.matching.results.chunk import chunk_of_events
from fairlead.matching.results.event_store import Store
from fairlead.model.events.columns import ONE_BY_ONE_MAX, arrow_array, arrow_schema, canonical_rows_at, record_batch
from fairlead.model.events.event import Event
from fairlead.model.events.position import Position
from fairlead.model.events.types import Attribute, Catalogue, DataType, EventType, Kind
from fairlead.model.relations.identity import places_of, position_of, position_word
from fairlead.transport.events import read_events

PLAN = compile_text(
    "TYPE A (x INT, s STRING) TYPE B (x INT, at TIMESTAMP) TIME at TYPE Empty ()\n"
    "SUBSCRIPTION S MATCH B b EMIT Derived (x = b.x)"
)
CATALOGUE: Catalogue = PLAN.catalogue


def events_of(names: list[str]) -> list[dict[str, Any]]:
    values: dict[str, dict[str, Any]] = {"A": {"x": 1, "s": "é"}, "B": {"x": None, "at": 5}, "Empty": {}}
    made = [{"type": name} | values[name] for name in names]
    return [each | {"x": at} if "x" in each and at % 3 else each for at, each in enumerate(made)]


def derived(major: int, minor: int) -> Event:
    return Event(CATALOGUE["Derived"], (major,), Position(major, minor), 77 + major)


@pytest.fixture(params=[(64, 10), (0, 0), (0, 1000)], ids=["peeled", "one by one", "sorted"], scope="module")
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """The ways in which words find their chunks, which are chosen by numbers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PEELED_MAX", request.param[0])
        patch.setattr(module, "BISECTED", request.param[1])
        yield


@pytest.mark.usefixtures("way")
@given(st.lists(st.sampled_from(("A", "B", "Empty")), min_size=1, max_size=30), st.integers(1, 9), st.data())
def test_words_in_any_order_give_their_events(names: list[str], size: int, data: st.DataObject) -> None:
    held, packed = Store(), Store(slack_bytes_max=-1)
    expected: dict[int, Event] = {}
    for columns in read_events(events_of(names), CATALOGUE, batch_rows=size):
        beside = [derived(columns.positions[0], minor) for minor in sorted(data.draw(st.sets(st.sampled_from((-9, 1, 2)))))]
        logged = list(columns.events(CATALOGUE))
        for store in (held, packed):
            store.add(columns)
            if beside:
                chunk = chunk_of_events(beside)
                store.add(chunk.columns, chunk.words, chunk.times)
        expected |= {position_word(each.position): each for each in (*logged, *beside)}
        if data.draw(st.booleans()):
            live = data.draw(st.lists(st.sampled_from(sorted(expected)), unique=True))
            expected = {word: expected[word] for word in live}
            words = np.array(live, dtype=np.int64)
            packed.pack(-1, lambda words=words: words)  # type: ignore[misc]
    asked = data.draw(st.lists(st.sampled_from(sorted(expected)), max_size=40)) if expected else []
    for store in (held, packed):
        taken = store.view().take(np.array(asked, dtype=np.int64))
        assert taken.events(CATALOGUE) == [expected[word] for word in asked]
        column = taken.column(pa.int32(), {"A": (0,), "B": (0,), "Derived": (0,)})
        assert column.to_pylist() == [expected[word].row[0] if expected[word].row else None for word in asked]
        values, known = taken.times(CATALOGUE)
        times = [int(value) if there else None for value, there in zip(values, known, strict=True)]
        assert times == [expected[word].time for word in asked]


FORMS = {
    Kind.DECIMAL: DataType(Kind.DECIMAL, 20, 2),
    Kind.ARRAY: DataType(Kind.ARRAY, element=DataType(Kind.INT)),
    Kind.STRUCT: DataType(Kind.STRUCT, fields=(Attribute("x", DataType(Kind.INT)), Attribute("s", DataType(Kind.STRING)))),
}
KINDS = EventType("Every", tuple(Attribute(kind.name, FORMS.get(kind, DataType(kind))) for kind in Kind))
VALUES: dict[Kind, Any] = {
    Kind.BOOLEAN: True,
    Kind.INT: -7,
    Kind.BIGINT: 2**40,
    Kind.DOUBLE: 0.5,
    Kind.DECIMAL: Decimal("1.50"),
    Kind.STRING: "é",
    Kind.BINARY: b"\x00",
    Kind.TIMESTAMP: 5,
    Kind.DATE: 19_782,
    Kind.INTERVAL: -3,
    Kind.ARRAY: (1, None, 3),
    Kind.STRUCT: (None, "é"),
}


@pytest.mark.parametrize("rows", [[], [2, 0, 2], list(range(3)) * ONE_BY_ONE_MAX])
def test_few_rows_are_read_as_many_are(rows: list[int]) -> None:
    values = tuple(VALUES[kind] for kind in Kind)
    canonical = [values, (None,) * len(values), values]
    columns = [
        arrow_array(column, each.type) for column, each in zip(zip(*canonical, strict=True), KINDS.attributes, strict=True)
    ]
    table = record_batch(columns, arrow_schema(KINDS), 3)
    assert canonical_rows_at(table, KINDS, np.array(rows, dtype=np.int64)) == [canonical[at] for at in rows]


def test_a_view_keeps_what_the_store_lets_go_of() -> None:
    store = Store(slack_bytes_max=-1)
    for columns in read_events(events_of(["A", "B"] * 5), CATALOGUE, batch_rows=4):
        store.add(columns)
    view, words = store.view(), np.array([position_word(Position(at)) for at in (7, 0, 7)], dtype=np.int64)
    store.pack(1, lambda: words[:1])
    assert [each.position.major for each in view.take(words).events(CATALOGUE)] == [7, 0, 7]
    assert [each.position.major for each in store.view().take(words[:1]).events(CATALOGUE)] == [7]
    assert store.rows == 1
    with pytest.raises(InvariantError, match="let go"):
        store.view().take(words)


def test_events_of_a_loaded_state_may_overlap_one_another() -> None:
    store = Store()
    (columns,) = read_events(events_of(["A", "B", "A", "B"]), CATALOGUE)
    logged = list(columns.events(CATALOGUE))
    store.add_chunk(chunk_of_events([logged[0], logged[3]]))
    store.add_chunk(chunk_of_events([logged[0], logged[1]]))
    words = np.array([position_word(logged[at].position) for at in (0, 1, 3)], dtype=np.int64)
    assert store.view().take(words).events(CATALOGUE) == [logged[0], logged[1], logged[3]]
    assert [store.view().event(int(word), CATALOGUE) for word in words] == [logged[0], logged[1], logged[3]]
    with pytest.raises(InvariantError, match="let go"):
        store.view().event(position_word(logged[2].position), CATALOGUE)


@given(st.integers(0, 2**40), st.integers(-1_000_000, 999_999))
def test_a_word_is_its_position(major: int, minor: int) -> None:
    position = Position(major, minor)
    word = position_word(position)
    assert position_of(word) == position
    place = int(places_of(np.array([word], dtype=np.int64))[0])
    assert str(position) == (f"{major}{place:+d}" if place else str(major))
