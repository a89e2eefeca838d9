"""The bucket of a key: a hash of its values, equal in every process and for every type that has the key.

Takes: the key columns of one type. Gives: numbers below the number of buckets; -1 if a part of the key is null or NaN, since
such an event has no key. Never: depends on the order of rows, on batches or on Python's own hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.matching.compiled.running.keys import as_whole
from fairlead.model.relations.identity import mix_all

Words = npt.NDArray[np.uint64]


def buckets_of(columns: Sequence[pa.Array], rows: int, buckets: int) -> npt.NDArray[np.int32]:
    mixed: Words = np.zeros(rows, dtype=np.uint64)
    known = np.ones(rows, dtype=bool)
    for column in columns:
        words, here = _words(column)
        mixed = mix_all(mixed + mix_all(words))
        known &= here
    return np.where(known, (mixed % np.uint64(buckets)).astype(np.int32), np.int32(-1))


def _words(column: pa.Array) -> tuple[Words, npt.NDArray[np.bool_]]:
    whole = as_whole(column)
    if whole is not None:
        values, known = whole
        return values.astype(np.int64).view(np.uint64), np.ones(len(column), dtype=bool) if known is None else known
    encoded = column.dictionary_encode()  # loads pyarrow.compute: a twentieth of a second, for keys of texts only
    distinct = np.array([_word(value) for value in encoded.dictionary.to_pylist()] or [0], dtype=np.uint64)
    at = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return distinct[at], column.is_valid().to_numpy(zero_copy_only=False)


def _word(value: Any) -> int:
    """The hash of a text, of bytes, or of a decimal, by its value: 1.50 is 1.5."""
    if not isinstance(value, (str, bytes)):
        value = format(value.normalize(), "f")
    given = value.encode() if isinstance(value, str) else value
    return int.from_bytes(hashlib.blake2b(given, digest_size=8).digest(), "big")
