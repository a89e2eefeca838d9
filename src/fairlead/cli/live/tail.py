"""`fairlead tail`: relations as they complete in a log."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.live.options import LogAddress, log_options
from fairlead.cli.options import json_option, print_json, rules_argument
from fairlead.dataclass import dataclass
from fairlead.errors import UsageError, printable

if TYPE_CHECKING:
    from datetime import datetime

    from fairlead.deliver.receipt import Receipt
    from fairlead.model.events.verdict import EventReport
    from fairlead.model.relations.relation import Relation
    from fairlead.runtime.live.subscriber.subscription import Ends
    from fairlead.runtime.live.sync_client import SyncSubscription

CHUNK = 1024
POLL_SECONDS = 0.1
"""How often to check for a signal, or the end, while no relations arrive."""


@dataclass(eq=False)
class Tailed:
    """The result of a tail."""

    name: str | None
    began: float
    found: Counter[str]
    """By subscription, the relations that were delivered."""
    taken_back: Counter[str]
    """By subscription, the deliveries that take a relation back."""
    early: Counter[str]
    """By subscription, early deliveries, also those that take one back."""
    receipts: Mapping[str, Receipt]
    """By subscription."""
    verdicts: Counter[str]
    """How many events took no part for some subscription, by the reason."""

    def to_json(self) -> dict[str, Any]:
        return {
            "relations": dict(self.found),
            **({"taken_back": dict(self.taken_back)} if self.taken_back else {}),
            **({"early": dict(self.early)} if self.early else {}),
            **({"verdicts": dict(self.verdicts)} if self.verdicts else {}),
            "name": self.name,
            "receipts": [
                {
                    "subscription": name,
                    "deliveries": each.delivered,
                    "joined": each.joined,
                    "receipt": each.digest,
                    "plan": each.plan,
                }
                for name, each in self.receipts.items()
            ],
            "seconds": round(perf_counter() - self.began, 3),
        }


class ReportLines:
    """Shows reports on events that took no part, and counts the events. `to_stdout`: as JSON lines among the relations; else as
    text on the standard error, if they are `shown`. `several`: there are several subscriptions, so one event may have a report
    for each of them."""

    def __init__(self, *, to_stdout: bool, shown: bool, several: bool = False) -> None:
        self._to_stdout, self._shown = to_stdout, shown
        self._seen: set[tuple[Any, ...]] | None = set() if several else None
        self.counts: Counter[str] = Counter()

    def show(self, report: EventReport) -> None:
        self.counts[report.verdict.value] += self._is_first(report)
        if self._to_stdout:
            click.echo(json.dumps(report.to_json(), ensure_ascii=False, allow_nan=False))
        elif self._shown:
            of = "" if self._seen is None else f", for {', '.join(report.subscriptions)}"
            click.echo(printable(f"{report}{of}"), err=True)

    def _is_first(self, report: EventReport) -> bool:
        """Whether no other subscription has reported the event: a source numbers the events of a topic, and so of a type."""
        if self._seen is None:
            return True
        before = len(self._seen)
        self._seen.add((report.verdict, report.event.type, report.event.source, report.event.sequence))
        return len(self._seen) > before


@click.command(short_help="Print relations as they complete in a log.")
@rules_argument
@click.option(
    "--name", metavar="NAME", help="Make the subscriber durable: the next run with this name resumes after what was written."
)
@click.option(
    "--start",
    default="new",
    show_default=True,
    metavar="WHERE",
    help="Where a new subscriber starts: new, earliest, snapshot, a position or a time.",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after this many relations.")
@click.option(
    "--follow/--until-end", default=True, help="Wait for more events, or stop at the current end of the log.  [default: follow]"
)
@click.option(
    "--out",
    default="-",
    metavar="FILE",
    help="Write the relations here: .jsonl or .parquet, complete at the end. [default: standard output]",
)
@click.option("--receipt", metavar="FILE", help="Write the receipt (JSON) here at the end, for `fairlead compare`.")
@click.option("--emit/--no-emit", default=True, help="Store what the rules EMIT, or store nothing.  [default: emit]")
@click.option(
    "--early",
    type=click.Choice(["all", "final"]),
    help="Print relations also before the DELAY of the rules has passed: all, or those that no other event can change.",
)
@log_options
@json_option
@click.option("--quiet", "-q", is_flag=True, help="No summary.")
def tail(
    rules: str,
    name: str | None,
    start: str,
    count: int | None,
    follow: bool,
    out: str,
    receipt: str | None,
    emit: bool,
    early: str | None,
    where: LogAddress,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print the relations of RULES as they complete, one JSON object per line, like `fairlead run --out -`.

    \b
    Examples:
      fairlead tail market.fl
      fairlead tail market.fl --start earliest --until-end --out rallies.parquet
      fairlead tail market.fl --name desk-1 | jq --unbuffered .emitted
      fairlead tail market.fl --start 2026-01-31T10:00:00Z --count 10

    RULES can omit types that are declared in the log. With --name, relations are acknowledged when they are written: if you
    start the command again with that name, it resumes after them, however it ended. With --out or --receipt, they are
    acknowledged at the end, when the files are complete; if one cannot be written, nothing is acknowledged. `--start snapshot`
    starts from the newest snapshot of subscribers with the same rules, and delivers what they deliver from there on. The
    summary, with the receipt of each subscription, goes to standard error; with --json it is JSON, and goes to standard output
    if the relations do not. Stop the command with Ctrl-C; FILE then has all relations up to that point.

    If the rules have ORDER BY, events that take no part (late, ahead, …) are reported on standard error, one line each, or one
    for each subscription if there are several; with --json and without --out as JSON lines with a `verdict`, between
    the relations. The summary counts events. With LATE REVISE, every relation has a
    `sign`: 1, or -1 if a relation that was delivered before is taken back. With --early, relations are printed a first time,
    marked `early`, before the DELAY has passed, and taken back if other events change them. They are not in receipts.
    """
    from fairlead.cli.display.progress import counting
    from fairlead.cli.files.outputs import refuse_nameless, refuse_overlap
    from fairlead.cli.files.rule_files import naming, read_rules
    from fairlead.cli.process.signals import noted

    text, begin = read_rules(rules), start_of(start)
    outputs = {"--out": out, "--receipt": receipt}
    refuse_nameless(outputs, standard=("--out",))
    refuse_overlap(outputs, [rules])
    _require_new(name, out)
    if early and out != "-":
        raise click.UsageError("--early is for the standard output; leave --out out, or --early")
    with (
        naming(rules),
        where.opened() as fl,
        fl.subscribe(text, name=name, start=begin, emit=emit, verdicts=True, early=early == "all" or early or False) as sub,
        noted() as signals,
        counting("following" if follow else "reading", shown=not quiet and out != "-") as tell,
    ):
        if str(sub.change) and not quiet:
            click.echo(f"the rules have changed: {sub.change}", err=True)
        for warning in (each for each in sub.plan.warnings if each.code == "W017" and not quiet):
            click.echo(f"warning: {warning}", err=True)
        _require_one(sub, receipt)
        reports = ReportLines(to_stdout=as_json and out == "-", shown=not quiet, several=len(sub.receipts) > 1)
        chunks = _chunks(sub, count, None if follow else sub.ends(), signals, reports)
        done = _tailed(sub, name, _told(chunks, tell), out, receipt, reports)
    if as_json:
        print_json(done.to_json(), err=out == "-")
    elif not quiet:
        _show(done)
    if signals:
        raise KeyboardInterrupt if signals[0] == signal.SIGINT else SystemExit(128 + signals[0])


