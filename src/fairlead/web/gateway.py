"""State that the handlers share: a client of the log, the publishing and the streams, and the counters.

Takes: a connected client and settings. Gives: `Gateway`. Never: speaks HTTP.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import field

from aiohttp import web

from fairlead.dataclass import dataclass
from fairlead.runtime.live.client import LINGER_SECONDS, Client
from fairlead.runtime.live.registry import Registry
from fairlead.web.bodies import Bodies
from fairlead.web.metrics import GatewayMetrics
from fairlead.web.publishing import Publishing
from fairlead.web.sessions import Sessions

TOKEN = "FAIRLEAD_GATEWAY_TOKEN"
BODY_BYTES_MAX = 8_000_000
"""The size of a request: some 50,000 records. Bodies are held in memory, since all of a request is checked before any of it is
stored."""
PATIENCE_SECONDS = 15.0
"""How long a request waits for the log."""


@dataclass(frozen=True)
class Settings:
    """`token`: what every request must bear; none: anybody may ask. `prefix`: of the types of CloudEvents; None takes any.
    `origins`: web pages from elsewhere that may ask, such as https://desk.example. `sent_max`: relations that a stream has sent
    and nobody has acknowledged, of which it remembers number and id (4 MB)."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = field(default=None, repr=False)
    source: str | None = None
    prefix: str | None = None
    origins: tuple[str, ...] = ()
    body_bytes_max: int = BODY_BYTES_MAX
    patience: float = PATIENCE_SECONDS
    sent_max: int = 20_000

    def allows(self, authorization: str | None) -> bool:
        if self.token is None:
            return True
        kind, _, given = (authorization or "").partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self.token.encode())


def token_of_environment() -> str | None:
    return os.environ.get(TOKEN) or None


class Gateway:
    def __init__(self, client: Client, settings: Settings) -> None:
        self.client, self.settings, self.metrics = client, settings, GatewayMetrics()
        self.registry = Registry(client.log)
        self.publishing = Publishing(client.log, self.registry, settings.source, LINGER_SECONDS, settings.patience)
        self.sessions = Sessions(client, self.metrics)
        self._bodies: Bodies | None = None

    async def bodies(self) -> Bodies:
        """Readers of bodies, for the locally known types."""
        if not self.registry.catalogue.types:
            await self.registry.refresh()
        if self._bodies is None or self._bodies.catalogue is not self.registry.catalogue:
            self._bodies = Bodies(self.registry.catalogue, self.settings.prefix)
        return self._bodies


GATEWAY = web.AppKey("gateway", Gateway)
