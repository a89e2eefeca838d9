"""`fairlead gateway`: the live runtime over HTTP."""

from __future__ import annotations

import click


@click.command(short_help="Serve publish and subscribe over HTTP, server-sent events and WebSockets.")
@click.option("--url", metavar="URL", help="The NATS server or cluster; FAIRLEAD_URL, or else a server of its own.")
@click.option("--data", metavar="FOLDER", help="Where a server of its own keeps the log; without it, nothing is kept.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=0, show_default=True, help="The port; 0 takes a free one.")
@click.option("--source", metavar="NAME", help="The name under which it publishes events whose source does not number them.")
@click.option(
    "--prefix", metavar="TEXT", help="What the types of CloudEvents begin with; without it, any text up to the last dot."
)
@click.option(
    "--origin", "origins", metavar="URL", multiple=True, help="A web page's origin that may ask; several are allowed."
)
@click.option("--body-max", default=8_000_000, show_default=True, help="The largest body of a request, in bytes.")
def gateway(
    url: str | None,
    data: str | None,
    host: str,
    port: int,
    source: str | None,
    prefix: str | None,
    origins: tuple[str, ...],
    body_max: int,
) -> None:
    """Serve publish and subscribe over HTTP, server-sent events and WebSockets; docs/gateway.md, and /openapi.json when it
    runs. With FAIRLEAD_GATEWAY_TOKEN in the environment, requests must bear that token.

    \b
    Examples:
      fairlead gateway --data market --port 8080
      fairlead gateway --url nats://log.example:4222 --host 0.0.0.0 --port 8080
    """
    import asyncio

    from fairlead.errors import UnsupportedError

    try:
        from fairlead.web.gateway import Settings, token_of_environment
        from fairlead.web.serving import serve
    except ModuleNotFoundError as error:
        if error.name != "aiohttp":
            raise
        raise UnsupportedError("U130", "the HTTP server is not installed", "pip install 'fairlead[gateway,live]'") from None
    token = token_of_environment()
    if token is None and host not in ("127.0.0.1", "::1", "localhost"):
        click.echo("no FAIRLEAD_GATEWAY_TOKEN is set: everyone who reaches this address can publish and subscribe", err=True)
    settings = Settings(host, port, token, source, prefix, origins, body_max)
    asyncio.run(serve(url, settings, data, lambda address: click.echo(f"gateway at {address}")))
