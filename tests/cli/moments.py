"""The command, which says when a moment has come: `python -m tests.cli.moments FD MOMENT ARGUMENTS…`.

    python     deep in a search, event by event          writing    relations are written, for ever
    kernel     deep in a search, in machine code         waiting    nothing more comes of the log
    none       whoever started the command knows       import:M   module M is about to be imported

Takes: a file descriptor. Gives: a byte there, once. Never: changes how the command ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from fairlead.cli.main import main


def python(ready: Callable[[], None]) -> None:
    from fairlead.matching.search import Search

    fill = Search._fill

    def filled(search: Search, slot: int, *more: Any) -> bool:
        if slot == 3:
            ready()
        return fill(search, slot, *more)

    Search._fill = filled  # type: ignore[method-assign]


def kernel(ready: Callable[[], None]) -> None:
    from fairlead.matching.kernel.interruption import Check, Interruption

    create = Interruption.__init__

    def created(one: Interruption, check: Check | None = None) -> None:
        def asked() -> None:
            ready()
            if check is not None:
                check()

        create(one, asked)

    Interruption.__init__ = created  # type: ignore[method-assign]


def writing(ready: Callable[[], None]) -> None:
    from fairlead.transport import write

    for writer in (write.JsonLinesWriter, write.ParquetWriter):

        def written(one: Any, relations: Any, before: Any = writer.write) -> None:
            while len(relations):
                before(one, relations[:100])
                ready()

        writer.write = written  # type: ignore[method-assign]


def waiting(ready: Callable[[], None]) -> None:
    from fairlead.runtime.live import export

    async def blocks(*_: Any) -> AsyncIterator[Any]:
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


def none(ready: Callable[[], None]) -> None:
    pass


def announcing(fd: int) -> Iterator[None]:
    os.write(fd, b".")
    while True:
        yield


if __name__ == "__main__":
    said = announcing(int(sys.argv[1]))
    if sys.argv[2].startswith("import:"):
        importing(sys.argv[2].removeprefix("import:"), lambda: next(said))
    else:
        {each.__name__: each for each in (python, kernel, writing, waiting, none)}[sys.argv[2]](lambda: next(said))
    sys.argv = ["fairlead", *sys.argv[3:]]
    main()
