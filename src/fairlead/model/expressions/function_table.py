"""The functions of the language: how many arguments each accepts, of which kinds, and the kind of its value.

Gives: `FUNCTIONS` by name. Never: computes a value (matching/expressions/functions.py does).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlead.dataclass import dataclass
from fairlead.model.events.types import INTEGER, Kind


@dataclass(frozen=True)
class Function:
    """A pure function of the language: its number of arguments, and its kind for theirs (None: rejected)."""

    arity_min: int
    arity_max: int
    result: Callable[[Sequence[Kind]], Kind | None]
    help: str


def _text_in(result: Kind) -> Callable[[Sequence[Kind]], Kind | None]:
    return lambda kinds: result if kinds[0] is Kind.STRING else None


def _number_in(result: Kind | None) -> Callable[[Sequence[Kind]], Kind | None]:
    numeric = (Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL)
    return lambda kinds: (result or kinds[0]) if kinds[0] in numeric else None


def _time_in(kinds: Sequence[Kind]) -> Kind | None:
    return Kind.INT if kinds[0] is Kind.TIMESTAMP else None


DATE_PARTS = ("year", "month", "day", "hour", "minute", "second", "dayofweek")
"""Of a TIMESTAMP; of a DATE, those of its midnight."""


def _substring(kinds: Sequence[Kind]) -> Kind | None:
    return Kind.STRING if kinds[0] is Kind.STRING and all(k in (Kind.INT, Kind.BIGINT) for k in kinds[1:]) else None


def _texts_in(result: Kind) -> Callable[[Sequence[Kind]], Kind | None]:
    return lambda kinds: result if all(kind is Kind.STRING for kind in kinds) else None


def _split_part(kinds: Sequence[Kind]) -> Kind | None:
    return Kind.STRING if kinds[0] is kinds[1] is Kind.STRING and kinds[2] in INTEGER else None


def _round(kinds: Sequence[Kind]) -> Kind | None:
    return _number_in(None)(kinds) if all(kind in INTEGER for kind in kinds[1:]) else None


def _coalesce(kinds: Sequence[Kind]) -> Kind | None:
    return kinds[0] if all(kind is kinds[0] for kind in kinds) else None


FUNCTIONS: dict[str, Function] = {
    "abs": Function(1, 1, _number_in(None), "absolute value"),
    "floor": Function(1, 1, _number_in(Kind.BIGINT), "largest whole number not above"),
    "ceil": Function(1, 1, _number_in(Kind.BIGINT), "smallest whole number not below"),
    "round": Function(1, 2, _round, "round(x[, digits]): half away from zero, to so many decimal places"),
    "isnan": Function(1, 1, lambda kinds: Kind.BOOLEAN if kinds[0] is Kind.DOUBLE else None, "true for NaN, NULL for NULL"),
    "lower": Function(1, 1, _text_in(Kind.STRING), "in lower case"),
    "upper": Function(1, 1, _text_in(Kind.STRING), "in upper case"),
    "trim": Function(1, 1, _text_in(Kind.STRING), "without spaces at both ends"),
    "length": Function(1, 1, _text_in(Kind.INT), "number of characters"),
    "substring": Function(2, 3, _substring, "substring(text, start[, length]); the first character is 1"),
    "concat": Function(1, 64, _texts_in(Kind.STRING), "the texts one after the other; also a || b"),
    "replace": Function(2, 3, _texts_in(Kind.STRING), "replace(text, part[, other]): other in the place of every part"),
    "instr": Function(2, 2, _texts_in(Kind.INT), "instr(text, part): where the part begins, from 1; 0 if nowhere"),
    "split_part": Function(3, 3, _split_part, "split_part(text, separator, n): piece n, from 1; -1 is the last"),
    "rlike": Function(2, 2, _texts_in(Kind.BOOLEAN), "rlike(text, 'pattern'), or text RLIKE 'pattern'"),
    "cidr_match": Function(
        2, 64, _texts_in(Kind.BOOLEAN), "cidr_match(address, '10.0.0.0/8', …): is it in one of these networks"
    ),
    "size": Function(1, 1, lambda kinds: Kind.INT if kinds[0] is Kind.ARRAY else None, "number of elements of an array"),
    "array_contains": Function(
        2, 2, lambda kinds: Kind.BOOLEAN if kinds[0] is Kind.ARRAY else None, "array_contains(array, value): is it an element"
    ),
    "element_at": Function(
        2, 2, lambda kinds: None, "element_at(array, n): element n, from 1; -1 is the last; NULL if there is none"
    ),
    "coalesce": Function(1, 8, _coalesce, "the first argument that is not NULL"),
    "year": Function(1, 1, _time_in, "year of a timestamp or date, in UTC like all date parts"),
    "month": Function(1, 1, _time_in, "month 1 to 12"),
    "day": Function(1, 1, _time_in, "day of the month 1 to 31"),
    "hour": Function(1, 1, _time_in, "hour 0 to 23"),
    "minute": Function(1, 1, _time_in, "minute 0 to 59"),
    "second": Function(1, 1, _time_in, "second 0 to 59"),
    "dayofweek": Function(1, 1, _time_in, "1 = Sunday to 7 = Saturday, as in Spark"),
}
