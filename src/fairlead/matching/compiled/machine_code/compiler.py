"""A program to machine code, once for each: in memory, and in the store that the process has (surroundings.py).

Takes: a program. Gives: its function `kernel`: machine code, or with FAIRLEAD_JIT=0 its text as plain Python (tests, tiny
inputs: compiling costs 0.2 to 0.4 s), unless its loops are nested deeper than Python allows. The types of the arguments are
known at the first call, so that is when code is looked for: in the store, then only loaded (native.py, 50 ms with LLVM's
import); otherwise it is made (object_code.py). With FAIRLEAD_KERNELS=checked both check every index (checked_build.py).
Never: does I/O, nor fails because of the store: what is not there is compiled in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from fairlead.errors import require
from fairlead.matching.compiled.machine_code.checked_build import CheckedArray, is_checked
from fairlead.matching.compiled.machine_code.interruption import asked
from fairlead.matching.compiled.machine_code.surroundings import surroundings
from fairlead.matching.compiled.representation.statements import Program

if TYPE_CHECKING:
    from fairlead.matching.compiled.machine_code.native import Native, Signature

Kernel = Callable[..., tuple[int, ...]]

VERSION = 6
"""Raise when other code is made of a source, or is called in another way."""


KERNELS_KEPT = 256
"""Kernels that nobody uses and that are kept in memory: a process that compiles thousands of different rules does not keep all.
One that is used is never made twice."""

_IN_USE: WeakValueDictionary[tuple[Program, bool], Compiled] = WeakValueDictionary()


def kernel_of(program: Program, jit: bool | None = None, checked: bool | None = None) -> Kernel:
    """The function `kernel` of a program. `jit` False: as plain Python; `checked`: with every index checked; by default as
    the process says."""
    wanted = surroundings().build().machine_code if jit is None else jit
    return (_compiled if wanted else _interpreted)(program, is_checked(checked))


@lru_cache(maxsize=KERNELS_KEPT)
def _compiled(program: Program, checked: bool) -> Compiled:
    """The one that somebody uses, or that was used recently."""
    found = _IN_USE.get((program, checked))
    return found or _IN_USE.setdefault((program, checked), Compiled(program, checked))


def unmade(programs: Iterable[Program]) -> tuple[int, int]:
    """Of these programs, how many have no machine code yet: those to be compiled, and those to be loaded from the store."""
    given = surroundings()
    if not given.build().machine_code:
        return 0, 0
    wanted = [each for each in dict.fromkeys(programs) if not _compiled(each, is_checked(None)).made]
    compiled = len(given.missing(_digest(each.text) for each in wanted)) if wanted else 0
    return compiled, len(wanted) - compiled


@lru_cache(maxsize=KERNELS_KEPT)
def _interpreted(program: Program, checked: bool) -> Kernel:
    namespace: dict[str, Any] = {
        "np": np,
        "prefetch": lambda value: None,
        "as_float": lambda bits: np.int64(bits).view(np.float64),
        "as_bits": lambda value: np.float64(value).view(np.int64),
        "wide": int,
        "asked": asked,
        "joined": lambda high, low: (int(high) << 64) | (int(low) & 0xFFFFFFFFFFFFFFFF),
    }
    try:
        code = compile(program.text, "<fairlead kernel>", "exec")
    except SyntaxError:  # Python nests at most 20 loops; a pattern of more events can need more
        return _compiled(program, checked)
    exec(code, namespace)
    plain: Kernel = namespace["kernel"]
    names = plain.__code__.co_varnames

    def kernel(*arguments: Any) -> tuple[int, ...]:
        if checked:
            given = zip(arguments, names, strict=False)
            arguments = tuple(CheckedArray(each, name) if isinstance(each, np.ndarray) else each for each, name in given)
        with np.errstate(all="ignore"):  # machine code does not warn either
            return plain(*arguments)

    return kernel


class Compiled:
    """A program as machine code, for each signature that it is called with: in practice one."""

    def __init__(self, program: Program, checked: bool | None = None) -> None:
        self.program, self.checked = program, is_checked(checked)
        self.last: Native | None = None
        self.made: dict[Signature, Native] = {}

    def __call__(self, *arguments: Any) -> tuple[int, ...]:
        native = self.last
        if native is not None:
            words = native.words(arguments)
            if words is not None:
                return native(arguments, words)
        return self._first(arguments)

    def _first(self, arguments: tuple[Any, ...]) -> tuple[int, ...]:
        """A call with a signature that is not that of the call before."""
        from fairlead.matching.compiled.machine_code.native import normal, signature_of

        given = normal(arguments)
        signature = signature_of(given)
        made = self.made.get(signature)
        if made is None:  # two threads may both get here: then the work is done twice, and one of the results is used
            made = self.made.setdefault(signature, _made(self.program, signature, self.checked))
        self.last = made
        words = made.words(given)
        require(words is not None, "arguments are of their own signature", signature=signature)
        return made(given, words or [])


def _made(program: Program, signature: Signature, checked: bool) -> Native:
    """1. From the store. 2. Compiled, and stored."""
    from fairlead.matching.compiled.machine_code.native import CheckedNative, Native, is_loadable

    given, kernel, called = surroundings(), _digest(program.text), f"{'checked ' if checked else ''}{signature}"
    payload = given.load(kernel, called)
    if payload is not None and is_loadable(payload):
        return CheckedNative(payload, signature, program) if checked else Native(payload, signature)

    from fairlead.matching.compiled.machine_code import object_code as emit

    payload = emit.object_code(program, signature, checked)
    require(is_loadable(payload), "machine code needs nothing that is not there", source=program.text)
    given.store(kernel, called, payload)
    return CheckedNative(payload, signature, program) if checked else Native(payload, signature)


def _digest(source: str) -> str:
    """Of all that the machine code of a source depends on, but its signature."""
    return hashlib.sha256(f"{VERSION}\n{_machine()}\n{source}".encode()).hexdigest()


@lru_cache(maxsize=1)
def _machine() -> str:
    """What decides which machine code comes out."""
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    versions = f"{llvmlite.__version__} {llvm.llvm_version_info}"
    return f"{versions} {llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features}"
