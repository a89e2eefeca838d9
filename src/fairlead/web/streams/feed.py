"""Relations and reports for one listener; each delivery with an id from which it can resume.

The id of a delivery says, for every group of the subscription, the number and the relation up to which the listener has
received everything: `12-3f…e0`, joined by dots if there are several groups, `0` if there was no delivery yet. The numbers are
those of the log, so the same id means the same in another gateway.

To resume after an id: relations that were not acknowledged are delivered again; relations up to those of the id are skipped,
early and late;
the id's relation must be the one that now has its number, and is then acknowledged, since a listener that sends an id back has
received it.

Takes: an open subscription. Gives: deliveries. Never: acknowledges what the listener has not named; skips a relation that was
never delivered.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from fairlead.errors import UsageError
from fairlead.model.events.verdict import EventReport
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import PLUS, Relation
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.transport.output.delivery_events import relation_event, report_event

PART = re.compile(r"0|([1-9][0-9]{0,18})-([0-9a-f]{32})")


class GroupProgress(NamedTuple):
    """The progress in a group: everything up to this relation."""

    number: int = 0
    relation: str = ""

    def __str__(self) -> str:
        return f"{self.number}-{self.relation}" if self.number else "0"


class FeedMessage(NamedTuple):
    """`kind`: `relation`; `retraction`, a delivery that takes a relation back; `early` and `early-retraction`, the same before
    the delay has passed; or `verdict`, a report on an event that took no part. `id`: of a delivery; None for what is early and
    for reports, which are not acknowledged. `number`: of a delivery in its group."""

    kind: str
    content: Relation | EventReport
    id: str | None = None
    number: int | None = None


class Feed:
    def __init__(self, sub: LiveSubscription, after: str | None = None) -> None:
        self._sub = sub
        self._keys = sorted(sub.receipts)
        self._given = dict.fromkeys(self._keys, GroupProgress())
        self._sent: dict[str, deque[GroupProgress]] = {key: deque() for key in self._keys}
        self._resume: dict[str, GroupProgress] = {}
        if after:
            self._resume = {key: each for key, each in self._parsed(after).items() if each.number}
            self._given |= self._resume
            for key, each in self._resume.items():
                sub.skip_early(key, each.number)

    @property
    def unacknowledged(self) -> int:
        return sum(map(len, self._sent.values()))

    def __aiter__(self) -> AsyncIterator[FeedMessage]:
        return self._messages()

    async def _messages(self) -> AsyncIterator[FeedMessage]:
        async for batch in self._sub.batches():
            for relation in batch if batch.early else ():
                yield FeedMessage("early" if relation.sign == PLUS else "early-retraction", relation)
            reports = deque(zip(batch.before, batch.reports, strict=True))
            for at, (key, number, relation) in enumerate(batch.numbered()):
                while reports and reports[0][0] <= at:
                    yield FeedMessage("verdict", reports.popleft()[1])
                if key in self._resume and await self._was_given(key, GroupProgress(number, relation.id)):
                    continue
                given = self._given[key] = GroupProgress(number, relation.id)
                self._sent[key].append(given)
                yield FeedMessage("relation" if relation.sign == PLUS else "retraction", relation, self._id(), number)
            for _, report in reports:
                yield FeedMessage("verdict", report)

    async def _was_given(self, key: str, now: GroupProgress) -> bool:
        """Whether this relation is not after the one from which to resume."""
        last = self._resume[key]
        if now.number < last.number:
            return True
        del self._resume[key]
        if now.number > last.number + 1:
            problem = "deliveries after this id are already acknowledged, and are not delivered again"
            raise UsageError("A276", problem, "reconnect without an id: the stream resumes after the last acknowledgement")
        if now.number > last.number:
            return False
        if now != last:
            raise UsageError(
                "A275", "the id does not belong to a delivery of this subscription", "use an id of this subscription"
            )
        await self._sub.acknowledge({key: now.number})
        return True

    async def acknowledge(self, text: str) -> None:
        """Acknowledge everything up to a delivery, by its id. Returns when that is stored."""
        named = self._parsed(text)
        for key, last in named.items():
            sent = self._sent[key]
            at = last.number - sent[0].number if sent else -1
            if last.number > self._given[key].number or (at >= 0 and sent[at] != last):
                raise _not_delivered()
        done = {key: last.number for key, last in named.items() if self._sent[key] and last.number >= self._sent[key][0].number}
        for key, number in done.items():
            sent = self._sent[key]
            while sent and sent[0].number <= number:
                sent.popleft()
        if done:
            await self._sub.acknowledge(done)

    def _id(self) -> str:
        return ".".join(str(self._given[key]) for key in self._keys)

    def _parsed(self, text: str) -> dict[str, GroupProgress]:
        parts = [PART.fullmatch(each) for each in text.split(".")]
        if len(parts) != len(self._keys) or not all(parts):
            raise UsageError(
                "A275", "the id does not belong to a delivery of this subscription", "send an id as it was delivered"
            )
        return {
            key: GroupProgress(int(each[1] or 0), each[2] or "") for key, each in zip(self._keys, parts, strict=True) if each
        }


def _not_delivered() -> UsageError:
    return UsageError("A275", "the id does not belong to a delivery of this stream", "acknowledge a delivery by its id")


class Writing(NamedTuple):
    """The output format of relations and reports: plain, or CloudEvents."""

    plan: Plan
    cloudevents: bool

    def value(self, message: FeedMessage) -> Any:
        if not self.cloudevents:
            return message.content.to_json()
        if isinstance(message.content, EventReport):
            return report_event(message.content, self.plan)
        return relation_event(message.content, self.plan, message.number)

    def text(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
