"""Runs the gateway: a client of the log and an HTTP server, from start to stop.

Takes: the address of the log, settings. Gives: the address of the gateway. Never: leaves a stream or a socket open.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from fairlead.errors import UsageError
from fairlead.runtime.live.client import connect
from fairlead.web.gateway import Gateway, Settings
from fairlead.web.routes import application

STOP_SECONDS = 3.0


@asynccontextmanager
async def gateway(url: str | None, settings: Settings, data: str | None = None) -> AsyncIterator[str]:
    """Runs while it is entered; yields its address. `url` and `data` as in `fairlead.connect`."""
    async with connect(url, data=data, patience=settings.patience) as client:
        made = Gateway(client, settings)
        runner = web.AppRunner(application(made), access_log=None, shutdown_timeout=STOP_SECONDS)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, settings.host, settings.port).start()
            except OSError as error:
                where = f"{settings.host}:{settings.port}"
                raise UsageError("A278", f"{where} is not available: {error.strerror}", "use another address or port") from None
            host, port = runner.addresses[0][:2]
            yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        finally:
            await made.sessions.close()
            await runner.cleanup()
            await made.publishing.close()


async def serve(url: str | None, settings: Settings, data: str | None, ready: Callable[[str], None]) -> None:
    """Runs until the process receives a signal to stop."""
    stopped = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # not on Windows
            asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    async with gateway(url, settings, data) as address:
        ready(address)
        await stopped.wait()
