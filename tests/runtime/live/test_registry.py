"""What a client may declare, every other client can read."""

from __future__ import annotations

import pytest

import fairlead
from fairlead.errors import UsageError
from fairlead.runtime.live.registry import Registry
from tests.transport.log.logs import URLS, run

LETTERS = {"x": 1, "é": 5, "名": 7, "𝒳": 9}
"""How many letters of a subject each is."""


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(
    ("text", "is_too_long"),
    [
        *((f"TYPE {each * count} (k INT)", count > 200) for each in LETTERS for count in (200, 201)),
        *((f"TOPIC {each * (240 // size)} (A) TYPE A (k INT)", False) for each, size in LETTERS.items()),
        (f"TOPIC {'t' * 241} (A) TYPE A (k INT)", True),
        (f"TYPE A ({'k' * 5_000} INT)", False),
    ],
    ids=lambda given: f"{given[:12]}… {len(given)}" if isinstance(given, str) else str(given),
)
def test_a_declaration_is_refused_or_read_by_everybody(text: str, is_too_long: bool, url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url) as fl:
            if is_too_long:
                with pytest.raises(UsageError, match="A240"):
                    await fl.declare(text)
            names = [] if is_too_long else await fl.declare(text)
            another = Registry(fl.log)
            await another.refresh()
            assert [each.name for each in another.catalogue] == names
            for each in another.catalogue:
                await fl.publish(each.name, wait=True, **{one.name: 1 for one in each.attributes})

    run(work)


def test_derived_types_have_names_that_can_be_read() -> None:
    async def work() -> None:
        async with fairlead.connect("memory:") as fl:
            await fl.declare("TYPE A (k INT)")
            with pytest.raises(UsageError, match="A240"):
                async with fl.subscribe(f"SUBSCRIPTION S MATCH A a EMIT {'E' * 201}(k = a.k)"):
                    pass
            assert [each.name for each in await fl.types()] == ["A"]

    run(work)
