"""Queues as source: an event is linked at the end, a stretch leaves, what falls behind a window expires, what can be in no
relation to come is trimmed.

Takes: a shape, its accesses and layout. Gives: functions as source, and how they are called. Never: decides what leaves after a
match (disposal.py).
"""

from __future__ import annotations

from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.codegen.ordered_index import BUILD, KEEP, ROW, ROW_DROP, ROW_LINK
from fairlead.matching.compiled.codegen.search import indented
from fairlead.matching.compiled.machine_code.interruption import COUNT
from fairlead.matching.compiled.planning.access import Accesses
from fairlead.matching.compiled.planning.shape import Shape
from fairlead.matching.interpreted.precedence import is_circular, needs_in_front


class Queues:
    def __init__(self, shape: Shape, accesses: Accesses, layout: Layout) -> None:
        self.shape, self.accesses, self.layout = shape, accesses, layout
        self.needs = needs_in_front(shape.branch)

    def functions(self) -> list[str]:
        made = [self._link(), self._drop()]
        made += [self._trim_function()] if self.needs else []
        made += [self._expire()] if self.shape.windowed else []
        return [self.layout.named(each) for each in made]

    def state(self) -> str:
        """The arrays that these functions take."""
        chains = ["bs", "bb"] if self.shape.equal else []
        rows = ["fr"] if self.layout.rowed else []
        return ", ".join(["qs", *chains, "ni", "nn", *(["tt"] if self.accesses.trees else []), *rows, "st"])

    def leave(self, queue: int, first: str, last: str) -> str:
        return f"free = drop({first}, {last}, k * {self.shape.stride} + {queue}, free, {self.state()})"

    def _link(self) -> str:
        """An event without a value (NULL, NaN) is in no chain of the hash index: its links lead nowhere."""
        chain = (
            f"""
    n = ni[e, BUCKET]
    if n >= 0:
        n = n * {self.shape.stride} + at % {self.shape.stride}
        ni[e, BPREV] = bs[n, 1]
        ni[e, BNEXT] = -1
        if bs[n, 1] == -1:
            bs[n, 0] = e
        else:
            ni[bs[n, 1], BNEXT] = e
        bs[n, 1] = e
    else:
        ni[e, BPREV] = -1
        ni[e, BNEXT] = -1"""
            if self.shape.equal
            else ""
        )
        tree = (
            f"""
    if qs[at, 3] != -1:
        attach(e, at, qs, ni, nn, tt)
    elif indexed and qs[at, 2] > {BUILD}:
        built(at, qs, ni, nn, tt)"""
            if self.accesses.trees
            else ""
        )
        row = ROW_LINK.replace("ROW", str(ROW)) if self.layout.rowed else ""
        return f"""def link(e, at, indexed, {self.state()}):
    before = qs[at, 1]
    ni[e, PREV] = before
    ni[e, NEXT] = -1
    if before == -1:
        qs[at, 0] = e
    else:
        ni[before, NEXT] = e
    qs[at, 1] = e
    qs[at, 2] += 1
    st[QUEUED] += 1{chain}{tree}{row}"""

    def _drop(self) -> str:
        """Takes a stretch of a queue, from `first` to `last`, out of it."""
        chain = (
            f"""
        n = ni[c, BUCKET]
        if n >= 0:
            n = n * {self.shape.stride} + at % {self.shape.stride}
            if ni[c, BPREV] == -1:
                bs[n, 0] = ni[c, BNEXT]
            else:
                ni[ni[c, BPREV], BNEXT] = ni[c, BNEXT]
            if ni[c, BNEXT] == -1:
                bs[n, 1] = ni[c, BPREV]
            else:
                ni[ni[c, BNEXT], BPREV] = ni[c, BPREV]"""
            if self.shape.equal
            else ""
        )
        trees = bool(self.accesses.trees)
        whole = (
            """
    if before == -1 and after == -1:
        qs[at, 3] = -1"""
            if trees
            else ""
        )
        leave = (
            """
        if qs[at, 3] != -1:
            detach(c, at, qs, ni, nn, tt)"""
            if trees
            else ""
        )
        short = (
            f"""
    if qs[at, 2] < {KEEP}:
        qs[at, 3] = -1"""
            if trees
            else ""
        )
        row = ROW_DROP.replace("ROW", str(ROW)) if self.layout.rowed else ""
        return f"""def drop(first, last, at, free, {self.state()}):{row}
    before = ni[first, PREV]
    after = ni[last, NEXT]
    if before == -1:
        qs[at, 0] = after
    else:
        ni[before, NEXT] = after
    if after == -1:
        qs[at, 1] = before
    else:
        ni[after, PREV] = before{whole}
    c = first
    while True:
        step = ni[c, NEXT]
        qs[at, 2] -= 1
        st[QUEUED] -= 1{chain}{leave}
        ni[c, NEXT] = free
        free = c
        if c == last:
            break
        c = step{short}
    return free"""

    def _expire(self) -> str:
        """What falls behind the window of a key leaves. Bit 1 of the flags goes once all queues are in the order of time."""
        loose = (
            """
                ks[k, 1] |= 1"""
            if self.shape.contiguous
            else ""
        )
        state = self.state()
        trimmed = (
            f"""
    if free != was:
        free = trim(k, free, {state})"""
            if self.needs
            else ""
        )
        return f"""def expire(k, horizon, free, ks, {self.state()}):
    was = free
    oldest = 9223372036854775807
    late = False
    for at in range(k * {self.shape.stride}, k * {self.shape.stride} + {len(self.shape.needed)}):
        c = qs[at, 0]
        before = horizon
        while c != -1:
            {COUNT}
            step = ni[c, NEXT]
            if ni[c, TIME] < horizon:
                free = drop(c, c, at, free, {state}){loose}
            else:
                if ni[c, TIME] < oldest:
                    oldest = ni[c, TIME]
                if not ks[k, 1] & 2:
                    break
                if ni[c, TIME] < before:
                    late = True
                before = ni[c, TIME]
            c = step
    ks[k, 3] = oldest
    if ks[k, 1] & 2 and not late:
        ks[k, 1] &= ~2{trimmed}
    return free"""

    def _trim_function(self) -> str:
        """Events that can be in no relation to come leave (see precede.py)."""
        head, body = [f"def trim(k, free, {self.state()}):"], self._trim_lines()
        if is_circular(self.needs):
            body = ["    was = -2", "    while free != was:", "        was = free", *indented(body, 1)]
        return "\n".join([*head, *body, "    return free"])

    def _trim_lines(self) -> list[str]:
        lines: list[str] = []
        for queue, needs in self.needs:
            at = f"k * {self.shape.stride} + {queue}"
            lines += [f"    c = qs[{at}, 0]", "    while c != -1:", "        alive = False"]
            for each in needs:
                tests, before = [], []
                for other, n in each:
                    there = f"k * {self.shape.stride} + {other}"
                    before += [
                        f"f{other} = qs[{there}, 0]",
                        *[f"f{other} = ni[f{other}, NEXT] if f{other} != -1 else -1"] * (n - 1),
                    ]
                    tests.append(f"f{other} != -1 and ni[f{other}, REF] < ni[c, REF]")
                lines += indented([*before, f"if {' and '.join(tests)}:", "    alive = True"], 2)
            lines += indented(
                ["if alive:", "    break", f"free = drop(c, c, {at}, free, {self.state()})", f"c = qs[{at}, 0]"], 2
            )
        return lines
