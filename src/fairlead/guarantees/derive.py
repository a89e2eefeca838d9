"""The fourteen verdicts of every subscription of a plan.

    1. For each branch the rules are applied in turn: matching × disposal, overlapping types, WITHIN, absences, AFTER, LIMIT,
       PER, runs, HAVING, RETAIN, TABLE, runtime. A rule's claim is a loss only if a stored trace shows it (table.json,
       clauses.json, runtimes.json). A branch that is a sequence has one rule (sequences.py).
    2. A disjunction keeps what all its branches keep: the properties are about one conjunction at a time.
    3. A subscription keeps no more than the subscriptions whose derived events it reads (intersection along the hierarchy).

A verdict is about the subscription together with others that keep the property themselves: an order kept by one side and lost
by the other is the other's loss. Covering agreement is decided for the subscription as the plain side and as the extension.

Subscriptions that are equal in everything the rules read are decided once and share their verdicts.

Takes: a plan. Gives: guarantees in the order of Property, by subscription name. Never: runs or searches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from functools import reduce

from fairlead.guarantees.bounds import ALL_CLAIMS, BOUNDS
from fairlead.guarantees.clause_traces import load_clause_traces
from fairlead.guarantees.options import cell_of, clause_cell, entry_for, lost_by_options
from fairlead.guarantees.runtime_traces import runtime_counterexample
from fairlead.guarantees.runtimes import Runtime, kept_if, lost_by_runtime
from fairlead.guarantees.sequence_traces import load_sequence_traces
from fairlead.guarantees.sequences import of_sequence
from fairlead.guarantees.shape import free_slots, shape_of
from fairlead.guarantees.table import Counterexample, load_more, load_table, table_of
from fairlead.model.guarantee import Guarantee, Property, Verdict
from fairlead.model.plans.plan import Branch, Plan, Subscription

Verdicts = tuple[Guarantee, ...]
"""One for each Property, in their order."""
ByBranch = tuple[tuple[Guarantee, ...], ...]
"""What the rules say about one property, whatever the runtime: the losses of each branch, in the order of the rules."""
Rules = dict[Hashable, tuple[ByBranch, ...]]
CASES_WITH_RUNS = 100
"""With runs, a property is said to be kept only after so many cases; with HAVING, which varies most, never without a proof."""
_SEVERITY = {Verdict.LOST: 0, Verdict.PER_KEY: 1, Verdict.KEPT: 2}


def derive(plan: Plan, runtime: Runtime = Runtime.EMBEDDED) -> dict[str, tuple[Guarantee, ...]]:
    """By subscription. `runtime`: its effect on the order of each publisher's events counts too."""
    return derive_on(plan, (runtime,))[runtime]


def derive_on(plan: Plan, runtimes: Iterable[Runtime]) -> dict[Runtime, dict[str, tuple[Guarantee, ...]]]:
    """On several runtimes: what the rules say is the same on all, and found once."""
    rules: Rules = {}
    return {runtime: _derived(plan, runtime, rules) for runtime in runtimes}


def _derived(plan: Plan, runtime: Runtime, rules: Rules) -> dict[str, Verdicts]:
    judged: dict[Hashable, Verdicts] = {}
    found: dict[str, Verdicts] = {}
    inherited: dict[str, Verdicts] = {}
    for each in plan.emitters_first:
        asked = _asked(each)
        if asked not in judged:
            if asked not in rules:
                rules[asked] = tuple(_by_rules(plan, each, wanted) for wanted in Property)
            said = zip(Property, rules[asked], strict=True)
            judged[asked] = tuple(_own(plan, each, wanted, runtime, by_rules) for wanted, by_rules in said)
        verdicts = judged[asked]
        for name in plan.derived_types(each):
            if name not in inherited:
                worst = reduce(_worst, (found[emitter.name] for emitter in plan.emitters[name]))
                inherited[name] = tuple(_inherited(verdict, name) for verdict in worst)
            verdicts = _worst(verdicts, inherited[name])
        found[each.name] = verdicts
    return {each.name: found[each.name] for each in plan.subscriptions}


def _asked(subscription: Subscription) -> Hashable:
    """Everything that the rules read of a subscription: a thousand that differ in their constants are decided once."""
    branches = tuple(map(_asked_of_branch, subscription.branches))
    options = subscription.matching, subscription.disposal_words, subscription.limit_per_event, subscription.limit
    return *options, subscription.per, subscription.within_us, branches


def _asked_of_branch(branch: Branch) -> Hashable:
    """A condition on one event matters only if several instances of a type can differ in it (shape.alike), or in a sequence."""
    several = len(branch.queue_types) < len(branch.slots) or branch.sequence is not None
    conditions = tuple(each if several or len(each.slots) > 1 else each.slots for each in branch.predicates)
    bounds = branch.retained, branch.tables, branch.sequence
    return branch.elements, branch.slots, conditions, branch.clauses, branch.kept, branch.upto, branch.having, bounds


def _own(plan: Plan, subscription: Subscription, wanted: Property, runtime: Runtime, by_rules: ByBranch) -> Guarantee:
    """The worst verdict of any rule for any branch; the first such one in the order of branches and rules."""
    verdict = _kept(plan, subscription, wanted, runtime)
    for branch, said in zip(subscription.branches, by_rules, strict=True):
        by_runtime = lost_by_runtime(plan, subscription, branch, wanted, runtime)
        verdict = reduce(_worse, said if by_runtime is None else (*said, by_runtime), verdict)
    return verdict


