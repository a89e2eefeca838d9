"""Works that are given together take turns in one thread; none waits for one that does not end, and every result is its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from fairlead.runtime.live.subscriber.match_threads import MatchThreads

NEVER = 3600.0


@pytest.mark.parametrize("count", [1, 2, 7])
def test_works_of_one_round_take_turns_in_their_order(count: int) -> None:
    running, most, order = 0, 0, list[int]()

    def work(number: int) -> Callable[[], int]:
        def done() -> int:
            nonlocal running, most
            running += 1
            most = max(most, running)
            order.append(number)
            running -= 1
            return number

        return done

    async def all_of_them() -> list[int]:
        threads = MatchThreads(NEVER)
        found = []
        for _ in range(3):  # rounds
            found += await asyncio.gather(*(threads.run(work(number)) for number in range(count)))
        return found

    assert asyncio.run(all_of_them()) == [*range(count)] * 3
    assert (order, most) == ([*range(count)] * 3, 1)


@pytest.mark.parametrize("endless", [{0}, {1}, {0, 1}, {2}])
def test_no_work_waits_for_one_that_does_not_end(endless: set[int]) -> None:
    end = threading.Event()

    def work(number: int) -> Callable[[], int]:
        return lambda: number if number not in endless or end.wait() else -1

    async def all_of_them() -> None:
        threads = MatchThreads(0.001)
        given = [threads.run(work(number)) for number in range(4)]
        try:
            ended = [each for number, each in enumerate(given) if number not in endless]
            assert await asyncio.gather(*ended) == [number for number in range(4) if number not in endless]
            assert not any(given[number].done() for number in endless)
        finally:
            end.set()
        assert await asyncio.gather(*given) == [0, 1, 2, 3]

    asyncio.run(all_of_them())


def test_an_error_is_that_of_its_work_alone() -> None:
    def wrong() -> int:
        raise ValueError("wrong")

    async def all_of_them() -> list[int | BaseException]:
        threads = MatchThreads(NEVER)
        return await asyncio.gather(*map(threads.run, (lambda: 1, wrong, lambda: 2)), return_exceptions=True)

    one, error, two = asyncio.run(all_of_them())
    assert (one, two) == (1, 2)
    assert isinstance(error, ValueError)


def test_a_work_whose_future_was_cancelled_hinders_nobody() -> None:
    async def all_of_them() -> int:
        threads = MatchThreads(NEVER)
        dropped, kept = threads.run(lambda: 1), threads.run(lambda: 2)
        dropped.cancel()
        return await kept

    assert asyncio.run(all_of_them()) == 2


def test_no_more_works_than_threads_run_at_once() -> None:
    end, begun = threading.Event(), list[int]()

    async def all_of_them() -> None:
        threads = MatchThreads(0.0, most=2)
        given = []
        for number in range(5):  # rounds
            given.append(threads.run(lambda number=number: begun.append(number) or end.wait()))  # type: ignore[misc]
            await asyncio.sleep(0)
        while len(begun) < 2:
            await asyncio.sleep(0)
        assert await asyncio.to_thread(lambda: "others") == "others"
        assert len(begun) == 2
        end.set()
        await asyncio.gather(*given)

    asyncio.run(all_of_them())
    assert sorted(begun) == [*range(5)]
