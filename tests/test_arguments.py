"""Whatever is passed to the public API, it answers with a coded error that has a fix: never an AttributeError or TypeError
from the inside.

The matrix has every parameter of every exported callable, and of the client that `connect` makes; one that is added without a
row here fails the test. Values that are right are left out of a row by their types.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType
from typing import Any

import pytest

import fairlead
from fairlead.errors import FairleadError
from fairlead.runtime.live.client import Client

TYPES = "TYPE A (k INT, at TIMESTAMP) TIME at"
RULES = f"{TYPES}\nSUBSCRIPTION S MATCH A a[2] WHERE a[1].k = a[2].k"
ROWS = [{"type": "A", "k": 1, "at": "2026-01-01T00:00:00Z"}] * 3
PLAN = fairlead.compile(RULES)
RESULT = fairlead.match(PLAN, ROWS)
DUMP = fairlead.Engine(PLAN).dump()

WRONG: tuple[Any, ...] = (
    None, True, 7, -1.5, "no such thing", b"bytes", object(), int, [], [None], (1,), {}, {"a": 1}, {1: "a"}, {"s"}, Path("p"),
    RESULT,
)  # fmt: skip

TEXT, NUMBER, PATH = (str,), (bool, int, float), (str, type(Path()))
Row = tuple[Callable[..., Any], dict[str, Any], dict[str, tuple[type, ...]]]
"""A call, its right arguments, and for each parameter the types of WRONG that may be right."""

MATRIX: dict[str, Row] = {
    "compile": (fairlead.compile, {"text": RULES}, {"text": TEXT, "file": (*PATH, NoneType), "dialect": ()}),
    "match": (
        fairlead.match,
        {"plan": PLAN, "events": ROWS},
        {
            "plan": (),
            "events": (list,),
            "order_by": (NoneType,),
            "position": (NoneType,),
            "stream": (NoneType,),
            "until": (NoneType, *NUMBER),
            "event_by_event": (bool,),
        },
    ),
    "explain": (
        fairlead.explain,
        {"plan": PLAN},
        {"plan": (), "subscription": (NoneType,), "counterexamples": (bool,), "runtime": ()},
    ),
    "compare": (fairlead.compare, {"a": RESULT.receipt, "b": RESULT.receipt}, {"a": (), "b": ()}),
    "connect": (
        fairlead.connect,
        {},
        {
            "url": (*TEXT, NoneType),
            "data": (*PATH, NoneType),
            "source": (*TEXT, NoneType),
            "replicas": (NoneType,),
            "linger": (int, float),
            "patience": (int, float),
            "heartbeat": (int, float, NoneType),
            **dict.fromkeys(("user", "password", "token"), (*TEXT, NoneType)),
            **dict.fromkeys(("nkey", "ca", "certificate", "key", "signing_keys"), (*PATH, NoneType)),
        },
    ),
    "Engine": (
        fairlead.Engine,
        {"plan": PLAN},
        {"plan": (), "matcher": (type,), "kernels_from": (int, NoneType), "since": (dict, NoneType), "check": (type, NoneType)},
    ),
    "Engine.feed": (fairlead.Engine(PLAN).feed, {}, {"columns": ()}),
    "Engine.arrive": (fairlead.Engine(PLAN).arrive, {}, {"event": ()}),
    "Engine.finish": (fairlead.Engine(PLAN).finish, {}, {"until": (int, NoneType)}),
    "Engine.load": (
        fairlead.Engine.load,
        {"plan": PLAN, "dumped": DUMP},
        {
            "plan": (),
            "dumped": (),
            "kernels_from": (int, NoneType),
            "without": (list, set, dict),
            "check": (type, NoneType),
        },
    ),
    "Run": (
        fairlead.Run,
        {"plan": PLAN},
        {
            "plan": (),
            "event_by_event": (bool,),
            "parts": (list,),
            "resumed": (NoneType,),
            "keep": (bool,),
            "late": (type, NoneType),
            "rejects": (bool,),
        },
    ),
    "Run.feed": (fairlead.Run(PLAN).feed, {"columns": None}, {"columns": (), "part": ()}),
    "Run.finish": (fairlead.Run(PLAN).finish, {}, {"until": (int, NoneType)}),
    "Receipt.from_json": (fairlead.Receipt.from_json, {}, {"content": ()}),
    "Result.of": (RESULT.of, {}, {"subscription": ()}),
    "Result.to_arrow": (RESULT.to_arrow, {}, {"subscription": (NoneType,)}),
}
VALUES = {
    "Comparison", "DataError", "Event", "EventReport", "EventVerdict", "Explanation", "FairleadError", "Guarantee",
    "LanguageError", "LogError", "Plan", "Position", "Property", "Receipt", "Relation", "Result", "StateError", "Subscription",
    "UnsupportedError", "UsageError", "Verdict",
}  # fmt: skip
"""What the calls return and raise: values, made by Fairlead, which check nothing."""
INNER = {"Engine": {"thresholds"}, "Engine.load": {"thresholds"}, "Engine.feed": {"prepared"}}
"""Parameters by which parts of Fairlead speak to one another."""

CLIENT: dict[str, tuple[dict[str, Any], dict[str, tuple[type, ...]]]] = {
    "declare": ({}, {"text": ()}),
    "publish": ({"type": "A"}, {"type": (), "values": ()}),
    "publish_many": ({"type": "A", "events": ROWS}, {"type": (), "events": (list, dict)}),
    "publish_all": ({"events": ROWS}, {"events": (list,)}),
    "publish_columns": ({}, {"columns": ()}),
    "subscribe": ({"rules": RULES}, {"rules": (), "name": (NoneType,), "start": (int,)}),
    "retain": ({}, {"apply": (bool,), "read": (bool,)}),
    "receipts": ({}, {"name": ()}),
    "compare": ({"a": "x", "b": "x"}, {"a": (), "b": ()}),
    "group_names": ({}, {"name": (str,)}),
    "forget": ({}, {"name": (str,)}),
    "export": ({"rules": RULES, "path": "nowhere/x.parquet"}, {"rules": (), "path": (), "subscription": ()}),
}


def wrong(right: tuple[type, ...]) -> Iterator[Any]:
    return (value for value in WRONG if type(value) not in right and not (type in right and isinstance(value, type)))


@pytest.mark.parametrize("name", MATRIX)
def test_a_wrong_argument_is_a_coded_error(name: str) -> None:
    call, given, parameters = MATRIX[name]
    for parameter, right in parameters.items():
        for value in wrong(right):
            with pytest.raises(FairleadError) as error:
                call(**{**given, parameter: value})
            assert error.value.fix, (parameter, value)


def test_an_argument_of_the_wrong_type_names_its_call_its_type_and_what_to_pass() -> None:
    with pytest.raises(fairlead.UsageError) as error:
        fairlead.compile(b"TYPE")  # type: ignore[arg-type]
    assert str(error.value).startswith(
        "A010 compile(text=…): `text` is bytes, and compile accepts the text of the rules\n  fix: "
    )


def test_the_matrix_has_every_exported_callable_and_every_parameter() -> None:
    exported = {name for name in fairlead.__all__ if callable(getattr(fairlead, name))}
    assert exported == {name.split(".")[0] for name in MATRIX} - {"Result", "Receipt"} | VALUES
    for owner in ("Engine", "Run"):
        methods = {name for name, _ in inspect.getmembers(getattr(fairlead, owner), callable) if not name.startswith("_")}
        methods -= {"matched_elsewhere"}  # for the processes of a run (runtime/spread/)
        bare = {name for name in methods if not _parameters(getattr(getattr(fairlead, owner), name))}
        assert methods - bare == {name.split(".")[1] for name in MATRIX if name.startswith(f"{owner}.")}
    for name, (call, _, rows) in MATRIX.items():
        assert _parameters(call) - INNER.get(name, set()) == set(rows), name


def test_the_matrix_has_every_method_of_a_client() -> None:
    methods = {name for name, _ in inspect.getmembers(Client, callable) if not name.startswith("_")}
    assert {name for name in methods if _parameters(getattr(Client, name)) - {"more", "wait"}} == set(CLIENT)


def _parameters(call: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(call).parameters) - {"self"}


def test_a_wrong_argument_of_a_client_is_a_coded_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def each_in_turn() -> None:
        async with fairlead.connect("memory:") as client:
            await client.declare(TYPES)
            for name, (given, parameters) in CLIENT.items():
                for parameter, right in parameters.items():
                    for value in wrong(right):
                        with pytest.raises(FairleadError) as error:
                            await _called(client, name, {**given, parameter: value})
                        assert error.value.fix, (name, parameter, value)

    asyncio.run(each_in_turn())


async def _called(client: Client, name: str, arguments: dict[str, Any]) -> None:
    if name == "subscribe":
        async with client.subscribe(**arguments):
            pass
    elif name == "publish":
        await client.publish(*arguments.values())
    else:
        await getattr(client, name)(**arguments)


def test_replicas_of_the_environment_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_REPLICAS", "three")
    with pytest.raises(fairlead.UsageError, match="A247 environment variable FAIRLEAD_REPLICAS: replicas is three"):
        fairlead.connect("memory:")
