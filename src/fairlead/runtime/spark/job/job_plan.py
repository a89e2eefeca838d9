"""How a plan runs on Spark, before anything runs: tasks, keys, shuffles, and the settings.

    batch     input ─► by slice of the order, numbered ─► by target, matched ─► relations
    stream    input ─► one task that holds back and numbers ─► by target, matched with state ─► relations

A target is a task of its own: a group of subscriptions, or a bucket of the keys of a keyed group (targets.py).

Takes: a plan, and the number of buckets. Gives: a `JobPlan`, as data (`to_json`), text (`str`) and HTML. Never: needs Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from fairlead.model.arguments import require_plan
from fairlead.model.events.types import HEARTBEAT
from fairlead.model.html import table
from fairlead.model.plans.plan import Plan
from fairlead.runtime.spark.setup.session import MASTER
from fairlead.runtime.spark.setup.settings import explain_settings, local_cores
from fairlead.runtime.spread.targets import TargetGroup, groups_of, nested_reasons, stream_groups


@dataclass(frozen=True)
class TaskGroup:
    """Subscriptions that run together. `keys`: by type, the attributes of the key; empty if one task runs them all. `reasons`:
    by subscription, why that is so."""

    subscriptions: tuple[str, ...]
    form: str
    tasks: int
    keys: dict[str, tuple[str, ...]]
    reads: tuple[str, ...]
    reasons: dict[str, str]

    @property
    def reason(self) -> str:
        """One sentence if the reason is the same for all, else one per subscription."""
        different = dict.fromkeys(self.reasons.values())
        if len(different) == 1:
            return next(iter(different))
        return "; ".join(f"{name}: {why}" for name, why in self.reasons.items())


@dataclass(frozen=True)
class Shuffle:
    """Rows that move between tasks. `copies`: by type, to how many tasks each row goes; 0 if only its place in the order
    matters."""

    by: str
    tasks: str
    copies: dict[str, int]


@dataclass(frozen=True)
class JobPlan:
    """How a plan runs on Spark: tasks, shuffles and settings."""

    plan: Plan
    streaming: bool
    buckets: int
    parts: tuple[TaskGroup, ...]
    shuffles: tuple[Shuffle, ...]
    settings: tuple[tuple[str, str, str], ...]

    @property
    def tasks(self) -> int:
        """The number of tasks that match at the same time."""
        return sum(each.tasks for each in self.parts)

    @property
    def single(self) -> tuple[str, ...]:
        """The subscriptions that one task matches alone."""
        return tuple(name for part in self.parts if not part.keys for name in part.subscriptions)

    def to_json(self) -> dict[str, Any]:
        """The shape as a dict for JSON."""
        return {
            "plan": self.plan.digest,
            "streaming": self.streaming,
            "buckets": self.buckets,
            "tasks": self.tasks,
            "single": list(self.single),
            "parts": [asdict(each) for each in self.parts],
            "shuffles": [asdict(each) for each in self.shuffles],
            "settings": [{"name": name, "value": value, "why": why} for name, value, why in self.settings],
        }

    def __str__(self) -> str:
        lines = [f"matched by {_some(self.tasks, 'task')}{', with state between micro-batches' if self.streaming else ''}"]
        for each in self.parts:
            lines.append(f"  {', '.join(each.subscriptions)}: {_some(each.tasks, 'task')}, {each.form}")
            lines += [f"    why      {why}" for why in each.reason.split("; ")]
            lines += [f"    key      {name} ({', '.join(key)})" for name, key in each.keys.items()]
            lines.append(f"    reads    {', '.join(each.reads)}")
        lines += ["", "shuffled, as packed columns"]
        for shuffle in self.shuffles:
            lines.append(f"  by {shuffle.by}, to {shuffle.tasks}")
            lines += [f"    {name}: {_copies(count)}" for name, count in shuffle.copies.items()]
        lines += ["", "settings of a new session"]
        lines += [f"  {name} = {value}\n    {why}" for name, value, why in self.settings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(", ".join(each.subscriptions), each.form, each.tasks, _keys(each), each.reason) for each in self.parts]
        moved = "".join(f"<li>by {escape(each.by)}, to {escape(each.tasks)}</li>" for each in self.shuffles)
        return table(("subscriptions", "form", "tasks", "keys", "why"), rows) + f"<p>Shuffled:</p><ul>{moved}</ul>"


def explain(plan: Plan, *, buckets: int | None = None, streaming: bool = False, master: str | None = None) -> JobPlan:
    """Explain how a plan runs on Spark.

    The default for `buckets` is the number of cores of a session on `master`; on a cluster, set it.
    """
    require_plan("explain", plan, "spark.explain(fairlead.compile(text))")
    count = buckets or local_cores(master or MASTER) or 1
    groups, own = (stream_groups if streaming else groups_of)(plan), nested_reasons(plan)
    return JobPlan(
        plan,
        streaming,
        count,
        tuple(_part(each, count, own) for each in groups),
        (_first(plan, groups, streaming), _second(groups, count)),
        tuple(explain_settings(master or MASTER)),
    )


def _part(group: TargetGroup, buckets: int, own: Mapping[int, str]) -> TaskGroup:
    keys = dict(sorted(group.keys.items()))
    reasons = {name: own.get(number, group.reason) for name, number in zip(group.names, group.numbers, strict=True)}
    return TaskGroup(group.names, group.form, buckets if keys else 1, keys, tuple(sorted(group.reads)), reasons)


def _first(plan: Plan, groups: tuple[TargetGroup, ...], streaming: bool) -> Shuffle:
    """To one order: every row has a place in it, and rows that no subscription reads are sent without their attributes."""
    read = frozenset[str]().union(*(group.reads for group in groups))
    copies = {name: int(name in read) for name in (*plan.input_types, HEARTBEAT.name)}
    if streaming:
        return Shuffle("nothing: one order", "one task that holds rows back and numbers them", copies)
    return Shuffle("order", "a task for each slice of it: one below 100,000 rows, then one a core or 1,000,000 rows", copies)


def _second(groups: tuple[TargetGroup, ...], buckets: int) -> Shuffle:
    """To the matching tasks: one bucket of a keyed group, the task of any other."""
    read = sorted(frozenset[str]().union(*(group.reads for group in groups)))
    copies = {name: sum(name in group.reads for group in groups) for name in read}
    tasks = sum(buckets if group.is_keyed else 1 for group in groups)
    return Shuffle("key, or to the one task of a group without", _some(tasks, "task"), copies)


def _keys(part: TaskGroup) -> str:
    return "; ".join(f"{name} ({', '.join(key)})" for name, key in part.keys.items())


def _copies(count: int) -> str:
    return "its place in the order alone: nobody reads it" if count == 0 else f"each row to {_some(count, 'task')}"


def _some(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
