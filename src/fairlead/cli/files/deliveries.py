"""Reads the outputs of runs: their relations (JSON Lines or Parquet) and receipts, one at a time.

Takes: a path. Gives: `WrittenDelivery`s in order, in bounded memory, or a Receipt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import accumulate, islice, pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.cli.files.rule_files import decoded, opened, read_bytes
from fairlead.dataclass import dataclass
from fairlead.deliver.receipt import Receipt
from fairlead.errors import DataError, Place
from fairlead.model.relations.relation import MINUS, PLUS
from fairlead.transport.files.documents import Malformed, json_value

if TYPE_CHECKING:
    import pyarrow as pa

    from fairlead.model.relations.identity import Words

ROWS = 4096
HEAD_BYTES = 1_000_000
"""Bytes of a .json file, enough to distinguish a receipt (128 kB at most) from lines of relations."""


@dataclass(frozen=True)
class WrittenDelivery:
    """A written relation, the same for both formats. Two are the same delivery if subscription, id, sign and contents are the
    same. Positions are not compared: without ORDER BY the id is made of them, and with it they are no part of the identity
    (live, every subscription counts its own events)."""

    subscription: str
    id: str
    branch: int
    completed_at: str
    positions: tuple[str, ...]
    events: Any
    emitted: Any
    sign: int = PLUS

    @property
    def compared(self) -> tuple[Any, ...]:
        return self.subscription, self.id, self.sign, self.branch, self.events, self.emitted

    def shown(self) -> str:
        back = "" if self.sign == PLUS else "taken back: "
        return f"{back}{self.subscription} {self.id} at positions [{', '.join(self.positions)}]"

    def named(self) -> dict[str, Any]:
        return {"subscription": self.subscription, "id": self.id, "positions": list(self.positions)}

    def differences(self, other: WrittenDelivery) -> Iterator[tuple[str, Any, Any]]:
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
        content = json_value(read_bytes(path, "the file", HEAD_BYTES))
    except Malformed:
        return False
    return not (isinstance(content, dict) and "subscription" in content)


def read_receipt(path: str) -> Receipt:
    try:
        return Receipt.from_json(json_value(decoded(read_bytes(path, "the receipt", HEAD_BYTES), path)))
    except Malformed as error:
        fix = "pass a file that `fairlead run --receipt` wrote"
        raise DataError("D011", f"the receipt is not valid JSON: {error.problem}", fix, error.at(path)) from None


def read_words(path: str) -> Words:
    """The words of all deliveries of an output (model/relations/identity.py): 16 bytes each."""
    return words_by_subscription(path)[0]


def words_by_subscription(path: str) -> tuple[Words, dict[str, Words]]:
    """The words of all deliveries of an output, and those of each subscription."""
    import numpy as np

    from fairlead.model.relations.identity import from_hex, signed

    deliveries, parts, names = read_deliveries(path), [np.empty((0, 2), dtype=np.uint64)], dict[str, int]()
    owners = [np.zeros(0, dtype=np.int64)]
    while some := list(islice(deliveries, ROWS)):
        signs = np.array([each.sign for each in some], dtype=np.int8)
        parts.append(signed(from_hex([each.id for each in some]), signs))
        owners.append(np.array([names.setdefault(each.subscription, len(names)) for each in some], dtype=np.int64))
    whole, owner = np.concatenate(parts), np.concatenate(owners)
    return whole, {name: whole[owner == number] for name, number in names.items()}


def read_deliveries(path: str) -> Iterator[WrittenDelivery]:
    return _parquet(path) if path.lower().endswith(".parquet") else _json_lines(path)


def _json_lines(path: str) -> Iterator[WrittenDelivery]:
    with opened(path, "the file") as file:
        for number, line in enumerate(file, 1):
            if line.isspace():
                continue
            try:
                row = json_value(line)
                if "verdict" in row or row.get("early"):
                    continue  # a report of `tail --json`, or an early delivery: they are not in receipts
                if row.get("sign", PLUS) not in (PLUS, MINUS):
                    raise ValueError("a sign is 1 or -1")
                yield WrittenDelivery(
                    row["subscription"],
                    row["id"],
                    row["branch"],
                    str(row["completed_at"]),
                    tuple(map(str, row["positions"])),
                    row["events"],
                    row["emitted"],
                    row.get("sign", PLUS),
                )
            except (ValueError, KeyError, TypeError, AttributeError):
                problem, fix = "this line is not a relation", "compare files that `fairlead run --out` wrote"
                raise DataError("D035", problem, fix, Place(number, file=path)) from None


def _parquet(path: str) -> Iterator[WrittenDelivery]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from fairlead.model.relations.layout import METADATA

    if not Path(path).is_file():
        read_bytes(path, "the file")  # raises with the reason
    try:
        with pq.ParquetFile(path) as file:
            held = (file.schema_arrow.metadata or {}).get(METADATA)
            if held is None:
                old = "members" in file.schema_arrow.names
                raise ValueError("members are JSON text, the form of an older version" if old else "no relations are described")
            for batch in file.iter_batches(batch_size=ROWS):
                yield from _of_batch(batch, json_value(held))
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        fix = "compare files that `fairlead run --out` of this version wrote"
        raise DataError("D035", f"the file does not hold relations: {error}", fix, path) from None


def _of_batch(batch: pa.RecordBatch, held: Mapping[str, Any]) -> Iterator[WrittenDelivery]:
    """The relations of a batch of rows; `held` says which column has which attribute (model/relations/layout.py)."""
    members = batch.column("members")
    flat = members.flatten()
    events, places = _objects(flat, held["members"]), _positions(flat.field("position"), flat.field("place"))
    emitted = _objects(batch.column("emitted"), held["emitted"])
    ends = accumulate(members.value_lengths().to_pylist(), initial=0)
    plain = zip(
        batch.column("subscription").to_pylist(),
        batch.column("id").to_pylist(),
        batch.column("branch").to_pylist(),
        _positions(batch.column("completed_at"), batch.column("place")),
        emitted,
        pairwise(ends),
        batch.column("sign").to_pylist() if "sign" in batch.schema.names else repeat(PLUS, len(batch)),
        strict=True,
    )
    for subscription, relation_id, branch, completed_at, derived, (low, high), sign in plain:
        values = {name: value for name, value in (derived or {}).items() if name != "type"}
        yield WrittenDelivery(
            subscription, relation_id, branch, completed_at, tuple(places[low:high]), events[low:high], values, sign
        )


def _objects(structs: pa.StructArray, held: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any] | None]:
    """Events in JSON form: the type, and each of its attributes; None for NULL."""
    present = structs.is_valid().to_pylist()
    columns = {field.name: _jsonable(structs.field(field.name)) for field in structs.type if field.name != "type"}
    types = structs.field("type").to_pylist()
    return [
        {"type": name} | {attribute: columns[column][at] for attribute, column in held[name].items()} if there else None
        for at, (there, name) in enumerate(zip(present, types, strict=True))
    ]


def _jsonable(column: pa.Array) -> list[Any]:
    from fairlead.model.events.columns import canonical_values, data_type_of_column
    from fairlead.model.events.values import jsonable

    wanted = data_type_of_column(column.type)
    return [jsonable(value, wanted) for value in canonical_values(column, wanted.kind)]


def _positions(numbers: pa.Array, places: pa.Array) -> list[str]:
    """`7`, `7+1`, `7-1`."""
    return [
        f"{number}{place:+d}" if place else str(number)
        for number, place in zip(numbers.to_pylist(), places.to_pylist(), strict=True)
    ]
