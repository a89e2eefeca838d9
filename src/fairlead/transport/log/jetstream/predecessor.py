"""The rule by which a message of a topic is a block: its append named the last message of its source, and the server compared.

A publisher appends a block on condition that the last message of its source, of any type, is the expected one. The server
stores this condition with the message, and it has checked it. So the message itself shows that it was appended in the order of
its source, and was not sent twice (of a block that names none, repeats.py knows). A message without it may be anything: an old
block that somebody sent again, numbers that nobody gave. It is rejected (D037), whatever it says of itself. The rule needs no
state, so it is the same for all readers: those of some types, of a route, from any place.

The condition is part of topics only: the server removes it when it copies a message to a merged stream. Readers of these look
it up in the topics (merged_reader.py).

Message ids are refused, too: a merged stream would drop the second of two messages with the same id. And derived events have
subjects of their own, so that who may store them writes under no publisher's name, nor the other way round. Topics of earlier
releases, which are not marked so (`MARKS`), are read as they were written: there blocks may have an id, the block's own, and
derived events have subjects like others.

Takes: the headers of a message, and its block. Gives: the block, or an error. Never: does I/O.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import replace

from nats.js.api import RawStreamMsg

from fairlead.dataclass import dataclass
from fairlead.errors import DataError
from fairlead.transport.log.blocks.block import Block, block_of, not_a_block
from fairlead.transport.log.names import is_derived, order_subjects, subject

EXPECTED = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_OF = f"{EXPECTED}-Subject"
MESSAGE_ID = "Nats-Msg-Id"
COPY_OF = "Nats-Stream-Source"
"""The header of a copied message: the stream and the sequence that it was copied from."""
COPIED = re.compile(rb"Nats-Stream-Source: ([^\r\n]+)\r\n\r\n\Z")
"""As the server writes it at the end, after whatever the message has as headers."""
NO_IDS, APART_MARK = {"fairlead-message-ids": "none"}, {"fairlead-derived": "apart"}
MARKS = NO_IDS | APART_MARK
"""Metadata of the streams of topics in which no block has a message id, and derived events have subjects of their own."""


def headers_of(found: RawStreamMsg) -> dict[str, str]:
    """The headers of a single message, as readers of a stream get them. (The client reads them like those of an e-mail, in
    which names of other scripts are something else than text.)"""
    if found.hdrs is None:  # by a direct request
        return dict(found.headers or {})
    return read_headers(base64.b64decode(found.hdrs or b""))


def read_headers(raw: bytes) -> dict[str, str]:
    """The headers of a message, whatever bytes its sender has given for them: of a name that is given twice the last value.
    Without the condition if that is not certain."""
    told = dict[str, str]()
    for line in raw.split(b"\r\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon and name.isascii():
            told[name.strip().decode()] = text_of(value.strip())
    copied = COPIED.search(raw)
    return certain(told if copied is None else told | {COPY_OF: text_of(copied[1])}, raw)


def text_of(raw: bytes) -> str:
    """A subject or a header: a server stores and sends any bytes, of which Fairlead writes ASCII only."""
    return raw.decode(errors="replace")


def certain(told: dict[str, str], raw: bytes) -> dict[str, str]:
    """The headers of a message, without the condition if the server may have read another one in them: it takes the first of
    two headers of one name, and knows none with spaces around the name or in further lines."""
    if EXPECTED in told:
        names = [line.partition(b":")[0] for line in raw.split(b"\r\n")[1:] if line]
        if len({name.lower() for name in names}) < len(names) or any(name != name.strip() for name in names):
            return {name: each for name, each in told.items() if name != EXPECTED}
    return told


def compared_with(found: RawStreamMsg) -> int | None:
    """The sequence with which the server compared the last one of the subject, before it stored this message; None if that is
    not certain. The name of the header must stand in them once: of two, the server compares the first, and of the longer name
    it takes another subject."""
    raw, name = base64.b64decode(found.hdrs or b""), EXPECTED.encode()
    if raw.count(name) != 1:
        return None
    told = re.search(rb"\r\n" + name + rb": ?(\d{1,19})\r\n", raw)
    return None if told is None else int(told[1])


@dataclass(frozen=True)
class TopicForm:
    """How the blocks of a topic were written. `with_ids`: they may have message ids. `apart`: derived ones have subjects of
    their own."""

    with_ids: bool = False
    apart: bool = True

    def condition(self, block: Block, after: int) -> dict[str, str]:
        """The headers of an append after this sequence. All clients name the subjects in the same way: servers of a cluster
        detect concurrent attempts by that."""
        named = order_subjects(block.topic, block.source, block.type, apart=self.apart)
        return {EXPECTED: str(after), EXPECTED_OF: named}

    def block(self, headers: Mapping[str, str] | None, payload: bytes, subject: str, place: str) -> Block:
        """The block of a message in the stream of a topic. Raises DataError."""
        found, told = block_of(headers, payload, subject, place), headers or {}
        if is_derived(found.source) and subject != subject_of(found, apart=self.apart):
            raise not_a_block(place)
        named = told.get(EXPECTED_OF) == self.condition(found, 0)[EXPECTED_OF] and EXPECTED in told
        own = (None, f"{found.source}:{found.lane}:{found.number}") if self.with_ids else (None,)
        if not named or told.get(MESSAGE_ID) not in own:
            what = "has a message id" if named else "was stored without naming the block before it"
            problem = f"a block of '{found.type}' from source '{found.source}' {what}"
            raise DataError("D037", problem, "publish with Fairlead only", place)
        return found if told[EXPECTED].strip(" 0") else replace(found, begins=True)


PRESENT = TopicForm()


def form_of(metadata: Mapping[str, str] | None) -> TopicForm:
    """The form of a topic, by the metadata of its stream."""
    told = (metadata or {}).items()
    return TopicForm(not NO_IDS.items() <= told, APART_MARK.items() <= told)


def subject_of(block: Block, *, apart: bool) -> str:
    return subject(block.topic, block.type, block.source, block.letters, apart=apart)
