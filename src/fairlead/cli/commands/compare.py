"""`fairlead compare`: whether two runs delivered the same relations in the same order."""

from __future__ import annotations

from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.live.options import LogAddress, log_options
from fairlead.cli.options import json_option, print_json
from fairlead.errors import printable

if TYPE_CHECKING:
    from fairlead.cli.deliveries import WrittenDelivery
    from fairlead.deliver.receipt import Receipt


@click.command(short_help="Compare two receipts, two outputs of runs or two subscribers.")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@log_options
@json_option
@click.pass_context
def compare(ctx: click.Context, first: str, second: str, where: LogAddress, as_json: bool) -> None:
    """Compare what two runs or subscribers delivered. A and B are receipts (`run --receipt`), relations (`run --out`), or,
    with --url, names of durable subscribers.

    \b
    Examples:
      fairlead compare site-a.receipt.json site-b.receipt.json
      fairlead compare monday.jsonl tuesday.parquet
      fairlead compare desk-1 desk-2 --url nats://127.0.0.1:4222
      fairlead compare desk-1 exported.receipt.json --url nats://127.0.0.1:4222

    For a subscriber, the acknowledged relations are compared. If a file with the name exists, the file is used.

    If they are equal, the exit code is 0 and the command prints how many relations agree. If they differ, the exit code
    is 1 and it prints the first difference: from two outputs exactly, with id and positions; from receipts as exactly as
    their samples allow.
    """
    from fairlead.cli.deliveries import is_receipt
    from fairlead.cli.shell import BAD

    if where.url and not (Path(first).exists() and Path(second).exists()):
        outcome = _subscribers(where, first, second)
    else:
        outcome = _receipts(first, second) if is_receipt(first) or is_receipt(second) else _outputs(first, second)
    if as_json:
        print_json(outcome)
    else:
        from fairlead.cli.screen import counted

        click.echo(
            printable(outcome["problem"]) or f"equal: {counted(outcome['agreed'], 'relation')}, the same in the same order"
        )
    if not outcome["equal"]:
        ctx.exit(BAD)


def _subscribers(where: LogAddress, first: str, second: str) -> dict[str, Any]:
    """At least one side is a durable subscriber, which has a receipt for each of its groups; the other may be a file."""
    from fairlead.deliver.receipt import compare as compared

    with where.opened() as fl:
        if not Path(first).exists() and not Path(second).exists():
            result = fl.compare(first, second)
        else:
            known, path = (fl.receipts(second), first) if Path(first).exists() else (fl.receipts(first), second)
            mine = list(known.values())
            other = _receipt(path, mine[0])
            its = next((each for each in mine if each.plan == other.plan), mine[0])
            result = compared(other, its) if path == first else compared(its, other)
    return {"equal": result.equal, "agreed": result.agreed, "problem": result.problem, "first": None}


def _receipts(first: str, second: str) -> dict[str, Any]:
    """At least one side is a receipt; an output on the other side is folded into one."""
    from fairlead.cli.deliveries import is_receipt, read_receipt
    from fairlead.deliver.receipt import compare as compared

    known = read_receipt(first if is_receipt(first) else second)
    left, right = (_receipt(each, known) for each in (first, second))
    result = compared(left, right)
    return {"equal": result.equal, "agreed": result.agreed, "problem": result.problem, "first": None}


def _receipt(path: str, other: Receipt) -> Receipt:
    import numpy as np

    from fairlead.cli.deliveries import is_receipt, read_deliveries, read_receipt
    from fairlead.deliver.receipt import ReceiptBook
    from fairlead.model.identity import from_hex, signed

    if is_receipt(path):
        return read_receipt(path)
    book, deliveries = ReceiptBook(other.plan), read_deliveries(path)
    while some := list(islice(deliveries, 8192)):
        book.note(signed(from_hex([each.id for each in some]), np.array([each.sign for each in some], dtype=np.int8)))
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


def _problem(agreed: int, left: WrittenDelivery | None, right: WrittenDelivery | None) -> str:
    lines = [f"relation {agreed + 1:,} differs; {agreed:,} before it agree"]
    lines += [f"  {side}: {each.shown() if each else 'has no more'}" for side, each in (("A", left), ("B", right))]
    if left and right and left.id == right.id:
        for name, a, b in left.differences(right):
            lines.append(f"  {name}: {a} and {b}")
    return "\n".join(lines)
