"""The cases, read once, and how Fairlead's relations become what the suite compares."""

from collections.abc import Iterable

from fairlead import Relation
from fairlead.testing.conformance import CaseOutcome, load_cases
from tests.root import ROOT

CASES = load_cases(ROOT / "conformance")


def outcome(relations: Iterable[Relation], duplicates: int) -> CaseOutcome:
    return CaseOutcome(
        [
            {
                "subscription": each.subscription,
                "positions": each.positions,
                "emitted": each.emitted,
                "completed_at": each.completed_at.shown,
                "branch": each.branch,
            }
            for each in relations
        ],
        duplicates,
    )
