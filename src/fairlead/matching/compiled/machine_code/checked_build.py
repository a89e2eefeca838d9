"""The checked build of kernels: slower, for tests and fuzzers. FAIRLEAD_KERNELS=checked switches it on.

Machine code then compares every index with the length of its array before it uses it, and every whole number that it reads
with the one that unwritten memory is filled with: instead of reading memory that is not its own or that nobody wrote, it
stops, and the call raises InvariantError (X003) with the function, the place in the source, the index and the length. Kernels
as plain Python (FAIRLEAD_JIT=0) check their indexes: Python would take a negative one from the end.

Without it, the same program becomes the same machine code as if this module were not there.

Gives: whether the build is checked, memory that is not written yet, arrays that check their indexes, and the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairlead.errors import InvariantError
from fairlead.matching.compiled.machine_code.surroundings import surroundings

if TYPE_CHECKING:
    from fairlead.matching.compiled.representation.statements import Program

POISON = 0x7A
"""Every byte of memory that nobody wrote: as an index it is out of range, as a link no node."""
OUTSIDE, UNWRITTEN = 1, 2
"""What was wrong."""
REPORT = 4
"""Words of a report: the place in the source (0: nothing is wrong), what was wrong, the index and the length."""
_LINE = 20


def is_checked(checked: bool | None = None) -> bool:
    """By default as the process says."""
    return surroundings().build().checked if checked is None else checked


def unwritten(shape: int | tuple[int, ...], dtype: Any, checked: bool | None = None) -> npt.NDArray[Any]:
    """An array that its owner writes before reading it."""
    made: npt.NDArray[Any] = np.empty(shape, dtype=dtype)
    if is_checked(checked):
        made.view(np.uint8).fill(POISON)
    return made


def poison_of(dtype: str) -> int | None:
    """What an element of unwritten memory reads as; None where that is an ordinary value."""
    size = {"int32": 4, "int64": 8, "float64": 8}.get(dtype)
    return None if size is None else int.from_bytes(bytes([POISON]) * size, "little")


def site(line: int, ordinal: int) -> int:
    """A place in a program as one number: the line of its text, and which element of an array it is there."""
    return line << _LINE | ordinal


def failure(program: Program, at: int, what: int, index: int, length: int) -> InvariantError:
    from fairlead.matching.compiled.representation.contents import elements_in
    from fairlead.matching.compiled.representation.text import statements_by_line, text_of

    line, ordinal = at >> _LINE, at & (1 << _LINE) - 1
    for number, function, statement in statements_by_line(program):
        if number == line and statement is not None:
            text = text_of(elements_in(statement)[ordinal])
            problem = f"index {index} of {length}" if what == OUTSIDE else "memory that nobody wrote"
            return _error(function.name, line, text, problem)
    return _error("kernel", line, "?", f"what line {line} of its source has not")


def _error(name: str, line: int, text: str, problem: str) -> InvariantError:
    return InvariantError(
        "X003",
        f"a kernel reads or writes {problem}: {text} in {name}",
        place=f"line {line} of the kernel's source",
        fix="please report this with the rule and the events",
    )


class CheckedArray:
    """An array for a kernel that runs as plain Python."""

    def __init__(self, array: npt.NDArray[Any], name: str) -> None:
        self.array, self.name, self.shape = array, name, array.shape

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Any:
        self._check(index)
        return self.array[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check(index)
        self.array[index] = value

    def _check(self, index: Any) -> None:
        given = index if isinstance(index, tuple) else (index,)
        for each, length in zip(given, self.shape, strict=True):
            if not 0 <= each < length:
                raise _error("plain Python", 0, f"{self.name}{list(map(int, given))}", f"index {each} of {length}")
