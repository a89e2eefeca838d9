"""`fairlead lint`: rules that are legal but probably not what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.options import json_option, print_json
from fairlead.errors import FairleadError, Place

if TYPE_CHECKING:
    from fairlead.model.lint_warning import LintWarning


@click.command(short_help="Check rule files, and warn about probable mistakes.")
@click.argument("rules", metavar="RULES...", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Exit with code 1 on warnings too.")
@json_option
@click.pass_context
def lint(ctx: click.Context, rules: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """Check RULES: errors, and warnings with their place and a fix.

    \b
    Examples:
      fairlead lint market.fl
      fairlead lint rules/*.fl --strict

    Prints one entry for each finding, in the order of the files. The exit code is 1 if there are errors; with --strict,
    also if there are warnings.
    """
    from fairlead.cli.process.shell import BAD

    errors: list[FairleadError] = []
    warnings: list[LintWarning] = []
    findings: list[dict[str, Any]] = []
    for each in rules:
        found = _checked(each)
        if isinstance(found, FairleadError):
            errors.append(found)
        else:
            warnings += found
        findings += [_as_json(each, one) for one in ([found] if isinstance(found, FairleadError) else found)]
        if not as_json:
            _show(found)
    if as_json:
        print_json(findings)
    else:
        from fairlead.cli.display.screen import counted

        counts = f"{counted(len(errors), 'error')}, {counted(len(warnings), 'warning')}"
        click.echo(f"{counted(len(rules), 'file')}: {counts}")
    if errors or (strict and warnings):
        ctx.exit(BAD)


def _checked(path: str) -> FairleadError | tuple[LintWarning, ...]:
    from fairlead.cli.files.rule_files import read_rules, shown_name
    from fairlead.language import compile_text
    from fairlead.matching.compiled.planning.eligibility import slow, too_expensive, without_kernels

    try:
        plan = compile_text(read_rules(path), shown_name(path))
        return (*plan.warnings, *without_kernels(plan), *slow(plan), *too_expensive(plan))
    except FairleadError as error:
        return error


def _as_json(path: str, found: FairleadError | LintWarning) -> dict[str, Any]:
    place = found.place
    return {
        "file": path,
        "severity": "error" if isinstance(found, FairleadError) else "warning",
        "code": found.code,
        "line": place.line if isinstance(place, Place) else None,
        "column": place.column if isinstance(place, Place) else None,
        "problem": found.problem,
        "fix": found.fix,
    }


def _show(found: FairleadError | tuple[LintWarning, ...]) -> None:
    from fairlead.cli.process.shell import coloured

    if isinstance(found, FairleadError):
        click.echo(coloured(str(found), found.code))
        return
    for each in found:
        click.echo(coloured(str(each), each.code, "yellow"))
