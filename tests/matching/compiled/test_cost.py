"""docs/complexity.md is true: bounds and bytes are those that `explain` computes, and counted work grows no faster.

Work is counted, not timed: the kernel runs as plain Python over arrays that count how often they are read and written. For
every row of the table queues are filled so that the arriving event meets the worst case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pytest

from fairlead.language import compile_text
from fairlead.matching.compiled.codegen.node_layout import Layout
from fairlead.matching.compiled.planning.costs.cost import Costs
from fairlead.matching.compiled.planning.costs.cost_bound import LOG, ONE, C, K, N, plus, shown, times
from fairlead.matching.compiled.planning.costs.cost_words import cost_lines
from fairlead.matching.compiled.running.batch import KernelBatch
from fairlead.matching.compiled.running.branch import KernelBranch
from fairlead.model.plans.plan import Plan
from fairlead.transport.admission.records import RecordReader
from tests.matching.compiled.test_kernel import interpreted
from tests.root import ROOT

__all__ = ["interpreted"]

PAGE = (ROOT / "docs" / "complexity.md").read_text(encoding="utf-8")
TYPES = re.search(r"```fairlead\n(.*?)```", PAGE, re.DOTALL)[1]  # type: ignore[index]
ROWS = re.findall(r"^\| `(.*?)` \| (\w) \| (O\(.*?\)) \| (\d+) \|", PAGE, re.MULTILINE)
Events = Iterator[tuple[str, int, int]]
"""Type, x and y."""


class Counted:
    """An array that counts its accesses."""

    total = 0

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, at: Any) -> Any:
        Counted.total += 1
        return self.array[at]

    def __setitem__(self, at: Any, value: Any) -> None:
        Counted.total += 1
        self.array[at] = value


@dataclass(frozen=True)
class Worst:
    """How queues are filled with m further events so that `probe` meets the worst case; `sizes` to which they grow."""

    fill: Callable[[int], Events]
    probe: tuple[str, int, int]
    sizes: tuple[int, int, int] = (250, 2_000, 12_000)
    growth: str = ""
    """By how much work grows, if the bound counts something else than n."""


LINEAR, SQUARE = (250, 1_000, 4_000), (30, 60, 120)


def many(name: str, x: int, y: int = 0) -> Callable[[int], Events]:
    return lambda m: ((name, x, y) for _ in range(m))


def then(*parts: tuple[Callable[[int], int], tuple[str, int, int]]) -> Callable[[int], Events]:
    """One after the other, each so many times."""
    return lambda m: (event for count, event in parts for _ in range(count(m)))


def once(m: int) -> int:
    return 1


def rest(m: int) -> int:
    return m - 1


def half(m: int) -> int:
    return m // 2


def quarter(m: int) -> int:
    return m // 4


WORST: dict[str, Worst] = {
    "A a AND B b": Worst(many("A", 1), ("B", 1, 1)),
    "A a[3] AND B b": Worst(many("A", 1), ("B", 1, 1)),
    "A a[2] AND B b MATCHING FIRST CONTIGUOUS": Worst(many("A", 1), ("B", 1, 1)),
    "A a AND B b WHERE a.x = b.x": Worst(lambda m: (("A", 7 if n == m // 2 else n + 100, 0) for n in range(m)), ("B", 7, 0)),
    "A a AND B b WHERE a.x = b.x AND a.y < b.y": Worst(
        then((rest, ("A", 7, 9)), (once, ("A", 7, 1))), ("B", 7, 5), LINEAR, "n"
    ),
    "A a AND B b WHERE a.x < b.x": Worst(then((rest, ("A", 9, 0)), (once, ("A", 1, 0))), ("B", 5, 0)),
    "A a AND B b WHERE a.x < b.x MATCHING RECENT": Worst(then((once, ("A", 1, 0)), (rest, ("A", 9, 0))), ("B", 5, 0)),
    "A a AND B b WHERE a.x < b.x DISPOSAL FIRST PREFIX": Worst(many("A", 9), ("B", 5, 0)),
    "A a THEN B b THEN C c MATCHING RECENT": Worst(
        then((once, ("A", 1, 0)), (once, ("B", 1, 0)), (rest, ("A", 2, 0))), ("C", 1, 0)
    ),
    "A a THEN B b THEN A z THEN C c": Worst(then((rest, ("A", 1, 0)), (once, ("B", 1, 0)), (once, ("A", 1, 0))), ("C", 1, 0)),
    "A a AND B b WHERE a.x < b.x AND a.y < b.y": Worst(many("A", 1, 9), ("B", 5, 5), LINEAR),
    "A a AND B b WHERE a.x != b.x": Worst(many("A", 5), ("B", 5, 0), LINEAR),
    "A a AND B b WHERE a.x + b.y > 7": Worst(many("A", 5), ("B", 0, 1), LINEAR),
    "A a AND B b WHERE a.x = 1 OR a.x = b.x": Worst(many("A", 5), ("B", 6, 1), LINEAR),
    "A a[2] AND B b WHERE a[1].x = 1": Worst(many("A", 5), ("B", 6, 1), LINEAR),
    "A a AND D d": Worst(many("A", 5), ("D", 6, 1), LINEAR),
    "A a THEN B b WITHOUT C c BETWEEN a AND b": Worst(then((rest, ("A", 1, 0)), (once, ("C", 1, 0))), ("B", 1, 0), LINEAR),
    "A a THEN B b WITHOUT C c BETWEEN a AND b WHERE c.x = a.x": Worst(
        then((half, ("A", 1, 0)), (half, ("C", 2, 0)), (once, ("C", 1, 0))), ("B", 1, 0), SQUARE, "n²"
    ),
    "A a WITHOUT B b BEFORE a WITHIN 1 HOUR": Worst(many("B", 1), ("A", 1, 0)),
    "A a WITHOUT B b BEFORE a WITHIN 1 HOUR WHERE b.x = a.x": Worst(many("B", 1), ("A", 2, 0), LINEAR, "n"),
    "A a WITHOUT B b WITHIN 1 HOUR OF a WHERE b.x = a.x": Worst(many("A", 1), ("B", 2, 0), LINEAR, "n"),
    "A a AND B b AND C c WHERE a.x != b.x AND b.x != c.x": Worst(
        then((half, ("B", 5, 0)), (half, ("C", 5, 0))), ("A", 1, 0), LINEAR
    ),
    "A a[3] WHERE a[2].x > a[1].x AND a[3].x > a[2].x": Worst(many("A", 5), ("A", 9, 0), (60, 120, 480)),
    "A a AND B b AND C c WHERE a.x != b.x AND a.y != b.y": Worst(
        then((half, ("A", 1, 1)), (quarter, ("B", 1, 2)), (quarter, ("B", 2, 1))), ("C", 1, 0), (60, 120, 240)
    ),
    "A a AND B b AND C c WHERE a.x + b.x = c.x": Worst(
        then((half, ("B", 5, 0)), (half, ("C", 5, 0))), ("A", 1, 0), (120, 240, 480)
    ),
}
DISPOSED = " DISPOSAL INFIX"
"""Added where a rule names no disposal: a match then takes its members only, so queues stay as long as they were filled."""


def planned(match: str) -> Plan:
    return compile_text(f"{TYPES}\nSUBSCRIPTION S MATCH {match}")


def costs_of(plan: Plan) -> Costs:
    (subscription,) = plan.subscriptions
    return Costs(KernelBranch(subscription, subscription.branches[0], plan.catalogue).shape, plan.catalogue)


def bound_when(costs: Costs, name: str) -> str:
    return next(each.bound for each in costs.arrivals() if name in each.types)


def test_every_row_of_the_page_has_a_worst_case() -> None:
    assert [match for match, *_ in ROWS] == list(WORST)


@pytest.mark.parametrize(("match", "name", "bound", "size"), ROWS, ids=[each[0] for each in ROWS])
def test_bound_and_bytes_are_those_that_explain_computes(match: str, name: str, bound: str, size: str) -> None:
    costs = costs_of(planned(match))
    assert bound_when(costs, name) == bound
    layout = Layout(costs.shape, costs.accesses)
    assert layout.bytes == int(size)


STATE = {
    "nodes", "links", "trees", "chain_links", "queues", "keys", "chains", "chain_least", "least_keys", "rows", "waiting",
    "heap", "counters", "scratch", "plans", "members",
}  # fmt: skip


class Bench:
    """A kernel whose accesses are counted on demand."""

    def __init__(self, match: str) -> None:
        self.plan = planned(match + ("" if "DISPOSAL" in match or "CONTIGUOUS" in match else DISPOSED))
        (subscription,) = self.plan.subscriptions
        self.branch = KernelBranch(subscription, subscription.branches[0], self.plan.catalogue)
        self.plain, self.reader = self.branch.kernel, RecordReader(self.plan.catalogue, batch_rows=1 << 20)

    def feed(self, events: Iterable[tuple[str, int, int]], times: Iterable[int] = repeat(0)) -> None:
        records = [{"type": name, "k": 0, "x": x, "y": y, "at": at} for (name, x, y), at in zip(events, times, strict=False)]
        for columns in self.reader.read(records):
            self.branch.feed(KernelBatch(columns, self.plan.catalogue))

    def accesses(self, event: tuple[str, int, int], at: int = 0) -> int:
        """For this one event."""
        names, plain = self.branch.source.arguments, self.plain
        self.branch.kernel = lambda *given: plain(*(Counted(g) if n in STATE else g for n, g in zip(names, given, strict=True)))
        Counted.total = 0
        self.feed([event], [at])
        self.branch.kernel = plain
        return Counted.total


def work(match: str, worst: Worst) -> list[int]:
    """Accesses for one arriving event, at each length."""
    found = []
    for size in worst.sizes:
        bench = Bench(match)
        bench.feed(worst.fill(size))
        found.append(bench.accesses(worst.probe))
    return found


GROWTH: dict[str, Callable[[int], float]] = {
    "O(1)": lambda n: 1,
    "O(log n)": lambda n: math.log2(n),
    "O(n)": lambda n: n,
    "O(n log n)": lambda n: n * math.log2(n),
    "O(n²)": lambda n: n * n,
}


@pytest.mark.sampled
@pytest.mark.parametrize(("match", "bound"), [(each[0], each[2]) for each in ROWS], ids=[each[0] for each in ROWS])
def test_counted_work_grows_no_faster_than_the_bound(match: str, bound: str) -> None:
    worst = WORST[match]
    counted = work(match, worst)
    grows = GROWTH[f"O({worst.growth})" if worst.growth else bound]
    first, last = worst.sizes[0], worst.sizes[-1]
    most = grows(last) / grows(first)
    assert counted[-1] <= counted[0] * most * 1.6 + 40, counted
    if most > 2:  # and the bound is no idle pessimism: the worst case does happen
        powers = 2 if "²" in (worst.growth or bound) else 1
        assert counted[-1] >= counted[0] * (last / first) ** powers * 0.5, counted


def test_an_equality_costs_as_many_as_have_the_value_however_long_the_queue() -> None:
    match = "A a AND B b WHERE a.x = b.x AND a.y < b.y"

    def few(m: int) -> Events:
        return (("A", 7 if n < 20 else n + 100, 1 if n == 19 else 9) for n in range(m))

    counted = work(match, Worst(few, ("B", 7, 5)))
    assert max(counted) <= min(counted) * 1.2


@pytest.mark.parametrize("options", ["", " MATCHING RECENT"])
def test_where_no_event_with_the_value_satisfies_a_comparison_they_are_walked_once(options: str) -> None:
    bench = Bench("A a AND B b WHERE a.x = b.x AND a.y < b.y" + options)
    bench.feed([("A", 7, 9)] * 1_000 + [("A", 7, 2), ("B", 7, 3)])
    walked = bench.accesses(("B", 7, 5))
    at_once = bench.accesses(("B", 7, 6))
    assert at_once < 60 < 1_000 < walked


def test_costs_add_and_multiply() -> None:
    assert shown(plus(ONE, LOG)) == "O(log n)"
    assert shown(plus(N, LOG, K)) == "O(n)"
    assert shown(plus(times(N, LOG), N, C)) == "O(n log n + c)"
    assert shown(plus(times(K, LOG), N)) == "O(n + k log n)"
    assert shown(times(times(N, N), times(N, N))) == "O(n^4)"


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("A a AND B b", "b: the oldest queued"),
        ("A a AND B b MATCHING RECENT", "b: the newest queued"),
        ("A a[3]", "a[2]: the next one after a[1]"),
        ("A a[2] AND B b MATCHING FIRST CONTIGUOUS", "a[1]: the neighbour of the new event"),
        ("A a AND B b WHERE a.x < b.y + 1", 'a: ordered index on a.x for "a.x < b.y + 1"'),
        ("A a AND B b WHERE a.x + a.y < b.y", 'a: ordered index on a.x + a.y for "a.x + a.y < b.y"'),
        ("A a AND B b WHERE a.x = b.y", 'b: hash index on b.y for "a.x = b.y"'),
        ("A a AND B b WHERE a.x = b.x AND a.y != b.y", 'a: hash index on a.x for "a.x = b.x", then walked for "a.y != b.y"'),
        (
            "A a AND B b WHERE a.x BETWEEN b.x AND b.y",
            'a: ordered index on a.x for a part of "a.x BETWEEN b.x AND b.y", then walked',
        ),
        ("A a AND B b WHERE a.x != b.x", 'a: no index, the queue is walked for "a.x != b.x"'),
        ("A a[2] AND B b WHERE a[2].x > 3", 'a[2]: no index, the queue is walked for "a[2].x > 3"'),
        ("A a THEN B b THEN C c", 'b: by place in the order for "a THEN b"'),
        ("A a THEN B b", "it is queued: something has to come after it"),
        ("A a THEN B b WITHOUT C c BETWEEN a AND b", "noted for WITHOUT c"),
        ("A a WITHOUT B b WITHIN 1 HOUR OF a", "noted for WITHOUT b, it is compared with what waits"),
        ("A a WITHOUT B b WITHIN 1 HOUR OF a", "a complete relation is compared with what was noted, then it waits"),
        ("A a AND D d", "it can be several members: everything is searched"),
        ("A a DISPOSAL FIRST PREFIX", "the next event searches over everything"),
        ("A a[2] WITHIN 1 HOUR", "O(n) when the clock of a key moves while a late event is queued"),
    ],
)
def test_the_words_for_each_way_of_finding_partners(rule: str, line: str) -> None:
    assert any(line in each for each in cost_lines(costs_of(planned(rule))))


def test_the_bound_stands_behind_the_last_step_and_letters_are_explained() -> None:
    lines = cost_lines(costs_of(planned("A a AND B b WHERE a.x = b.x AND a.y < b.y WITHOUT C c WITHIN 1 HOUR OF a")))
    assert lines[0] == (
        "k: queued events of a key with an equal value; c: events of the key that WITHOUT has noted; "
        "w: relations of the key that wait for a deadline"
    )
    assert lines[1].startswith("when an A or D arrives     b: hash index on b.x")
    assert lines[2].startswith(" " * 27 + "a complete relation")
    assert lines[2].endswith("   O(k + c)")


def test_a_late_event_makes_expiry_walk_only_while_it_is_queued() -> None:
    bench = Bench("A a AND B b WITHIN 1 HOUR")
    hour = 3600
    bench.feed([("A", 1, 1)] * 1000, range(1000))
    in_order = bench.accesses(("A", 1, 1), 1000)
    bench.feed([("A", 1, 1)], [500])
    nothing_due = bench.accesses(("A", 1, 1), 1001)
    one_due = bench.accesses(("A", 1, 1), 1 + hour)
    bench.feed([("A", 1, 1)] * 2, [501 + hour, 502 + hour])
    assert max(in_order, nothing_due) < 40 < 2000 < one_due
    assert bench.accesses(("A", 1, 1), 503 + hour) <= in_order + 40


DEADLINES: dict[str, Callable[[int], list[int]]] = {
    "rising": lambda n: list(range(n)),
    "falling": lambda n: list(range(n - 1, -1, -1)),
    "equal": lambda n: [0] * n,
    "mixed": lambda n: [at * 7919 % n for at in range(n)],
}


@pytest.mark.sampled
@pytest.mark.parametrize("match", ["A a", "A a PER x", "A a THEN B b"])
@pytest.mark.parametrize("deadlines", DEADLINES)
def test_one_event_passes_many_deadlines_in_a_logarithm_each(match: str, deadlines: str) -> None:
    """Of whichever key, and in whichever order the deadlines came up."""
    counted, sizes = [], (100, 1_600)
    for size in sizes:
        bench = Bench(f"{match} WITHOUT C c WITHIN 1 HOUR OF a")
        events = [(name, at % 10, 0) for at in range(size) for name in ("AB" if "B b" in match else "A")]
        times = [at for at in DEADLINES[deadlines](size) for _ in range(len(events) // size)]
        bench.feed(events, times)
        counted.append(bench.accesses(("A", 1, 1), 10**6))
        assert bench.branch.pool.waiting_count() <= 1, "all were decided"
    first, last = (size * math.log2(size) for size in sizes)
    assert counted[1] <= 1.6 * counted[0] * last / first, counted


def test_a_pool_has_the_bytes_that_the_page_says() -> None:
    plan = planned("A a AND B b WHERE a.x < b.x")
    (subscription,) = plan.subscriptions
    pool = KernelBranch(subscription, subscription.branches[0], plan.catalogue).pool
    assert pool.keys.itemsize * pool.keys.shape[1] == 32
    assert pool.queues.itemsize * pool.queues.shape[1] + pool.least_keys.itemsize == 40
    assert pool.rows.itemsize * pool.rows.shape[1] == 256
    assert pool.chains.itemsize * pool.chains.shape[1] == 8
    assert pool.waiting.itemsize * pool.waiting.shape[1] == 48 + 8 * 2
    assert pool.heap.itemsize == 8
