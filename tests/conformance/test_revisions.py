"""Late events and revisions: the embedded runtime conforms, in whole rounds and cut anywhere."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

import fairlead
from fairlead.model.events.event import Event
from fairlead.model.relations.relation import Relation
from fairlead.runtime.event_time import EventTimeMatcher, OrderedFindings
from fairlead.runtime.sorting import AllFresh
from fairlead.testing.revision_cases import RevisionOutcome, RevisionSuite, load_revision_cases, record_of
from fairlead.transport.admission.records import RecordReader
from tests.root import ROOT

REVISION_CASES = load_revision_cases(ROOT / "conformance" / "late")
ROUND_BITS = 4
Record = dict[str, Any]


def label(relation: Relation) -> str:
    return " ".join([relation.subscription, *(member_label(each) for each in relation.members)])


def member_label(event: Event) -> str:
    return str(event.row[event.schema.index["n"]]) if "n" in event.schema.index and not event.schema.derived else event.type


def signed_labels(relations: Iterable[Relation]) -> list[str]:
    return [f"{'+' if each.sign > 0 else '-'} {label(each)}" for each in relations]


def plain(records: Sequence[Record]) -> list[Record]:
    return [{name: value for name, value in each.items() if name != "_number"} for each in records]


class EmbeddedRevisions(RevisionSuite):
    """`pieces`: in how many steps a round arrives."""

    pieces = 1

    def batch(self, rules: str, events: list[Record]) -> list[str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of events without a time of storage
            return [label(each) for each in fairlead.match(fairlead.compile(rules), plain(events))]

    def run(self, rules: str, rounds: list[list[Record]]) -> RevisionOutcome:
        plan = fairlead.compile(rules)
        matcher = EventTimeMatcher(plan, ROUND_BITS)
        made: list[list[str]] = []
        verdicts: dict[int, str] = {}
        numbers: dict[int, int] = {}

        def note(found: OrderedFindings) -> None:
            made[-1] += signed_labels(found.relations)
            for position, verdict in zip(found.verdicts.columns.positions, found.verdicts.verdicts, strict=True):
                verdicts[numbers[position]] = verdict.value

        for number, records in enumerate(rounds):
            made.append([])
            for low in range(0, len(records), step := max(1, -(-len(records) // self.pieces))):
                mine, first = records[low : low + step], (number << ROUND_BITS) + low
                numbers |= {first + at: each["_number"] for at, each in enumerate(mine)}
                (columns,) = RecordReader(plan.catalogue, last_sequences=AllFresh()).read(plain(mine))
                placed = replace(columns, positions=range(first, first + len(mine)), last_position=first + len(mine) - 1)
                note(matcher.step(placed, columns.stored, closed=low + step >= len(records)))
                matcher = EventTimeMatcher.load(plan, matcher.dump(), ROUND_BITS)
        made.append([])
        note(matcher.finish())
        return RevisionOutcome(made[:-1], made[-1], verdicts)


@pytest.mark.parametrize("case", REVISION_CASES, ids=str)
class TestWholeRounds(EmbeddedRevisions):
    pieces = 1


@pytest.mark.sampled
@pytest.mark.parametrize("case", REVISION_CASES, ids=str)
class TestEventByEvent(EmbeddedRevisions):
    pieces = 100


def test_there_are_at_least_forty_cases() -> None:
    assert len(REVISION_CASES) >= 40
    assert sum(any("- " in each for round_ in case.expect for each in round_) for case in REVISION_CASES) >= 12


def test_a_case_that_expects_something_else_fails() -> None:
    case = replace(REVISION_CASES[0], expect=tuple(() for _ in REVISION_CASES[0].rounds))
    with pytest.raises(AssertionError, match="expected"):
        EmbeddedRevisions().check(case)


def test_events_are_written_briefly() -> None:
    assert record_of("A 10 k=1 p#3 stored=12", 4) == {
        "type": "A", "at": 10.0, "k": 1, "n": 4, "_number": 4, "_source": "p", "_sequence": 3, "_stored": 12.0,
    }  # fmt: skip
