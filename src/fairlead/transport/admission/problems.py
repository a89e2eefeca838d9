"""What can be wrong with input, and how it is said: the errors, and the record that was refused.

Takes: facts about one record or file. Gives: DataErrors without a place (`at` adds it) and `Rejected`.
Never: decides what is wrong (record_check.py does) or what happens then (gate.py does).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.errors import DataError, Place
from fairlead.model.events.types import DataType, EventType, Kind
from fairlead.model.events.values import brief
from fairlead.model.limits import LIMITS

SPECIAL = ("type", "_source", "_sequence", "_stored")
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
    fix = did_you_mean(name, every) or listed("declare it with TYPE, or use one of the declared types:", every)
    return DataError("D001", f"event type {quoted(name)} is not declared", fix)


def not_published(declared: EventType) -> DataError:
    """The error of a type that is declared but has no events of its own in any input."""
    if declared.is_union:
        members = " or ".join(declared.members)
        return DataError("D008", f"'{declared.name}' is a union, which has no events of its own", f"publish {members}")
    problem = f"'{declared.name}' is derived: only its subscription publishes such events"
    return DataError("D008", problem, "publish a declared type")


def unknown_field(name: object, owner: str, known: Iterable[str], missing: Iterable[str] = ()) -> DataError:
    """`missing`: attributes that the record lacks; a misspelt name probably means one of them."""
    every = list(known)
    fix = did_you_mean(name, missing) or did_you_mean(name, every) or listed(f"{owner} has", every)
    return DataError("D002", f"{owner} has no attribute {quoted(name)}", fix)


def missing_field(name: str, where: str, *, text: bool, is_time: bool) -> DataError:
    """`text`: the record is a row of cells. `is_time`: it is the event time, which cannot be null."""
    if is_time:
        return DataError("D003", f"{where} is missing", "give every event of a type with TIME a time")
    fix = f"add a column '{name}'; an empty cell is null" if text else f'null is a value: "{name}": null'
    return DataError("D003", f"{where} is missing", fix)


def no_nested_cells(name: str, wanted: DataType | str, place: Place | str) -> DataError:
    """The error of a CSV file with a column for an ARRAY or STRUCT."""
    problem = f"the column {quoted(name)} is {quoted_type(wanted)}, and a cell of CSV is a single value"
    return DataError("D043", problem, "write the events as JSON Lines or Parquet, or declare an attribute for each part", place)


def quoted_type(wanted: DataType | str) -> str:
    """A data type as a message shows it: that of a wide table can be as long as the text of the rules."""
    text = str(wanted)
    return text if len(text) <= NAME_LENGTH_MAX else f"{text[: NAME_LENGTH_MAX - 3]}..."


def no_type(record: Iterable[object]) -> DataError:
    """The error of a record of which no field is called `type`."""
    alike = next((each for each in record if isinstance(each, str) and each.strip().casefold() == "type"), None)
    fix = f"write `type`, not {quoted(alike)}" if alike is not None else "name the event type in the field `type`"
    return DataError("D027", "the record has no `type`", fix)


def fix_of(wanted: DataType, *, may_be_null: bool) -> str:
    """What a value of this type looks like."""
    shown = f"use {_LOOKS[wanted.kind].format(wanted.precision - wanted.scale, wanted.scale)}"
    return f"{shown}, or null" if may_be_null else shown


_LOOKS = {
    Kind.BOOLEAN: "true or false",
    Kind.INT: "an integer of 32 bits",
    Kind.BIGINT: "an integer of 64 bits",
    Kind.DOUBLE: "a number",
    Kind.DECIMAL: "a number with at most {} digits before the point and {} after it",
    Kind.STRING: "text",
    Kind.TIMESTAMP: "ISO 8601 text such as 2026-01-31T10:00:00.000001Z, or a number of seconds since 1970",
    Kind.DATE: "ISO 8601 text such as 2026-01-31, or a date without a time",
    Kind.BINARY: "bytes, or text in base64",
    Kind.ARRAY: "a list of such values, such as [1, 2]",
    Kind.STRUCT: "an object with the declared fields",
}


def _separated(name: object) -> str | None:
    """The fix of a header whose cells are separated by another character."""
    found = next((each for each in (";", "\t", "|") if isinstance(name, str) and each in name), None)
    return f"separate the columns with commas, not {found!r}" if found else None


def unknown_column(name: object, known: Iterable[str], place: Place | str | None, types: Iterable[str] = ()) -> DataError:
    """`types`: the names of types, if the columns are the cells of a line: one of them shows that the line is no header."""
    every = list(known)
    fix = _separated(name) or did_you_mean(name, every)
    if isinstance(name, str) and name in types:
        fix = "name the columns in the first line: type, and the attributes"
    elif fix is None and name == "position":
        fix = "remove it, add it to a TYPE, or read the positions of an exported log from it: --position position"
    fix = fix or listed("remove it, or add it to a TYPE; known columns:", every)
    return DataError("D002", f"no declared type has an attribute {quoted(name)}", fix, place)


def oversized(what: str) -> DataError:
    problem = f"{what} is larger than {LIMITS.event_bytes_max:,} bytes"
    return DataError("D007", problem, "store the content elsewhere and publish its address")


def no_header(place: str) -> DataError:
    """The error of a CSV file without a header."""
    return DataError("D033", "the file has no header", "name the columns in its first line", place)


def no_bytes(place: str) -> DataError:
    """The error of an empty Parquet file."""
    problem = "the file is empty, which is not valid Parquet"
    return DataError("D012", problem, "wait until the writer has finished, or copy the file again", place)


def unwritable(what: str, error: OSError, place: str) -> DataError:
    problem = f"{what} is not writable: {error.strerror or error}"
    return DataError("D018", problem, "check the path and the free space", place)
