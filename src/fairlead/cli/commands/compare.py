"""`fairlead compare`: whether two runs delivered the same relations in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.live.options import LogAddress, log_options
from fairlead.cli.options import json_option, print_json
from fairlead.errors import DataError, printable

if TYPE_CHECKING:
    from fairlead.cli.files.deliveries import WrittenDelivery
    from fairlead.deliver.receipt import Comparison, Receipt

    Pair = tuple[WrittenDelivery | None, WrittenDelivery | None]

SEVERAL = (
    "the receipt is of none of the subscriber's subscriptions alone: if it is of a run over several of them, compare the "
    "relations (`run --out`), which are compared by subscription"
)


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

    \b
    exit code 0  equal: the same relations in the same order
              1  a difference, or receipts of different rules. The first difference is printed: from two outputs exactly,
                 with id and positions; from receipts as exactly as their samples allow
              3  no difference, and one side has more: it is further, or the other joined later. The command prints what
                 both delivered and agree on, and with which relation that begins
    """
    from fairlead.cli.files.deliveries import is_receipt
    from fairlead.cli.process.shell import BAD, HAS_MORE

    if where.url and not (Path(first).exists() and Path(second).exists()):
        outcome = _subscribers(where, first, second)
    else:
        outcome = _receipts(first, second) if is_receipt(first) or is_receipt(second) else _outputs(first, second)
    if as_json:
        print_json(outcome)
    else:
        from fairlead.cli.display.screen import counted

        joined = f"; both joined after relation {outcome['start'] - 1:,}" if outcome["start"] > 1 else ""
        equal = f"equal: {counted(outcome['agreed'], 'relation')}, the same in the same order{joined}"
        click.echo(printable(outcome["problem"] or equal))
    if not outcome["equal"]:
        ctx.exit(HAS_MORE if outcome["outcome"] == "agree" else BAD)


def _subscribers(where: LogAddress, first: str, second: str) -> dict[str, Any]:
    """At least one side is a durable subscriber, which has a receipt for each of its groups; the other may be a file."""
    from fairlead.transport.log.names import NAME

    for each in (first, second):
        if not Path(each).exists() and not NAME.fullmatch(each):
            raise DataError("D013", "no file has this name, and no subscriber can", "check the path", each)
    with where.opened() as fl:
        if not Path(first).exists() and not Path(second).exists():
            return _told(fl.compare(first, second))
        path, name = (first, second) if Path(first).exists() else (second, first)
        names = fl.group_names(name)
        known = {names.get(key, key): each for key, each in fl.receipts(name).items()}
    return _told(_with_file(path, known, path == first))


def _receipts(first: str, second: str) -> dict[str, Any]:
    """At least one side is a receipt."""
    from fairlead.cli.files.deliveries import is_receipt, read_receipt

    path = second if is_receipt(first) else first
    return _told(_with_file(path, {"": read_receipt(first if is_receipt(first) else second)}, path == first))


def _told(found: Comparison) -> dict[str, Any]:
    return found.to_json() | {"first": None}


def _with_file(path: str, known: Mapping[str, Receipt], file_first: bool) -> Comparison:
    """Compares a receipt or an output with receipts, by subscription. An output does not say where it begins: with the first
    relation of the lineage, where the other joined, or at a place that its relations tell."""
    from fairlead.cli.files.deliveries import is_receipt, read_receipt, words_by_subscription
    from fairlead.deliver.alignment import receipts_in
    from fairlead.deliver.receipt import OUTCOMES, Comparison, combined
    from fairlead.deliver.receipt import compare as compared

    def best(files: Sequence[Receipt], each: Receipt) -> Comparison:
        found = [compared(file, each) if file_first else compared(each, file) for file in files]
        return max(found, key=lambda one: (OUTCOMES.index(one.outcome), one.agreed))

    receipts = list(known.values())
    if is_receipt(path):
        file = read_receipt(path)
        same = [each for each in receipts if each.plan == file.plan]
        if not same and len(receipts) > 1:
            return Comparison(False, SEVERAL, related=False)
        return best([file], (same or receipts)[0])
    whole, words = words_by_subscription(path)
    if len(known) == 1 and (len(words) < 2 or not known.keys() & words.keys()):
        return best(receipts_in(receipts[0], whole), receipts[0])
    mine = {name: each for name, each in known.items() if name in words or each.delivered}
    if not mine.keys() & words.keys():
        return combined({})
    return combined({name: best(receipts_in(each, words.get(name, whole[:0])), each) for name, each in mine.items()})


def _outputs(first: str, second: str) -> dict[str, Any]:
    """Relation by relation from the first; if they differ, from where one begins in the other."""
    from fairlead.cli.files.deliveries import read_words
    from fairlead.deliver.alignment import starts

    found = _compared(first, second, (0, 0))
    if found["outcome"] == "differ" and any(skipped := starts(read_words(first), read_words(second))):
        return _compared(first, second, skipped)
    return found


def _compared(first: str, second: str, skipped: tuple[int, int]) -> dict[str, Any]:
    from fairlead.cli.files.deliveries import read_deliveries

    left, right = (islice(read_deliveries(each), skip, None) for each, skip in zip((first, second), skipped, strict=True))
    agreed = 0
    for one, other in zip_longest(left, right):
        if one is not None and other is not None and one.compared == other.compared:
            agreed += 1
            continue
        return _apart(agreed, (one, other), skipped, sum(1 for _ in chain(left, right)))
    found = {"agreed": agreed, "start": max(skipped) + 1, "first": None}
    if any(skipped):
        return found | {"outcome": "agree", "equal": False, "problem": _more(agreed, skipped, None)}
    return found | {"outcome": "equal", "equal": True, "problem": None}


def _apart(agreed: int, apart: Pair, skipped: Sequence[int], rest: int) -> dict[str, Any]:
    """The first relations that are not equal, after those that agree; if one side has ended, `rest` more follow."""
    outcome = "agree" if None in apart else "differ"
    problem = _more(agreed, skipped, apart, rest + 1) if None in apart else _problem(agreed, skipped, apart)
    sides = {name: each.named() if each else None for name, each in zip("ab", apart, strict=True)}
    found = {"agreed": agreed, "start": max(skipped) + 1, "first": sides}
    return found | {"outcome": outcome, "equal": False, "problem": problem}


def _more(agreed: int, skipped: Sequence[int], apart: Pair | None, more: int = 0) -> str:
    from fairlead.cli.display.screen import counted

    lines = [f"{counted(agreed, 'relation')} agree{'s' if agreed == 1 else ''}"]
    for name, skip in zip("AB", skipped, strict=True):
        lines[0] += f"; {name} has {skip:,} before them" if skip else ""
    if apart is not None:
        lines[0] += f"; {'A' if apart[0] else 'B'} has {more:,} more"
        lines += [f"  {side}: {each.shown() if each else 'has no more'}" for side, each in zip("AB", apart, strict=True)]
    return "\n".join(lines)


def _problem(agreed: int, skipped: Sequence[int], apart: Pair) -> str:
    numbers = [agreed + skip + 1 for skip in skipped]
    which = f"{numbers[0]:,}" if numbers[0] == numbers[1] else f"{numbers[0]:,} of A, {numbers[1]:,} of B,"
    lines = [f"relation {which} differs; {agreed:,} before it agree"]
    lines += [f"  {side}: {each.shown() if each else 'has no more'}" for side, each in zip("AB", apart, strict=True)]
    left, right = apart
    if left and right and left.id == right.id:
        for name, a, b in left.differences(right):
            lines.append(f"  {name}: {a} and {b}")
    return "\n".join(lines)
