"""What sequences lose, by search: for every matching and disposal that they have, by their constructs, each loss with a trace.

    python -m fairlead.testing.counterexamples.sequence_losses.sequence_search --cases 3000 --seed 1 [--jobs 2] [--write]

Directed worlds, then random ones, each run with the ten combinations of options. A violation is confirmed (a validity one must
survive three times as many rounds), shrunk while its cell stays, and kept with the constructs that remain. What fewer
constructs lose is not searched again. The result is a function of cases and seed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from fairlead.errors import FairleadError
from fairlead.guarantees.constructs import Construct, Constructs
from fairlead.guarantees.sequence_traces import LIVENESS, covers
from fairlead.model.guarantee import Property
from fairlead.testing.counterexamples.random_scenarios import JUDGED, ORDERS
from fairlead.testing.counterexamples.search import same_violation
from fairlead.testing.counterexamples.sequence_losses.directed_sequences import DIRECTED_SEQUENCES
from fairlead.testing.counterexamples.sequence_losses.sequence_worlds import (
    OPTIONS,
    Options,
    SequenceWorld,
    described,
    plan_of_sequences,
    run_sequences,
    sequence_world,
    simpler_worlds,
    size_of_sequence,
)
from fairlead.testing.properties.checkers import CHECKERS, Violation
from fairlead.testing.properties.trace import Trace

CONFIRMING = 3
SHOWN_BY = {Property.COVERING_AGREEMENT: "extended", Property.CONJUNCTION_TOTAL_ORDER: "sibling"}
"""The kind of world that alone can show a loss of the property."""


@dataclass(frozen=True)
class FoundLoss:
    options: Options
    wanted: Property
    constructs: Constructs
    world: SequenceWorld
    explanation: str

    @property
    def order(self) -> tuple[object, ...]:
        return (
            OPTIONS.index(self.options),
            list(Property).index(self.wanted),
            len(self.constructs),
            *sorted(list(Construct).index(each) for each in self.constructs),
        )


@dataclass
class SequenceFindings:
    """The losses so far, and for each cell the worlds that it was checked with."""

    losses: list[FoundLoss] = field(default_factory=list)
    judged: Counter[tuple[str, Property]] = field(default_factory=Counter)

    def is_lost(self, options: Options, wanted: Property, constructs: Constructs) -> bool:
        mine = (each for each in self.losses if each.options == options and each.wanted is wanted)
        return any(covers(each.constructs, constructs, wanted) for each in mine)

    def keep(self, loss: FoundLoss) -> None:
        if not self.is_lost(loss.options, loss.wanted, loss.constructs):
            self.losses = [each for each in self.losses if not _is_richer(each, loss)] + [loss]


def _is_richer(one: FoundLoss, other: FoundLoss) -> bool:
    same = one.options == other.options and one.wanted is other.wanted
    return same and covers(other.constructs, one.constructs, one.wanted)


@dataclass(frozen=True)
class Seen:
    """A world under some options: what it is, and what happens."""

    cell: str
    constructs: Constructs
    trace: Trace


def seen(world: SequenceWorld, options: Options) -> Seen | None:
    """None if the options do not go with it, or dispose of the same rows as others."""
    try:
        plan = plan_of_sequences(world, options)
        if plan is None:
            return None
        cell, constructs = described(plan)
        if cell.split("-")[1] != options[1].code:
            return None
        return Seen(cell, constructs, run_sequences(world, plan))
    except FairleadError:
        return None


def judged_properties(world: SequenceWorld) -> list[Property]:
    found = [each for each in Property if each in JUDGED[world.kind] and SHOWN_BY.get(each, world.kind) == world.kind]
    return [each for each in found if world.period or each not in LIVENESS]


def confirmed(world: SequenceWorld, options: Options, wanted: Property, here: Seen | None = None) -> Violation | None:
    here = here or seen(world, options)
    found = CHECKERS[wanted](here.trace) if here is not None else None
    if found is not None and wanted in LIVENESS:
        longer = seen(replace(world, rounds=world.rounds * CONFIRMING), options) if world.period else None
        still = CHECKERS[wanted](longer.trace) if longer is not None else None
        return found if still is not None and same_violation(found, still) else None
    return found


def search_sequences(
    cases: int,
    seed: int,
    jobs: int = 1,
    report: Callable[[str], None] = lambda line: None,
    some: Sequence[Options] = OPTIONS,
) -> SequenceFindings:
    """Options are independent, so they are searched in parallel; the result does not depend on `jobs`."""
    findings = SequenceFindings()
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        work = partial(search_options, cases, seed)
        for options, found in zip(some, pool.map(work, some) if pool else map(work, some), strict=True):
            findings.losses += found.losses
            findings.judged |= found.judged
            lost = {each.wanted for each in found.losses}
            report(f"{options[0].code}-{options[1].code}: {len(lost)} properties lost, {len(found.losses)} entries")
    findings.losses.sort(key=lambda each: each.order)
    return findings


def search_options(cases: int, seed: int, options: Options) -> SequenceFindings:
    findings = SequenceFindings()
    for directed in DIRECTED_SEQUENCES:
        judge(directed, options, findings)
    findings.judged.clear()
    for number in range(cases):
        judge(sequence_world(seed, number), options, findings)
    return findings


def judge(world: SequenceWorld, options: Options, findings: SequenceFindings) -> None:
    here = seen(world, options)
    if here is None:
        return
    for wanted in judged_properties(world):
        findings.judged[here.cell, wanted] += 1
        if not findings.is_lost(options, wanted, here.constructs) and confirmed(world, options, wanted, here) is not None:
            small = shrink_sequence(world, options, wanted)
            _keep(small, options, wanted, findings)
            for observed in _observed(small) if wanted in ORDERS else ():
                for order in ORDERS:
                    _keep(observed, options, order, findings)


def _keep(world: SequenceWorld, options: Options, wanted: Property, findings: SequenceFindings) -> None:
    here = seen(world, options)
    violation = confirmed(world, options, wanted, here)
    if here is not None and violation is not None:
        findings.keep(FoundLoss(options, wanted, here.constructs, world, violation.words))


def _observed(world: SequenceWorld) -> Iterator[SequenceWorld]:
    """The same with an observer of one type that publishes everything (search.py says why)."""
    events = tuple(replace(each, by="p2") for each in world.unrolled)
    if world.kind != "disjunction":
        for name in world.pattern.types:
            yield replace(world, kind="observer", seen=name, happenings=events, period=0, rounds=1)


def shrink_sequence(world: SequenceWorld, options: Options, wanted: Property) -> SequenceWorld:
    """One simplification after the other, while any keeps the violation and adds no construct."""
    here = seen(world, options)
    assert here is not None
    constructs, going = here.constructs, True
    while going:
        going = False
        for smaller in simpler_worlds(world):
            if size_of_sequence(smaller) >= size_of_sequence(world):
                continue
            there = seen(smaller, options)
            if there is None or not covers(there.constructs, constructs, wanted):
                continue
            if confirmed(smaller, options, wanted, there) is not None:
                world, constructs, going = smaller, there.constructs, True
                break
    return world


def main(arguments: list[str] | None = None) -> int:
    from fairlead.testing.counterexamples.sequence_losses.sequence_table import sequences_json, write_sequences

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=3000, help="random worlds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes; the result does not depend on it")
    parser.add_argument(
        "--write", action="store_true", help="write guarantees/sequences.json and its table in docs/guarantees.md"
    )
    options = parser.parse_args(arguments)
    found = search_sequences(options.cases, options.seed, options.jobs, partial(print, file=sys.stderr, flush=True))
    for each in found.losses:
        codes = " + ".join(one.code for one in Construct if one in each.constructs)
        print(f"{each.options[0].code}-{each.options[1].code} {each.wanted}: {codes}")
    if options.write:
        write_sequences(sequences_json(found, options.cases, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
