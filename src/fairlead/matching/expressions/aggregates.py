"""count, sum, avg, min and max over columns of numbers: one column per instance of the element, one result per row.

Takes: vectors (running/vector.py). Gives: a vector, equal to functions.aggregate row by row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlead.matching.compiled.running.vector import Vector
from fairlead.matching.expressions.functions import aggregate
from fairlead.matching.results.chunk import Numbers
from fairlead.model.events.types import Kind


def aggregated(function: str, vectors: Sequence[Vector], kind: Kind) -> Vector:
    """`vectors` is not empty; `kind` is that of the result."""
    counts: Numbers = np.stack([each.known for each in vectors]).sum(axis=0, dtype=np.int64)
    if function == "count":
        return Vector(counts, np.ones(len(counts), dtype=bool))
    if function == "sum" and kind is not Kind.DOUBLE and not _small(vectors):
        return _one_by_one(function, vectors, kind)
    floats = vectors[0].values.dtype == np.float64
    if function == "avg":
        vectors = [Vector(each.values.astype(np.float64), each.known) for each in vectors]
    total, known = vectors[0].values, vectors[0].known
    with np.errstate(all="ignore"):
        for each in vectors[1:]:  # in the order of the instances, one rounding per step; of equal values the first
            if function in ("sum", "avg"):
                joined = total + each.values
            else:
                joined = np.where(each.values < total if function == "min" else each.values > total, each.values, total)
            total = np.where(known & each.known, joined, np.where(each.known, each.values, total))
            known = known | each.known
        if function == "avg":
            total = total / np.maximum(counts, 1)
    if floats:
        missing = np.any([each.known & np.isnan(each.values) for each in vectors], axis=0)
        total = np.where(missing, np.nan, total)
    return Vector(total, known)


def _small(vectors: Sequence[Vector]) -> bool:
    """No sum can leave 64 bits."""
    largest = [max(abs(int(each.values.min())), abs(int(each.values.max()))) for each in vectors if len(each.values)]
    return sum(largest) < 2**63


def _one_by_one(function: str, vectors: Sequence[Vector], kind: Kind) -> Vector:
    columns = [[v if k else None for v, k in zip(each.values.tolist(), each.known.tolist(), strict=True)] for each in vectors]
    results = [aggregate(function, values, kind) for values in zip(*columns, strict=True)]
    known = np.array([value is not None for value in results], dtype=bool)
    return Vector(np.array([0 if value is None else value for value in results], dtype=np.int64), known)
