"""A batch as every kernel sees it: the rows of each type, and what was computed from them once for all subscriptions.

Takes: Columns. Gives: values, truths and numbers of whole columns, each distinct one computed once. Never: an object for a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.matching.compiled.running.keys import ValueNumbering, as_whole
from fairlead.matching.compiled.running.vector import TypeRows, Vector, evaluate, evaluate_text, truth
from fairlead.matching.results.chunk import Chunk
from fairlead.model.events.columns import Columns, bits_of
from fairlead.model.events.types import Catalogue, Kind
from fairlead.model.expressions.expression import Condition, Expression, Field
from fairlead.model.relations.identity import words_of

Mask = npt.NDArray[np.bool_]
UNTOLD = np.iinfo(np.int64).min
PLAIN = (Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL)


class KernelBatch:
    """`given_words` where rows are not simply numbered (derived events among them), `given_times` for types whose time is no
    attribute."""

    def __init__(
        self,
        columns: Columns,
        catalogue: Catalogue,
        given_words: npt.NDArray[np.int64] | None = None,
        given_times: Mapping[str, npt.NDArray[np.int64]] | None = None,
    ) -> None:
        self.columns, self.catalogue, self.given_words = columns, catalogue, given_words
        self.types: Mapping[str, int] = {name: code for code, name in enumerate(columns.types)}
        self.rows: dict[str, TypeRows] = {}
        for name in columns.types:
            table = columns.tables.get(name)
            if table is not None and table.num_rows:
                schema = catalogue[name]
                at = schema.time_index
                times = (given_times or {}).get(name)
                if times is None and at is not None:
                    times = table.column(at).view(pa.int64()).to_numpy()
                self.rows[name] = TypeRows(schema, table, times, self._majors_of(name))
        self._kept: dict[Any, Any] = {}
        self.told: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """By row, where given: what was due before this is decided when the row comes, whatever its own time (rounds.py)."""

    def _majors_of(self, name: str) -> Callable[[], npt.NDArray[np.int64]]:
        return lambda: self.columns.position_array[self.places(name)]

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def codes(self) -> npt.NDArray[Any]:
        """Unchanged if a byte holds them; kernels are compiled for both."""
        given = np.ascontiguousarray(self.columns.code_array)
        return given if given.dtype == np.int8 else given.astype(np.int32, copy=False)

    @cached_property
    def is_dense(self) -> bool:
        positions = self.columns.positions
        return self.given_words is None and isinstance(positions, range) and positions.step == 1

    @cached_property
    def words(self) -> npt.NDArray[np.int64]:
        """The place of each row in the order, as one number."""
        return words_of(self.columns.position_array) if self.given_words is None else self.given_words

    @property
    def first_word(self) -> int:
        if self.is_dense and len(self):
            return int(words_of(np.array([self.columns.positions[0]], dtype=np.int64))[0])
        return int(self.words[0]) if len(self) else 0

    def places(self, name: str) -> npt.NDArray[np.int64]:
        """The rows of the batch at which the events of a type stand."""
        return self.columns.places[name]

    def together(self, names: Sequence[str]) -> list[npt.NDArray[np.int64]]:
        """The rows of several types as those of one: of each type, the numbers that its rows have among all of them."""
        return self._once(("together", tuple(names)), lambda: self._together(names))  # type: ignore[no-any-return]

    def _together(self, names: Sequence[str]) -> list[npt.NDArray[np.int64]]:
        places = [self.places(name) for name in names]
        if sum(map(len, places)) == len(self):
            return places
        among = np.zeros(len(self), dtype=np.int64)
        for each in places:
            among[each] = 1
        np.cumsum(among, out=among)
        return [among[each] - 1 for each in places]

    def holds(self, name: str, conditions: Sequence[Condition]) -> Mask | None:
        """Where all conditions hold; None for no condition."""
        if not conditions:
            return None
        masks = [self._truth(name, each) for each in conditions]
        return masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)

    def _truth(self, name: str, condition: Condition) -> Mask:
        found: Mask = self._once(("truth", name, condition), lambda: truth(condition, self.rows[name]))
        return found

    def know(self, truths: Mapping[tuple[str, Condition], Mask]) -> None:
        """Where conditions hold, by type and condition: found by others."""
        self._kept |= {("truth", name, condition): found for (name, condition), found in truths.items()}

    def vector(self, name: str, expression: Expression) -> tuple[npt.NDArray[Any], Mask | None]:
        """The values of a numeric expression, and where they are known (None: everywhere)."""
        return self._once(("vector", name, expression), lambda: self._vector(name, expression))  # type: ignore[no-any-return]

    def _vector(self, name: str, expression: Expression) -> tuple[npt.NDArray[Any], Mask | None]:
        rows = self.rows[name]
        if isinstance(expression, Field) and expression.kind in PLAIN:
            column = rows.column(expression.attribute)
            if not column.null_count:
                bits = bits_of(column)
                return bits.view(np.float64) if expression.kind is Kind.DOUBLE else bits.astype(np.int64, copy=False), None
        vector: Vector = evaluate(expression, rows)
        values = vector.values
        if expression.kind is Kind.DOUBLE:
            values = np.where(vector.known, values, np.nan)
        elif values.dtype != np.int64:
            values = values.astype(np.int64)
        return np.ascontiguousarray(values), None if vector.known.all() else vector.known

    def texts(self, name: str, expression: Expression, numbering: ValueNumbering) -> tuple[npt.NDArray[np.int64], Mask | None]:
        """The numbers of a text expression, and where they are known."""

        def compute() -> tuple[npt.NDArray[np.int64], Mask | None]:
            values, known = evaluate_text(expression, self.rows[name], numbering)
            return values, None if known.all() else known

        found: tuple[npt.NDArray[np.int64], Mask | None] = self._once(("text", numbering, name, expression), compute)
        return found

    def whole(self, name: str, attribute: str) -> tuple[npt.NDArray[Any], Mask | None] | None:
        """An attribute as whole numbers, if it is one of those (keys.py)."""
        found: tuple[npt.NDArray[Any], Mask | None] | None = self._once(
            ("whole", name, attribute), lambda: as_whole(self.rows[name].column(attribute))
        )
        return found

    def once(self, key: Any, compute: Callable[[], Any]) -> Any:
        """What several subscriptions would compute alike."""
        return self._once(key, compute)

    def _once(self, key: Any, compute: Callable[[], Any]) -> Any:
        found = self._kept.get(key, self)
        if found is self:
            found = self._kept[key] = compute()
        return found


class Prepared:
    """Columns that several engines are given, and what each of them computes from these that is the same for all.

    Live subscribers of one process read the same blocks. What a kernel needs of them beside its own state (values, truths,
    places, and the events as they are stored) is computed by the first, and serves the others. It does not outlive the round
    in which the columns are shared: a store keeps only the chunk.
    """

    def __init__(self, columns: Columns, catalogue: Catalogue) -> None:
        self.columns, self._catalogue = columns, catalogue

    @cached_property
    def chunk(self) -> Chunk:
        return Chunk(self.columns)

    @cached_property
    def batch(self) -> KernelBatch:
        return KernelBatch(self.columns, self._catalogue)
