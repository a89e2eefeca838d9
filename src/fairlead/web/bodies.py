"""Records of a request: JSON, JSON Lines, or CloudEvents in any of their modes.

    application/json                      a record, or an array of records
    application/x-ndjson                  one record per line
    application/cloudevents+json          one CloudEvent
    application/cloudevents-batch+json    an array of them
    anything, with a header ce-…          a CloudEvent whose attributes are headers

Takes: headers and a body. Gives: records, each with its place in the request. Never: looks at values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairlead.errors import DataError, UsageError
from fairlead.model.events.types import Catalogue
from fairlead.transport.admission.problems import at, quoted
from fairlead.transport.admission.record_check import Shapes
from fairlead.transport.files.json_lines import floats
from fairlead.transport.output.cloud_events import BATCHED, JSON, STRUCTURED, CloudEvents

LINES = "application/x-ndjson"
KINDS = (JSON, LINES, STRUCTURED, BATCHED)
Placed = tuple[str, Any]


class Bodies:
    """Prepared for a catalogue. `prefix`: see CloudEvents."""

    def __init__(self, catalogue: Catalogue, prefix: str | None) -> None:
        self.catalogue = catalogue
        self._events = CloudEvents(catalogue, prefix)
        self._shapes = Shapes(catalogue, allow_nan=True)

    def records(self, headers: Sequence[tuple[str, str]], body: bytes, type: str | None) -> list[Placed]:
        """`type`: the type of records without one. Raises DataError, UsageError."""
        media = next((value for name, value in headers if name.lower() == "content-type"), "")
        kind = media.partition(";")[0].strip().lower()
        if any(name.lower().startswith("ce-") for name, _ in headers) or kind.startswith("application/cloudevents"):
            return [(f"CloudEvent {quoted(each.id)}", each.record) for each in self._events.read(headers, body)]
        if kind not in KINDS:
            problem = f"the content type {quoted(kind)} is not supported" if kind else "the content type is missing"
            raise UsageError("A271", problem, f"send one of {', '.join(KINDS)}", "header 'content-type'")
        found = list(self._lines(body) if kind == LINES else self._json(body))
        for _, record in found:
            if type is not None and isinstance(record, dict):
                record.setdefault("type", type)
            if self._shapes.needs_decimal:
                floats(record, self._shapes)
        return found

    def _json(self, body: bytes) -> Iterator[Placed]:
        try:
            value = self._events.parse(body, "the body")
        except DataError as error:
            raise at(error, "body") from None
        if isinstance(value, list):
            yield from ((f"record {number}", each) for number, each in enumerate(value))
        else:
            yield "record 0", value

    def _lines(self, body: bytes) -> Iterator[Placed]:
        for number, line in enumerate(body.split(b"\n"), 1):
            if line.strip():
                try:
                    yield f"line {number}", self._events.parse(line, "the line")
                except DataError as error:
                    raise at(error, f"line {number}") from None
