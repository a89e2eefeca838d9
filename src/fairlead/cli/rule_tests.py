"""Rule tests: files of events and the expected relations, beside the rules they test.

    market.fl             the rules
    market.test.yaml      their tests (or .yml, .toml)

Takes: paths of tests, rules or directories. Gives: `RuleTestFile`s with checked content. Raises UsageError (A2xx) if a file
does not have the form of docs/cli.md. Never: runs anything (expectations.py and test.py do).
"""

from __future__ import annotations

from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from fairlead.cli.files.rule_files import ENDING, decoded, read_bytes
from fairlead.dataclass import dataclass
from fairlead.errors import UsageError
from fairlead.model.limits import LIMITS
from fairlead.transport.files.documents import Malformed, toml_value, yaml_value

ENDINGS = (".test.yaml", ".test.yml", ".test.toml")
FORMS = {".yaml": "YAML", ".yml": "YAML", ".toml": "TOML"}
FILE_KEYS = {"rules", "tests"}
TEST_KEYS = {"name", "events", "until", "expect", "error"}
EXPECTED_KEYS = {"subscription", "positions", "completed_at", "emitted", "events"}


@dataclass(frozen=True)
class ExpectedRelation:
    """One expected relation; None is not compared. Omitted attributes are not compared either."""

    positions: tuple[int | str, ...] | None
    completed_at: int | str | None
    emitted: dict[str, Any] | None
    events: tuple[dict[str, Any], ...] | None


@dataclass(frozen=True)
class RuleTest:
    """`expect`: for each subscription named, its relations in order, or only their number. `nothing`: none at all."""

    name: str
    events: tuple[Any, ...]
    until: Any
    expect: dict[str, int | tuple[ExpectedRelation, ...]]
    nothing: bool
    error: str | None


@dataclass(frozen=True)
class RuleTestFile:
    path: Path
    rules: Path
    tests: tuple[RuleTest, ...]


def find(paths: tuple[str, ...]) -> list[Path]:
    """The test files: those named, those beside a rule file named, and all below a directory."""
    found: list[Path] = []
    for each in map(Path, paths):
        if each.is_dir():
            inside = sorted(path for ending in ENDINGS for path in each.rglob(f"*{ending}"))
            found += inside or _none(each, "the directory has no rule tests")
        elif each.name.endswith(ENDING):
            beside = [path for ending in ENDINGS if (path := each.with_name(each.stem + ending)).exists()]
            found += beside or _none(each, "there are no tests beside these rules")
        else:
            found.append(each)
    return list(dict.fromkeys(found))


def _none(path: Path, problem: str) -> list[Path]:
    raise UsageError("A201", problem, fix="write them in NAME.test.yaml beside NAME.fl", place=str(path))


def load(path: Path) -> RuleTestFile:
    content = _content(path)
    _keys(content, FILE_KEYS, {"tests"}, str(path))
    tests = content["tests"]
    if not isinstance(tests, list) or not tests:
        raise UsageError("A202", "`tests` is not a list of tests", fix="- name: …\n  events: […]", place=str(path))
    return RuleTestFile(path, _rules(content, path), tuple(_test(each, number, path) for number, each in enumerate(tests, 1)))


def _content(path: Path) -> Any:
    form = FORMS.get(path.suffix)
    if form is None:
        raise UsageError("A202", "rule tests are YAML or TOML", fix="end it in .test.yaml or .test.toml", place=str(path))
    content = read_bytes(str(path), "the test file", LIMITS.text_bytes_max + 1)
    if len(content) > LIMITS.text_bytes_max:
        problem = f"the test file has more than {LIMITS.text_bytes_max:,} bytes"
        raise UsageError("A202", problem, fix="split it into several files", place=str(path))
    text = decoded(content, str(path))
    try:
        return toml_value(text) if form == "TOML" else yaml_value(text)
    except Malformed as error:
        raise UsageError(
            "A202", f"not valid {form}: {error.problem}", fix="see docs/cli.md", place=error.at(str(path))
        ) from None


