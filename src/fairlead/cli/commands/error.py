"""`fairlead error`: what an error code means, and what to do about it."""

from __future__ import annotations

import click

from fairlead.cli.options import json_option, print_json
from fairlead.error_codes import CODES, KINDS
from fairlead.errors import UsageError


@click.command(short_help="Show what an error code means and what to do about it.")
@click.argument("codes", metavar="[CODE]...", nargs=-1)
@json_option
def error(codes: tuple[str, ...], as_json: bool) -> None:
    """Show what each CODE means and what to do about it; without a CODE, all of them.

    \b
    Examples:
      fairlead error D005
      fairlead error A210 A211
      fairlead error --json
    """
    chosen = [_known(each) for each in codes] or list(CODES)
    if as_json:
        found = [
            {"code": each, "class": KINDS[each[0]][0], "meaning": CODES[each][0], "remedy": CODES[each][1]} for each in chosen
        ]
        print_json(found[0] if len(codes) == 1 else found)
        return
    for each in chosen:
        meaning, remedy = CODES[each]
        click.echo(f"{each} {meaning}\n  fix: {remedy}")


def _known(code: str) -> str:
    """The code as it is registered. Raises UsageError."""
    found = code.strip().upper()
    if found in CODES:
        return found
    near = [each for each in CODES if found and each[0] == found[0]]
    fix = f"codes from {near[0]} to {near[-1]}; `fairlead error` lists them" if near else "`fairlead error` lists all codes"
    raise UsageError("A297", f"there is no error code {code[:40]!r}", fix)
