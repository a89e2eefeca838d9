"""The conformance suite's runner: cases from `conformance/*.yaml`, and one base class that a runtime subclasses.

    @pytest.mark.parametrize("case", load_cases(folder), ids=str)
    class TestMyRuntime(ConformanceSuite):
        def run(self, rules, events, until): ...          # Outcome, or a FairleadError

A file is one mapping: `topic`; optionally `prelude` (rules in front of every case) and `streams` (named lists of events);
`cases`. A case has a `name`, a `source`, `rules`, `events` or the name of a `stream`, and either `expect` (every relation, in
the order of delivery) or `error` (a code or its beginning). The expectations were derived from docs/semantics.md by hand.

Takes: files and a runtime. Gives: cases, and an AssertionError that shows expected and actual results side by side.
Never: takes an expectation from an implementation; ignores content of a file (an unknown or duplicate key is an error).
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

import yaml

from fairlead.errors import FairleadError, UsageError

Record = Mapping[str, Any]


@dataclass(frozen=True)
class ExpectedDelivery:
    """One relation that must be delivered. None is not compared."""

    subscription: str
    positions: tuple[int | str, ...]
    branch: int | None = None
    completed_at: int | str | None = None
    emitted: Record | None = None


@dataclass(frozen=True)
class Case:
    """One engine-neutral case. Either `expect` or `error` is present."""

    name: str
    source: str
    rules: str
    events: tuple[Record, ...]
    until: datetime | None = None
    expect: tuple[ExpectedDelivery, ...] | None = None
    error: str | None = None
    error_contains: str = ""
    duplicates: int | None = None
    why: str = ""
    file: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class CaseOutcome:
    """The relations that a runtime delivered, in order: subscription, positions, emitted, completed_at, branch of each."""

    relations: Sequence[Record] = field(default=())
    duplicates: int = 0


class ConformanceSuite:
    """Subclass it, implement `run`, and parametrise the subclass with "case" (see the top of this module)."""

    def run(self, rules: str, events: list[dict[str, Any]], until: datetime | None) -> CaseOutcome:
        """All relations of a finite input. Raises the FairleadError that bad rules or bad events cause."""
        raise NotImplementedError

    def test_case(self, case: Case) -> None:
        self.check(case)

    def check(self, case: Case) -> None:
        """Run one case; an AssertionError shows the difference."""
        try:
            outcome = self.run(case.rules, [dict(event) for event in case.events], case.until)
        except FairleadError as error:
            if case.error is None or not error.code.startswith(case.error) or case.error_contains not in str(error):
                raise AssertionError(report(case, CaseOutcome(), error)) from error
            return
        if not conforms(case, outcome):
            raise AssertionError(report(case, outcome))


def conforms(case: Case, outcome: CaseOutcome) -> bool:
    if case.expect is None or len(case.expect) != len(outcome.relations):
        return False
    counted = case.duplicates is None or case.duplicates == outcome.duplicates
    return counted and all(map(agrees, case.expect, outcome.relations))


def agrees(wanted: ExpectedDelivery, got: Record) -> bool:
    return (
        wanted.subscription == got["subscription"]
        and wanted.positions == tuple(got["positions"])
        and (wanted.branch is None or wanted.branch == got["branch"])
        and (wanted.completed_at is None or wanted.completed_at == got["completed_at"])
        and (wanted.emitted is None or _same_emission(wanted.emitted, got["emitted"]))
    )


def _same_emission(wanted: Record, got: Record) -> bool:
    return wanted.keys() == got.keys() and all(same_value(wanted[name], got[name]) for name in wanted)


def same_value(wanted: Any, got: Any) -> bool:
    """Equal in value and in kind: 3 is not 3.0. NaN equals NaN; text represents moments, dates, decimals and bytes too."""
    if isinstance(wanted, str):
        return _same_text(wanted, got)
    if type(wanted) is not type(got):
        return False
    if isinstance(wanted, float) and math.isnan(wanted):
        return math.isnan(got)
    if isinstance(wanted, list):
        return len(wanted) == len(got) and all(map(same_value, wanted, got))
    if isinstance(wanted, dict):
        return wanted.keys() == got.keys() and all(same_value(value, got[key]) for key, value in wanted.items())
    return bool(wanted == got)


def _same_text(wanted: str, got: Any) -> bool:
    match got:
        case datetime():
            return moment(wanted) == got
        case date():
            return wanted == got.isoformat()
        case Decimal():
            return Decimal(wanted) == got
        case bytes():
            return base64.b64encode(got).decode("ascii") == wanted
    return bool(wanted == got)


def moment(text: str) -> datetime:
    """A moment from ISO 8601 text; without an offset it is UTC."""
    read = datetime.fromisoformat(text)
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read


# --- reporting differences


def report(case: Case, outcome: CaseOutcome, error: FairleadError | None = None) -> str:
    """The case, its events with their positions, and expected beside actual results."""
    lines = [f"{case.name} ({case.file}, from {case.source})", *_indented(case.rules), "events:"]
    lines += [f"  {at:>3}  {_flow(event)}" for at, event in enumerate(case.events)]
    if case.until:
        lines.append(f"  until {case.until.isoformat()}")
    if case.why:
        lines.append(f"why: {case.why.strip()}")
    lines += _differences(case, outcome) if error is None and case.error is None else _error_lines(case, error)
    return "\n".join(lines)


def _error_lines(case: Case, error: FairleadError | None) -> list[str]:
    text = f" that says '{case.error_contains}'" if case.error_contains else ""
    wanted = f"error {case.error}{text}" if case.error else f"{len(case.expect or ())} relations"
    return [f"expected: {wanted}", f"got:      {error or 'no error'}"]


def _differences(case: Case, outcome: CaseOutcome) -> list[str]:
    rows = [("expected", "got", "")]
    for wanted, got in zip_longest(case.expect or (), outcome.relations):
        left = "–" if wanted is None else _expected(wanted)
        right = "–" if got is None else _got(got, wanted)
        rows.append((left, right, "" if wanted and got and agrees(wanted, got) else "  <<<"))
    width = max(len(left) for left, _, _ in rows)
    lines = [f"  {left:<{width}} | {right}{mark}" for left, right, mark in rows]
    if case.duplicates is not None and case.duplicates != outcome.duplicates:
        lines.append(f"  duplicates: expected {case.duplicates}, got {outcome.duplicates}  <<<")
    return lines


def _expected(wanted: ExpectedDelivery) -> str:
    parts = {"branch": wanted.branch, "completed_at": wanted.completed_at, "emitted": wanted.emitted}
    return _relation(wanted.subscription, wanted.positions, {name: value for name, value in parts.items() if value is not None})


def _got(got: Record, wanted: ExpectedDelivery | None) -> str:
    names = [name for name in ("branch", "completed_at", "emitted") if wanted is None or getattr(wanted, name) is not None]
    return _relation(got["subscription"], got["positions"], {name: got[name] for name in names})


def _relation(subscription: str, positions: Iterable[int | str], parts: Record) -> str:
    rest = "".join(f" {name}={_flow(part) if isinstance(part, Mapping) else part}" for name, part in parts.items())
    return f"{subscription} [{', '.join(map(str, positions))}]{rest}"


def _flow(record: Record) -> str:
    return "{" + ", ".join(f"{name}: {value!r}" for name, value in record.items()) + "}"


def _indented(text: str) -> list[str]:
    return ["  " + line for line in text.splitlines() if line.strip()]


# --- reading the files


def load_cases(folder: str | Path) -> tuple[Case, ...]:
    """The cases of every *.yaml file of a folder, in the order of the files' names. Raises UsageError."""
    files = sorted(Path(folder).glob("*.yaml"))
    if not files:
        raise UsageError("A301", "the folder has no conformance files (*.yaml)", place=str(folder))
    cases = tuple(case for file in files for case in load_file(file))
    names: dict[str, str] = {}
    for case in cases:
        if case.name in names:
            raise UsageError("A301", f"two cases are named '{case.name}'", place=f"{names[case.name]} and {case.file}")
        names[case.name] = case.file
    return cases


