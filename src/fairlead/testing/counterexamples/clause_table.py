"""The findings of clause_search.py, as guarantees/clauses.json: equal bytes for equal findings.

An entry says which property a clause takes from conjunctions of at least a shape, in which cells, with the trace that shows it.
A trace has its rules twice: with the clause, and `plain`, without it, where the same events show nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from fairlead.guarantees.shape import ConjunctionShape
from fairlead.model.guarantee import Property
from fairlead.testing.counterexamples.clause_search import Backing, Backings, is_loss, shape_of_world, size_of, violated
from fairlead.testing.counterexamples.clause_worlds import AddedClause, ClauseWorld, run_world
from fairlead.testing.counterexamples.search import CELLS, MORE_CELLS, cell_code
from fairlead.testing.counterexamples.table_writer import dumped
from fairlead.testing.properties.checkers import HORIZON

CELLS_AND_MORE = (*CELLS, *MORE_CELLS)
CLAUSES = Path(__file__).resolve().parents[2] / "guarantees" / "clauses.json"


def clauses_json(found: Backings, cases: int, seed: int) -> dict[str, Any]:
    chosen = _shared(found)
    traces = {world: f"c{at:02d}" for at, world in enumerate(dict.fromkeys(chosen.values()), 1)}
    told: dict[tuple[str, ...], str] = {}
    entries: dict[tuple[str, ...], list[str]] = {}
    for claim, world in chosen.items():
        lines = tuple(run_world(world, claim.cell).lines())
        steps = told.setdefault(lines, f"s{len(told) + 1:02d}")
        violation = violated(world, claim.cell, claim.property)
        assert violation is not None
        key = (claim.clause.value, str(claim.property), claim.shape.code, traces[world], steps, violation.words)
        entries.setdefault(key, []).append(cell_code(claim.cell))
    return {
        "cases": cases,
        "seed": seed,
        "horizon": HORIZON,
        "judged": {str(each): found.judged[each] for each in Property},
        "lost": [
            dict(zip(("clause", "property", "shape", "trace", "steps", "violation"), key, strict=True)) | {"cells": cells}
            for key, cells in entries.items()
        ],
        "traces": {name: _trace(world) for world, name in traces.items()},
        "steps": {name: list(lines) for lines, name in told.items()},
    }


def with_others(made: dict[str, Any], chosen: Collection[AddedClause]) -> dict[str, Any]:
    """With the stored entries of all other clauses, whose names come first."""
    stored, names = json.loads(CLAUSES.read_text(encoding="utf-8")), {each.value for each in chosen}
    kept = [each for each in stored["lost"] if each["clause"] not in names]
    used = {
        kind: list(dict.fromkeys(each[kind[:-1] if kind == "traces" else kind] for each in kept))
        for kind in ("traces", "steps")
    }
    called = {
        kind: {name: f"{name[0]}{at:02d}" for at, name in enumerate(made[kind], len(used[kind]) + 1)}
        for kind in ("traces", "steps")
    }
    again = {kind: {name: f"{name[0]}{at:02d}" for at, name in enumerate(used[kind], 1)} for kind in ("traces", "steps")}

    def renamed(entry: dict[str, Any], names: dict[str, dict[str, str]]) -> dict[str, Any]:
        return entry | {"trace": names["traces"][entry["trace"]], "steps": names["steps"][entry["steps"]]}

    judged = made["judged"] if any(each.of_runs for each in chosen) else stored["judged"]
    return made | {
        "judged": judged,
        "lost": [*(renamed(each, again) for each in kept), *(renamed(each, called) for each in made["lost"])],
        "traces": {again["traces"][name]: stored["traces"][name] for name in used["traces"]}
        | {called["traces"][name]: each for name, each in made["traces"].items()},
        "steps": {again["steps"][name]: stored["steps"][name] for name in used["steps"]}
        | {called["steps"][name]: each for name, each in made["steps"].items()},
    }


def _shared(found: Backings) -> dict[Backing, ClauseWorld]:
    """Only the minimal shapes, in a fixed order; of worlds with the same loss the one that shows it in most cells."""
    minimal = [claim for claim in found.worlds if not any(other != claim and _covers(other, claim) for other in found.worlds)]
    minimal.sort(key=lambda each: (*_order(each), CELLS_AND_MORE.index(each.cell)))
    chosen: dict[Backing, ClauseWorld] = {}
    for order in dict.fromkeys(map(_order, minimal)):
        claims = [each for each in minimal if _order(each) == order]
        worlds = list(dict.fromkeys(found.worlds[each] for each in claims))
        shows = {world: [each for each in claims if is_loss(world, each.cell, each.property)] for world in worlds}
        while len([each for each in claims if each not in chosen]):
            left = {world: [each for each in those if each not in chosen] for world, those in shows.items()}
            best = max(worlds, key=lambda world: (len(left[world]), [-number for number in size_of(world)]))
            chosen |= dict.fromkeys(left[best], best)
    return {each: chosen[each] for each in minimal}


def _covers(simple: Backing, rich: Backing) -> bool:
    from fairlead.guarantees.shape import is_at_most

    same = (simple.clause, simple.property, simple.cell) == (rich.clause, rich.property, rich.cell)
    return same and simple.shape is not rich.shape and is_at_most(simple.shape, rich.shape)


def _order(claim: Backing) -> tuple[int, int, int]:
    return (
        list(AddedClause).index(claim.clause),
        list(Property).index(claim.property),
        list(ConjunctionShape).index(claim.shape),
    )


def _trace(world: ClauseWorld) -> dict[str, Any]:
    assert shape_of_world(world)
    return {
        "types": world.declarations(),
        "subscriptions": world.subscriptions(),
        "plain": {"types": world.declarations(False), "subscriptions": world.subscriptions(False)},
        "events": [record | {"by": each.by} for record, each in zip(world.records(), world.unrolled, strict=True)],
    }


def write_clauses(raw: dict[str, Any]) -> None:
    CLAUSES.write_text(dumped(raw), encoding="utf-8")
