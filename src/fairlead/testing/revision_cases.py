"""The conformance suite of late events: cases from `conformance/late/*.yaml`, and one base class that a runtime subclasses.

    @pytest.mark.parametrize("case", load_revision_cases(folder), ids=str)
    class TestMyRuntime(RevisionSuite):
        def run(self, rules, rounds): ...          # RevisionOutcome
        def batch(self, rules, events): ...        # labels of all relations of these events, sorted

A case lists events by round, in the order of arrival, and for each round the deliveries. An event is written `A 10 k=1 p#3`:
its type, its time in seconds, attributes, and its source and sequence; `stored=12` is when the log stored it. Events are
numbered from 0 through all rounds, in the attribute `n`. A delivery is written `+ S 0 3`: its sign, its subscription and the
numbers of its members, in signature order, or the type of a derived one. Besides what a case says, every runtime must deliver
what folds to the relations of the events that took part, sorted.

Takes: files and a runtime. Gives: cases, and an AssertionError that shows expected and actual deliveries. Never: takes an
expectation from an implementation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from fairlead.errors import UsageError
from fairlead.testing.conformance import known_keys, read_yaml

CASE_KEYS = {
    "name": True, "source": True, "rules": True, "rounds": True, "expect": True, "end": False, "verdicts": False,
    "why": False,
}  # fmt: skip
FILE_KEYS = {"topic": True, "prelude": False, "cases": True}
Record = dict[str, Any]


@dataclass(frozen=True)
class RevisionCase:
    """`expect`: the deliveries of each round; `end`: those of the end of the input. `verdicts`: by number of the event, on
    those that take no part."""

    name: str
    source: str
    rules: str
    rounds: tuple[tuple[str, ...], ...]
    expect: tuple[tuple[str, ...], ...]
    end: tuple[str, ...] = ()
    verdicts: Mapping[int, str] = field(default_factory=dict)
    why: str = ""
    file: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def records(self) -> list[list[Record]]:
        """The events by round."""
        numbers = iter(range(sum(map(len, self.rounds))))
        return [[record_of(text, next(numbers)) for text in texts] for texts in self.rounds]


@dataclass(frozen=True)
class RevisionOutcome:
    """What a runtime delivered, as labels by round, then at the end; and the verdicts on events that took no part."""

    rounds: Sequence[Sequence[str]]
    end: Sequence[str] = ()
    verdicts: Mapping[int, str] = field(default_factory=dict)


class RevisionSuite:
    """Subclass it, implement `run` and `batch`, and parametrise the subclass with "case" (see the top of this module)."""

    def run(self, rules: str, rounds: list[list[Record]]) -> RevisionOutcome:
        """The deliveries of a sequence."""
        raise NotImplementedError

    def batch(self, rules: str, events: list[Record]) -> list[str]:
        """The labels of all relations of these events, without signs, in their order by value."""
        raise NotImplementedError

    def test_case(self, case: RevisionCase) -> None:
        self.check(case)

    def check(self, case: RevisionCase) -> None:
        """Run one case; an AssertionError shows the difference."""
        outcome = self.run(case.rules, case.records)
        wanted = RevisionOutcome(case.expect, case.end, case.verdicts)
        if _plain(outcome) != _plain(wanted):
            raise AssertionError(_report(case, outcome))
        accepted = [each for each in chain.from_iterable(case.records) if each["_number"] not in case.verdicts]
        batch = Counter(self.batch(case.rules, accepted))
        left = folded([*chain.from_iterable(outcome.rounds), *outcome.end])
        if left != batch:
            raise AssertionError(
                f"{case.name}: folds to {sorted(left.elements())}, sorted events give {sorted(batch.elements())}"
            )


def folded(deliveries: Sequence[str]) -> Counter[str]:
    """What is left, without signs; a delivery that takes back what is not there is an error."""
    left: Counter[str] = Counter()
    for each in deliveries:
        sign, label = each.split(" ", 1)
        left[label] += 1 if sign == "+" else -1
        if left[label] < 0:
            raise AssertionError(f"{each} was not delivered before")
    return +left


def record_of(text: str, number: int) -> Record:
    """`A 10 k=1 p#3 stored=12` as a record. `_number` is not part of it."""
    name, seconds, *more = text.split()
    made: Record = {"type": name, "at": float(seconds), "_number": number}
    if name != "Heartbeat":
        made |= {"k": 0, "n": number}
    for each in more:
        source, numbered, sequence = each.partition("#")
        key, _, value = each.partition("=")
        if numbered:
            made |= {"_source": source, "_sequence": int(sequence)}
        elif key == "stored":
            made["_stored"] = float(value)
        elif key == "source":
            made["_source"] = value
        else:
            made[key] = int(value)
    return made


def load_revision_cases(folder: str | Path) -> tuple[RevisionCase, ...]:
    """The cases of every *.yaml file of a folder, in the order of the files' names. Raises UsageError."""
    cases: list[RevisionCase] = []
    for path in sorted(Path(folder).glob("*.yaml")):
        loaded = read_yaml(path)
        known_keys(loaded, FILE_KEYS, str(path))
        cases += [_case(each, loaded.get("prelude", ""), path.name) for each in loaded["cases"]]
    if len({case.name for case in cases}) < len(cases):
        raise UsageError("A301", "two cases have the same name", place=str(folder))
    return tuple(cases)


def _case(raw: Any, prelude: str, file: str) -> RevisionCase:
    place = f"{file}, case '{raw.get('name')}'" if isinstance(raw, dict) else file
    known_keys(raw, CASE_KEYS, place)
    if len(raw["rounds"]) != len(raw["expect"]):
        raise UsageError("A301", "a case says for each round what is delivered", place=place)
    return RevisionCase(
        raw["name"],
        raw["source"],
        prelude + raw["rules"],
        tuple(map(tuple, raw["rounds"])),
        tuple(map(tuple, raw["expect"])),
        tuple(raw.get("end", ())),
        dict(raw.get("verdicts", {})),
        raw.get("why", ""),
        file,
    )


def _plain(outcome: RevisionOutcome) -> tuple[Any, ...]:
    return [list(each) for each in outcome.rounds], list(outcome.end), {k: str(v) for k, v in outcome.verdicts.items()}


def _report(case: RevisionCase, outcome: RevisionOutcome) -> str:
    lines = [f"{case.name} ({case.file}, from {case.source})", case.rules.strip()]
    number = 0
    for at, texts in enumerate(case.rounds):
        for text in texts:
            lines.append(f"  {number:>3}  {text}")
            number += 1
        lines += [f"  expected {list(case.expect[at])}", f"  got      {list(outcome.rounds[at])}"]
    lines += [f"  at the end expected {list(case.end)}", f"  at the end got      {list(outcome.end)}"]
    lines += [f"  verdicts expected {dict(case.verdicts)}", f"  verdicts got      {dict(outcome.verdicts)}"]
    return "\n".join(lines)
