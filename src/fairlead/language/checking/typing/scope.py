"""The names that an expression may use in one branch, and what they stand for.

Takes: the branch's elements (and, for EMIT, those of the other branches, which are NULL here; for a clause that notes events,
one of them). Gives: slots and attributes for references. Never: types an operator or a function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

from fairlead.dataclass import dataclass
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault, Span, did_you_mean, listed
from fairlead.model.events.types import PATH, Attribute, DataType, EventType
from fairlead.model.expressions.expression import Field, Literal


@dataclass(frozen=True)
class AliasMember:
    """An alias: its type and its slots. An alias of another branch has no slots; it reads as NULL."""

    alias: str
    type: EventType
    slots: tuple[int, ...]
    count: int = 1
    run: bool = False
    """It holds any number of events, at one slot."""

    @property
    def present(self) -> bool:
        return bool(self.slots)


@dataclass(frozen=True)
class Scope:
    members: Mapping[str, AliasMember]
    hidden: Mapping[str, str] = field(default_factory=dict)
    """Aliases of noted events, which only the WHERE of their clause can see, each with the keyword of that clause."""
    elsewhere: frozenset[str] = frozenset()
    """Aliases of other branches."""
    whole: bool = False
    """A run is one thing here, of which only aggregates are values. Otherwise a condition is about each of its events."""

    steps: bool = False
    """prev() can be used: the condition is asked when an event is taken."""
    collects: bool = False
    """collect() can be used: the values are those of a derived event."""

    @cached_property
    def types(self) -> Mapping[int, EventType]:
        """By slot."""
        return {slot: each.type for each in self.members.values() for slot in each.slots}

    def one(self, member: AliasMember, span: Span, attribute: str) -> None:
        """Raises unless the name stands for one event here."""
        if member.run and self.whole:
            fix = f"write first({member.alias}.{attribute}), last({member.alias}.{attribute}) or an aggregate such as max"
            raise Fault("L095", span, f"'{member.alias}' is a run of any number of events", fix)

    @property
    def runs(self) -> list[int]:
        """The slots of runs."""
        return [slot for each in self.members.values() if each.run for slot in each.slots]

    def knows(self, reference: syntax.Reference) -> bool:
        """Whether the branch has what a reference names: its alias, or an element with that attribute."""
        return reference.head.text in self.members or self._is_bare(reference)

    def _is_bare(self, reference: syntax.Reference) -> bool:
        """Whether it begins with an attribute, not with an element."""
        head = reference.head.text
        known = head in self.members or head in self.hidden or (reference.attribute is not None and head in self.elsewhere)
        return not known and reference.index is None and bool(self._having(head))

    def value(self, reference: syntax.Reference) -> Field | Literal:
        """`alias.attribute`, `alias[i].attribute`, or `attribute` if only one element has it; each with a path."""
        if self._is_bare(reference) or (reference.attribute is None and reference.index is None):
            having = self._having(reference.head.text)
            if having:
                return self._bare(path_word(reference.head, *reference.names), having)
        member = self.member(reference.head, bare=reference.attribute is None and reference.index is None)
        slot = self.slot(reference)
        if reference.attribute is None:
            example = next((each.name for each in member.type.attributes), "attribute")
            problem = f"'{reference}' is an event, not a value"
            raise Fault("L035", reference.span, problem, f"name one of its attributes, such as {reference}.{example}")
        attribute = attribute_of(member.type, path_word(*reference.names), member.alias)
        self.one(member, reference.span, attribute.name)
        return null_of(attribute.type) if slot is None else Field(slot, attribute.name, attribute.type.kind)

    def slot(self, reference: syntax.Reference) -> int | None:
        """The slot of `alias` (its first instance) or `alias[i]`; None for an alias of another branch."""
        member = self.member(reference.head)
        index = 1
        if reference.index and member.run:
            problem = f"'{member.alias}' is a run of any number of events, without an index"
            raise Fault("L032", reference.index.span, problem, f"write first({member.alias}.x), or {member.alias}[3] in MATCH")
        if reference.index:
            index = check_index(reference.index, member)
        return member.slots[index - 1] if member.present else None

    def instances(self, reference: syntax.Reference) -> tuple[AliasMember, Attribute | None]:
        """What an aggregate ranges over: all instances of one alias, or one attribute of them."""
        if reference.index:
            problem = f"an aggregate covers all instances of '{reference.head.text}'"
            raise Fault("L046", reference.index.span, problem, "leave out the index")
        if self._is_bare(reference):
            having, path = self._having(reference.head.text), path_word(reference.head, *reference.names)
            replace(self, whole=False)._bare(path, having)
            return having[0], having[0].type.attribute(path.text)
        member = self.member(reference.head)
        return member, attribute_of(member.type, path_word(*reference.names)) if reference.attribute else None

    def member(self, word: syntax.Word, *, bare: bool = False) -> AliasMember:
        """The element of that name. `bare`: nothing follows the name, so it may be a text whose quotes are missing."""
        found = self.members.get(word.text)
        if found:
            return found
        if word.text in self.hidden:
            clause = self.hidden[word.text]
            problem = f"'{word.text}' is the absent event of a {clause}, and only usable in the WHERE of that clause"
            raise Fault("L034", word.span, problem, f"move the condition to a WHERE right after the {clause}")
        called = next((each.alias for each in self.members.values() if each.type.name == word.text), None)
        known = (*self.members, *(each.name for member in self.members.values() for each in member.type.attributes))
        quotes = f"; a text has quotes: '{word.text}'" if bare else ""
        meant = did_you_mean(word.text, known, f"known are {listed(self.members, 'and')}{quotes}")
        fix = (
            f"the element is called '{called}'" if called else self._indexed(word.text) or self._element_at(word.text) or meant
        )
        raise Fault("L030", word.span, f"there is no element or attribute '{word.text}' in the pattern", fix)

    def _indexed(self, name: str) -> str | None:
        """The fix for `q2` where q has several instances."""
        alias = name.rstrip("0123456789")
        member, index = self.members.get(alias), name[len(alias) :]
        return f"write {alias}[{index}]" if member and index and member.count > 1 else None

    def _element_at(self, name: str) -> str | None:
        """The fix for `lines[1]`, where lines is an attribute."""
        return f"write element_at({name}, 1) for its first element" if self._having(name) else None

    def _having(self, attribute: str) -> list[AliasMember]:
        having = [each for each in self.members.values() if each.type.attribute(attribute)]
        return [each for each in having if each.present] or having[:1]

    def _bare(self, word: syntax.Word, having: list[AliasMember]) -> Field | Literal:
        if len(having) > 1:
            named = listed(f"{each.alias}.{word.text}" for each in having)
            raise Fault("L031", word.span, f"'{word.text}' is ambiguous: several elements have it", f"write {named}")
        member = having[0]
        attribute = attribute_of(member.type, word)
        self.one(member, word.span, attribute.name)
        if not member.present:
            return null_of(attribute.type)
        return Field(member.slots[0], attribute.name, attribute.type.kind)


def path_word(*names: syntax.Word) -> syntax.Word:
    """`address.zip` as one name."""
    return syntax.Word(PATH.join(each.text for each in names), Span(names[0].span.start, names[-1].span.end))


def null_of(type_: DataType) -> Literal:
    """The NULL of an element that the branch does not have."""
    return Literal(None, type_.kind, type_ if type_.is_nested else None)


def attribute_of(type_: EventType, word: syntax.Word, alias: str | None = None) -> Attribute:
    """The attribute of that name, or the field at that path. `alias`: the element that has it, for the fix."""
    found = type_.attribute(word.text)
    if found:
        return found
    head, *fields = word.text.split(PATH)
    attribute = type_.attribute(head)
    if attribute is not None:
        of = f"{alias}.{head}" if alias else head
        field_at(of, attribute.type, fields, word.span)
    names = [each.name for each in type_.attributes]
    sort = "union" if type_.is_union else "event type"
    time = f"; its event time is time({alias})" if alias and type_.implicit_time else ""
    fix = did_you_mean(head, names, f"it has {listed(names, 'and') or 'no attributes'}{time}")
    raise Fault("L012", word.span, f"{sort} '{type_.name}' has no attribute '{head}'", fix)


def field_at(of: str, type_: DataType, fields: Sequence[str], span: Span) -> tuple[DataType, tuple[int, ...]]:
    """The type of a field of a STRUCT, of a field of that, and so on, and their numbers. `of`: the value, as in the text."""
    numbers = []
    for at, name in enumerate(fields):
        if type_.element is not None:
            path = PATH.join(["", *fields[at:]])
            raise Fault("L012", span, f"'{of}' is an ARRAY, whose elements have the fields", f"write element_at({of}, 1){path}")
        if name not in type_.index:
            known = [each.name for each in type_.fields]
            sort = "STRUCT" if known else str(type_)
            fix = did_you_mean(name, known, f"it has {listed(known, 'and')}" if known else "remove what follows it")
            raise Fault("L012", span, f"'{of}' ({sort}) has no field '{name}'", fix)
        numbers.append(type_.index[name])
        of, type_ = f"{of}.{name}", type_.fields[numbers[-1]].type
    return type_, tuple(numbers)


def check_index(index: syntax.Whole, member: AliasMember) -> int:
    if index.value < 1:
        raise Fault("L032", index.span, "instances count from 1", f"write {member.alias}[1]")
    if index.value > member.count:
        problem = f"'{member.alias}' has {member.count} instance{'s' if member.count > 1 else ''}"
        raise Fault("L032", index.span, problem, f"declare {member.alias}[{index.value}] in MATCH, or use a smaller index")
    return index.value
