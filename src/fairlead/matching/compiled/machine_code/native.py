"""Machine code as a function: what a process needs that finds its kernel in the cache. It makes none.

The entry point in the object code takes one pointer, to a block of 64-bit words: for each argument the address and the
lengths of an array, or a whole number; after them room for the results, which the entry point writes (object_code.py makes
it).

Takes: object code, and arguments. Gives: a tuple of whole numbers. Never: runs on an array of another type, number of
dimensions or layout than the code was made for: that would be somebody else's memory.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Iterator, Sequence
from operator import index
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from fairlead.dataclass import dataclass
from fairlead.errors import require
from fairlead.matching.compiled.machine_code.checked_build import REPORT, failure
from fairlead.matching.compiled.representation.statements import Program

ENTRY = "fairlead_kernel"
DTYPES = ("int8", "uint8", "bool", "int32", "int64", "uint64", "float64")
_header = struct.Struct("<II")
_position = struct.Struct("<H")
_elf_symbol = struct.Struct("<IBBHQQ")


@dataclass(frozen=True)
class ArrayType:
    """The type of an argument that is an array; that of a whole number is None. `width` is the length of a row: always the same
    for one program, and as a constant it makes of `a[i, 3]` one instruction."""

    dtype: str
    dimensions: int
    width: int = 1


Signature = tuple[ArrayType | None, ...]


def normal(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """NumPy's whole numbers and truth values as those of Python."""
    return tuple(each if isinstance(each, np.ndarray) else int(index(each)) for each in arguments)


def signature_of(arguments: tuple[Any, ...]) -> Signature:
    return tuple(_type_of(at, each) for at, each in enumerate(arguments))


def _type_of(at: int, given: Any) -> ArrayType | None:
    if not isinstance(given, np.ndarray):
        return None
    dtype, facts = given.dtype, {"argument": at, "dtype": given.dtype.str, "shape": given.shape}
    require(dtype.isnative and dtype.name in DTYPES, "a kernel has no such type of array", **facts)
    require(given.ndim in (1, 2), "a kernel takes arrays of one or two dimensions", **facts)
    require(given.flags.c_contiguous and given.flags.aligned, "a kernel takes arrays that lie in one piece", **facts)
    return ArrayType(dtype.name, given.ndim, given.shape[1] if given.ndim == 2 else 1)


class Native:
    """The machine code of one program for one signature. Calls release the GIL; many threads may call at once."""

    def __init__(self, payload: bytes, signature: Signature) -> None:
        results, written, code = _unpacked(payload)
        self.results = results
        self.room = [0] * results
        self.checks = [
            None if each is None else (np.dtype(each.dtype), each.dimensions, each.width, at in written)
            for at, each in enumerate(signature)
        ]
        self.engine = _engine(code)
        self.entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.engine.get_function_address(ENTRY))

    def words(self, arguments: tuple[Any, ...]) -> list[int] | None:
        """The block of words, or None if the arguments are not of the signature. Read-only arrays (Arrow's) are taken where the
        kernel only reads."""
        words: list[int] = []
        put = words.append
        try:
            for given, expected in zip(arguments, self.checks, strict=True):
                if expected is None:
                    if type(given) is not int:
                        return None
                    put(given)
                    continue
                dtype, dimensions, width, written = expected
                if given.dtype != dtype or given.ndim != dimensions or (dimensions == 2 and given.shape[1] != width):
                    return None
                shown = given.__array_interface__
                address, fixed = shown["data"]
                require(not (written and fixed), "a kernel writes only to what can be written to", shape=given.shape)
                if shown["strides"] is not None or address % dtype.itemsize:
                    return None
                put(address)
                words += given.shape
        except (AttributeError, TypeError, ValueError):
            return None
        return words

    def __call__(self, arguments: tuple[Any, ...], words: list[int]) -> tuple[int, ...]:
        """`arguments` keep the arrays alive while the code runs on their addresses."""
        block = array("q", words + self.room)
        self.entry(block.buffer_info()[0])
        return tuple(block[-self.results :])


class CheckedNative(Native):
    """That of a checked build (checked_build.py): raises InvariantError where a check failed."""

    def __init__(self, payload: bytes, signature: Signature, program: Program) -> None:
        super().__init__(payload, signature)
        self.program = program

    def __call__(self, arguments: tuple[Any, ...], words: list[int]) -> tuple[int, ...]:
        block = array("q", words + self.room + [0] * REPORT)
        self.entry(block.buffer_info()[0])
        at, what, index, length = block[-REPORT:]
        if at:
            raise failure(self.program, at, what, index, length)
        return tuple(block[-self.results - REPORT : -REPORT])


def packed(results: int, written: Sequence[int], code: bytes) -> bytes:
    """Object code, after a header: how many results it has, and which arguments it writes to."""
    return b"".join([_header.pack(results, len(written)), *map(_position.pack, written), code])


def _unpacked(payload: bytes) -> tuple[int, frozenset[int], bytes]:
    results, count = _header.unpack_from(payload)
    end = _header.size + count * _position.size
    return results, frozenset(at for (at,) in _position.iter_unpack(payload[_header.size : end])), payload[end:]


def is_loadable(payload: bytes) -> bool:
    """Every symbol that the code asks for is known to this process: LLVM ends the process at the first that is not."""
    code = llvm.ObjectFileRef.from_data(_unpacked(payload)[2])
    names = list(_undefined(code))
    if names:
        _empty_engine()  # the first one makes the process's own symbols known to LLVM
    return all(llvm.address_of_symbol(name) is not None for name in names)


def _undefined(code: Any) -> Iterator[str]:
    """The undefined symbols of an ELF object; for other formats none, they are not read."""
    sections = {each.name(): each.data() for each in code.sections()}
    names = sections.get(b".strtab", b"")
    for at, _, _, section, _, _ in _elf_symbol.iter_unpack(sections.get(b".symtab", b"")):
        if at and section == 0:
            yield names[at : names.index(b"\0", at)].decode()


def _engine(code: bytes) -> Any:
    engine = _empty_engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _empty_engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
