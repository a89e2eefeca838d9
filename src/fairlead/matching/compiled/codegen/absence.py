"""Absences as source: relations that wait for their deadline.

A relation that waits is a row of `wait`: deadline, whether it was cancelled, its key, the next one of the key and the one
before, the event that completed it, and a copy of the node of each member, so that later events can still be compared with
them. `heap` holds the rows, the earliest deadline first, and among equal ones the earliest members. Whatever tells the time
(any event of a type that the subscription reads or hears, model/clocks.py) first decides what was due before.

Takes: a shape with absences. Gives: the lines that loop.py weaves into the loop; none for a shape without.
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.search import Searching, indented
from fairlead.matching.compiled.machine_code.interruption import COUNT
from fairlead.matching.compiled.planning.shape import Lane, Shape

"""Places in `st`."""
DEADLINE, CANCELLED, KEY, NEXT, PREVIOUS, BORN, MEMBERS = range(7)
"""Columns of `wait`."""


class Waiting:
    def __init__(self, shape: Shape, layout: Layout, searching: Searching) -> None:
        self.shape, self.layout, self.searching = shape, layout, searching

    def opening(self) -> list[str]:
        return ["st[FIRED] = 0"] if self.shape.waits else []

    def closing(self) -> list[str]:
        """The end of a finite input: `until` says up to when nothing more comes."""
        return [f"free = fire(until, last, free, {FIRE})"] if self.shape.waits else []

    def on_time(self, lane: Lane) -> list[str]:
        """Whatever comes first decides what is due: by its time, if it has one, and by what its batch is told (rounds.py)."""
        if not self.shape.waits:
            return []
        due = f"st[HEAP] > 0 and wait[heap[0], {DEADLINE}] <"
        if not lane.timed:
            return [f"if len(told) > 0 and {due} told[i]:", f"    free = fire(told[i], w, free, {FIRE})"]
        return [
            "limit = tm",
            "if len(told) > 0 and told[i] > tm:",
            "    limit = told[i]",
            f"if {due} limit:",
            f"    free = fire(limit, w, free, {FIRE})",
            "if tm > st[SEEN]:",
            "    st[SEEN] = tm",
        ]

    def cancel(self, queue: int) -> list[str]:
        """The event e, noted by an absence, cancels what waits and what it forbids."""
        lines: list[str] = []
        for clause in self.shape.clauses:
            if clause.queue == queue and clause.right is None:
                lines += [
                    "row = ks[k, 2]",
                    "while row != -1:",
                    f"    {COUNT}",
                    *(f"    c{slot} = wait[row, {MEMBERS + slot}]" for slot in range(self.shape.size)),
                    f"    c{clause.slot} = e",
                    f"    if {self._forbids(clause.slot, clause.left, clause.within, clause.source)}:",
                    f"        wait[row, {CANCELLED}] = 1",
                    f"    row = wait[row, {NEXT}]",
                ]
        return lines

    def _forbids(self, slot: int, anchor: int, within: int, source: str) -> str:
        inside = f"nref[c{slot}] > nref[c{anchor}] and abs(ntime[c{slot}] - ntime[c{anchor}]) <= {within}"
        return self.searching.source(f"{inside} and ({source})", None)

    def complete(self, words: list[str], bound: int | None) -> list[str]:
        """A relation was found: copies of its nodes are made, for it may have to wait."""
        size, fields = self.shape.size, f"range({self.layout['REF']}, {self.layout.width})"
        lines: list[str] = []
        for slot in range(size):
            lines += ["if free != -1:", f"    c{slot} = free", f"    free = ni[c{slot}, NEXT]", "else:"]
            lines += [f"    c{slot} = fresh", "    fresh += 1"]
            if "BUCKET" in self.layout:  # a copy is in no chain of the hash index
                lines.append(f"ni[c{slot}, BUCKET] = -1")
            if slot == bound:
                lines += self._copied(slot)
            else:
                lines += [f"for field in {fields}:", f"    ni[c{slot}, field] = ni[members[{slot}], field]"]
        lines.append("forbidden = False")
        deadlines = []
        for clause in self.shape.clauses:
            if clause.right is None:
                node, at = f"c{clause.slot}", f"k * {self.shape.stride} + {clause.queue}"
                deadlines.append(f"ni[c{clause.left}, TIME] + {clause.within}")
                lines += [
                    f"{node} = qs[{at}, 0]",
                    f"while {node} != -1 and not forbidden:",
                    f"    {COUNT}",
                    f"    forbidden = {self._forbids(clause.slot, clause.left, clause.within, clause.source)}",
                    f"    {node} = ni[{node}, NEXT]",
                ]
        lines.append(f"due = {deadlines[0]}")
        for each in deadlines[1:]:
            lines += [f"if {each} > due:", f"    due = {each}"]
        free_copies = [line for slot in range(size) for line in (f"ni[c{slot}, NEXT] = free", f"free = c{slot}")]
        deliver = ["out_at[found] = w", "out_due[found] = due"]
        deliver += [f"out_ref[found, {slot}] = ni[c{slot}, REF]" for slot in range(size)] + ["found += 1"]
        push = [
            "row = st[WAIT_FREE]",
            "if row != -1:",
            f"    st[WAIT_FREE] = wait[row, {NEXT}]",
            "else:",
            "    row = st[WAIT_FRESH]",
            "    st[WAIT_FRESH] += 1",
            f"wait[row, {DEADLINE}] = due",
            f"wait[row, {CANCELLED}] = 0",
            f"wait[row, {KEY}] = k",
            f"wait[row, {BORN}] = w",
            f"wait[row, {NEXT}] = ks[k, 2]",
            f"wait[row, {PREVIOUS}] = -1",
            "if ks[k, 2] != -1:",
            f"    wait[ks[k, 2], {PREVIOUS}] = row",
            "ks[k, 2] = row",
            *(f"wait[row, {MEMBERS + slot}] = c{slot}" for slot in range(size)),
            "push(row, heap, wait, st, ni)",
        ]
        return [
            *lines,
            "if forbidden:",
            *indented(free_copies, 1),
            "elif st[SEEN] > due:",
            *indented([*deliver, *free_copies], 1),
            "else:",
            *indented(push, 1),
        ]

    def _copied(self, slot: int) -> list[str]:
        """The newest event's values, which are in no node yet."""
        lines = [f"ni[c{slot}, REF] = w", f"ni[c{slot}, TIME] = tm"]
        if "BITS" in self.layout:
            lines.append(f"ni[c{slot}, BITS] = b")
        for number, column in enumerate(self.shape.columns):
            if column.queue == self.shape.queue_of_slot[slot] and number in self.layout.place_of_column:
                value = f"as_bits(x{number})" if column.is_double else f"x{number}"
                lines.append(f"ni[c{slot}, {self.layout.place_of_column[number]}] = {value}")
        return lines

    def functions(self) -> list[str]:
        if not self.shape.waits:
            return []
        size = self.shape.size
        places = "\n".join(
            f"""    if ni[wait[a, {MEMBERS + slot}], REF] != ni[wait[b, {MEMBERS + slot}], REF]:
        return ni[wait[a, {MEMBERS + slot}], REF] < ni[wait[b, {MEMBERS + slot}], REF]"""
            for slot in range(size)
        )
        earlier = f"""def earlier(a, b, wait, ni):
    if wait[a, {DEADLINE}] != wait[b, {DEADLINE}]:
        return wait[a, {DEADLINE}] < wait[b, {DEADLINE}]
{places}
    return False"""
        push = """def push(row, heap, wait, st, ni):
    at = st[HEAP]
    st[HEAP] += 1
    while at > 0:
        up = (at - 1) >> 1
        if not earlier(row, heap[up], wait, ni):
            break
        heap[at] = heap[up]
        at = up
    heap[at] = row"""
        refs = "\n".join(f"            fired_ref[n, {slot}] = ni[wait[row, {MEMBERS + slot}], REF]" for slot in range(size))
        freed = "\n".join(
            f"        ni[wait[row, {MEMBERS + slot}], NEXT] = free\n        free = wait[row, {MEMBERS + slot}]"
            for slot in range(size)
        )
        fire = f"""def fire(time, word, free, {FIRE}):
    while st[HEAP] > 0 and wait[heap[0], {DEADLINE}] < time:
        {COUNT}
        row = heap[0]
        st[HEAP] -= 1
        moved = heap[st[HEAP]]
        at = 0
        while 2 * at + 1 < st[HEAP]:
            down = 2 * at + 1
            if down + 1 < st[HEAP] and earlier(heap[down + 1], heap[down], wait, ni):
                down += 1
            if not earlier(heap[down], moved, wait, ni):
                break
            heap[at] = heap[down]
            at = down
        heap[at] = moved
        k = wait[row, {KEY}]
        before, after = wait[row, {PREVIOUS}], wait[row, {NEXT}]
        if before == -1:
            ks[k, 2] = after
        else:
            wait[before, {NEXT}] = after
        if after != -1:
            wait[after, {PREVIOUS}] = before
        if wait[row, {CANCELLED}] == 0:
            n = st[FIRED]
            fired_at[n] = word
            fired_due[n] = wait[row, {DEADLINE}]
            fired_born[n] = wait[row, {BORN}]
{refs}
            st[FIRED] += 1
{freed}
        wait[row, {NEXT}] = st[WAIT_FREE]
        st[WAIT_FREE] = row
    return free"""
        return [self.layout.named(each) for each in (earlier, push, fire)]


FIRE = "heap, wait, st, ks, ni, nn, fired_at, fired_ref, fired_due, fired_born"
