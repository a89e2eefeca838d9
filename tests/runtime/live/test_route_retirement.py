"""Routes cost publishers linear time, and go with their last subscriber; nobody loses an event by either."""

from __future__ import annotations

import asyncio
import json
from random import Random

import pytest

import fairlead
from fairlead.deliver.receipt import Receipt
from fairlead.language.compiler import compile_text
from fairlead.model.expressions.function_table import FUNCTIONS
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.core.routes import LINEAR, TEXT_MAX, routes_of, text_of
from fairlead.runtime.live.route_table import TABLE, retire_routes, type_routes
from fairlead.runtime.live.subscriber.subscription import LiveSubscription
from tests.runtime.live.routing import MIXED, TYPES, all_of, publish_one_by_one, renewed, whole
from tests.transport.log.logs import URLS, run

IBM, XY = ("SUBSCRIPTION S MATCH A a WHERE a.s = 'IBM'", "SUBSCRIPTION S MATCH A a WHERE a.s = 'X'")


async def letters(fl: Client) -> str:
    """Of the next block of A."""
    await renewed(fl)
    await publish_one_by_one(fl, "A", ["IBM"])
    last = await fl.log.last_of("main", fl.source)
    assert last is not None
    return last.block.letters


def test_every_function_is_known_to_be_linear_or_to_make_texts_longer() -> None:
    assert LINEAR.isdisjoint({"replace"})
    assert LINEAR | {"replace"} == {*FUNCTIONS}


@pytest.mark.parametrize(
    ("condition", "route"),
    [
        ("a.s LIKE '%a%a%a%a%a%'", "(e.s LIKE '%a%a%a%a%a%')"),
        ("a.s RLIKE '(a*)*b'", "rlike(e.s, '(a*)*b')"),
        ("concat(a.s, a.s, 'x') = 'xx'", "(concat(e.s, e.s, 'x') = 'xx')"),
        ("replace(a.s, 'ab', 'c') = 'x'", "(replace(e.s, 'ab', 'c') = 'x')"),
        ("replace(a.s, 'ab') = 'x'", "(replace(e.s, 'ab') = 'x')"),
        ("replace(a.s, 'a', 'aa') = 'x'", None),
        ("replace(a.s, a.s, 'a') = 'x'", None),
        ("replace(a.s, 'aa', a.s) = 'x'", None),
        ("length(replace(replace(a.s, 'a', 'bbbb'), 'b', 'aaaa')) > 3", None),
        ("CASE WHEN replace(a.s, 'a', 'aa') = 'aa' THEN TRUE ELSE FALSE END", None),
        ("replace(a.s, 'a', 'aa') = 'x' AND a.k = 1", "(e.k = 1)"),
        ("(replace(a.s, 'a', 'aa') = 'x' OR a.k = 1)", None),
    ],
)
def test_conditions_that_make_texts_longer_stay_with_the_subscriber(condition: str, route: str | None) -> None:
    plan = compile_text(f"{TYPES} SUBSCRIPTION S MATCH A a WHERE {condition}")
    found = routes_of(plan, ["A"]).get("A")
    assert (None if found is None else text_of(found)) == route


@pytest.mark.parametrize("url", URLS)
def test_a_route_goes_with_its_last_subscriber_and_comes_back_to_its_place(url: str | None) -> None:
    async def work() -> None:
        async with fairlead.connect(url, source="feed") as fl:
            await fl.declare(TYPES)
            for name, rules in (("one", IBM), ("two", IBM), ("three", XY)):
                async with fl.subscribe(rules, name=name, start="earliest"):
                    pass
            assert await letters(fl) == "ynuu"
            await fl.forget("one")
            assert await letters(fl) == "ynuu"  # `two` reads it
            await fl.forget("two")
            assert await letters(fl) == "unuu"
            assert (await type_routes(fl.log, "A")).active == ("", "(e.s = 'X')")
            assert [each.routes for each in (await fl.overview()).topics] == [{"A": ("", "(e.s = 'X')")}]
            async with fl.subscribe(IBM, start="earliest") as sub:  # who has no name finds the place, and leaves it retired
                assert len(await all_of(sub)) == 3
            assert await letters(fl) == "unuu"
            async with fl.subscribe(IBM, name="four", start="earliest") as sub:
                assert await letters(fl) == "ynuu"
                assert len(await all_of(sub)) == 5
            await fl.forget("three")
            await fl.forget("four")
            assert await letters(fl) == "uuuu"
            assert await retire_routes(fl.log) == {}

    run(work)


