"""Values at the edges of every kind, through every way in: a value that is exactly the one given, or a coded error.

The oracle knows nothing of the readers: a number that was let in is the number that was given, by exact arithmetic. That all
ways agree (whole columns at once, record by record; dicts, JSON Lines, CloudEvents, CSV, Arrow, Parquet, pandas, polars) is
compared value by value.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fairlead.errors import DataError
from fairlead.language import compile_text
from fairlead.model.events.types import Catalogue, Kind
from fairlead.transport.admission.problems import Rejected
from fairlead.transport.events import read_events
from fairlead.transport.files.event_files import read_files

PRECISIONS = (1, 2, 9, 10, 18, 19, 37, 38)
KINDS = ("INT", "BIGINT", "DOUBLE", "DECIMAL", "TIMESTAMP", "BOOLEAN", "STRING", "BINARY")
DATES = 0.1
"""Of the cases; drawn apart, so that seeds draw the rest as before there were dates."""
POWERS = (0, 1, 9, 10, 18, 19, 31, 32, 37, 38, 39, 52, 53, 62, 63, 64, 76, 127, 128, 255, 256, 1023, 1024)
MOMENTS = (
    datetime(1, 1, 1),  # noqa: DTZ001 — without a zone it is UTC
    datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    datetime.min.replace(tzinfo=timezone(timedelta(hours=23, minutes=59))),
    datetime.min.replace(tzinfo=timezone(-timedelta(hours=23, minutes=59))),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=23, minutes=59))),
    datetime.max.replace(tzinfo=timezone(-timedelta(hours=23, minutes=59))),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
)


class Fails:
    """An object whose every answer is an exception."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


