"""A program and a signature to object code. Only a process that does not find its kernel in the cache imports this.

lowering.py makes text for LLVM of the program; here it gets an entry point over a block of words (see native.py), is optimized
and becomes machine code for this processor. Floats are added and multiplied one by one, as written: nothing is fused.

Takes: a program whose `kernel` returns a tuple of whole numbers. Gives: object code that needs nothing
but the C library's mathematics to run. Never: runs it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from fairlead.matching.compiled.machine_code.lowering import Module
from fairlead.matching.compiled.machine_code.native import ENTRY, Signature, packed
from fairlead.matching.compiled.machine_code.value_lowering import Made
from fairlead.matching.compiled.representation.formulas import WHOLE
from fairlead.matching.compiled.representation.statements import Program

SPEED = 2
"""LLVM's level of optimization."""


def object_code(program: Program, signature: Signature, checked: bool = False) -> bytes:
    module = Module(program, checked)
    made = module.kernel([WHOLE if each is None else each for each in signature])
    module.texts.append(_entry(made, signature, checked))
    machine = _machine()
    optimized = llvm.parse_assembly(f'target datalayout = "{machine.target_data}"\n{module.text()}', llvm.create_context())
    optimized.triple = machine.triple
    optimized.verify()
    builder = llvm.create_pass_builder(machine, _tuning())
    passes = builder.getModulePassManager()
    passes.run(optimized, builder)
    return packed(made.results, made.written, machine.emit_object(optimized))


def _entry(made: Made, signature: Signature, checked: bool) -> str:
    """Takes the block apart and calls `kernel`, which writes its results after the arguments, and what a checked build reports
    after these."""
    lines, passed, words = [], [], 0
    for each in signature:
        count = 1 if each is None else 1 + each.dimensions
        for at, is_pointer in enumerate((each is not None, False)[: min(count, 2)]):
            item, name = "ptr" if is_pointer else "i64", f"%w{words + at}"
            lines += [
                f"{name}.p = getelementptr inbounds i64, ptr %block, i64 {words + at}",
                f"{name} = load {item}, ptr {name}.p",
            ]
            passed.append(f"{item} {name}")
        words += count
    lines += [f"%results = getelementptr inbounds i64, ptr %block, i64 {words}", "ret void"]
    passed.append("ptr %results")
    if checked:
        lines.insert(-1, f"%report = getelementptr inbounds i64, ptr %block, i64 {words + made.results}")
        passed.append("ptr %report")
    lines.insert(-1, f"call void @{made.name}({', '.join(passed)})")
    return "\n".join([f"define void @{ENTRY}(ptr %block) nounwind {{", *lines, "}"])


@lru_cache(maxsize=1)
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=cpu, features=features, opt=SPEED, jit=True)


def _tuning() -> Any:
    options = llvm.create_pipeline_tuning_options(SPEED)
    options.loop_vectorization = options.slp_vectorization = False
    return options
