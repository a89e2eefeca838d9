"""The client of a log: declare types, publish events, subscribe to relations.

    async with fairlead.connect() as fl:
        await fl.declare("TYPE StockQuote (symbol STRING, value DOUBLE, at TIMESTAMP) TIME at")
        await fl.publish("StockQuote", symbol="IBM", value=150.0, at=now)
        async with fl.subscribe(rules, name="desk-1") as sub:
            async for relation in sub:
                await sub.ack(relation)

Takes: texts, events. Gives: relations. Never: starts anything before it is entered, or leaves anything running after.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from fairlead.deliver.receipt import Comparison, Receipt
from fairlead.errors import LogError, StateError, UsageError
from fairlead.model.arguments import require_kind
from fairlead.model.events.columns import Columns
from fairlead.model.events.types import Catalogue
from fairlead.runtime.live.export import Exported, export, selected
from fairlead.runtime.live.merged_streams import sweep
from fairlead.runtime.live.overview import Overview, overview_of
from fairlead.runtime.live.publisher.publisher import Publisher
from fairlead.runtime.live.registry import Registry
from fairlead.runtime.live.retention import TopicRetention, retain
from fairlead.runtime.live.route_table import retire_routes
from fairlead.runtime.live.subscriber.abandoned_states import remove_abandoned
from fairlead.runtime.live.subscriber.group_start import SharedWork
from fairlead.runtime.live.subscriber.record import compared, forget, group_names, receipts_of
from fairlead.runtime.live.subscriber.request import Early, Start, SubscriptionRequest
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from fairlead.transport.events import read_events
from fairlead.transport.log.credentials import Credentials
from fairlead.transport.log.log_place import LogPlace, place_of
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Log
from fairlead.transport.log.signed_log import ignored

if TYPE_CHECKING:
    from fairlead.runtime.live.sync_client import SyncClient

NONE = type(None)
LINGER_SECONDS = 0.005
PATIENCE_SECONDS = 60.0


class Client:
    """A connection to a log. Create it with `fairlead.connect`, and use it in `async with`."""

    def __init__(self, place: LogPlace, source: str | None, linger: float, patience: float, heartbeat: float | None) -> None:
        self._place, self._source, self._linger = place, source, linger
        self._patience, self._heartbeat = patience, heartbeat
        self._held = ExitStack()
        self._log: PatientLog | None = None

    async def __aenter__(self) -> Self:
        try:
            log, self._url = await self._place.open(self._held)
            self._log = PatientLog(log, self._patience)
        except BaseException:
            self._held.close()
            raise
        self._registry, self._shared = Registry(self._log), SharedWork()
        self._publisher = Publisher(self._log, self._registry, self._source, self._linger, self._patience)
        if self._heartbeat is not None:
            self._publisher.beat(self._heartbeat)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stores the accepted events first, unless an error is already being raised."""
        if self._log is None:
            return
        try:
            await self._publisher.close(flush=kind is None)
        finally:
            log, self._log = self._log, None
            await log.close()
            self._held.close()

    @property
    def sync(self) -> SyncClient:
        """The same client without asyncio: `with fairlead.connect().sync as fl: …`"""
        from fairlead.runtime.live.sync_client import SyncClient

        return SyncClient(self)

    def _ready(self) -> PatientLog:
        if self._log is None:
            raise UsageError("A248", "the client is not connected", "use it inside `async with fairlead.connect() as fl:`")
        return self._log

    @property
    def log(self) -> Log:
        """The log itself, for direct reads."""
        return self._ready()

    @property
    def url(self) -> str:
        """The url under which other clients reach the log."""
        self._ready()
        return self._url

    @property
    def source(self) -> str:
        """The name under which this client publishes."""
        return self._publisher.source

    async def declare(self, text: str) -> list[str]:
        """Declare types for all clients of the log, and return their names.

        Declaring the same types again changes nothing; you can add attributes at the end. Raises LanguageError, UsageError.
        """
        self._ready()
        _require_text("declare", "text", text)
        names = await self._registry.declare(text)
        await self._publisher.renew()
        return names

    async def types(self) -> Catalogue:
        """All declared types."""
        self._ready()
        await self._registry.refresh()
        return self._registry.catalogue

    async def publish(self, type: str, values: Mapping[str, Any] | None = None, /, *, wait: bool = False, **more: Any) -> None:
        """Publish one event, by its attributes. Returns when it is accepted; with `wait`, when it is stored.

        Raises DataError if the event does not fit its type, and LogError if the log failed: its `accepted` says whether the
        event is kept and sent with the next publish or flush.
        """
        self._ready()
        _require_text("publish", "type", type)
        fix = 'publish("StockQuote", {"symbol": "IBM"})'
        require_kind("publish", "values", values, (Mapping, NONE), "attributes by name", fix)
        await self._publisher.publish(type, {**values, **more} if values else more, wait)

    async def publish_many(self, type: str, events: Any, *, wait: bool = False) -> int:
        """Publish many events of one type, and return their number.

        `events`: a table of pyarrow, pandas or polars, a dict of columns, or records. All are checked before any is accepted.
        """
        self._ready()
        _require_text("publish_many", "type", type)
        return await self._publisher.publish_many(type, events, wait)

    async def publish_all(self, events: Any, *, wait: bool = False) -> int:
        """Publish events of any types, and return their number. Those of a topic are stored in the order given here.

        `events`: a table of pyarrow, pandas or polars with a column `type`, or records with a field `type`. All are checked
        before any is accepted.
        """
        self._ready()
        await self._registry.refresh()
        return await self._publisher.publish_all(list(read_events(events, self._registry.catalogue, allow_nan=True)), wait)

    async def publish_columns(self, columns: Columns) -> int:
        """Publish checked events, and wait until they are stored."""
        self._ready()
        fix = "publish_all(records) accepts records and tables"
        require_kind("publish_columns", "columns", columns, (Columns,), "checked events, as files are read", fix)
        return await self._publisher.publish_all([columns], wait=True)

    async def flush(self) -> None:
        """Wait until everything accepted so far is stored."""
        self._ready()
        await self._publisher.flush()

    def subscribe(
        self,
        rules: str,
        *,
        name: str | None = None,
        start: Start = "new",
        emit: bool = True,
        verdicts: bool = False,
        early: Early = False,
    ) -> LiveSubscription:
        """Subscribe to the relations of rules. Use the result in `async with`.

        The rules need not repeat declared types. With a `name` the subscription is durable: it resumes after the last relation
        acknowledged under that name. `start` is where a new one starts: "new", "earliest", "snapshot", a position or a
        datetime. `emit`: publish what the rules EMIT. `verdicts`: among the relations, deliver a report on every event that
        takes no part in the rules' ORDER BY, because it is late, ahead or repeated. `early`: also deliver relations before
        DELAY has passed, marked `early`, and take them back if later events change them; "final": only those that no other
        event can change.
        """
        request = SubscriptionRequest(rules, name, start, emit, verdicts, early)
        return LiveSubscription(self._ready(), self._registry, self._shared, request)

    async def receipts(self, name: str) -> Mapping[str, Receipt]:
        """The receipts of what a durable subscriber has acknowledged, by group of subscriptions."""
        return await receipts_of(self._ready(), name)

    async def compare(self, a: str, b: str) -> Comparison:
        """Compare what two durable subscribers have acknowledged, as far as they have the same subscriptions."""
        left, right = await self.receipts(a), await self.receipts(b)
        return compared(left, right, await self.group_names(a))

    async def group_names(self, name: str) -> Mapping[str, str]:
        """By group of a durable subscriber, as in `receipts`, the name of its subscription."""
        return await group_names(self._ready(), name)

    async def forget(self, name: str) -> None:
        """Remove a durable subscriber permanently, and the routes that only it read."""
        await forget(self._ready(), name)
        await self._retire_routes()

    async def _retire_routes(self) -> None:
        try:
            await retire_routes(self._ready())
        except LogError as error:
            if error.code != "N003":  # a user that manages can do it: `fairlead streams --sweep`
                raise
        except StateError as error:
            ignored(error)

    async def export(self, rules: str, path: str | os.PathLike[str], *, subscription: str | None = None) -> Exported:
        """Write the events that the rules read to a Parquet file, with their positions, up to now.

        Rules that read several streams need a `subscription`: then the file has the events that it reads.
        """
        _require_text("export", "rules", rules)
        require_kind("export", "path", path, (str, os.PathLike), "the path of a file", 'export(rules, "events.parquet")')
        selection = await selected(self._ready(), rules, subscription)
        return await export(self._ready(), selection, path)

    async def overview(self) -> Overview:
        """The streams of the log, and how far the durable subscribers are."""
        return await overview_of(self._ready(), await self.types())

    async def retain(
        self, *, apply: bool = False, read: bool = False, sources: timedelta | None = None
    ) -> tuple[TopicRetention, ...]:
        """Trim the topics by their policies (KEEP), and return what was trimmed; without `apply`, what would be.

        `read`: trim topics without a policy as far as all durable subscribers have read them. `sources`: forget named sources
        of which the log has no events, if they have stored nothing for so long before the newest event.
        """
        require_kind("retain", "sources", sources, (timedelta, NONE), "a timedelta", "retain(sources=timedelta(days=90))")
        for argument, value in (("apply", apply), ("read", read)):
            require_kind("retain", argument, value, (bool,), "True or False", "retain(apply=True)")
        self._ready()
        await self._registry.refresh()
        kept = None if sources is None else sources // timedelta(microseconds=1)
        topics = await self._registry.all_topics()
        found = await retain(self._ready(), topics, apply=apply, read=read, sources_us=kept)
        if apply:
            await remove_abandoned(self._ready())
        return found

    @property
    def rejected(self) -> Mapping[str, int]:
        """How many rejected blocks the subscribers of this client have read, by the code of the error."""
        return dict(sorted(self._shared.rejected.items()))

    async def sweep(self) -> list[str]:
        """Remove the merged streams, routes and states that no subscriber needs, and return the names of the streams."""
        await self._retire_routes()
        removed = await sweep(self._ready())
        await remove_abandoned(self._ready())
        return removed


