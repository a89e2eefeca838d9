"""The reference matcher conforms: the definition as code says what the definition as text says."""

from datetime import datetime
from typing import Any

import pytest

from fairlead.language import compile_text
from fairlead.model.events.values import microseconds
from fairlead.testing.conformance import CaseOutcome, ConformanceSuite
from fairlead.testing.reference import ReferenceMatcher
from fairlead.transport.admission.records import read_records
from tests.conformance.cases import CASES, outcome


@pytest.mark.parametrize("case", CASES, ids=str)
class TestReference(ConformanceSuite):
    def run(self, rules: str, events: list[dict[str, Any]], until: datetime | None) -> CaseOutcome:
        plan = compile_text(rules)
        batches = list(read_records(events, plan.catalogue))
        ordered = [event for columns in batches for event in columns.events(plan.catalogue)]
        relations = ReferenceMatcher(plan).run(ordered, None if until is None else microseconds(until))
        return outcome(relations, sum(columns.duplicates for columns in batches))
