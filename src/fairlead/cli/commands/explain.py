"""`fairlead explain`: the plan of a rule file, and what its order guarantees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.options import json_option, print_json, rules_argument

if TYPE_CHECKING:
    from fairlead.explanation import Explanation
    from fairlead.model.plans.plan import Subscription

ALL = "all"


@click.command(short_help="Show the plan, the signature and the guarantees.")
@rules_argument
@click.option("--subscription", "-s", metavar="NAME", help="Show only this subscription.")
@click.option(
    "--counterexample",
    is_flag=False,
    flag_value=ALL,
    metavar="[PROPERTY]",
    help="Print a trace for every lost property, or for one: `--counterexample`, or "
    "`--counterexample covering-agreement`. Write it after RULES.",
)
@click.option(
    "--runtime",
    type=click.Choice(["embedded", "spark", "live"]),
    default="embedded",
    show_default=True,
    help="Show the guarantees of this runtime.",
)
@click.option(
    "--kernel",
    is_flag=False,
    flag_value=ALL,
    metavar="[SUBSCRIPTION]",
    help="Print the generated code that matches the events, of every subscription or of this one, and nothing else. Stands "
    "after RULES.",
)
@json_option
def explain(
    rules: str, subscription: str | None, counterexample: str | None, runtime: str, kernel: str | None, as_json: bool
) -> None:
    """Show what RULES ask for, and which of the fourteen delivery properties they keep.

    \b
    Examples:
      fairlead explain market.fl
      fairlead explain market.fl --subscription Rally --counterexample
      fairlead explain market.fl --counterexample covering-agreement
      fairlead explain market.fl --runtime live
      fairlead explain market.fl --kernel Rally

    For each subscription, prints its signature and conditions, and a table of the properties: kept, kept per key or lost,
    the clause that loses it, why, and the source. Below the table, it shows which runtimes keep a publisher's order
    across types, and what other runtimes lose.
    """
    from fairlead.cli.files.rule_files import load_plan
    from fairlead.explanation import explain as explained

    wanted: bool | str = counterexample is not None
    if counterexample not in (None, ALL):
        wanted = property_named(counterexample or "")
    chosen = kernel if kernel not in (None, ALL) else subscription
    explanation = explained(load_plan(rules), chosen, wanted, runtime)
    if kernel is not None:
        _show_kernels(explanation, as_json)
    elif as_json:
        print_json(explanation.to_json())
    else:
        _show(explanation)


def _show_kernels(explanation: Explanation, as_json: bool) -> None:
    if as_json:
        print_json({"kernels": {each.name: explanation.kernels(each) for each in explanation.subscriptions}})
        return
    for number, each in enumerate(explanation.subscriptions):
        click.echo("\n" if number else "", nl=False)
        click.echo("\n".join(explanation.kernel_lines(each)))


def property_named(text: str) -> str:
    """The property as users may type it: `covering-agreement`, `Type FIFO order`, `no_duplication_in_place`."""
    from fairlead.model.guarantee import Property

    def plain(name: str) -> str:
        return name.lower().replace("-", " ").replace("_", " ")

    return next((each.value for each in Property if plain(text) in (plain(each.value), plain(each.name))), text)


def _show(explanation: Explanation) -> None:
    from fairlead.cli.display.screen import console

    screen = console()
    for number, each in enumerate(explanation.subscriptions):
        if number:
            screen.print()
        screen.print("\n".join(explanation.plan_lines(each)), soft_wrap=True)
        screen.print()
        screen.print(_guarantees(explanation, each))
        screen.print()
        screen.print("\n".join(explanation.order_lines(each)), soft_wrap=True)
        for (name, wanted), text in explanation.counterexamples.items():
            if name == each.name:
                screen.print(f"\ncounterexample to {wanted}", style="bold")
                screen.print("\n".join(f"  {line}" for line in text.splitlines()), soft_wrap=True)
    for warning in explanation.plan.warnings:
        screen.print(f"\nwarning {warning}", soft_wrap=True)


def _guarantees(explanation: Explanation, subscription: Subscription) -> Any:
    from fairlead.cli.display.screen import table, verdict_text

    made = table("property", "verdict", "clause", "why", "source", widths={"clause": 20, "source": 26})
    for each in explanation.plan.guarantees.get(subscription.name, ()):
        why = f"{each.reason}; fix: {each.fix}" if each.fix else each.reason
        made.add_row(each.property, verdict_text(each.verdict), each.clause, why, each.source)
    return made
