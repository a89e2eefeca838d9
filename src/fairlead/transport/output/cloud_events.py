"""CloudEvents 1.0 in JSON, in all three modes, to records and back.

    type       ◄─► `type`, after a prefix that the user names
    source     ◄─► `_source`; a record without one has that of the mapping
    sequence   ◄─► `_sequence`, an extension attribute; written with leading zeros, so that texts sort as numbers
    time       ◄─► the TIME attribute, if the type has one; an attribute of that name in the data has precedence
    data       ◄─► the other attributes, a JSON object
    id         ◄─  from the caller, or the sequence, or the position; ─► returned beside the record

Other attributes of a CloudEvent (subject, dataschema, extensions) are not read. In a source whose name is not a URI reference,
invalid characters are written as %XX.

    structured   one JSON object, application/cloudevents+json
    batched      an array of them, application/cloudevents-batch+json
    binary       attributes as headers `ce-…`, the data as the body

Takes: messages, that is headers and a body; records; events. Gives: records, which record_check.py has yet to check against
their types; messages. Never: sends, receives, or keeps anything between messages.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json import JSONDecodeError
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from fairlead.dataclass import dataclass
from fairlead.errors import DataError, UsageError
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue, DataType, EventType, Kind
from fairlead.model.events.values import INT_RANGE, canonical, jsonable
from fairlead.transport.admission.problems import SPECIAL, at, listed, quoted, unknown_field
from fairlead.transport.admission.record_check import Shapes
from fairlead.transport.files.json_lines import cut_short, decoder_for, floats, parsed
from fairlead.transport.files.text_lines import Line, Parsed, decoded

VERSION = "1.0"
STRUCTURED = "application/cloudevents+json"
BATCHED = "application/cloudevents-batch+json"
JSON = "application/json"
REQUIRED = ("id", "source", "type")
DIGITS = len(str(INT_RANGE[Kind.BIGINT][1]))
EXTENSION = re.compile(r"[a-z0-9]+")
CORE = frozenset({"specversion", "datacontenttype", "dataschema", "subject", "time", "data", *REQUIRED})
NOT_IN_A_URI = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")
IN_A_HEADER = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
Headers = Mapping[str, str] | Iterable[tuple[str, str]]
Message = tuple[dict[str, str], bytes]
"""Headers and body."""


@dataclass(frozen=True)
class Received:
    """A record, and the id of its CloudEvent: with the source, it identifies the event permanently."""

    record: dict[str, Any]
    id: str


@dataclass
class CloudEvents:
    """`prefix`: precedes the name of every type ("com.example."); None accepts any prefix up to the last dot, and writes none.
    `sequence`: the extension attribute of the sequence; None for no sequence. `source`: the source of records without one."""

    catalogue: Catalogue
    prefix: str | None = ""
    sequence: str | None = "sequence"
    source: str = "/fairlead"

    def __post_init__(self) -> None:
        if self.sequence is not None and (not EXTENSION.fullmatch(self.sequence) or self.sequence in CORE):
            fix = "use lower-case letters and digits, and no name that CloudEvents defines"
            raise UsageError("A231", f"{self.sequence!r} is not a valid name of an extension attribute", fix)
        if not self.source:
            raise UsageError("A231", "the source of CloudEvents is empty", "set it, such as /desk-1")
        self._shapes = Shapes(self.catalogue, allow_nan=False)
        self._decoder = decoder_for(self._shapes)

    def read(self, headers: Headers, body: bytes) -> list[Received]:
        """The records of a message in any mode. Raises DataError."""
        given = _headers(headers)
        media = given.get("content-type", "").partition(";")[0].strip().lower()
        if media.startswith("application/cloudevents"):
            if media == BATCHED:
                return self.read_batched(body)
            if media == STRUCTURED:
                return [self.read_structured(body)]
            problem = f"CloudEvents as {quoted(media)} are not supported"
            raise DataError("D041", problem, f"send {STRUCTURED} or {BATCHED}", "header 'content-type'")
        return [self.read_binary(given, body)]

    def read_structured(self, body: bytes) -> Received:
        return self._placed(self.parse(body, "the message"), "CloudEvent")

    def read_batched(self, body: bytes) -> list[Received]:
        found = self.parse(body, "the batch")
        if not isinstance(found, list):
            raise DataError(
                "D040", f"a batch is an array of CloudEvents, not {quoted(found)}", f"send one as {STRUCTURED}", "batch"
            )
        return [self._placed(each, f"event {number} of the batch") for number, each in enumerate(found)]

    def read_binary(self, headers: Headers, body: bytes) -> Received:
        given = _headers(headers)
        event: dict[str, Any] = {}
        for name, value in given.items():
            if name.startswith("ce-"):
                event[name[3:]] = _header_value(name, value)
        if "datacontenttype" in event:
            problem = "the header `ce-datacontenttype` is not allowed: `content-type` has its value"
            raise DataError("D041", problem, "leave it out", "header 'ce-datacontenttype'")
        event["datacontenttype"] = given.get("content-type")
        if body.strip():
            event["data_base64"] = body
        return self._placed(event, "CloudEvent")

    def _placed(self, event: Any, place: str) -> Received:
        try:
            return self.record_of(event)
        except DataError as error:
            known = f"{place} {quoted(event['id'])}" if isinstance(event, dict) and isinstance(event.get("id"), str) else place
            raise at(error, known) from None

    def record_of(self, event: Any) -> Received:
        """The record of a CloudEvent as a JSON object. Raises DataError without a place."""
        if not isinstance(event, dict):
            raise DataError("D040", f"a CloudEvent is a JSON object, not {quoted(event)}", 'send {"specversion": "1.0", …}')
        if event.get("specversion") != VERSION:
            given = event.get("specversion")
            problem = "`specversion` is missing" if given is None else f"`specversion` is {quoted(given)}, not '{VERSION}'"
            raise DataError("D040", problem, f"send CloudEvents of version {VERSION}")
        for name in REQUIRED:
            value = event.get(name)
            if not isinstance(value, str) or not value:
                problem = (
                    f"`{name}` is missing" if value is None else f"expected non-empty text in `{name}`, got {quoted(value)}"
                )
                raise DataError("D040", problem, f"every CloudEvent has {', '.join(REQUIRED)}")
        name = self._type(event["type"])
        record = {"type": name, **self._data(event, name), "_source": event["source"]}
        schema = self.catalogue.get(name)
        timed = None if schema is None else schema.time_attribute
        if timed is not None and timed not in record and event.get("time") is not None:
            record[timed] = _time(event["time"])
        if self.sequence is not None and event.get(self.sequence) is not None:
            record["_sequence"] = _whole(event[self.sequence], self.sequence)
        return Received(floats(record, self._shapes) if self._shapes.needs_decimal else record, event["id"])

    def _type(self, given: str) -> str:
        if self.prefix is None:
            return given.rpartition(".")[2]
        if not given.startswith(self.prefix):
            known = listed("types of CloudEvents here:", (self.prefix + name for name in self._shapes.names))
            raise DataError("D001", f"the type {quoted(given)} does not begin with '{self.prefix}'", known)
        return given[len(self.prefix) :]

    def _data(self, event: dict[str, Any], name: str) -> dict[str, Any]:
        """The attributes. The record check reports unknown fields in the data, except those that would be mistaken for
        something else."""
        media = event.get("datacontenttype")
        if media is not None and not isinstance(media, str):
            raise DataError("D041", f"expected text in `datacontenttype`, got {quoted(media)}", f"send {JSON}")
        kind = (media or JSON).partition(";")[0].strip().lower()
        data, packed = event.get("data"), event.get("data_base64")
        if data is None and packed is None:
            return {}
        if kind.rpartition("/")[2] != "json" and not kind.endswith("+json"):
            raise DataError("D042", f"the data is {quoted(media)}, not JSON", f"send the attributes as {JSON}")
        if packed is not None:
            if data is not None:
                raise DataError("D042", "both `data` and `data_base64` are set", "send one of them")
            data = self.parse(_unpacked(packed), "the data")
        if not isinstance(data, dict):
            raise DataError(
                "D042", f"expected a JSON object as data, got {quoted(data)}", "send {attribute: value, …} as the data"
            )
        for each in SPECIAL:
            if each in data:
                shape = self._shapes.by_name.get(name)
                raise unknown_field(each, f"event type '{name}'", () if shape is None else shape.names)
        return data

    def parse(self, body: bytes, what: str) -> Any:
        """A JSON value. Raises DataError without a place."""
        text = decoded(body.removeprefix(b"\xef\xbb\xbf"))
        if isinstance(text, DataError):
            raise DataError(text.code, f"{what} is not UTF-8", "send JSON as UTF-8")
        found = parsed(self._decoder, text)
        if isinstance(found, JSONDecodeError):
            problem = f"{what} is not valid JSON: {found.msg} (line {found.lineno}, column {found.colno})"
            raise DataError("D011", problem, "send one JSON value")
        if isinstance(found, DataError):
            raise found
        return found

    def structured(self, record: Mapping[str, Any] | Event, id: str | None = None) -> Message:
        """The message of one record. Raises DataError if it does not fit its type."""
        return {"content-type": f"{STRUCTURED}; charset=utf-8"}, _written(self.envelope(record, id))

    def batched(self, records: Iterable[Mapping[str, Any] | Event], ids: Sequence[str] | None = None) -> Message:
        """One message of many. `ids`: one for each."""
        given = list(records)
        named = [None] * len(given) if ids is None else ids
        made = []
        for number, (record, id) in enumerate(zip(given, named, strict=True)):
            try:
                made.append(self.envelope(record, id))
            except DataError as error:
                raise at(error, f"record {number}") from None
        return {"content-type": f"{BATCHED}; charset=utf-8"}, _written(made)

    def binary(self, record: Mapping[str, Any] | Event, id: str | None = None) -> Message:
        """The message of one record, its attributes as headers."""
        event = self.envelope(record, id)
        data, media = event.pop("data"), event.pop("datacontenttype")
        return {f"ce-{name}": quote(value, safe=IN_A_HEADER) for name, value in event.items()} | {
            "content-type": media
        }, _written(data)

    def envelope(self, record: Mapping[str, Any] | Event, id: str | None = None) -> dict[str, Any]:
        """The CloudEvent as a JSON object. Raises DataError."""
        if isinstance(record, Event):
            schema, row, source, sequence, time = record.schema, record.row, record.source, record.sequence, record.time
            id = id or (str(record.position) if sequence is None else None)
        else:
            shape, row, source, sequence, _ = self._shapes.judge(record)
            schema, time = self.catalogue[shape.name], None
        id = id or (None if sequence is None else str(sequence))
        if id is None:
            fix = "number the records of a source in `_sequence`, or set an id"
            raise DataError("D040", "a CloudEvent needs an id, and the record has no sequence", fix)
        named = NOT_IN_A_URI.sub(lambda found: quote(found[0], safe=""), source or self.source)
        made = {"specversion": VERSION, "id": id, "source": named, "type": f"{self.prefix or ''}{schema.name}"}
        data = _values(schema, row)
        if schema.time_attribute is not None:
            made["time"] = data.pop(schema.time_attribute)
        elif time is not None:
            made["time"] = jsonable(time, Kind.TIMESTAMP)
        if self.sequence is not None and sequence is not None:
            made[self.sequence] = f"{sequence:0{DIGITS}}"
        return made | {"datacontenttype": JSON, "data": data}


def cloudevent_records(lines: Iterable[Line], shapes: Shapes, file: str) -> Iterator[Parsed]:
    """The records of a file with one CloudEvent per line, whatever the prefix of their types."""
    events = CloudEvents(shapes.catalogue, prefix=None)
    position = shapes.position_field
    for number, content, ended, error in lines:
        text = error if error is not None else decoded(content, ended)
        if isinstance(text, DataError):
            shown = content.decode("utf-8", "replace").rstrip("\r\n")
            yield number, shown, text
        elif text and not text.isspace():
            found = _one_of_a_file(events, text, position)
            is_cut = not ended and isinstance(found, DataError) and found.code == "D011"
            yield number, text.rstrip("\r\n"), cut_short() if is_cut else found


def _one_of_a_file(events: CloudEvents, text: str, position: str | None) -> dict[str, Any] | DataError:
    """The record of a line, or its error. A position may be an extension attribute, too."""
    try:
        event = events.parse(text.encode("utf-8", "surrogatepass"), "the line")
        record = events.record_of(event).record
        if position is not None and position not in record and event.get(position) is not None:
            record[position] = _whole(event[position], position)
        return record
    except DataError as error:
        return error


def _values(schema: EventType, row: tuple[Any, ...]) -> dict[str, Any]:
    return {each.name: jsonable(value, each.type) for each, value in zip(schema.attributes, row, strict=True)}


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _headers(given: Headers) -> dict[str, str]:
    """The headers, by lowercase name."""
    found: dict[str, str] = {}
    for name, value in given.items() if isinstance(given, Mapping) else given:
        lower = name.lower()
        if lower in found and (lower.startswith("ce-") or lower == "content-type"):
            raise DataError("D015", f"the header '{lower}' occurs twice", "send every attribute once", f"header '{lower}'")
        found[lower] = value
    return found


def _header_value(name: str, value: str) -> str:
    """1. Quoted strings, 2. one round of percent-decoding, as the HTTP binding says."""
    text = value.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':  # 1
        text = re.sub(r"\\(.)", r"\1", text[1:-1])
    try:
        return unquote_to_bytes(text).decode()  # 2
    except UnicodeError:
        fix = "percent-encode the UTF-8 of what is not printable ASCII"
        raise DataError("D016", f"{quoted(value)} is not UTF-8", fix, f"header '{name}'") from None


def _unpacked(packed: Any) -> bytes:
    if isinstance(packed, bytes):
        return packed
    try:
        return base64.b64decode(packed, validate=True)
    except (TypeError, ValueError):
        raise DataError(
            "D042", f"expected base64 in `data_base64`, got {quoted(packed)}", "encode the data as base64"
        ) from None


def _time(value: Any) -> str:
    """The time as it was written, if it is valid for an event."""
    problem = f"`time` is not a time of RFC 3339 but {quoted(value)}"
    if isinstance(value, str) and RFC_3339.fullmatch(value):
        try:
            canonical(value.upper(), DataType(Kind.TIMESTAMP))
            return value.upper()
        except ValueError as error:
            problem = f"`time`: {error}"
    raise DataError("D041", problem, "send it such as 2026-01-31T12:00:00.000001Z, or in the data") from None


def _whole(value: Any, name: str) -> int:
    low, high = INT_RANGE[Kind.BIGINT]
    digits = value if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,40}", value) else None
    number = int(digits) if digits is not None else value
    if isinstance(number, int) and not isinstance(number, bool) and low <= number <= high:
        return number
    fix = f"send the digits of a number in `{name}`, or use another extension attribute, or none"
    raise DataError("D041", f"expected a 64-bit integer in `{name}`, got {quoted(value)}", fix)
