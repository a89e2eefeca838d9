"""The searches of a branch as source: nested loops over the slots, each over the events that its index gives.

The newest event is bound to its slot beforehand and not queued yet: its values are the arguments `w` (its place), `b` (bits),
`bk` (its number in the hash index) and `x0, x1, …`. For `MATCH A a AND B b WHERE a.x < b.x` under FIRST, when a B arrives:

    def search_1(k, w, x1, qs, ni, nf, si, sf, members):
        at = k * 2 + 0
        x = sortable((x1), si, sf)
        c0 = seek_lt(qs[at, 0], x, qs[at, 3], ni, nn, tt)
        while c0 != -1:
            if nf[c0, 8] < x1:
                members[0] = c0
                return True
            c0 = seek_lt(ni[c0, 0], x, qs[at, 3], ni, nn, tt)
        return False

Where THEN orders slots that are still open, the lowest event that each can have follows from those before it (under RECENT
the highest from those behind it): `l0, l1, …` are found first, and if one is missing there is no relation at all.

Takes: a shape, its accesses and layout. Gives: source. Never: changes a queue.
"""

from __future__ import annotations

import re

from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.ordered_index import key_of, seek_name
from fairlead.matching.compiled.codegen.reduced_search import Semijoins
from fairlead.matching.compiled.machine_code.interruption import COUNT, STEP
from fairlead.matching.compiled.planning.access import Access, Accesses
from fairlead.matching.compiled.planning.shape import Clause, Shape

STATE = ("free", "fresh", "qs", "bs", "gs", "ni", "nn", "tt", "bb", "fr", "st", "rank", "sc", "rt", "members")