@pytest.mark.parametrize("seed", range(20))
def test_nobody_loses_an_event_while_routes_come_and_go(seed: int) -> None:
    """Subscribers come, leave and are forgotten, and publishers look at the table now and then: those of routes deliver what
    readers of everything deliver."""
    rng = Random(seed)

    async def work() -> None:
        async with fairlead.connect("memory:", source="feed") as fl:
            await fl.declare(TYPES)
            names = ["one", "two", "three"]
            rules = dict(zip(names, (IBM, XY, IBM), strict=True))
            for _ in range(25):
                name = rng.choice(names)
                match rng.randrange(6):
                    case 0:
                        await fl.forget(name)
                    case 1:
                        await retire_routes(fl.log)
                    case 2:
                        await renewed(fl)
                    case 3:
                        one = fl.subscribe(rules[name], name=name, start="earliest")
                        async with one, whole(fl.subscribe(rules[name], start="earliest")) as two:
                            if rng.random() < 0.5:  # its record is written, and its route is retired before it has read
                                await fl.forget("three" if name != "three" else "one")
                            await publish_one_by_one(fl, "A", [rng.choice(MIXED)])
                            await all_of(one)
                            assert one.receipt.digest == (await _after(two)).digest
                            await one.ack()
                    case _:
                        await publish_one_by_one(fl, "A", [rng.choice(MIXED)])

    run(work)


async def _after(sub: LiveSubscription) -> Receipt:
    await all_of(sub)
    return sub.receipt


@pytest.mark.parametrize(
    "told",
    [
        {"type": "A", "routes": 7},
        {"type": "A", "routes": ["(e.s = 'IBM')"], "retired": "x"},
        {"type": "A", "routes": ["(e.s = 'IBM')"], "retired": [1e400]},
        {"type": "A", "routes": ["(e.s = 'IBM')"] * 1000},
        {"type": "B", "routes": ["(e.s = 'IBM')"]},
        {"type": "A", "routes": ["e.s = '" + "x" * 200_000 + "'"]},
        {"type": "A", "routes": ["(" * TEXT_MAX]},
        {"type": "A", "routes": [" OR ".join(["e.s RLIKE 'a{900}'"] * 150)] * 4},
        {"type": ["A"]},
        [],
    ],
    ids=range(10),
)
def test_what_strangers_write_as_a_route_breaks_nobody(told: object) -> None:
    async def work() -> None:
        async with fairlead.connect("memory:", source="feed") as fl:
            await fl.declare(TYPES)
            await fl.log.put(TABLE, "A", json.dumps(told).encode())
            async with fl.subscribe(IBM, name="one", start="earliest") as sub:
                await publish_one_by_one(fl, "A", MIXED)
                assert len(await all_of(sub)) == 2
            await fl.forget("one")
            await fl.sweep()
            await fl.overview()

    run(work)


def test_long_routes_are_compiled_beside_the_event_loop() -> None:
    text = " OR ".join(f"e.s = 'IBM{at}'" for at in range(20))
    longer = " OR ".join(f"(e.s = '{'x' * 60}{at}')" for at in range(18))

    async def work() -> None:
        async with fairlead.connect("memory:", source="feed") as fl:
            await fl.declare(TYPES)
            await fl.log.put(TABLE, "A", json.dumps({"type": "A", "routes": [text, longer]}).encode())
            assert await letters(fl) == "uuuu"
            (outbox,) = fl._publisher._outboxes.values()
            compiling = outbox._lanes["A"].marks._compiling
            assert compiling is not None
            await asyncio.wait([compiling])
            assert await letters(fl) == "nnuu"

    run(work)
