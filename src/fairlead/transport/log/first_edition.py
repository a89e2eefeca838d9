"""Logs of the first edition, in which each type had a stream of its own and there were no topics.

    stream     FL_T_<type>
    subject    fl.t.<type>.<source>, followed by the letters of the block or, earlier still, by nothing
    headers    as today, without Fl-Topic and Fl-Types; Fl-Sequence counts the events of the type

Takes: an address. Gives: the log, whose streams of types can be read. Never: writes; reads today's logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.errors import LogError
from fairlead.transport.log.blocks.block import EVENTS_MAX, Block, not_a_block
from fairlead.transport.log.file_log import FileLog
from fairlead.transport.log.names import token


def type_stream(name: str) -> str:
    return f"FL_T_{token(name)}"


def first_block_of(headers: Mapping[str, str] | None, payload: bytes, subject: str, place: str) -> Block:
    """The block of a stored message. Raises DataError if it is not a block of its subject. The marks of routes are left out:
    they refer to routes of that log."""
    try:
        given = headers or {}
        number, sequence, count = (int(given[name]) for name in ("Fl-Number", "Fl-Sequence", "Fl-Count"))
        type_name, source = given["Fl-Type"], given["Fl-Source"]
        if number >= 0 and sequence >= 0 and 0 < count <= EVENTS_MAX and subject.split(".")[2:4] == [token(type_name), source]:
            return Block(type_name, source, number, sequence, count, given["Fl-Schema"], payload, given.get("Fl-Writer", ""))
    except (KeyError, ValueError):
        pass
    raise not_a_block(place)


class FirstFileLog(FileLog):
    """The journal in a folder."""

    def _again(self, record: dict[str, Any], value: bytes) -> None:
        if record["do"] == "append":
            told = {name: each for name, each in record["block"].items() if name != "marks"}
            if "topic" in told:
                raise not_of_first_edition()
            self._take(type_stream(told["type"]), record["at"], Block(payload=value, **told))
        else:
            super()._again(record, value)


def not_of_first_edition() -> LogError:
    return LogError("N014", "the log has topics already", "connect to it: there is nothing to convert")
