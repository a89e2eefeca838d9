"""`help()` says something about everything public, in plain English."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import fairlead
from fairlead.runtime.live.client import Client
from fairlead.runtime.live.subscriber.subscription import LiveSubscription

CLASSES = [getattr(fairlead, name) for name in fairlead.__all__ if isinstance(getattr(fairlead, name), type)]
PHRASES = re.compile(
    r"cannot be|goes on|go on\b|is told|unless said|nobody|whoever|who has|anew|begins? behind|put down|not to be had"
)


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that the class itself defines."""
    for name, each in vars(owner).items():
        if not name.startswith("_") and (inspect.isfunction(each) or isinstance(each, property | classmethod | staticmethod)):
            yield f"{owner.__name__}.{name}", each


def public() -> Iterator[tuple[str, Any]]:
    for name in fairlead.__all__:
        yield name, getattr(fairlead, name)
    for owner in (*CLASSES, Client, LiveSubscription):
        yield from members(owner)


PUBLIC = dict(public())


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_is_documented_in_plain_english(name: str) -> None:
    each = PUBLIC[name]
    text = inspect.getdoc(each.fget if isinstance(each, property) else each)
    assert text, f"{name} has no docstring"
    assert not text.startswith((f"{name}(", "Enum where")), f"the docstring of {name} is that of its kind"
    assert text[0].isupper() or text[0] == "`"
    assert PHRASES.findall(text) == []
