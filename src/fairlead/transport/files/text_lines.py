"""Text files as numbered lines and batches, in bounded memory.

Takes: the path of a text file, gzipped or not. Gives: `Line`s, and batches of parsed records.
Never: holds more than one line or one batch, or more of a line than the largest event.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from fairlead.errors import DataError
from fairlead.model.limits import LIMITS
from fairlead.transport.admission.gate import RawRecords
from fairlead.transport.admission.problems import oversized

BATCH_BYTES_MAX = 64_000_000
"""A batch ends at this much text even if it has few rows: 64 events of the largest size."""


class BatchSize(NamedTuple):
    """Rows in a batch (None: as many as suit the format), and bytes at which it ends."""

    rows: int | None = None
    bytes_max: int = BATCH_BYTES_MAX


Progress = Callable[[int], None]
COPY_AGAIN = "copy the file again"
RECODE = "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE"
BOM = b"\xef\xbb\xbf"
WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
"""No UTF-8 text begins with these bytes."""


Line = tuple[int, bytes, bool, DataError | None]
"""Number, content with its newline, whether it had one, and the error of a line that could not be read. A plain tuple, like
Parsed: two named tuples per line cost a tenth of its parsing time."""

Parsed = tuple[int, str, Any]
"""A parsed line or row: its number, its text, and the record or its DataError."""


class Lines:
    """The lines of one file. `bytes_read` counts the bytes of the file itself, compressed if it is; 0 for a pipe, which has no
    size to compare with."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("rb")
            self._seekable = self._file.seekable()
        except OSError as error:
            raise unreadable(path, error) from None
        self._stream: BinaryIO | gzip.GzipFile = gzip.GzipFile(fileobj=self._file) if path.suffix == ".gz" else self._file

    def close(self) -> None:
        self._stream.close()
        self._file.close()

    @property
    def bytes_read(self) -> int:
        return self._file.tell() if self._seekable else 0

    def __iter__(self) -> Iterator[Line]:
        most = LIMITS.event_bytes_max
        limit = most + len(BOM) + len(b"\r\n") + 1
        number = 0
        try:
            while content := self._stream.readline(limit):
                number += 1
                ended = content.endswith(b"\n")
                if number == 1:
                    if _is_wide(content):
                        raise DataError("D016", "the file is UTF-16 or UTF-32, not UTF-8", RECODE, str(self._path))
                    content = content.removeprefix(BOM)
                if len(content) > most and len(content.rstrip(b"\r\n")) > most:
                    yield number, content, ended, oversized("the line")
                    if not ended:  # only if somebody asks for the next line: this one may never end
                        self._skip_rest(limit)
                else:
                    yield number, content, ended, None
        except EOFError:
            yield number + 1, b"", False, DataError("D012", "the compressed file ends too early", COPY_AGAIN)
        except (gzip.BadGzipFile, zlib.error) as error:
            yield number + 1, b"", False, DataError("D032", f"the compressed file is damaged: {error}", COPY_AGAIN)
        except OSError as error:
            raise unreadable(self._path, error) from None

    def _skip_rest(self, limit: int) -> None:
        while rest := self._stream.readline(limit):
            if rest.endswith(b"\n"):
                return


def unreadable(path: Path, error: OSError) -> DataError:
    return DataError("D013", f"the file is not readable: {error.strerror or error}", "check its permissions", str(path))


def _is_wide(head: bytes) -> bool:
    """Whether a file that begins with `head` has two or four bytes per character, with or without a byte order mark."""
    return head.startswith(WIDE_BOMS) or (0 in head[:4] and any(head[:4]))


def decoded(content: bytes, ended: bool = True) -> str | DataError:
    """`ended`: whether the line has its newline. Without it, the file may have been cut in the middle of a character (D012)."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        if not ended and error.reason == "unexpected end of data":
            return DataError(
                "D012",
                "the file ends in the middle of a character",
                "wait until the writer has finished, or copy the file again",
            )
        problem = f"byte {error.start + 1} of the line is not UTF-8 (0x{content[error.start]:02x})"
        return DataError("D016", problem, "save the file as UTF-8")


def batches(parsed: Iterable[Parsed], file: str, rows_max: int, bytes_max: int) -> Iterator[RawRecords]:
    """The records in batches of bounded rows and bytes."""
    lines: list[int] = []
    texts: list[str] = []
    records: list[Any] = []
    size = 0
    for line, text, record in parsed:
        lines.append(line)
        texts.append(text)
        records.append(record)
        size += len(text)
        too_long = isinstance(record, DataError) and record.code == "D007"  # what follows may be gigabytes of the same line
        if len(records) >= rows_max or size >= bytes_max or too_long:
            yield RawRecords(records, file, lines, texts)
            lines, texts, records, size = [], [], [], 0
    if records:
        yield RawRecords(records, file, lines, texts)
