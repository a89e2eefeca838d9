"""What must hold of the deliveries to every subscriber, whatever failed. Each check yields problems, in words.

    resumed    in one process, the numbers of a group increase by one. The next process begins after what was acknowledged, and
               leaves out nothing; what it receives again is the same under the same number
    due        the delivery with number n is the n-th relation that the reference matcher finds in the log from the origin
    begun      nothing that was completed before the subscriber joined, everything that was completed after
    counted    receipts in the log count what was acknowledged, and never less than before
    complete   in the end everything is delivered and acknowledged: the receipt in the log says so
    equal      subscribers of one subscription with one origin have the same delivery under each number
    together   in one process, the subscriptions that read one stream are delivered in one order
    derived    what a subscription emits is in the log once, in the order of its relations
    placed     an event that was delivered at a position is there in the end; with ORDER BY positions are counted otherwise

Takes: a history. Gives: problems. Never: stops at the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fairlead.dataclass import dataclass
from fairlead.model.relations.relation import Relation
from fairlead.testing.history.event_time import OrderedDeliveries, ordered_deliveries
from fairlead.testing.history.expectation import digest_of, found, planned
from fairlead.testing.history.values import (
    Acknowledged,
    Acknowledging,
    History,
    LifeBegun,
    ReceivedDelivery,
    SeenReceipt,
    SubscriberHistory,
)


@dataclass(eq=False)
class GroupHistory:
    """The deliveries of a group over all processes. `first`: the number of the first one ever; `lines`: from there on."""

    subscription: str
    first: int
    lines: list[ReceivedDelivery]
    acknowledged: int = 0
    before: int | None = None
    """The last number that the present process received."""

    def problem_of(self, step: ReceivedDelivery) -> str | None:
        """Notes a delivery; says what is wrong with its number."""
        next_new = self.first + len(self.lines)
        low, high = (max(self.acknowledged + 1, self.first), next_new) if self.before is None else (self.before + 1,) * 2
        if not low <= step.number <= high:
            due = f"{low}" if low == high else f"{low} to {high}"
            return f"received number {step.number} of {step.subscription}, where {due} is due"
        self.before = step.number
        if step.number == next_new:
            self.lines.append(step)
            return None
        known = self.lines[step.number - self.first]
        if (known.id, known.sign) != (step.id, step.sign):
            return f"received number {step.number} of {step.subscription} again, and it is another relation"
        return None


def delivery_problems(history: History) -> Iterator[str]:
    groups = {each.name: dict[str, GroupHistory]() for each in history.subscribers}
    due = DueRelations(history)
    for each in history.subscribers:
        for problem in _resumed(each, groups[each.name]):
            yield f"{each.name} {problem}"
        for problem in _counted(each):
            yield f"{each.name} {problem}"
        for problem in _due(each, groups[each.name], due):
            yield f"{each.name} {problem}"
        for problem in _together(each, due):
            yield f"{each.name} {problem}"
        for problem in _placed(each, history):
            yield f"{each.name} {problem}"
    yield from _derived(history, due)


class DueRelations:
    """The relations that the reference matcher finds, by rules, stream and origin."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._found: dict[tuple[str, str, int], list[Relation]] = {}
        self._in_event_time: dict[tuple[str, str, str], OrderedDeliveries] = {}

    def all(self, text: str, stream: str, origin: int) -> list[Relation]:
        key = text, stream, origin
        if key not in self._found:
            self._found[key] = found(text, self._history.streams[stream], origin)
        return self._found[key]

    def of(self, text: str, stream: str, origin: int, subscription: str) -> Sequence[Relation]:
        """With their signs, if the rules revise."""
        if planned(text).order is not None:
            return self._ordered(text, stream, subscription).deliveries
        return [each for each in self.all(text, stream, origin) if each.subscription == subscription]

    def emitting(self, text: str, stream: str, origin: int, subscription: str) -> Sequence[Relation]:
        """Those whose derived events are stored: with ORDER BY, when no late event can change them any more."""
        if planned(text).order is not None:
            return self._ordered(text, stream, subscription).final
        return self.of(text, stream, origin, subscription)

    def _ordered(self, text: str, streams: str, subscription: str) -> OrderedDeliveries:
        """From the beginning of the log."""
        key = text, streams, subscription
        if key not in self._in_event_time:
            read = [(name, self._history.streams[name]) for name in streams.split()]
            self._in_event_time[key] = ordered_deliveries(planned(text), subscription, read)
        return self._in_event_time[key]


def _counted(who: SubscriberHistory) -> Iterator[str]:
    """Receipts in the log count what was acknowledged, and never less than before."""
    asked, seen = dict[str, int](), dict[str, int]()
    for step in who.steps:
        if isinstance(step, Acknowledging):
            asked[step.group] = max(step.number, asked.get(step.group, 0))
        elif isinstance(step, SeenReceipt):
            if step.count > max(asked.get(step.group, 0), step.joined):
                yield f"has a receipt after {step.count} deliveries, and has acknowledged {asked.get(step.group, 0)}"
            if step.count < seen.get(step.group, 0):
                yield f"has a receipt after {step.count} deliveries, and had one after {seen[step.group]}"
            seen[step.group] = step.count


def _resumed(who: SubscriberHistory, groups: dict[str, GroupHistory]) -> Iterator[str]:
    for step in who.steps:
        if isinstance(step, LifeBegun):
            for each in groups.values():
                each.before = None
        elif isinstance(step, ReceivedDelivery):
            group = groups.setdefault(step.group, GroupHistory(step.subscription, step.number, []))
            problem = group.problem_of(step)
            if problem is not None:
                yield problem
        elif isinstance(step, Acknowledged) and step.group in groups:
            groups[step.group].acknowledged = max(groups[step.group].acknowledged, step.number)


