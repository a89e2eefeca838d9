"""Constants: numbers, durations and timestamps as canonical values, or a `Fault` if they do not fit.

5 → INT · 3000000000 → BIGINT · 1.5, 1e3 → DOUBLE · 5 MINUTES → INTERVAL, in microseconds · TIMESTAMP '…' → TIMESTAMP
DATE '…' → DATE
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, closest, did_you_mean, listed
from fairlead.language.parsing.keywords import CLAUSE_KEYWORDS
from fairlead.model.events.types import DataType, Kind
from fairlead.model.events.values import INT_RANGE, canonical
from fairlead.model.expressions.expression import Literal

UNITS: dict[str, int] = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
FOLLOWING = (*CLAUSE_KEYWORDS, "AND", "OR")
"""Words that can stand where a unit is missing."""
SHORT = {
    **dict.fromkeys(("US", "USEC", "USECS"), "MICROSECOND"),
    **dict.fromkeys(("MS", "MSEC", "MSECS", "MILLIS"), "MILLISECOND"),
    **dict.fromkeys(("S", "SEC", "SECS"), "SECOND"),
    **dict.fromkeys(("M", "MIN", "MINS"), "MINUTE"),
    **dict.fromkeys(("H", "HR", "HRS"), "HOUR"),
    "D": "DAY",
    "W": "WEEK",
}
"""What people write for a unit."""
UNEQUAL = ("MONTH", "MONTHS", "QUARTER", "QUARTERS", "YEAR", "YEARS")
"""No units: they have no length of their own."""
DIGITS_MAX = 40
"""Characters of a number in a duration: 64 bits have 19 digits, so twice that only repeats zeros."""


def number(node: syntax.Number, *, negative: bool = False) -> Literal:
    """The literal of the narrowest kind that holds it. The sign belongs to it, so that -2**63 can be written."""
    sign = "-" if negative else ""
    if not node.text.isdigit():
        value = float(sign + node.text)
        if not math.isfinite(value):
            raise Fault("L006", node.span, f"{node.text} is out of the range of DOUBLE", "use a smaller number")
        return Literal(value, Kind.DOUBLE)
    digits = node.text.lstrip("0") or "0"
    whole = int(sign + digits) if len(digits) < DIGITS_MAX else None
    for kind, (low, high) in INT_RANGE.items():
        if whole is not None and low <= whole <= high:
            return Literal(whole, kind)
    raise Fault(
        "L006", node.span, "the number is out of the range of BIGINT (64 bit)", "write it with a decimal point for a DOUBLE"
    )


CLAUSE_MAX = 10_000 * 36525 * 24 * 36 * 1_000_000
"""10,000 years of 365.25 days in microseconds. Timestamps are of the years 1 to 9999, so that no window or absence needs more,
and the deadline of any event, its time plus the duration, fits into 64 bits."""


def microseconds(node: syntax.Duration) -> int:
    unit = node.unit.upper
    size = UNITS.get(unit) or UNITS.get(unit.removesuffix("S"))
    if size is None or unit.endswith("SS"):
        raise Fault("L007", node.unit.span, f"'{node.unit.text}' is not a unit of time", _unit_fix(node.unit.text))
    if len(node.amount) > DIGITS_MAX or abs(Decimal(node.amount).adjusted()) > DIGITS_MAX:
        raise Fault("L007", node.span, "the duration is out of range", "use a larger unit")
    result = Fraction(Decimal(node.amount)) * size
    if result.denominator != 1:
        raise Fault("L007", node.span, "the duration is not a whole number of microseconds", "round it")
    if result > INT_RANGE[Kind.BIGINT][1]:
        raise Fault("L007", node.span, "the duration is out of range", "64 bits of microseconds are 292,000 years")
    return int(result)


def duration(node: syntax.Duration, *, zero: bool = False) -> int:
    """The microseconds of a clause's duration, which must be positive, or with `zero` not negative."""
    result = microseconds(node)
    if result <= 0 and not zero:
        raise Fault("L007", node.span, "a duration must be longer than zero", "write, for example, 5 MINUTES")
    if result > CLAUSE_MAX:
        fix = "use at most 10,000 years (521,785 WEEKS): no two timestamps are further apart"
        raise Fault("L007", node.span, "the duration is out of range", fix)
    return result


def prefixed(node: syntax.Prefixed) -> Literal:
    """`TIMESTAMP '…'`, `DATE '…'` or `INTERVAL 5 MINUTES`."""
    word = node.word.text
    if isinstance(node.operand, syntax.Duration):
        if node.word.upper != "INTERVAL":
            raise Fault(
                "L001", node.word.span, f"'{word}' is not expected here", did_you_mean(word, ("INTERVAL",), "remove it")
            )
        return Literal(microseconds(node.operand), Kind.INTERVAL)
    kind = {"TIMESTAMP": Kind.TIMESTAMP, "DATE": Kind.DATE}.get(node.word.upper)
    if kind is None:
        fix = did_you_mean(word, ("TIMESTAMP", "DATE", "LIKE", "AND", "OR"), "remove it")
        raise Fault("L001", node.word.span, f"'{word}' is not expected here", fix)
    try:
        return Literal(canonical(node.operand.value, DataType(kind)), kind)
    except (ValueError, OverflowError):
        shown = "2024-05-01T09:30:00Z" if kind is Kind.TIMESTAMP else "2024-05-01"
        fix = f"write ISO 8601, for example {kind} '{shown}'"
        raise Fault("L008", node.operand.span, f"'{node.operand.value[:40]}' is not a {kind.lower()}", fix) from None


def _unit_fix(text: str) -> str | None:
    if text.upper() in SHORT:
        return f"write {SHORT[text.upper()]}S"
    if text.upper() in UNEQUAL:
        return "write DAYS or WEEKS: months and years differ in length"
    plural = [f"{unit}S" for unit in UNITS]
    meant = closest(text, (*plural, *UNITS, *FOLLOWING))
    return f"did you mean {meant}?" if meant else f"use {listed(plural)}"
