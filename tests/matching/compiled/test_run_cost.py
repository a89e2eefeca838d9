"""What docs/complexity.md says of runs is true: bounds are those that `explain` computes, and counted work grows no faster."""

from __future__ import annotations

import re
from itertools import repeat

import numpy as np
import pytest

from fairlead.matching.compiled.planning.costs.cost_words import cost_lines
from fairlead.matching.compiled.planning.eligibility import too_expensive
from tests.matching.compiled.test_cost import (
    GROWTH,
    PAGE,
    Bench,
    Counted,
    Worst,
    bound_when,
    costs_of,
    half,
    many,
    once,
    planned,
    rest,
    then,
)
from tests.matching.compiled.test_kernel import interpreted

__all__ = ["interpreted"]

SECTION = PAGE[PAGE.index("## Runs") : PAGE.index("## Reduced")]
ROWS = re.findall(r"^\| `(.*?)` \| (\w) \| (O\(.*?\)) \|", SECTION, re.MULTILINE)
SIZES, LINEAR, SQUARE = (50, 400, 2_000), (250, 500, 1_000), (20, 40, 80)
WORST = {
    "A a+ HAVING count(DISTINCT a.x) >= 20": Worst(lambda m: (("A", n % 19, 0) for n in range(m)), ("A", 3, 0), SIZES),
    "A a+ HAVING sum(a.x) > 9000000 AND max(a.y) < 5": Worst(many("A", 1, 1), ("A", 1, 1), SIZES),
    "A a+ HAVING first(a.x) > last(a.x)": Worst(many("A", 1), ("A", 1, 0), LINEAR),
    "A a THEN B b+ HAVING count(b) >= 1000000": Worst(then((half, ("A", 1, 0)), (half, ("B", 1, 0))), ("B", 1, 0), SIZES),
    "B b+ THEN C c HAVING sum(b.x) > 9000000": Worst(many("B", 1), ("C", 1, 0), SIZES),
    "A a THEN B b+ HAVING sum(b.x) > 9000000": Worst(lambda m: (("AB"[n % 2], 1, 0) for n in range(m)), ("B", 1, 0), SQUARE),
    "A a THEN B b+ WHERE b.x > a.x": Worst(then((rest, ("A", 9, 0)), (once, ("A", 9, 0))), ("B", 1, 0), LINEAR),
    "A a THEN B b+ THEN C c WHERE b.x > a.x": Worst(then((half, ("A", 9, 0)), (half, ("B", 1, 0))), ("C", 1, 0), SQUARE),
}


class RunBench(Bench):
    """Every array of the kernel is counted, those of what is kept too."""

    def accesses(self, event: tuple[str, int, int], at: int = 0) -> int:
        plain = self.plain
        self.branch.kernel = lambda *given: plain(*(Counted(each) if isinstance(each, np.ndarray) else each for each in given))
        Counted.total = 0
        self.feed([event], [at])
        self.branch.kernel = plain
        return Counted.total


def test_every_row_of_the_page_has_a_worst_case() -> None:
    assert [match for match, *_ in ROWS] == list(WORST)


@pytest.mark.parametrize(("match", "name", "bound"), ROWS, ids=[each[0] for each in ROWS])
def test_the_bound_is_the_one_that_explain_computes(match: str, name: str, bound: str) -> None:
    assert bound_when(costs_of(planned(match)), name) == bound
    assert [each.code for each in too_expensive(planned(match))] == (["W014"] if bound == "O(n²)" else [])


@pytest.mark.sampled
@pytest.mark.parametrize(("match", "bound"), [(each[0], each[2]) for each in ROWS], ids=[each[0] for each in ROWS])
def test_counted_work_grows_no_faster_than_the_bound(match: str, bound: str) -> None:
    worst, counted = WORST[match], []
    for size in worst.sizes:
        bench = RunBench(match)
        bench.feed(worst.fill(size))
        counted.append(bench.accesses(worst.probe))
    first, last = worst.sizes[0], worst.sizes[-1]
    most = GROWTH[bound](last) / GROWTH[bound](first)
    assert counted[-1] <= counted[0] * most * 1.6 + 40, counted
    if most > 2:  # the worst case does happen
        assert counted[-1] >= counted[0] * most * 0.4, counted


def test_an_event_that_leaves_the_window_costs_what_it_costs_to_count_it() -> None:
    """However many are queued."""

    def filled(size: int) -> int:
        bench = RunBench("A a+ HAVING count(DISTINCT a.x) >= 1000000 AND sum(a.y) > 7 WITHIN 1 HOUR")
        bench.feed((("A", n, 1) for n in range(size)), range(size))
        return bench.accesses(("A", 5, 1), 3601)

    few, lots = filled(50), filled(2_000)
    assert lots <= few * 1.2 + 20


def test_members_are_read_once_the_condition_holds() -> None:
    def filled(size: int, more: int) -> int:
        bench = RunBench(f"A a+ HAVING count(a) >= {size + more}")
        bench.feed(repeat(("A", 1, 1), size - 1))
        return bench.accesses(("A", 1, 1))

    assert filled(1_000, 1) < 60
    assert filled(1_000, 0) > 3_000


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("A a+ HAVING count(DISTINCT a.x) >= 20", 'a: the run, "count(DISTINCT a.x) >= 20" kept for its queue'),
        ("A a+ HAVING first(a.x) > 3", 'a: the run, then walked for "first(a.x) > 3"'),
        ("A a THEN A b+ HAVING count(b) > 3", 'b: the run, nothing is searched before its queue has "count(b) > 3"'),
        ("A a THEN B b+ WHERE b.x > a.x", 'b: the run, then walked for "b.x > a.x"'),
        ("A a+", "a: the run, all that is queued there"),
    ],
)
def test_the_words_for_runs(rule: str, line: str) -> None:
    assert any(line in each for each in cost_lines(costs_of(planned(rule))))
