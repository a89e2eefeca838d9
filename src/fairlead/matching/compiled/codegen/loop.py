"""A branch as source code: one loop over the rows of a batch, with everything that happens to an event in it.

For an event of lane l, in the order of matching/interpreted/conjunction.py: its values are read from the columns of the lane;
the window moves; a relation with it is searched (search.py); what a match disposes of leaves; the event is queued unless it
left with the match; noted events that can forbid nothing any more are forgotten. Relations of absences wait (absence.py).

Queues are doubly linked lists of nodes (node_layout.py), one for each key and type, numbered key * queues + queue: `qs` has
their first node, last node, length, the root of their ordered index and their row. `ks` has the clock of each key, its flags
(bit 0: a relation without the newest event may be ready; bit 1: some queue is not in the order of time), what waits, and a time
before which nothing is queued. `bs` has the chains of the hash index. `st` carries the free list and other counters from call
to call.

Takes: a Shape. Gives: `Source`: text to compile, and the names of the arguments. Never: compiles or runs it.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from fairlead.dataclass import dataclass
from fairlead.matching.compiled.codegen.absence import Waiting
from fairlead.matching.compiled.codegen.counters import counted
from fairlead.matching.compiled.codegen.disposal import Disposing
from fairlead.matching.compiled.codegen.functions import HELPERS
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.ordered_index import (
    SORTABLE,
    WORST,
    key_of,
    past_source,
    row_name,
    row_source,
    seek_source,
    tree_source,
)
from fairlead.matching.compiled.codegen.queues import Queues
from fairlead.matching.compiled.codegen.search import Searching, indented
from fairlead.matching.compiled.machine_code.interruption import HALTED, STEP
from fairlead.matching.compiled.planning.access import Accesses, can_be_loose, leaves_loose
from fairlead.matching.compiled.planning.shape import Lane, Shape, every_bit
from fairlead.matching.compiled.representation.parsing import parsed
from fairlead.matching.compiled.representation.statements import Program
from fairlead.model.plan import Disposal

NUMBER = [
    "v = k",
    "k = kt[v - kbase]",
    "if k < 0:",
    "    k = st[KEYS]",
    "    st[KEYS] += 1",
    "    kt[v - kbase] = k",
    "    kb[k] = v",
]
"""A key that is a whole number, as its number: from a table, where they lie close together (keys.py)."""
AHEAD = 8
"""How many rows ahead the memory of a key is fetched: by the time its row comes, it is there."""


@dataclass(frozen=True)
class Source:
    program: Program
    arguments: tuple[str, ...]
    layout: Layout
    accesses: Accesses
    plans: npt.NDArray[np.int64]
    """Of the reduced searches (reduced_search.py); empty where there are none."""

    @property
    def text(self) -> str:
        return self.program.text


def bucket_name(name: str, number: int) -> str:
    """The argument with the numbers of one value of the hash index, of those that events of a lane have."""
    return f"{name}_{number}" if number else name


def source_of(shape: Shape, paired: bool) -> Source:
    """`paired`: rows come as pairs of row and instance (see family.py), not as whole batches."""
    accesses = Accesses(shape)
    layout = Layout(shape, accesses)
    return _Loop(shape, accesses, layout, paired).source()


class _Loop:
    def __init__(self, shape: Shape, accesses: Accesses, layout: Layout, paired: bool) -> None:
        self.shape, self.accesses, self.layout, self.paired = shape, accesses, layout, paired
        self.searching = Searching(shape, accesses, layout)
        self.waiting = Waiting(shape, layout, self.searching)
        self.queues = Queues(shape, accesses, layout)
        self.disposing = Disposing(shape, self.queues)

    def source(self) -> Source:
        searches = self.searching.sources()
        self.layout.rowed = any(f"{row_name(sign)}(" in each for each in searches for sign in ("<", "<="))
        loop = self._loop()
        semijoins = self.searching.semijoins
        parts = [*searches, *semijoins.stated(semijoins.functions()), *self.waiting.functions(), loop]
        used = "\n".join(parts)
        if self.layout.rowed:
            rows = [row_source(self.layout, sign) for sign in ("<", "<=") if f"{row_name(sign)}(" in used]
            parts += rows
            used += "".join(rows)
        signs = sorted({each for each in ("seek_lt", "seek_le") if f"{each}(" in used})
        parts += [seek_source(self.layout, "<=" if each.endswith("le") else "<", self.shape.recent) for each in signs]
        if "past(" in used:
            parts.append(past_source(self.layout, "past", self.shape.recent))
        if "after(" in used:
            parts.append(past_source(self.layout, "after", False))
        parts += tree_source(self.layout) if self.accesses.trees else []
        parts.append(HALTED)
        parts += [SORTABLE] if "sortable(" in used else []
        parts += self.queues.functions()
        parts += [HELPERS[name] for name in self.shape.helpers]
        text = counted("\n\n".join(parts))
        arguments = self._arguments(text)
        return Source(
            parsed(text.replace("def kernel():", f"def kernel({', '.join(arguments)}):")),
            arguments,
            self.layout,
            self.accesses,
            semijoins.table,
        )

    def _arguments(self, text: str) -> tuple[str, ...]:
        body = text[text.index("def kernel():") :].split("\n\ndef ")[0]
        names = ["p_lane", "p_inner", "p_key", "p_word", "p_bits"] if self.paired else ["codes", "local", "words"]
        names += [bucket_name("p_bucket", n) for n in range(self.shape.equal_most)] if self.paired else []
        for at, lane in enumerate(self.shape.lanes):
            names += [f"time{at}", f"key{at}", f"bits{at}"]
            names += [bucket_name(f"bucket{at}", n) for n in range(len(self.shape.equal_of(lane)))]
            names += [f"in{at}_{c}" for c, column in enumerate(self.shape.columns) if column.queue in lane.queues]
        names += [
            "told",
            "rank",
            "ni",
            "nn",
            "tt",
            "bb",
            "qs",
            "ks",
            "bs",
            "gs",
            "fr",
            "wait",
            "heap",
            "st",
            "sc",
            "rt",
            "members",
            "kt",
            "kb",
        ]
        names += [
            "out_at",
            "out_ref",
            "out_key",
            "out_due",
            "fired_at",
            "fired_ref",
            "fired_due",
            "fired_born",
            "base",
            "kbase",
            "within",
            "until",
            "last",
        ]
        read = set(re.findall(r"\w+", body))
        return tuple(name for name in names if name in read)

    # The loop

    def _loop(self) -> str:
        lines = ["def kernel():", "    found = 0", "    free = st[FREE]", "    fresh = st[FRESH]"]
        lines += indented(self.waiting.opening(), 1)
        stop = indented([*STEP, "    break"], 2)
        if self.paired:
            lines += ["    for i in range(len(p_lane)):", *stop, "        lane = p_lane[i]", "        j = p_inner[i]"]
        else:
            lines += [f"    j{at} = 0" for at in range(len(self.shape.lanes))]
            lines += ["    for i in range(len(codes)):", *stop, "        lane = local[codes[i]]"]
        for at, lane in enumerate(self.shape.lanes):
            lines += indented([f"{'if' if at == 0 else 'elif'} lane == {at}:", *indented(self._lane(at, lane), 1)], 2)
        lines += indented(self.waiting.closing(), 1)
        lines += ["    st[FREE] = free", "    st[FRESH] = fresh", "    return found, 0"]
        return self.layout.named("\n".join(lines))

    def _lane(self, at: int, lane: Lane) -> list[str]:
        shape = self.shape
        lines = [] if self.paired else [f"j = j{at}", f"j{at} += 1"]
        lines.append("w = p_word[i]" if self.paired else "w = words[i] if len(words) > 0 else base + (i << 21)")
        if shape.windowed or shape.waits:
            lines.append(f"tm = time{at}[j]" if lane.timed else "tm = 0")
        lines += self.waiting.on_time(lane)
        if not lane.queues:
            return lines
        lines += self._read(at, lane)
        lines.append("new = not late" if shape.windowed and self._notes(lane) else "")
        if len(lane.queues) > 1:
            lines += self._into_several(lane)
        elif lane.queues[0] >= len(shape.needed):
            lines += self._note(lane.queues[0])
        else:
            lines += self._into_one(lane.queues[0])
        lines += self.disposing.forget()
        return [line for line in lines if line]

    def _notes(self, lane: Lane) -> bool:
        return any(queue >= len(self.shape.needed) for queue in lane.queues)

    def _read(self, at: int, lane: Lane) -> list[str]:
        """The event's values; what no queue accepts, or has no key, goes no further."""
        shape = self.shape
        if self.paired:
            lines = ["b = p_bits[i]", "k = p_key[i]"]
        else:
            every = every_bit(shape, lane)
            lines = [f"b = bits{at}[j] if len(bits{at}) > 0 else {every}", f"k = key{at}[j]" if lane.key else "k = 0"]
            if self.shape.whole_key is not None:
                lines += ["if len(kt) > 0:", *indented([*NUMBER, *self._ahead(at)], 1)]
        lines += ["if b == 0 or k < 0:" if lane.key or self.paired else "if b == 0:", "    continue"]
        for number, column in enumerate(shape.columns):
            if column.queue in lane.queues:
                lines.append(f"x{number} = in{at}_{number}[j]")
        for number in range(len(shape.equal_of(lane))):
            name, row = ("p_bucket", "i") if self.paired else (f"bucket{at}", "j")
            lines.append(f"bk{number or ''} = {bucket_name(name, number)}[{row}]")
        if shape.windowed:
            late = ["late = False"] if self._notes(lane) else []
            too_late = ["    late = True"] if self._notes(lane) else ["    continue"]
            lines += [
                *late,
                "rising = tm > ks[k, 0]",
                "if rising:",
                "    ks[k, 0] = tm",
                "    if ks[k, 3] < tm - within:",
                f"        free = expire(k, tm - within, free, ks, {self.queues.state()})",
                "elif tm < ks[k, 0] - within:",
                *too_late,
            ]
        return lines

    def _ahead(self, at: int) -> list[str]:
        """What an event a few rows on will read is fetched already: which lane is next, no processor can foresee."""
        stride = self.shape.stride
        fetched = [f"prefetch(qs[v * {stride}, 0])", *(["prefetch(ks[v, 0])"] if self.shape.windowed else [])]
        fetched += [f"prefetch(gs[v * {stride}])"] if self.layout.rowed else []
        return [
            f"if j + {AHEAD} < len(key{at}):",
            f"    v = kt[key{at}[j + {AHEAD}] - kbase]",
            "    if v >= 0:",
            *indented(fetched, 2),
        ]

    def _into_one(self, queue: int) -> list[str]:
        """An event that can only be a member, of one queue: it is queued after the search, if it stays."""
        shape = self.shape
        hit, loose = self._hit(queue), can_be_loose(shape)
        enter = self._enter_alive(queue)
        if not self.accesses.is_possible(queue):
            return self._loosely(queue, enter) if loose else enter
        keeps = shape.disposal is Disposal.FIRST_PREFIX and shape.needed[queue] > 1
        bound = [
            f"if {self._enough(queue)} and {self.searching.calls[f'search_{queue}']}:",
            *indented([*hit, *self.disposing.with_newest(queue), *(["ks[k, 1] |= 1"] if leaves_loose(shape) else [])], 1),
            *indented([*(self._enter(queue) if keeps else []), *self._trim(), *self._note_oldest()], 1),
            *(["else:", *indented(enter, 1)]),
        ]
        return self._loosely(queue, bound) if loose else bound

    def _loosely(self, queue: int, otherwise: list[str]) -> list[str]:
        """Where a relation without the newest event may be ready, it is queued first and everything is searched."""
        return [
            "if ks[k, 1] & 1:",
            *indented([*self._enter(queue), *self._search_free(), *self._trim()], 1),
            "else:",
            *indented(otherwise, 1),
        ]

    def _search_free(self) -> list[str]:
        shape = self.shape
        enough = " and ".join(f"qs[k * {shape.stride} + {at}, 2] >= {n}" for at, n in enumerate(shape.needed))
        return [
            f"if {enough} and {self.searching.calls['search_free']}:",
            *indented(
                [*self._hit(None), *self.disposing.among_queued(), *(["ks[k, 1] |= 1"] if leaves_loose(shape) else [])], 1
            ),
            "else:",
            "    ks[k, 1] &= ~1",
        ]

    def _into_several(self, lane: Lane) -> list[str]:
        """An event that can be noted too, or enter several queues: then it is queued first and everything is searched."""
        shape = self.shape
        members = [queue for queue in lane.queues if queue < len(shape.needed)]
        new = "new and " if shape.windowed and self._notes(lane) else ""
        tests = {queue: f"(b >> {shape.accept_bit(lane, queue)}) & 1" for queue in lane.queues}
        notes = []
        for queue in lane.queues:
            if queue >= len(shape.needed):
                notes += [f"if {tests[queue]}:", *indented(self._note(queue), 1)]
        if len(members) < 2:
            return [*notes, *(line for q in members for line in (f"if {new}{tests[q]}:", *indented(self._into_one(q), 1)))]
        lines = ["entered = False"]
        for queue in members:
            bucket = self._bucket(lane, queue)
            lines += [f"if {new}{tests[queue]}:", *indented([*self._enter(queue, bucket), "entered = True"], 1)]
        return [*lines, *notes, "if entered:", *indented([*self._search_free(), *self._trim()], 1)]

    def _note(self, queue: int) -> list[str]:
        return [*self._enter(queue), *self.waiting.cancel(queue)]

    def _enough(self, newest: int) -> str:
        """Every queue has as many events as instances are needed, the newest event counted."""
        stride = self.shape.stride
        counts = [(at, n - 1 if at == newest else n) for at, n in enumerate(self.shape.needed)]
        return " and ".join(f"qs[k * {stride} + {at}, 2] >= {n}" for at, n in counts if n) or "True"

    def _bucket(self, lane: Lane, queue: int) -> str:
        """The number of the event in the hash index of a queue; in a lane of one queue it is `bk`."""
        values = self.shape.equal_of(lane)
        return f"bk{values.index(self.shape.equal[queue]) or ''}" if queue in self.shape.equal else "-1"

    def _enter(self, queue: int, bucket: str = "bk") -> list[str]:
        """A node for the event at the end of a queue."""
        shape, layout = self.shape, self.layout
        lines = ["if free != -1:", "    e = free", "    free = ni[e, NEXT]", "else:", "    e = fresh", "    fresh += 1"]
        lines.append("ni[e, REF] = w")
        if "TIME" in layout:
            lines.append("ni[e, TIME] = tm")
        if "BITS" in layout:
            lines.append("ni[e, BITS] = b")
        if "BUCKET" in layout:
            lines.append(f"ni[e, BUCKET] = {bucket if queue in shape.equal else '-1'}")
        for number, column in enumerate(shape.columns):
            if column.queue == queue and number in layout.place_of_column:
                value = f"as_bits(x{number})" if column.is_double else f"x{number}"
                lines.append(f"ni[e, {layout.place_of_column[number]}] = {value}")
        if "KEY" in layout:
            lines += self._key(queue)
        if shape.windowed and queue < len(shape.needed):
            tail = f"qs[k * {shape.stride} + {queue}, 1]"
            lines += [f"if not rising and {tail} != -1 and ni[{tail}, TIME] > tm:", "    ks[k, 1] |= 2"]
            lines += ["if tm < ks[k, 3]:", "    ks[k, 3] = tm"]
        indexed = "True" if queue in self.accesses.trees else "False"
        if tree := self.accesses.trees.get(queue):
            at = f"k * {shape.stride} + {queue}"
            if tree.column is not None:
                lines += [f"if qs[{at}, 2] == 0 or key < gs[{at}]:", f"    gs[{at}] = key"]
        return [*lines, f"link(e, k * {shape.stride} + {queue}, {indexed}, {self.queues.state()})"]

    def _enter_alive(self, queue: int) -> list[str]:
        """Queued only if it can still be a member: the newest event stands behind all that are queued."""
        needs = dict(self.queues.needs).get(queue)
        if needs is None:
            return self._enter(queue)
        stride = self.shape.stride
        met = " or ".join(" and ".join(f"qs[k * {stride} + {at}, 2] >= {n}" for at, n in each) for each in needs)
        return [f"if {met}:", *indented(self._enter(queue), 1)]

    def _note_oldest(self) -> list[str]:
        """What left may have been the oldest of its key: the next event need not look for what falls behind the window."""
        if not self.shape.windowed:
            return []
        lines = []
        for queue in range(len(self.shape.needed)):
            head = f"qs[k * {self.shape.stride} + {queue}, 0]"
            lines += [f"c = {head}", "if c != -1 and ni[c, TIME] < oldest:", "    oldest = ni[c, TIME]"]
        return ["if not ks[k, 1] & 2:", *indented(["oldest = 9223372036854775807", *lines, "ks[k, 3] = oldest"], 1)]

    def _trim(self) -> list[str]:
        return [f"free = trim(k, free, {self.queues.state()})"] if self.queues.needs else []

    def _key(self, queue: int) -> list[str]:
        tree = self.accesses.trees.get(queue)
        if tree is None or tree.column is None:
            return ["ni[e, KEY] = 0", "ni[e, HIGH] = 0"]
        column = self.shape.columns[tree.column]
        value = key_of(f"x{tree.column}", column.is_double, tree.sign)
        tests = [f"(b >> {tree.slot}) & 1 != 0"] if tree.slot in self.accesses.chosen_bits else []
        tests += [f"x{tree.column} == x{tree.column}"] if column.is_double else []
        key = f"{value} if {' and '.join(tests)} else {WORST}" if tests else value
        return [f"key = {key}", "ni[e, KEY] = key", "ni[e, HIGH] = key >> 32"]

    # Matches

    def _hit(self, newest: int | None) -> list[str]:
        """The relation as a row of places, or as something that waits for its deadline."""
        bound = None if newest is None else self.shape.newest_slot(newest)
        words = ["w" if slot == bound else f"ni[members[{slot}], REF]" for slot in range(self.shape.size)]
        if self.shape.waits:
            return self.waiting.complete(words, bound)
        which = ["out_key[found] = k"] if self.paired else []
        return [
            "out_at[found] = w",
            *which,
            *(f"out_ref[found, {slot}] = {each}" for slot, each in enumerate(words)),
            "found += 1",
        ]
