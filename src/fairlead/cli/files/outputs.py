"""The outputs of `run` beside the relations, and the check that nothing is overwritten.

Gives: a text that appears completely or not at all, and the check that no output is an input or another output.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import click

from fairlead.errors import UsageError
from fairlead.transport.output.relation_files import OutputFile


class SmallOutput:
    """A small file as a context manager; without a path it does nothing."""

    def __init__(self, path: str | None) -> None:
        self._target = None if path is None else OutputFile(path)
        self._done = False

    def write(self, content: str | bytes) -> None:
        if self._target is not None:
            with self._target.guarded():
                self._target.file.write(content.encode() if isinstance(content, str) else content)

    def prepare(self) -> None:
        """Everything that can fail; `close` then names the file."""
        if self._target is not None:
            with self._target.guarded():
                self._target.prepare()

    def close(self) -> None:
        if self._target is not None and not self._done:
            with self._target.guarded():
                self._target.commit()
        self._done = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        elif self._target is not None and not self._done:
            self._target.discard()


def appears_at_once(path: str | None) -> bool:
    """Whether the output can be seen before the run has ended: the standard output, a device or a pipe. A file cannot."""
    return path == "-" or (path is not None and Path(path).exists() and not Path(path).is_file())


def refuse_nameless(named: dict[str, str | None], standard: Iterable[str]) -> None:
    """An output has a name, and is the standard output (`-`) only if that makes sense: `standard` lists the options."""
    for option, path in named.items():
        if path == "":
            raise UsageError("A293", f"{option} is an empty file name", f"name a file, or leave {option} out", "''")
        if path == "-" and option not in standard:
            problem = f"{option} needs a file, not the standard output"
            raise UsageError("A293", problem, "name a file; ./- for a file called -", "-")


def refuse_overlap(named: dict[str, str | None], inputs: Iterable[str | Path]) -> None:
    """Every output has its own file. Devices such as /dev/null are not files."""
    taken = {os.path.realpath(each): f"the input {each}" for each in inputs}
    for option, path in named.items():
        if path is None or appears_at_once(path):
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise click.UsageError(f"{option} would overwrite {taken[place]}; name another file")
        taken[place] = f"what {option} writes"
