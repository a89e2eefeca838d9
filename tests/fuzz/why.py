"""`why` and the relations: an event is "matched" in a branch if, and only if, a delivered relation of that branch has it.

Over plans whose events are in several queues or under several keys at once, in several relations one after the other, and wait
for deadlines. What `why` says is waiting was complete and is not delivered.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from random import Random

from fairlead.engine import Engine
from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.model.relations.relation import Relation
from fairlead.runtime.why import BranchFinding, why
from fairlead.transport.admission.records import RecordReader
from tests.fuzz.plans import Different, _members
from tests.fuzz.rules import rules
from tests.fuzz.streams import events

MEMBERS_MAX = 4
"""In a branch; with more, the closest miss of a waiting event takes long."""
ASKED = 6
"""Positions of a case."""

seen: Counter[str] = Counter()


def case(seed: int) -> None:
    rng = Random(seed)
    made = rules(rng)
    if max(_members(each) for rule in made.subscriptions for each in rule.branches) > MEMBERS_MAX:
        seen["too long"] += 1
        return
    os.environ["FAIRLEAD_JIT"] = "0"
    try:
        plan = compile_text(str(made))
    except LanguageError:
        seen["refused"] += 1
        return
    records = events(rng, made.attributes, rng.choice((8, 15, 25)))
    batches = list(RecordReader(plan.catalogue).read(records))
    engine = Engine(plan, kernels_from=None)
    relations = [each for columns in batches for each in engine.feed(columns)]
    derived = {at for each in relations for at in each.positions if isinstance(at, str)}
    positions = [*map(str, range(len(records))), *sorted(derived)]
    for at in rng.sample(positions, min(ASKED, len(positions))):
        for finding in why(plan, batches, at):
            _true(at, finding, relations)
            seen[finding.verdict] += 1


def _true(at: str, finding: BranchFinding, relations: list[Relation]) -> None:
    own = [each for each in relations if (each.subscription, each.branch) == (finding.subscription, finding.branch)]
    delivered = {", ".join(map(str, each.positions)) for each in own if at in map(str, each.positions)}
    if (finding.verdict == "matched") != bool(delivered):
        raise Different(f"the event at {at} is in {sorted(delivered)}: {finding}")
    if finding.verdict in ("matched", "pending", "cancelled"):
        named = re.search(r"in the relation \[(.*)\]", finding.reasons[0])
        is_delivered = named is not None and named[1] in delivered
        if named is None or is_delivered != (finding.verdict == "matched"):
            raise Different(f"the event at {at} is in {sorted(delivered)}: {finding}")
