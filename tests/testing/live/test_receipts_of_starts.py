"""The receipts that the failure suite expects are those that subscribers store, wherever they begin."""

from __future__ import annotations

from datetime import datetime

import pytest

import fairlead
from fairlead.runtime.live.core.stream_groups import groups_of
from fairlead.testing.live.actors.beginning import time_of_log
from fairlead.testing.live.actors.setting import RULES, STREAMS, TYPES
from fairlead.testing.live.verdict import checks
from fairlead.testing.live.verdict.comparison import PLANS
from fairlead.testing.live.verdict.log_copy import Copy, copied
from fairlead.transport.log.blocks.block import INDEX_BITS
from tests.runtime.live.reading import more
from tests.transport.log.logs import URLS, run


def starts_of(copy: Copy) -> dict[str, list[int | datetime]]:
    """At the beginning, before it, in the middle of the log and of a block, and after all."""
    blocks = copy.streams[STREAMS[-1]]
    middle = copy.streams["both",][len(copy.streams["both",]) // 2].sequence
    times = [0, blocks[0].time, blocks[0].time + 1, blocks[len(blocks) // 2].time, blocks[-1].time, blocks[-1].time + 1]
    return {
        "at-position": [0, 1, 1 << INDEX_BITS, middle << INDEX_BITS, (middle << INDEX_BITS) + 1],
        "at-time": [time_of_log(each) for each in times],
    }


@pytest.mark.parametrize("url", URLS)
def test_expected_receipts_are_those_of_the_log(url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            await fl.declare(TYPES)
            for each in STREAMS:
                await fl.log.open_topics(each)
            for x in range(12):
                for name in ("A", "B", "C"):
                    await fl.publish(name, {"k": x % 3, "x": x, "at": time_of_log(x)}, wait=name == "C" or x % 2 == 0)
            every = starts_of(await copied(fl, STREAMS, 10))
            for name, starts in every.items():
                for number, start in enumerate(starts):
                    async with fl.subscribe(RULES[name], name=f"{name}-{number}", start=start, emit=False) as sub:
                        await more(sub)
                        await sub.ack()
            copy, judged = await copied(fl, STREAMS, 10), 0  # subscribers that wait have stored heartbeats
            for name, starts in every.items():
                for number, start in enumerate(starts):
                    found = {each.plan: each for each in (await fl.receipts(f"{name}-{number}")).values()}
                    for group in groups_of(PLANS[name]):
                        wanted = checks.due_receipt(copy, group, start, checks.expected(copy, group, start))
                        assert found[wanted.plan] == wanted
                        judged += wanted.count > 0
            assert judged > 10

    run(work)
