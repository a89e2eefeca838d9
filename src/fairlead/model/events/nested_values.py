"""Values of ARRAY and STRUCT: their canonical form, and what is inside.

    ARRAY   a tuple of canonical values, NULL among them
    STRUCT  a tuple of the canonical values of its fields, in their order

So a nested value is immutable, and compared and hashed by content.

Takes: raw lists and mappings, or canonical tuples. Gives: the other form. Never: converts a value that is not nested: functions
for those are passed in (values.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from fairlead.model.events.types import DataType, Kind


def nested(value: Any, wanted: DataType, canonical: Callable[[Any, DataType], Any]) -> tuple[Any, ...]:
    """The canonical form of a raw list or mapping. Raises ValueError with the place inside and the problem in words."""
    if wanted.kind is Kind.ARRAY:
        assert wanted.element is not None
        if getattr(value, "ndim", None) == 1:  # NumPy's
            value = list(value)
        if not isinstance(value, list | tuple):
            raise ValueError(f"expected {_brief(wanted)}, got {type(value).__name__}")
        return tuple(_inside(f"element {at}", each, wanted.element, canonical) for at, each in enumerate(value, start=1))
    if not isinstance(value, Mapping):
        raise ValueError(f"expected {_brief(wanted)}, got {type(value).__name__}")
    for name in value:
        if name not in wanted.index:
            raise ValueError(_unknown(name, wanted))
    return tuple(_inside(f"field '{each.name}'", value.get(each.name), each.type, canonical) for each in wanted.fields)


def _inside(place: str, value: Any, wanted: DataType, canonical: Callable[[Any, DataType], Any]) -> Any:
    try:
        return canonical(value, wanted)
    except ValueError as error:
        said = str(error)
        separator = ", " if said.startswith(("element ", "field '")) else ": "
        raise ValueError(f"{place}{separator}{said}") from None


def _unknown(name: object, wanted: DataType) -> str:
    meant = get_close_matches(name[:80], wanted.index, n=1) if isinstance(name, str) else []
    shown = repr(name)[:80]
    fields = ", ".join([*wanted.index][:10]) + (", …" if len(wanted.index) > 10 else "")
    return f"STRUCT has no field {shown}" + (f": did you mean '{meant[0]}'?" if meant else f": it has {fields}")


def _brief(wanted: DataType) -> str:
    text = str(wanted)
    return text if len(text) <= 80 else f"{text[:77]}..."


def plain(value: Any, wanted: DataType, convert: Callable[[Any, DataType], Any]) -> Any:
    """The canonical value as lists and dicts, with `convert` for those that are not nested."""
    if value is None:
        return None
    if wanted.element is not None:
        return [plain(each, wanted.element, convert) for each in value]
    if wanted.kind is Kind.STRUCT:
        return {each.name: plain(inner, each.type, convert) for each, inner in zip(wanted.fields, value, strict=True)}
    return convert(value, wanted)


def scalars_in(value: Any, wanted: DataType) -> Iterator[tuple[Any, DataType]]:
    """Every value in it that is not nested and not NULL, with its type, in order."""
    if value is None:
        return
    if wanted.element is not None:
        for each in value:
            yield from scalars_in(each, wanted.element)
    elif wanted.kind is Kind.STRUCT:
        for each, inner in zip(wanted.fields, value, strict=True):
            yield from scalars_in(inner, each.type)
    else:
        yield value, wanted


def floats_in(value: Any, wanted: DataType, convert: Callable[[Any], Any]) -> Any:
    """A raw value with `convert` applied to what is inside and not of a DECIMAL."""
    if isinstance(value, list):
        element = wanted.element or wanted
        return [floats_in(each, element, convert) for each in value]
    if isinstance(value, dict):
        return {
            name: floats_in(each, wanted.fields[wanted.index[name]].type if name in wanted.index else wanted, convert)
            for name, each in value.items()
        }
    return value if wanted.kind is Kind.DECIMAL else convert(value)


def inner(row: Sequence[Any], place: tuple[int, ...]) -> Any:
    """The value at a path (EventType.place): NULL where a STRUCT on the way is."""
    value: Any = row
    for at in place:
        if value is None:
            return None
        value = value[at]
    return value
