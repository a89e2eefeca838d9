"""The command, which says when a moment has come: `python -m tests.cli.moments FD MOMENT ARGUMENTS…`.

    python     deep in a search, event by event          writing    relations are written, for ever
    kernel     deep in a search, in machine code         waiting    nothing more comes of the log
    none       whoever started the command knows       import:M   module M is about to be imported
    prepare:N  the N-th output is put on the disk       name:N     the N-th output takes its name
    summary    a run shows its summary                  exit       the command has ended, the process not yet

Takes: a file descriptor. Gives: a byte there, once. Never: changes how the command ends.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from fairlead.cli.main import main


def python(ready: Callable[[], None]) -> None:
    from fairlead.matching.interpreted.search import Search

    fill = Search._fill

    def filled(search: Search, slot: int, *more: Any) -> bool:
        if slot == 3:
            ready()
        return fill(search, slot, *more)

    Search._fill = filled  # type: ignore[method-assign]


def kernel(ready: Callable[[], None]) -> None:
    from fairlead.matching.compiled.machine_code.interruption import Check, Interruption

    create = Interruption.__init__

    def created(one: Interruption, check: Check | None = None) -> None:
        def asked() -> None:
            ready()
            if check is not None:
                check()

        create(one, asked)

    Interruption.__init__ = created  # type: ignore[method-assign]


def writing(ready: Callable[[], None]) -> None:
    from fairlead.transport.output import relation_files as write

    for writer in (write.JsonLinesWriter, write.ParquetWriter):

        def written(one: Any, relations: Any, before: Any = writer.write) -> None:
            while len(relations):
                before(one, relations[:100])
                ready()

        writer.write = written  # type: ignore[method-assign]


def waiting(ready: Callable[[], None]) -> None:
    from fairlead.runtime.live import export

    async def blocks(*_: Any, **__: Any) -> AsyncIterator[Any]:
        ready()
        await asyncio.Event().wait()
        yield

    export.blocks_until = blocks


def importing(module: str, ready: Callable[[], None]) -> None:
    class Announcing:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            if name == module:
                ready()
                signal.pause()

    sys.meta_path.insert(0, Announcing)  # type: ignore[arg-type]


def calling(owner: Any, name: str, which: int, ready: Callable[[], None]) -> None:
    """At the given call of a function the moment has come, and lasts until the signal is there."""
    before, calls = getattr(owner, name), itertools.count(1)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def called(*arguments: Any, **more: Any) -> Any:
        if next(calls) == which:
            signal.set_wakeup_fd(writing)
            ready()
            os.read(reading, 1)  # not signal.pause: the signal may be there before it
        return before(*arguments, **more)

    setattr(owner, name, called)


def preparing(which: int, ready: Callable[[], None]) -> None:
    from fairlead.transport.output.relation_files import OutputFile

    calling(OutputFile, "prepare", which, ready)


def naming(which: int, ready: Callable[[], None]) -> None:
    calling(os, "replace", which, ready)


def summary(ready: Callable[[], None]) -> None:
    from fairlead.cli.display.summary import Summary

    calling(Summary, "to_json", 1, ready)


def exit(ready: Callable[[], None]) -> None:
    import gc

    calling(gc, "freeze", 1, ready)


def none(ready: Callable[[], None]) -> None:
    pass


def announcing(fd: int) -> Iterator[None]:
    os.write(fd, b".")
    while True:
        yield


if __name__ == "__main__":
    said = announcing(int(sys.argv[1]))
    moment, _, which = sys.argv[2].partition(":")
    if moment == "import":
        importing(which, lambda: next(said))
    elif which:
        {"prepare": preparing, "name": naming}[moment](int(which), lambda: next(said))
    else:
        plain = (python, kernel, writing, waiting, summary, exit, none)
        {each.__name__: each for each in plain}[moment](lambda: next(said))
    sys.argv = ["fairlead", *sys.argv[3:]]
    main()
