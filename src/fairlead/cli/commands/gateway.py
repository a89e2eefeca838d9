"""`fairlead gateway`: the live runtime over HTTP."""

from __future__ import annotations

import click


@click.command(short_help="Serve publish and subscribe over HTTP, server-sent events and WebSockets.")
@click.option(
    "--url", metavar="URL", help="The NATS server or cluster. [default: FAIRLEAD_URL; if that is not set, start a server]"
)
@click.option("--data", metavar="FOLDER", help="Where the started server stores the log; without it, the log is temporary.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=0, show_default=True, help="The port; 0 chooses a free one.")
@click.option("--source", metavar="NAME", help="The source name for events that have no source and sequence of their own.")
@click.option(
    "--prefix", metavar="TEXT", help="The prefix to remove from CloudEvent types; without it, everything up to the last dot."
)
@click.option(
    "--origin", "origins", metavar="URL", multiple=True, help="Allow requests from web pages of this origin; can be repeated."
)
@click.option("--body-max", default=8_000_000, show_default=True, help="The largest body of a request, in bytes.")
@click.option("--policy", metavar="FILE", help="Users, the hashes of their tokens, and what each may do (docs/rights.md).")
@click.option("--allow-host", "hosts", metavar="NAME", multiple=True, help="A host name of this gateway; can be repeated.")
@click.option("--rate", type=float, metavar="NUMBER", help="Requests per second of each caller. [default: any number]")
@click.option("--certificate", metavar="FILE", help="The certificate, for TLS; a PEM file.")
@click.option("--key", metavar="FILE", help="Its key.")
def gateway(
    url: str | None,
    data: str | None,
    host: str,
    port: int,
    source: str | None,
    prefix: str | None,
    origins: tuple[str, ...],
    body_max: int,
    policy: str | None,
    hosts: tuple[str, ...],
    rate: float | None,
    certificate: str | None,
    key: str | None,
) -> None:
    """Serve publish and subscribe over HTTP, server-sent events and WebSockets. See docs/gateway.md, and /openapi.json of
    the running gateway. If FAIRLEAD_GATEWAY_TOKEN is set in the environment, requests need that bearer token, or that of
    a user of the policy.

    \b
    Examples:
      fairlead gateway --data market --port 8080
      fairlead gateway --url nats://log.example:4222 --host 0.0.0.0 --port 8080 --policy policy.yaml
    """
    import asyncio

    from fairlead.cli.live.options import read_policy
    from fairlead.errors import UnsupportedError

    try:
        from fairlead.web.gateway import Settings, token_of_environment
        from fairlead.web.serving import serve
    except ModuleNotFoundError as error:
        if error.name not in ("aiohttp", "prometheus_client"):
            raise
        raise UnsupportedError("U130", "the HTTP server is not installed", "pip install 'fairlead[gateway,live]'") from None
    token = token_of_environment()
    users = None if policy is None else read_policy(policy)
    if token is None and users is None and host not in ("127.0.0.1", "::1", "localhost"):
        click.echo(
            "no FAIRLEAD_GATEWAY_TOKEN and no --policy is set: all clients of this address can publish and subscribe", err=True
        )
    settings = Settings(
        host,
        port,
        token,
        source,
        prefix,
        origins,
        body_max,
        policy=users,
        hosts=hosts,
        rate=rate,
        certificate=certificate,
        key=key,
    )
    asyncio.run(serve(url, settings, data, lambda address: click.echo(f"gateway at {address}")))
