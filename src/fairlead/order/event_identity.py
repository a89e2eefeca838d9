"""What an event is, independent of its place: two 64-bit words for each event of an ORDER BY plan.

    with a sequence    its type, its source and its sequence there, as the publisher has numbered it, and its order keys
    without            its type, source and content, and its number among equal events, which stand next to each other in the
                       total order (total.py), so that it does not matter which of them has which number. Its content is its
                       attributes that are not NULL, by name: an attribute that is added to the type, and NULL in the event,
                       changes nothing
    derived            the id of the relation that derived it (model/relations/identity.py)

An event that arrives in between changes the places of others, not their identities; so it changes no id of a relation that it
is not a member of.

Takes: rows of one type, in their order. Gives: their words. Never: depends on how the rows arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.model.events.columns import as_numbers
from fairlead.model.events.origin_columns import SequenceColumn, SourceColumn
from fairlead.model.events.types import EventType
from fairlead.model.plans.event_order import EventOrder
from fairlead.model.relations.identity import ID_BYTES, Words, mixed_columns, mixed_in
from fairlead.order.nested_bytes import nested_bytes
from fairlead.order.total import one_zero, sequences_of, sources_of

NUMBERED, BY_CONTENT = 1, 0
NAN = np.array([np.nan]).view(np.uint64)[0]


def event_identities(
    schema: EventType, table: pa.Table, order: EventOrder, origin: tuple[SourceColumn, SequenceColumn] | None = None
) -> Words:
    """`table`: its attributes, and unless `origin` has them, `_source` and `_sequence` if there are any."""
    sources, sequences = (sources_of(table), sequences_of(table)) if origin is None else origin
    if sequences.known is None:
        return _numbered(schema, table, order, sources, sequences)
    if sequences.is_empty:
        return _by_content(schema, table, sources)
    made = np.empty((len(table), 2), dtype=np.uint64)
    with_number, without = np.flatnonzero(sequences.known), np.flatnonzero(~sequences.known)
    rows = table.take(pa.array(with_number))
    made[with_number] = _numbered(schema, rows, order, sources.taken(with_number), sequences.taken(with_number))
    made[without] = _by_content(schema, table.take(pa.array(without)), sources.taken(without))
    return made


def _numbered(schema: EventType, table: pa.Table, order: EventOrder, sources: SourceColumn, sequences: SequenceColumn) -> Words:
    keys = [key.column(schema) for key in order.keys]
    columns = [table.column(schema.attributes[at].name) for at in keys if at is not None]
    return _by_sequence(schema.name, columns, sources, sequences)


def _by_sequence(name: str, keys: Sequence[pa.ChunkedArray], sources: SourceColumn, sequences: SequenceColumn) -> Words:
    values = [word for key in keys for word in _words(one_zero(_joined(key)))]
    numbers = sequences.values.view(np.uint64)
    return mixed_columns(_seeds(name, NUMBERED, sources), [numbers, *values], len(numbers))


def sequence_identities(name: str, table: pa.Table, keys: Sequence[str]) -> tuple[Words, npt.NDArray[np.int64]]:
    """The rows of a type that their source has numbered, and the identities of these, from the columns of their order keys:
    equal for rows that repeat each other."""
    sources, sequences = sources_of(table), sequences_of(table)
    rows = np.arange(len(table)) if sequences.known is None else np.flatnonzero(sequences.known)
    taken = table.select(list(keys)).take(pa.array(rows))
    return _by_sequence(name, taken.columns, sources.taken(rows), sequences.taken(rows)), rows


def _by_content(schema: EventType, table: pa.Table, sources: SourceColumn) -> Words:
    plain, words, rows = _seeds(schema.name, BY_CONTENT, sources), list[Words | int](), len(table)
    for name in sorted(schema.index):
        column = _joined(table.column(name))
        mine: list[Words | int] = [_name_word(name), *_values(column)]
        if not column.null_count:
            words += mine
            continue
        plain, words = mixed_columns(plain, words, rows), []
        known = column.is_valid().to_numpy(zero_copy_only=False)
        plain = np.where(known[:, None], mixed_columns(plain, mine, rows), plain)
    plain = mixed_columns(plain, words, rows)
    return mixed_columns(plain, [_among_equals(plain)], rows)


@lru_cache(maxsize=1024)
def _name_word(name: str) -> int:
    return int.from_bytes(_hashed(name.encode())[:8])


def _among_equals(words: Words) -> Words:
    """How many equal ones stand directly before each."""
    fresh = np.ones(len(words), dtype=bool)
    fresh[1:] = (words[1:] != words[:-1]).any(axis=1)
    starts = np.flatnonzero(fresh)
    return (np.arange(len(words)) - np.repeat(starts, np.diff(np.append(starts, len(words))))).astype(np.uint64)


def _seeds(type_name: str, how: int, sources: SourceColumn) -> Words:
    """What the words of all events with the same source begin with: one row if there is one source."""
    seeds = _seeds_of(type_name, how, sources.names)
    return seeds if len(seeds) == 1 else seeds[sources.codes]


@lru_cache(maxsize=64)
def _seeds_of(type_name: str, how: int, names: tuple[str | None, ...]) -> Words:
    """Of each source. A stream has few types and few sources at a time, and asks for them with every batch."""
    of_type = np.frombuffer(_hashed(type_name.encode()), dtype=">u8").astype(np.uint64).reshape(1, 2)
    words = np.full((len(names), 3), how, dtype=np.uint64)
    words[:, 1:] = _hashes([None if name is None else name.encode() for name in names])
    return mixed_in(of_type, words)


def _hashed(data: bytes) -> bytes:
    return blake2b(data, digest_size=ID_BYTES).digest()


def _hashes(values: Sequence[bytes | None]) -> Words:
    """Two words of a hash of each value; zeros where there is none."""
    hashed = b"".join(bytes(ID_BYTES) if each is None else _hashed(each) for each in values)
    return np.frombuffer(hashed, dtype=">u8").astype(np.uint64).reshape(-1, 2)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _words(column: pa.Array) -> Iterator[Words | int]:
    """The values of a column as words: first whether they are known."""
    yield column.is_valid().to_numpy(zero_copy_only=False).astype(np.uint64) if column.null_count else 1
    yield from _values(column)


def _values(column: pa.Array) -> Iterator[Words]:
    """The values of a column as words."""
    kind = column.type
    read: Callable[[pa.Array], Iterator[Words]] = _numbers
    if pa.types.is_floating(kind):
        read = _floats
    elif pa.types.is_decimal(kind):
        read = _decimals
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        read = _texts
    elif pa.types.is_nested(kind):
        read = _nested
    else:
        column = as_numbers(column)
    yield from read(column)


def _numbers(column: pa.Array) -> Iterator[Words]:
    yield _filled(column, 0).to_numpy(zero_copy_only=False).view(np.uint64)


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
    hashed = _hashes([None, *values])
    yield from hashed[_filled(coded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False) + 1].T


def _nested(column: pa.Array) -> Iterator[Words]:
    """Two words of a hash of the bytes of each value; zeros where there is none."""
    yield from _hashes(nested_bytes(column)).T


def _filled(column: pa.Array, value: float) -> pa.Array:
    return column.fill_null(value) if column.null_count else column
