"""State that the handlers share: a client of the log, the publishing and the streams, and the counters.

Takes: a connected client and settings. Gives: `Gateway`. Never: speaks HTTP.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import field
from weakref import WeakValueDictionary

from aiohttp import web

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.runtime.live.client import LINGER_SECONDS, Client
from fairlead.runtime.live.core.declarations import compile_names
from fairlead.runtime.live.registry import Registry, off_loop
from fairlead.runtime.rights.policy import Policy, PolicyUser
from fairlead.web.access.admission import OPERATOR, Admission
from fairlead.web.access.rates import RequestRates, SharedRoom
from fairlead.web.access.scopes import check_name, check_plan
from fairlead.web.bodies import Bodies
from fairlead.web.metrics import GatewayMetrics
from fairlead.web.publishing import Publishing
from fairlead.web.streams.sessions import Sessions

TOKEN = "FAIRLEAD_GATEWAY_TOKEN"
BODY_BYTES_MAX = 8_000_000
"""The size of a request: some 50,000 records. Bodies are held in memory, since all of a request is checked before any of it is
stored."""
BODIES_BYTES_MAX = 128_000_000
"""All bodies that are held at a time: sixteen of the largest. Checked records take a few times as much."""
RULES_BYTES_MAX = 100_000
"""Some thousand subscriptions, which take half a second to compile."""
PATIENCE_SECONDS = 15.0
"""How long a request waits for the log."""
HEAD_SECONDS, BODY_SECONDS, REQUEST_SECONDS, COMPILE_SECONDS = 15.0, 30.0, 60.0, 10.0
"""How long a client may take to send the head and the body of a request, and the gateway to answer it; and of that, how long
its rules may take to compile."""


@dataclass(frozen=True)
class Settings:
    """`token`: the operator's, which may do everything. `policy`: users with tokens, each with what it may do. Without either,
    anybody may ask. `prefix`: of the types of CloudEvents; None takes any. `hosts`: names of this gateway beside its address.
    `origins`: web pages from elsewhere that may ask, such as https://desk.example. `rate`: requests per second of each caller,
    unless the policy says another; None: any number. `certificate`, `key`: PEM files, for TLS. `sent_max`: relations that a
    stream has sent and nobody has acknowledged, of which it remembers number and id (4 MB). `streams_max`: open streams."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = field(default=None, repr=False)
    source: str | None = None
    prefix: str | None = None
    origins: tuple[str, ...] = ()
    body_bytes_max: int = BODY_BYTES_MAX
    patience: float = PATIENCE_SECONDS
    sent_max: int = 20_000
    policy: Policy | None = None
    hosts: tuple[str, ...] = ()
    rate: float | None = None
    certificate: str | None = None
    key: str | None = None
    bodies_bytes_max: int = BODIES_BYTES_MAX
    rules_bytes_max: int = RULES_BYTES_MAX
    streams_max: int = 1_000
    head_seconds: float = HEAD_SECONDS
    body_seconds: float = BODY_SECONDS
    request_seconds: float = REQUEST_SECONDS
    compile_seconds: float = COMPILE_SECONDS


def token_of_environment() -> str | None:
    return os.environ.get(TOKEN) or None


class Gateway:
    def __init__(self, client: Client, settings: Settings) -> None:
        self.client, self.settings, self.metrics = client, settings, GatewayMetrics()
        self.registry = Registry(client.log)
        self.publishing = Publishing(client.log, self.registry, settings.source, LINGER_SECONDS, settings.patience)
        self.sessions = Sessions(client, self.metrics, settings.streams_max)
        names = (settings.host, *settings.hosts)
        self.admission = Admission(names, settings.origins, settings.token, settings.policy)
        self.rates, self.room = RequestRates(), SharedRoom(settings.bodies_bytes_max)
        self._compiling = asyncio.Semaphore(1)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._bodies: Bodies | None = None

    async def bodies(self) -> Bodies:
        """Readers of bodies, for the locally known types."""
        if not self.registry.catalogue.types:
            await self.registry.refresh()
        if self._bodies is None or self._bodies.catalogue is not self.registry.catalogue:
            self._bodies = Bodies(self.registry.catalogue, self.settings.prefix)
        return self._bodies

    async def check_rules(self, caller: PolicyUser, name: str, rules: str) -> None:
        """Whether the caller may subscribe to the rules under the name. Compiles them first, in a thread, one text at a time,
        so that other requests are answered meanwhile; one of each caller waits for that, so that none keeps the others waiting
        by asking often. Raises UsageError, LanguageError."""
        check_name(caller, name)
        self.check_size(rules)
        try:
            turn = self._turns.setdefault(caller.name, asyncio.Lock())
            async with asyncio.timeout(self.settings.compile_seconds), turn, self._compiling:
                plan = await self.registry.read_plan(rules)
                declared = (await off_loop(compile_names, rules)).declared
        except TimeoutError:
            problem = f"the rules took longer than {self.settings.compile_seconds:g} seconds to compile"
            raise UsageError("A283", problem, "send fewer or simpler subscriptions, under several names") from None
        check_plan(caller, plan, declared, self.registry.catalogue)

    async def known_rules(self, caller: PolicyUser, name: str, rules: str | None) -> str:
        """The rules of a subscriber that exists: a GET creates none, and changes no rules. Raises UsageError."""
        check_name(caller, name)
        try:
            known = await self.sessions.rules(name)
        except UsageError as error:
            if error.code != "A250" or rules is None:
                raise
            known = None
        if known is None or rules not in (None, known):
            problem = f"'{name}' is not subscribed to these rules, and a GET changes nothing"
            raise UsageError("A289", problem, "POST /subscriptions first, with name and rules")
        if not caller.manage:
            await self.check_rules(caller, name, known)
        return known

    def check_size(self, text: str) -> None:
        """Of rules or declarations. Raises UsageError."""
        most = self.settings.rules_bytes_max
        if len(text) > most or len(text.encode("utf-8", "surrogatepass")) > most:
            raise UsageError("A283", f"the text is longer than {most:,} bytes", "send fewer subscriptions, under several names")


GATEWAY = web.AppKey("gateway", Gateway)
CALLER = web.RequestKey("caller", PolicyUser)
"""Of a request: the user of the policy that asks."""


def user_of(request: web.Request) -> str | None:
    """Its name; None if it manages."""
    caller = request.get(CALLER, OPERATOR)
    return None if caller.manage else caller.name
