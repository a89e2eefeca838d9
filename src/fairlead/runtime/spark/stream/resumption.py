"""Whether a run may resume from the state of a stream, and how its rules have changed.

A state records what a run must have in common with it: the version of its format, the order of the stream, the zone of times
without one, the number of buckets. Rules may change: unchanged ones, by digest, continue.

Takes: the head of a state, and the description of the run. Gives: a `RuleChange`, or an error (S110, S111, S116). Never: reads
a state.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from fairlead.dataclass import dataclass
from fairlead.errors import StateError
from fairlead.matching.state.encoding import Change

VERSION = 6
"""The version of the state's format. It also increases with that of the engine's states, which it contains, once those of
before are no longer read (matching/state/decoding.py)."""
ZONE = "time zone of the session"
"""In the identity of a stream that has times without a zone: the same text is another instant in another zone."""
SETTING = "spark.sql.session.timeZone"


@dataclass(frozen=True)
class RuleChange(Change):
    """Which rules of a stream resumed, started or were dropped.

    `position`: of the first event that the started rules see, in the order of the stream; resumed rules see it too, after all
    that they have seen before. If rules with different frontiers started, the least of their positions.
    """

    position: int = 0

    def __str__(self) -> str:
        told = super().__str__()
        return f"{told}; from position {self.position} on" if told else ""


def head(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {"version": VERSION, "identity": dict(identity)}


def agree_in(found: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Compares the head of a state with the run. Raises StateError."""
    if found["version"] != VERSION:
        problem = f"the checkpoint has version {found['version']}, this release reads version {VERSION}"
        raise StateError("S110", problem, "run the release that wrote it, or use a new checkpoint folder")
    before = found["identity"]
    if ZONE in before and ZONE in identity:  # rules that read such times may be added and removed
        agree_in_zone(before[ZONE], identity[ZONE])
    differing = [name for name in {**identity, **before} if name != ZONE and before.get(name) != identity.get(name)]
    if differing:
        fix = "continue with the settings of the checkpoint, or use a new checkpoint folder"
        raise StateError("S111", f"the checkpoint was made with another {', another '.join(differing)}", fix)


def agree_in_zone(before: str, now: str) -> None:
    if before != now:
        problem = f"the stream read times without a zone as times in {before}, and the session's zone is now {now}"
        raise StateError("S111", problem, f'spark.conf.set("{SETTING}", "{before}"), or a new checkpoint folder')


def agree_in_buckets(began: int, asked: int | None) -> None:
    """`asked`: the number that the user wants; by default, the existing one."""
    if asked is not None and asked != began:
        problem = f"the stream started with buckets = {began}, and this run has buckets = {asked}"
        raise StateError("S116", problem, f"leave buckets out, or use {began}; another number needs a new checkpoint folder")


def changed(before: Set[str], names: Mapping[str, str], now: Mapping[str, str], position: int) -> RuleChange:
    """`before`: the digests that the state has; `names`: their names, if it knows them; `now`: the rules."""
    resumed, started = ([name for name, digest in now.items() if (digest in before) is known] for known in (True, False))
    gone = before - set(now.values())
    named = [name for name, digest in names.items() if digest in gone]
    return RuleChange(tuple(resumed), tuple(started), (*named, *sorted(gone - set(names.values()))), position)
