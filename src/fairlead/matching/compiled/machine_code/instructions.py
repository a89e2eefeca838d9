"""What the operators of a kernel mean, as LLVM's text: one instruction after the other for one function.

Whole numbers have 64 bits and wrap around; everything is as NumPy's numbers have it, so that the same program means the same
as plain Python: `//` and `%` round down and are 0 for a divisor of 0, comparisons with NaN are false (`!=` true), a whole
number beside a float becomes a float. Nothing here is undefined for LLVM but `int()` of a float that is out of range.
Wide numbers have 384 bits and come from `wide(…)`, `joined(high, low)` and long literals; in plain Python they are its `int`,
so they must never wrap around. They have no `//`, `%` and no way to a float: LLVM would call functions for these that a process
need not have (functions.py divides).

Takes: values of one of five types. Gives: values, and lines. Never: knows about nodes.
"""

from __future__ import annotations

import struct
from typing import NoReturn

from fairlead.dataclass import dataclass
from fairlead.errors import InvariantError
from fairlead.matching.compiled.representation.formulas import FLOAT, TRUTH, UNKNOWN, UNSIGNED, WHOLE, WIDE

LLVM = {TRUTH: "i1", WHOLE: "i64", UNSIGNED: "i64", FLOAT: "double", UNKNOWN: "i64", WIDE: "i384"}
ZERO = {TRUTH: "false", WHOLE: "0", UNSIGNED: "0", FLOAT: "0.0", UNKNOWN: "0", WIDE: "0"}
SIGNED_ORDER = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
UNSIGNED_ORDER = {"==": "eq", "!=": "ne", "<": "ult", "<=": "ule", ">": "ugt", ">=": "uge"}
FLOAT_ORDER = {"==": "oeq", "!=": "une", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
PLAIN = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
PLAIN_FLOAT = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}


@dataclass(frozen=True)
class Value:
    """An operand of LLVM's; `literal` is its number where the source spells it out."""

    code: str
    type: str
    literal: int | None = None


def literal(given: object) -> Value | None:
    """A constant of the source; None for what no kernel has."""
    match given:
        case bool():
            return Value("true" if given else "false", TRUTH)
        case int() if -(2**63) <= given < 2**63:
            return Value(str(given), WHOLE, given)
        case int() if 0 <= given < 2**64:
            return Value(str(given), UNSIGNED, given)
        case int() if 0 <= given < 2**383:
            return Value(str(given), WIDE)
        case float():
            return Value(f"0x{struct.pack('>d', given).hex()}", FLOAT)
    return None


