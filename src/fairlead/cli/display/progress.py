"""The progress of a run: a bar by bytes read, with the rate of events, or a line that counts, on the standard error of a
terminal.

Takes: the bytes of one pass over the input. Gives: callbacks for the reader. Never: writes to the standard output, or to a
standard error that is not a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.progress import TaskID


class Progress:
    """One bar per pass. If it is not shown, it costs nothing, not even rich's import."""

    def __init__(self, total_bytes: int, *, shown: bool, to_stdout: bool) -> None:
        self._total = total_bytes
        # Relations that scroll over the same screen would tear the bar apart.
        self._bar: Any = _bar() if shown and sys.stderr.isatty() and not (to_stdout and sys.stdout.isatty()) else None
        self._task: TaskID | None = None

    def pass_over(self, description: str) -> Callable[[int], None]:
        """A callback that accepts the number of bytes read since its last call; the bar appears with the first."""

        def advance(count: int) -> None:
            if self._bar is not None:
                if self._description != description:
                    self._begin(description)
                self._bar.advance(self._task, count)

        return advance

    _description = ""

    def _begin(self, description: str) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._description = description
        self._task = self._bar.add_task(description, total=self._total, events="")

    def events(self, count: int) -> None:
        """How many events were matched so far."""
        if self._bar is not None and self._task is not None:
            task = self._bar.tasks[-1]
            rate = f"{count / task.elapsed:,.0f}/s" if task.elapsed else ""
            self._bar.update(self._task, events=f"{count:,} events  {rate}")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def counting(doing: str, *, shown: bool = True) -> Iterator[Callable[[str], None]]:
    """A line that shows the current activity and a count, if the total is unknown."""
    if not (shown and sys.stderr.isatty()):
        yield lambda told: None
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status(doing) as status:
        yield lambda told: status.update(f"{doing}  {told}")


def _bar() -> Any:
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.DownloadColumn(),
        progress.TextColumn("{task.fields[events]}"),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
