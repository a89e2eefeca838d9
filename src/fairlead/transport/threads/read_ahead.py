"""Read-ahead: runs an iterator in its own thread, a few items ahead of its consumer.

It pays off if the items are produced without Python's lock, as when Arrow decodes Parquet: then reading has its own core.

Takes: a generator that shares no state with its consumer. Gives: the same items in the same order, and the same error at the
same place. Never: leaves a thread running. Closing the iterator, or an error in its consumer, ends the thread: it finishes the
current item, closes the generator and is joined.
"""

from __future__ import annotations

from collections.abc import Generator
from queue import SimpleQueue
from threading import Semaphore, Thread, current_thread
from typing import TypeVar

Item = TypeVar("Item")

AHEAD = 2
"""Items produced in advance: one hides the production time, a second one an uneven consumer."""


class _End:
    """The last item of the queue: the error that ended the generator, or None."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def read_ahead(items: Generator[Item, None, None], ahead: int = AHEAD) -> Generator[Item, None, None]:
    """The items of the generator, produced in a thread. It starts with the first request."""
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
        except BaseException as raised:  # the consumer handles it
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
