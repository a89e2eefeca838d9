"""A branch as source code: one loop over accepted events, with the search unrolled into nested loops.

Queues are doubly linked lists of nodes in a pool of columns, one list for each key and type: append, prefix, infix and
postfix disposal and contiguity all cost as much as the nodes they touch. An example of what comes out, for
`MATCH A a AND B b WHERE a.x < b.x` under FIRST, when a B arrives (`e`; it is bound to its slot beforehand):

    c1 = e
    c0 = head[k * 2 + 0]
    while c0 != -1:
        if (nbits[c0] >> 0) & 1 and v0[c0] < v1[c1]:
            members[0] = c0; members[1] = c1
            return True
        c0 = next_[c0]
    return False

Takes: a Shape. Gives: Python source whose functions numba compiles. Never: compiles or runs it (compile.py does).
"""

from __future__ import annotations

import re

from fairlead.matching.kernel.helpers import HELPERS
from fairlead.matching.kernel.parts import Clause, Shape, Test
from fairlead.model.plan import Disposal

POOL = "next_, prev, nref, ntime, nbits"


def kernel_source(shape: Shape) -> str:
    values = "".join(f", v{at}" for at in range(len(shape.columns))) + (", rank" if shape.ranked else "")
    inputs = "".join(f", x{at}" for at in range(len(shape.columns)))
    searches, calls = _searches(shape, values)
    parts = [*searches, DROP, _loop(shape, values, inputs, calls), *(HELPERS[name] for name in shape.helpers)]
    return "\n\n".join(parts)


