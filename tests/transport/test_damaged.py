"""Damaged files of every format: a coded error or rejects, the process alive, nothing half written (tests/fuzz/files.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from fairlead.errors import DataError
from fairlead.language import compile_text
from fairlead.transport.events import read_events
from fairlead.transport.files.event_files import read_files
from tests.fuzz import files
from tests.root import ROOT

FOUND = (1223,)
"""Seeds that found something: a dictionary that lacks what rows refer to."""


def test_damage_anywhere_ends_no_process() -> None:
    """In a process of its own, which a crash would end."""
    root = ROOT
    command = [sys.executable, "-m", "tests.fuzz.files", "0", "250"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, f"seed {result.stdout.split()[-1:]}: {result.stderr[-1000:]}"


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_before(seed: int) -> None:
    files.case(seed)


@pytest.mark.parametrize("form", files.FORMS)
def test_whole_files_of_every_form_are_read(form: str, tmp_path: Path) -> None:
    path = tmp_path / files.FORMS[form][0]
    path.write_bytes(files.whole(form))
    assert sum(map(len, read_files(path, files.CATALOGUE))) == files.ROWS


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".csv.gz", ".cloudevents.jsonl"])
def test_a_file_of_another_format_under_a_wrong_name(ending: str, tmp_path: Path) -> None:
    for form, (name, _) in files.FORMS.items():
        if not name.endswith(ending) or (ending == ".jsonl" and form == "cloudevents"):
            path = tmp_path / f"x{ending}"
            path.write_bytes(files.whole(form))
            with pytest.raises(DataError, match="D0"):
                list(read_files(path, files.CATALOGUE))


def test_a_dictionary_that_lacks_what_rows_refer_to_is_refused() -> None:
    plan = compile_text("TYPE A (s STRING)")
    broken = pa.DictionaryArray.from_arrays(pa.array([0, 5], pa.int32()), pa.array(["x"]), safe=False)
    with pytest.raises(DataError, match="D032"):
        list(read_events(pa.table({"s": broken}), plan.catalogue))


def test_tables_and_blocks_with_damaged_memory_end_no_process() -> None:
    command = [sys.executable, "-m", "tests.fuzz.tables", "0", "600"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, f"seed {result.stdout.split()[-1:]}: {result.stderr[-1000:]}"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("middle", [10**8, -(10**8)])
def test_offsets_that_leave_the_memory_are_refused_with_their_column(kind: pa.DataType, middle: int) -> None:
    width = np.int64 if kind in (pa.large_string(), pa.large_binary()) else np.int32
    offsets = pa.py_buffer(np.array([0, middle, 3], width))
    forged = pa.Array.from_buffers(kind, 2, [None, offsets, pa.py_buffer(b"abc")])
    plan = compile_text("TYPE A (s STRING, b BINARY)")
    for name, other in (("s", "b"), ("b", "s")):
        with pytest.raises(DataError, match=f"D032 column '{name}'"):
            list(read_events(pa.table({name: forged, other: pa.nulls(2)}), plan.catalogue))


@pytest.mark.parametrize(("kind", "name"), [(pa.string_view(), "s"), (pa.binary_view(), "b")], ids=str)
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_views_of_nulls_lead_nowhere(kind: pa.DataType, name: str, offset: int) -> None:
    """Arrow validates the views of values only, and its cast follows all of them (tests/fuzz/tables.py, Random(15786))."""
    texts = [None, "a text that is longer than twelve", None, "short", None, "another text that is longer"]
    column = pa.array(texts if name == "s" else [each and each.encode() for each in texts], kind)
    validity, views, *more = column.buffers()
    forged = np.frombuffer(views, dtype=np.uint32).reshape(-1, 4).copy()
    forged[[0, 2, 4]] = (10**8, 0, 7, 2**31 - 1)
    parts = [validity, pa.py_buffer(forged), *more]
    made = pa.Array.from_buffers(kind, len(texts), parts).slice(offset)
    plan = compile_text("TYPE A (s STRING, b BINARY)")
    table = pa.table({name: made, "b" if name == "s" else "s": pa.nulls(len(made))})
    (found,) = read_events(table, plan.catalogue)
    assert found.tables["A"].column(name).to_pylist() == column.slice(offset).to_pylist()
