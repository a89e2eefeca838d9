"""Random plans and events (tests/fuzz) that a log has one order for: live, exported, and on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from fairlead.engine import Engine
from fairlead.errors import FairleadError
from fairlead.language import compile_text
from fairlead.runtime.live.core.event_table import only_group
from fairlead.runtime.live.core.stream_groups import StreamGroup
from fairlead.transport.admission.records import read_records
from tests.fuzz.rules import rules
from tests.fuzz.streams import Record, events

EVENTS = 60


@dataclass(frozen=True)
class Given:
    """`texts`: of the types, then of each subscription."""

    seed: int
    text: str
    texts: tuple[str, ...]
    events: tuple[Record, ...]
    group: StreamGroup = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"seed {self.seed}"


def usable(wanted: Callable[[str], bool] = lambda text: True) -> Iterator[Given]:
    """Plans that all runtimes can run, of which several subscriptions find something, and whose streams have one order.
    `wanted`: by the text of the rules, before anything is matched."""
    for seed in range(10**9):
        rng = Random(seed)
        made = rules(rng)
        if len(made.subscriptions) < 2 or not wanted(str(made)):
            continue
        try:
            plan = compile_text(str(made))
            engine = Engine(plan)
            group = only_group(plan)
        except FairleadError:
            continue
        stream = tuple(events(rng, made.attributes, EVENTS))
        found = {each.subscription for columns in read_records(stream, plan.catalogue) for each in engine.feed(columns)}
        if len(found) > 1:
            types = "\n".join(made.declared)
            yield Given(seed, str(made), (types, *map(str, made.subscriptions)), stream, group)
