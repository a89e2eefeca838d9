"""JSON Lines: each line is a JSON object and becomes one record. Blank lines are ignored.

Takes: lines. Gives: records, each with its line, or its DataError. Never: interprets types or values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from json import JSONDecodeError, JSONDecoder
from typing import Any

from fairlead.errors import DataError, Place
from fairlead.model.events.nested_values import floats_in
from fairlead.model.events.types import DataType, Kind
from fairlead.transport.admission.problems import quoted
from fairlead.transport.admission.record_check import Shapes
from fairlead.transport.files.documents import malformed
from fairlead.transport.files.text_lines import Line, Parsed, decoded

EXCERPT_LENGTH_MAX = 100
NOT_EXACT = DataType(Kind.DOUBLE)
"""The type of numbers inside an attribute that has no DECIMAL."""
ENDS = ("\n", "\r\n", "")


class _TwiceNamed(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        raise _TwiceNamed(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return made


def json_records(lines: Iterable[Line], shapes: Shapes, file: str) -> Iterator[Parsed]:
    """The records of a JSON Lines file. If a type has a DECIMAL, numbers with a fraction are read exactly."""
    decoder, first = decoder_for(shapes), True
    for number, content, ended, error in lines:
        text = error if error is not None else decoded(content, ended)
        if isinstance(text, DataError):
            shown = content.decode("utf-8", "replace").rstrip("\r\n")
            yield number, shown, text
        elif text and not text.isspace():
            record = parsed(decoder, text)
            if first and type(record) is not dict and text.lstrip()[:1] == "[":
                record = _array(file)
            elif isinstance(record, JSONDecodeError):
                record = _invalid(text, record, Place(line=number, file=file)) if ended else cut_short()
            elif shapes.needs_decimal:
                record = floats(record, shapes)
            first = False
            yield number, text.rstrip("\r\n"), record


def decoder_for(shapes: Shapes) -> JSONDecoder:
    return JSONDecoder(object_pairs_hook=_object, parse_float=Decimal if shapes.needs_decimal else None)


def parsed(decoder: JSONDecoder, text: str) -> Any:
    """The value of a line, or its error."""
    try:
        if text[:1] == "{":  # nearly always; `decode` would look for white space first
            record, end = decoder.raw_decode(text)
            if text[end:] in ENDS:
                return record
        return decoder.decode(text)
    except _TwiceNamed as error:
        return DataError("D015", f"the key {quoted(error.key)} occurs twice in one object", "name every key once")
    except JSONDecodeError as error:
        return error
    except (ValueError, ArithmeticError, RecursionError) as error:  # numbers of absurd length; thousands of brackets
        return DataError("D011", f"not valid JSON: {malformed(error)}", "write one JSON object per line")


def _invalid(text: str, error: JSONDecodeError, place: Place) -> DataError:
    column = error.colno
    fits = column <= EXCERPT_LENGTH_MAX
    excerpt = text.rstrip("\r\n")[:EXCERPT_LENGTH_MAX] if fits else None
    where = Place(line=place.line, column=column, file=place.file)
    fix = "write one JSON object per line"
    if text.strip() == "{":
        fix += f": jq -c . '{place.file}' > events.jsonl"
    return DataError("D011", f"not valid JSON: {error.msg}", fix, where, excerpt)


def _array(file: str) -> DataError:
    fix = f"write one object per line: {'zcat' if file.endswith('.gz') else 'cat'} '{file}' | jq -c '.[]' > events.jsonl"
    return DataError("D009", "the file is a JSON array; expected one object per line", fix)


def cut_short() -> DataError:
    problem = "the file ends in the middle of a line: it has no newline and is not valid JSON"
    return DataError("D012", problem, "wait until the writer has finished, or copy the file again")


def floats(record: Any, shapes: Shapes) -> Any:
    """Decimals only for DECIMAL attributes; every other number with a fraction is a float, as usual."""
    if not isinstance(record, dict):
        return record
    name = record.get("type", shapes.default)
    shape = shapes.by_name.get(name) if isinstance(name, str) else None
    exact = shape.decimals if shape is not None else {}
    for key, value in record.items():
        if type(value) is Decimal and key not in exact:
            record[key] = float(value)
        elif type(value) in (list, dict):
            record[key] = floats_in(value, exact.get(key, NOT_EXACT), _float)
    return record


def _float(value: Any) -> Any:
    return float(value) if type(value) is Decimal else value
