"""Runs one rule test and reports how its result differs from the expectation.

Takes: rules (compiled, or their error) and a RuleTest. Gives: `RuleTestOutcome`, whose `differences` are empty if the test
passed. Never: reads a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from fairlead.cli.display.screen import counted, shown_positions
from fairlead.cli.rule_tests import ExpectedRelation, RuleTest, midnight
from fairlead.dataclass import dataclass
from fairlead.errors import FairleadError
from fairlead.model.events.event import Event
from fairlead.model.events.types import Catalogue, DataType, Kind
from fairlead.model.events.values import canonical, jsonable
from fairlead.model.plans.plan import Plan
from fairlead.model.relations.relation import Relation
from fairlead.runtime.embedded import match
from fairlead.runtime.result import Result


@dataclass(frozen=True)
class RuleTestOutcome:
    test: RuleTest
    differences: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.differences


def run_test(rules: Plan | FairleadError, test: RuleTest, event_by_event: bool = False) -> RuleTestOutcome:
    try:
        if isinstance(rules, FairleadError):
            raise rules
        events = [_dated(each, rules.catalogue) for each in test.events]
        result = match(rules, events, until=test.until, event_by_event=event_by_event)
    except FairleadError as error:
        return RuleTestOutcome(test, () if error.code == test.error else tuple(_unexpected(test, error)))
    if test.error is not None:
        found = counted(len(result), "relation")
        return RuleTestOutcome(test, (f"expected error {test.error}", f"got no error, and {found}"))
    return RuleTestOutcome(test, tuple(_differences(rules, test, result)))


def _dated(event: Any, catalogue: Catalogue) -> Any:
    """The event of a test file: its dates are moments, except where a DATE is declared."""
    if not isinstance(event, dict):
        return event
    name = event.get("type")
    declared = catalogue.get(name) if isinstance(name, str) else None
    types = {each.name: each.type for each in declared.attributes} if declared else dict[str, DataType]()
    return {key: dated(value, types.get(key)) for key, value in event.items()}


def dated(value: Any, data_type: DataType | None) -> Any:
    """A value of a test file: its dates are moments, except where a DATE is declared."""
    if data_type is not None and data_type.element is not None and isinstance(value, list):
        return [dated(each, data_type.element) for each in value]
    if data_type is not None and data_type.fields and isinstance(value, dict):
        types = {each.name: each.type for each in data_type.fields}
        return {key: dated(each, types.get(key)) for key, each in value.items()}
    return value if data_type is not None and data_type.kind is Kind.DATE else midnight(value)


def _unexpected(test: RuleTest, error: FairleadError) -> Iterator[str]:
    if test.error is not None:
        yield f"expected error {test.error}"
    yield from str(error).splitlines()


def _differences(plan: Plan, test: RuleTest, result: Result) -> Iterator[str]:
    known = [each.name for each in plan.subscriptions]
    for name, wanted in test.expect.items():
        if name not in known:
            yield f"there is no subscription {name!r}; the rules have {', '.join(known)}"
            continue
        got = result.of(name)
        if isinstance(wanted, int):
            if len(got) != wanted:
                yield f"{name}: expected {counted(wanted, 'relation')}, got {len(got):,}"
                yield from _shown_relations(got)
        else:
            yield from _first_difference(plan, name, wanted, got)
    if test.nothing and len(result):
        yield f"expected no relations, got {len(result):,}"
        yield from _shown_relations(result.relations)


SHOWN_RELATIONS = 5


def _shown_relations(relations: tuple[Relation, ...]) -> Iterator[str]:
    for each in relations[:SHOWN_RELATIONS]:
        yield f"  {each.subscription} [{shown_positions(each.positions)}] at {each.completed_at}"
    if len(relations) > SHOWN_RELATIONS:
        yield f"  … and {len(relations) - SHOWN_RELATIONS:,} more"


def _first_difference(plan: Plan, name: str, wanted: tuple[ExpectedRelation, ...], got: tuple[Relation, ...]) -> Iterator[str]:
    """The first relation that differs, field by field, with the events at its positions."""
    for number, (want, have) in enumerate(zip_longest(wanted, got), 1):
        if want is None:
            yield f"{name}: expected {counted(len(wanted), 'relation')}, got {len(got):,}; the first too many:"
            yield f"  got       [{shown_positions(have.positions)}]"
            yield from _members(have)
            return
        if have is None:
            yield f"{name}: expected {counted(len(wanted), 'relation')}, got {len(got):,}; the first that is missing:"
            yield f"  expected  {_shown_expected(want)}"
            return
        different = list(_fields(plan, want, have))
        if different:
            yield f"{name}: relation {number} differs"
            yield from different
            yield from _members(have)
            return


def _shown_expected(want: ExpectedRelation) -> str:
    if want.positions is not None:
        return f"[{shown_positions(want.positions)}]"
    return f"emitted {want.emitted}" if want.emitted is not None else "one more"


def _members(relation: Relation) -> Iterator[str]:
    for each in relation.members:
        yield f"    {each.position}: {each.to_json()}"


def _fields(plan: Plan, want: ExpectedRelation, have: Relation) -> Iterator[str]:
    if want.positions is not None and tuple(map(str, want.positions)) != tuple(map(str, have.positions)):
        yield f"  expected  positions [{shown_positions(want.positions)}]"
        yield f"  got       positions [{shown_positions(have.positions)}]"
    if want.completed_at is not None and str(want.completed_at) != str(have.completed_at):
        yield f"  expected  completed_at {want.completed_at}"
        yield f"  got       completed_at {have.completed_at}"
    for key, value in (want.emitted or {}).items():
        yield from _emitted(plan, key, value, have)
    if want.events is not None:
        if len(want.events) != len(have.members):
            yield f"  expected  {counted(len(want.events), 'event')}"
            yield f"  got       {len(have.members):,}"
        for at, (event, member) in enumerate(zip(want.events, have.members, strict=False)):
            yield from _event(at, event, member)


def _emitted(plan: Plan, key: str, value: Any, have: Relation) -> Iterator[str]:
    types = {} if have.emitted_type is None else {each.name: each.type for each in plan.catalogue[have.emitted_type].attributes}
    row = {name: given for name, _, given in have.emitted_row}
    if key not in row:
        yield f"  expected  emitted {key} = {value}"
        yield f"  got       emitted {', '.join(row) or 'nothing'}"
    elif not same(value, row[key], types[key]):
        yield f"  expected  emitted {key} = {value}"
        yield f"  got       emitted {key} = {jsonable(row[key], types[key])}"


def _event(at: int, want: dict[str, Any], have: Event) -> Iterator[str]:
    types = {each.name: each.type for each in have.schema.attributes}
    for key, value in want.items():
        if key == "type":
            if value != have.type:
                yield f"  expected  events[{at}] of type {value}"
                yield f"  got       events[{at}] of type {have.type}"
        elif key not in types:
            yield f"  expected  events[{at}].{key} = {value}"
            yield f"  got       an event of type {have.type}, which has no attribute {key!r}"
        elif not same(value, have.raw(key), types[key]):
            yield f"  expected  events[{at}].{key} = {value}"
            yield f"  got       events[{at}].{key} = {jsonable(have.raw(key), types[key])}"


RELATIVE_ERROR_MAX = 1e-9
"""DOUBLEs that differ by less are equal here: people write 0.3, sums are 0.30000000000000004 (an error of 2e-16)."""


def same(wanted: Any, got: Any, data_type: DataType) -> bool:
    """Whether a value of a test file means the canonical value `got`."""
    if wanted is None or got is None:
        return wanted is None and got is None
    if data_type.kind is Kind.INTERVAL:
        return bool(wanted == jsonable(got, Kind.INTERVAL))
    try:
        value = canonical(dated(wanted, data_type), data_type)
    except ValueError:
        return False
    return _alike(value, got, data_type)


def _alike(value: Any, got: Any, data_type: DataType) -> bool:
    """Of canonical values."""
    if value is None or got is None:
        return value is got
    if data_type.is_nested:
        types = data_type.parts * len(got) if data_type.element is not None else data_type.parts
        return len(value) == len(got) and all(map(_alike, value, got, types))
    if data_type.kind is Kind.DOUBLE:
        return math.isclose(value, got, rel_tol=RELATIVE_ERROR_MAX) or (math.isnan(value) and math.isnan(got))
    return bool(value == got)
