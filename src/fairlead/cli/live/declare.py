"""`fairlead declare`: event types for all clients of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlead.cli.live.options import LogAddress, log_options
from fairlead.cli.options import json_option, print_json

if TYPE_CHECKING:
    from fairlead.runtime.live.sync_client import SyncClient


@click.command(short_help="Declare event types for all clients of a log.")
@click.argument("types", metavar="TYPES")
@log_options
@json_option
def declare(types: str, where: LogAddress, as_json: bool) -> None:
    """Declare the types in TYPES: a file of TYPE declarations, or a rule file, whose subscriptions are ignored.

    \b
    Examples:
      fairlead declare market.fl --url nats://127.0.0.1:4222
      echo 'TYPE Login (user STRING)' | fairlead declare -

    Declaring the same type again changes nothing. You can add attributes at the end; they are null in earlier events. Any
    other change is refused (A243), because it would change the meaning of stored events.
    """
    from fairlead.cli.files.rule_files import read_rules

    text = read_rules(types)
    with where.opened() as fl:
        names = declare_types(fl, text, types)
    if as_json:
        print_json({"types": names})
    else:
        click.echo(f"declared: {', '.join(names)}" if names else "nothing to declare")


def declare_types(fl: SyncClient, text: str, path: str) -> list[str]:
    """Declares the types of a text, which may refer to other declared types; of a rule file, the types in it. Raises
    LanguageError with the place in the file, UsageError."""
    from fairlead.cli.files.rule_files import naming, shown_name
    from fairlead.engine import compile
    from fairlead.runtime.live.core.declarations import compile_names, declarations

    with naming(path):
        if compile_names(text).subscriptions:
            known = compile(text, shown_name(path)).catalogue
            text = declarations(known)
        return fl.declare(text)
