"""Reading ahead: an iterator runs in a thread of its own, a few items before whoever consumes it.

It pays where the items are made without Python's lock, as Arrow decodes Parquet: then reading has a core of its own.

Takes: a generator that touches nothing its consumer touches. Gives: the same items in the same order, and the same error at
the same place. Never: leaves a thread behind. Closing the iterator, or an error in its consumer, ends the thread: it finishes
the item at hand, closes the generator and is waited for.
"""

from __future__ import annotations

from collections.abc import Generator
from queue import SimpleQueue
from threading import Semaphore, Thread, current_thread
from typing import TypeVar

Item = TypeVar("Item")

AHEAD = 2
"""Items made before they are asked for: one hides the making, a second one an uneven consumer."""


class _End:
    """The last thing in the queue: the error that ended the generator, or None."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def read_ahead(items: Generator[Item, None, None], ahead: int = AHEAD) -> Generator[Item, None, None]:
    """The items of the generator, made in a thread. It begins when the first one is asked for."""
    made: SimpleQueue[Item | _End] = SimpleQueue()
    room = Semaphore(ahead)
    stopped = False

    def work() -> None:
        error: BaseException | None = None
        try:
            while room.acquire() and not stopped:
                made.put(next(items))
        except StopIteration:
            pass
        except BaseException as raised:  # it is the consumer's to handle
            error = raised
        finally:
            items.close()
            made.put(_End(error))

    thread = Thread(target=work, name="fairlead read ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := made.get(), _End):
            room.release()
            yield item
        if item.error is not None:
            raise item.error
    finally:
        stopped = True
        room.release()
        if thread is not current_thread():  # the garbage collector may close a forgotten iterator in any thread
            thread.join()