def midnight(value: Any) -> Any:
    """YAML and TOML read 2026-01-31 as a date, which means its midnight where a time is asked for."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value


def _rules(content: dict[str, Any], path: Path) -> Path:
    if content.get("rules") is not None:
        return path.parent / str(content["rules"])
    ending = next((each for each in ENDINGS if path.name.endswith(each)), None)
    if ending is None:
        fix = "add `rules: NAME.fl`, or call the file NAME.test.yaml"
        raise UsageError("A202", "the file does not name the rules that it tests", fix=fix, place=str(path))
    return path.with_name(path.name.removesuffix(ending) + ENDING)


def _test(content: Any, number: int, path: Path) -> RuleTest:
    named = content.get("name") if isinstance(content, dict) else None
    place = f"{path}, test {number}" + (f" ({named})" if named else "")
    _keys(content, TEST_KEYS, {"events"}, place)
    if not isinstance(content["events"], list):
        raise UsageError("A202", "`events` is not a list", fix="- {type: …, …}", place=place)
    if ("expect" in content) == ("error" in content):
        raise UsageError("A202", "a test needs either `expect` or `error`", fix="see docs/cli.md", place=place)
    wanted = content.get("expect")
    expect = _by_subscription(wanted, place) if "expect" in content else {}
    name, error = str(named or f"test {number}"), content.get("error")
    return RuleTest(
        name,
        tuple(content["events"]),
        midnight(content.get("until")),
        expect,
        wanted == [],
        None if error is None else str(error),
    )


def _by_subscription(wanted: Any, place: str) -> dict[str, int | tuple[ExpectedRelation, ...]]:
    """A list of relations, each with its subscription; or for each subscription its relations or their number."""
    if isinstance(wanted, list):
        listed: dict[str, list[ExpectedRelation]] = {}
        for each in wanted:
            _keys(each, EXPECTED_KEYS, {"subscription"}, place)
            listed.setdefault(str(each["subscription"]), []).append(_expected(each, place))
        return {name: tuple(relations) for name, relations in listed.items()}
    if not isinstance(wanted, dict):
        fix = "a list of {subscription: …, positions: […]}, or a map such as {Rally: 2}"
        raise UsageError("A202", "`expect` is neither a list nor a map", fix=fix, place=place)
    found: dict[str, int | tuple[ExpectedRelation, ...]] = {}
    for name, value in wanted.items():
        if isinstance(value, int) and not isinstance(value, bool):
            found[str(name)] = value
            continue
        if not isinstance(value, list):
            raise UsageError("A202", f"`expect` of {name} is neither a number nor a list", fix="{Rally: 2}", place=place)
        for each in value:
            _keys(each, EXPECTED_KEYS, set(), place)
        found[str(name)] = tuple(_expected(each, place) for each in value)
    return found


def _expected(content: dict[str, Any], place: str) -> ExpectedRelation:
    positions, events, emitted = content.get("positions"), content.get("events"), content.get("emitted")
    if not isinstance(positions, list | None):
        raise UsageError("A202", "`positions` is not a list", fix="positions: [0, 1]", place=place)
    if not isinstance(emitted, dict | None):
        raise UsageError("A202", "`emitted` is not a map", fix="emitted: {gain: 2.0}", place=place)
    if events is not None and not (isinstance(events, list) and all(isinstance(each, dict) for each in events)):
        raise UsageError("A202", "`events` is not a list of maps", fix="events: [{type: …}, {value: 10.0}]", place=place)
    return ExpectedRelation(
        None if positions is None else tuple(positions),
        content.get("completed_at"),
        emitted,
        None if events is None else tuple(events),
    )


def _keys(content: Any, known: set[str], needed: set[str], place: str) -> None:
    if not isinstance(content, dict):
        raise UsageError("A202", f"expected a map with {', '.join(sorted(known))}", fix="see docs/cli.md", place=place)
    unknown = [str(key) for key in content if key not in known]
    if unknown:
        fix = f"use one of: {', '.join(sorted(known))}"
        raise UsageError("A202", f"the key {unknown[0]!r} is not allowed here", fix=fix, place=place)
    missing = sorted(needed - content.keys())
    if missing:
        raise UsageError("A202", f"the key {missing[0]!r} is missing", fix=f"add `{missing[0]}:`", place=place)
