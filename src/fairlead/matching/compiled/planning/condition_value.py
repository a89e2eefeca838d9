"""A value in a condition of a kernel: an expression, when it is there, and how large it can be.

A DECIMAL is a whole number at a scale: of 64 bits while it has at most 18 digits, else *wide* (instructions.py), with at most
114. The definition rounds results to 38 digits (DECIMAL_CONTEXT); where a result can have more, so does the kernel.

Takes: values. Gives: values. Raises `Refused` for numbers of more than 114 digits, and for too large an expression.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from fairlead.matching.compiled.planning.shape import Refused
from fairlead.matching.compiled.representation.contents import size
from fairlead.matching.compiled.representation.formulas import (
    FALSE,
    HIGHEST,
    Binary,
    Constant,
    Formula,
    all_of,
    call,
    intrinsic,
)
from fairlead.model.events.types import Kind
from fairlead.model.events.values import DECIMAL_CONTEXT
from fairlead.model.expressions.expression import Literal

LOWEST = -HIGHEST - 1
DIGITS_OF_A_WORD = 18
"""Decimal digits that always fit into 64 bits."""
DIGITS_MAX = 114
"""Decimal digits that always fit into 383 bits and a sign: three times the 38 of a DECIMAL, so that any product of two can be
compared with any third."""
DIGITS_OF_A_RESULT = DECIMAL_CONTEXT.prec
DIGITS_OF_A_DOUBLE = 15
SIZE_MAX = 11_000
"""Nodes. A value that is also tested for NULL stands more than once, so values nested in one another grow by a factor
a level, `((((a = b) = c) = d) = e)` by 3. 5,500 take 3 s to compile, 17,000 take 12 s."""


@dataclass(frozen=True)
class ConditionValue:
    """`code` has a value where all of `known` and `soft` hold; `bits`: a whole number is at most 2 ** bits in size."""

    code: Formula
    known: tuple[Formula, ...] = ()
    soft: tuple[Formula, ...] = ()
    bits: int = 64
    digits: int = 0
    scale: int = 0
    """Of a DECIMAL: it is a whole number of at most so many digits, at this scale."""
    wide: bool = False

    def __post_init__(self) -> None:
        if size(self.code) + sum(map(size, self.known)) > SIZE_MAX:
            raise Refused("a condition whose source becomes too long")

    @property
    def is_known(self) -> Formula:
        return all_of(*self.known, *self.soft)

    @property
    def widened(self) -> ConditionValue:
        return self if self.wide else replace(self, code=intrinsic("wide", self.code), wide=True)


def checked(value: ConditionValue) -> ConditionValue:
    if value.digits > DIGITS_MAX:
        raise Refused(f"a DECIMAL that can have more than {DIGITS_MAX} digits across events")
    return value


def at_one_scale(values: Sequence[ConditionValue]) -> list[ConditionValue]:
    """Comparable as whole numbers, all of one size."""
    common = max(value.scale for value in values)
    made = [_scaled(value, common) for value in values]
    return [value.widened for value in made] if any(value.wide for value in made) else made


def _scaled(value: ConditionValue, scale: int) -> ConditionValue:
    if scale == value.scale:
        return value
    more = scale - value.scale
    made = checked(replace(value, digits=value.digits + more, scale=scale))
    made = made.widened if made.digits > DIGITS_OF_A_WORD else made
    return replace(made, code=made.code * 10**more)


def combined(operator: str, left: ConditionValue, right: ConditionValue) -> ConditionValue:
    """`+ - *` of two DECIMALs; `helpers` of what it needs: `rounded`, where the result can have more than 38 digits."""
    if operator == "*":
        digits, scale = left.digits + right.digits, left.scale + right.scale
    else:
        left, right = at_one_scale([left, right])
        digits, scale = max(left.digits, right.digits) + 1, left.scale
    wide = left.wide or right.wide or digits > DIGITS_OF_A_WORD
    one, two = (left.widened, right.widened) if wide else (left, right)
    code: Formula = Binary(operator, one.code, two.code)
    if digits > DIGITS_OF_A_RESULT:
        code = call("rounded", code)
    known, soft = (*left.known, *right.known), (*left.soft, *right.soft)
    return checked(ConditionValue(code, known, soft, digits=digits, scale=scale, wide=wide))


def constant(node: Literal) -> ConditionValue:
    value: Any = node.value
    if value is None:
        return ConditionValue(Constant(0.0 if node.kind is Kind.DOUBLE else 0), (FALSE,), bits=0)
    if node.kind is Kind.DOUBLE:
        return ConditionValue(_double(value))
    if node.kind is Kind.DECIMAL:
        digits, scale = _digits_of(value)
        made = ConditionValue(_whole(int(value.scaleb(scale, DECIMAL_CONTEXT))), digits=digits, scale=scale)
        return checked(made.widened if digits > DIGITS_OF_A_WORD else made)
    return ConditionValue(LOWEST if value == -(2**63) else _whole(value), bits=abs(int(value)).bit_length())


def _double(value: float) -> Formula:
    if value != value:
        return Constant(math.inf) - Constant(math.inf)
    return -Constant(-value) if math.copysign(1.0, value) < 0 else Constant(value)


def _whole(value: int) -> Formula:
    return -Constant(-value) if value < 0 else Constant(value)


def _digits_of(value: Decimal) -> tuple[int, int]:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    return len(str(abs(int(value.scaleb(scale, DECIMAL_CONTEXT))))), scale
