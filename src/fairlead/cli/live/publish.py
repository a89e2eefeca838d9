"""`fairlead publish`: the events of files to a log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.live.options import LogAddress, log_options
from fairlead.cli.options import allow_nan_option, json_option, print_json
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.model.events.columns import Columns
    from fairlead.model.events.types import Catalogue
    from fairlead.runtime.live.sync_client import SyncClient

APART_EVENTS_MAX = 1024
"""Events of a file with several topics that are published together: a quarter of a block, some two milliseconds of storing."""

FIXES = {"S131": "use another --source, or stop the other publisher", "N001": "start the server again"}
"""By code, if that of the client is about its next call."""


@click.command(short_help="Publish the events of files to a log.")
@click.option(
    "--from",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="A file or directory: .jsonl, .cloudevents.jsonl, .csv (also .gz) or .parquet; can be repeated.",
)
@click.option("--type", "type_name", metavar="NAME", help="All records have this type; they need no field `type`.")
@click.option("--source", metavar="NAME", help="The source name to publish under. [default: a new one]")
@click.option(
    "--batch-rows",
    type=click.IntRange(min=1),
    metavar="N",
    help="Records per batch; each batch is stored before the next is sent.",
)
@allow_nan_option
@log_options
@json_option
@click.option("--quiet", "-q", is_flag=True, help="No progress and no summary.")
def publish(
    files: tuple[str, ...],
    type_name: str | None,
    source: str | None,
    batch_rows: int | None,
    allow_nan: bool,
    where: LogAddress,
    as_json: bool,
    quiet: bool,
) -> None:
    """Publish the events of FILEs, whose types are declared (`fairlead declare`). All of them are validated before any is
    stored: if there is a bad record, nothing is published.

    \b
    Examples:
      fairlead publish --from quotes.jsonl
      fairlead publish --from quotes.csv --type StockQuote --source feed-7
      fairlead publish --from day.parquet --batch-rows 100

    The events of a topic keep the order of the files. Between topics, the log decides the order, once for all subscribers.
    """
    from fairlead.cli.display.progress import Progress
    from fairlead.transport.files.event_files import bytes_of, read_files, resolve, validate_files

    found = resolve(files)
    began = perf_counter()
    counts: dict[str, int] = {}
    stored = 0
    with where.opened(source=source) as fl, Progress(bytes_of(found), shown=not quiet, to_stdout=False) as progress:
        known = _catalogue(fl, type_name)
        validate_files(found, known, allow_nan=allow_nan, progress=progress.pass_over("checking"))
        reading = read_files(
            found, known, allow_nan=allow_nan, batch_rows=batch_rows, progress=progress.pass_over("publishing")
        )
        with closing(reading) as batches:
            for columns in batches:
                for name, table in columns.tables.items():
                    counts[name] = counts.get(name, 0) + table.num_rows
                for piece in _pieces(columns, known):
                    with _ending(stored, len(piece)):
                        stored += fl.publish_columns(piece)
                progress.events(sum(counts.values()))
        told = fl.source
    _show(counts, told, perf_counter() - began, as_json, quiet)


@contextmanager
def _ending(stored: int, piece: int) -> Iterator[None]:
    """Errors inside end the command: what a client keeps for its next call is not sent any more. They say what the log has."""
    try:
        yield
    except FairleadError as error:
        if not error.accepted:
            raise
        from fairlead.runtime.live.publisher.outbox import KEPT

        problem = error.problem.removesuffix(f"; {KEPT}")
        has = f"the log has the first {stored:,} events, and some or none of the {piece:,} after them"
        fix = f"{FIXES.get(error.code, error.fix)}; then publish the events that the log does not have (fairlead export)"
        raise type(error)(error.code, f"{problem}; {has}", fix, error.place, error.excerpt) from None


def _pieces(columns: Columns, known: Catalogue) -> Iterator[Columns]:
    """The events of a file, as many at a time as may be out of order between topics: topics are stored side by side, so of
    events that are published together, those of one topic may be stored after all others."""
    topics = {known[name].topic for name in columns.tables if name in known}
    step = APART_EVENTS_MAX if len(topics) > 1 else max(1, len(columns))
    for low in range(0, len(columns), step):
        piece = columns.part(low, min(low + step, len(columns)))
        yield replace(piece, tables={name: table for name, table in piece.tables.items() if table.num_rows})


def _catalogue(fl: SyncClient, type_name: str | None) -> Catalogue:
    """The possible types of the records: all declared types, or the named one, which the records may then omit."""
    from fairlead.model.events.types import Catalogue, EventType
    from fairlead.transport.admission.problems import not_published, unknown_type

    declared = fl.types()
    if type_name is None:
        return declared
    known = declared.get(type_name)
    if known is None:
        raise unknown_type(type_name, (each.name for each in declared))
    if known.is_union:
        raise not_published(known)
    return Catalogue((EventType(known.name, known.attributes, time_attribute=known.time_attribute),))


def _show(counts: dict[str, int], source: str, seconds: float, as_json: bool, quiet: bool) -> None:
    total = sum(counts.values())
    if as_json:
        told: dict[str, Any] = {"events": total, "types": counts, "source": source, "seconds": round(seconds, 3)}
        print_json(told)
    elif not quiet:
        from fairlead.cli.display.screen import counted

        shown = "".join(f"\n  {number:>12,}  {name}" for name, number in counts.items())
        click.echo(f"{counted(total, 'event')} stored in {seconds:.1f} s as source {source}{shown}")
