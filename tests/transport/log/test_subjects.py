"""All subjects of a stream, of which a server names so many at a time."""

from __future__ import annotations

import asyncio
import random

import pytest

from fairlead.transport.log.jetstream.reports import all_pages

MOST = 5


@pytest.mark.parametrize("seed", range(200))
def test_no_subject_is_passed_over_while_others_come_and_go(seed: int) -> None:
    """Those that stay are found, whatever is removed or stored between two pages."""
    rolls = random.Random(seed)
    names = [f"s.{rolls.randrange(10_000):04}" for _ in range(rolls.randrange(60))]
    there, stay = {*names}, {each for each in names if rolls.random() < 0.4}

    def shown(offset: int) -> dict[str, int]:
        return dict.fromkeys(sorted(there)[offset : offset + MOST], 1)

    async def page(offset: int) -> dict[str, int]:
        for each in sorted(there - stay):
            if rolls.random() < 0.3:
                there.discard(each)
        there.update(f"s.{rolls.randrange(10_000):04}" for _ in range(rolls.randrange(3)))
        return shown(offset)

    found = asyncio.run(all_pages(shown(0), page, MOST))
    assert stay <= found.keys()
