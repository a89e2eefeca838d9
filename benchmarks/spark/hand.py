"""Q1 to Q3 as somebody writes them for applyInPandas or a stateful processor: plain Python, one key at a time, in order.

They have Fairlead's meaning, so they also check its number of relations. An event is (type, microseconds, price, volume); a
state is two lists, of A and of B, that the step changes; a step gives the members of the relation that the event
completes, or None.

Takes: a pandas frame of one key. Gives: a pandas frame with key and time, price and volume of each member.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

WINDOW_US = 10_000_000
Event = tuple[str, int, float, int]
State = tuple[list[Event], list[Event]]
Step = Callable[[State, Event], tuple[Event, ...] | None]

MEMBERS = {"Q1": ("a", "b"), "Q2": ("a", "b", "c"), "Q3": ("a", "b1", "b2", "b3")}


def schema(query: str) -> str:
    members = ", ".join(f"{each}_at timestamp, {each}_price double, {each}_volume int" for each in MEMBERS[query])
    return f"key int, {members}"


def q1(state: State, event: Event) -> tuple[Event, ...] | None:
    """The first of the other queue that fits; both leave."""
    a, b = state
    if event[0] == "A":
        for index, other in enumerate(b):
            if event[2] < other[2]:
                del b[index]
                return event, other
        a.append(event)
    elif event[0] == "B":
        for index, other in enumerate(a):
            if other[2] < event[2]:
                del a[index]
                return other, event
        b.append(event)
    return None


def _forget(queue: list[Event], before: int) -> None:
    gone = 0
    while gone < len(queue) and queue[gone][1] < before:
        gone += 1
    del queue[:gone]


def q2(state: State, event: Event) -> tuple[Event, ...] | None:
    """The oldest A, the first B after it; what lies before the B that was used can match no more."""
    a, b = state
    _forget(a, event[1] - WINDOW_US)
    if event[0] == "A":
        a.append(event)
    elif event[0] == "B":
        if a:
            b.append(event)
    elif a:
        _forget(b, a[0][1])
        if b:
            return a.pop(0), b.pop(0), event
    else:
        b.clear()
    return None


def q3(state: State, event: Event) -> tuple[Event, ...] | None:
    """The oldest A, then the first rising pair of B below this one; all B go."""
    a, b = state
    if event[0] == "C":
        return None
    _forget(a, event[1] - WINDOW_US)
    if event[0] == "A":
        a.append(event)
        return None
    if not a:
        b.clear()
        return None
    _forget(b, a[0][1])
    for one, first in enumerate(b):
        for second in b[one + 1 :]:
            if first[2] < second[2] < event[2]:
                b.clear()
                return a.pop(0), first, second, event
    b.append(event)
    return None


STEPS: dict[str, Step] = {"Q1": q1, "Q2": q2, "Q3": q3}


def match(query: str, key: int, frame: pd.DataFrame, state: State) -> pd.DataFrame:
    """The relations of one key. Rows of a key come unordered out of a shuffle, so they are sorted first."""
    frame = frame.sort_values("at")
    at = frame["at"].to_numpy().astype("datetime64[us]").astype("int64").tolist()
    step, found = STEPS[query], []
    for event in zip(frame["type"].tolist(), at, frame["price"].tolist(), frame["volume"].tolist(), strict=True):
        relation = step(state, event)
        if relation is not None:
            found.append(relation)
    columns: dict[str, Any] = {"key": np.full(len(found), key, np.int32)}
    for index, name in enumerate(MEMBERS[query]):
        members = [relation[index] for relation in found]
        columns[f"{name}_at"] = np.array([each[1] for each in members], np.int64).astype("datetime64[us]")
        columns[f"{name}_price"] = np.array([each[2] for each in members], np.float64)
        columns[f"{name}_volume"] = np.array([each[3] for each in members], np.int32)
    return pd.DataFrame(columns)
