"""Values between a run and its workers: pickled, each with its length, over pipes that only these processes have."""

from __future__ import annotations

import pickle
from typing import IO, Any

LENGTH_BYTES = 8


def write_frame(file: IO[bytes], value: Any) -> None:
    content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    file.write(len(content).to_bytes(LENGTH_BYTES, "big"))
    file.write(content)
    file.flush()


def read_frame(file: IO[bytes]) -> Any:
    """Raises EOFError if the other process has ended, in the middle of a frame too."""
    content = _exactly(file, int.from_bytes(_exactly(file, LENGTH_BYTES), "big"))
    return pickle.loads(content)


def _exactly(file: IO[bytes], count: int) -> bytes:
    content = file.read(count)
    if len(content) < count:
        raise EOFError
    return content
