"""The declared types, which all clients of a log share: one text per type, in a table of the log.

Takes: declarations. Gives: the catalogue of all types, and plans of rules that omit their types. Never: replaces a declaration
with one that stored events do not fit (core/declarations.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from fairlead.errors import LanguageError, Place, UsageError
from fairlead.model.events.types import MAIN, Catalogue, EventType, Kind
from fairlead.model.plans.plan import Plan
from fairlead.runtime.live.core.declarations import (
    Declared,
    DeclaredNames,
    compile_names,
    compiled,
    compiled_types,
    declaration,
    declaration_text,
    dependents_of,
    difference,
    is_declaration,
    is_older,
    own_attributes,
    topic_text,
)
from fairlead.runtime.live.retention import put_keep
from fairlead.transport.log.entry_values import entry_value, unreadable
from fairlead.transport.log.file_log import of_first_edition
from fairlead.transport.log.names import TYPE_NAME, TYPES, require_storable, token
from fairlead.transport.log.protocol import Conflict, Log, TableEntry

TABLE = TYPES
DECLARED = {"name": str, "text": str, "version": int, "required": int, "derived": bool, "topic?": str}
Compiled = TypeVar("Compiled")
LONG = 4_000
"""Characters of a text from which compiling it takes more than some milliseconds."""


async def off_loop(compiling: Callable[[str], Compiled], text: str) -> Compiled:
    """What is compiled of a text: a long one in a thread, so that the event loop continues."""
    return compiling(text) if len(text) < LONG else await asyncio.to_thread(compiling, text)


class Registry:
    """`catalogue`: the types as they were declared when this client looked last."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._declared: dict[str, Declared] = {}
        self.catalogue = Catalogue()

    async def refresh(self) -> None:
        """Load the declarations of other clients."""
        found = {}
        for key in await self._log.keys(TABLE):
            entry = await self._log.get(TABLE, key)
            if entry is not None:
                each = _declared(entry, key)
                if not each.topic:
                    raise of_first_edition("OLD")
                found[each.name] = each
        self._declared = found
        self.catalogue = (await off_loop(compiled_types, topic_text(found, ()) + declaration_text(found))).catalogue

    async def is_behind(self, names: Iterable[str]) -> bool:
        """Whether another client has declared one of these types since, or changed it. Reads only the entries of these types,
        however many there are."""
        for name in filter(TYPE_NAME.fullmatch, names):
            each: EventType | None = self.catalogue.get(name)
            chain = [name]
            while each is not None and each.supertype:
                chain.append(each.supertype)
                each = self.catalogue.get(each.supertype)
            for mine in chain:
                entry, known = await self._log.get(TABLE, token(mine)), self._declared.get(mine)
                if entry is not None and (known is None or known.revision != entry.revision):
                    return True
        return False

    async def all_topics(self) -> tuple[str, ...]:
        """The topics of all declared types, also of those that another client has declared since; `main` if there are none."""
        if {*await self._log.keys(TABLE)} != {token(name) for name in self._declared}:
            await self.refresh()
        return self.catalogue.topics_of(each.name for each in self.catalogue) or (MAIN,)

    async def find(self, name: str) -> EventType | None:
        """A type by its name, declared here or by another client."""
        if name not in self.catalogue and await self.is_behind([name]):
            await self.refresh()
        return self.catalogue.get(name)

    def is_derived(self, name: str) -> bool:
        return name in self._declared and self._declared[name].derived

    def optional(self, name: str) -> frozenset[str]:
        """Attributes that were added to the type, or to a supertype, after events of it were published."""
        found: set[str] = set()
        each: EventType | None = self.catalogue[name]
        while each is not None and each.name in self._declared:
            added = own_attributes(each, self.catalogue)[self._declared[each.name].required :]
            found.update(attribute.name for attribute in added)
            each = self.catalogue[each.supertype] if each.supertype else None
        return frozenset(found)

    async def declare(self, text: str) -> list[str]:
        """Store the types of a text, and return their names. Raises LanguageError, UsageError; then nothing was stored."""
        rules = await off_loop(compile_names, text)
        if rules.subscriptions:
            raise UsageError(
                "A242",
                "declare accepts types only, and the text has subscriptions",
                "declare the types, and pass the subscriptions to subscribe",
            )
        while True:
            await self.refresh()
            plan = await self._compiled(text, rules, rules.declared, compiled_types)
            if await self._stored([plan.catalogue[name] for name in rules.declared], plan.catalogue, derived=False):
                for topic, keep in sorted(rules.kept.items()):
                    await put_keep(self._log, topic, keep)
                await self.refresh()
                return list(rules.declared)

    async def declared_by(self, text: str) -> tuple[list[EventType], list[str]]:
        """The types that a text declares, and the topics of which it says how long they are kept. Declares nothing. Raises
        LanguageError."""
        rules = await off_loop(compile_names, text)
        await self.refresh()
        plan = await self._compiled(text, rules, rules.declared, compiled_types)
        return [plan.catalogue[name] for name in rules.declared], sorted(rules.kept)

    async def plan(self, text: str) -> Plan:
        """The plan of rules, completed with declared types that they omit. Declares the types that the rules contain or emit.
        Raises LanguageError, UsageError."""
        rules = await off_loop(compile_names, text)
        while True:
            await self.refresh()
            left_out = {*rules.declared, *(name for name in rules.emitted if self.is_derived(name))}
            plan = await self._compiled(text, rules, left_out, compiled)
            mine = [plan.catalogue[name] for name in rules.declared]
            emitted = [plan.catalogue[name] for name in rules.emitted if name not in rules.declared]
            publishable = [each for each in emitted if all(a.type.kind is not Kind.INTERVAL for a in each.attributes)]
            fresh = [replace(each, supertype=None) for each in publishable if each.derived]
            if await self._stored(mine, plan.catalogue, derived=False) and await self._stored(
                fresh, plan.catalogue, derived=True
            ):
                return plan

    async def read_plan(self, text: str) -> Plan:
        """The plan of rules, for readers: declares nothing. Raises LanguageError, UsageError."""
        rules = await off_loop(compile_names, text)
        await self.refresh()
        left_out = {*rules.declared, *(name for name in rules.emitted if self.is_derived(name))}
        plan = await self._compiled(text, rules, left_out, compiled)
        for name in rules.declared:
            if name in self._declared:
                self._require_agreeing(plan.catalogue[name], plan.catalogue)
        return plan

    def _require_agreeing(self, each: EventType, catalogue: Catalogue) -> None:
        told = difference(self.catalogue[each.name], each, self.catalogue, catalogue)
        if told is not None:
            fix = "use another type name; only new attributes at the end are allowed"
            raise UsageError("A243", f"'{each.name}' is already declared differently: {told}", fix)

    async def _compiled(
        self, text: str, rules: DeclaredNames, left_out: Iterable[str], compiling: Callable[[str], Plan]
    ) -> Plan:
        """Types that the text declares again stay in their topics, unless it names another."""
        own = set(left_out)
        leaning = dependents_of(self._declared, own)
        before = topic_text(self._declared, rules.placed) + declaration_text(self._declared, own | leaning.keys())
        after = f"\n{declaration_text(leaning)}" if leaning else ""
        lines = before.count("\n")
        try:
            return await off_loop(compiling, before + text + after)
        except LanguageError as error:
            place = error.place
            if isinstance(place, Place) and place.line > lines:
                place = replace(place, line=place.line - lines)
            raise LanguageError(error.code, error.problem, error.fix, place, error.excerpt) from None

    async def _stored(self, types: Iterable[EventType], catalogue: Catalogue, *, derived: bool) -> bool:
        """1. check that all are allowed, 2. store the new ones. Returns False if another client was faster: then look again."""
        changed: list[Declared] = []
        for each in types:  # 1
            require_storable(each.name, each.topic)
            old = self._declared.get(each.name)
            text = declaration(each, catalogue)
            if old is None:
                own = len(own_attributes(each, catalogue))
                changed.append(Declared(each.name, text, 1, own, derived, topic=each.topic))
                continue
            if derived and not old.derived:
                continue  # it is declared: the plan was checked against that declaration
            was = self.catalogue[each.name]
            self._require_agreeing(each, catalogue)
            if not is_older(was, each):
                changed.append(replace(old, text=text, version=old.version + 1, derived=derived and old.derived))
        try:
            for new in changed:  # 2
                await self._log.open_topics([new.topic])
                await self._log.put(TABLE, token(new.name), new.value(), new.revision)
        except Conflict:
            return False
        return True


def _declared(entry: TableEntry, key: str) -> Declared:
    """Raises StateError (S147)."""
    told = entry_value(entry.value, DECLARED, TABLE, key)
    name = told["name"]
    if not TYPE_NAME.fullmatch(name) or token(name) != key or not is_declaration(told["text"], name):
        raise unreadable(TABLE, key)
    topic = told.get("topic", "")
    return Declared(name, told["text"], told["version"], told["required"], told["derived"], entry.revision, topic)
