"""Errors of input: the codes, the messages, and the rejected record.

Takes: facts about one record or file. Gives: DataErrors without a place (`at` adds it) and `Rejected`.
Never: decides what is wrong (record_check.py does) or what happens then (gate.py does).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.errors import DataError, Place
from fairlead.model.limits import LIMITS
from fairlead.model.types import EventType
from fairlead.model.values import brief

CODES: Mapping[str, str] = MappingProxyType(
    {
        "D001": "The record's type is not declared.",
        "D002": "The record, table or header has a field that its type does not have.",
        "D003": "The record or table lacks a field of its type; null is a value, a missing field is not.",
        "D004": "The value does not fit the attribute's data type.",
        "D005": "The number is not finite (NaN or an infinity) where that is not allowed.",
        "D006": "The event time is null.",
        "D007": f"The record is larger than {LIMITS.event_bytes_max:,} bytes.",
        "D008": "Events of a derived type or of a union cannot be published.",
        "D009": "The record is not an object, or its `type` is missing or not text.",
        "D010": "`_source` is not text, or `_sequence` is not an integer of 64 bits.",
        "D011": "The line is not valid JSON.",
        "D012": "The file ends in the middle of a record.",
        "D013": "The file does not exist, cannot be read, or has an unknown format.",
        "D014": "The table or header has no `type` column, and more than one type is declared; or a CSV file has no header.",
        "D015": "A key or column is named twice.",
        "D016": "The text is not valid UTF-8.",
        "D017": "The line is not valid CSV, or has another number of cells than the header.",
        "D018": "The output cannot be written.",
        "D019": "A row or record has no value in an order column, or no position where they are in a field.",
        "D020": "A DataFrame or table lacks a column: the type's, an order column, the position's or an attribute's.",
        "D021": "Rows cannot be ordered by a column of that type, or frames give it different types.",
        "D022": "The type of a DataFrame's column cannot hold the values of the attribute.",
        "D023": "A position is not a whole number within the limit, is not above the one before it, or is that of another row.",
        "D024": "A line of JSON or CSV that Spark cannot read with the types of its columns.",
        "D025": "A row is of a stream that the rules do not read.",
        "D030": "A message of the log is not a block of events.",
        "D031": "A block of the log does not hold events of its type.",
        "D040": "The message is no CloudEvent of version 1.0, or lacks its `id`, `source` or `type`.",
        "D041": "An attribute of a CloudEvent has a value that it cannot have.",
        "D042": "The data of a CloudEvent is not a JSON object.",
    }
)

SPECIAL = ("type", "_source", "_sequence")
"""The fields that belong to a record and not to its type."""

NAME_LENGTH_MAX = 80
"""Characters of a name that a message repeats, and that are compared for "did you mean": difflib is quadratic."""


@dataclass(frozen=True)
class Rejected:
    """A record that was rejected and skipped. `line` counts from 1 in text files; rows of tables count from 0. `position` is
    None if records contain positions and this one has none."""

    file: str | None
    line: int | None
    position: int | None
    code: str
    problem: str
    record: str

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "line": self.line,
            "position": self.position,
            "code": self.code,
            "problem": self.problem,
            "record": self.record,
        }


Rejects = Callable[[Rejected], None]


def at(error: DataError, place: Place | str | None) -> DataError:
    """The same error, with its place if it has none yet."""
    if error.place is not None or place is None:
        return error
    return DataError(error.code, error.problem, error.fix, place, error.excerpt)


def quoted(name: object) -> str:
    """A name or value as a message shows it."""
    return brief(name, NAME_LENGTH_MAX)


def did_you_mean(name: object, known: Iterable[str]) -> str | None:
    """The nearest known name as a question, or None."""
    if not isinstance(name, str):
        return None
    options = list(known)
    lowered = {option.lower(): option for option in reversed(options)}
    short = name[:NAME_LENGTH_MAX]
    if short.lower() in lowered:
        return f"did you mean '{lowered[short.lower()]}'?"
    found = difflib.get_close_matches(short, options, n=1)
    return f"did you mean '{found[0]}'?" if found else None


def listed(prefix: str, names: Iterable[str]) -> str:
    """The known names for people: the first ten, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - 10} more" if len(every) > 10 else ""
    return f"{prefix} {', '.join(every[:10])}{more}" if every else f"{prefix} none"


def unknown_type(name: object, known: Iterable[str]) -> DataError:
    every = list(known)
    fix = did_you_mean(name, every) or listed("declared types:", every)
    return DataError("D001", f"event type {quoted(name)} is not declared", fix)


def not_published(declared: EventType) -> DataError:
    """The error of a type that is declared but has no events of its own in any input."""
    if declared.is_union:
        members = " or ".join(declared.members)
        return DataError("D008", f"'{declared.name}' is a union, which has no events of its own", f"publish {members}")
    problem = f"'{declared.name}' is derived: only its subscription makes such events"
    return DataError("D008", problem, "declare a type of your own")


def unknown_field(name: object, owner: str, known: Iterable[str], missing: Iterable[str] = ()) -> DataError:
    """`missing`: attributes that the record lacks; a misspelt name probably means one of them."""
    every = list(known)
    fix = did_you_mean(name, missing) or did_you_mean(name, every) or listed(f"{owner} has", every)
    return DataError("D002", f"{owner} has no attribute {quoted(name)}", fix)


def unknown_column(name: object, known: Iterable[str], place: Place | str | None) -> DataError:
    every = list(known)
    fix = did_you_mean(name, every) or listed("drop it; known columns:", every)
    return DataError("D002", f"no declared type has an attribute {quoted(name)}", fix, place)


def oversized(what: str) -> DataError:
    problem = f"{what} is larger than {LIMITS.event_bytes_max:,} bytes"
    return DataError("D007", problem, "store the content elsewhere and publish its address")


def no_header(place: str) -> DataError:
    """The error of a CSV file without a header."""
    return DataError("D014", "the file has no header", "name the columns in its first line", place)


def no_bytes(place: str) -> DataError:
    """The error of an empty Parquet file."""
    problem = "the file has no bytes, and a Parquet file without rows has some"
    return DataError("D012", problem, "let the writer finish, or copy the file again", place)


def unwritable(what: str, error: OSError, place: str) -> DataError:
    problem = f"{what} cannot be written: {error.strerror or error}"
    return DataError("D018", problem, "check the path and the space left", place)