def indented(lines: list[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


class Searching:
    def __init__(self, shape: Shape, accesses: Accesses, layout: Layout) -> None:
        self.shape, self.accesses, self.layout = shape, accesses, layout
        self.step, self.end = ("PREV", 1) if shape.recent else ("NEXT", 0)
        self.calls: dict[str, str] = {}
        self.semijoins = Semijoins(shape, accesses, layout)

    def sources(self) -> list[str]:
        """The search functions; `calls` then says how each is called."""
        made = []
        for newest in self.accesses.searches():
            name, (body,) = "search_free" if newest is None else f"search_{newest}", self.semijoins.stated([self._body(newest)])
            own = [f"x{at}" for at, column in enumerate(self.shape.columns) if column.queue == newest]
            given = ["k", *(() if newest is None else ("w", "b", "bk", *own)), *STATE]
            words = set(re.findall(r"\w+", body))
            read = [each for each in given if each in words]
            self.calls[name] = f"{name}({', '.join(read)})"
            made.append(f"def {self.calls[name]}:\n{body}")
        return made

    def source(self, text: str, newest: int | None) -> str:
        """A piece of source over `v0[c1]`, `nref[c1]`, `nbits[c1]`, `ntime[c1]`, the newest event's values as arguments."""
        bound = None if newest is None else self.shape.newest_slot(newest)

        def value(found: re.Match[str]) -> str:
            column, slot = int(found[1]), int(found[2])
            if slot == bound:
                return f"x{column}"
            stored = f"ni[c{slot}, {self.layout.place_of_column[column]}]"
            return f"as_float({stored})" if self.shape.columns[column].is_double else stored

        def word(found: re.Match[str]) -> str:
            slot = int(found[2])
            if slot == bound:
                return {"ref": "w", "bits": "b", "time": "tm"}[found[1]]
            return f"ni[c{slot}, {self.layout[found[1].upper()]}]"

        text = re.sub(r"\bv(\d+)\[c(\d+)\]", value, text)
        return re.sub(r"\bn(ref|bits|time)\[c(\d+)\]", word, text)

    def _body(self, newest: int | None) -> str:
        shape = self.shape
        lines = indented([*self._opening(newest), *self.semijoins.opening(newest)], 1)
        depth = 1
        closers: list[list[str]] = []
        inner = False
        for slot in range(shape.size):
            access = self.accesses.of(slot, newest)
            tests = [self.source(f"({each.source})", newest) for each in self.accesses.tests_left(slot, newest)]
            tests += self._order_tests(slot, newest)
            if access.way == "newest":
                lines += indented([f"if {' and '.join(tests) or 'True'}:"], depth)
                depth += 1
                closers.append([])
                continue
            if slot in self.accesses.chosen_bits:
                tests.insert(0, f"(ni[c{slot}, {self.layout['BITS']}] >> {slot}) & 1")
            start, advance = self._walk(access, newest)
            once = access.way == "neighbour"
            bounded = self.semijoins.step(newest) if inner and not once else []
            # the innermost loop only counts: asking would cost it a tenth
            last = slot == max(self.opened(newest)) and all(each.right is None for each in shape.clauses)
            innermost = last and not once and not bounded
            counted = ["walked += 1"] if innermost else [] if once else bounded or [*STEP, "    return False"]
            lines += indented([*start, *(["walked = 0"] if innermost else []), f"while c{slot} != -1:"], depth)
            lines += indented(counted, depth + 1)
            inner = inner or not once
            lines += indented(self._ends(slot, newest), depth + 1)
            lines += indented([f"if {' and '.join(tests) or 'True'}:"], depth + 1)
            final = not self.accesses.depends(slot, newest) and not once
            closers.append(
                [
                    *(indented(["break"], depth + 2) if final else []),
                    *indented(["break"] if once else advance, depth + 1),
                    *indented(["st[STEPS] -= walked"] if innermost else [], depth),
                ]
            )
            depth += 2
        for clause in shape.clauses:
            if clause.right is not None:
                lines += indented(self._unspoilt(clause, newest), depth)
                depth += 1
        found = [
            f"members[{slot}] = c{slot}" for slot in range(shape.size) if newest is None or slot != shape.newest_slot(newest)
        ]
        lines += indented([*found, "return True"], depth)
        for closer in reversed(closers):
            lines += closer
        return self.layout.named("\n".join([*lines, "    return False"]))

    def _opening(self, newest: int | None) -> list[str]:
        """What the newest event alone decides, and the ends between which THEN leaves the open slots."""
        lines: list[str] = []
        if newest is not None:
            bound = self.shape.newest_slot(newest)
            if bound in self.accesses.chosen_bits:
                lines += [f"if not (b >> {bound}) & 1:", "    return False"]
            for each in self.accesses.tests_at(-1, newest):
                lines += [f"if not ({self.source(each.source, newest)}):", "    return False"]
        for slot in self.timely(newest):
            limits = [f"l{other}" for other in self.ahead(slot, newest)]
            queue = self.shape.queue_of_slot[slot]
            before = slot - 1
            if self.shape.follows(slot) and before in self.timely(newest):
                start = f"ni[l{before}, {self.step}]"
            else:
                start = f"qs[k * {self.shape.stride} + {queue}, {self.end}]"
            lines.append(f"l{slot} = {start}")
            for limit in limits:
                lines.append(f"l{slot} = past(l{slot}, ni[{limit}, REF], qs[k * {self.shape.stride} + {queue}, 3], ni, nn, tt)")
            lines += [f"if l{slot} == -1:", "    return False"]
        return lines

    def opened(self, newest: int | None) -> set[int]:
        return set(range(self.shape.size)) - (set() if newest is None else {self.shape.newest_slot(newest)})

    def ahead(self, slot: int, newest: int | None) -> list[int]:
        """The open slots that have to stand before this one (behind it under RECENT)."""
        pairs = [(o.after, o.before) if not self.shape.recent else (o.before, o.after) for o in self.shape.orders]
        return sorted({other for mine, other in pairs if mine == slot and other in self.opened(newest)})

    def timely(self, newest: int | None) -> list[int]:
        """The slots whose lowest event matters, in an order in which each comes after those it depends on."""
        needed = {slot for slot in self.opened(newest) if self.ahead(slot, newest)}
        while True:
            more = {other for slot in needed for other in self.ahead(slot, newest)}
            more |= {slot - 1 for slot in needed if self.shape.follows(slot) and slot - 1 in self.opened(newest)}
            if more <= needed:
                break
            needed |= more
        done: list[int] = []
        while len(done) < len(needed):
            ready = [
                slot
                for slot in sorted(needed - set(done))
                if set(self.ahead(slot, newest)) <= set(done)
                and (not self.shape.follows(slot) or slot - 1 not in needed or slot - 1 in done)
            ]
            if not ready:  # THEN in a circle: no relation; the loops find that out
                return []
            done += ready
        return done

    def _walk(self, access: Access, newest: int | None) -> tuple[list[str], list[str]]:
        """How a slot's loop begins, and how it goes on."""
        shape, slot = self.shape, access.slot
        queue, follows = shape.queue_of_slot[slot], shape.follows(slot)
        after_newest = follows and newest is not None and slot - 1 == shape.newest_slot(newest)
        where = f"k * {shape.stride} + {queue}"
        if access.way == "hash":
            return self._chain(access, newest, follows, after_newest)
        if access.way == "neighbour" and not follows:
            back = shape.newest_slot(queue) - slot - 1
            return [f"c{slot} = qs[{where}, 1]", *[f"c{slot} = ni[c{slot}, PREV]"] * back], []
        if follows and not after_newest:
            start = f"ni[c{slot - 1}, {self.step}]"
        elif slot in self.timely(newest) and access.way != "neighbour":
            start = f"l{slot}"
        else:
            start = f"qs[{where}, {self.end}]"
        lines = [f"c{slot} = {start}"]
        if access.way != "neighbour":
            if follows and not after_newest and slot in self.timely(newest):
                behind = ">" if shape.recent else "<"
                lines += [f"if c{slot} != -1 and ni[c{slot}, REF] {behind} ni[l{slot}, REF]:", f"    c{slot} = l{slot}"]
            lines += [
                f"c{slot} = past(c{slot}, ni[c{other}, REF], qs[{where}, 3], ni, nn, tt)"
                for other in self.ahead(slot, newest)
                if other < slot
            ]
        if access.bound is None:
            return lines, [f"c{slot} = ni[c{slot}, {self.step}]"]
        bound, column = access.bound, self.shape.columns[access.bound.column]
        value = self.source(bound.value, newest)
        seek, x = seek_name(bound.sign), f"x_{slot}"
        lines.append(f"{x} = {key_of(value, column.is_double, bound.sign)}")
        found = f"c{slot} = {seek}(c{slot}, {x}, qs[{where}, 3], ni, nn, tt)"
        if follows or slot in self.timely(newest):
            lines.append(found)
        else:  # nothing in the queue is below its least key: `gs` has it, or something below it
            sign = "<=" if bound.sign.endswith("=") else "<"
            if not shape.recent:
                first = seek.replace("seek", "first")
                found = f"c{slot} = {first}({where}, {x}, qs, ni, nn, tt, fr, st)"
            tighten = [f"if c{slot} == -1:", f"    gs[{where}] = least({where}, qs, ni, nn, tt)"]
            lines += [f"if gs[{where}] {sign} {x}:", *indented([found, *tighten], 1), "else:", f"    c{slot} = -1"]
        if column.is_double:
            lines += [f"if ({value}) != ({value}):", f"    c{slot} = -1"]
        return lines, [f"c{slot} = {seek}(ni[c{slot}, {self.step}], {x}, qs[{where}, 3], ni, nn, tt)"]

    def _chain(self, access: Access, newest: int | None, follows: bool, after_newest: bool) -> tuple[list[str], list[str]]:
        """Along the events of the queue that have the partner's number."""
        shape, slot, partner = self.shape, access.slot, access.partner
        queue = shape.queue_of_slot[slot]
        step = "BPREV" if shape.recent else "BNEXT"
        is_newest = newest is not None and partner == shape.newest_slot(newest)
        number = "bk" if is_newest else f"ni[c{partner}, BUCKET]"
        advance = [f"c{slot} = ni[c{slot}, {step}]"]
        if follows and not after_newest and slot - 1 in shape.equal_slots:
            return [f"c{slot} = ni[c{slot - 1}, {step}]"], advance
        lines = [f"n = {number}", f"c{slot} = bs[n * {shape.stride} + {queue}, {self.end}] if n >= 0 else -1"]
        if follows and not after_newest:
            sign = ">=" if shape.recent else "<="
            skipped = [*(self.semijoins.step(newest) or [COUNT]), *advance]
            lines += [f"while c{slot} != -1 and ni[c{slot}, REF] {sign} ni[c{slot - 1}, REF]:", *indented(skipped, 1)]
        return lines, advance

    def _order_tests(self, slot: int, newest: int | None) -> list[str]:
        """What THEN asks of this slot and those bound before it; the newest event stands after all others anyway."""
        opened = self.opened(newest)
        return [
            f"ni[c{o.before}, REF] < ni[c{o.after}, REF]"
            for o in self.shape.orders
            if {o.before, o.after} <= opened and max(o.before, o.after) == slot
        ]

    def _ends(self, slot: int, newest: int | None) -> list[str]:
        """Where THEN ends a loop: further events only stand further behind (or ahead) of one that is bound."""
        lines = []
        if self.shape.recent:
            others = [o.before for o in self.shape.orders if o.after == slot and o.before < slot]
        else:
            others = [o.after for o in self.shape.orders if o.before == slot and o.after < slot]
        sign = "<=" if self.shape.recent else ">="
        for other in sorted(set(others) & self.opened(newest)):
            lines += [f"if ni[c{slot}, REF] {sign} ni[c{other}, REF]:", "    break"]
        return lines

    def _unspoilt(self, clause: Clause, newest: int | None) -> list[str]:
        """What is indented below is reached if no noted event forbids the members."""
        assert clause.right is not None
        at, node = f"k * {self.shape.stride} + {clause.queue}", f"c{clause.slot}"
        left, right = (self.source(f"nref[c{each}]", newest) for each in (clause.left, clause.right))
        return [
            f"{node} = after(qs[{at}, 0], {left}, qs[{at}, 3], ni, nn, tt)",
            f"while {node} != -1 and ni[{node}, REF] < {right} and not ({self.source(clause.source, newest)}):",
            f"    {COUNT}",
            f"    {node} = ni[{node}, NEXT]",
            f"if {node} == -1 or ni[{node}, REF] >= {right}:",
        ]
