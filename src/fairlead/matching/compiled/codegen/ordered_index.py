"""The ordered index as source: a treap over the nodes of one queue, in queue order.

Every node has a priority that is a function of its place in the order, so the form of a tree is a function of its content. Its
aggregate is the least key below it, so "the first in queue order whose key is below x" is one descent. Keys are whole numbers:
floats become some with the same order, and where the greatest is wanted the order is turned round (see `key_of`). A tree is
made once a queue is longer than BUILD and let go below KEEP: a short queue is walked faster.

Takes: the layout of a node. Gives: source. Never: knows which predicate a key serves.
"""

from __future__ import annotations

import re

from fairlead.matching.compiled.codegen.node_layout import Layout

BUILD, KEEP, STEPS = 128, 40, 12
"""STEPS: nodes that are looked at one by one before the tree is asked."""
WORST = "9223372036854775807"
"""The key of an event that no search wants."""

PRIORITY = """def priority(word):
    z = np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)
    return z ^ (z >> np.uint64(29))"""

SORTABLE = """def sortable(x):
    i = as_bits(x + 0.0)
    return i if i >= 0 else i ^ 9223372036854775807"""
"""A float as a whole number with the same order; -0.0 is 0.0."""

ATTACH = """def attach(e, at, qs, ni, nn, tt):
    ni[e, LEFT] = -1
    ni[e, RIGHT] = -1
    c = ni[e, PREV]
    p = priority(ni[e, REF])
    below = -1
    while c != -1 and priority(ni[c, REF]) < p:
        below = c
        c = ni[c, UP]
    if below != -1:
        ni[e, LEFT] = below
        ni[below, UP] = e
    ni[e, UP] = c
    if c == -1:
        qs[at, 3] = e
    else:
        ni[c, RIGHT] = e"""
"""The last node of the queue, behind those that are in the tree already."""

ATTACH_KEY = """
    ni[e, AGG] = ni[e, KEY]
    if below != -1 and ni[below, AGG] < ni[e, AGG]:
        ni[e, AGG] = ni[below, AGG]
    while c != -1 and ni[e, KEY] < ni[c, AGG]:
        ni[c, AGG] = ni[e, KEY]
        c = ni[c, UP]"""

DETACH = """def detach(c, at, qs, ni, nn, tt):
    l = ni[c, LEFT]
    r = ni[c, RIGHT]
    p = ni[c, UP]
    hook = p
    left = p != -1 and ni[p, LEFT] == c
    while True:
        if l == -1 or r == -1:
            pick = l if r == -1 else r
        elif priority(ni[l, REF]) >= priority(ni[r, REF]):
            pick = l
        else:
            pick = r
        if pick != -1:
            ni[pick, UP] = hook
        if hook == -1:
            qs[at, 3] = pick
        elif left:
            ni[hook, LEFT] = pick
        else:
            ni[hook, RIGHT] = pick
        if l == -1 or r == -1:
            break
        hook = pick
        left = pick == r
        if left:
            r = ni[pick, LEFT]
        else:
            l = ni[pick, RIGHT]"""
"""Its two subtrees are merged in its place."""

DETACH_KEY = """
    fixed = hook == p
    c = hook
    while c != -1:
        if c == p:
            fixed = True
        best = ni[c, KEY]
        l = ni[c, LEFT]
        if l != -1 and ni[l, AGG] < best:
            best = ni[l, AGG]
        r = ni[c, RIGHT]
        if r != -1 and ni[r, AGG] < best:
            best = ni[r, AGG]
        if fixed and best == ni[c, AGG]:
            break
        ni[c, AGG] = best
        c = ni[c, UP]"""
"""Aggregates are put right from the lowest change upwards."""

BUILT = """def built(at, qs, ni, nn, tt):
    c = qs[at, 0]
    while c != -1:
        attach(c, at, qs, ni, nn, tt)
        c = ni[c, NEXT]"""

SEEK = """def SEEK(c, x, root, ni, nn, tt):
    steps = 0
    high = x >> 32
    while c != -1:
        if ni[c, HIGH] <= high and (ni[c, HIGH] < high or ni[c, KEY] SIGN x):
            return c
        steps += 1
        if steps == STEPS and root != -1:
            break
        c = ni[c, NEXT]
    if c == -1:
        return c
    while True:
        n = ni[c, RIGHT]
        if n != -1 and ni[n, AGG] SIGN x:
            c = n
            while True:
                n = ni[c, LEFT]
                if n != -1 and ni[n, AGG] SIGN x:
                    c = n
                elif ni[c, KEY] SIGN x:
                    return c
                else:
                    c = ni[c, RIGHT]
        while True:
            n = ni[c, UP]
            if n == -1:
                return n
            came = ni[n, LEFT] == c
            c = n
            if came:
                break
        if ni[c, KEY] SIGN x:
            return c"""
"""From node c on: the first whose key is below x."""

PAST = """def PAST(c, word, root, ni, nn, tt):
    steps = 0
    while c != -1:
        if ni[c, REF] SIGN word:
            return c
        steps += 1
        if steps == STEPS and root != -1:
            break
        c = ni[c, NEXT]
    if c == -1:
        return c
    c = root
    best = -1
    while c != -1:
        if ni[c, REF] SIGN word:
            best = c
            c = ni[c, LEFT]
        else:
            c = ni[c, RIGHT]
    return best"""
