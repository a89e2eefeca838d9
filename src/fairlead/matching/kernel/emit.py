"""Source and signature to object code, by numba. Only a process that does not find its kernel in the cache imports this.

numba compiles each function apart, optimizes it, makes machine code of it and wrappers around it, and all of that again for
the function that calls it. Here a function is only typed and lowered (a pipeline of numba's own passes); all of them come
together in one LLVM module with one entry point over a block of words (see native.py), which is optimized once. That
takes 10 to 20 % less CPU than numba's own way (three types in a window: 1.5 s instead of 1.7 s); what is left is about 0.4 s
for importing and starting numba, 0.8 s for typing and lowering, 0.2 s for LLVM.

Takes: functions at the left margin, of which `kernel` returns a tuple of whole numbers. Gives: object code for this processor
that needs nothing of Python or numba to run. Never: runs it.
"""

# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any

from __future__ import annotations

from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import _dynfunc, njit, types  # type: ignore[attr-defined, unused-ignore]
from numba.core import cgutils, codegen, compiler, typed_passes, untyped_passes
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from fairlead.matching.kernel.native import ENTRY, Array, Signature, packed

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "boundscheck": False,
    "error_model": "numpy",
    "fastmath": False,
    "no_rewrites": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
    "forceinline": True,
}
"""No array is made in a kernel and nothing is raised, so there are no reference counts (_nrt) and no runtime to call."""
WORD = ir.IntType(64)


def plain(source: str) -> Any:
    """`kernel` as numba's own function, in memory."""
    return _functions(source, OPTIONS)["kernel"]


@global_compiler_lock
def object_code(source: str, signature: Signature) -> bytes:
    kernel = _functions(source, {**OPTIONS, "no_cpython_wrapper": True, "pipeline_class": _Pipeline})["kernel"]
    argument_types = tuple(_numba_type(each) for each in signature)
    kernel.compile(argument_types)
    made = kernel.overloads[argument_types]
    results = len(made.fndesc.restype)
    library = made.library
    library.finalize()
    module = library._final_module
    module.link_in(_parsed(_entry(made.target_context, made.fndesc)))
    for each in [*module.functions, *module.global_variables]:
        if not each.is_declaration and each.name != ENTRY:
            each.linkage = "internal"
    passes, builder = library.codegen._module_pass_manager()
    passes.run(module, builder)
    module.verify()
    return packed(results, library.codegen._tm.emit_object(module))


def _functions(source: str, options: dict[str, Any]) -> dict[str, Any]:
    """The names of the source, every function for numba: they find each other there."""
    namespace: dict[str, Any] = {"np": np, "__name__": "fairlead_kernel"}
    source += "\n\ndef as_float(bits):\n    return np.int64(bits).view(np.float64)"
    source += "\n\ndef as_bits(value):\n    return np.float64(value).view(np.int64)"
    exec(compile(source, "<fairlead kernel>", "exec"), namespace)
    namespace.update({name: njit(**options)(each) for name, each in namespace.items() if isinstance(each, FunctionType)})
    return namespace


def _numba_type(given: Array | None) -> Any:
    if given is None:
        return types.int64
    return types.Array(from_dtype(np.dtype(given.dtype)), given.dimensions, "C")


def _entry(context: Any, described: Any) -> Any:
    """An LLVM module with the entry point: takes the block apart, calls `kernel`, writes the results behind it."""
    module = context.create_module("fairlead_entry")
    kernel_type = context.call_conv.get_function_type(described.restype, described.argtypes)
    kernel = ir.Function(module, kernel_type, described.llvm_func_name)
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD.as_pointer()]), ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    places = (builder.gep(entry.args[0], [WORD(at)]) for at in range(1 << 16))
    values = []
    for each in described.argtypes:
        first = builder.load(next(places))
        if not isinstance(each, types.Array):
            values.append(first)
            continue
        item = context.get_data_type(each.dtype)
        size = context.get_abi_sizeof(item)
        shape = [builder.load(next(places)) for _ in range(each.ndim)]
        strides = [WORD(size)] if each.ndim == 1 else [builder.mul(shape[1], WORD(size)), WORD(size)]
        rebuilt = make_array(each)(context, builder)
        data = builder.inttoptr(first, item.as_pointer())
        populate_array(rebuilt, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        values.append(rebuilt._getvalue())
    _, returned = context.call_conv.call_function(builder, kernel, described.restype, described.argtypes, values)
    for at, each in enumerate(described.restype):
        builder.store(context.cast(builder, builder.extract_value(returned, at), each, types.int64), next(places))
    builder.ret_void()
    return module


def _parsed(module: Any) -> Any:
    return llvm.parse_assembly(cgutils.normalize_ir_text(str(module)))


class _Library(codegen.CPUCodeLibrary):
    """Functions that are only collected: nothing is optimized across them or made to machine code before all are there."""

    def finalize(self) -> None:
        for each in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(each._get_module_for_linking(), preserve=True)
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(typed_passes.NativeLowering):
    _name = "fairlead_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        described = lowered.fndesc
        # numba knows a compiled function by an object that Python could call: this one never is, its address is 0
        known_by = _dynfunc.make_function(
            described.lookup_module(), described.qualname, "", 0, lowered.env, (state.library,)
        )  # fmt: skip
        state.targetctx.insert_user_function(known_by, described, [state.library])
        state["cr"] = lowered._replace(cfunc=known_by)
        return True


class _Pipeline(compiler.CompilerBase):
    """Of numba's passes those that plain loops over arrays need; left out are closures, literals, inlining, rewriting."""

    def define_pipelines(self) -> list[Any]:
        passes = PassManager("fairlead kernel")
        for each in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.ReconstructSSA,
            typed_passes.NopythonTypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.NoPythonSupportedFeatureValidation,
            typed_passes.IRLegalization,
            typed_passes.AnnotateTypes,
            _Lowering,
            typed_passes.NoPythonBackend,
        ):
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]
