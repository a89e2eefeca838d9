"""Runs the gateway: a client of the log and an HTTP server, from start to stop.

Takes: the address of the log, settings. Gives: the address of the gateway. Never: leaves a stream or a socket open.
"""

from __future__ import annotations

import asyncio
import signal
import ssl
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
        runner = web.AppRunner(
            application(made), access_log=None, shutdown_timeout=STOP_SECONDS, keepalive_timeout=settings.head_seconds
        )
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, settings.host, settings.port, ssl_context=_tls(settings)).start()
            except OSError as error:
                where = f"{settings.host}:{settings.port}"
                raise UsageError("A278", f"{where} is not available: {error.strerror}", "use another address or port") from None
            host, port = runner.addresses[0][:2]
            kind = "http" if settings.certificate is None else "https"
            yield f"{kind}://[{host}]:{port}" if ":" in host else f"{kind}://{host}:{port}"
        finally:
            await made.sessions.close()
            await runner.cleanup()
            await made.publishing.close()


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.certificate is None:
        return None
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        made.load_cert_chain(settings.certificate, settings.key)
    except (ssl.SSLError, OSError) as error:
        raise UsageError(
            "A287", f"the certificate or its key is invalid: {error}", "pass PEM files: --certificate, --key"
        ) from None
    return made


async def serve(url: str | None, settings: Settings, data: str | None, ready: Callable[[str], None]) -> None:
    """Runs until the process receives a signal to stop."""
    stopped = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # not on Windows
            asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    async with gateway(url, settings, data) as address:
        ready(address)
        await stopped.wait()
