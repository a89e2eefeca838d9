"""`fairlead test`: runs the rule tests beside rule files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.options import event_by_event_option, json_option, print_json
from fairlead.errors import printable

if TYPE_CHECKING:
    from fairlead.cli.expectations import RuleTestOutcome
    from fairlead.cli.rule_tests import RuleTestFile
    from fairlead.errors import FairleadError
    from fairlead.model.plans.plan import Plan


@click.command(short_help="Run the tests of rule files.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("-k", "keyword", metavar="TEXT", help="Run only tests whose name contains this text (not case-sensitive).")
@event_by_event_option
@json_option
@click.pass_context
def test(ctx: click.Context, paths: tuple[str, ...], keyword: str | None, event_by_event: bool, as_json: bool) -> None:
    """Run rule tests: events in, relations expected. PATH is a rule file, a test file or a directory.

    \b
    Examples:
      fairlead test market.fl            runs market.test.yaml (or .toml) in the same directory
      fairlead test rules/ -k rally      all tests below rules/ with "rally" in their name

    \b
    A test file:
      tests:
        - name: three rising quotes
          events:
            - {type: EarningsReport, symbol: ACME, at: 2026-01-31T10:00:00Z}
            - …
          expect:
            - {subscription: Rally, positions: [0, 1, 2, 3], emitted: {gain: 2.0}}

    Prints the tests that fail, each with the expected and the actual result, and `N passed, N failed`. The exit code is 1
    if a test failed.
    """
    from fairlead.cli.process.shell import BAD
    from fairlead.cli.rule_tests import find, load

    files = [load(each) for each in find(paths)]
    outcomes = [(file, outcome) for file in files for outcome in _outcomes(file, keyword, event_by_event)]
    failed = [(file, outcome) for file, outcome in outcomes if not outcome.passed]
    if as_json:
        print_json(
            {
                "passed": len(outcomes) - len(failed),
                "failed": len(failed),
                "tests": [_as_json(file, outcome) for file, outcome in outcomes],
            }
        )
    else:
        for file, outcome in failed:
            click.echo(click.style("FAILED", fg="red", bold=True) + printable(f" {file.path}: {outcome.test.name}"))
            for line in outcome.differences:
                click.echo(printable(f"  {line}"))
        click.echo(click.style(f"{len(outcomes) - len(failed)} passed, {len(failed)} failed", fg="red" if failed else "green"))
    if failed or not outcomes:
        if not outcomes:
            click.echo(f"no test has {keyword!r} in its name", err=True)
        ctx.exit(BAD)


def _outcomes(file: RuleTestFile, keyword: str | None, event_by_event: bool) -> list[RuleTestOutcome]:
    from fairlead.cli.expectations import run_test

    chosen = [each for each in file.tests if keyword is None or keyword.lower() in each.name.lower()]
    if not chosen:
        return []
    rules = _compiled(file.rules)
    return [run_test(rules, each, event_by_event) for each in chosen]


def _compiled(path: Path) -> Plan | FairleadError:
    """The plan, or the error: a test may expect it."""
    from fairlead.cli.files.rule_files import load_plan
    from fairlead.errors import LanguageError

    try:
        return load_plan(str(path))
    except LanguageError as error:
        return error


def _as_json(file: RuleTestFile, outcome: RuleTestOutcome) -> dict[str, Any]:
    return {
        "file": str(file.path),
        "name": outcome.test.name,
        "passed": outcome.passed,
        "differences": list(outcome.differences),
    }
