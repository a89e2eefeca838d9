"""Room for what a kernel writes of relations with runs, what it wrote as members, and what it keeps of queues.

Takes: a pool, before and after a call of the kernel. Gives: arrays, then `MemberWords`. Never: runs the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.matching.compiled.codegen.counters import WRITTEN
from fairlead.matching.compiled.codegen.runs.kept_values import KeptCode
from fairlead.matching.compiled.codegen.runs.run_words import DIFFERENT, OUT_LENGTHS, OUT_MEMBERS
from fairlead.matching.compiled.machine_code.checked_build import unwritten
from fairlead.matching.compiled.machine_code.compiler import kernel_of
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.running.pool import Pool
from fairlead.matching.results.member_words import MemberWords

if TYPE_CHECKING:
    from fairlead.matching.compiled.running.branch import KernelBranch

EACH, ROOM = 4, 1 << 16
"""Words that there is room for, for each row and at least, beside the members of one relation. Pages that nobody writes to cost
nothing."""
VALUES = 1 << 10
"""Different values that there is room for at least."""


def room_for_runs(shape: Shape, pool: Pool, rows: int, queues: int, checked: bool) -> dict[str, Any]:
    """The arguments of a call over so many rows, each of which enters so many queues. The first row finds room for all members
    that its relation can have; a row that finds none begins the next call."""
    words = pool.queued_count() + queues + shape.size + max(EACH * rows, ROOM)
    made = {
        OUT_MEMBERS.name: unwritten(words, np.int64, checked),
        OUT_LENGTHS.name: unwritten((rows, shape.size), np.int64, checked),
    }
    if shape.runs.counts_different:
        pool.room_to_count(pool.queued_count() + queues + VALUES)
        made[DIFFERENT.name] = pool.different
    return made


def room_to_keep(kernel: KernelBranch, queues: int) -> None:
    """For the different values that are kept of queues: a table that is too small for what is queued is made anew."""
    pool, tables = kernel.pool, kernel.source.accesses.kept.tables
    values = tables * (pool.queued_count() + queues)
    if 2 * values > len(pool.kept_table) or (tables and not len(pool.kept_table)):
        pool.kept_table = np.zeros((1 << (4 * (values + VALUES)).bit_length(), 2), dtype=np.int64)
        recount(kernel)


def recount(kernel: KernelBranch) -> None:
    """What is kept of the queues of runs, from what is queued."""
    pool, kept = kernel.pool, kernel.source.accesses.kept
    if not kept:
        return
    pool.kept[:] = 0
    pool.kept_table[:] = 0
    if 2 * kept.tables * pool.queued_count() > len(pool.kept_table):
        return  # there will be more room before the next batch
    if pool.queued_count():
        program = KeptCode(kernel.shape, kernel.source.accesses, kernel.source.layout).recount()
        given = pool.arguments()
        kernel_of(program, checked=kernel.checked)(*(given[each.name] for each in program.functions[0].parameters))


def gathered_members(given: Mapping[str, Any], pool: Pool, found: int) -> MemberWords:
    words = given[OUT_MEMBERS.name][: int(pool.counters[WRITTEN])].copy()
    return MemberWords.of_lengths(words, given[OUT_LENGTHS.name][:found])
