"""The client without asyncio does the same."""

from __future__ import annotations

from itertools import islice

import pytest

import fairlead
from tests.runtime.live.reading import RULES, TYPES
from tests.transport.log.logs import URLS


@pytest.mark.parametrize("url", URLS)
def test_the_same_without_asyncio(url: str | None) -> None:
    with fairlead.connect(url).sync as fl:
        fl.declare(TYPES)
        assert [each.name for each in fl.types()] == ["A", "B", "C"]
        for k in range(5):
            fl.publish("A", k=k, x=0)
        fl.publish_many("B", {"k": [0, 1, 2, 3, 4], "x": [1, 1, 1, 1, 1]})
        fl.flush()
        with fl.subscribe(RULES, name="one", start="earliest") as one, fl.subscribe(RULES, name="two", start="earliest") as two:
            first = []
            for relation in islice(one, 3):
                first.append(relation.id)
                one.ack(relation)
            batch = next(two.batches())
            two.ack(batch)
            assert [each.id for each in batch][:3] == first
            count = len(batch)
            assert two.next(timeout=0.2) is None or url is None
            assert one.receipt.count == 3
            assert one.lag() == 0
        with fl.subscribe(RULES, name="one") as one:
            rest = [one.next(timeout=5) for _ in range(count - 3)]
            assert all(rest)
            one.ack()
            assert one.receipt.count == count
        assert fl.compare("one", "two")
        with pytest.raises(fairlead.DataError, match="D001"):
            fl.publish("D", k=1)
        fl.forget("one")
        with pytest.raises(fairlead.UsageError, match="A250"):
            fl.receipts("one")


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(fairlead.LogError, match="N001"), fairlead.connect("nats://127.0.0.1:1").sync:
        pass
