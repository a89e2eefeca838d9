"""Which records are repeats: the last sequence of each source.

Takes: sources and sequences of valid records, in order. Gives: which of them are new, and its state as a dict for JSON, so that
a run can be resumed. Never: counts positions or reads values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.errors import StateError

VERSION = 1


class LastSequences:
    """A record with a sequence but no source belongs to the one unnamed source (None)."""

    def __init__(self) -> None:
        self._last: dict[str | None, int] = {}

    def fresh(self, sources: Sequence[str | None] | None, sequences: Sequence[int | None]) -> list[bool] | None:
        """For each record whether it is new; None if all are."""
        last = self._last
        verdicts: list[bool] = []
        for source, sequence in zip(sources if sources is not None else [None] * len(sequences), sequences, strict=True):
            if sequence is None:
                verdicts.append(True)
                continue
            seen = last.get(source)
            is_fresh = seen is None or sequence > seen
            verdicts.append(is_fresh)
            if is_fresh:
                last[source] = sequence
        return None if all(verdicts) else verdicts

    def dump(self) -> dict[str, Any]:
        """The state; sources sorted by name, so that equal states have equal bytes as JSON."""
        named = {source: self._last[source] for source in sorted(each for each in self._last if each is not None)}
        return {"version": VERSION, "sources": named, "unnamed": self._last.get(None)}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> LastSequences:
        """The inverse of `dump`."""
        if state.get("version") != VERSION or not isinstance(state.get("sources"), Mapping):
            problem = f"the state of source sequences has version {state.get('version')!r}, wanted {VERSION}"
            raise StateError("S101", problem, fix="load it with the release that wrote it")
        loaded = cls()
        loaded._last.update(state["sources"])
        if state.get("unnamed") is not None:
            loaded._last[None] = state["unnamed"]
        return loaded
