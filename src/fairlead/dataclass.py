"""Dataclasses that are cheap to define, for a command that takes less than half a second.

`dataclasses.dataclass` compiles up to six methods for every class, used or not: close to a millisecond for a frozen one. Here
comparing, hashing and printing are shared functions over the names of the fields, `__init__` is compiled for the first
instance, and the attributes that `dataclasses.replace` and `fields` read are created on first access.

Measured against `dataclasses.dataclass` (CPU seconds, median of 8 to 10 alternating starts): `fairlead run` of five events 0.45
instead of 0.50, `fairlead explain` 0.41 instead of 0.47, `fairlead.compile` in a new process 0.38 instead of 0.43, `fairlead
run` of a million events (Q1 of the benchmarks) 0.93 instead of 1.08. `fairlead --help` takes 0.085 either way.

Takes: a class written as a dataclass, with the `field` of the standard library. Gives: a class that behaves as
`dataclasses.dataclass` would make it. Never: `order`, `kw_only`, `InitVar`, or `frozen` with `slots`; use the standard library
for those.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

Fields = Mapping[str, "Field[Any]"]


def _dataclass(
    cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, slots: bool = False, unsafe_hash: bool = False
) -> Any:
    """`dataclasses.dataclass`, with these of its options."""
    if cls is None:
        return lambda cls: _made(cls, frozen, eq, slots, unsafe_hash)
    return _made(cls, frozen, eq, slots, unsafe_hash)


def _made(cls: Any, frozen: bool, eq: bool, slots: bool, unsafe_hash: bool) -> Any:
    own = {name: _field(cls, name) for name, kind in get_annotations(cls).items() if not kind.startswith("ClassVar")}
    fields: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        fields |= base.__dict__.get("__fairlead_fields__", {})
    fields |= own
    cls = _slotted(cls, own) if slots else _without_fields(cls, own)
    given = dict(cls.__dict__)
    cls.__fairlead_fields__ = fields
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        setattr(cls, name, _Standard(name, cls, own, frozen))
    cls.__match_args__ = tuple(name for name, each in fields.items() if each.init)  # type: ignore[misc]
    cls.__init__ = _first_init(cls, fields, frozen)
    if "__repr__" not in given:
        cls.__repr__ = _repr(tuple(name for name, each in fields.items() if each.repr))
    values = _values(tuple(name for name, each in fields.items() if each.compare))
    if eq and "__eq__" not in given:
        cls.__eq__ = _eq(values)
    if eq and given.get("__hash__") is None:
        cls.__hash__ = _hash(values) if frozen or unsafe_hash else None
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refusing(cls, frozenset(fields))
    return cls


def _field(cls: type, name: str) -> Field[Any]:
    default = cls.__dict__.get(name, MISSING)
    if isinstance(default, Field):
        return default
    made: Field[Any] = dataclasses.field(default=default)
    return made


def _without_fields(cls: type, own: Fields) -> type:
    """A default stays an attribute of the class."""
    for name, each in own.items():
        if each.default is not MISSING:
            setattr(cls, name, each.default)
        elif name in cls.__dict__:
            delattr(cls, name)
    return cls


def _slotted(cls: type, own: Fields) -> type:
    members = {
        name: value for name, value in cls.__dict__.items() if name not in own and name not in ("__dict__", "__weakref__")
    }
    return type(cls)(cls.__name__, cls.__bases__, members | {"__slots__": tuple(own), "__qualname__": cls.__qualname__})


class _Standard:
    """The standard library's attributes of a dataclass, copied on first access from a standard one with the same fields."""

    def __init__(self, name: str, cls: type, own: Fields, frozen: bool) -> None:
        self.name, self.cls, self.own, self.frozen = name, cls, own, frozen

    def __get__(self, instance: object, owner: type) -> Any:
        body = {"__annotations__": dict.fromkeys(self.own, "Any"), "__doc__": "given, so that none is made", **self.own}
        twin = type(self.cls.__name__, self.cls.__bases__, body)
        found = getattr(dataclasses.dataclass(init=False, repr=False, eq=False, frozen=self.frozen)(twin), self.name)
        setattr(self.cls, self.name, found)
        return found


def _first_init(cls: Any, fields: Fields, frozen: bool) -> Callable[..., None]:
    def __init__(self: object, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = made = _init(cls, fields, frozen)
        made(self, *args, **kwargs)

    return __init__


def _init(cls: type, fields: Fields, frozen: bool) -> Callable[..., None]:
    """The assignments, written out: the speed of this method decides how long it takes to create a million instances."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    parameters, lines = ["self"], []
    for at, (name, each) in enumerate(fields.items()):
        value = name
        if each.default_factory is not MISSING:
            names[f"_made{at}"] = each.default_factory
            value = f"_made{at}() if {name} is _missing else {name}" if each.init else f"_made{at}()"
            parameters += [f"{name}=_missing"] if each.init else []
        elif each.default is not MISSING:
            names[f"_default{at}"] = each.default
            value = name if each.init else f"_default{at}"
            parameters += [f"{name}=_default{at}"] if each.init else []
        elif each.init:
            parameters.append(name)
        else:
            continue
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), names)
    made: Callable[..., None] = names["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple([getattr(self, name) for name in names])


def _repr(names: tuple[str, ...]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], bool]:
    def __eq__(self: Any, other: Any) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


def _refusing(cls: Any, names: frozenset[str]) -> tuple[Callable[..., None], Callable[..., None]]:
    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass
