"""`fairlead up`: a durable server on this machine, for as long as the command runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.cli.options import json_option

if TYPE_CHECKING:
    from fairlead.transport.log.jetstream.server import Server

LOOK_SECONDS = 0.2
PORT_FILE = "port"


@click.command(short_help="Start a durable server on this machine.")
@click.option("--data", metavar="DIR", default="fairlead-data", show_default=True, help="Where to store the log.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port on 127.0.0.1; 0 chooses a free one. [default: the same as last time, a free one at first]",
)
@click.option("--bytes-max", type=click.IntRange(min=1), metavar="N", help="The maximum size of the log in bytes.")
@click.option(
    "--fast", is_flag=True, help="Do not sync every block to the disk: a power failure can lose two minutes of events."
)
@json_option
def up(data: str, port: int | None, bytes_max: int | None, fast: bool, as_json: bool) -> None:
    """Start a server (NATS JetStream) that stores its log in DIR. Stop it with Ctrl-C.

    \b
    Examples:
      fairlead up
      fairlead up --data /var/lib/fairlead --port 4222
      fairlead up --json | jq -r .url

    \b
    Then, in other shells:
      export FAIRLEAD_URL=nats://127.0.0.1:…
      fairlead declare market.fl
      fairlead publish --from quotes.jsonl
      fairlead tail market.fl --start earliest

    Acknowledged events are on the disk. Only this machine can connect. For a server that other machines use, with TLS and
    accounts, set up NATS itself and use --url. When interrupted or terminated, the exit code is 0.
    """
    from fairlead.errors import LogError
    from fairlead.transport.log.jetstream.server import Server

    chosen = _last_port(Path(data)) if port is None else port
    server = Server(data, port=chosen, durable=not fast, bytes_max=bytes_max)
    try:
        try:
            server.start()
        except LogError as error:
            if port is not None or not chosen or error.code != "N007":
                raise
            server.port = 0  # another process uses the previous port
            server.start()
        _remember(Path(data), server)
        _tell(server, as_json)
        while server.running:
            time.sleep(LOOK_SECONDS)
    except (KeyboardInterrupt, SystemExit):
        server.stop()
        if not as_json:
            click.echo("stopped", err=True)
        return
    finally:
        server.stop()
    raise LogError("N007", "the server has stopped", f"see {server.folder / 'log'}")


def _last_port(data: Path) -> int:
    try:
        return int((data / PORT_FILE).read_text())
    except (OSError, ValueError):
        return 0


def _remember(data: Path, server: Server) -> None:
    (data / PORT_FILE).write_text(server.url.rsplit(":", 1)[-1])


def _tell(server: Server, as_json: bool) -> None:
    import json

    if as_json:  # one line, for other processes to read while the command runs
        click.echo(json.dumps({"url": server.url, "data": str(server.folder), "pid": server.pid}))
        return
    click.echo(f"{server.url}  keeps its log in {server.folder}")
    click.echo(f"  in a shell   export FAIRLEAD_URL={server.url}")
    click.echo(f'  in Python    fairlead.connect("{server.url}")')
    click.echo("Ctrl-C stops it")
