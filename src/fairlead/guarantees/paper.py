"""Table 4.1 of the dissertation as data: the losses that it lists for each cell, with the theorems it cites.

Cells are named matching-disposal in the papers' codes. Local order is not listed there separately from causal order.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.model.guarantee import Property

_DUPLICATION, _EVENT, _CONJUNCTION = Property.NO_DUPLICATION, Property.EVENT_VALIDITY, Property.CONJUNCTION_VALIDITY
_COVERING, _TOTAL = Property.COVERING_AGREEMENT, Property.TYPE_TOTAL_ORDER
_FIFO, _CAUSAL = Property.TYPE_FIFO_ORDER, Property.TYPE_CAUSAL_ORDER

PAPER: Mapping[str, Mapping[Property, tuple[int, ...]]] = {
    "FR-I": {_TOTAL: (6,), _FIFO: (6,), _CAUSAL: (6,)},
    "FRC-I": {_EVENT: (5,), _CONJUNCTION: (5,), _TOTAL: (6,), _FIFO: (6,), _CAUSAL: (6,)},
    "MR-I": {_EVENT: (1,), _COVERING: (2,), _TOTAL: (6,), _FIFO: (3, 6), _CAUSAL: (4, 6)},
    "MRC-I": {_EVENT: (1, 5), _CONJUNCTION: (5,), _COVERING: (2,), _TOTAL: (6,), _FIFO: (3, 6), _CAUSAL: (4, 6)},
    "FR-PI": {},
    "FRC-PI": {_EVENT: (5,), _CONJUNCTION: (5,)},
    "MR-PI": {_EVENT: (1,), _COVERING: (2,)},
    "MRC-PI": {_EVENT: (1,), _CONJUNCTION: (5,), _COVERING: (2,)},
    "FR-IP": {_EVENT: (7,), _COVERING: (8,)},
    "FRC-IP": {_EVENT: (5, 7), _CONJUNCTION: (5,), _COVERING: (8,)},
    "MR-IP": {_EVENT: (1,), _COVERING: (2,), _FIFO: (3,), _CAUSAL: (4,)},
    "MRC-IP": {_EVENT: (1,), _CONJUNCTION: (5,), _COVERING: (2,), _FIFO: (3,), _CAUSAL: (4,)},
    "FR-FP": {_DUPLICATION: (9,), _FIFO: (10,), _CAUSAL: (10,)},
    "FRC-FP": {_DUPLICATION: (9,), _EVENT: (5,), _CONJUNCTION: (5,)},
    "MR-FP": {_DUPLICATION: (9,), _EVENT: (1,), _COVERING: (2,), _FIFO: (3, 10), _CAUSAL: (4, 10)},
    "MRC-FP": {_DUPLICATION: (9,), _EVENT: (1,), _CONJUNCTION: (5,), _COVERING: (2,), _FIFO: (3,), _CAUSAL: (4,)},
}
