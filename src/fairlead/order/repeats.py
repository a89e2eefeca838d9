"""Which rows repeat a source's sequence: those whose sequence is not above all earlier ones of the same source.

If events are in an order by value, their source may have numbered them in another one. Then a repeat is a row with the sequence
of another one of its source and type, and with the same values in the order columns. (A source numbers events by topic.)

A dropped row never raises the largest sequence, so the largest of all earlier rows is the largest of the accepted ones. A part
of the order therefore needs only the largest sequence of each source from the parts before it.

Takes: sources and sequences in the total order. Gives: which rows are repeats, and the last sequence of each source. Never:
sees rejected rows, whose corrected repeats are accepted.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.model.events.origin_columns import SequenceColumn, SourceColumn

Mask = npt.NDArray[np.bool_]
Lasts = Mapping[str | None, int]
"""By source the largest sequence so far; None is the one unnamed source."""


def repeated(sources: pa.Array, sequences: pa.Array) -> tuple[Mask, dict[str | None, int]]:
    """Within ordered rows: the repeats, and the last sequence of each source. A row without a sequence is not a repeat."""
    found = np.zeros(len(sequences), dtype=bool)
    rows = np.flatnonzero(sequences.is_valid().to_numpy(zero_copy_only=False))
    if not len(rows):
        return found, {}
    kept = pa.array(rows)
    encoded = sources.take(kept).dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    values, ranks = np.unique(sequences.take(kept).to_numpy(zero_copy_only=False), return_inverse=True)
    by_source = np.argsort(codes, kind="stable")
    codes, ranks = codes[by_source], ranks[by_source]
    # The rank of a later source is above all of an earlier one, so one running maximum serves all sources.
    raised = codes * len(values) + ranks
    most = np.maximum.accumulate(raised)
    found[rows[by_source[1:]]] = (codes[1:] == codes[:-1]) & (raised[1:] <= most[:-1])
    ends = np.flatnonzero(np.append(codes[1:] != codes[:-1], True))
    names = encoded.dictionary.to_pylist()
    return found, {names[codes[at]]: int(values[most[at] - codes[at] * len(values)]) for at in ends.tolist()}


def doubled(alike: Mask, sources: pa.Array, sequences: pa.Array) -> Mask:
    """Rows in an order by value with the source and sequence of the row before. `alike`: and its order columns and type."""
    return same_numbers(alike, SourceColumn.of(sources, len(alike)), SequenceColumn.of(sequences, len(alike)))


def same_numbers(alike: Mask, sources: SourceColumn, sequences: SequenceColumn) -> Mask:
    """The same of columns."""
    if not alike.any() or sequences.is_empty:
        return np.zeros(len(alike), dtype=bool)
    found: Mask = alike.copy() if sequences.known is None else alike & sequences.known
    found[1:] &= (sequences.values[1:] == sequences.values[:-1]) & (sources.codes[1:] == sources.codes[:-1])
    if sequences.known is not None:
        found[1:] &= sequences.known[:-1]
    return found


def behind(sources: pa.Array, sequences: pa.Array, lasts: Lasts) -> Mask:
    """Rows whose sequence is not above the last one of their source."""
    encoded = sources.dictionary_encode(null_encoding="encode")
    last = pa.array([lasts.get(name) for name in encoded.dictionary.to_pylist()], pa.int64())
    found: Mask = pc.less_equal(sequences, last.take(encoded.indices)).fill_null(False).to_numpy(zero_copy_only=False)
    return found


def later(lasts: Lasts, more: Lasts) -> dict[str | None, int]:
    """The last sequences after both."""
    return {**lasts, **{name: max(lasts.get(name, last), last) for name, last in more.items()}}
