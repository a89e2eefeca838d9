"""CloudEvents: what goes out in any mode comes in again as it was; what is wrong with one is said with code, place and fix."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from fairlead.errors import DataError, UsageError
from fairlead.model.events.types import Catalogue, DataType, EventType, Kind
from fairlead.transport import Rejected, read_files, read_records
from fairlead.transport.output.cloud_events import BATCHED, STRUCTURED, CloudEvents, Message, Received
from tests.transport.samples import CATALOGUE, QUOTE, attributes, events, login, majors, quote, write
from tests.transport.test_round_trip import ALL_TYPES, records

EXAMPLE = CloudEvents(CATALOGUE, prefix="com.example.")
PLAIN = CloudEvents(CATALOGUE)
EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "type": "com.example.StockQuote",
    "source": "/exchange/1",
    "id": "A234-1234-1234",
    "time": "2026-01-31T10:00:00Z",
    "subject": None,
    "comexampleextension1": "value",
    "datacontenttype": "application/json",
    "data": {"symbol": "ACME", "value": 1.5},
}
RECORD = {"type": "StockQuote", "symbol": "ACME", "value": 1.5, "_source": "/exchange/1", "at": "2026-01-31T10:00:00Z"}
PRICED = Catalogue((EventType("Priced", attributes(price=DataType(Kind.DECIMAL, 38, 20), ratio=Kind.DOUBLE)),))


def body(**changed: Any) -> bytes:
    event = {name: value for name, value in (EVENT | changed).items() if value is not ...}
    return json.dumps(event).encode()


def binary(**changed: Any) -> Message:
    """The same as headers and the data as it is."""
    event = {name: value for name, value in (EVENT | changed).items() if value is not None and value is not ...}
    data, media = event.pop("data", None), event.pop("datacontenttype", "application/json")
    headers = {f"CE-{name}": str(value) for name, value in event.items()} | {"Content-Type": media}
    return headers, b"" if data is None else json.dumps(data).encode()


def test_a_structured_event_is_a_record() -> None:
    assert EXAMPLE.read_structured(body()) == Received(RECORD, "A234-1234-1234")
    assert EXAMPLE.read({"Content-Type": f"{STRUCTURED}; charset=UTF-8"}, body()) == [Received(RECORD, "A234-1234-1234")]
    (event,) = events(read_records([RECORD], CATALOGUE))
    assert event["at"] == datetime(2026, 1, 31, 10, tzinfo=UTC)


def test_a_binary_event_is_the_same_record() -> None:
    headers, data = binary()
    assert EXAMPLE.read(headers, data) == [Received(RECORD, "A234-1234-1234")]
    assert EXAMPLE.read(list(headers.items()), data) == EXAMPLE.read({"HOST": "a", **headers}, data)


def test_a_batch_is_its_records() -> None:
    found = EXAMPLE.read([("content-type", BATCHED)], b"[" + body() + b"," + body(id="B", sequence="7") + b"]")
    assert found == [Received(RECORD, "A234-1234-1234"), Received(RECORD | {"_sequence": 7}, "B")]
    assert EXAMPLE.read([("content-type", BATCHED)], b"[]") == []


def test_data_may_be_base64_of_json() -> None:
    packed = base64.b64encode(json.dumps(EVENT["data"]).encode()).decode()
    assert EXAMPLE.read_structured(body(data=..., data_base64=packed)).record == RECORD
    assert EXAMPLE.read_structured(body(data=..., data_base64=packed, datacontenttype="text/x+json;a=b")).record == RECORD


def test_a_type_without_attributes_needs_no_data() -> None:
    event = {"specversion": "1.0", "type": "Tick", "source": "s", "id": "1"}
    for message in (event, event | {"data": None}, event | {"data": {}}):
        assert PLAIN.record_of(message).record == {"type": "Tick", "_source": "s"}
    assert PLAIN.read({f"ce-{name}": value for name, value in event.items()}, b"")[0].record == {"type": "Tick", "_source": "s"}


def test_the_time_of_the_data_has_precedence() -> None:
    at = "2020-01-01T00:00:00Z"
    assert EXAMPLE.read_structured(body(data=EVENT["data"] | {"at": at})).record["at"] == at
    assert "at" not in EXAMPLE.read_structured(body(time=None)).record  # the judge misses it


def test_any_prefix_is_taken_where_none_is_named() -> None:
    events = CloudEvents(CATALOGUE, prefix=None)
    assert events.read_structured(body()).record == events.read_structured(body(type="StockQuote")).record == RECORD


def test_numbers_of_decimals_keep_their_digits() -> None:
    message = b'{"specversion":"1.0","type":"Priced","source":"s","id":"1","data":{"price":0.12345678901234567890,"ratio":0.5}}'
    record = CloudEvents(PRICED).read_structured(message).record
    assert (record["price"], record["ratio"]) == (Decimal("0.12345678901234567890"), 0.5)
    assert type(record["ratio"]) is float


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ("%e2%82%ac", "€"),
        ('"a \\"quoted\\" \\\\ text"', 'a "quoted" \\ text'),
        ("%41bc", "Abc"),
        ("50%25", "50%"),
    ],
)
def test_headers_are_decoded_as_the_binding_says(written: str, read: str) -> None:
    headers, data = binary()
    assert EXAMPLE.read(headers | {"CE-source": written}, data)[0].record["_source"] == read


def test_headers_are_encoded_as_the_binding_says() -> None:
    headers, _ = PLAIN.binary(quote(), id='Euro € 😀 100%"')
    assert headers["ce-id"] == "Euro%20%E2%82%AC%20%F0%9F%98%80%20100%25%22"
    assert headers["content-type"] == "application/json"
    assert PLAIN.read_binary(headers, b"{}").id == 'Euro € 😀 100%"'


def test_a_record_is_written_in_every_mode() -> None:
    record = quote(_source="/exchange/1", _sequence=7)
    wanted = {
        "specversion": "1.0",
        "id": "7",
        "source": "/exchange/1",
        "type": "com.example.StockQuote",
        "time": "2024-01-02T03:04:05Z",
        "sequence": "0000000000000000007",
        "datacontenttype": "application/json",
        "data": {"symbol": "ACME", "value": 1.5},
    }
    headers, content = EXAMPLE.structured(record)
    assert (headers, json.loads(content)) == ({"content-type": "application/cloudevents+json; charset=utf-8"}, wanted)
    headers, content = EXAMPLE.batched([record, record], ids=["a", "b"])
    assert headers == {"content-type": "application/cloudevents-batch+json; charset=utf-8"}
    assert json.loads(content) == [wanted | {"id": "a"}, wanted | {"id": "b"}]
    headers, content = EXAMPLE.binary(record)
    assert json.loads(content) == wanted["data"]
    assert headers["ce-sequence"] == wanted["sequence"]


def test_written_sequences_stand_in_the_order_of_their_numbers() -> None:
    numbers = [0, 9, 10, 2**31, 2**63 - 1]
    texts = [PLAIN.envelope(login(_sequence=number))["sequence"] for number in numbers]
    assert texts == sorted(texts)


def test_a_record_without_a_source_has_that_of_the_mapping_and_a_name_that_is_no_uri_is_encoded() -> None:
    assert PLAIN.envelope(login(), id="1")["source"] == "/fairlead"
    assert PLAIN.envelope(login(_source="desk 1/é%"), id="1")["source"] == "desk%201/%C3%A9%25"
    assert PLAIN.envelope(login(_source="/a%20b?c#d"), id="1")["source"] == "/a%20b?c#d"


def test_events_are_written_with_their_positions_derived_ones_too() -> None:
    rules = "TYPE A (x INT, at TIMESTAMP) TIME at\nSUBSCRIPTION S MATCH A a EMIT Seen(y = a.x + 1)\nSUBSCRIPTION T MATCH Seen s"
    plan = fairlead.compile(rules)
    (found,) = fairlead.match(plan, [{"type": "A", "x": 1, "at": 5}]).of("T")
    envelope = CloudEvents(plan.catalogue).envelope(found.events[0])
    assert (envelope["type"], envelope["id"], envelope["data"]) == ("Seen", "0+1", {"y": 2})
    assert envelope["time"] == "1970-01-01T00:00:05Z"


MODES: dict[str, Callable[[CloudEvents, dict[str, Any]], Message]] = {
    "structured": lambda mapping, record: mapping.structured(record, id="x"),
    "binary": lambda mapping, record: mapping.binary(record, id="x"),
    "batched": lambda mapping, record: mapping.batched([record], ids=["x"]),
}


@pytest.mark.parametrize("mode", MODES)
@given(records(ratio=st.floats(allow_nan=False, allow_infinity=False)), st.none() | st.integers(-(2**63), 2**63 - 1))
def test_what_goes_out_comes_in_again(mode: str, given_records: list[dict[str, Any]], sequence: int | None) -> None:
    mapping = CloudEvents(ALL_TYPES, prefix="org.fairlead/")
    for record in given_records:
        sent = record | {"_source": "/a;b=c", "_sequence": sequence}
        (received,) = mapping.read(*MODES[mode](mapping, sent))
        assert received.id == "x"
        wanted, found = (events(read_records([each], ALL_TYPES), ALL_TYPES) for each in (sent, received.record))
        assert found == wanted


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no version": ({"specversion": ...}, "D040", "`specversion` is missing"),
    "another version": ({"specversion": "0.3"}, "D040", "`specversion` is '0.3', not '1.0'"),
    "no id": ({"id": ...}, "D040", "`id` is missing"),
    "an empty id": ({"id": ""}, "D040", "expected non-empty text in `id`, got ''"),
    "no source": ({"source": None}, "D040", "`source` is missing"),
    "no type": ({"type": ...}, "D040", "`type` is missing"),
    "another prefix": ({"type": "org.StockQuote"}, "D001", "'org.StockQuote' does not begin with 'com.example.'"),
    "no time": ({"time": "noon"}, "D041", "`time` is not a time of RFC 3339 but 'noon'"),
    "a time without a zone": ({"time": "2026-01-31T10:00:00"}, "D041", "`time` is not a time of RFC 3339"),
    "a finer time": ({"time": "2026-01-31T10:00:00.123456789Z"}, "D041", "is finer than a microsecond"),
    "no such day": ({"time": "2026-02-31T10:00:00Z"}, "D041", "`time`: expected TIMESTAMP"),
    "a sequence of letters": ({"sequence": "A7"}, "D041", "expected a 64-bit integer in `sequence`, got 'A7'"),
    "a sequence too large": ({"sequence": str(2**63)}, "D041", "expected a 64-bit integer in `sequence`"),
    "data that is no object": ({"data": [1]}, "D042", "expected a JSON object as data, got [1]"),
    "data that is a text": ({"data": "x"}, "D042", "expected a JSON object as data, got 'x'"),
    "data that is no JSON": ({"datacontenttype": "application/xml", "data": "<a/>"}, "D042", "'application/xml', not JSON"),
    "data with a type": ({"data": {"type": "Login"}}, "D002", "event type 'StockQuote' has no attribute 'type'"),
}
ONLY_STRUCTURED: dict[str, tuple[dict[str, Any], str, str]] = {
    "an id that is no text": ({"id": 7}, "D040", "expected non-empty text in `id`, got 7"),
    "a media type that is no text": ({"datacontenttype": 1}, "D041", "expected text in `datacontenttype`, got 1"),
    "both kinds of data": ({"data_base64": "e30="}, "D042", "both `data` and `data_base64` are set"),
    "no base64": ({"data": ..., "data_base64": "{}"}, "D042", "expected base64 in `data_base64`, got '{}'"),
    "base64 of no JSON": ({"data": ..., "data_base64": "eA=="}, "D011", "the data is not valid JSON: Expecting value"),
    "base64 of no text": ({"data": ..., "data_base64": "//8="}, "D016", "the data is not UTF-8"),
    "a truth value as sequence": ({"sequence": True}, "D041", "expected a 64-bit integer in `sequence`, got True"),
}


@pytest.mark.parametrize("kind", [*BAD, *ONLY_STRUCTURED])
def test_what_is_wrong_is_said_with_code_place_and_fix(kind: str) -> None:
    changed, code, problem = (BAD | ONLY_STRUCTURED)[kind]
    messages = [({"content-type": STRUCTURED}, body(**changed))]
    messages += [({"content-type": BATCHED}, b"[" + body() + b"," + body(**changed) + b"]")]
    messages += [binary(**changed)] if kind in BAD else []
    for number, message in enumerate(messages):
        with pytest.raises(DataError) as raised:
            EXAMPLE.read(*message)
        error = raised.value
        assert (error.code, problem in error.problem) == (code, True), str(error)
        assert error.fix
        assert str(error.place).startswith("event 1 of the batch" if number == 1 else "CloudEvent")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["1.0", "Login", "%", "2026-01-31T10:00:00Z"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
NAMES = st.sampled_from([*EVENT, "sequence", "data_base64"])


@given(st.dictionaries(NAMES, VALUES), st.sampled_from([STRUCTURED, BATCHED]), st.binary(max_size=20))
def test_whatever_comes_is_a_record_or_an_error_of_ours(event: dict[str, Any], media: str, noise: bytes) -> None:
    texts = {f"ce-{name}": str(value) for name, value in event.items() if name != "datacontenttype"}
    whole = PLAIN.envelope(login(), id="1") | event
    messages: list[tuple[Any, bytes]] = [
        ({"content-type": media}, json.dumps(whole).encode()),
        ({"content-type": media}, json.dumps([whole]).encode()),
        ({"content-type": media}, noise),
        (texts, noise),
        (
            {f"ce-{name}": str(value) for name, value in whole.items() if name[:4] != "data"},
            json.dumps(event.get("data")).encode(),
        ),
    ]
    for headers, content in messages:
        try:
            found = [each.record for each in PLAIN.read(headers, content)]
            list(read_records(found, CATALOGUE))
        except DataError:
            continue


def test_places_name_the_id_where_there_is_one() -> None:
    with pytest.raises(DataError, match="D041 CloudEvent 'A234-1234-1234': `time`"):
        EXAMPLE.read_structured(body(time="noon"))


@pytest.mark.parametrize(
    ("headers", "content", "code", "place"),
    [
        ({"content-type": STRUCTURED}, b"{", "D011", None),
        ({"content-type": STRUCTURED}, b"", "D011", None),
        ({"content-type": STRUCTURED}, b"\xff", "D016", None),
        ({"content-type": STRUCTURED}, b'{"id": "a", "id": "b"}', "D015", None),
        ({"content-type": STRUCTURED}, b"[" * 100_000, "D011", None),
        ({"content-type": STRUCTURED}, b"[]", "D040", "CloudEvent"),
        ({"content-type": BATCHED}, b"{}", "D040", "batch"),
        ({"content-type": BATCHED}, b"[1]", "D040", "event 0 of the batch"),
        ({"content-type": "application/cloudevents+avro"}, b"", "D041", "header 'content-type'"),
        ({}, b"{}", "D040", "CloudEvent"),
        ([("ce-id", "1"), ("CE-ID", "2")], b"", "D015", "header 'ce-id'"),
        ({"ce-id": "%C0%A0"}, b"", "D016", "header 'ce-id'"),
        ({"ce-datacontenttype": "text/xml"}, b"", "D041", "header 'ce-datacontenttype'"),
    ],
)
def test_what_is_no_event_at_all_is_refused(headers: Any, content: bytes, code: str, place: str | None) -> None:
    with pytest.raises(DataError) as raised:
        PLAIN.read(headers, content)
    assert (raised.value.code, raised.value.place) == (code, place)
    assert raised.value.fix


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(DataError, match="D040 a CloudEvent needs an id, and the record has no sequence"):
        PLAIN.structured(login())
    with pytest.raises(DataError, match="D004 record 1: attribute 'attempts' of 'Login'"):
        PLAIN.batched([login(), login(attempts="x")], ids=["a", "b"])
    with pytest.raises(DataError, match="D005"):
        PLAIN.structured(quote(value=float("nan")), id="1")


@pytest.mark.parametrize("wrong", [{"sequence": "Sequence"}, {"sequence": "my-seq"}, {"sequence": "time"}, {"source": ""}])
def test_a_mapping_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="A231"):
        CloudEvents(CATALOGUE, **wrong)


def test_without_a_sequence_attribute_none_is_read_or_written() -> None:
    mapping = CloudEvents(CATALOGUE, prefix="com.example.", sequence=None)
    assert mapping.read_structured(body(sequence="whatever")).record == RECORD
    assert "sequence" not in mapping.envelope(login(_sequence=7))


def test_a_file_of_events_is_input_like_every_other(tmp_path: Path) -> None:
    lines = [body(sequence=str(at), position=str(10 * at)) for at in (1, 2, 2)]
    path = write(tmp_path / "in.cloudevents.jsonl", *lines[:2], b"", body(type="org.Tick", data=..., position="99"))
    found = events(read_files(path, CATALOGUE))
    assert [(event.type, event.position.major, event.sequence) for event in found] == [
        (QUOTE.name, 0, 1),
        (QUOTE.name, 1, 2),
        ("Tick", 2, None),
    ]
    assert majors(events(read_files(path, CATALOGUE, position="position"))) == [10, 20, 99]


def test_bad_lines_of_a_file_are_set_aside_with_their_lines(tmp_path: Path) -> None:
    bad = [body(time="noon"), b"{", body(data={"symbol": "A"}), b"\xff", body(id=...), body(type="a.Unknown")]
    path = write(tmp_path / "in.cloudevents.jsonl", body(), *bad, b'{"specversion": "1.', end=b"")
    with pytest.raises(DataError, match=r"D041 .*in.cloudevents.jsonl, line 2, column 1: `time` is not"):
        list(read_files(path, CATALOGUE))
    refused: list[Rejected] = []
    assert len(events(read_files(path, CATALOGUE, on_bad="skip", rejects=refused.append))) == 1
    assert [(each.line, each.code) for each in refused] == [
        (2, "D041"),
        (3, "D011"),
        (4, "D003"),
        (5, "D016"),
        (6, "D040"),
        (7, "D001"),
        (8, "D012"),
    ]
