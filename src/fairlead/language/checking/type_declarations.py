"""TYPE and EVENT UNION declarations to a Catalogue.

Takes: declarations in the order of the text, and the names that subscriptions emit (a declared type that is emitted is
derived). Gives: the catalogue of declared types. Never: adds a type that only EMIT defines (emission.py does).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span, did_you_mean, listed
from fairlead.model.events.types import HEARTBEAT, NESTED, Attribute, Catalogue, DataType, EventType, Kind
from fairlead.model.limits import LIMITS

KINDS: Mapping[str, Kind] = {kind.value: kind for kind in Kind if kind is not Kind.INTERVAL and kind not in NESTED} | {
    "INTEGER": Kind.INT,
    "LONG": Kind.BIGINT,
}
NARROW: Mapping[str, Kind] = dict.fromkeys(("SMALLINT", "TINYINT"), Kind.INT) | dict.fromkeys(("FLOAT", "REAL"), Kind.DOUBLE)
"""Types of columns whose values a wider one keeps. Not for `cast`, which would have to round."""
ELSEWHERE: Mapping[str, str] = (
    dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "STR", "UUID"), "STRING")
    | dict.fromkeys(("FLOAT", "REAL", "FLOAT64"), "DOUBLE")
    | dict.fromkeys(("SMALLINT", "TINYINT", "INT32", "SHORT"), "INT")
    | dict.fromkeys(("INT64",), "BIGINT")
    | dict.fromkeys(("DATETIME", "TIMESTAMPTZ"), "TIMESTAMP")
    | dict.fromkeys(("BYTES", "BLOB", "BYTEA"), "BINARY")
    | dict.fromkeys(("MAP", "JSON", "OBJECT", "RECORD", "ROW"), "STRUCT<…>, or STRING for a text")
    | {"BOOL": "BOOLEAN", "NUMERIC": "DECIMAL", "NUMBER": "DOUBLE or DECIMAL", "LIST": "ARRAY<…>"}
)
"""What types of other languages are called here."""
EXAMPLES: Mapping[str, str] = {"ARRAY": "ARRAY<STRING>", "STRUCT": "STRUCT<street: STRING, zip: INT>"}
"""Types that are made of others."""
Declaration = syntax.TypeDeclaration | syntax.UnionDeclaration | syntax.TableDeclaration
PRECISION_MAX = 38
"""Spark's and Arrow's 128-bit decimals."""


def catalogue_of(declarations: Iterable[Declaration], emitted: Collection[str]) -> Catalogue:
    ordered = list(declarations)
    _refuse_repeats(each.name for each in ordered)
    types: dict[str, EventType] = {}
    for each in ordered:
        if isinstance(each, syntax.TypeDeclaration):
            types[each.name.text] = _declared(each, types, ordered, emitted)
    _refuse_tables(ordered)
    for each in ordered:
        if isinstance(each, syntax.UnionDeclaration):
            types[each.name.text] = _union(each, types, emitted)
    for each in ordered:
        if isinstance(each, syntax.TableDeclaration):
            types[each.name.text] = _table(each, types, emitted)
    return Catalogue(tuple(types[each.name.text] for each in ordered))


def with_type(catalogue: Catalogue, added: EventType) -> Catalogue:
    """The catalogue with a type added or replaced; a union is timed if all its members are."""
    before = catalogue.get(added.name)
    if before is None:
        return catalogue.extended(added)  # a union has only members that are declared
    if before == added:
        return catalogue
    types = {each.name: each for each in catalogue} | {added.name: added}
    for name, each in types.items():
        if each.is_union:
            types[name] = replace(each, implicit_time=all(types[member].timed for member in each.members))
    return Catalogue(tuple(types.values()))


def check_attribute_names(names: Iterable[syntax.Word]) -> None:
    seen: set[str] = set()
    for word in names:
        if word.text == "type" or word.text.startswith("_"):
            problem = f"'{word.text}' is reserved: records use that name"
            raise Fault("L014", word.span, problem, f"call it '{word.text.lstrip('_') or 'value'}_'")
        if word.text in seen:
            raise Fault("L013", word.span, f"attribute '{word.text}' is named twice", "give it another name")
        seen.add(word.text)


def unknown_type(word: syntax.Word, known: Iterable[str]) -> Fault:
    fix = did_you_mean(word.text, known, f"declare it: TYPE {word.text} (…)")
    return Fault("L010", word.span, f"there is no event type '{word.text}'", fix)


def _refuse_repeats(names: Iterable[syntax.Word]) -> None:
    seen: set[str] = set()
    for word in names:
        if word.text == HEARTBEAT.name:
            raise Fault("L014", word.span, "Heartbeat is built in", "give the type another name")
        if word.text in seen:
            raise Fault("L013", word.span, f"type '{word.text}' is declared twice", "remove one, or give it another name")
        seen.add(word.text)


def _declared(
    node: syntax.TypeDeclaration,
    known: Mapping[str, EventType],
    declarations: Iterable[Declaration],
    emitted: Collection[str],
) -> EventType:
    above = _supertype(node.supertype, known, declarations, emitted) if node.supertype else None
    inherited = above.attributes if above else ()
    check_attribute_names(column.name for column in node.columns)
    for column in node.columns:
        if above and above.attribute(column.name.text):
            problem = f"attribute '{column.name.text}' is already inherited from '{above.name}'"
            raise Fault("L013", column.name.span, problem, "remove it, or give it another name")
    attributes = inherited + tuple(
        Attribute(each.name.text, data_type(each.type, NARROW, each.name.text)) for each in node.columns
    )
    time = _time(node.time, attributes, above) if node.time else (above.time_attribute if above else None)
    name = node.name.text
    return EventType(name, attributes, above.name if above else None, time, derived=name in emitted)


def _supertype(
    word: syntax.Word,
    known: Mapping[str, EventType],
    declarations: Iterable[Declaration],
    emitted: Collection[str],
) -> EventType:
    found = known.get(word.text)
    if found:
        return found
    declared = {each.name.text: each for each in declarations}
    other = declared.get(word.text)
    if isinstance(other, syntax.UnionDeclaration | syntax.TableDeclaration) or word.text == HEARTBEAT.name:
        raise Fault("L015", word.span, f"'{word.text}' is not a TYPE that can be extended", "extend a TYPE")
    if other:
        raise Fault("L015", word.span, f"'{word.text}' is declared further down", "declare a supertype before its subtypes")
    if word.text in emitted:
        raise Fault("L015", word.span, f"'{word.text}' is only defined by EMIT", f"declare TYPE {word.text} (…) first")
    raise unknown_type(word, known)


def data_type(node: syntax.DataType, further: Mapping[str, Kind] = MappingProxyType({}), of: str | None = None) -> DataType:
    """The data type of a name: one of KINDS, or of `further` ones. `of`: what it is the type of."""
    if node.element is not None or node.fields is not None:
        return _nested_type(node, further)
    kind = KINDS.get(node.name.upper) or further.get(node.name.upper)
    if kind is None:
        raise Fault("L011", node.name.span, *_no_data_type(node.name, of))
    if not node.parameters:
        return DataType(kind)
    first = node.parameters[0]
    if kind is not Kind.DECIMAL or len(node.parameters) > 2:
        raise Fault(
            "L011", first.span, f"{kind} does not accept these numbers", "only DECIMAL(precision, scale) accepts numbers"
        )
    precision, scale = first.value, node.parameters[1].value if len(node.parameters) > 1 else 0
    if not (1 <= precision <= PRECISION_MAX and scale <= precision):
        problem = f"DECIMAL({precision},{scale}) does not exist"
        raise Fault("L011", first.span, problem, f"precision is 1 to {PRECISION_MAX}, scale 0 to the precision")
    return DataType(kind, precision, scale)


def _no_data_type(word: syntax.Word, of: str | None) -> tuple[str, str]:
    """The problem and the fix for a word that is no data type."""
    if word.upper in EXAMPLES:
        return f"{word.upper} needs the types that it is made of", f"write, for example, {EXAMPLES[word.upper]}"
    elsewhere = ELSEWHERE.get(word.upper)
    known = (*KINDS, *EXAMPLES)
    fix = f"use {elsewhere}" if elsewhere else str(did_you_mean(word.text, known, f"use {listed(known)}"))
    if of is not None and (of.upper() in KINDS or of.upper() in ELSEWHERE):
        fix = f"write the name first: {word.text} {of}"
    return f"there is no data type '{word.text}'", fix


def _nested_type(node: syntax.DataType, further: Mapping[str, Kind]) -> DataType:
    kind = node.name.upper
    if kind not in EXAMPLES:
        scalar = kind in KINDS or kind in further
        problem = f"{node.name.text} is not made of other types" if scalar else f"there is no data type '{node.name.text}<…>'"
        fix = "remove what is in <>" if scalar else f"use {listed(EXAMPLES.values())}"
        raise Fault("L011", node.name.span, problem, fix)
    if (kind == Kind.ARRAY) != (node.element is not None):
        raise Fault("L011", node.span, f"{kind} is not written like this", f"write, for example, {EXAMPLES[kind]}")
    if node.element is not None:
        made = DataType(Kind.ARRAY, element=data_type(node.element, further))
    else:
        made = DataType(Kind.STRUCT, fields=tuple(_fields(node.fields or (), further)))
    check_size(made, node.span)
    return made


def _fields(columns: Iterable[syntax.Column], further: Mapping[str, Kind]) -> Iterator[Attribute]:
    seen: set[str] = set()
    for each in columns:
        if each.name.text in seen:
            raise Fault("L013", each.name.span, f"field '{each.name.text}' is named twice", "give it another name")
        seen.add(each.name.text)
        yield Attribute(each.name.text, data_type(each.type, further, each.name.text))


def check_size(made: DataType, span: Span) -> None:
    """Of a nested type."""
    if made.depth > LIMITS.data_type_depth_max:
        problem = f"more than {LIMITS.data_type_depth_max} data types within one another"
        raise Fault("L127", span, problem, "declare the inner part as attributes of its own, or as a STRING")
    if len(made.scalars) > LIMITS.fields_max:
        problem = f"a data type with more than {LIMITS.fields_max:,} fields"
        raise Fault("L127", span, problem, "leave out the fields that no rule needs")


def _time(word: syntax.Word, attributes: tuple[Attribute, ...], above: EventType | None) -> str:
    check_time(word, attributes)
    if above and above.time_attribute and above.time_attribute != word.text:
        problem = f"the event time is inherited from '{above.name}': {above.time_attribute}"
        raise Fault("L016", word.span, problem, "leave out TIME")
    return word.text


def check_time(word: syntax.Word, attributes: tuple[Attribute, ...]) -> None:
    """TIME names one of the attributes, of type TIMESTAMP."""
    found = next((each for each in attributes if each.name == word.text), None)
    stamps = [each.name for each in attributes if each.type.kind is Kind.TIMESTAMP]
    if found is None:
        fix = did_you_mean(word.text, stamps, f"name {listed(stamps)}" if stamps else "add a TIMESTAMP attribute")
        raise Fault("L016", word.span, f"TIME names '{word.text}', which is not an attribute of the type", fix)
    if found.type.kind is not Kind.TIMESTAMP:
        fix = f"name {listed(stamps)}" if stamps else f"make '{word.text}' a TIMESTAMP"
        raise Fault("L016", word.span, f"TIME needs a TIMESTAMP, '{word.text}' is {found.type}", fix)


def _union(node: syntax.UnionDeclaration, known: Mapping[str, EventType], emitted: Collection[str]) -> EventType:
    members: dict[str, EventType] = {}
    for word in node.members:
        for each in _members(word, known, emitted):
            if each.name in members:
                raise Fault("L017", word.span, f"'{each.name}' is in the union twice", "name each type once")
            members[each.name] = each
    first, *others = members.values()
    shared = tuple(each for each in first.attributes if all(other.attribute(each.name) == each for other in others))
    timed = all(each.timed for each in members.values())
    return EventType(node.name.text, shared, members=tuple(members), implicit_time=timed)


def _refuse_tables(declarations: Iterable[Declaration]) -> None:
    """As members of a union, or of a table."""
    tables = {each.name.text: each for each in declarations if isinstance(each, syntax.TableDeclaration)}
    for each in declarations if tables else ():
        words = each.members if isinstance(each, syntax.UnionDeclaration) else ()
        for word in (each.source,) if isinstance(each, syntax.TableDeclaration) else words:
            if word.text in tables:
                raise Fault("L124", word.span, f"'{word.text}' is a table", f"name {tables[word.text].source.text}")


def check_single(type_: DataType, span: Span, named: str) -> None:
    """Raises for an ARRAY or STRUCT where values are compared."""
    if type_.is_nested:
        raise Fault("L126", span, f"{named} is {type_}, and only single values are compared", part_of_nested(type_))


def part_of_nested(type_: DataType) -> str:
    if type_.kind is Kind.STRUCT:
        return f"name one of its fields, such as .{type_.fields[0].name}"
    return "compare size(…), element_at(…, 1) or array_contains(…, …)"


def _table(node: syntax.TableDeclaration, known: Mapping[str, EventType], emitted: Collection[str]) -> EventType:
    """A table accepts what its type accepts, as a union does; its events have the same attributes."""
    members = _members(node.source, known, emitted)
    source = known[node.source.text]
    names = [each.name for each in source.attributes]
    for at, word in enumerate(node.key):
        if source.attribute(word.text) is None:
            fix = did_you_mean(word.text, names, f"name {listed(names)}")
            raise Fault("L123", word.span, f"type '{source.name}' has no attribute '{word.text}' for the key", fix)
        check_single(source.type_of(word.text), word.span, f"'{word.text}'")
        if word.text in [each.text for each in node.key[:at]]:
            raise Fault("L123", word.span, f"the key has '{word.text}' twice", "name it once")
    named = tuple(each.name for each in members)
    key = tuple(word.text for word in node.key)
    return EventType(node.name.text, source.attributes, members=named, implicit_time=source.timed, table=key)


def _members(word: syntax.Word, known: Mapping[str, EventType], emitted: Collection[str]) -> list[EventType]:
    """A type itself; of a union (declared before), its members."""
    found = known.get(word.text)
    if found:
        return [known[name] for name in found.members] if found.is_union else [found]
    if word.text == HEARTBEAT.name:
        raise Fault("L017", word.span, "Heartbeat is not allowed in a union", "remove it: every input has heartbeats")
    if word.text in emitted:
        raise Fault("L017", word.span, f"'{word.text}' is only defined by EMIT", f"declare TYPE {word.text} (…) as well")
    raise unknown_type(word, known)
