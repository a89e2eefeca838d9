"""What lint says about a rule that is legal.

Gives: `LintWarning`, with a code, a problem and a fix. Never: decides what is worth a warning.
"""

from __future__ import annotations

from fairlead.dataclass import dataclass
from fairlead.errors import Place, bounded, printable, require_registered


@dataclass(frozen=True)
class LintWarning:
    """A lint finding: the text is legal but probably not what was meant."""

    code: str
    problem: str
    fix: str
    place: Place | None = None
    subscription: str | None = None

    def __post_init__(self) -> None:
        require_registered(self.code)

    def __str__(self) -> str:
        where = f" {self.place}" if self.place else ""
        return printable(f"{self.code}{where}: {bounded(self.problem)}\n  fix: {bounded(self.fix)}")
