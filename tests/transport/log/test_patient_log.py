"""Asking again: a value that was to replace a known one is stored once, and nobody is blamed for an attempt of our own."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.transport.log.memory_log import MemoryLog
from fairlead.transport.log.patient_log import PatientLog
from fairlead.transport.log.protocol import Conflict, TableEntry, Unavailable


class CutOff(MemoryLog):
    """As a leader that is cut off: an attempt stays under way, others are refused, until it is heard of again."""

    def __init__(self, refusals: int, lost: bool) -> None:
        super().__init__()
        self._refusals, self._lost, self.asked = refusals, lost, 0

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        if not revision:
            return await super().put(table, key, value, revision)
        self.asked += 1
        if self.asked == 1:
            raise Unavailable("timeout")
        if self.asked <= 1 + self._refusals:
            raise Conflict("wrong last sequence")
        if self.asked == 2 + self._refusals and not self._lost:
            await super().put(table, key, value, revision)
        return await super().put(table, key, value, revision)


@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("refusals", [0, 1, 3])
def test_an_attempt_of_our_own_that_is_under_way_is_no_conflict(refusals: int, lost: bool) -> None:
    async def work() -> None:
        log = PatientLog(CutOff(refusals, lost), 10, pause=0.0)
        first = await log.put("t", "k", b"one", 0)
        second = await log.put("t", "k", b"two", first)
        entry = await log.get("t", "k")
        assert entry is not None
        assert (entry.value, entry.revision) == (b"two", second)

    asyncio.run(work())


class Outdated(MemoryLog):
    """As a leader that is cut off, does not know it, and lacks what the new one has stored."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self._answers, self._old = answers, list[TableEntry]()

    async def put(self, table: str, key: str, value: bytes, revision: int | None = None) -> int:
        if len(self._old) == 2 and self._answers:
            raise Conflict("wrong last sequence")
        stored = await super().put(table, key, value, revision)
        self._old.append(TableEntry(value, stored))
        return stored

    async def get(self, table: str, key: str) -> TableEntry | None:
        if len(self._old) == 2 and self._answers:
            self._answers -= 1
            return self._old[0]
        return await super().get(table, key)


@pytest.mark.parametrize("answers", [1, 3])
def test_an_answer_from_the_past_is_no_conflict(answers: int) -> None:
    async def work() -> None:
        log = PatientLog(Outdated(answers), 10, pause=0.0)
        first = await log.put("t", "k", b"one", 0)
        second = await log.put("t", "k", b"two", first)
        third = await log.put("t", "k", b"three", second)
        found = await log.get("t", "k")
        assert found is not None
        assert (found.value, found.revision, found.after) == (b"three", third, second)

    asyncio.run(work())


def test_what_another_has_changed_is_a_conflict() -> None:
    async def work() -> None:
        log = PatientLog(MemoryLog(), 10)
        first = await log.put("t", "k", b"one", 0)
        await log.put("t", "k", b"two", first)
        with pytest.raises(Conflict):
            await log.put("t", "k", b"three", first)
        with pytest.raises(Conflict):
            await log.put("t", "k", b"two", first)

    asyncio.run(work())
