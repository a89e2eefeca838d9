"""CSV: a header, then one record per row. An empty cell is null; a quoted empty cell ("") is the empty text.

Why not a library: pyarrow's reader does not report the line of a row, and the standard library's (before Python 3.12) does not
distinguish an empty cell from a quoted empty one. Cells are separated by commas and quoted as RFC 4180 says.

Takes: lines. Gives: records of text cells, each with its line, or its DataError. Never: interprets values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fairlead.errors import DataError, Place
from fairlead.model.limits import LIMITS
from fairlead.transport.admission.positions import no_column
from fairlead.transport.admission.problems import no_header, no_nested_cells, oversized, quoted, unknown_column
from fairlead.transport.admission.record_check import Shapes
from fairlead.transport.files.text_lines import Line, Parsed, decoded

Cell = str | None
_QUOTED = re.compile(r'([^"]*+(?:""[^"]*+)*+)("?)')


def csv_records(lines: Iterable[Line], shapes: Shapes, file: str) -> Iterator[Parsed]:
    """The records of a CSV file. Raises if the header does not fit the types, since no row could be read then."""
    rows = _rows(lines)
    header = next(rows, None)
    if header is None:
        raise no_header(file)
    names = _header(header, shapes, file)
    type_at = names.index("type") if "type" in names else None
    nothing: frozenset[str] = frozenset()
    for number, text, cells, ended in rows:
        if isinstance(cells, DataError):
            yield number, text, cells
            continue
        if len(cells) != len(names):
            yield number, text, _wrong_width(len(cells), len(names), ended)
            continue
        name = shapes.default if type_at is None else cells[type_at]
        shape = shapes.by_name.get(name or "")
        keep = shape.allowed if shape is not None else nothing
        record = {key: cell for key, cell in zip(names, cells, strict=True) if cell is not None or key in keep}
        yield number, text, record


def _header(row: tuple[int, str, list[Cell] | DataError, bool], shapes: Shapes, file: str) -> list[str]:
    number, _, cells, _ = row
    place = Place(line=number, file=file)
    if isinstance(cells, DataError):
        raise DataError(cells.code, f"the header is not valid: {cells.problem}", cells.fix, place)
    names = [cell or "" for cell in cells]
    if shapes.position_field is not None and shapes.position_field not in names:
        raise no_column(shapes.position_field, names, place)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError("D015", f"the column {quoted(name)} occurs twice", "name every column once", place)
        if name not in shapes.attribute_names and name not in shapes.special:
            raise unknown_column(name, shapes.columns_known, place, shapes.names)
        if name in shapes.nested:
            raise no_nested_cells(name, shapes.nested[name], place)
        seen.add(name)
    if "type" not in names and shapes.default is None:
        raise DataError("D014", "the header has no `type` column", "name each row's event type in a column `type`", place)
    return names


def _wrong_width(got: int, wanted: int, ended: bool) -> DataError:
    problem = f"the row has {got} cells, the header {wanted}"
    if got < wanted and not ended:
        return DataError(
            "D012",
            f"the file ends in the middle of a row: {problem}",
            "wait until the writer has finished, or copy the file again",
        )
    return DataError("D017", problem, "quote cells that contain commas, quotes or newlines")


def _rows(lines: Iterable[Line]) -> Iterator[tuple[int, str, list[Cell] | DataError, bool]]:
    """Rows with the line they begin on. A quoted cell can continue over lines, up to the size of the largest event."""
    first, parts, size, row = 0, [], 0, Row()  # type: int, list[str], int, Row
    ended = True
    for number, content, ended, error in lines:
        text = error if error is not None else decoded(content, ended)
        if isinstance(text, DataError):
            shown = "".join(parts) + content.decode("utf-8", "replace").rstrip("\r\n")
            yield (first if parts else number), shown, text, ended
            parts, size, row = [], 0, Row()
            continue
        if not parts and '"' not in text:
            if text and not text.isspace():
                bare = text.rstrip("\r\n")
                yield number, bare, [cell or None for cell in bare.split(",")], ended
            continue
        first = first if parts else number
        parts.append(text)
        size += len(content)
        try:
            done = row.feed(text)
        except ValueError as problem:
            malformed = DataError("D017", str(problem), "double the quotes inside a quoted cell")
            yield first, "".join(parts).rstrip("\r\n"), malformed, ended
            parts, size, row = [], 0, Row()
            continue
        if done:
            yield first, "".join(parts).rstrip("\r\n"), row.cells, ended
            parts, size, row = [], 0, Row()
        elif size > LIMITS.event_bytes_max:
            yield first, parts[0].rstrip("\r\n"), oversized("the row, whose quoted cell never ends,"), ended
            parts, size, row = [], 0, Row()
    if parts:
        problem_at_end = "the file ends inside a quoted cell"
        yield first, "".join(parts), DataError("D012", problem_at_end, "close the quote, or copy the file again"), ended


class Row:
    """Splits one row, a line at a time, so that a cell over many lines costs no more than its length."""

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self._open: list[str] | None = None

    def feed(self, line: str) -> bool:
        """True when the row is complete; False when a quoted cell continues on the next line. Raises ValueError if it is not
        CSV."""
        at = 0
        end = len(line.rstrip("\r\n"))
        while True:
            if self._open is None and line.startswith('"', at):
                self._open = []
                at += 1
            if self._open is not None:
                found = _QUOTED.match(line, at)
                assert found is not None  # the pattern matches the empty text
                self._open.append(found[1])
                if not found[2]:
                    return False
                self.cells.append("".join(self._open).replace('""', '"'))
                self._open = None
                at = found.end()
            else:
                comma = line.find(",", at, end)
                stop = end if comma < 0 else comma
                self.cells.append(line[at:stop] or None)
                at = stop
            if at >= end:
                return True
            if line[at] != ",":
                raise ValueError(f"there is text after the closing quote of cell {len(self.cells)}")
            at += 1