def case(seed: int) -> None:
    draw = random.Random(seed)
    kind, precision = draw.choice(KINDS), draw.choice(PRECISIONS)
    scale = draw.choice((0, 1, precision // 2, precision - 1, precision)) if precision > 1 else draw.choice((0, 1))
    kind = "DATE" if random.Random(f"DATE {seed}").random() < DATES else kind
    declared = f"DECIMAL({precision},{scale})" if kind == "DECIMAL" else kind
    catalogue = compile_text(f"TYPE A (v {declared})").catalogue
    about = f"seed {seed}: {declared}"
    objects = [_object(draw) for _ in range(draw.randint(1, 5))]
    texts = [_text(draw) for _ in range(draw.randint(1, 5))]
    if kind == "DECIMAL":
        objects.append(Decimal(_nearly(precision, scale, draw)))
        texts[0] = _nearly(precision, scale, draw)
    _check_dicts(objects, catalogue, f"{about} as dicts")
    _check_dicts(
        [{"v": {"deep": [objects]}}, objects, 10**5000, None, {Fails(): 1}], catalogue, f"{about} as what is no record"
    )
    with tempfile.TemporaryDirectory() as folder:
        _check_files(texts, kind, precision, scale, catalogue, Path(folder), about)
        array = _array(draw)
        _check_table(array, catalogue, Path(folder), f"{about} as {array.type}")
        _check_frames(objects, array, catalogue, about)


def _whole(draw: random.Random) -> int:
    base = draw.choice((2, 10)) ** draw.choice(POWERS)
    return draw.choice((1, -1)) * (base + draw.choice((-1, 0, 1)))


def _scaled(whole: int, scale: int) -> Decimal:
    return Decimal(f"{whole}e-{scale}")


def _nearly(precision: int, scale: int, draw: random.Random) -> str:
    """A number with about as many digits as a DECIMAL has, before and after the point."""
    digit = draw.choice("0159")
    before, after = (max(0, each + draw.choice((-1, 0, 0, 1, 2))) for each in (precision - scale, scale))
    return f"{draw.choice(('', '-'))}{'9' * before or '0'}.{'9' * after + digit}"


def _text(draw: random.Random) -> str:
    """A number (or not) as text, as a JSON value or a CSV cell could have it."""
    digits = draw.choice((1, 2, 9, 10, 11, 18, 19, 20, 27, 28, 29, 37, 38, 39, 40, 77, 400, 4300, 4301, 20_000))
    run = draw.choice("0199") * digits
    return draw.choice(
        (
            lambda: str(_whole(draw)),
            lambda: f"{_whole(draw)}.{run}",
            lambda: f"{'-' * draw.randrange(2)}{run[:28]}.{'9' * draw.randrange(1, 40)}",
            lambda: f"0.{run}",
            lambda: f"{draw.choice(('', '-'))}{run}",
            lambda: f"{run[:40]}e{draw.choice((-1, 1)) * draw.choice((0, 1, 30, 38, 308, 309, 324, 400, 10**6, 999_999_999))}",
            lambda: f"1e{draw.choice(('', '-'))}{'9' * draw.choice((5, 18, 19, 30))}",
            lambda: draw.choice(
                ("-0", "-0.0", "0e9", "-0e-99999", "1E5", "+1", ".5", "5.", "00", "1_0", " 1 ", "0x1", "1e", "٣")
            ),
            lambda: draw.choice(("NaN", "sNaN", "nan", "Infinity", "-Infinity", "inf", "1e400", "5e-324", "2.5e-324")),
            lambda: draw.choice(("true", "false", "null", "True", '"x"', "[]", "{}", '"1"', '""', "")),
            lambda: draw.choice(MOMENTS).isoformat(),
            lambda: draw.choice(("0000-01-01", "9999-12-31T23:59:60Z", "10000-01-01", "2024-02-30", "-292277-01-01T00:00:00Z")),
        )
    )()


def _object(draw: random.Random) -> Any:
    whole = _whole(draw)
    text = _text(draw)
    return draw.choice(
        (
            lambda: whole,
            lambda: 10 ** draw.choice((400, 4300, 5000, 100_000)) * draw.choice((1, -1)),
            lambda: _scaled(whole, draw.randrange(80)),
            lambda: Decimal(
                f"{draw.choice(('', '-'))}{'9' * draw.choice((27, 28, 38, 39, 5000))}.{'9' * draw.randrange(1, 45)}"
            ),
            lambda: Decimal(draw.choice(("NaN", "sNaN", "-sNaN123", "Infinity", "-0", "0E+999999", "1E+999999", "1E-999999"))),
            lambda: draw.choice((0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan, 0.1, 1e22)),
            lambda: text,
            lambda: draw.choice((True, False, None)),
            lambda: draw.choice(MOMENTS),
            lambda: draw.choice(
                (date.min, timedelta.max, b"", b"\xff", bytearray(b"x"), memoryview(b"abc")[::2], "\ud800", "é")
            ),
            lambda: draw.choice((np.int8(-1), np.uint64(2**64 - 1), np.float32(0.1), np.float16(65504), np.float64("nan"))),
            lambda: draw.choice(
                (np.bool_(True), np.datetime64("NaT"), np.datetime64(2**62, "us"), np.array([1, 2]), np.longdouble(1))
            ),
            lambda: draw.choice(([], {}, object(), Fails(), [10**5000], Fraction(1, 3), 1j, int, ...)),
        )
    )()


def _read(make: Callable[..., Any], about: str) -> tuple[list[Any] | None, list[Rejected]]:
    """What a way in gives with `skip`, of the values and the rejects; None where the whole input is refused. `stop` gives the
    same, up to the first reject. Nothing but a DataError with a code escapes."""
    refused: list[Rejected] = []
    found, problem = _tried(lambda: make(on_bad="skip", rejects=refused.append), about)
    stopped, first = _tried(lambda: make(on_bad="stop"), about)
    assert (first is not None) == (problem is not None or bool(refused)), f"{about}: {first} against {problem}, {refused}"
    if first is None:
        assert list(map(_exact, stopped or ())) == list(map(_exact, found or ())), about
    elif refused:
        assert refused[0].code == first.code, about
    for each in refused:
        json.dumps(each.to_json())
        assert len(each.problem) < 400, f"{about}: a problem of {len(each.problem)} characters"
    return found, refused


def _tried(make: Callable[[], Any], about: str) -> tuple[list[Any] | None, DataError | None]:
    try:
        return [each for columns in make() for each in _values(columns)], None
    except DataError as error:
        problem = error
    except Exception as error:
        raise AssertionError(f"{about}: {type(error).__name__} escapes: {str(error)[:200]}") from error
    assert problem.code, about
    assert problem.place is not None, f"{about}: {problem}"
    assert repr(problem), about
    return None, problem


def _values(columns: Any) -> list[Any]:
    for table in columns.tables.values():
        table.validate(full=True)
    return [row for table in columns.tables.values() for row in table.column(0).to_pylist()]


def _exact(value: Any) -> Any:
    """Values that are the same to the last bit are equal, others not."""
    if isinstance(value, float):
        return value.hex()
    return str(value) if isinstance(value, Decimal) else value


def _same_number(given: Any, found: Any) -> bool:
    if isinstance(found, float):
        if math.isnan(found):
            return bool(given != given)
        if isinstance(given, Decimal | int | float | np.floating | np.integer):
            try:
                return float(given) == found
            except OverflowError:
                return False
        return True
    if isinstance(found, Decimal | int) and not isinstance(found, bool) and isinstance(given, Decimal | int | np.integer):
        return Fraction(int(given) if isinstance(given, np.integer) else given) == Fraction(found)
    return True


def _check_dicts(objects: Sequence[Any], catalogue: Catalogue, about: str) -> None:
    records = [each if about.endswith("record") else {"type": "A", "v": each} for each in objects]
    together, refused = _read(lambda **how: read_events(list(records), catalogue, **how), about)
    assert together is not None, about
    alone = []
    for record in records:
        one, _ = _read(lambda record=record, **how: read_events([record, record], catalogue, **how), about)
        assert one is not None, about
        assert len(one) in (0, 2), about
        alone += one[:1]
        if one and isinstance(record, dict) and about.endswith("dicts"):
            assert _same_number(record["v"], one[0]), f"{about}: {record['v']!r} became {one[0]!r}"
    assert list(map(_exact, alone)) == list(map(_exact, together)), f"{about}: {objects!r}"
    assert len(together) + len(refused) == len(records), about


def _check_files(
    texts: Sequence[str], kind: str, precision: int, scale: int, catalogue: Catalogue, folder: Path, about: str
) -> None:
    """A number in a file is the number that its digits say, in every format."""
    for suffix, lines in (
        (".jsonl", [f'{{"type": "A", "v": {each}}}' for each in texts]),
        (".ndjson", [f'{{"type": "A", "v": {json.dumps(each)}}}' for each in texts]),
        (
            ".cloudevents.jsonl",
            [f'{{"specversion": "1.0", "id": "1", "source": "s", "type": "A", "data": {{"v": {each}}}}}' for each in texts],
        ),
        (".csv", ["type,v", *(f"A,{each}" if '"' not in each else f"A,{json.dumps(each)}" for each in texts)]),
    ):
        path = folder / f"numbers{suffix}"
        path.write_text("\n".join(lines) + "\n")
        found, refused = _read(
            lambda path=path, **how: read_files(path, catalogue, allow_nan=True, **how), f"{about} in {suffix}"
        )
        assert found is not None, f"{about} in {suffix}: {texts!r}"
        assert len(found) + len(refused) == len(texts), f"{about} in {suffix}: {texts!r}"
        if len(texts) == 1 and found and kind in ("INT", "BIGINT", "DECIMAL") and suffix != ".ndjson" and found[0] is not None:
            assert Fraction(texts[0].strip()) == Fraction(found[0]), f"{about} in {suffix}: {texts[0][:99]} became {found[0]}"
        if len(texts) == 1 and not found and kind == "DECIMAL" and suffix in (".csv", ".ndjson"):
            assert not _fits(texts[0], precision, scale), f"{about} in {suffix}: {texts[0][:99]} is refused: {refused}"


def _fits(text: str, precision: int, scale: int) -> bool:
    try:
        if len(text) > 4300 or abs(Decimal(text).adjusted()) > 5000 or "_" in text or text.strip() != text:
            return False
        number = Fraction(Decimal(text)) * 10**scale
    except (ArithmeticError, ValueError):
        return False
    return number.denominator == 1 and abs(number) < 10**precision


def _array(draw: random.Random) -> pa.Array:
    """A column of any type that Arrow has for numbers and times, at its edges."""
    width = draw.choice((8, 16, 32, 64))
    counted = {"s": pa.int64(), "ms": pa.int64(), "us": pa.int64(), "ns": pa.int64()}
    unit = draw.choice(list(counted))
    ends = [-(2 ** (width - 1)), 2 ** (width - 1) - 1, 0, -1, 1]
    wide = [
        -(2**63),
        2**63 - 1,
        0,
        -1,
        253_402_300_799,
        253_402_300_800,
        -62_135_596_800,
        -62_135_596_801,
        253_402_300_799_999_999,
    ]
    precision = draw.choice((1, 9, 18, 19, 38, 39, 76))
    scale = draw.choice((0, 1, precision // 2, precision))
    digits = [_scaled(each, scale) for each in ((10**precision - 1), -(10**precision - 1), 0, 1)]
    made: Callable[[], pa.Array] = draw.choice(
        (
            lambda: pa.array(ends, getattr(pa, f"int{width}")()),
            lambda: pa.array([0, 2**width - 1], getattr(pa, f"uint{width}")()),
            lambda: pa.array(
                [0.0, -0.0, math.inf, math.nan, 0.1, 65504.0], draw.choice((pa.float16(), pa.float32(), pa.float64()))
            ),
            lambda: pa.array([5e-324, 1.7976931348623157e308, 253_402_300_799.9, 1e-7]),
            lambda: pa.array(digits, pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)),
            lambda: pa.array(wide, pa.int64()).view(pa.timestamp(unit)),
            lambda: pa.array(wide, pa.int64()).view(pa.timestamp(unit, draw.choice(("UTC", "Europe/Vienna", "+14:00")))),
            lambda: pa.array([0, 2**31 - 1, -(2**31)], pa.int32()).view(pa.date32()),
            lambda: pa.array([0, 2**62, -(2**62)], pa.int64()).view(pa.duration(unit)),
            lambda: pa.array([_text(draw) for _ in range(4)], draw.choice((pa.string(), pa.large_string(), pa.string_view()))),
            lambda: pa.array([_text(draw) for _ in range(4)]).dictionary_encode(),
            lambda: pa.array([b"\xff", b"", b"x"], draw.choice((pa.binary(), pa.large_binary()))),
            lambda: pa.array([True, False]),
            lambda: pa.nulls(3),
            lambda: pa.array([[1], None, []]),
            lambda: pa.array([{"a": 1}, None]),
        )
    )
    array = made()
    return (
        pa.concat_arrays([array, pa.nulls(1, array.type)]) if draw.random() < 0.3 and array.type != pa.string_view() else array
    )


def _check_table(array: pa.Array, catalogue: Catalogue, folder: Path, about: str) -> None:
    table = pa.table({"v": array})
    together, refused = _read(lambda **how: read_events(table, catalogue, **how), about)
    assert together is not None, about
    assert len(together) + len(refused) == len(array), about
    alone = []
    for at in range(len(array)):
        one, _ = _read(lambda at=at, **how: read_events(table.slice(at, 1), catalogue, **how), about)
        assert one is not None, about
        alone += one
        if (one and pa.types.is_decimal(array.type)) or pa.types.is_integer(array.type):
            kind = catalogue["A"].attributes[0].type.kind
            given = array[at].as_py()
            if one and given is not None and kind in (Kind.INT, Kind.BIGINT, Kind.DECIMAL):
                assert Fraction(one[0]) == Fraction(given), f"{about}: {given} became {one[0]}"
    assert list(map(_exact, alone)) == list(map(_exact, together)), f"{about}: {array}"
    path = folder / "table.parquet"
    try:
        pq.write_table(table, path)
        stored = pq.read_table(path)
    except (pa.ArrowException, OverflowError, ValueError):
        return  # Parquet has no such type, or not so many digits
    if stored.schema.equals(table.schema):
        found, _ = _read(lambda **how: read_files(path, catalogue, allow_nan=True, **how), f"{about} in Parquet")
        assert list(map(_exact, found or ())) == list(map(_exact, together)), f"{about} in Parquet"


def _check_frames(objects: Sequence[Any], array: pa.Array, catalogue: Catalogue, about: str) -> None:
    """Frames are made of what pandas and polars take; polars panics on the rest."""
    import pandas as pd
    import polars as pl

    plain = [
        each for each in objects if isinstance(each, int | float | str | datetime) and not isinstance(each, bool | np.generic)
    ]
    makers: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("pandas, as objects", lambda: pd.DataFrame({"v": pd.Series(list(objects), dtype=object)})),
        ("pandas", lambda: pd.DataFrame({"v": list(objects)})),
        ("pandas of Arrow", lambda: pa.table({"v": array}).to_pandas()),
        ("polars", lambda: pl.DataFrame({"v": [each for each in plain if type(each) is type(plain[0])]}, strict=False)),
    )
    if not isinstance(array.type, pa.Decimal256Type):
        makers = (*makers, ("polars of Arrow", lambda: pl.from_arrow(pa.table({"v": array}))))
    for name, make in makers:
        try:
            frame = make()
        except Exception:  # the library's own word on these values
            continue
        _read(lambda frame=frame, **how: read_events(frame, catalogue, **how), f"{about} in {name}")
