"""However the inputs interleave: one order, and the same of it once the same was read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import InvariantError, StateError, UsageError
from fairlead.order.merging import Merging, ReleasedMessage

Message = tuple[int, str | None]
"""Stored time and item; None for a heartbeat. The sequence is the place in the input, times ten."""
Inputs = Mapping[str, Sequence[Message]]
Found = list[tuple[str, int, str]]
TIMES = st.integers(0, 4)  # few, so that many are equal, and none rises by itself
MESSAGES = st.lists(st.tuples(TIMES, st.sampled_from(("x", "y", None))), max_size=8)


def inputs(most: int, messages: st.SearchStrategy[list[Message]] = MESSAGES) -> st.SearchStrategy[Inputs]:
    return st.dictionaries(st.sampled_from(("a", "b", "c")), messages, min_size=1, max_size=most)


def in_one_order(given: Inputs) -> Found:
    """The definition: all messages by monotone time, name of the input, place in it."""
    placed = []
    for name, messages in given.items():
        times = accumulate((stored for stored, _ in messages), max)
        placed += [(time, name, 10 * at, item) for at, (time, (_, item)) in enumerate(zip(times, messages, strict=True))]
    return [(name, sequence, item) for _, name, sequence, item in sorted(placed, key=lambda each: each[:3]) if item]


def shown(released: Sequence[ReleasedMessage[str]]) -> Found:
    return [(each.input, each.sequence, each.item) for each in released]


def step(merging: Merging[str], given: Inputs, name: str, at: int) -> Found:
    stored, item = given[name][at]
    if item is None:
        return shown(merging.heartbeat(name, stored, 10 * at))
    return shown(merging.push(name, stored, 10 * at, item))


def read(merging: Merging[str], given: Inputs, arrival: Sequence[str]) -> Found:
    """The messages in an order of arrival, which names the input whose next one comes."""
    found: Found = []
    seen = dict.fromkeys(given, 0)
    for name in arrival:
        found += step(merging, given, name, seen[name])
        seen[name] += 1
    return found


def interleavings(left: Mapping[str, int]) -> Iterator[list[str]]:
    """Every order of arrival of so many messages of each input."""
    if not any(left.values()):
        yield []
    for name, count in left.items():
        if count:
            for rest in interleavings({**left, name: count - 1}):
                yield [name, *rest]


@given(inputs(3, st.lists(st.tuples(TIMES, st.sampled_from(("x", None))), max_size=2)))
def test_all_interleavings_of_small_inputs_release_the_same(given: Inputs) -> None:
    outcomes = set()
    for arrival in interleavings({name: len(messages) for name, messages in given.items()}):
        merging: Merging[str] = Merging(given)
        found = read(merging, given, arrival)
        outcomes.add((tuple(found), json.dumps(merging.dump()), merging.held, merging.waits_for()))
    assert len(outcomes) == 1


@given(inputs(3), st.data())
def test_whatever_the_arrival_a_part_of_the_one_order_is_released_and_in_the_end_all_of_it(
    given: Inputs, data: st.DataObject
) -> None:
    expected = in_one_order(given)
    arrival = data.draw(st.permutations([name for name, messages in given.items() for _ in messages]))
    merging: Merging[str] = Merging(data.draw(st.permutations(list(given))))
    found = read(merging, given, arrival)
    assert found == expected[: len(found)]
    assert merging.held == len(expected) - len(found)
    for name in data.draw(st.permutations(list(given))):
        found += shown(merging.end(name))
    assert found == expected
    assert (merging.held, merging.waits_for()) == (0, ())


@given(inputs(3), st.data())
def test_nothing_is_held_longer_than_it_must_be(given: Inputs, data: st.DataObject) -> None:
    """What is held could be overtaken: the inputs waited for may bring a message that belongs before it."""
    arrival = data.draw(st.permutations([name for name, messages in given.items() for _ in messages]))
    merging: Merging[str] = Merging(given)
    found = read(merging, given, arrival)
    if not merging.held:
        return
    for name in merging.waits_for():
        more = {**given, name: [*given[name], (-1, "first")]}
        order = in_one_order(more)
        assert order.index((name, 10 * len(given[name]), "first")) <= len(found)


@given(inputs(3), st.data())
def test_a_reader_goes_on_from_a_state_and_the_messages_behind_it(given: Inputs, data: st.DataObject) -> None:
    arrival = data.draw(st.permutations([name for name, messages in given.items() for _ in messages]))
    cut = data.draw(st.integers(0, len(arrival)))
    first: Merging[str] = Merging(given)
    found = read(first, given, arrival[:cut])
    state = json.dumps(first.dump())
    loaded: Merging[str] = Merging.load(json.loads(state))
    assert json.dumps(loaded.dump()) == state
    after = loaded.after()
    rest = [(name, at) for name, messages in given.items() for at in range(len(messages)) if 10 * at > _or(after[name], -1)]
    for name in data.draw(st.permutations([name for name, _ in rest])):
        at = next(each for each in rest if each[0] == name)
        rest.remove(at)
        found += step(loaded, given, *at)
    whole: Merging[str] = Merging(given)
    assert found == read(whole, given, arrival)
    assert json.dumps(loaded.dump()) == json.dumps(whole.dump())


def _or(value: int | None, other: int) -> int:
    return other if value is None else value


def test_a_heartbeat_moves_a_quiet_input_on() -> None:
    merging: Merging[str] = Merging(["news", "quotes"])
    assert merging.push("quotes", 5, 1, "q1") == []
    assert merging.waits_for() == ("news",)
    assert merging.heartbeat("news", 5, 1) == []  # at 5, news comes first: it could still bring something
    assert merging.heartbeat("news", 6, 2) == [ReleasedMessage("quotes", 5, 1, "q1")]
    assert merging.held == 0


def test_at_one_time_the_name_decides() -> None:
    merging: Merging[str] = Merging(["b", "a"])
    assert merging.push("b", 1, 1, "second") == []
    assert shown(merging.push("a", 1, 1, "first")) == [("a", 1, "first")]
    assert shown(merging.push("a", 2, 2, "third")) == [("b", 1, "second")]


def test_a_clock_that_was_set_back_moves_nothing_back() -> None:
    merging: Merging[str] = Merging(["a", "b"])
    merging.push("a", 9, 1, "a1")
    merging.push("a", 3, 2, "a2")
    assert shown(merging.heartbeat("b", 10, 1)) == [("a", 1, "a1"), ("a", 2, "a2")]


def test_a_state_knows_the_time_of_an_input_and_the_heartbeats_that_were_released() -> None:
    """A clock that is set back while nobody reads moves nothing back, and no heartbeat that is an item comes twice."""
    first: Merging[str] = Merging(["a", "b"])
    first.push("a", 9, 1, "a1")
    assert shown(first.heartbeat("b", 10, 1, "beat")) == [("a", 1, "a1")]
    assert shown(first.end("a")) == [("b", 1, "beat")]
    assert first.after() == {"a": 1, "b": 1}
    loaded: Merging[str] = Merging.load(first.dump())
    assert loaded.after() == {"a": 1, "b": 1}
    assert loaded.push("a", 3, 2, "a2") == [ReleasedMessage("a", 9, 2, "a2")]  # b is known to be at 10
    assert loaded.push("b", 3, 2, "b2") == []  # at 10, as before: a could still be before it
    assert loaded.push("a", 11, 3, "a3") == [ReleasedMessage("b", 10, 2, "b2")]


def test_one_input_is_passed_through() -> None:
    merging: Merging[str] = Merging(["a"])
    assert shown(merging.push("a", 7, 3, "x")) == [("a", 3, "x")]
    assert merging.after() == {"a": 3}


def test_inputs_are_named_once() -> None:
    for names in ([], ["a", "a"]):
        with pytest.raises(UsageError, match="A230"):
            Merging[str](names)


def test_what_no_log_gives_is_a_bug() -> None:
    merging: Merging[str] = Merging(["a", "b"])
    merging.push("a", 1, 5, "x")
    with pytest.raises(InvariantError):
        merging.push("a", 2, 5, "x")
    merging.end("b")
    with pytest.raises(InvariantError):
        merging.push("b", 2, 5, "x")


def test_a_state_of_another_version_is_refused() -> None:
    for state in ({}, {"version": 2, "inputs": {}}, {"version": 1}):
        with pytest.raises(StateError, match="S123"):
            Merging.load(state)
