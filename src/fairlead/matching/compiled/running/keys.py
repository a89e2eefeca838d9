"""Keys and texts as dense, stable numbers.

Takes: Arrow columns, or whole numbers. Gives: arrays in which equal values have equal numbers, across columns and batches, -1
for NULL and NaN. Python sees each distinct text of a batch once, never each event; whole numbers are looked up in a table
if they lie close together, else in a hash table (key_table.py). `keep` forgets what nothing refers to any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.matching.compiled.machine_code.checked_build import unwritten
from fairlead.matching.compiled.running.key_table import HashTable
from fairlead.model.events.columns import as_numbers, bits_of, is_counted, of_numbers

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
SPREAD = 8
"""A table of numbers may be this many times as long as there are distinct numbers, before they are hashed."""
SMALL = 1 << 16
LOW = 0xFFFFFFFF
"""Of a pair of numbers the second one."""


class NumberTable:
    """Whole numbers that lie close together: `table[value - base]` is the number of a value, -1 for one that has none yet."""

    def __init__(self, values: Numbers) -> None:
        self.back, self.count = values, len(values)
        self.base = 0
        self.table: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def spans(self, values: npt.NDArray[Any]) -> bool:
        """Whether the table has room for these values (at least one), made wider if that is worth it."""
        low, high = int(values.min()), int(values.max())
        if len(self.table):
            low, high = min(low, self.base), max(high, self.base + len(self.table) - 1)
        if low == self.base and high - low < len(self.table):
            return True
        if high - low >= max(SMALL, SPREAD * (self.count + len(values))):
            return False
        base = min(low, 0) if -SMALL < low < SMALL else low
        self.base, self.table = base, np.full(high - base + 1, -1, dtype=np.int32)
        self.table[self.back[: self.count] - base] = np.arange(self.count)
        return True

    def of(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """The numbers of values that the table spans."""
        at = values.astype(np.int64, copy=False) - self.base if self.base else values
        numbers: npt.NDArray[np.int32] = self.table[at]
        unseen = numbers < 0
        if unseen.any():
            self._add(np.unique(at[unseen]))
            numbers = self.table[at]
        return numbers

    def room_for(self, more: int) -> None:
        """Room for so many new values in `back`: the owner of the table (a kernel) writes them and counts them in `count`."""
        if self.count + more > len(self.back):
            grown = unwritten(2 * (self.count + more), np.int64)
            grown[: self.count] = self.back[: self.count]
            self.back = grown

    def _add(self, places: npt.NDArray[Any]) -> None:
        fresh = np.arange(self.count, self.count + len(places))
        self.room_for(len(places))
        self.table[places] = fresh
        self.back[fresh] = places.astype(np.int64, copy=False) + self.base
        self.count += len(places)

    def values(self) -> Numbers:
        return self.back[: self.count]


class WholeNumbering:
    """0, 1, 2 … for distinct whole numbers. What is known stands in one index: a table, or from some spread on a hash table."""

    def __init__(self, values: Numbers | None = None) -> None:
        table = NumberTable(np.zeros(0, dtype=np.int64) if values is None else values)
        self.index: NumberTable | HashTable = table
        if table.count and not table.spans(table.back):
            self.index = HashTable(table.values())

    def __len__(self) -> int:
        return self.index.count

    def of(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        if not len(values):
            return np.zeros(0, dtype=np.int32)
        if self.table_over(values) is None and isinstance(self.index, NumberTable):
            self.index = HashTable(self.index.values())
        return self.index.of(values)

    def table_over(self, values: npt.NDArray[Any]) -> NumberTable | None:
        """The table, if there is one and it spans these values (at least one): a kernel can number them by itself."""
        return self.index if isinstance(self.index, NumberTable) and self.index.spans(values) else None

    def all(self) -> Numbers:
        """The values by number."""
        return self.index.values()

    def kept(self, wanted: Mask) -> WholeNumbering:
        """Only these numbers, renumbered in their order."""
        return WholeNumbering(self.all()[wanted])


class ValueNumbering:
    """0, 1, 2 … for distinct values of any kind, in the order in which they are first asked for."""

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
            in_order = [self.numbers[value] for value in sorted(self.numbers, key=lambda each: (isinstance(each, bytes), each))]
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

    def keep(self, wanted: Mask) -> None:
        kept = [value for value, keeps in zip(self.numbers, wanted.tolist(), strict=True) if keeps]
        self.numbers = {value: at for at, value in enumerate(kept)}
        self._ranks = np.zeros(0, dtype=np.int64)


class PartNumbering:
    """One attribute of a key: whole numbers, floats by their bits, booleans and times in a table, everything else as values."""

    def __init__(self) -> None:
        self.wholes = WholeNumbering()
        self.others = ValueNumbering()

    def __len__(self) -> int:
        return len(self.wholes) + len(self.others)

    def of_column(self, column: pa.Array) -> Numbers | npt.NDArray[np.int32]:
        whole = as_whole(column)
        if whole is None:
            return self.others.of_column(column)
        values, known = whole
        if known is None:
            return self.wholes.of(values)
        numbers = np.full(len(values), -1, dtype=np.int32)
        numbers[known] = self.wholes.of(values[known])
        return numbers

    def values(self, numbers: Numbers, kind: pa.DataType) -> pa.Array:
        """The values that have these numbers."""
        if as_whole(pa.nulls(0, kind)) is None:
            return pa.array(list(self.others.numbers), type=kind).take(pa.array(numbers))
        plain = self.wholes.all()[numbers]
        if pa.types.is_boolean(kind):
            return pa.array(plain.astype(bool))
        return of_numbers(pa.array(plain), kind) if pa.types.is_date32(kind) else pa.array(plain).view(kind)

    def keep(self, wanted: Mask) -> None:
        if len(self.others):
            self.others.keep(wanted)
        else:
            self.wholes = self.wholes.kept(wanted)


def as_whole(column: pa.Array) -> tuple[npt.NDArray[Any], Mask | None] | None:
    """A column of whole numbers, times, booleans or floats as whole numbers, and where it is known (None: everywhere)."""
    kind = column.type
    known = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    if known is None and len(column) and pa.types.is_integer(kind):
        return bits_of(column), None  # without `to_numpy`, which would import pandas
    if pa.types.is_floating(kind):
        floats = (column.fill_null(0.0) if known is not None else column).to_numpy(zero_copy_only=False) + 0.0
        wrong = np.isnan(floats)
        if wrong.any():
            known = ~wrong if known is None else known & ~wrong
        return floats.view(np.int64), known
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif is_counted(kind):
        column = column.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    elif not pa.types.is_integer(kind):
        return None
    plain = (column.fill_null(0) if known is not None else column).to_numpy(zero_copy_only=False)
    return plain, known


def where_known(columns: Sequence[pa.Array]) -> Mask | None:
    """Where nothing in a row is NULL or NaN; None: everywhere."""
    masks = [whole[1] for column in columns if (whole := as_whole(column)) is not None]
    masks += [column.is_valid().to_numpy(zero_copy_only=False) for column in columns if column.null_count]
    some = [each for each in masks if each is not None]
    return np.logical_and.reduce(some) if some else None


class KeyNumbering:
    """Keys of one or several attributes."""

    def __init__(self, width: int) -> None:
        self.parts = [PartNumbering() for _ in range(width)]
        self.pairs = [WholeNumbering() for _ in range(width - 1)]
        """Of the parts up to each one: the number of those before it, with its own."""

    def __len__(self) -> int:
        return 1 if not self.parts else len(self.pairs[-1]) if self.pairs else len(self.parts[0])

    def known(self) -> int:
        """How many numbers there are of keys, or of their parts: rows with a NULL in their key have some too."""
        return max([0, *map(len, self.parts), *map(len, self.pairs)])

    def of_columns(self, columns: Sequence[pa.Array], rows: int) -> npt.NDArray[np.int32]:
        """The key of each row; -1 where a part is NULL or NaN."""
        if not self.parts:
            return np.zeros(rows, dtype=np.int32)
        numbers = [part.of_column(column) for part, column in zip(self.parts, columns, strict=True)]
        result = numbers[0]
        for pairs, more in zip(self.pairs, numbers[1:], strict=True):
            result = paired(pairs, result, more)
        return result.astype(np.int32, copy=False)

    def columns(self, numbers: Numbers, kinds: Sequence[pa.DataType]) -> list[pa.Array]:
        """The keys that have these numbers, a column for each attribute."""
        made: list[pa.Array] = []
        for at in reversed(range(len(self.parts))):
            mine = numbers
            if at:
                pairs = self.pairs[at - 1].all()[numbers]
                numbers, mine = pairs >> 32, pairs & LOW
            made.insert(0, self.parts[at].values(mine, kinds[at]))
        return made

    def keep(self, wanted: Mask) -> None:
        """Only these keys stay, and of their parts what they are made of."""
        for pairs, part in zip(reversed(range(len(self.pairs))), reversed(self.parts[1:]), strict=True):
            kept = self.pairs[pairs].all()[wanted]
            before, own = kept >> 32, kept & LOW
            wanted = _marked(before, len(self.pairs[pairs - 1]) if pairs else len(self.parts[0]))
            mine = _marked(own, len(part))
            part.keep(mine)
            renumbered = ((np.cumsum(wanted) - 1)[before] << 32) | (np.cumsum(mine) - 1)[own]
            self.pairs[pairs] = WholeNumbering(renumbered)
        if self.parts:
            self.parts[0].keep(wanted)


def _marked(numbers: Numbers, count: int) -> Mask:
    made = np.zeros(count, dtype=bool)
    made[numbers] = True
    return made


def paired(pairs: WholeNumbering, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """The numbers of pairs of numbers; -1 where one is."""
    known = (left >= 0) & (right >= 0)
    if known.all():
        return pairs.of((left.astype(np.int64) << 32) | right)
    result = np.full(len(left), -1, dtype=np.int32)
    result[known] = pairs.of((left[known].astype(np.int64) << 32) | right[known])
    return result


def _plain(dictionary: pa.Array) -> list[Any]:
    if is_counted(dictionary.type):
        dictionary = as_numbers(dictionary)
    if pa.types.is_floating(dictionary.type):
        import pyarrow.compute as pc  # loading it takes a twentieth of a second

        dictionary = pc.add(dictionary, 0.0)  # -0.0 and 0.0 are one key
    return dictionary.to_pylist()  # type: ignore[no-any-return]