"""From node c on: the first that stands after the place `word`."""


LEAST = """def least(at, qs, ni, nn, tt):
    if qs[at, 3] != -1:
        return ni[qs[at, 3], AGG]
    best = 9223372036854775807
    c = qs[at, 0]
    while c != -1:
        if ni[c, KEY] < best:
            best = ni[c, KEY]
        c = ni[c, NEXT]
    return best"""
"""The least key of a queue."""


ROW = 32
"""Nodes in the row of a queue."""

ROWED = """def rowed(at, qs, nn, fr, st):
    r = st[SPARE]
    if r != -1:
        st[SPARE] = fr[r, 0]
    else:
        r = st[SIDES]
        st[SIDES] += 1
    qs[at, 4] = r
    c = qs[at, 0]
    i = 0
    while c != -1 and i < ROW:
        fr[r, i] = ni[c, HIGH]
        fr[r, ROW + i] = c
        c = ni[c, NEXT]
        i += 1
    return r"""
"""The first nodes of a queue, side by side: upper halves of their keys, then their numbers. Walking along links through
memory costs more than all the comparing."""

FIRST = """def FIRST(at, x, qs, ni, nn, tt, fr, st):
    r = qs[at, 4]
    if r == -1:
        if qs[at, 2] < 4:
            return SEEK(qs[at, 0], x, qs[at, 3], ni, nn, tt)
        r = rowed(at, qs, nn, fr, st)
    high = x >> 32
    n = min(qs[at, 2], ROW)
    for i in range(n):
        if fr[r, i] <= high and (fr[r, i] < high or ni[fr[r, ROW + i], KEY] SIGN x):
            st[HINT] = i
            return fr[r, ROW + i]
    if qs[at, 2] <= ROW:
        return -1
    return SEEK(ni[fr[r, ROW + ROW - 1], NEXT], x, qs[at, 3], ni, nn, tt)"""
"""From the head of a queue on: the first whose key is below x."""

ROW_DROP = """
    r = qs[at, 4]
    if r != -1:
        n = min(qs[at, 2], ROW)
        if first != last or n <= 2:
            qs[at, 4] = -1
            fr[r, 0] = st[SPARE]
            st[SPARE] = r
        else:
            i = st[HINT]
            if i >= n or fr[r, ROW + i] != first:
                i = 0
                while i < n and fr[r, ROW + i] != first:
                    i += 1
            if i < n:
                more = ni[fr[r, ROW + ROW - 1], NEXT] if qs[at, 2] > ROW else -1
                while i < n - 1:
                    fr[r, i] = fr[r, i + 1]
                    fr[r, ROW + i] = fr[r, ROW + i + 1]
                    i += 1
                if more != -1:
                    fr[r, i] = ni[more, HIGH]
                    fr[r, ROW + i] = more"""
"""A node leaves its queue's row; when several leave at once the row goes, and is made anew when it is needed."""

ROW_LINK = """
    if qs[at, 4] != -1 and qs[at, 2] <= ROW:
        fr[qs[at, 4], qs[at, 2] - 1] = ni[e, HIGH]
        fr[qs[at, 4], ROW + qs[at, 2] - 1] = e"""


def row_name(sign: str) -> str:
    return "first_le" if sign.endswith("=") else "first_lt"


def row_source(layout: Layout, sign: str) -> str:
    """`first_lt` or `first_le`."""
    text = FIRST.replace("def FIRST", f"def {row_name(sign)}").replace("SEEK", seek_name(sign)).replace("SIGN", sign)
    return layout.named(text.replace("ROW", str(ROW)))


def tree_source(layout: Layout) -> list[str]:
    """Trees on the order alone have no keys."""
    keys = (ATTACH_KEY, DETACH_KEY) if "KEY" in layout else ("", "")
    return [
        layout.named(each)
        for each in (
            PRIORITY,
            ATTACH + keys[0],
            DETACH + keys[1],
            BUILT,
            *([LEAST] if keys[0] else []),
            *([ROWED.replace("ROW", str(ROW))] if layout.rowed else []),
        )
    ]


def seek_source(layout: Layout, sign: str, recent: bool) -> str:
    """`seek_lt` or `seek_le`: in the direction of the matching."""
    text = SEEK.replace("def SEEK", f"def {seek_name(sign)}").replace("SIGN", sign).replace("STEPS", str(STEPS))
    return layout.named(_mirrored(text) if recent else text)


def seek_name(sign: str) -> str:
    return "seek_le" if sign.endswith("=") else "seek_lt"


def past_source(layout: Layout, name: str, back: bool) -> str:
    """With `back`: from node c backwards, the first that stands before `word`."""
    text = PAST.replace("def PAST", f"def {name}").replace("STEPS", str(STEPS)).replace("SIGN", "<" if back else ">")
    return layout.named(_mirrored(text) if back else text)


def _mirrored(source: str) -> str:
    swap = {"NEXT": "PREV", "LEFT": "RIGHT", "RIGHT": "LEFT"}
    return re.sub("NEXT|LEFT|RIGHT", lambda found: swap[found[0]], source)


def key_of(value: str, is_double: bool, sign: str) -> str:
    """Source of the key of a value, such that `value sign x` is `key < key of x` (or `<=`)."""
    turned = sign[0] == ">"
    if is_double:
        return f"sortable({'-' if turned else ''}({value}))"
    return f"(~({value}))" if turned else value