def start_of(text: str) -> str | int | datetime:
    """`--start` as the client accepts it; raises UsageError."""
    from datetime import datetime

    from fairlead.runtime.live.subscriber.request import check_start

    if text.isdecimal():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        check_start(text)
        return text


def _require_new(name: str | None, out: str) -> None:
    """The file of an earlier run contains relations that the name has acknowledged, which are never delivered again."""
    if name is not None and out != "-" and os.path.isfile(out) and os.path.getsize(out):
        problem = f"the file exists, may hold relations that '{name}' acknowledged, and would be replaced"
        raise UsageError("A295", problem, "use another file for each start, or append the standard output: >> FILE", out)


def _require_one(sub: SyncSubscription, receipt: str | None) -> None:
    if receipt is not None and len(sub.receipts) > 1:
        problem = f"--receipt needs rules with one subscription, and these have {len(sub.receipts)}"
        raise UsageError("A296", problem, "leave it out, and read the receipt of each from --json", receipt)


def _chunks(
    sub: SyncSubscription, count: int | None, ends: Ends | None, signals: list[int], reports: ReportLines
) -> Iterator[list[Relation]]:
    """Relations as they are completed, in chunks of those available; up to the ends, if there are any, or to a signal. Reports
    are shown in their places among them."""
    left = CHUNK if count is None else count
    while left and not signals:
        chunk, report = _next_chunk(sub, min(left, CHUNK))
        if chunk:
            left -= 0 if count is None else sum(not each.early for each in chunk)
            yield chunk
        if report is not None:
            reports.show(report)
        elif not chunk and ends is not None and sub.has_passed(ends):
            return


