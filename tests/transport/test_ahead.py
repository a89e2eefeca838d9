"""Reading ahead: the same items, the same errors at the same place, and no thread left behind."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairlead.errors import DataError
from fairlead.model.events.columns import Columns
from fairlead.transport import Rejected, read_files
from fairlead.transport.threads.read_ahead import AHEAD, read_ahead
from tests.transport.samples import CATALOGUE, events, login, majors


def readers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "fairlead read ahead"]


class Source:
    """Counts what was asked of it, and remembers whether it was closed."""

    def __init__(self, items: int, error_at: int | None = None) -> None:
        self.items, self.error_at = items, error_at
        self.made, self.closed = 0, False

    def run(self) -> Generator[int, None, None]:
        try:
            for number in range(self.items):
                if number == self.error_at:
                    raise DataError("D012", "cut short", "copy it again")
                self.made += 1
                yield number
        finally:
            self.closed = True


def test_all_items_come_in_order_and_the_thread_ends() -> None:
    source = Source(1000)
    assert list(read_ahead(source.run())) == list(range(1000))
    assert source.closed
    assert readers() == []


def test_an_error_comes_after_the_items_before_it() -> None:
    source = Source(10, error_at=7)
    ahead = read_ahead(source.run())
    assert [next(ahead) for _ in range(7)] == list(range(7))
    with pytest.raises(DataError, match="D012"):
        next(ahead)
    assert source.closed
    assert readers() == []


def test_no_more_is_made_than_was_agreed() -> None:
    source = Source(1000)
    ahead = read_ahead(source.run())
    assert [next(ahead), next(ahead)] == [0, 1]
    ahead.close()
    assert source.made <= 2 + AHEAD
    assert source.closed
    assert readers() == []


def test_an_iterator_that_never_began_has_no_thread() -> None:
    source = Source(3)
    read_ahead(source.run()).close()
    assert source.made == 0
    assert readers() == []


def test_an_error_of_the_consumer_ends_the_thread() -> None:
    def consume() -> None:
        for item in read_ahead(Source(1000).run()):
            raise KeyError(item)

    with pytest.raises(KeyError):
        consume()
    assert readers() == []


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    """100 logins, of which number 77 has a type that nobody declared."""
    rows = [login(f"u{number}", number) for number in range(100)]
    rows[77]["type"] = "Logn"
    path = tmp_path / "in.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=40)
    return path


@pytest.mark.parametrize("batch_rows", [1, 7, 40, 100, None])
def test_a_bad_row_of_parquet_stops_after_the_batches_before_it(parquet: Path, batch_rows: int | None) -> None:
    found: list[Columns] = []
    with pytest.raises(DataError) as error:
        found.extend(read_files(parquet, CATALOGUE, batch_rows=batch_rows))
    assert (error.value.code, error.value.place) == ("D001", f"{parquet}, row 77")
    assert 77 - (batch_rows or 100) < sum(map(len, found)) <= 77
    assert readers() == []


@pytest.mark.parametrize("batch_rows", [7, None])
def test_rejects_are_handed_over_in_the_callers_thread(parquet: Path, batch_rows: int | None) -> None:
    threads: list[threading.Thread] = []
    refused: list[Rejected] = []

    def rejects(rejected: Rejected) -> None:
        threads.append(threading.current_thread())
        refused.append(rejected)

    found = events(read_files(parquet, CATALOGUE, batch_rows=batch_rows, on_bad="skip", rejects=rejects))
    assert majors(found) == [number for number in range(100) if number != 77]
    assert [each.line for each in refused] == [77]
    assert threads == [threading.current_thread()]


def test_closing_the_reader_ends_the_thread(parquet: Path) -> None:
    batches = read_files(parquet, CATALOGUE, batch_rows=1)
    assert len(next(batches)) == 1
    assert len(readers()) == 1
    batches.close()
    assert readers() == []
