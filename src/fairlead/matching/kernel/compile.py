"""Source to machine code, once for each source: in memory, and on disk where a cache folder of ours can be written.

Takes: a Shape. Gives: the kernel function: compiled, or with FAIRLEAD_JIT=0 the same source as plain Python (tests, tiny
inputs: compiling costs about a second). Only what numba cannot see by itself is in the name of a cached file (see cache.py);
its own index does the rest. Never: fails because of the cache: what cannot be read or written is compiled in memory.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from fairlead.matching.kernel import cache
from fairlead.matching.kernel.parts import Shape
from fairlead.matching.kernel.source import kernel_source

Kernel = Callable[..., tuple[int, int]]

OPTIONS = (
    "nogil=True, boundscheck=False, error_model='numpy', fastmath=False, no_rewrites=True, no_cfunc_wrapper=True, _nrt=False"
)
"""No array is made in a kernel, so reference counts (_nrt) and wrappers that nobody calls would only be compiled for nothing:
together they are half of the compile time."""


def kernel_of(shape: Shape, jit: bool | None = None) -> Kernel:
    """The kernel of a shape. `jit` False: as plain Python; by default as the environment says."""
    wanted = os.environ.get("FAIRLEAD_JIT", "1") != "0" if jit is None else jit
    source = kernel_source(shape)
    return _compiled(source) if wanted else _interpreted(source)


@lru_cache(maxsize=4096)
def _interpreted(source: str) -> Kernel:
    namespace: dict[str, Any] = {"np": np}
    exec(compile(source, "<fairlead kernel>", "exec"), namespace)
    plain: Kernel = namespace["kernel"]

    def kernel(*arguments: Any) -> tuple[int, int]:
        with np.errstate(all="ignore"):  # machine code does not warn either
            return plain(*arguments)

    return kernel


@lru_cache(maxsize=4096)
def _compiled(source: str) -> Kernel:
    text = decorated(source)
    path = cache.file_for(text)
    if path is None:
        return _in_memory(text)
    return _Guarded(text, path)


class _Guarded:
    """A kernel with its cache on disk; a cache that turns out to be broken, full or forbidden is left alone."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.path = text, path
        self.function: Kernel | None = None

    def __call__(self, *arguments: Any) -> tuple[int, int]:
        if self.function is None:
            self.function = self._ready(arguments)
        return self.function(*arguments)

    def _ready(self, arguments: tuple[Any, ...]) -> Kernel:
        from numba import typeof

        try:
            kernel = _run(self.text, self.path)["kernel"]
            kernel.enable_caching()
            kernel.compile(tuple(typeof(each) for each in arguments))  # type: ignore[no-untyped-call]
        except Exception:  # whatever a damaged or forbidden cache makes of it; a mistake of ours comes again below
            return _in_memory(self.text)
        return kernel  # type: ignore[no-any-return]


def _in_memory(text: str) -> Kernel:
    return _run(text, f"<kernel {hashlib.sha256(text.encode()).hexdigest()[:24]}>")["kernel"]  # type: ignore[no-any-return]


def _run(text: str, path: str) -> dict[str, Any]:
    """The text as a module. numba's cache looks the module up by its name again."""
    module = ModuleType(f"fairlead_{Path(path).stem}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module.__dict__


def decorated(source: str) -> str:
    """The source with every function for numba; only `kernel` is called from Python."""
    parts = ("\n" + source).split("\ndef ")[1:]
    made = ["import numpy as np\nfrom numba import njit\n"]
    made += [f"\n@njit({OPTIONS}, no_cpython_wrapper={not part.startswith('kernel(')})\ndef {part}\n" for part in parts]
    return "\n".join(made)