def _next_chunk(sub: SyncSubscription, most: int) -> tuple[list[Relation], EventReport | None]:
    """The relations that are available, and the report that follows them, if one does. Waits a little for the first."""
    from fairlead.model.events.verdict import EventReport

    chunk: list[Relation] = []
    while len(chunk) < most:
        delivered = sub.next(0 if chunk else POLL_SECONDS)
        if delivered is None or isinstance(delivered, EventReport):
            return chunk, delivered
        chunk.append(delivered)
    return chunk, None


def _told(chunks: Iterator[list[Relation]], tell: Callable[[str], None]) -> Iterator[list[Relation]]:
    """The chunks unchanged; reports the number of relations."""
    from fairlead.cli.display.screen import counted

    total = 0
    for chunk in chunks:
        total += len(chunk)
        tell(counted(total, "relation"))
        yield chunk


def _tailed(
    sub: SyncSubscription,
    name: str | None,
    chunks: Iterator[list[Relation]],
    out: str,
    receipt: str | None,
    reports: ReportLines,
) -> Tailed:
    """1. write, 2. acknowledge what was written: on the standard output chunk by chunk; if a file is requested, even just the
    receipt, when all files have their names. So every acknowledged relation is in an output and in a receipt."""
    from fairlead.cli.files.outputs import SmallOutput
    from fairlead.deliver.receipt import dumps
    from fairlead.model.relations.relation import PLUS
    from fairlead.transport.output.relation_files import open_relations

    none = Counter({each.name: 0 for each in sub.plan.subscriptions})
    done = Tailed(name, perf_counter(), none, Counter(), Counter(), {}, reports.counts)
    with SmallOutput(receipt) as receipts, open_relations(out, sub.plan) as relations:
        for chunk in chunks:
            relations.write(chunk)  # 1
            for each in chunk:
                (done.early if each.early else done.found if each.sign == PLUS else done.taken_back)[each.subscription] += 1
            if out == "-":
                sys.stdout.flush()
                if receipt is None:
                    sub.ack()  # 2
        done.receipts = dict(zip(done.found, sub.receipts.values(), strict=True))  # both in the order of the text
        if receipt is not None:
            receipts.write(dumps(sub.receipt) + "\n")
        relations.prepare()
        receipts.prepare()
        relations.close()
        receipts.close()
        sub.ack()  # 2
    return done


def _show(done: Tailed) -> None:
    from fairlead.cli.display.screen import counted, verdict_words

    for name, number in done.found.items():
        back = f", {done.taken_back[name]:,} taken back" if done.taken_back[name] else ""
        early = f"; {counted(done.early[name], 'early line')}" if done.early[name] else ""
        click.echo(f"{name}: {counted(number, 'relation')}{back}{early}", err=True)
    if done.verdicts:
        click.echo(verdict_words(done.verdicts), err=True)
    for name, each in done.receipts.items():
        of = f"of {name} " if len(done.receipts) > 1 else ""
        joined = f": {each.delivered:,} delivered here, {each.joined:,} before this subscriber joined" if each.joined else ""
        click.echo(f"receipt  {each.digest}  {of}after {counted(each.count, 'relation')}{joined}", err=True)
