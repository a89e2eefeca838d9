"""`fairlead compare`: whether two runs delivered the same relations in the same order."""

from __future__ import annotations

from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.options import json_option, print_json

if TYPE_CHECKING:
    from fairlead.cli.deliveries import Delivery
    from fairlead.deliver.receipt import Receipt


@click.command(short_help="Compare two receipts or two outputs of runs.")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@json_option
@click.pass_context
def compare(ctx: click.Context, first: str, second: str, as_json: bool) -> None:
    """Compare what two runs delivered. A and B are receipts (`run --receipt`) or relations (`run --out`).

    \b
    Examples:
      fairlead compare site-a.receipt.json site-b.receipt.json
      fairlead compare monday.jsonl tuesday.parquet

    Equal: exit code 0, and how many relations agree. Different: exit code 1, and the first relation that differs. Two
    outputs name it exactly, with its id and positions; receipts name it as exactly as their samples allow.
    """
    from fairlead.cli.deliveries import is_receipt
    from fairlead.cli.shell import BAD

    outcome = _receipts(first, second) if is_receipt(first) or is_receipt(second) else _outputs(first, second)
    if as_json:
        print_json(outcome)
    else:
        from fairlead.cli.screen import counted

        click.echo(outcome["problem"] or f"equal: {counted(outcome['agreed'], 'relation')}, the same in the same order")
    if not outcome["equal"]:
        ctx.exit(BAD)


def _receipts(first: str, second: str) -> dict[str, Any]:
    """At least one side is a receipt; an output on the other side is folded into one."""
    from fairlead.cli.deliveries import is_receipt, read_receipt
    from fairlead.deliver.receipt import compare as compared

    known = read_receipt(first if is_receipt(first) else second)
    left, right = (_receipt(each, known) for each in (first, second))
    result = compared(left, right)
    return {"equal": result.equal, "agreed": result.agreed, "problem": result.problem, "first": None}


def _receipt(path: str, other: Receipt) -> Receipt:
    from fairlead.cli.deliveries import is_receipt, read_deliveries, read_receipt
    from fairlead.deliver.receipt import ReceiptBook

    if is_receipt(path):
        return read_receipt(path)
    book, deliveries = ReceiptBook(other.plan), read_deliveries(path)
    while ids := [each.id for each in islice(deliveries, 8192)]:
        book.note(ids)
    return book.receipt()


def _outputs(first: str, second: str) -> dict[str, Any]:
    from fairlead.cli.deliveries import read_deliveries

    agreed = 0
    for left, right in zip_longest(read_deliveries(first), read_deliveries(second)):
        if left != right:
            sides = {"a": left.named() if left else None, "b": right.named() if right else None}
            return {"equal": False, "agreed": agreed, "problem": _problem(agreed, left, right), "first": sides}
        agreed += 1
    return {"equal": True, "agreed": agreed, "problem": "", "first": None}


def _problem(agreed: int, left: Delivery | None, right: Delivery | None) -> str:
    lines = [f"relation {agreed + 1:,} differs; {agreed:,} before it agree"]
    lines += [f"  {side}: {each.shown() if each else 'has no more'}" for side, each in (("A", left), ("B", right))]
    if left and right and left.id == right.id:
        for name, a, b in left.differences(right):
            lines.append(f"  {name}: {a} and {b}")
    return "\n".join(lines)
