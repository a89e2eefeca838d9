"""Room for what a kernel writes of relations with runs, and what it wrote as members.

Takes: a pool, before and after a call of the kernel. Gives: arrays, then `MemberWords`. Never: runs the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlead.matching.compiled.codegen.counters import WRITTEN
from fairlead.matching.compiled.codegen.runs.run_words import DIFFERENT, OUT_LENGTHS, OUT_MEMBERS
from fairlead.matching.compiled.machine_code.checked_build import unwritten
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.compiled.running.pool import Pool
from fairlead.matching.results.member_words import MemberWords

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


def gathered_members(given: Mapping[str, Any], pool: Pool, found: int) -> MemberWords:
    words = given[OUT_MEMBERS.name][: int(pool.counters[WRITTEN])].copy()
    return MemberWords.of_lengths(words, given[OUT_LENGTHS.name][:found])
