"""What an event is, independent of its place: two 64-bit words for each event of an ORDER BY plan.

    with a sequence    its type, its source and its sequence there, as the publisher has numbered it, and its order keys
    without            its type, source and content, and its number among equal events, which stand next to each other in the
                       total order (total.py), so that it does not matter which of them has which number
    derived            the id of the relation that derived it (model/identity.py)

An event that arrives in between changes the places of others, not their identities; so it changes no id of a relation that it
is not a member of.

Takes: rows of one type, in their order. Gives: their words. Never: depends on how the rows arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.model.event_order import EventOrder
from fairlead.model.identity import ID_BYTES, Words, mixed_in
from fairlead.model.types import EventType
from fairlead.order.total import SEQUENCE, SOURCE

NUMBERED, BY_CONTENT = 1, 0
NAN = np.array([np.nan]).view(np.uint64)[0]


def event_identities(schema: EventType, table: pa.Table, order: EventOrder) -> Words:
    """`table`: its attributes, and `_source` and `_sequence` if there are any."""
    rows = len(table)
    sources = list(_texts(_whole(table, SOURCE, pa.string())))
    sequences = _whole(table, SEQUENCE, pa.int64())
    numbered = sequences.is_valid().to_numpy(zero_copy_only=False)
    seeds = _seeds(schema.name)
    made = np.empty((rows, 2), dtype=np.uint64)
    if numbered.any():
        keys = [key.column(schema) for key in order.keys]
        columns = [table.column(schema.attributes[at].name) for at in keys if at is not None]
        made[numbered] = _numbered(seeds, numbered, sources, sequences, columns)
    if not numbered.all():
        content = [word for name in schema.index for word in _words(_joined(table.column(name)))]
        words = [np.full(rows, BY_CONTENT, dtype=np.uint64), *sources, *content]
        plain = mixed_in(seeds, np.stack([each[~numbered] for each in words], axis=1))
        made[~numbered] = mixed_in(plain, _among_equals(plain)[:, None])
    return made


def sequence_identities(name: str, table: pa.Table, keys: Sequence[str]) -> tuple[Words, npt.NDArray[np.bool_]]:
    """Which rows of a type their source has numbered, and the identities of these alone, from the columns of their order keys:
    equal for rows that repeat each other."""
    sequences = _whole(table, SEQUENCE, pa.int64())
    numbered = sequences.is_valid().to_numpy(zero_copy_only=False)
    sources = list(_texts(_whole(table, SOURCE, pa.string())))
    return _numbered(_seeds(name), numbered, sources, sequences, [table.column(key) for key in keys]), numbered


def _numbered(
    seeds: Words,
    chosen: npt.NDArray[np.bool_],
    sources: Sequence[Words],
    sequences: pa.Array,
    keys: Sequence[pa.ChunkedArray],
) -> Words:
    values = [word for key in keys for word in _words(_joined(key))]
    words = [np.full(len(chosen), NUMBERED, dtype=np.uint64), *sources, *_numbers(sequences), *values]
    return mixed_in(seeds, np.stack([each[chosen] for each in words], axis=1))


def _among_equals(words: Words) -> Words:
    """How many equal ones stand directly before each."""
    fresh = np.ones(len(words), dtype=bool)
    fresh[1:] = (words[1:] != words[:-1]).any(axis=1)
    starts = np.flatnonzero(fresh)
    return (np.arange(len(words)) - np.repeat(starts, np.diff(np.append(starts, len(words))))).astype(np.uint64)


def _seeds(type_name: str) -> Words:
    return np.frombuffer(_hashed(type_name.encode()), dtype=">u8").astype(np.uint64).reshape(1, 2)


def _hashed(data: bytes) -> bytes:
    return blake2b(data, digest_size=ID_BYTES).digest()


def _whole(table: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    return _joined(table.column(name)).cast(kind) if name in table.column_names else pa.nulls(len(table), kind)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _words(column: pa.Array) -> Iterator[Words]:
    """The values of a column as words: first whether they are known."""
    kind = column.type
    read: Callable[[pa.Array], Iterator[Words]] = _numbers
    if pa.types.is_floating(kind):
        read = _floats
    elif pa.types.is_decimal(kind):
        read = _decimals
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        read = _texts
    else:
        column = column.cast(pa.int64())
    yield column.is_valid().to_numpy(zero_copy_only=False).astype(np.uint64)
    yield from read(column)


def _numbers(column: pa.Array) -> Iterator[Words]:
    yield _filled(column, 0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)


def _floats(column: pa.Array) -> Iterator[Words]:
    values = _filled(column, 0.0).cast(pa.float64()).to_numpy(zero_copy_only=False)
    yield np.where(np.isnan(values), NAN, values.view(np.uint64))


def _decimals(column: pa.Array) -> Iterator[Words]:
    known = column.is_valid().to_numpy(zero_copy_only=False)
    raw: npt.NDArray[Any] = np.frombuffer(column.buffers()[1], dtype="<u8").reshape(-1, column.type.bit_width // 64)
    for part in raw[column.offset : column.offset + len(column)].T:
        yield np.where(known, part, 0).astype(np.uint64)


def _texts(column: pa.Array) -> Iterator[Words]:
    """Two words of a hash of each value, computed once for equal ones; zeros where there is none."""
    coded = column.dictionary_encode()
    values = [each.encode() if isinstance(each, str) else each for each in coded.dictionary.to_pylist()]
    hashed = np.frombuffer(b"".join([bytes(ID_BYTES), *map(_hashed, values)]), dtype=">u8").astype(np.uint64).reshape(-1, 2)
    yield from hashed[_filled(coded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False) + 1].T


def _filled(column: pa.Array, value: float) -> pa.Array:
    return column.fill_null(value) if column.null_count else column
