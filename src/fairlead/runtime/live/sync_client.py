"""The client without asyncio: the same operations, run in a background thread.

    with fairlead.connect().sync as fl:
        fl.declare(types)
        with fl.subscribe(rules, name="desk-1") as sub:
            for relation in sub:
                sub.ack(relation)

Takes: the arguments of the client. Gives: the client's results, once available. Never: does anything itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from fairlead.deliver.receipt import Comparison, Receipt
from fairlead.matching.state.encoding import Change
from fairlead.model.events.columns import Columns
from fairlead.model.events.types import Catalogue
from fairlead.model.events.verdict import EventVerdict
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.runtime.live.core.deliveries import Batch
from fairlead.runtime.live.export import Exported
from fairlead.runtime.live.overview import Overview
from fairlead.runtime.live.retention import TopicRetention
from fairlead.runtime.live.subscriber.request import Early, Start
from fairlead.runtime.live.subscriber.subscription import Ends, LiveSubscription
from fairlead.transport.threads.loop_thread import LoopThread

if TYPE_CHECKING:
    from fairlead.runtime.live.client import Client

Call = Callable[[Coroutine[Any, Any, Any]], Any]


class SyncClient:
    """A client without asyncio, from `fairlead.connect().sync`. Its methods are those of `Client`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._thread = LoopThread("fairlead-live")
        self._call = self._thread.call

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._call(self._client.__aenter__())
        except BaseException:
            self._thread.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            self._call(self._client.__aexit__(kind, error, trace))
        finally:
            self._thread.stop()

    @property
    def url(self) -> str:
        return self._client.url

    @property
    def source(self) -> str:
        return self._client.source

    def declare(self, text: str) -> list[str]:
        return self._call(self._client.declare(text))

    def types(self) -> Catalogue:
        return self._call(self._client.types())

    def publish(self, type: str, values: Mapping[str, Any] | None = None, /, *, wait: bool = False, **more: Any) -> None:
        self._call(self._client.publish(type, values, wait=wait, **more))

    def publish_many(self, type: str, events: Any, *, wait: bool = False) -> int:
        return self._call(self._client.publish_many(type, events, wait=wait))

    def publish_all(self, events: Any, *, wait: bool = False) -> int:
        return self._call(self._client.publish_all(events, wait=wait))

    def publish_columns(self, columns: Columns) -> int:
        return self._call(self._client.publish_columns(columns))

    def flush(self) -> None:
        self._call(self._client.flush())

    def subscribe(
        self,
        rules: str,
        *,
        name: str | None = None,
        start: Start = "new",
        emit: bool = True,
        verdicts: bool = False,
        early: Early = False,
    ) -> SyncSubscription:
        async def made() -> LiveSubscription:
            return self._client.subscribe(rules, name=name, start=start, emit=emit, verdicts=verdicts, early=early)

        return SyncSubscription(self._call(made()), self._call)

    def receipts(self, name: str) -> Mapping[str, Receipt]:
        return self._call(self._client.receipts(name))

    def group_names(self, name: str) -> Mapping[str, str]:
        return self._call(self._client.group_names(name))

    def compare(self, a: str, b: str) -> Comparison:
        return self._call(self._client.compare(a, b))

    def forget(self, name: str) -> None:
        self._call(self._client.forget(name))

    def export(self, rules: str, path: str | os.PathLike[str], *, subscription: str | None = None) -> Exported:
        return self._call(self._client.export(rules, path, subscription=subscription))

    def overview(self) -> Overview:
        return self._call(self._client.overview())

    def retain(
        self, *, apply: bool = False, read: bool = False, sources: timedelta | None = None
    ) -> tuple[TopicRetention, ...]:
        return self._call(self._client.retain(apply=apply, read=read, sources=sources))

    def sweep(self) -> list[str]:
        return self._call(self._client.sweep())


class SyncSubscription:
    """A live subscription without asyncio, from `SyncClient.subscribe`. Its methods are those of `LiveSubscription`."""

    def __init__(self, live: LiveSubscription, call: Call) -> None:
        self._live, self._call = live, call

    def __enter__(self) -> Self:
        self._call(self._live.__aenter__())
        return self

    def __exit__(self, *told: object) -> None:
        self._call(self._live.__aexit__(*told))

    def __iter__(self) -> Iterator[Any]:
        """Endless: break when you have enough."""
        while True:
            delivered = self.next()
            assert delivered is not None
            yield delivered

    def next(self, timeout: float | None = None) -> Any:
        """The next relation (or report), or None if there is none within so many seconds."""
        delivered = self._live.next_at_hand()
        return delivered if delivered is not None else self._call(self._live.next_within(timeout))

    def batches(self) -> Iterator[Batch]:
        while True:
            yield self._call(self._live.next_batch())

    def ack(self, done: Relation | Batch | None = None) -> None:
        self._call(self._live.ack(done))

    def ends(self) -> Ends:
        return self._call(self._live.ends())  # type: ignore[no-any-return]

    def has_passed(self, ends: Ends) -> bool:
        return bool(self._call(self._live.has_passed(ends)))

    @property
    def change(self) -> Change:
        """Which subscriptions resumed where this name left them, which started, and which were dropped."""
        return self._live.change

    @property
    def plan(self) -> Plan:
        return self._live.plan

    @property
    def rejected(self) -> Mapping[str, int]:
        return self._live.rejected

    @property
    def verdict_counts(self) -> Mapping[EventVerdict, int]:
        return self._live.verdict_counts

    def lag(self) -> int:
        return int(self._call(self._live.lag()))

    @property
    def receipt(self) -> Receipt:
        return self._live.receipt

    @property
    def receipts(self) -> Mapping[str, Receipt]:
        return self._live.receipts
