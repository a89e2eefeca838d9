"""What a simulated run gives, and what a simulation is.

Takes: nothing. Gives: types. Never: runs anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar

from fairlead.dataclass import dataclass

Case = TypeVar("Case")


@dataclass(frozen=True)
class Outcome:
    """`problems`: empty if the run is as it should be. `lines`: what happened, one line a step."""

    problems: tuple[str, ...]
    lines: tuple[str, ...]


class Simulation(Protocol[Case]):
    """Something that can be simulated. A case is a value; a run is a function of it, and of nothing else."""

    name: str

    def case(self, seed: int) -> Case:
        """The case of a seed."""
        ...

    def run(self, case: Case) -> Outcome: ...

    def smaller(self, case: Case) -> Iterator[Case]:
        """Cases that are simpler in one respect, the much simpler ones first."""
        ...

    def size(self, case: Case) -> int:
        """What shrinking makes smaller."""
        ...
