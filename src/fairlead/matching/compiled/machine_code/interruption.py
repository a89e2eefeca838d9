"""How a long-running kernel is interrupted: it asks periodically whether to continue, and stops at once if not.

Python runs its signal handlers between its own instructions only, so Ctrl-C waits while machine code runs. A kernel therefore
counts its steps (`count_step` in its loops) and calls back every EVERY of them. Entering the interpreter is what lets a signal
handler run, on the main thread; on any thread `check` can look whether the work should end. What either of them
raises ends the kernel: its loops return, and the exception propagates from the call of the kernel.

Takes: a check, or None. Gives: the address that kernels call, and what was raised. Never: leaves a state that can be used: a
kernel that stopped has handled part of its batch (engine.py refuses further events).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fairlead.matching.compiled.codegen.counters import ASK, STEPS, STOPPED, counter
from fairlead.matching.compiled.codegen.kernel_names import COUNTERS
from fairlead.matching.compiled.representation.code import Code
from fairlead.matching.compiled.representation.formulas import Formula, all_of, call, intrinsic
from fairlead.matching.compiled.representation.statements import KernelFunction

Words = npt.NDArray[np.int64]

Check = Callable[[], None]
"""Raises to end the work. Called between two steps of a search, some ten times a second at least."""

EVERY = 1 << 22
"""Steps between two questions. A step takes 2 to 10 nanoseconds, with DECIMALs up to 100: so 10 to 400 milliseconds. A question
takes one microsecond, and up to five milliseconds where another thread is in the interpreter."""
ONWARDS = 0x5EAF00D
"""The answer with which a kernel continues. If the call itself fails, its result is arbitrary, but hardly this number."""


def count_step(code: Code) -> None:
    """One step."""
    code.decrease(counter("STEPS"))


def is_halted() -> Formula:
    """Whether the kernel has to stop, asked after a step."""
    return all_of(counter("STEPS") < 0, call("halted", COUNTERS))


def halted() -> KernelFunction:
    return _halted(EVERY)


@lru_cache(maxsize=4)
def _halted(every: int) -> KernelFunction:
    code = Code()
    with code.when(counter("STOPPED") == 0):
        code.assign(counter("STEPS"), every)
        with code.when(all_of(counter("ASK") != 0, intrinsic("asked", counter("ASK")) != ONWARDS)):
            code.assign(counter("STOPPED"), 1)
    with code.when(counter("STOPPED") != 0):
        code.assign(counter("STEPS"), 0)
    code.give(counter("STOPPED") != 0)
    return code.function("halted", COUNTERS, rare=True)


Callback = ctypes.CFUNCTYPE(ctypes.c_int64)


class Interruption:
    """What the kernels of one engine call."""

    def __init__(self, check: Check | None = None) -> None:
        self.raised: list[BaseException] = []
        answers = _answers(check, self.raised)
        next(answers)
        self._callback = Callback(answers.__next__)
        self._address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def begin(self, st: Words) -> None:
        """Before a kernel is called with these counters."""
        st[ASK], st[STEPS], st[STOPPED] = self._address, EVERY, 0

    def end(self, st: Words) -> None:
        """After it. Raises what stopped it."""
        if st[STOPPED]:
            raise self.raised.pop() if self.raised else KeyboardInterrupt


def asked(address: int) -> int:
    """The question, where a kernel runs as plain Python."""
    return int(Callback(int(address))())


def _answers(check: Check | None, raised: list[BaseException]) -> Generator[int, None, None]:
    """A generator and no function: a signal handler runs before the first instruction of a function, where nothing could catch
    what it raises, but inside the `try` in which a generator resumes. (ctypes would print it and continue.)"""
    answer = ONWARDS
    while True:
        try:
            while True:
                yield answer
                if check is not None:
                    check()
        except GeneratorExit:
            return
        except BaseException as error:
            raised.append(error)
            answer = 0