def _by_rules(plan: Plan, subscription: Subscription, wanted: Property) -> ByBranch:
    return tuple(tuple(_said(plan, subscription, branch, wanted)) for branch in subscription.branches)


def _said(plan: Plan, subscription: Subscription, branch: Branch, wanted: Property) -> Iterator[Guarantee]:
    if branch.sequence is not None:
        found = of_sequence(subscription, branch, wanted)
        if found.verdict is not Verdict.KEPT:
            yield found
        return
    by_options = lost_by_options(subscription, branch, wanted, plan.catalogue)
    if by_options is not None:
        yield by_options
    for clause, claim in ALL_CLAIMS.items():
        claimed = claim(subscription, branch, wanted, plan.catalogue)
        if claimed is not None:
            shape = shape_of(branch, plan.catalogue)
            cells = dict.fromkeys((cell_of(subscription, branch), clause_cell(subscription, branch)))
            traces = (load_clause_traces().loss(clause, cell, wanted, shape) for cell in cells)
            shown = next((each for each in traces if each is not None), None)
            if shown is None and table_of(cell_of(subscription, branch)) is not load_table():
                shown = load_clause_traces().loss_anywhere(clause, wanted, shape)
            if shown is not None:
                yield replace(claimed, trace=shown.name)
            elif clause == "HAVING" or (clause == "runs" and load_clause_traces().judged(wanted) < CASES_WITH_RUNS):
                yield replace(claimed, reason="not shown to be kept: too few cases with runs were searched")
            elif clause in BOUNDS:
                yield replace(
                    claimed, reason="not shown to be kept: no trace shows a loss, and no argument covers this pattern"
                )


def _worse(one: Guarantee, other: Guarantee) -> Guarantee:
    return other if _SEVERITY[other.verdict] < _SEVERITY[one.verdict] else one


def _worst(some: Verdicts, others: Verdicts) -> Verdicts:
    return tuple(map(_worse, some, others))


def _inherited(upstream: Guarantee, name: str) -> Guarantee:
    return replace(upstream, clause=f"{name} ← {upstream.clause}" if upstream.clause else name)


def _kept(plan: Plan, subscription: Subscription, wanted: Property, runtime: Runtime) -> Guarantee:
    """Kept, with the condition under which it holds, if there is one."""
    why = kept_if(plan, subscription, wanted, runtime)
    if wanted is Property.EVENT_VALIDITY and not any(
        free_slots(branch, subscription.matching, plan.catalogue) for branch in subscription.branches
    ):
        why = "every member depends on others, so no single event is promised a delivery"
    if wanted is Property.CONJUNCTION_AGREEMENT and subscription.waits:
        why = "among subscribers that read the same types, since each of their events can decide an absence"
    elif wanted is Property.CONJUNCTION_AGREEMENT and subscription.limit is not None and len(subscription.branches) > 1:
        why = "among subscribers with the same branches, since LIMIT counts the relations of all of them"
    if subscription.has_sequences:
        return Guarantee(wanted, Verdict.KEPT, "", why, _of_sequences(subscription, wanted))
    if subscription.has_runs:  # the cases of other patterns say nothing about runs
        return Guarantee(
            wanted, Verdict.KEPT, "", why, f"none found in {load_clause_traces().judged(wanted):,} cases with runs"
        )
    judged = min(table_of(cell_of(subscription, branch)).judged(wanted) for branch in subscription.branches)
    return Guarantee(wanted, Verdict.KEPT, "", why, f"none found in {judged:,} cases")


def _of_sequences(subscription: Subscription, wanted: Property) -> str:
    """By which the branches that are sequences keep the property."""
    return next(of_sequence(subscription, each, wanted).source for each in subscription.branches if each.sequence is not None)


def counterexample_named(trace: str) -> Counterexample | None:
    """The stored trace of a loss, by `Guarantee.trace`."""
    clause = load_clause_traces().by_name.get(trace)
    if clause is not None:
        return load_clause_traces().counterexample(clause)
    of_sequences = load_sequence_traces()
    if trace in of_sequences.by_name:
        return of_sequences.counterexample(of_sequences.by_name[trace])
    for table in (load_table, load_more):
        entry = table().by_name.get(trace)
        if entry is not None:
            return table().counterexample(entry)
    return runtime_counterexample(trace)


def counterexample(source: Plan | Subscription, wanted: Property, subscription: str | None = None) -> Counterexample | None:
    """The stored trace for the first subscription (of a plan, or the one named) that loses the property. For a subscription
    without its plan, the losses of its matching, disposal and shape. None if it is kept."""
    if isinstance(source, Plan):
        guarantees = source.guarantees or derive(source)
        chosen = guarantees.values() if subscription is None else (guarantees[subscription],)
        lost = [each for verdicts in chosen for each in verdicts if each.property is wanted and each.trace]
        return counterexample_named(lost[0].trace) if lost else None
    for branch in source.branches:
        if branch.sequence is not None:
            shown = of_sequence(source, branch, wanted)
            if shown.trace:
                return counterexample_named(shown.trace)
            continue
        entry = entry_for(source, branch, wanted)
        if entry is not None:
            return table_of(entry.cell).counterexample(entry)
    return None
