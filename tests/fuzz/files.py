"""Files of every format, damaged anywhere: a coded error or rejects, the process alive, and nothing half written.

A crash of the process is a finding too: run many seeds in a process of their own (`python -m tests.fuzz.files FIRST LAST`), the
last one printed is to blame.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fairlead.errors import DataError
from fairlead.language import compile_text
from fairlead.transport.admission.problems import Rejected
from fairlead.transport.files.event_files import read_files

RULES = """\
TYPE A (i INT, l BIGINT, d DOUBLE, m DECIMAL(38,10), s STRING, b BINARY, o BOOLEAN, at TIMESTAMP) TIME at
TYPE B (i INT, s STRING, at TIMESTAMP) TIME at
SUBSCRIPTION S MATCH A a AND B b WHERE a.i = b.i EMIT X (s = a.s, m = a.m)
"""
CATALOGUE = compile_text(RULES).catalogue
ROWS = 40
EDGE_BYTES = (0, 1, 2, 0x0A, 0x22, 0x2C, 0x5C, 0x7B, 0x7D, 0x7F, 0x80, 0xC0, 0xE2, 0xED, 0xF4, 0xFE, 0xFF)


def rows() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for at in range(ROWS):
        time = (datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=at)).isoformat()
        text = None if at % 7 == 0 else f'é "{at % 5}", 😀'
        if at % 2:
            made.append({"type": "B", "i": at, "s": text, "at": time})
        else:
            rest = {"l": at * 10**15, "d": at / 3, "m": f"{at}.5", "s": text, "b": "AAE=", "o": at % 4 == 0, "at": time}
            made.append({"type": "A", "i": at, **rest})
    return made


def _json() -> bytes:
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in rows()).encode()


def _cloudevents() -> bytes:
    lines = []
    for number, each in enumerate(rows()):
        data = {key: value for key, value in each.items() if key not in ("type", "at")}
        event = {"specversion": "1.0", "id": str(number), "source": "s", "type": each["type"], "time": each["at"], "data": data}
        lines.append(json.dumps(event, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def _csv() -> bytes:
    names = ["type", "i", "l", "d", "m", "s", "b", "o", "at"]
    quoted = [
        ["" if (cell := each.get(name)) is None else f'"{str(cell).replace(chr(34), chr(34) * 2)}"' for name in names]
        for each in rows()
    ]
    return "\n".join([",".join(names), *(",".join(each) for each in quoted), ""]).encode()


def _parquet(**options: Any) -> bytes:
    fields = [
        ("type", pa.string()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("m", pa.string()),
        ("s", pa.string()),
    ]
    schema = pa.schema([*fields, ("b", pa.string()), ("o", pa.bool_()), ("at", pa.string())])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows(), schema), sink, **options)
    return bytes(sink.getvalue())


FORMS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "json": ("x.jsonl", _json),
    "json in gzip": ("x.jsonl.gz", lambda: gzip.compress(_json(), mtime=0)),
    "cloudevents": ("x.cloudevents.jsonl", _cloudevents),
    "csv": ("x.csv", _csv),
    "csv in gzip": ("x.csv.gz", lambda: gzip.compress(_csv(), mtime=0)),
    "parquet": ("x.parquet", _parquet),
    "parquet, plain": ("x.parquet", lambda: _parquet(use_dictionary=False, compression="none", row_group_size=7)),
    "parquet, checked": ("x.parquet", lambda: _parquet(compression="zstd", write_page_checksum=True, write_page_index=True)),
    "parquet, old": ("x.parquet", lambda: _parquet(version="1.0", data_page_version="2.0", compression="gzip")),
}


@cache
def whole(form: str) -> bytes:
    return FORMS[form][1]()


def damaged(seed: int) -> tuple[str, str, bytes]:
    """A form, the name of its file, and its content with some damage."""
    draw = random.Random(seed)
    form = draw.choice(list(FORMS))
    content = bytearray(whole(form))
    for _ in range(draw.choice((1, 1, 1, 2, 5, 30))):
        at = draw.randrange(len(content) + 1)
        if form.startswith("parquet") and draw.random() < 0.6:
            at = max(0, len(content) - draw.randrange(1, 1500))  # the description at the end decides most
        size = draw.choice((1, 1, 1, 2, 4, 8, 100))
        match draw.choice(("byte", "byte", "bit", "cut", "drop", "insert", "repeat", "mix")):
            case "byte":
                content[at : at + 1] = bytes([draw.choice((draw.randrange(256), draw.choice(EDGE_BYTES)))])
            case "bit" if at < len(content):
                content[at] ^= 1 << draw.randrange(8)
            case "cut":
                del content[at:]
            case "drop":
                del content[at : at + size]
            case "insert":
                content[at:at] = draw.choice((draw.randbytes(size), bytes([draw.choice(EDGE_BYTES)]) * size))
            case "repeat":
                content[at:at] = content[at : at + size * 50]
            case "mix":
                other = whole(draw.choice(list(FORMS)))
                content[at:] = other[draw.randrange(len(other)) :] if draw.random() < 0.5 else other
    return form, FORMS[form][0], bytes(content)


def case(seed: int) -> None:
    form, name, content = damaged(seed)
    about = f"seed {seed}: {form} of {len(content)} bytes"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        refused: list[Rejected] = []
        skipping, problem = _read(path, about, on_bad="skip", rejects=refused.append)
        stopping, first = _read(path, about, on_bad="stop")
        for each in refused:
            json.dumps(each.to_json())
            assert each.code, about
        assert (first is None) == (problem is None and not refused), f"{about}: {first} against {problem} and {refused[:1]}"
        if first is None:
            assert stopping == skipping, about
        if seed % 10 == 0:
            _check_command(path, Path(folder), about)


def _read(path: Path, about: str, **how: Any) -> tuple[int, DataError | None]:
    found = 0
    try:
        for columns in read_files(path, CATALOGUE, allow_nan=True, **how):
            for table in columns.tables.values():
                table.validate(full=True)
                table.to_pylist()
            found += len(columns)
    except DataError as error:
        problem = error
    except Exception as error:
        raise AssertionError(f"{about}: {type(error).__name__} escapes: {str(error)[:200]}") from error
    else:
        return found, None
    assert problem.code, about
    assert problem.place is not None, f"{about}: {problem}"
    return found, problem


def _check_command(path: Path, folder: Path, about: str) -> None:
    """A run ends with 0 and a whole output, or says why not and leaves none."""
    from tests.cli.shop import fairlead

    rules = folder / "rules.fl"
    rules.write_text(RULES)
    for mode in ("stop", "skip"):
        out = folder / f"{mode}.jsonl"
        result = fairlead("run", rules, "--events", path, "--out", out, "--on-bad", mode, "--quiet")
        assert result.exit_code in (0, 1), f"{about}: exit code {result.exit_code}: {result.output[-500:]}"
        assert "Traceback" not in result.output, f"{about}: {result.output[-500:]}"
        assert out.exists() == (result.exit_code == 0), f"{about}: {mode}, {result.exit_code}, {result.output[-300:]}"
        left = {each.name for each in folder.iterdir()} - {path.name, rules.name, "stop.jsonl", "skip.jsonl"}
        assert left <= {"skip.jsonl.rejects.jsonl", "skip.rejects.jsonl"}, f"{about}: {left} is left"
        for line in out.read_text().splitlines() if out.exists() else ():
            json.loads(line)


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        print(number, flush=True)
        case(number)