def _indented(lines: list[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


def _searches(shape: Shape, values: str) -> tuple[list[str], dict[str, str]]:
    """The search functions, and how each is called: with the columns that it reads."""
    sources, calls = [], {}
    for newest in ([None] if _can_be_loose(shape) else []) + list(range(len(shape.needed))):
        name, body = "search_free" if newest is None else f"search_{newest}", _search(shape, newest)
        read = [each for each in f"k, e, head, tail, {POOL}{values}, members".split(", ") if re.search(rf"\b{each}\b", body)]
        calls[name] = f"{name}({', '.join(read)})"
        sources.append(f"def {calls[name]}:\n{body}")
    return sources, calls


def _search(shape: Shape, newest: int | None) -> str:
    """search_free looks over everything; search_Q only for relations with the newest event `e` of queue Q."""
    matching, size = shape.subscription.matching, shape.size
    bound = None if newest is None else _bound_slot(shape, newest)
    lines: list[str] = []
    body: list[str] = []
    if bound is not None:
        body += [f"c{bound} = e", f"if not (nbits[e] >> {bound}) & 1:", "    return False"]
        body += [
            line for each in shape.tests if each.slots <= {bound} for line in (f"if not ({each.source}):", "    return False")
        ]
    lines += _indented(body, 1)
    depth, step = 1, "prev" if matching.recent else "next_"
    closers: list[list[str]] = []
    for slot in range(size):
        queue = shape.queue_of_slot[slot]
        follows = slot > 0 and shape.queue_of_slot[slot - 1] == queue
        due = _due(shape.tests, slot, bound)
        if slot == bound:
            due = _bound_order(follows, slot, matching.contiguous, matching.recent) + due
            lines += _indented([f"if {' and '.join(due) or 'True'}:"], depth)
            depth += 1
            closers.append([])
            continue
        end = "tail" if matching.recent else "head"
        start = f"{step}[c{slot - 1}]" if follows else f"{end}[k * {shape.stride} + {queue}]"
        lines += _indented([f"c{slot} = {start}", f"while c{slot} != -1:"], depth)
        if bound is not None and queue == newest and not matching.recent:
            lines += _indented([f"if c{slot} == e:", "    break"], depth + 1)
        tests = [f"(nbits[c{slot}] >> {slot}) & 1", *due]
        lines += _indented([f"if {' and '.join(tests)}:"], depth + 1)
        closers.append(_indented(["break"] if follows and matching.contiguous else [f"c{slot} = {step}[c{slot}]"], depth + 1))
        depth += 2
    for clause in shape.clauses:
        lines += _indented(_unspoilt(clause, shape.stride), depth)
        depth += 1
    lines += _indented([f"members[{slot}] = c{slot}" for slot in range(size)] + ["return True"], depth)
    for closer in reversed(closers):
        lines += closer
    return "\n".join([*lines, "    return False"])


def _unspoilt(clause: Clause, stride: int) -> list[str]:
    """What is indented below is reached if no noted event forbids the members."""
    node = f"c{clause.slot}"
    inside = f"nref[c{clause.left}] < nref[{node}] and nref[{node}] < nref[c{clause.right}]"
    return [
        f"{node} = head[k * {stride} + {clause.queue}]",
        f"while {node} != -1 and not ({inside} and {clause.source}):",
        f"    {node} = next_[{node}]",
        f"if {node} == -1:",
    ]


def _forget(shape: Shape) -> list[str]:
    """Noted events that no queued anchor precedes leave: no relation to come can be forbidden by them."""
    lines = []
    for clause in shape.clauses:
        lines += [
            f"at = k * {shape.stride} + {clause.queue}",
            f"anchor = head[k * {shape.stride} + {shape.queue_of(clause.left)}]",
            "while head[at] != -1 and (anchor == -1 or nref[head[at]] < nref[anchor]):",
            f"    {_drop('head[at]', 'head[at]')}",
        ]
    return lines


def _bound_slot(shape: Shape, queue: int) -> int:
    """The newest event of a queue can only be the last instance of its type, or under RECENT the first one."""
    slots = [slot for slot, each in enumerate(shape.queue_of_slot) if each == queue]
    return slots[0] if shape.subscription.matching.recent else slots[-1]


def _bound_order(follows: bool, slot: int, contiguous: bool, recent: bool) -> list[str]:
    return [f"next_[c{slot - 1}] == e"] if follows and contiguous and not recent else []


def _due(tests: list[Test], slot: int, bound: int | None) -> list[str]:
    """The tests whose last open slot is this one."""
    found = []
    for test in tests:
        open_slots = test.slots - {bound} if bound is not None else test.slots
        if (max(open_slots) if open_slots else (0 if bound is None else -1)) == slot:
            found.append(f"({test.source})")
    return found


DROP = """def drop(first, last, at, head, tail, count, next_, prev, free, free_top):
    before, after = prev[first], next_[last]
    if before == -1:
        head[at] = after
    else:
        next_[before] = after
    if after == -1:
        tail[at] = before
    else:
        prev[after] = before
    c = first
    while True:
        count[at] -= 1
        free[free_top] = c
        free_top += 1
        if c == last:
            return free_top
        c = next_[c]"""
"""Takes a stretch of a queue, from `first` to `last`, out of it."""


def _drop(first: str, last: str) -> str:
    return f"free_top = drop({first}, {last}, at, head, tail, count, next_, prev, free, free_top)"


def _dispose(shape: Shape) -> list[str]:
    """What leaves each queue after a match; members[s] is the node at slot s."""
    lines = []
    recent, disposal = shape.subscription.matching.recent, shape.subscription.disposal
    for queue in range(len(shape.needed)):
        slots = [slot for slot, each in enumerate(shape.queue_of_slot) if each == queue]
        oldest, newest = (slots[-1], slots[0]) if recent else (slots[0], slots[-1])
        lines.append(f"at = k * {shape.stride} + {queue}")
        if disposal is Disposal.INFIX:
            lines += [_drop(f"members[{slot}]", f"members[{slot}]") for slot in slots]
        elif disposal is Disposal.INFIX_POSTFIX:
            lines.append(_drop(f"members[{oldest}]", "tail[at]"))
        else:
            lines.append(_drop("head[at]", f"members[{newest if disposal is Disposal.PREFIX_INFIX else oldest}]"))
    return lines


def _loop(shape: Shape, values: str, inputs: str, calls: dict[str, str]) -> str:
    queues = len(shape.needed)
    lines = [
        f"def kernel(queue, key, ref, time, bits{inputs}, head, tail, count, clock, flags, {POOL}{values}, free, free_top,"
        " within, members, out_at, out_ref):",
        "    found = 0",
        "    for i in range(len(queue)):",
        "        q = queue[i]",
        "        k = key[i]",
    ]
    lines += _indented(_window(shape), 2)
    lines += _indented(
        [
            "free_top -= 1",
            "e = free[free_top]",
            "nref[e] = ref[i]",
            "nbits[e] = bits[i]",
            "ntime[e] = time[i]",
            *(f"v{at}[e] = x{at}[i]" for at in range(len(shape.columns))),
            f"at = k * {shape.stride} + q",
            "before = tail[at]",
            "prev[e] = before",
            "next_[e] = -1",
            "if before == -1:",
            "    head[at] = e",
            "else:",
            "    next_[before] = e",
            *(["    if ntime[before] > time[i]:", "        flags[k] |= 2"] if shape.subscription.within_us is not None else []),
            "tail[at] = e",
            "count[at] += 1",
        ],
        2,
    )
    few = " or ".join(f"count[k * {shape.stride} + {queue}] < {needed}" for queue, needed in enumerate(shape.needed))
    loose = _can_be_loose(shape)
    cases = [(f"q >= {queues}", ["hit = False"])] if shape.clauses else []
    cases += [(few, ["hit = False", *(["flags[k] &= ~1"] if loose else [])])]
    cases += [("flags[k] & 1", [f"hit = {calls['search_free']}", "if not hit:", "    flags[k] &= ~1"])] if loose else []
    cases += [(f"q == {queue}", [f"hit = {calls[f'search_{queue}']}"]) for queue in range(queues)]
    for at, (test, then) in enumerate(cases):
        word = "if" if at == 0 else "elif"
        lines += _indented([f"{word} {test}:" if at < len(cases) - 1 else "else:", *_indented(then, 1)], 2)
    lines += _indented(
        [
            "if hit:",
            "    out_at[found] = i",
            *(f"    out_ref[found, {slot}] = nref[members[{slot}]]" for slot in range(shape.size)),
            "    found += 1",
            *_indented(_dispose(shape), 1),
            *(["    flags[k] |= 1"] if _leaves_loose(shape) else []),
        ],
        2,
    )
    lines += _indented(_forget(shape), 2)
    return "\n".join([*lines, "    return found, free_top"])


def _leaves_loose(shape: Shape) -> bool:
    """After a match a relation without the newest event may be ready (see matching/incremental.py)."""
    matching, disposal = shape.subscription.matching, shape.subscription.disposal
    return disposal is Disposal.FIRST_PREFIX or (matching.contiguous and disposal is Disposal.INFIX)


def _can_be_loose(shape: Shape) -> bool:
    """Bit 0 of flags is ever set; without it, there is nothing but searches for relations with the newest event."""
    return _leaves_loose(shape) or (shape.subscription.matching.contiguous and shape.subscription.within_us is not None)


def _window(shape: Shape) -> list[str]:
    """The key's clock; what falls behind it leaves. Bit 2 of flags: some queue of the key is not in the order of time."""
    if shape.subscription.within_us is None:
        return []
    loose = ["flags[k] |= 1"] if shape.subscription.matching.contiguous else []
    lines = ["if time[i] > clock[k]:", "    clock[k] = time[i]", "    horizon = clock[k] - within"]
    lines += [
        f"    for at in range(k * {shape.stride}, k * {shape.stride} + {len(shape.needed)}):",
        "        c = head[at]",
        "        while c != -1:",
        "            after = next_[c]",
        "            if ntime[c] < horizon:",
        f"                {_drop('c', 'c')}",
        *_indented(loose, 4),
        "            elif not flags[k] & 2:",
        "                break",
        "            c = after",
    ]
    late = f"q < {len(shape.needed)} and " if shape.clauses else ""
    return [*lines, f"elif {late}time[i] < clock[k] - within:", "    continue"]
