"""Table 4.1 by search: for every matching, disposal and shape of conjunction, which properties can be lost, each with a trace.

    python -m fairlead.testing.counterexamples.search --cases 1000 --seed 1 --jobs 2 [--write]

For each shape, from simple to rich: the directed scenarios, then `cases` random ones, each run by all sixteen cells. A
violation is confirmed (a validity one must survive six times as many rounds), shrunk, and kept with the shape that remains.
Losses of a simpler shape are not searched again. The result is a function of cases and seed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from fairlead.errors import require
from fairlead.guarantees.shape import ConjunctionShape, is_at_most, shape_of
from fairlead.model.guarantee import Property
from fairlead.model.plans.options import PAPER_DISPOSALS, PAPER_MATCHINGS, Disposal, Matching
from fairlead.testing.counterexamples.directed_scenarios import DIRECTED
from fairlead.testing.counterexamples.random_scenarios import JUDGED, ORDERS, scenario
from fairlead.testing.counterexamples.scenario_matcher import TooManyDeliveries, run
from fairlead.testing.counterexamples.scenarios import Pattern, Scenario, branch_of
from fairlead.testing.counterexamples.shrinking import is_sound, shrink, size
from fairlead.testing.properties.checkers import CHECKERS, Violation

PaperCell = tuple[Matching, Disposal]
Cell = PaperCell | tuple[Matching, Disposal, bool]
"""With KEEP of the first type, if that is true."""
CELLS: tuple[PaperCell, ...] = tuple((matching, disposal) for matching in PAPER_MATCHINGS for disposal in PAPER_DISPOSALS)
MATCHINGS = [each for each in Matching if not each.stepwise]
MORE_CELLS: tuple[Cell, ...] = (
    *((matching, disposal) for matching in MATCHINGS for disposal in Disposal if (matching, disposal) not in CELLS),
    *((matching, disposal, True) for matching in MATCHINGS for disposal in Disposal if disposal is not Disposal.NONE),
)
"""The options that the papers do not have. (KEEP with NONE is NONE.)"""
LIVENESS = frozenset({Property.CONJUNCTION_VALIDITY, Property.EVENT_VALIDITY})
CONFIRMING = 6
"""How many times as many rounds a validity violation has to survive: a slow backlog would be cleared by then."""


def cell_code(cell: Cell) -> str:
    return f"{cell[0].code}-{cell[1].code}{'K' if cell[2:] == (True,) else ''}"


@dataclass(frozen=True)
class Loss:
    """A property that a cell loses for conjunctions of a shape, with the scenario that shows it."""

    cell: Cell
    property: Property
    shape: ConjunctionShape
    scenario: Scenario
    explanation: str


@dataclass
class Findings:
    """The losses so far, and for each shape and property the number of cases checked."""

    losses: dict[tuple[Cell, Property, ConjunctionShape], Loss] = field(default_factory=dict)
    cases: Counter[tuple[ConjunctionShape, Property]] = field(default_factory=Counter)

    def is_lost(self, cell: Cell, wanted: Property, shape: ConjunctionShape) -> bool:
        """Whether it is lost already, for this shape or a simpler one."""
        return any((cell, wanted, each) in self.losses for each in ConjunctionShape if is_at_most(each, shape))

    def minimal(self) -> list[Loss]:
        """The losses without those that a simpler shape already shows, in a fixed order."""
        kept = [
            loss
            for (cell, wanted, shape), loss in self.losses.items()
            if not any(
                (cell, wanted, each) in self.losses
                for each in ConjunctionShape
                if each is not shape and is_at_most(each, shape)
            )
        ]
        return sorted(kept, key=lambda each: _order((each.cell, each.property, each.shape)))


def violation_in(world: Scenario, cell: Cell, wanted: Property) -> Violation | None:
    """The violation in this cell; a validity one counts only if it survives many more rounds."""
    try:
        found = CHECKERS[wanted](run(world, *cell))
        if found is not None and wanted in LIVENESS and world.period:
            still = CHECKERS[wanted](run(replace(world, rounds=world.rounds * CONFIRMING), *cell))
            return found if still is not None and same_violation(found, still) else None
    except TooManyDeliveries:
        return None
    return found


def same_violation(one: Violation, other: Violation) -> bool:
    """Whether the same event is missing, or there are no deliveries since the same one."""
    missing = [each.missing and each.missing.position for each in (one, other)]
    last = [[delivery.members for delivery in each.deliveries] for each in (one, other)]
    return missing[0] == missing[1] and last[0] == last[1]


def search(
    cases: int,
    seed: int,
    jobs: int = 1,
    report: Callable[[str], None] = lambda line: None,
    cells: tuple[Cell, ...] = CELLS,
) -> Findings:
    """Cells are independent, so they are searched in parallel; the result does not depend on `jobs`."""
    findings = Findings()
    work = partial(search_cell, cases, seed)
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        for cell, found in zip(cells, pool.map(work, cells) if pool else map(work, cells), strict=True):
            findings.losses |= found.losses
            findings.cases = found.cases
            report(f"{cell_code(cell)}: {len({wanted for _, wanted, _ in found.losses})} properties lost")
    _share(findings)
    return findings


def search_cell(cases: int, seed: int, cell: Cell) -> Findings:
    findings = Findings()
    for shape in ConjunctionShape:
        for world in _worlds(shape, cases, seed, findings):
            _judge(world, cell, shape, findings)
    return findings


def _worlds(shape: ConjunctionShape, cases: int, seed: int, findings: Findings) -> Iterator[Scenario]:
    for world in DIRECTED:
        if shape_of(branch_of(world.pattern)) is shape and is_sound(world):
            yield world
    for number in range(cases):
        world = scenario(shape, seed, number)
        for each in judged(world):
            findings.cases[shape, each] += 1
        yield world


def judged(world: Scenario) -> frozenset[Property]:
    """Validity needs a period: without one no publisher keeps sending."""
    found = JUDGED[world.kind]
    return found if world.period else found - LIVENESS


def _judge(world: Scenario, cell: Cell, shape: ConjunctionShape, findings: Findings) -> None:
    wanted = [each for each in Property if each in judged(world) and not findings.is_lost(cell, each, shape)]
    if not wanted or (cell[1].upto and world.kind == "disjunction"):  # UPTO names an element of every branch
        return
    try:
        trace = run(world, *cell)
    except TooManyDeliveries:
        return
    for each in wanted:
        if CHECKERS[each](trace) is not None and violation_in(world, cell, each) is not None:
            small = shrink(world, partial(_violates, cell, each))
            _keep(small, cell, each, findings)
            if each in ORDERS:
                for observed in _observed(small):
                    _judge(observed, cell, shape, findings)


def _violates(cell: Cell, wanted: Property, world: Scenario) -> bool:
    return violation_in(world, cell, wanted) is not None


def _observed(world: Scenario) -> Iterator[Scenario]:
    """The same with an observer of one type that also publishes everything: each event is sent after the earlier ones were
    delivered. An order that is lost anywhere is lost against this observer, as total and as local order."""
    if world.steps and {step.publisher for step in world.steps} != {"p2"}:
        steps = tuple(replace(step, publisher="p2") for step in world.unrolled)
        for name, _ in world.pattern.types:
            yield replace(world, kind="observer", extra=Pattern(((name, 1),)), steps=steps, period=0, rounds=1)


def _keep(world: Scenario, cell: Cell, wanted: Property, findings: Findings) -> None:
    violation = violation_in(world, cell, wanted)
    require(violation is not None, "shrinking keeps the violation", cell=cell_code(cell), property=wanted, scenario=world)
    if violation is not None:
        shape = shape_of(branch_of(world.pattern))
        findings.losses.setdefault((cell, wanted, shape), Loss(cell, wanted, shape, world, violation.words))


def _share(findings: Findings) -> None:
    """If the scenario of another loss of the same shape shows this one too and is smaller, use it: fewer to read."""
    pools: dict[ConjunctionShape, list[Scenario]] = {}
    for loss in findings.losses.values():
        pools.setdefault(loss.shape, []).append(loss.scenario)
    used = Counter(loss.scenario for loss in findings.losses.values())
    for key, loss in sorted(findings.losses.items(), key=lambda item: _order(item[0])):
        candidates = sorted(dict.fromkeys(pools[loss.shape]), key=lambda each: (size(each), -used[each], repr(each)))
        for world in candidates:
            if loss.property in judged(world) and (violation := violation_in(world, loss.cell, loss.property)) is not None:
                findings.losses[key] = replace(loss, scenario=world, explanation=violation.words)
                break


def _order(key: tuple[Cell, Property, ConjunctionShape]) -> tuple[int, int, int]:
    return ((*CELLS, *MORE_CELLS).index(key[0]), list(Property).index(key[1]), list(ConjunctionShape).index(key[2]))


def main(arguments: list[str] | None = None) -> int:
    from fairlead.testing.counterexamples.table_writer import (
        MORE_TABLE,
        TABLE,
        document_section,
        dumped,
        more_section,
        table_json,
        write_page,
    )

    parser = argparse.ArgumentParser(prog="python -m fairlead.testing.counterexamples.search", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="random scenarios for each shape (and cell)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes; the result does not depend on it")
    parser.add_argument(
        "--more", action="store_true", help="the options that the papers do not have (guarantees/more_options.json)"
    )
    parser.add_argument("--write", action="store_true", help="write guarantees/table.json and the table in docs/guarantees.md")
    parser.add_argument("--page", action="store_true", help="only bring docs/guarantees.md in step with table.json")
    options = parser.parse_args(arguments)
    if options.page:
        write_page()
        return 0
    cells = MORE_CELLS if options.more else CELLS
    report = partial(print, file=sys.stderr, flush=True)
    findings = search(options.cases, options.seed, options.jobs, report, cells)
    table = table_json(findings, options.cases, options.seed, "u" if options.more else "t")
    if options.write:
        (MORE_TABLE if options.more else TABLE).write_text(dumped(table), encoding="utf-8")
        write_page()
    print(more_section(table) if options.more else document_section(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
