"""What a subscriber asks for: the arguments of `subscribe` as one value.

Takes: the arguments as the user passed them. Gives: a value whose fields are valid. Never: compiles the rules, reads the log.
"""

from __future__ import annotations

from datetime import datetime

from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.model.arguments import require_kind
from fairlead.model.relations.identity import POSITIONS_MAX

Start = str | int | datetime
Early = bool | str
"""Whether relations are delivered early, too; "final": those that no other event can change."""
FIRST_YEAR, LAST_YEAR = 1678, 2261
"""Years for which a server can count nanoseconds."""


@dataclass(frozen=True)
class SubscriptionRequest:
    """`name`: of a durable subscriber. `start`: where a new one begins (group_start.py). `emit`: store what the rules EMIT.
    `verdicts`: deliver reports on events, too. `early`: and early deliveries."""

    rules: str
    name: str | None = None
    start: Start = "new"
    emit: bool = True
    verdicts: bool = False
    early: Early = False

    def __post_init__(self) -> None:
        """Raises UsageError."""
        require_kind("subscribe", "rules", self.rules, (str,), "a str", "pass its text")
        require_kind("subscribe", "verdicts", self.verdicts, (bool,), "True or False", "subscribe(rules, verdicts=True)")
        check_start(self.start)
        if self.early is not True and self.early is not False and self.early != "final":
            raise UsageError("A265", f"early is {self.early!r}", "use True, False or 'final'")


def check_start(start: Start) -> None:
    match start:
        case bool():
            fine = False
        case int():
            fine = 0 <= start < POSITIONS_MAX
        case datetime():
            fine = FIRST_YEAR <= start.year <= LAST_YEAR
        case _:
            fine = start in ("new", "earliest", "snapshot")
    if not fine:
        fix = f"use 'new', 'earliest', 'snapshot', a position or a datetime of the years {FIRST_YEAR} to {LAST_YEAR}"
        raise UsageError("A251", f"start is {start!r}", fix)
