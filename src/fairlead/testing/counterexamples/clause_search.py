"""The losses caused by WITHIN, PER, WITHOUT … WITHIN, AFTER, overlapping types, runs, RETAIN and tables, by search: a trace for
every loss that the rules claim.

    python -m fairlead.testing.counterexamples.clause_search --cases 400 --seed 1 [--write]

For each clause and shape, from simple to rich: random worlds (clause_worlds.py), each run by all sixteen cells. A claim (a rule
of guarantees/clauses.py) is backed by a world in which the property is violated with the clause and holds without it, in the
same cell and for the same events; it is confirmed and shrunk as in search.py. Losses of a simpler shape are not searched again,
and losses caused by the options alone are not attributed to a clause. Claims without a trace are printed: derive does not make
them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from fairlead.errors import LanguageError
from fairlead.guarantees.bounds import ALL_CLAIMS
from fairlead.guarantees.options import entry_for
from fairlead.guarantees.shape import ConjunctionShape, is_at_most, shape_of
from fairlead.model.guarantee import Property
from fairlead.testing.counterexamples.clause_worlds import (
    AddedClause,
    ClauseWorld,
    Happening,
    clause_world,
    plan_of_world,
    run_world,
)
from fairlead.testing.counterexamples.directed_clauses import DIRECTED_CLAUSES
from fairlead.testing.counterexamples.random_scenarios import JUDGED, ORDERS
from fairlead.testing.counterexamples.scenarios import Pattern
from fairlead.testing.counterexamples.search import CELLS, CONFIRMING, LIVENESS, PaperCell, cell_code, same_violation
from fairlead.testing.properties.checkers import CHECKERS, Violation

SHOWN_BY = {Property.COVERING_AGREEMENT: "extended", Property.CONJUNCTION_TOTAL_ORDER: "sibling"}
"""The kind of scenario that alone can show a loss of the property."""
ENOUGH = 60
"""Worlds of a shape after which the search continues with the next one, if all their claims are backed."""

CONFIRMING_RUNS = 3
"""As CONFIRMING, for worlds with runs: where nothing is delivered, each arrival tries all assignments of the members."""


@dataclass(frozen=True)
class Backing:
    """A claim: the clause takes the property from conjunctions of at least this shape, in this cell."""

    clause: AddedClause
    property: Property
    cell: PaperCell
    shape: ConjunctionShape


class Backings:
    """Worlds by the claim that they back, and the claims that were made by some world and not backed yet."""

    def __init__(self) -> None:
        self.worlds: dict[Backing, ClauseWorld] = {}
        self.claimed: dict[Backing, int] = {}
        self.judged: Counter[Property] = Counter()
        """The worlds with runs by which each cell was checked for a property."""

    def backs(self, claim: Backing) -> bool:
        return any(replace(claim, shape=each) in self.worlds for each in ConjunctionShape if is_at_most(each, claim.shape))

    def open(self) -> list[Backing]:
        return [each for each in self.claimed if not self.backs(each)]


def violated(world: ClauseWorld, cell: PaperCell, wanted: Property, with_clause: bool = True) -> Violation | None:
    """A validity violation counts only if it survives many more rounds."""
    found = CHECKERS[wanted](run_world(world, cell, with_clause))
    if found is not None and wanted in LIVENESS and world.period:
        longer = replace(world, rounds=world.rounds * (CONFIRMING_RUNS if world.clause.of_runs else CONFIRMING))
        still = CHECKERS[wanted](run_world(longer, cell, with_clause))
        return found if still is not None and same_violation(found, still) else None
    return found


def is_loss(world: ClauseWorld, cell: PaperCell, wanted: Property) -> bool:
    """Violated with the clause, and not without it."""
    try:
        return violated(world, cell, wanted) is not None and violated(world, cell, wanted, False) is None
    except LanguageError:
        return False


def shape_of_world(world: ClauseWorld) -> ConjunctionShape:
    plan = plan_of_world(world, CELLS[0])
    return shape_of(plan["p1"].branches[0], plan.catalogue)


def claims_of(world: ClauseWorld, cell: PaperCell) -> Iterator[Backing]:
    """The claims of its clause's rule about the world's first subscriber, in this cell, without those that the options lose
    already."""
    plan = plan_of_world(world, cell)
    subscription = plan["p1"]
    branch = subscription.branches[0]
    shape = shape_of(branch, plan.catalogue)
    for wanted in _judged(world):
        said = ALL_CLAIMS[world.clause.value](subscription, branch, wanted, plan.catalogue)
        if said is not None and entry_for(subscription, branch, wanted, plan.catalogue) is None:
            yield Backing(world.clause, wanted, cell, shape)


def _judged(world: ClauseWorld) -> list[Property]:
    """What the world can show a loss of."""
    kind = world.base.kind
    found = [each for each in Property if each in JUDGED[kind] and SHOWN_BY.get(each, kind) == kind]
    return [each for each in found if world.period or each not in LIVENESS]


def search_clauses(
    cases: int,
    seed: int,
    report: Callable[[str], None] = lambda line: None,
    clauses: Collection[AddedClause] = tuple(AddedClause),
) -> Backings:
    found = Backings()
    for clause in clauses:
        for directed in DIRECTED_CLAUSES:
            if directed.clause is clause:
                _judge(directed, found)
        for shape in ConjunctionShape:
            claimed: set[Backing] = set()
            for number in range(cases):
                if number >= ENOUGH and all(map(found.backs, claimed)):
                    break
                world = clause_world(clause, shape, seed, number)
                if world is not None:
                    claimed |= _judge(world, found)
        open_ones = sum(each.clause is clause for each in found.open())
        report(f"{clause.value}: {sum(each.clause is clause for each in found.worlds)} traces, {open_ones} claims without one")
    return found


def _judge(world: ClauseWorld, found: Backings) -> set[Backing]:
    """Its claims."""
    try:
        if world.clause.of_runs and plan_of_world(world, world.clause.cells[0])["p1"].has_runs:
            found.judged.update(_judged(world))
        claims = [claim for cell in world.clause.cells for claim in claims_of(world, cell)]
    except LanguageError:
        return set()
    for claim in claims:
        found.claimed[claim] = found.claimed.get(claim, 0) + 1
    for cell in world.clause.cells:
        wanted = [claim for claim in claims if claim.cell == cell and not found.backs(claim)]
        if not wanted:
            continue
        trace = run_world(world, cell)
        for claim in wanted:
            if CHECKERS[claim.property](trace) is not None and is_loss(world, cell, claim.property):
                _keep(world, claim, found)
    return set(claims)


def _keep(world: ClauseWorld, claim: Backing, found: Backings) -> None:
    """Shrink it; the losses that it shows in other cells, and of other orders to an observer, need no further search."""
    small = shrink_world(world, lambda each: is_loss(each, claim.cell, claim.property))
    for each in (small, *(_observed(small) if claim.property in ORDERS else ())):
        for cell in world.clause.cells:
            for other in claims_of(each, cell):
                found.claimed.setdefault(other, 0)
                if not found.backs(other) and is_loss(each, cell, other.property):
                    found.worlds[other] = each


def _observed(world: ClauseWorld) -> Iterator[ClauseWorld]:
    """The same world with an observer of one type that publishes everything (search.py says why)."""
    events = tuple(replace(each, by="p2") for each in world.unrolled)
    for name, _ in world.base.pattern.types:
        base = replace(world.base, kind="observer", extra=Pattern(((name, 1),)))
        yield replace(world, base=base, happenings=events, period=0, rounds=1)


# Smaller worlds


def size_of(world: ClauseWorld) -> tuple[int, ...]:
    events = world.happenings
    added = (world.anchors, world.runs, world.bounded, world.tables)
    odd = len({each.by for each in events}) + world.where + world.rise + sum(map(len, added))
    return (len(world.unrolled), len(world.base.pattern.unary), odd, sum(each.x + each.k + abs(each.at) for each in events))


def shrink_world(world: ClauseWorld, shows: Callable[[ClauseWorld], bool]) -> ClauseWorld:
    """One simplification after the other, while any keeps what the world shows, and its shape."""
    shape, going = shape_of_world(world), True
    while going:
        going = False
        for smaller in _simpler(world):
            if size_of(smaller) < size_of(world) and shows(smaller) and shape_of_world(smaller) is shape:
                world, going = smaller, True
                break
    return world


def _simpler(world: ClauseWorld) -> Iterator[ClauseWorld]:
    events = world.happenings
    for at in range(len(events)):
        inside = world.period > 0 and at >= len(events) - world.period
        if not (inside and world.period == 1):
            yield replace(world, happenings=events[:at] + events[at + 1 :], period=world.period - inside)
    if world.period and world.rounds > 1:
        yield replace(world, rounds=world.rounds - 1)
    if len(world.bounded) > 1:
        yield from (replace(world, bounded=(each,)) for each in world.bounded)
    if len(world.tables) > 1:
        yield from (replace(world, tables=(each,)) for each in world.tables)
    if len(world.runs) > 1:
        yield from (replace(world, runs=(each,)) for each in world.runs)
    pattern = world.base.pattern
    for at in range(len(pattern.unary)):
        fewer = replace(pattern, unary=pattern.unary[:at] + pattern.unary[at + 1 :])
        extra = fewer if world.base.kind == "equal" else world.base.extra
        yield replace(world, base=replace(world.base, pattern=fewer, extra=extra))
    if len(world.anchors) > 1:
        yield replace(world, anchors=world.anchors[:1])
        yield replace(world, anchors=world.anchors[1:])
    if world.rise:
        yield replace(world, rise=0)
    if world.where:
        yield replace(world, where=False)
    for at, each in enumerate(events):
        for simpler in _simpler_events(each):
            yield replace(world, happenings=(*events[:at], simpler, *events[at + 1 :]))
    earliest = min((each.at for each in events), default=0)
    if earliest:
        yield replace(world, happenings=tuple(replace(each, at=each.at - earliest) for each in events))


def _simpler_events(event: Happening) -> Iterator[Happening]:
    if event.x:
        yield replace(event, x=0)
    if event.k:
        yield replace(event, k=0)
    if event.by not in ("p2", "p3"):
        yield replace(event, by="p3")


def main(arguments: list[str] | None = None) -> int:
    from fairlead.testing.counterexamples.clause_table import clauses_json, with_others, write_clauses

    parser = argparse.ArgumentParser(prog="python -m fairlead.testing.counterexamples.clause_search", description=__doc__)
    parser.add_argument("--cases", type=int, default=400, help="random worlds for each clause and shape, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], help="search these clauses only, and keep the others as stored")
    parser.add_argument("--write", action="store_true", help="write guarantees/clauses.json")
    options = parser.parse_args(arguments)
    chosen = [each for each in AddedClause if not options.only or each.value in options.only]
    found = search_clauses(options.cases, options.seed, lambda line: print(line, file=sys.stderr, flush=True), chosen)
    for each in found.open():
        where = f"{each.clause.value} {each.property} {cell_code(each.cell)} {each.shape.code}"
        print(f"no trace: {where} ({found.claimed[each]} worlds)")
    if options.write:
        made = clauses_json(found, options.cases, options.seed)
        write_clauses(with_others(made, chosen) if options.only else made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
