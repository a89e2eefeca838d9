"""What the process provides for kernels: a store for machine code, and which build is wanted.

The core touches no disk and reads no environment. On its own it keeps machine code in memory (compiler.py) until the process
ends. `fairlead/__init__.py`, which every process runs before any other module of Fairlead, provides the user's cache on disk
and the switches of the environment (runtime/user_cache.py).

Takes: a function that makes an object with these four methods. Gives: that object, made when the first kernel needs it. Never:
fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol


class Build(NamedTuple):
    """Which kernels to make: machine code, or the same source as plain Python; and whether every index is checked."""

    machine_code: bool = True
    checked: bool = False


class Surroundings(Protocol):
    """`kernel` is a digest of everything the machine code depends on except the signature, so a stored payload stays valid on
    every machine. No method raises: what cannot be loaded is compiled, what cannot be stored is not."""

    def build(self) -> Build: ...

    def load(self, kernel: str, signature: str) -> bytes | None:
        """Exactly the bytes that were stored, or None."""

    def store(self, kernel: str, signature: str, payload: bytes) -> None: ...

    def missing(self, kernels: Iterable[str]) -> list[str]:
        """Those with nothing stored for any signature: what has to be compiled. Payloads are not read."""


class MemoryOnly:
    """No store: machine code lives as long as the process."""

    def build(self) -> Build:
        return Build()

    def load(self, kernel: str, signature: str) -> bytes | None:
        return None

    def store(self, kernel: str, signature: str, payload: bytes) -> None:
        pass

    def missing(self, kernels: Iterable[str]) -> list[str]:
        return list(kernels)


_given: list[Surroundings] = []
_make: Callable[[], Surroundings] = MemoryOnly


def give(make: Callable[[], Surroundings]) -> None:
    """Use what `make` returns from now on. It is called for the first kernel: a process without kernels does not load it."""
    global _make
    _make = make
    _given.clear()


def surroundings() -> Surroundings:
    if not _given:  # two threads may both get here: then two are made, which are alike, and the first is used
        _given.append(_make())
    return _given[0]
