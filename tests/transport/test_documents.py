"""Documents of users, whatever is in them: a value, or Malformed with its place."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.transport.files.documents import DEPTH_MAX, Malformed, json_value, toml_value, yaml_value

READERS: dict[str, Callable[[str], Any]] = {"json": json_value, "yaml": yaml_value, "toml": toml_value}
DEEP = {
    "json": ["[" * 100_000, "[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900],
    "yaml": ["[" * 10_000, "[" * 900 + "]" * 900, "{a: " * 900 + "1" + "}" * 900, "- " * 900 + "1"],
    "toml": ["a = " + "[" * 10_000, "a = " + "[" * 900 + "]" * 900, ".".join(["a"] * 900) + " = 1"],
}


@pytest.mark.sampled
@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in DEEP.items() for text in texts], ids=range(10))
def test_what_is_nested_too_deeply(kind: str, text: str) -> None:
    with pytest.raises(Malformed, match="nested deeper than 200 levels"):
        READERS[kind](text)


@pytest.mark.parametrize("kind", READERS)
def test_what_is_as_deep_as_may_be(kind: str) -> None:
    text = "[" * (DEPTH_MAX - 1) + "]" * (DEPTH_MAX - 1)
    value = READERS[kind](f"a = {text}" if kind == "toml" else text)
    assert json.dumps(value)


@pytest.mark.parametrize("kind", READERS)
def test_numbers_of_absurd_length(kind: str) -> None:
    number = "9" * 5_000
    with pytest.raises(Malformed, match="a number has more than 4,300 digits"):
        READERS[kind]({"json": number, "yaml": f"a: {number}", "toml": f"a = {number}"}[kind])


@pytest.mark.parametrize("text", ["at: 2026-02-30", "at: 2026-13-01", "at: 2026-01-01T25:00:00Z", "at: 0000-01-01"])
def test_dates_that_are_none_have_their_place(text: str) -> None:
    with pytest.raises(Malformed) as caught:
        yaml_value(f"tests:\n- {text}")
    assert (caught.value.line, caught.value.column) == (2, 7)
    assert "2026" in caught.value.problem or "0000" in caught.value.problem


def test_a_page_that_stands_for_a_billion_values() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(Malformed, match="more than 10,000,000 values"):
        yaml_value("\n".join(lines))
    assert yaml_value(lines[0] + "\nb: *a0")["b"] == [1] * 10


def test_a_circle() -> None:
    with pytest.raises(Malformed):
        yaml_value("a: &a [*a]")


@pytest.mark.sampled
@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("seed", range(40))
def test_any_text_has_a_value_or_is_malformed(kind: str, seed: int) -> None:
    chance = random.Random(seed)
    pieces = [
        *"[]{}:,-&*!|>%@`'\"#\n\t\\ =.",
        "a",
        "1",
        "2026-02-30",
        "1e999",
        "0x",
        "!!binary x",
        "<<",
        "null",
        "\x00",
        "\ud800",
    ]
    for _ in range(50):
        text = "".join(chance.choice(pieces) for _ in range(chance.randrange(1, 12)))
        try:
            READERS[kind](text)
        except Malformed:
            continue
