"""A program to machine code, once for each: in memory, and on disk where a cache folder of ours can be written.

Takes: a program. Gives: its function `kernel`: machine code, or with FAIRLEAD_JIT=0 its text as plain Python (tests, tiny
inputs: compiling costs 0.2 to 0.4 s). The types of the arguments are known at the first call, so that is when code is looked
for: in the cache (disk_cache.py), then only loaded (native.py, 50 ms with LLVM's import); otherwise it is made
(object_code.py). With FAIRLEAD_KERNELS=checked both check every index (checked_build.py).
Never: fails because of the cache: what cannot be read or written is compiled in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.errors import require
from fairlead.matching.compiled.machine_code import disk_cache as cache
from fairlead.matching.compiled.machine_code.checked_build import CheckedArray, is_checked
from fairlead.matching.compiled.machine_code.interruption import asked
from fairlead.matching.compiled.representation.statements import Program

if TYPE_CHECKING:
    from fairlead.matching.compiled.machine_code.native import Native, Signature

Kernel = Callable[..., tuple[int, ...]]


def kernel_of(program: Program, jit: bool | None = None, checked: bool | None = None) -> Kernel:
    """The function `kernel` of a program. `jit` False: as plain Python; `checked`: with every index checked; by default as
    the environment says."""
    wanted = os.environ.get("FAIRLEAD_JIT", "1") != "0" if jit is None else jit
    return (_compiled if wanted else _interpreted)(program, is_checked(checked))


def unmade(programs: Iterable[Program]) -> tuple[int, int]:
    """Of these programs, how many have no machine code yet: those to be compiled, and those to be loaded from the cache."""
    if os.environ.get("FAIRLEAD_JIT", "1") == "0":
        return 0, 0
    wanted = [each for each in dict.fromkeys(programs) if not _compiled(each, is_checked(None)).made]
    compiled = len(cache.missing([each.text for each in wanted])) if wanted else 0
    return compiled, len(wanted) - compiled


@lru_cache(maxsize=4096)
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
    exec(compile(program.text, "<fairlead kernel>", "exec"), namespace)
    plain: Kernel = namespace["kernel"]
    names = plain.__code__.co_varnames

    def kernel(*arguments: Any) -> tuple[int, ...]:
        if checked:
            given = zip(arguments, names, strict=False)
            arguments = tuple(CheckedArray(each, name) if isinstance(each, np.ndarray) else each for each, name in given)
        with np.errstate(all="ignore"):  # machine code does not warn either
            return plain(*arguments)

    return kernel


@lru_cache(maxsize=4096)
def _compiled(program: Program, checked: bool) -> Compiled:
    return Compiled(program, checked)


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
    """1. From the cache. 2. Compiled, and kept."""
    from fairlead.matching.compiled.machine_code.native import CheckedNative, Native, is_loadable

    kept = f"{'checked ' if checked else ''}{signature}"
    payload = cache.load(program.text, kept)
    if payload is not None and is_loadable(payload):
        return CheckedNative(payload, signature, program) if checked else Native(payload, signature)

    from fairlead.matching.compiled.machine_code import object_code as emit

    payload = emit.object_code(program, signature, checked)
    require(is_loadable(payload), "machine code needs nothing that is not there", source=program.text)
    cache.store(program.text, kept, payload)
    return CheckedNative(payload, signature, program) if checked else Native(payload, signature)
