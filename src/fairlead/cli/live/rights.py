"""`fairlead rights`: who may do what, by a policy."""

from __future__ import annotations

import click

from fairlead.cli.live.options import LogAddress, log_options, read_policy


class RightsGroup(click.Group):
    """`fairlead rights POLICY.yaml` is short for `fairlead rights config POLICY.yaml`."""

    def resolve_command(self, context: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and args[0].endswith((".yaml", ".yml")):
            args = ["config", *args]
        return super().resolve_command(context, args)


@click.group(cls=RightsGroup, short_help="Who may do what: server configurations and tokens of a policy.")
def rights() -> None:
    """Who may do what, by a policy; see docs/rights.md.

    \b
    Examples:
      fairlead rights policy.yaml > rights.conf
      fairlead rights apply policy.yaml --url nats://localhost:4222 --user boss
      fairlead rights check policy.yaml --url nats://localhost:4222 --user desk
      fairlead rights sign --signing-keys log.keys --user boss
      fairlead rights token
    """


@rights.command(short_help="Print the configuration of a NATS server for a policy.")
@click.argument("policy")
def config(policy: str) -> None:
    """Print the part of a NATS server's configuration that gives every user of POLICY its rights, and no others. What a
    server does not enforce is said on the standard error.

    \b
    Example:
      fairlead rights policy.yaml > rights.conf
    """
    from fairlead.runtime.rights.server_config import server_config
    from fairlead.runtime.rights.subjects import notes_of

    found = read_policy(policy)
    click.echo(server_config(found), nl=False)
    for user in found.users.values():
        for note in notes_of(user):
            click.echo(f"note: {note}", err=True)


@rights.command(short_help="Create the streams and tables that the users of a policy need.")
@click.argument("policy")
@log_options
def apply(policy: str, where: LogAddress) -> None:
    """Create the tables, the streams of topics and the merged streams that the users of POLICY need, and may not create.
    Run it as a user that manages, after every change of the policy.

    \b
    Example:
      fairlead rights apply policy.yaml --user boss
    """
    import asyncio

    from fairlead.runtime.live.client import connect
    from fairlead.runtime.rights.apply import apply as applied

    found = read_policy(policy)
    where.require()

    async def work() -> list[str]:
        async with connect(where.url, **where.credentials) as client:
            return await applied(client.log, found)

    click.echo(f"{len(asyncio.run(work()))} streams are there")


@rights.command(short_help="Compare what a server lets a user do with a policy.")
@click.argument("policy")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@log_options
def check(policy: str, as_json: bool, where: LogAddress) -> None:
    """Connect as a user (--user), and report what it may and may not do, beside what POLICY says. Nothing is stored or
    read. Exit code 1: the server and the policy differ.

    \b
    Example:
      fairlead rights check policy.yaml --user desk
    """
    import asyncio
    import json

    from fairlead.runtime.rights.check import check as checked
    from fairlead.transport.log.credentials import Credentials

    found = read_policy(policy)
    where.require()
    access = Credentials(**where.credentials).with_environment()
    named = next(
        (each.name for each in found.users.values() if each.nkey and access.inbox == f"_INBOX.{each.nkey}"), access.user
    )
    lines = asyncio.run(checked(str(where.url), access, found, named or ""))
    if as_json:
        click.echo(json.dumps([each._asdict() for each in lines], indent=2))
    else:
        width = max(len(each.what) for each in lines)
        for each in lines:
            may = "allowed" if each.found else "refused"
            click.echo(f"{each.what:{width}}  {may}{'' if each.found == each.expected else '  <- the policy says otherwise'}")
    if any(each.found != each.expected for each in lines):
        raise SystemExit(1)


@rights.command(short_help="Sign the tables and states of a log by the first of your keys.")
@click.option("--adopt", is_flag=True, help="Also sign entries without a signature: those from before there were keys.")
@log_options
def sign(adopt: bool, where: LogAddress) -> None:
    """Sign all entries of the tables of a log, and all states, by the first key of --signing-keys: when keys are
    introduced (--adopt), and before an old key is removed from the file. Entries that another client of the keys writes
    meanwhile are signed by it. Exit code 1: some have no valid signature; they are listed, and not changed.

    \b
    Example:
      fairlead rights sign --signing-keys log.keys --adopt --user boss
    """
    import asyncio

    from fairlead.runtime.rights.signatures import sign_all
    from fairlead.transport.log.credentials import Credentials
    from fairlead.transport.log.log_place import place_of

    where.require()
    found = asyncio.run(sign_all(place_of(where.url, None, None, Credentials(**where.credentials)), adopt=adopt))
    for each in found.refused:
        click.echo(f"{each} has no valid signature", err=True)
    click.echo(f"{found.signed} signed, {found.kept} had the signature of the first key, {len(found.refused)} refused")
    if found.refused:
        raise SystemExit(1)


@rights.command(short_help="Make a token for the gateway, and its hash for the policy.")
def token() -> None:
    """Make a token for the gateway. The line for the policy goes to the standard output, the token itself to the standard
    error: give it to its user, and keep it nowhere else.

    \b
    Example:
      fairlead rights token
    """
    import hashlib
    import secrets

    made = secrets.token_urlsafe(32)
    click.echo(f"token: {made}", err=True)
    click.echo(f"token: sha256:{hashlib.sha256(made.encode()).hexdigest()}")
