"""A plan in words: its subscriptions, their signatures, their cost, and the guarantees of its order on a runtime.

Takes: a plan. Gives: an `Explanation` that prints as text, as HTML in notebooks and as JSON. Never: runs anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from html import escape
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.guarantees import Runtime, SourceOrder, counterexample_named, derive, derive_on, source_order
from fairlead.matching.compiled.codegen.folds.fold_words import FoldWords
from fairlead.matching.compiled.planning.alike import Alike, in_words, indexed_conditions
from fairlead.matching.compiled.planning.costs.cost import Costs
from fairlead.matching.compiled.planning.costs.cost_words import cost_json, cost_lines, cost_rows
from fairlead.matching.compiled.planning.eligibility import refusal_of, refused
from fairlead.matching.compiled.planning.shape_builder import shape_of
from fairlead.matching.failed_runs import counts_different, lasting_runs
from fairlead.model.arguments import require_plan, subscription_named
from fairlead.model.clauses.limit import Limit
from fairlead.model.events.values import duration_words
from fairlead.model.expressions.expression import render, render_condition
from fairlead.model.guarantee import Guarantee, Property
from fairlead.model.html import guarantees_html, plan_html, table
from fairlead.model.limits import LIMITS
from fairlead.model.plans.clocks import heard_types
from fairlead.model.plans.plan import Branch, Plan, Subscription
from fairlead.model.plans.retention import retain_words, tables_of
from fairlead.model.plans.sequence import canonical_text, takes


@dataclass(frozen=True)
class Explanation:
    """The result of `explain`. `plan` has the guarantees of the runtime; `print` it to read it."""

    plan: Plan
    subscriptions: tuple[Subscription, ...]
    counterexamples: Mapping[tuple[str, Property], str]
    runtime: Runtime = Runtime.EMBEDDED

    def to_json(self) -> dict[str, Any]:
        """The explanation as a dict for JSON."""
        return {
            "subscriptions": [
                {
                    "name": each.name,
                    "digest": each.digest,
                    "signatures": list(map(list, each.signatures())),
                    "per": list(each.per),
                    "within_us": each.within_us,
                    "matching": each.matching.words,
                    "disposal": each.disposal_words,
                    "keep": list(each.kept_aliases),
                    **({"fold": list(each.folded_aliases)} if each.has_folds else {}),
                    **({"retain": list(said)} if (said := retain_words(each)) else {}),
                    **({"tables": {name: list(key) for name, key in read}} if (read := tables_of(each)) else {}),
                    "limit_per_event": each.limit_per_event,
                    **({} if each.limit is None else {"limit": str(each.limit)}),
                    "emits": each.emits,
                    "no_kernel_because": self.against(each),
                    "costs": self._costs_json(each),
                    **_late_json(each),
                    "runtime": self.runtime,
                    "source_order": [
                        {"runtime": o.runtime, "verdict": o.verdict, "reason": o.reason, "fix": o.fix}
                        for o in self.source_orders(each)
                    ],
                    "lost_elsewhere": {
                        str(runtime): [g.property for g in lost] for runtime, lost in self.lost_elsewhere(each).items()
                    },
                    "guarantees": [
                        {
                            "property": g.property,
                            "verdict": g.verdict,
                            "clause": g.clause,
                            "reason": g.reason,
                            "source": g.source,
                            "fix": g.fix,
                            "trace": g.trace,
                        }
                        | self._example(each.name, g.property)
                        for g in self.plan.guarantees.get(each.name, ())
                    ],
                }
                for each in self.subscriptions
            ],
            "warnings": [str(each) for each in self.plan.warnings],
        }

    def source_orders(self, subscription: Subscription) -> list[SourceOrder]:
        """On every runtime, whether a publisher's order holds across types."""
        return [source_order(self.plan, subscription, each) for each in Runtime]

    def lost_elsewhere(self, subscription: Subscription) -> dict[Runtime, list[Guarantee]]:
        """For each other runtime, the guarantees that it loses and this one does not."""
        here = {each.property for each in self.plan.guarantees.get(subscription.name, ()) if not each.kept}
        return {
            runtime: [each for each in verdicts[subscription.name] if not each.kept and each.property not in here]
            for runtime, verdicts in self._elsewhere.items()
        }

    @cached_property
    def _elsewhere(self) -> Mapping[Runtime, Mapping[str, tuple[Guarantee, ...]]]:
        return derive_on(self.plan, [each for each in Runtime if each is not self.runtime])

    def order_lines(self, subscription: Subscription) -> list[str]:
        """The publishers' order across types, and what other runtimes lose of the fourteen."""
        lines = ["  a publisher's order across types"]
        for each in self.source_orders(subscription):
            fix = f"; fix: {each.fix}" if each.fix else ""
            lines.append(f"    {each.runtime:<10} {each.verdict:<6} {each.reason}{fix}")
        for runtime, lost in self.lost_elsewhere(subscription).items():
            if lost:
                names = ", ".join(each.property for each in lost)
                lines.append(f"  {runtime} also loses {names}: {lost[0].clause}: {lost[0].reason}; fix: {lost[0].fix}")
        return lines

    @cached_property
    def _refused(self) -> str | None:
        return refused(self.plan)

    @cached_property
    def _alike(self) -> Alike:
        return Alike(self.plan)

    def against(self, subscription: Subscription) -> str | None:
        """Why a subscription has no kernel: its own reason, or another subscription of the plan that has no kernel."""
        own = refusal_of(self.plan, subscription) if subscription.by_event or self._refused else None
        if self._refused is None:
            return None if own is None else own.reason
        return f"because of {self._refused}" if own is None else own.reason

    def _costs(self, subscription: Subscription) -> list[tuple[Costs, int, list[tuple[str, str]]]]:
        """For each branch in which something is searched, and that is no sequence: costs, how many others share its kernel, and
        how conditions on single events are evaluated."""
        if self.against(subscription) is not None:
            return []
        made = []
        branches = [subscription.branches[at] for at in subscription.in_text_order]
        for branch in (each for each in branches if each.sequence is None and not each.folded):
            shape, others = shape_of(subscription, branch, self.plan.catalogue), self._alike.others(subscription, branch)
            made.append((Costs(shape, self.plan.catalogue), others, indexed_conditions(shape, branch) if others else []))
        return made

    def kernels(self, subscription: Subscription) -> list[str]:
        """The code that runs for each branch, for people to read: fields and counters have their names. It begins with the
        values that are precomputed from single events."""
        from fairlead.matching.compiled.codegen.loop import source_of
        from fairlead.matching.compiled.representation.text import readable_text

        if self.against(subscription) is not None:
            return []
        heard, made = heard_types(self.plan), []
        for branch in (subscription.branches[at] for at in subscription.in_text_order):
            hears = heard.get(subscription.name, frozenset()) if branch.waiting or branch.timed else frozenset()
            shape = shape_of(subscription, branch, self.plan.catalogue, hears)
            shared = self._alike.others(subscription, branch) > 0
            values = [render(each.expression, [shape.queue_names[each.queue]]) for each in shape.columns]
            legend = [f"# value{number}: {text}\n" for number, text in enumerate(values)]
            made.append(
                "".join([*legend, "\n" * bool(legend), readable_text(source_of(shape, shape.paired or shared).program)])
            )
        return made

    def kernel_lines(self, subscription: Subscription) -> list[str]:
        """All kernels of a subscription as one text, or why it has none."""
        against = self.against(subscription)
        if against is not None:
            return [f"# {subscription.name} has no kernel: {against}"]
        several, lines = len(subscription.branches) > 1, []
        for number, text in zip(subscription.in_text_order, self.kernels(subscription), strict=True):
            lines += [
                f"# {subscription.name}{f', branch {number}' if several else ''}",
                text if text[0] == "#" else f"\n{text}",
                "",
            ]
        return lines[:-1]

    def _costs_json(self, subscription: Subscription) -> list[dict[str, Any]]:
        return [
            cost_json(costs)
            | {"alike": others, "conditions": [{"member": name, "interval_index": index or None} for name, index in served]}
            for costs, others, served in self._costs(subscription)
        ]

    def _cost_lines(self, subscription: Subscription) -> list[str]:
        lines = []
        searched = [at for at in subscription.in_text_order if not subscription.branches[at].folded]
        for number, (costs, others, served) in zip(searched, self._costs(subscription), strict=False):
            meaning, *rows = cost_lines(costs)
            name = f"cost {number}" if len(subscription.branches) > 1 else "cost"
            lines += [f"  {name:<10} {meaning}", *(f"    {row}" for row in rows)]
            lines += [f"    {in_words(others, served)}"] if others else []
        if subscription.has_folds and self.against(subscription) is None:
            lines.append("  cost       one step for each event of a folded run")
            lines += [f"    {each}" for each in self._fold_lines(subscription)]
        if subscription.has_sequences and self.against(subscription) is None:
            lines.append("  cost       one step for each row that the open search of its key passes")
            lines += [f"    {each}" for each in self._search_lines(subscription)]
        return lines

    def _fold_lines(self, subscription: Subscription) -> Iterator[str]:
        """The memory of folded runs."""
        for branch in (each for each in subscription.branches if each.folded):
            plan = shape_of(subscription, branch, self.plan.catalogue).fold
            assert plan is not None
            alias = branch.slots[plan.folding.slot].alias
            events = len(plan.folding.roles)
            yield f"{alias}: {8 * FoldWords(plan).width} bytes and {events} events at most for each key, however long it is"
            for attribute in plan.folding.different:
                yield f"count(DISTINCT {alias}.{attribute}) keeps an event of each value"

    def _search_lines(self, subscription: Subscription) -> Iterator[str]:
        """What costs more than that."""
        if lasting_runs(subscription, self.plan.catalogue):
            yield "where a run has failed for one start, it is not searched again for a later one"
        else:
            yield "after a start that fails, its rows are searched again from the next one"
        if any(counts_different(each) for each in subscription.branches if each.sequence is not None):
            yield "count(DISTINCT …) costs a step for each row that was taken"

    def _costs_html(self, subscription: Subscription) -> str:
        return "".join(
            table(("when", "how", "bound"), cost_rows(costs)) + (f"<p>{escape(in_words(others, served))}</p>" if others else "")
            for costs, others, served in self._costs(subscription)
        )

    def _example(self, subscription: str, wanted: Property) -> dict[str, str]:
        found = self.counterexamples.get((subscription, wanted))
        return {} if found is None else {"counterexample": found}

    def __str__(self) -> str:
        parts = [self._one(each) for each in self.subscriptions]
        parts += [f"warning {each}" for each in self.plan.warnings]
        return "\n\n".join(parts)

    def plan_lines(self, subscription: Subscription) -> list[str]:
        """The subscription, without the guarantees."""
        lines = [f"SUBSCRIPTION {subscription.name}   digest {subscription.digest[:16]}"]
        for number in subscription.in_text_order:
            lines += _branch_lines(number, subscription.branches[number], len(subscription.branches) > 1)
        lines.append(f"  matching   {subscription.matching.words} ({subscription.matching.code}){_direction(subscription)}")
        lines.append(f"  disposal   {subscription.disposal_words} ({subscription.disposal.code})")
        if subscription.kept_aliases:
            lines.append(f"  keep       {', '.join(subscription.kept_aliases)}: matched events stay queued")
        if subscription.has_folds:
            lines.append(
                f"  fold       {', '.join(subscription.folded_aliases)}: kept as what is read of it, not event by event"
            )
        lines += [f"  retain     {each}" for each in retain_words(subscription)]
        lines += [
            f"  table      {name} ({', '.join(key)}): the last event of each key, read" for name, key in tables_of(subscription)
        ]
        if subscription.limit_per_event is not None:
            lines.append(f"  limit      {subscription.limit_per_event} relations per event, in each branch and key")
        against = self.against(subscription)
        lines.append(f"  runs on    {'a compiled kernel' if against is None else f'no kernel: {against}'}")
        if subscription.per:
            lines.append(f"  per        {', '.join(subscription.per)}: one independent instance for each key")
        if subscription.within_us is not None:
            lines.append(f"  within     {subscription.within_us / 1_000_000:g} s of the key's own clock")
        if subscription.limit is not None:
            lines.append(f"  limit      {_limit_words(subscription.limit)}")
        return [*lines, *_late_lines(subscription), *self._cost_lines(subscription)]

    def _one(self, subscription: Subscription) -> str:
        lines = self.plan_lines(subscription)
        lines += [f"  guarantees ({self.runtime})"] + [
            _guarantee_line(each) for each in self.plan.guarantees.get(subscription.name, ())
        ]
        lines += self.order_lines(subscription)
        for (name, wanted), text in self.counterexamples.items():
            if name == subscription.name:
                lines += [f"  counterexample to {wanted}", *(f"    {line}" for line in text.splitlines())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        each = [
            f"<h4>{s.name}</h4>" + self._costs_html(s) + guarantees_html(self.plan.guarantees.get(s.name, ()))
            for s in self.subscriptions
        ]
        return plan_html(self.plan) + "".join(each)


def _limit_words(limit: Limit) -> str:
    if limit.per_key:
        return f"at most {limit.count:,} relations of each key; a count is kept for every key that has delivered one"
    return f"at most {limit.count:,} relations; once they are delivered, nothing is matched or kept any more"


def explain(
    plan: Plan,
    subscription: str | None = None,
    counterexamples: bool | Property | str = False,
    runtime: Runtime | str = Runtime.EMBEDDED,
) -> Explanation:
    """Explain a plan: signatures and guarantees on a runtime (`embedded`, `spark` or `live`).

    With `counterexamples=True`, also a trace for every property that is lost; with the name of a property, for that one.
    """
    require_plan("explain", plan, "fairlead.explain(fairlead.compile(text))")
    where = _runtime(runtime)
    plan = replace(plan, guarantees=derive(plan, where))
    chosen = plan.subscriptions if subscription is None else (subscription_named(plan, subscription),)
    wanted = _wanted(counterexamples)
    found: dict[tuple[str, Property], str] = {}
    for each in chosen:
        for guarantee in plan.guarantees.get(each.name, ()):
            if guarantee.property in wanted and not guarantee.kept:
                found[each.name, guarantee.property] = _case_text(each, guarantee)
    return Explanation(plan, chosen, found, where)


def _case_text(subscription: Subscription, guarantee: Guarantee) -> str:
    """The stored case of a loss, and how far it is the subscription's own."""
    case = counterexample_named(guarantee.trace) if guarantee.trace else None
    if case is None:
        return f"There is no stored case: {guarantee.reason}."
    same = case.cell == f"{subscription.matching.code}-{subscription.disposal.code}"
    differing = f"{'' if same else 'options, '}types, conditions and values"
    return f"A stored case of {case.about}.\nIts {differing} are its own, not those of {subscription.name}.\n\n{case}"


def _runtime(name: Runtime | str) -> Runtime:
    try:
        return Runtime(name)
    except ValueError:
        names = ", ".join(Runtime)
        raise UsageError("A009", f"there is no runtime {name!r}", fix=f"use one of: {names}") from None


def _wanted(counterexamples: bool | Property | str) -> set[Property]:
    if isinstance(counterexamples, bool):
        return set(Property) if counterexamples else set()
    try:
        return {Property(counterexamples)}
    except ValueError:
        names = ", ".join(Property)
        raise UsageError("A002", f"there is no property {counterexamples!r}", fix=f"use one of: {names}") from None


def _late_json(subscription: Subscription) -> dict[str, Any]:
    order = subscription.order
    if order is None or order.revise_us is None:
        return {}
    segments = {"events_min": LIMITS.segment_events_min, "states_max": LIMITS.segments_max}
    return {"late": {"order": str(order), "kept_us": order.revise_us, **segments}}


def _late_lines(subscription: Subscription) -> list[str]:
    """What LATE REVISE keeps, and what one late event costs."""
    order = subscription.order
    if order is None or order.revise_us is None:
        return []
    kept = f"every event of the last {duration_words(order.revise_us)} before the frontier, and the ids of its relations"
    states = f"up to {LIMITS.segments_max} states of the matcher, {LIMITS.segment_events_min:,} events apart or more"
    return [
        f"  late       {order}",
        f"    keeps                            {kept}; {states}",
        "    a late event                     loads the state before its place, and matches what follows it again; twice if it "
        "takes relations back",
    ]


def _direction(subscription: Subscription) -> str:
    several = any(len(slots) > 1 for branch in subscription.branches for slots in branch.slots_of_type.values())
    return ": instance 2 of a type is older than instance 1" if subscription.matching.recent and several else ""


def _branch_lines(number: int, branch: Branch, several: bool) -> list[str]:
    names = branch.alias_names()
    runs = [slot.run.canonical if slot.run else "" for slot in branch.slots]
    members = ", ".join(f"{slot.type}[{slot.instance}] {names[at]}{runs[at]}" for at, slot in enumerate(branch.slots))
    lines = [f"  {f'branch {number}' if several else 'signature'}  [{members}]"]
    if branch.sequence is not None:
        until = {each.slot: render_condition(each.until.condition, names) for each in takes(branch.sequence) if each.until}
        told = "; a time can end it, whichever event tells it" if branch.timed else ""
        lines.append(f"  sequence          {canonical_text(branch.sequence, names, until)}{told}")
    for predicate in branch.predicates:
        kind = "unary " if predicate.is_unary else "joins "
        if predicate.about is not None:
            kind = f"of {names[predicate.about]}  "
        lines.append(f"  where      {kind} {render_condition(predicate.condition, names)}")
    for predicate in branch.having:
        lines.append(f"  having            {render_condition(predicate.condition, names)}")
    lines += [f"  {clause.word:<10} {clause.explained(names)}" for clause in branch.clauses]
    if branch.emission:
        fields = ", ".join(f"{name} = {render(value, names)}" for name, value in branch.emission.fields)
        lines.append(f"  emits      {branch.emission.type}({fields})")
    return lines


def _guarantee_line(guarantee: Guarantee) -> str:
    source = f" [{guarantee.source}]" if guarantee.source else ""
    return f"    {guarantee.property:<24} {guarantee.verdict:<13} {guarantee.why}{source}".rstrip()
