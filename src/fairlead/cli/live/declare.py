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

    `TOPIC name KEEP 30 DAYS` sets how much of a topic `fairlead retain` keeps; the last declaration counts.

    Declaring the same type again changes nothing. You can add attributes at the end; they are null in earlier events. Any
    other change is refused (A243), because it would change the meaning of stored events.
    """
    from fairlead.cli.files.rule_files import naming, read_rules
    from fairlead.runtime.live.core.declarations import compile_names

    text = read_rules(types)
    with naming(types):
        kept = {name: str(each) for name, each in compile_names(text).kept.items()}
    with where.opened() as fl:
        names = declare_types(fl, text, types)
    if as_json:
        print_json({"types": names, "keep": kept} if kept else {"types": names})
    else:
        said = [*names, *(f"{name} KEEP {each}" for name, each in sorted(kept.items()))]
        click.echo(f"declared: {', '.join(said)}" if said else "nothing to declare")


def declare_types(fl: SyncClient, text: str, path: str) -> list[str]:
    """Declares the types of a text, which may refer to other declared types; of a rule file, the types in it. Raises
    LanguageError with the place in the file, UsageError."""
    from fairlead.cli.files.rule_files import naming, shown_name
    from fairlead.engine import compile
    from fairlead.runtime.live.core.declarations import compile_names, declarations

    with naming(path):
        names = compile_names(text)
        if names.subscriptions:
            text = declarations(compile(text, shown_name(path)).catalogue, names.kept)
        return fl.declare(text)