class Operations:
    """The lines of one function, and everything that can be done to values in them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers = 0

    @property
    def line(self) -> int:
        """Of the program's text: where what is lowered stands."""
        return 0

    def refuse(self, what: str) -> NoReturn:
        raise InvariantError("X002", f"a kernel's source has what cannot be compiled: {what}", place=f"line {self.line}")

    def put(self, instruction: str) -> str:
        self.numbers += 1
        self.lines.append(f"%t{self.numbers} = {instruction}")
        return f"%t{self.numbers}"

    # Types

    def common(self, a: str, b: str) -> str:
        """The type in which two meet."""
        if a == b or b == UNKNOWN:
            return a
        if a == UNKNOWN:
            return b
        if FLOAT in (a, b) and WIDE not in (a, b):
            return FLOAT
        if WIDE in (a, b) and FLOAT not in (a, b):
            return WIDE
        if TRUTH in (a, b):
            return b if a == TRUTH else a
        return self.refuse(f"a {a} beside a {b}")

    def common_of(self, a: Value, b: Value) -> str:
        for one, other in ((a, b), (b, a)):
            if one.type == UNSIGNED and other.type == WHOLE and other.literal is not None and other.literal >= 0:
                return UNSIGNED
        return self.common(a.type, b.type)

    def converted(self, value: Value, wanted: str) -> Value:
        given = value.type
        if given == wanted or UNKNOWN in (given, wanted):
            return value if given == wanted else Value(ZERO[wanted], wanted)
        if LLVM[given] == LLVM[wanted]:
            return Value(value.code, wanted, value.literal)
        if wanted == TRUTH:
            return self.truth(value)
        if WIDE in (given, wanted):
            return self._resized(value, wanted)
        if wanted == FLOAT:
            sign = "s" if given == WHOLE else "u"
            return Value(self.put(f"{sign}itofp {LLVM[given]} {value.code} to double"), FLOAT)
        if given == TRUTH:
            return Value(self.put(f"zext i1 {value.code} to i64"), wanted)
        sign = "s" if wanted == WHOLE else "u"
        return Value(self.put(f"fpto{sign}i double {value.code} to i64"), wanted)

    def _resized(self, value: Value, wanted: str) -> Value:
        """To or from 384 bits."""
        if FLOAT in (value.type, wanted):
            self.refuse(f"a {value.type} as a {wanted}")
        if wanted != WIDE:
            return Value(self.put(f"trunc i384 {value.code} to {LLVM[wanted]}"), wanted)
        sign = "s" if value.type == WHOLE else "z"
        return Value(self.put(f"{sign}ext {LLVM[value.type]} {value.code} to i384"), WIDE)

    def joined(self, high: Value, low: Value) -> Value:
        """A wide number of two words."""
        upper = self.put(f"shl i384 {self.converted(high, WIDE).code}, 64")
        lower = self.put(f"zext i64 {self.converted(low, WHOLE).code} to i384")
        return Value(self.put(f"or i384 {upper}, {lower}"), WIDE)

    def truth(self, value: Value) -> Value:
        if value.type == TRUTH:
            return value
        test = "fcmp une" if value.type == FLOAT else "icmp ne"
        return Value(self.put(f"{test} {LLVM[value.type]} {value.code}, {ZERO[value.type]}"), TRUTH)

    def number(self, value: Value) -> Value:
        """Truth values count as 0 and 1."""
        return self.converted(value, WHOLE) if value.type == TRUTH else value

    # Operators

    def binary(self, operator: str, a: Value, b: Value) -> Value:
        if operator == "/":
            return self._plain("fdiv", self.converted(a, FLOAT), self.converted(b, FLOAT), FLOAT)
        if operator in ("<<", ">>"):
            return self._shifted(operator, self.number(a), self.number(b))
        type = self.common_of(a, b)
        if type == TRUTH and operator not in "&|^":
            type = WHOLE
        a, b = self.converted(a, type), self.converted(b, type)
        if type == FLOAT:
            if operator not in PLAIN_FLOAT:
                self.refuse(f"{operator} of floats")
            return self._plain(PLAIN_FLOAT[operator], a, b, type)
        if operator in ("//", "%") and type != WIDE:
            return self._divided(operator, a, b)
        if operator not in PLAIN:
            self.refuse(f"the operator {operator}")
        return self._plain(PLAIN[operator], a, b, type)

    def _plain(self, operation: str, a: Value, b: Value, type: str) -> Value:
        return Value(self.put(f"{operation} {LLVM[type]} {a.code}, {b.code}"), type)

    def _shifted(self, operator: str, a: Value, by: Value) -> Value:
        """By 64 bits and more nothing is left but the sign."""
        if FLOAT in (a.type, by.type):
            self.refuse(f"{operator} of floats")
        left, signed = operator == "<<", a.type != UNSIGNED
        operation = "shl" if left else "ashr" if signed else "lshr"
        if WIDE in (a.type, by.type):  # by less than 384 bits: nothing else is written
            return self._plain(operation, self.converted(a, WIDE), self.converted(by, WIDE), WIDE)
        if by.literal is not None and 0 <= by.literal < 64:
            return Value(self.put(f"{operation} i64 {a.code}, {by.code}"), a.type)
        fits = self.put(f"icmp ult i64 {by.code}, 64")
        bits = self.put(f"select i1 {fits}, i64 {by.code}, i64 63")
        made = self.put(f"{operation} i64 {a.code}, {bits}")
        return Value(made if operation == "ashr" else self.put(f"select i1 {fits}, i64 {made}, i64 0"), a.type)

    def _divided(self, operator: str, a: Value, b: Value) -> Value:
        """Rounded down. The processor traps at a divisor of 0 and at the lowest number by -1: they never get there."""
        size = b.literal
        if size is not None and size > 0 and size & (size - 1) == 0:
            shift = "ashr" if a.type == WHOLE else "lshr"
            made = f"{shift} i64 {a.code}, {size.bit_length() - 1}" if operator == "//" else f"and i64 {a.code}, {size - 1}"
            return Value(self.put(made), a.type)
        nothing = self.put(f"icmp eq i64 {b.code}, 0")
        if a.type == UNSIGNED:
            safe = self.put(f"select i1 {nothing}, i64 1, i64 {b.code}")
            made = self.put(f"{'udiv' if operator == '//' else 'urem'} i64 {a.code}, {safe}")
            return Value(self.put(f"select i1 {nothing}, i64 0, i64 {made}"), UNSIGNED)
        minus = self.put(f"icmp eq i64 {b.code}, -1")
        safe = self.put(f"select i1 {self.put(f'or i1 {nothing}, {minus}')}, i64 1, i64 {b.code}")
        quotient, rest = self.put(f"sdiv i64 {a.code}, {safe}"), self.put(f"srem i64 {a.code}, {safe}")
        unlike = self.put(f"icmp slt i64 {self.put(f'xor i64 {rest}, {safe}')}, 0")
        down = self.put(f"and i1 {unlike}, {self.put(f'icmp ne i64 {rest}, 0')}")
        if operator == "%":
            return Value(self.put(f"add i64 {rest}, {self.put(f'select i1 {down}, i64 {safe}, i64 0')}"), WHOLE)
        floor = self.put(f"sub i64 {quotient}, {self.put(f'zext i1 {down} to i64')}")
        known = self.put(f"select i1 {nothing}, i64 0, i64 {floor}")
        return Value(self.put(f"select i1 {minus}, i64 {self.put(f'sub i64 0, {a.code}')}, i64 {known}"), WHOLE)

    def compared(self, sign: str, a: Value, b: Value) -> Value:
        type = self.common_of(a, b)
        if type == TRUTH:
            type = WHOLE
        a, b = self.converted(a, type), self.converted(b, type)
        if type == FLOAT:
            return Value(self.put(f"fcmp {FLOAT_ORDER[sign]} double {a.code}, {b.code}"), TRUTH)
        order = UNSIGNED_ORDER if type == UNSIGNED else SIGNED_ORDER
        return Value(self.put(f"icmp {order[sign]} {LLVM[type]} {a.code}, {b.code}"), TRUTH)

    def negative(self, value: Value) -> Value:
        value = self.number(value)
        if value.literal is not None and value.literal <= 2**63:
            return Value(str(-value.literal), WHOLE, -value.literal)
        if value.type == FLOAT:
            return Value(self.put(f"fneg double {value.code}"), FLOAT)
        return Value(self.put(f"sub {LLVM[value.type]} 0, {value.code}"), value.type)

    def inverted(self, value: Value) -> Value:
        if value.type in (FLOAT, TRUTH, WIDE):
            self.refuse(f"~ of a {value.type}")
        return Value(self.put(f"xor i64 {value.code}, -1"), value.type)

    def denied(self, value: Value) -> Value:
        return Value(self.put(f"xor i1 {self.truth(value).code}, true"), TRUTH)

    def chosen(self, test: Value, a: Value, b: Value) -> Value:
        type = self.common_of(a, b)
        a, b = self.converted(a, type), self.converted(b, type)
        return Value(self.put(f"select i1 {test.code}, {LLVM[type]} {a.code}, {LLVM[type]} {b.code}"), type)

    # Functions

    def extreme(self, sign: str, values: list[Value]) -> Value:
        """`min` and `max`, which keep what they have unless the next is beyond it: so also beside NaN."""
        best = self.number(values[0])
        for each in values[1:]:
            best = self.chosen(self.compared(sign, self.number(each), best), self.number(each), best)
        return best

    def size(self, value: Value) -> Value:
        value = self.number(value)
        if value.type == FLOAT:
            return Value(self.put(f"call double @llvm.fabs.f64(double {value.code})"), FLOAT)
        if value.type == UNSIGNED:
            return value
        if value.type == WIDE:
            return self.chosen(self.compared("<", value, Value("0", WIDE)), self.negative(value), value)
        return Value(self.put(f"call i64 @llvm.abs.i64(i64 {value.code}, i1 false)"), WHOLE)

    def remainder(self, a: Value, b: Value) -> Value:
        """`np.fmod`."""
        return self._plain("frem", self.converted(a, FLOAT), self.converted(b, FLOAT), FLOAT)

    def as_float(self, bits: Value) -> Value:
        return Value(self.put(f"bitcast i64 {self.converted(bits, WHOLE).code} to double"), FLOAT)

    def as_bits(self, value: Value) -> Value:
        return Value(self.put(f"bitcast double {self.converted(value, FLOAT).code} to i64"), WHOLE)

    def asked(self, address: Value) -> Value:
        """What the function at this address returns (interruption.py)."""
        place = self.put(f"inttoptr i64 {self.converted(address, WHOLE).code} to ptr")
        return Value(self.put(f"call i64 {place}()"), WHOLE)
