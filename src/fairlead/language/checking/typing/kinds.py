"""The rules of kinds: what may be compared, the results of arithmetic, what widens to what.

    INT → BIGINT → DECIMAL → DOUBLE widen, in arithmetic and among the values of a CASE or coalesce; `/` is always DOUBLE;
    TIMESTAMP - TIMESTAMP is INTERVAL; TIMESTAMP ± INTERVAL is TIMESTAMP; INTERVAL * integer is INTERVAL;
    DATE - DATE is INTERVAL

Takes: kinds and typed expressions. Gives: kinds, or None if the language has no such operation. Never: reads text.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from fairlead.model.events.types import INTEGER, NUMERIC, DataType, Kind
from fairlead.model.expressions.expression import Arithmetic, Cast, Expression, Literal

_WIDTH = (Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE)
"""Numbers from the narrowest to the widest: every value of one is one of the next, but for the digits that a DOUBLE rounds."""

_SECONDS = frozenset({Kind.TIMESTAMP, Kind.INTERVAL})
_CASTS: dict[Kind, frozenset[Kind]] = {
    **dict.fromkeys((Kind.INT, Kind.BIGINT, Kind.DOUBLE), NUMERIC | _SECONDS | {Kind.STRING, Kind.BOOLEAN}),
    **dict.fromkeys((Kind.DECIMAL, Kind.BOOLEAN), NUMERIC | {Kind.STRING, Kind.BOOLEAN}),
    Kind.STRING: NUMERIC | {Kind.STRING, Kind.BOOLEAN, Kind.TIMESTAMP, Kind.DATE},
    Kind.TIMESTAMP: NUMERIC | {Kind.STRING, Kind.TIMESTAMP, Kind.DATE},
    Kind.DATE: frozenset({Kind.STRING, Kind.TIMESTAMP, Kind.DATE}),
    Kind.BINARY: frozenset({Kind.BINARY}),
}
"""By type, what it can be cast from."""


def castable(kind: Kind, wanted: Kind) -> bool:
    return kind in _CASTS[wanted]


def comparable(left: Kind, right: Kind) -> bool:
    return left is right or (left in NUMERIC and right in NUMERIC)


def arithmetic(operator: str, left: Kind, right: Kind) -> Kind | None:
    if left in NUMERIC and right in NUMERIC:
        if operator == "/" or Kind.DOUBLE in (left, right):
            return Kind.DOUBLE
        return Kind.DECIMAL if Kind.DECIMAL in (left, right) else Kind.BIGINT
    match operator, left, right:
        case "-", Kind.TIMESTAMP, Kind.TIMESTAMP:
            return Kind.INTERVAL
        case (("+" | "-"), Kind.TIMESTAMP, Kind.INTERVAL):
            return Kind.TIMESTAMP
        case "+", Kind.INTERVAL, Kind.TIMESTAMP:
            return Kind.TIMESTAMP
        case (("+" | "-"), Kind.INTERVAL, Kind.INTERVAL):
            return Kind.INTERVAL
        case "*", Kind.INTERVAL, other if other in INTEGER:
            return Kind.INTERVAL
        case "*", other, Kind.INTERVAL if other in INTEGER:
            return Kind.INTERVAL
    return None


def aggregate(function: str, kind: Kind) -> Kind | None:
    match function:
        case "count" | "count distinct":
            return Kind.BIGINT
        case "first" | "last":
            return kind
        case "avg":
            return Kind.DOUBLE if kind in NUMERIC else None
        case "sum":
            return (Kind.BIGINT if kind in INTEGER else kind) if kind in NUMERIC else None
    return kind if kind in NUMERIC or kind in (Kind.STRING, Kind.TIMESTAMP, Kind.DATE) else None


def widest(kinds: list[Kind]) -> Kind | None:
    """The one kind to which all of them widen; None if there is none."""
    if all(kind is kinds[0] for kind in kinds):
        return kinds[0]
    if all(kind in _WIDTH for kind in kinds):
        return max(kinds, key=_WIDTH.index)
    return None


def widens(kind: Kind, wanted: Kind) -> bool:
    return kind is wanted or (kind in _WIDTH and wanted in _WIDTH and _WIDTH.index(kind) <= _WIDTH.index(wanted))


def widened(value: Expression, wanted: Kind) -> Expression:
    """The expression as a value of a wider kind. The model has no cast: adding 0 of the wider kind is one."""
    if value.kind is wanted:
        return value
    if isinstance(value, Literal):
        if value.value is None:
            return replace(value, kind=wanted)
        return Literal({Kind.DOUBLE: float, Kind.DECIMAL: Decimal}.get(wanted, int)(value.value), wanted)
    zero = Literal(0.0, wanted) if wanted is Kind.DOUBLE else Literal(0, Kind.INT)
    return Arithmetic("+", value, zero, wanted)


def midnight(value: Expression) -> Expression:
    """A DATE as the TIMESTAMP at which its day begins; any other value as it is."""
    return Cast(value, DataType(Kind.TIMESTAMP)) if value.kind is Kind.DATE else value