def _due(who: SubscriberHistory, groups: Mapping[str, GroupHistory], due: DueRelations) -> Iterator[str]:
    for key, group in groups.items():
        receipt, name = who.receipts.get(key), group.subscription
        if receipt is None:
            yield f"has no receipt of {name}"
            continue
        wanted = due.of(who.text, who.streams[name], receipt.origin, name)
        for line in group.lines:
            there = wanted[line.number - 1] if line.number <= len(wanted) else None
            if there is None or (there.id, there.sign) != (line.id, line.sign):
                yield f"received {line.id} as number {line.number} of {name}, and {there.id if there else 'nothing'} is due"
                break
        joined = who.joined[name]
        if receipt.origin > joined.origin_max:
            yield f"counts {name} from {receipt.origin}, and should from {joined.origin_max} at the latest"
        early = [each for each in group.lines if _completed(wanted, each.number) <= joined.before]
        if early:
            yield f"received number {early[0].number} of {name}, which was completed before it joined"
        yield from _complete(who, group, wanted, joined.by)
        digests = digest_of((each.id, each.sign) for each in wanted[: receipt.count])
        if receipt.count > len(wanted) or receipt.digest != digests:
            yield f"has a receipt of {name} after {receipt.count} deliveries that is not theirs"
        elif who.is_done and receipt.count < len(wanted):
            yield f"has a receipt of {name} after {receipt.count} deliveries, and {len(wanted)} are due"
    silent = {*who.streams} - {each.subscription for each in groups.values()}
    for name in sorted(silent) if who.is_done else ():
        named = [each for each in who.receipts.values() if each.subscription == name]
        origins = {each.origin for each in named or who.receipts.values() if named or each.origin == 0}
        if any(
            each.completed_at.major > who.joined[name].by
            for origin in origins
            for each in due.of(who.text, who.streams[name], origin, name)
        ):
            yield f"received nothing of {name}, and relations are due"


def _completed(wanted: Sequence[Relation], number: int) -> int:
    return wanted[number - 1].completed_at.major if number <= len(wanted) else 1 << 62


def _complete(who: SubscriberHistory, group: GroupHistory, wanted: Sequence[Relation], by: int) -> Iterator[str]:
    needed = [number for number, each in enumerate(wanted, 1) if each.completed_at.major > by]
    if needed and needed[0] < group.first:
        yield f"began with number {group.first} of {group.subscription}, and {needed[0]} was completed after it joined"
    last = group.first + len(group.lines) - 1
    if who.is_done and last < len(wanted):
        yield f"received {group.subscription} up to number {last}, and {len(wanted)} are due"


def _together(who: SubscriberHistory, due: DueRelations) -> Iterator[str]:
    """Only if all groups of a stream have the same origin: then the reference has one order of them all."""
    origins = {
        step.subscription: who.receipts[step.group].origin
        for step in who.steps
        if isinstance(step, ReceivedDelivery) and step.group in who.receipts
    }
    for stream in sorted({who.streams[name] for name in origins}):
        mine = {name for name in origins if who.streams[name] == stream}
        if len(mine) < 2 or len({origins[name] for name in mine}) > 1 or planned(who.text).order is not None:
            continue
        relations = due.all(who.text, stream, origins[min(mine)])
        place = {(each.subscription, each.id): number for number, each in enumerate(relations)}
        last = -1
        for step in who.steps:
            if isinstance(step, LifeBegun):
                last = -1
            elif isinstance(step, ReceivedDelivery) and step.subscription in mine:
                at = place.get((step.subscription, step.id), last + 1)
                if at <= last:
                    yield f"received number {step.number} of {step.subscription} after later ones of the one order"
                    break
                last = at


def _placed(who: SubscriberHistory, history: History) -> Iterator[str]:
    if planned(who.text).order is not None:
        return
    tokens = {name: {each.position: each.token for each in events} for name, events in history.streams.items()}
    for step in who.steps:
        if isinstance(step, ReceivedDelivery):
            there = tokens[who.streams[step.subscription]]
            for position, token in step.members:
                if isinstance(position, int) and there.get(position) != token:
                    yield f"received {token} at {position}, where the log has {there.get(position)}"
                    return


def _derived(history: History, due: DueRelations) -> Iterator[str]:
    """Of subscriptions that emit; the log has the events of the lineage of one of them."""
    asked: dict[str, set[tuple[str, str, int, str]]] = {}
    for who in history.subscribers:
        plan = planned(who.text)
        for key, receipt in who.receipts.items():
            names = {step.subscription for step in who.steps if isinstance(step, ReceivedDelivery) and step.group == key}
            for name in {*names, receipt.subscription} - {""}:
                emits = plan[name].emits
                if emits is not None:
                    origins = {receipt.origin, receipt.origin if receipt.leading is None else receipt.leading}
                    asked.setdefault(emits, set()).update((who.text, who.streams[name], each, name) for each in origins)
    for type, lineages in sorted(asked.items()):
        stored = [each.row for events in history.topics.values() for each in events if each.type == type]
        wanted = [
            [tuple(value for _, _, value in each.emitted_row) for each in due.emitting(*lineage)]
            for lineage in sorted(lineages)
        ]
        if stored not in wanted:
            due_counts = " or ".join(str(len(each)) for each in wanted)
            yield f"the log has {len(stored)} events of {type}, {due_counts} are due, or others"
