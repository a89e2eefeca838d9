"""Selects the stream of a log to read as a table: that of a set of types, the same that live subscribers read.

Takes: names of types, or rules. Gives: the types, in the reader's definition, and their stream. Never: declares anything;
treats rules that read several streams as one stream, whose positions would mean nothing together.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.model.arguments import subscription_named
from fairlead.model.partition import needs_one_order
from fairlead.model.plan import Plan
from fairlead.model.types import HEARTBEAT, Catalogue
from fairlead.runtime.live.ending import caught_up
from fairlead.runtime.live.grouping import StreamGroup, groups_of, together
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.parts import parts_of
from fairlead.transport.admission.problems import not_published, unknown_type
from fairlead.transport.log.protocol import Log, Stream


@dataclass(frozen=True)
class Selection:
    """`parts`: the types of each stream, by name. `timed`: include heartbeats even for a single type. `ordered`: the rules have
    ORDER BY, so the order is not that of the log."""

    parts: tuple[tuple[str, ...], ...]
    timed: bool
    catalogue: Catalogue
    ordered: bool = False

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(sorted({name for types in self.parts for name in types}))

    @property
    def comes(self) -> tuple[str, ...]:
        """The types of the events to read."""
        return (*self.types, HEARTBEAT.name) if self.timed or len(self.types) > 1 else self.types

    @property
    def topics(self) -> tuple[tuple[str, ...], ...]:
        """The topics of each stream, by name."""
        return tuple(map(self.catalogue.topics_of, self.parts))

    async def streams(self, log: Log) -> list[Stream]:
        """The streams, part by part."""
        return [await log.open_topics(each) for each in self.topics]

    async def complete(self, log: Log, streams: Sequence[Stream]) -> list[int]:
        """The last sequence of each stream, once it contains everything that its topics hold now."""
        return [await caught_up(log, stream, topics) for stream, topics in zip(streams, self.topics, strict=True)]


async def select(log: Log, what: str | Sequence[str], *, heartbeats: bool = False) -> Selection:
    """The selection of rules (a text) or of types (their names). Raises DataError, LanguageError, UsageError."""
    registry = Registry(log)
    if isinstance(what, str):
        return selection_of(await registry.read_plan(what))
    await registry.refresh()
    known = [each.name for each in registry.catalogue if not each.is_union]
    if not what:
        raise UsageError("A261", "no event type is named", f"use some of: {', '.join(known)}")
    for name in what:
        if name in registry.catalogue and registry.catalogue[name].is_union:
            raise not_published(registry.catalogue[name])
        if name not in known:
            raise unknown_type(name, known)
    return Selection((tuple(sorted(set(what))),), heartbeats, registry.catalogue)


async def selected(log: Log, rules: str, subscription: str | None) -> Selection:
    """The selection of the events that the rules read, or of the stream of one of their subscriptions."""
    plan = await Registry(log).read_plan(rules)
    if subscription is None:
        return selection_of(plan)
    name = subscription_named(plan, subscription).name
    return next(_selection(group) for group in groups_of(plan) if name in group.names)


def selection_of(plan: Plan) -> Selection:
    """The selection of the events that the subscriptions of a plan read."""
    return _selection(only_group(plan))


def _selection(group: StreamGroup) -> Selection:
    ordered = group.plan.order is not None
    return Selection(tuple(each.types for each in group.parts), group.timed, group.plan.catalogue, ordered)


def only_group(plan: Plan) -> StreamGroup:
    groups = groups_of(plan)
    if not groups:
        raise UsageError("A252", "the rules have no subscription", "add SUBSCRIPTION … MATCH …")
    if len(groups) == 1:
        return groups[0]
    if plan.order is not None:
        return StreamGroup(plan, parts_of(plan), timed=True)
    one_order = any(needs_one_order(plan, each) for each in plan.subscriptions)
    if len(together(groups)) == 1 and (not one_order or len({each.sources for each in groups}) == 1):
        return StreamGroup(plan, parts_of(plan), any(each.timed for each in groups))
    told = "; ".join(f"{', '.join(each.names)} from {' and '.join(each.types)}" for each in groups)
    problem = f"the rules form {len(groups)} groups that read different streams: {told}"
    raise UsageError("A260", problem, "read one group at a time (fairlead export: --subscription NAME)")


def only_stream(selection: Selection) -> tuple[str, ...]:
    """The types of the selection's single stream."""
    if len(selection.parts) > 1:
        told = "; ".join(map(" and ".join, selection.parts))
        problem = f"the rules read {len(selection.parts)} streams, one per pattern between ORs: {told}"
        raise UsageError("A260", problem, "read each separately, by its types")
    return selection.parts[0]
