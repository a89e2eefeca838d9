"""Records become events: positions, duplicates, defaults, and what happens to bad ones."""

from __future__ import annotations

from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from fairlead.errors import DataError, UsageError
from fairlead.transport import LastSequences, RecordReader, read_events, read_records
from fairlead.transport.admission.problems import Rejected
from tests.transport.samples import CATALOGUE, ONE_TYPE, events, login, majors, quote


def test_a_record_becomes_an_event_with_its_position_and_time() -> None:
    [event] = events(read_records([quote()], CATALOGUE))
    assert event.values == {"symbol": "ACME", "value": 1.5, "at": datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)}
    assert (event.type, event.position.major, event.source, event.sequence) == ("StockQuote", 0, None, None)
    assert event.time == event.raw("at") == 1_704_164_645_000_000


def test_types_may_be_mixed_and_keep_their_order_over_batches() -> None:
    records = [quote(value=i) if i % 3 else login(attempts=i) for i in range(100)]
    found = events(read_records(records, CATALOGUE, batch_rows=7))
    assert [event.row[1] for event in found] == list(range(100))
    assert majors(found) == list(range(100))


def test_positions_count_from_the_given_start_and_go_on_over_reads() -> None:
    reader = RecordReader(CATALOGUE, start=10)
    assert majors(events(reader.read([quote(), quote()]))) == [10, 11]
    assert majors(events(reader.read([quote()]))) == [12]
    assert reader.position == 13


def test_no_records_give_no_batches() -> None:
    assert list(read_records([], CATALOGUE)) == []


def test_heartbeats_are_always_legal() -> None:
    [event] = events(read_records([{"type": "Heartbeat", "at": 5}], ONE_TYPE))
    assert (event.type, event.time) == ("Heartbeat", 5_000_000)


def test_the_type_may_be_absent_where_only_one_can_be_published() -> None:
    untyped = {name: value for name, value in quote().items() if name != "type"}
    found = events(read_records([untyped, quote(), {"type": "Heartbeat", "at": 1}], ONE_TYPE), ONE_TYPE)
    assert [event.type for event in found] == ["StockQuote", "StockQuote", "Heartbeat"]


def test_a_type_without_attributes_has_events() -> None:
    found = events(read_records([{"type": "Tick"}, login(), {"type": "Tick", "_source": "a", "_sequence": 1}], CATALOGUE))
    assert [(event.type, event.row) for event in found] == [("Tick", ()), ("Login", ("ann", 1)), ("Tick", ())]


def test_any_mapping_is_a_record() -> None:
    assert events(read_records([MappingProxyType(login())], CATALOGUE))[0].row == ("ann", 1)


def test_a_nan_is_a_value_for_the_python_api() -> None:
    [event] = events(read_records([quote(value=float("nan"))], CATALOGUE))
    assert event["value"] != event["value"]


def test_repeats_of_a_source_are_dropped_counted_and_keep_their_positions() -> None:
    records = [
        login("a", _source="s", _sequence=1),
        login("b", _source="t", _sequence=1),
        login("again", _source="s", _sequence=1),
        quote(_source="s", _sequence=3),
        login("late", _source="s", _sequence=2),
        login("c"),
    ]
    [columns] = read_records(records, CATALOGUE)
    found = events([columns])
    assert majors(found) == [0, 1, 3, 5]
    assert [(event.source, event.sequence) for event in found] == [("s", 1), ("t", 1), ("s", 3), (None, None)]
    assert (columns.duplicates, columns.last_position) == (2, 5)


def test_a_sequence_without_a_source_belongs_to_the_unnamed_source() -> None:
    records = [login("a", _sequence=1), login("again", _sequence=1), login("b", _sequence=2)]
    assert majors(events(read_records(records, CATALOGUE))) == [0, 2]


def test_repeats_are_known_over_batches_and_resumed_runs() -> None:
    first = RecordReader(CATALOGUE, batch_rows=1)
    list(first.read([login(_source="s", _sequence=7), login(_sequence=2)]))
    state = first.last_sequences.dump()
    assert state == {"version": 1, "sources": {"s": 7}, "unnamed": 2}
    resumed = RecordReader(CATALOGUE, start=first.position, last_sequences=LastSequences.load(state))
    again = [login(_source="s", _sequence=7), login(_source="s", _sequence=8), login(_sequence=2)]
    assert majors(events(resumed.read(again))) == [3]


def test_a_batch_of_repeats_only_still_accounts_for_its_positions() -> None:
    reader = RecordReader(CATALOGUE, batch_rows=1)
    first, second = reader.read([login(_source="s", _sequence=1), login(_source="s", _sequence=1)])
    assert (len(first), len(second), second.duplicates, second.last_position) == (1, 0, 1, 1)
    assert list(second.events(CATALOGUE)) == []


def test_skipping_keeps_the_positions_of_rejected_records() -> None:
    rejected: list[Rejected] = []
    records = [login("a"), login(attempts="x"), quote(), {"type": "Lgin"}, login("b")]
    found = events(read_records(records, CATALOGUE, on_bad="skip", rejects=rejected.append))
    assert majors(found) == [0, 2, 4]
    assert [(each.position, each.code, each.file, each.line) for each in rejected] == [
        (1, "D004", None, None),
        (3, "D001", None, None),
    ]
    assert rejected[1].record == '{"type": "Lgin"}'


def test_a_rejected_record_does_not_move_its_source_so_the_corrected_one_is_let_in() -> None:
    records = [login(attempts="x", _source="s", _sequence=1), login("b", _source="s", _sequence=1)]
    assert majors(events(read_records(records, CATALOGUE, on_bad="skip"))) == [1]


def test_stopping_gives_nothing_of_the_bad_batch_and_remembers_nothing_of_it() -> None:
    reader = RecordReader(CATALOGUE, batch_rows=2)
    given = reader.read([login(), login(), login(_source="s", _sequence=4), login(attempts="x")])
    assert len(next(given)) == 2
    with pytest.raises(DataError, match="record 3"):
        next(given)
    assert reader.last_sequences.dump()["sources"] == {}


def test_the_first_bad_record_is_named_though_another_type_fails_too() -> None:
    with pytest.raises(DataError) as caught:
        list(read_records([quote(value="x"), login(attempts="x")], CATALOGUE))
    assert caught.value.place == "record 0"


@pytest.mark.parametrize("given", ["events.jsonl", b"", {"type": "Login"}, 7])
def test_what_cannot_be_events_is_refused(given: object) -> None:
    with pytest.raises(UsageError, match="A102"):
        read_events(given, CATALOGUE)


def test_an_unknown_way_of_treating_bad_records_is_refused() -> None:
    with pytest.raises(UsageError, match="A101"):
        RecordReader(CATALOGUE, on_bad="ignore")  # type: ignore[arg-type]
