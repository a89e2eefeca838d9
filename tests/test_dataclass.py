"""Our dataclasses behave as those of the standard library do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

from fairlead.dataclass import dataclass

BOTH = pytest.mark.parametrize("make", [dataclass, dataclasses.dataclass], ids=["ours", "standard"])


def classes(make: Callable[..., Any]) -> tuple[Any, Any, Any]:
    @make(frozen=True)
    class Base:
        count: ClassVar[int] = 7
        name: str
        size: int = 1
        notes: list[int] = field(default_factory=list, compare=False)
        doubled: int = field(init=False, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "doubled", 2 * self.size)

    @make(frozen=True)
    class Wider(Base):
        size: int = 3
        unit: str = "m"

    @make(slots=True, unsafe_hash=True)
    class Node:
        value: int
        text: str = ""

    return Base, Wider, Node


@BOTH
def test_values_are_given_by_place_or_name_and_have_defaults(make: Callable[..., Any]) -> None:
    base, wider, node = classes(make)
    assert repr(base("a", size=2)).endswith("Base(name='a', size=2, notes=[])")
    assert repr(wider("a")).endswith("Wider(name='a', size=3, notes=[], unit='m')")
    assert (base("a", 4).doubled, base.size, base.count, node(1).text) == (8, 1, 7, "")
    assert base("a").notes is not base("a").notes
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        base()
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        base("a", other=1)


@BOTH
def test_equal_are_instances_of_one_class_with_equal_values(make: Callable[..., Any]) -> None:
    base, wider, node = classes(make)
    assert base("a", 3) == base("a", 3, notes=[1])
    assert base("a", 3) != wider("a", 3)
    assert base("a") != base("b")
    assert len({base("a"), base("a"), base("b")}) == 2
    assert len({node(1), node(1), node(2)}) == 2
    assert base("a") != ("a", 1, 2)


@BOTH
def test_the_frozen_cannot_be_changed(make: Callable[..., Any]) -> None:
    base, wider, node = classes(make)
    for made in (base("a"), wider("a")):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
            made.name = "b"
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
            del made.name
    changed = node(1)
    changed.value = 2
    assert changed == node(2)
    with pytest.raises(AttributeError):
        changed.other = 1


@BOTH
def test_the_standard_functions_know_them(make: Callable[..., Any]) -> None:
    base, wider, node = classes(make)
    assert dataclasses.is_dataclass(base)
    assert [each.name for each in dataclasses.fields(wider)] == ["name", "size", "notes", "doubled", "unit"]
    assert dataclasses.replace(wider("a"), unit="km") == wider("a", unit="km")
    assert dataclasses.replace(node(1), text="b") == node(1, "b")
    assert dataclasses.asdict(base("a")) == {"name": "a", "size": 1, "notes": [], "doubled": 2}
    match wider("a"):
        case wider(name, 3, _, unit):
            assert (name, unit) == ("a", "m")
        case _:
            pytest.fail("it does not match by place")


@BOTH
def test_a_standard_dataclass_may_extend_one(make: Callable[..., Any]) -> None:
    @dataclasses.dataclass(frozen=True)
    class Extended(classes(make)[0]):  # type: ignore[misc]
        more: int = 0

    assert [each.name for each in dataclasses.fields(Extended)] == ["name", "size", "notes", "doubled", "more"]
    assert Extended("a", more=1).more == 1


@BOTH
def test_what_is_written_in_the_class_stays(make: Callable[..., Any]) -> None:
    @make
    class Own:
        value: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    assert repr(Own(1)) == "own"
    assert Own(1) == Own(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Own(1))
