"""`fairlead declare`: event types for all clients of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlead.cli.live.options import Where, log_options
from fairlead.cli.options import json_option, print_json

if TYPE_CHECKING:
    from fairlead.runtime.live.sync import SyncClient


@click.command(short_help="Declare event types for all clients of a log.")
@click.argument("types", metavar="TYPES")
@log_options
@json_option
def declare(types: str, where: Where, as_json: bool) -> None:
    """Declare the types of TYPES, a file of TYPE declarations or a whole rule file, whose subscriptions are left alone.

    \b
    Examples:
      fairlead declare market.fl --url nats://127.0.0.1:4222
      echo 'TYPE Login (user STRING)' | fairlead declare -

    The same again changes nothing. Attributes may be added at the end: events from before have null there. Anything else is
    refused (A243), since it would change what stored events mean.
    """
    text = declarations(types)
    with where.opened() as fl:
        names = fl.declare(text) if text else []
    if as_json:
        print_json({"types": names})
    else:
        click.echo(f"declared: {', '.join(names)}" if names else "nothing to declare")


def declare_types(fl: SyncClient, path: str) -> list[str]:
    text = declarations(path)
    return fl.declare(text) if text else []


def declarations(path: str) -> str:
    """The TYPE declarations of a file of rules, without its subscriptions. Raises LanguageError with the place in the file."""
    from fairlead.cli.rules import load_plan
    from fairlead.runtime.live.evolution import declaration

    plan = load_plan(path)
    return "\n".join(declaration(each, plan.catalogue) for each in plan.catalogue if not each.derived)