def _require_text(call: str, argument: str, value: Any) -> None:
    require_kind(call, argument, value, (str,), "a str", "the name of a type" if argument == "type" else "pass its text")


def connect(
    url: str | None = None,
    *,
    data: str | os.PathLike[str] | None = None,
    source: str | None = None,
    replicas: int | None = None,
    linger: float = LINGER_SECONDS,
    patience: float = PATIENCE_SECONDS,
    heartbeat: float | None = None,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    nkey: str | os.PathLike[str] | None = None,
    ca: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    signing_keys: str | os.PathLike[str] | None = None,
) -> Client:
    """Create a client of a log. Use it in `async with`, or `with fairlead.connect().sync`.

    `url` (or FAIRLEAD_URL) is a NATS server or cluster. Without it, Fairlead starts a server that stores the log in the folder
    `data`, or in a temporary one. `source` names this publisher; a later client with the same name continues its numbers.
    `linger`: how long a block stays open for more events. `patience`: how long to retry if no server answers. `heartbeat`:
    publish the time every so many seconds. `nkey`, `ca`, `certificate`, `key` and `signing_keys` are files; the last eight
    arguments can also come from the environment (FAIRLEAD_USER, …). `signing_keys`: the first of these keys signs tables and
    states of the log, and only those that one of them has signed are relied on.
    """
    for argument, text in (("url", url), ("source", source), ("user", user), ("password", password), ("token", token)):
        require_kind("connect", argument, text, (str, NONE), "a str or None", f'connect({argument}="…")')
    for argument, number in (("linger", linger), ("patience", patience), ("heartbeat", heartbeat)):
        kinds = (int, float, NONE) if argument == "heartbeat" else (int, float)
        require_kind("connect", argument, number, kinds, "a number of seconds", f"connect({argument}=1.0)")
    require_kind("connect", "replicas", replicas, (int, NONE), "1, 3, 5 or None", "connect(url, replicas=3)")
    files = {"data": data, "nkey": nkey, "ca": ca, "certificate": certificate, "key": key, "signing_keys": signing_keys}
    for argument, path in files.items():
        require_kind("connect", argument, path, (str, os.PathLike, NONE), "a path or None", f'connect({argument}="…")')
    named = {name: None if path is None else os.fspath(path) for name, path in files.items() if name != "data"}
    access = Credentials(user, password, token, **named)
    return Client(place_of(url, data, replicas, access), source, linger, patience, heartbeat)


__all__ = ["Client", "Comparison", "Receipt", "connect"]
