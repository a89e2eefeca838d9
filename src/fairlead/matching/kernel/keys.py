"""Keys and texts as dense, stable numbers.

Takes: Arrow columns. Gives: int arrays in which equal values have equal numbers, across columns and batches. Python sees each
distinct value of a batch once, never each event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]


class Numbering:
    """Hands out 0, 1, 2 … to distinct values in the order in which they are first asked for."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self._ranks: Numbers = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.numbers)

    def number(self, value: Any) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def ranks(self) -> Numbers:
        """By number, the place of each value among all so far: numbers last, ranks hold until a new value comes."""
        if len(self._ranks) != len(self.numbers):
            self._ranks = np.empty(len(self.numbers), dtype=np.int64)
            in_order = [self.numbers[value] for value in sorted(self.numbers)]
            self._ranks[in_order] = np.arange(len(in_order))
        return self._ranks

    def of_column(self, column: pa.Array) -> Numbers:
        """-1 for NULL and NaN."""
        encoded = column.dictionary_encode()
        distinct = _plain(encoded.dictionary)
        numbers = [-1 if value != value else self.number(value) for value in distinct] + [-1]
        codes = encoded.indices.fill_null(len(distinct)) if encoded.null_count else encoded.indices
        result: Numbers = np.array(numbers, dtype=np.int64)[codes.to_numpy(zero_copy_only=False)]
        return result


class KeyNumbering:
    """Keys of one or several attributes."""

    def __init__(self, width: int) -> None:
        self.parts = [Numbering() for _ in range(width)]
        self.whole = Numbering()

    def __len__(self) -> int:
        return max(1, len(self.whole)) if not self.parts else len(self.whole) if len(self.parts) > 1 else len(self.parts[0])

    def of_columns(self, columns: Sequence[pa.Array], rows: int) -> Numbers:
        """The key of each row; -1 where a part is NULL or NaN."""
        if not self.parts:
            return np.zeros(rows, dtype=np.int64)
        numbers = [part.of_column(column) for part, column in zip(self.parts, columns, strict=True)]
        if len(numbers) == 1:
            return numbers[0]
        packed = np.stack(numbers, axis=1)
        known = (packed >= 0).all(axis=1)
        distinct, inverse = np.unique(packed, axis=0, return_inverse=True)
        whole = np.array([self.whole.number(tuple(each)) for each in distinct.tolist()], dtype=np.int64)
        result = whole[inverse.reshape(-1)] if len(whole) else np.zeros(rows, dtype=np.int64)
        result[~known] = -1
        return result

    def number(self, key: tuple[Any, ...]) -> int:
        """The number of one key, for a loaded state."""
        if not self.parts:
            return 0
        numbers = [part.number(value) for part, value in zip(self.parts, key, strict=True)]
        return numbers[0] if len(numbers) == 1 else self.whole.number(tuple(numbers))

    def values(self) -> list[tuple[Any, ...]]:
        """The keys by number."""
        if not self.parts:
            return [()]
        if len(self.parts) == 1:
            return [(value,) for value in self.parts[0].numbers]
        back = [list(part.numbers) for part in self.parts]
        return [tuple(back[at][n] if n >= 0 else None for at, n in enumerate(each)) for each in self.whole.numbers]


def _plain(dictionary: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(dictionary.type):
        dictionary = dictionary.cast(pa.int64())
    if pa.types.is_floating(dictionary.type):
        dictionary = pc.add(dictionary, 0.0)  # -0.0 and 0.0 are one key
    return dictionary.to_pylist()  # type: ignore[no-any-return]
