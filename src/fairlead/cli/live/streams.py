"""`fairlead streams`: what a log has, and how far its durable subscribers are."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from fairlead.cli.live.options import LogAddress, log_options
from fairlead.cli.options import json_option, print_json

if TYPE_CHECKING:
    from fairlead.runtime.live.overview import Overview, TopicLine


USED_MIN = 0.5
"""The share of used positions from which it is shown."""


@click.command(short_help="Show the streams of a log and the lag of its subscribers.")
@click.option("--sweep", is_flag=True, help="First remove merged streams that have no readers left.")
@click.option("--forget", "forgotten", multiple=True, metavar="NAME", help="Remove this durable subscriber; can be repeated.")
@log_options
@json_option
def streams(sweep: bool, forgotten: tuple[str, ...], where: LogAddress, as_json: bool) -> None:
    """Show the topics and merged streams of a log, and its durable subscribers.

    \b
    Examples:
      fairlead streams
      fairlead streams --json | jq '.subscribers[] | select(.lag > 100)'
      fairlead streams --forget desk-1 --sweep

    Events are stored in blocks. The column `behind` counts the blocks that the sources of a merged stream have and the
    stream does not have yet. The lag of a subscriber is in blocks, computed from its last stored state: it is an upper
    bound, because only the subscriber's own process knows the exact lag. A subscriber that joined others with the same
    rules did not get the relations that they had before: `joined after` is their number. `took no part` counts events that
    were late, ahead or repeated in the order of the subscriber's rules (ORDER BY). `rejected` counts blocks that every
    reader skips, because they are forged or damaged; the last ones are listed with the code of the error (docs/errors.md).
    A large log is looked at in pieces, one with each call.
    """
    with where.opened() as fl:
        for each in forgotten:
            fl.receipts(each)  # an unknown name is an error
            fl.forget(each)
        if sweep:
            fl.sweep()
        found = fl.overview()
    if as_json:
        print_json(asdict(found))
    else:
        _show(found)


def _rejected(line: TopicLine) -> str:
    if line.rejections.checked < line.blocks:
        return f"{line.rejected:,} of the first {line.rejections.checked:,}"
    return f"{line.rejected:,}"


def _show(found: Overview) -> None:
    from fairlead.cli.display.screen import console, table, verdict_words

    screen = console()
    bad = ("rejected",) if any(each.rejected or each.rejections.checked < each.blocks for each in found.topics) else ()
    made = table("topic", "types", "sources", "blocks", "events", *bad, right=("sources", "blocks", "events", *bad))
    for each in found.topics:
        told = (_rejected(each),) if bad else ()
        made.add_row(each.topic, ", ".join(each.types), f"{each.sources:,}", f"{each.blocks:,}", f"{each.events:,}", *told)
    screen.print(made)
    for stream, used in [(each.stream, each.used) for each in found.topics] + [
        (each.stream, each.used) for each in found.merged
    ]:
        if used >= USED_MIN:
            screen.print(f"{stream}: {used:.0%} of its positions are used up. See docs/operations.md, Positions.", style="bold")
    if any(each.rejections.last for each in found.topics):
        screen.print()
        made = table("last rejected blocks", "code", "source", "block", right=("block",))
        for each in found.topics:
            for one in each.rejections.last:
                made.add_row(each.topic, one.code, one.source, f"{one.place:,}")
        screen.print(made)
    if any(each.routes for each in found.topics):
        screen.print()
        made = table("route of", "condition", "read by")
        for name, texts in (one for each in found.topics for one in each.routes.items()):
            for place, text in ((place, text) for place, text in enumerate(texts) if text):
                readers = [line.name for line in found.subscribers if line.routes.get(name) == place]
                made.add_row(name, text, ", ".join(dict.fromkeys(readers)))
        screen.print(made)
    if found.merged:
        screen.print()
        made = table("merged stream", "blocks", "behind", "read by subscribers as", right=("blocks", "behind"))
        for merged in found.merged:
            made.add_row(merged.stream, f"{merged.blocks:,}", f"{merged.behind:,}", ", ".join(merged.topics))
        screen.print(made)
    if found.subscribers:
        screen.print()
        late = ("joined after",) if any(line.joined for line in found.subscribers) else ()
        apart = ("took no part",) if any(line.verdicts for line in found.subscribers) else ()
        made = table("subscriber", "reads", *late, "acknowledged", "lag", *apart, right=(*late, "acknowledged", "lag"))
        for line in found.subscribers:
            numbers = (*((line.joined,) if late else ()), line.acknowledged, line.lag)
            told = (verdict_words(line.verdicts),) if apart else ()
            made.add_row(line.name, "; ".join(map(", ".join, line.types)), *(f"{each:,}" for each in numbers), *told)
        screen.print(made)
