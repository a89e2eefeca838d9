"""EMIT of what runs come to: an aggregate over the events of a run, for many relations at once.

Takes: the words of the members, by relation and slot as many as its run holds. Gives: a value for each relation, equal to
`functions.aggregate`. Never: makes an object for an event.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlead.matching.expressions.functions import aggregate
from fairlead.matching.results.chunk import Numbers
from fairlead.matching.results.event_store import View
from fairlead.matching.results.folded_words import FoldedWords
from fairlead.matching.results.member_words import MemberWords
from fairlead.model.events.columns import arrow_type, canonical_values
from fairlead.model.events.types import Catalogue, EventType
from fairlead.model.expressions.expression import Aggregate

ENDS = ("first", "last")


def run_values(node: Aggregate, schema: EventType, refs: MemberWords, view: View, catalogue: Catalogue) -> list[Any]:
    """`schema`: the type that the pattern names for the run."""
    (slot,) = node.slots
    if refs.folds is not None:
        return _folded_values(node, schema, refs.folds, view, catalogue)
    words, lengths = refs.run(slot)
    if node.attribute is None:
        return lengths.tolist()  # type: ignore[no-any-return]
    ends = np.cumsum(lengths)
    if node.function in ENDS:  # one event of each run is enough
        chosen = (ends - lengths if node.function == "first" else ends - 1)[lengths > 0]
        words, lengths = words[chosen], np.minimum(lengths, 1)
        ends = np.cumsum(lengths)
    values = _values(node.attribute, schema, words, view, catalogue)
    if node.function == "count":
        return _counted(values, ends, lengths)
    bounds = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return [aggregate(node.function, values[low:high], node.kind) for low, high in bounds]


def _folded_values(node: Aggregate, schema: EventType, folds: FoldedWords, view: View, catalogue: Catalogue) -> list[Any]:
    role = node.function if node.function in ENDS else (node.function, node.attribute)
    if node.attribute is None or role not in folds.folding.roles:
        return folds.numbers_of(node)
    words = folds.role(role)
    there = words >= 0
    values = iter(_values(node.attribute, schema, words[there], view, catalogue))
    return [next(values) if known else None for known in there.tolist()]


def _counted(values: list[Any], ends: Numbers, lengths: Numbers) -> list[int]:
    known = np.concatenate(([0], np.cumsum([value is not None for value in values], dtype=np.int64)))
    return (known[ends] - known[ends - lengths]).tolist()  # type: ignore[no-any-return]


def _values(attribute: str, schema: EventType, words: Numbers, view: View, catalogue: Catalogue) -> list[Any]:
    declared = schema.type_of(attribute)
    sources = {name: catalogue[name].place(attribute) for name in catalogue.accepts(schema.name)}
    if not len(words):
        return []
    return list(canonical_values(view.take(words).column(arrow_type(declared), sources), declared.kind))
