"""What runs left behind: their relations (JSON Lines or Parquet) and receipts, read back one at a time.

Takes: a path. Gives: `Delivery`s in order, in memory that does not grow with the file, or a Receipt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fairlead.cli.rules import decoded, read_bytes
from fairlead.deliver.receipt import Receipt
from fairlead.errors import DataError, Place

ROWS = 4096
HEAD_BYTES = 1_000_000
"""Of a .json file, enough to tell a receipt (128 kB at most) from lines of relations."""


@dataclass(frozen=True)
class Delivery:
    """A relation as it was written, the same for both formats."""

    subscription: str
    id: str
    branch: int
    completed_at: str
    positions: tuple[str, ...]
    events: Any
    emitted: Any

    def shown(self) -> str:
        return f"{self.subscription} {self.id} at positions [{', '.join(self.positions)}]"

    def named(self) -> dict[str, Any]:
        return {"subscription": self.subscription, "id": self.id, "positions": list(self.positions)}

    def differences(self, other: Delivery) -> Iterator[tuple[str, Any, Any]]:
        """The fields in which two deliveries differ, with their values."""
        for each in fields(self):
            a, b = getattr(self, each.name), getattr(other, each.name)
            if a != b:
                yield each.name, json.dumps(a, ensure_ascii=False), json.dumps(b, ensure_ascii=False)


def is_receipt(path: str) -> bool:
    """Whether the file is one JSON object that is not a relation. Parquet and an empty file are relations."""
    if path.lower().endswith(".parquet"):
        return False
    try:
        with Path(path).open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        read_bytes(path, "the file")  # raises with the reason
        raise
    try:
        content = json.loads(head)
    except ValueError:
        return False
    return not (isinstance(content, dict) and "subscription" in content)


def read_receipt(path: str) -> Receipt:
    content = json.loads(decoded(read_bytes(path, "the receipt"), path))
    return Receipt.from_json(content)


def read_deliveries(path: str) -> Iterator[Delivery]:
    return _parquet(path) if path.lower().endswith(".parquet") else _json_lines(path)


def _json_lines(path: str) -> Iterator[Delivery]:
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.isspace():
                continue
            try:
                row = json.loads(line)
                yield Delivery(
                    row["subscription"],
                    row["id"],
                    row["branch"],
                    str(row["completed_at"]),
                    tuple(map(str, row["positions"])),
                    row["events"],
                    row["emitted"],
                )
            except (ValueError, KeyError, TypeError):
                problem, fix = "this line is not a relation", "compare files that `fairlead run --out` wrote"
                raise DataError("D011", problem, fix, Place(number, file=path)) from None


def _parquet(path: str) -> Iterator[Delivery]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        read_bytes(path, "the file")  # raises with the reason
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS):
                for row in batch.to_pylist():
                    yield Delivery(
                        row["subscription"],
                        row["id"],
                        row["branch"],
                        row["completed_at"],
                        tuple(each["position"] for each in row["members"]),
                        [json.loads(each["event"]) for each in row["members"]],
                        json.loads(row["emitted"]),
                    )
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        fix = "compare files that `fairlead run --out` wrote"
        raise DataError("D013", f"the file does not hold relations: {error}", fix, path) from None
