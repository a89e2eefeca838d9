"""A soak notices what is missing, doubled, different, or grows; and a short one holds.

`make soak MINUTES=30` for a long one.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fairlead.errors import InvariantError
from fairlead.testing.live.actors.processes import Worker
from fairlead.testing.live.soak.soak import Soak, differences
from fairlead.testing.live.soak.subscriber import Sums
from fairlead.testing.live.soak.usage import growth


def subscriber(folder: Path, name: str, numbers: list[int], receipt: str = "same") -> Worker:
    """One that has received these in two batches, and was killed between them."""
    worker, path = Worker(name, folder, "soak.subscriber", "acked", []), folder / f"{name}.jsonl"
    half = len(numbers) // 2
    for first, some in ((1, numbers[:half]), (half + 1, numbers[half:])):
        last, sums = Sums(path).add(first, np.array(some, dtype=np.int64))
        with path.open("a") as file:
            file.write(json.dumps({"last": last, "sums": sums, "at": 0}) + "\n")
    with path.open("a") as file:
        file.write(json.dumps({"receipts": {"g": receipt}, "at": 0}) + "\n")
    return worker


RIGHT = [3, 0, 1, 2, 4, 6, 5]


@pytest.mark.parametrize(
    ("numbers", "receipt", "wrong"),
    [
        (RIGHT, "same", 0),
        (RIGHT, "another", 1),
        (RIGHT[:-1], "same", 1),
        ([3, 0, 1, 2, 4, 6, 6], "same", 1),
        ([2, 2, 2, 3, 4, 4, 4], "same", 1),
        ([*RIGHT, 7], "same", 1),
        ([], "same", 1),
    ],
)
def test_what_is_missing_doubled_or_different_is_noticed(tmp_path: Path, numbers: list[int], receipt: str, wrong: int) -> None:
    both = [subscriber(tmp_path, "one", RIGHT), subscriber(tmp_path, "other", numbers, receipt)]
    assert len(list(differences(both, 7))) == wrong


def test_a_batch_after_a_gap_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvariantError):
        Sums(tmp_path / "none").add(2, np.array([5]))


@pytest.mark.parametrize(
    ("series", "flat"),
    [
        ([100.0] * 30, True),
        ([*range(10), *([200.0] * 20)], True),
        ([100.0 + 10 * at for at in range(30)], False),
        ([100.0] * 20 + [126.0] * 10, False),
        ([100.0] * 20 + [124.0] * 10, True),
        ([100.0], False),
    ],
)
def test_what_grows_is_noticed(series: list[float], flat: bool) -> None:
    assert (growth(series) is None) is flat


@pytest.mark.server
@pytest.mark.slow
def test_a_short_one_holds(tmp_path: Path) -> None:
    """Too short to say whether something grows."""
    with Soak(tmp_path, 2000, 3.0, 1) as soak:
        report = soak.run(8)
    assert not [each for each in report.problems if "has grown" not in each], str(report)
    assert report.pairs > 1000, str(report)
