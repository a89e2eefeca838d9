"""The embedded runtime conforms, through the public API alone."""

from datetime import datetime
from typing import Any

import pytest

import fairlead
from fairlead.testing.conformance import CaseOutcome, ConformanceSuite
from tests.conformance.cases import CASES, outcome


@pytest.mark.parametrize("case", CASES, ids=str)
class TestEmbedded(ConformanceSuite):
    def run(self, rules: str, events: list[dict[str, Any]], until: datetime | None) -> CaseOutcome:
        result = fairlead.match(fairlead.compile(rules), events, until=until)
        return outcome(result, result.duplicates)