def load_file(path: Path) -> tuple[Case, ...]:
    loaded = read_yaml(path)
    known_keys(loaded, FILE_KEYS, str(path))
    return tuple(_case(each, loaded, path.name) for each in loaded["cases"])


def read_yaml(path: Path) -> Any:
    """Raises UsageError."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except yaml.YAMLError as error:
        raise UsageError("A301", f"not valid YAML: {error}", place=str(path)) from None


FILE_KEYS = {"topic": True, "prelude": False, "streams": False, "cases": True}
CASE_KEYS = {
    "name": True, "source": True, "rules": True, "events": False, "stream": False, "until": False, "expect": False,
    "error": False, "error_contains": False, "duplicates": False, "why": False,
}  # fmt: skip
RELATION_KEYS = {"subscription": True, "positions": True, "branch": False, "completed_at": False, "emitted": False}
"""The keys of each mapping, and whether they are required."""


def _case(raw: Any, file: Record, name: str) -> Case:
    place = f"{name}, case '{raw.get('name')}'" if isinstance(raw, dict) else name
    known_keys(raw, CASE_KEYS, place)
    if ("events" in raw) == ("stream" in raw):
        raise UsageError("A301", "a case has either events or a stream", place=place)
    if ("expect" in raw) == ("error" in raw):
        raise UsageError("A301", "a case has either expect or error", place=place)
    streams = file.get("streams", {})
    if "stream" in raw and raw["stream"] not in streams:
        raise UsageError("A301", f"there is no stream '{raw['stream']}'", fix=f"streams: {', '.join(streams)}", place=place)
    return Case(
        name=raw["name"],
        source=raw["source"],
        rules=file.get("prelude", "") + raw["rules"],
        events=tuple(streams[raw["stream"]] if "stream" in raw else raw["events"]),
        until=moment(raw["until"]) if "until" in raw else None,
        expect=tuple(_expectation(each, place) for each in raw["expect"]) if "expect" in raw else None,
        error=raw.get("error"),
        error_contains=raw.get("error_contains", ""),
        duplicates=raw.get("duplicates"),
        why=raw.get("why", ""),
        file=name,
    )


def _expectation(raw: Any, place: str) -> ExpectedDelivery:
    known_keys(raw, RELATION_KEYS, place)
    return ExpectedDelivery(**(raw | {"positions": tuple(raw["positions"])}))


def known_keys(raw: Any, keys: Mapping[str, bool], place: str) -> None:
    """Raises UsageError if a mapping has other keys, or lacks one that it needs."""
    if not isinstance(raw, dict):
        raise UsageError("A301", f"expected a mapping, got {type(raw).__name__}", place=place)
    for name in raw:
        if name not in keys:
            raise UsageError("A301", f"unknown key '{name}'", fix=f"known keys: {', '.join(keys)}", place=place)
    for name, needed in keys.items():
        if needed and name not in raw:
            raise UsageError("A301", f"the key '{name}' is missing", place=place)


class _StrictLoader(yaml.SafeLoader):
    """YAML with JSON's scalars plus ~, .nan and .inf: `on` is text, `1:30` is text, a moment is text, keys are unique."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key '{key}' stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


_NUMBER = r"^[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?$|^[-+]?\.(?:inf|nan)$"
_StrictLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _starts in (
    ("null", r"^(?:~|null)$", "~n"),
    ("bool", r"^(?:true|false)$", "tf"),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    ("float", _NUMBER, "-+.0123456789"),
):
    _StrictLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_starts))
