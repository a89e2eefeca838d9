"""Consoles and tables for people.

Gives: a rich console on the standard output or error, and the few table shapes that commands share. Never: prints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.errors import pictured

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment
    from rich.table import Table
    from rich.text import Text

PIPE_WIDTH = 120
"""The width if it is unknown: a log or a file has room for longer lines than the 80 columns of a bare terminal."""

VERDICT_STYLES = {"kept": "green", "kept per key": "yellow", "lost": "red"}


def console(err: bool = False) -> Console:
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        """Rules and events come from strangers: their control characters are shown, not obeyed. Rich's own are marked."""

        def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else pictured(text), style, control)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # for the shell: Rich would end the process with another exit code

    stream = sys.stderr if err else sys.stdout
    return SafeConsole(file=stream, highlight=False, markup=False, emoji=False, width=None if stream.isatty() else PIPE_WIDTH)


def table(*columns: str, right: Iterable[str] = (), widths: Mapping[str, int] | None = None) -> Table:
    """A table with a line under its head; `right` names the columns of numbers, `widths` the maximum widths of others."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    numbers = set(right)
    for each in columns:
        most = (widths or {}).get(each)
        made.add_column(each, justify="right" if each in numbers else "left", overflow="fold", max_width=most)
    return made


def verdict_text(verdict: str) -> Text:
    from rich.text import Text

    return Text(verdict, style=VERDICT_STYLES.get(verdict, ""))


def verdict_words(counts: Mapping[str, int]) -> str:
    """`3 events late, 1 ahead`, in the order in which verdicts are defined; empty if there are none."""
    from fairlead.model.events.verdict import EventVerdict

    told = [(counts[each], each) for each in EventVerdict if counts.get(each)]
    nouns = (f" event{'' if number == 1 else 's'}" if not at else "" for at, (number, _) in enumerate(told))
    return ", ".join(f"{number:,}{noun} {verdict}" for (number, verdict), noun in zip(told, nouns, strict=True))


def shown_positions(positions: Sequence[int | str]) -> str:
    return ", ".join(map(str, positions))


def counted(number: int, noun: str) -> str:
    """`1 relation`, `2 relations`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
