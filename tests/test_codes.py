"""One registry of codes: everything raised is listed, everything listed is raised, one code has one meaning."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.error_codes import CODES, KINDS
from fairlead.errors import DataError, FairleadError, FairleadWarning, InvariantError
from fairlead.model.limits import LIMITS
from fairlead.model.lint_warning import LintWarning
from fairlead.model.relations.identity import POSITIONS_MAX
from fairlead.testing import error_page
from tests.root import ROOT
from tests.source_trees import modules, nodes_of

HOME = ROOT / "src" / "fairlead"
REGISTRY = HOME / "error_codes.py"
ERRORS = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, FairleadError)}
MADE_OF = {**{kind: letter for letter, (kind, _) in KINDS.items()}, "Fault": "L", "LintFinding": "W", "LintWarning": "W"}
"""What is made with a code, and the letter that such codes begin with."""
SHARED = {
    "A101", "A103", "A210", "A211", "A217", "A218", "A219", "A250", "A251", "A264", "N001", "N003", "N007", "S110", "U110",
    "W102",
}  # fmt: skip
"""Codes that several parts of the code raise, each of them with the meaning that is registered. Of D and L, most are."""
NUMBERS = {
    "L003": LIMITS.text_bytes_max, "L004": LIMITS.nesting_max, "L005": LIMITS.dnf_terms_max, "L022": LIMITS.instances_max,
    "D007": LIMITS.event_bytes_max, "D023": POSITIONS_MAX - 1, "U003": LIMITS.copies_max,
}  # fmt: skip
UNTESTED = {"A223", "N040", "S132", "X004"}
"""Codes that no other test names, though it may raise them. None is to be added."""
CODE = re.compile(r"[LDSNUAXW]\d{3}\b")
QUOTED = re.compile(rf"""["'}}]{CODE.pattern}""")
"""Only what has it is parsed."""


@cache
def mentioned() -> tuple[tuple[str, Path, ast.AST], ...]:
    return tuple(_mentioned())


def _mentioned() -> Iterator[tuple[str, Path, ast.AST]]:
    """Every code that a text of the source is or begins with, and the node around it: not docstrings, not the registry."""
    for path in modules():
        if path == REGISTRY or not QUOTED.search(path.read_text("utf-8")):
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Expr):
                continue
            for each in ast.iter_child_nodes(node):
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and CODE.match(each.value):
                    yield each.value[:4], path, node


def part_of(path: Path) -> str:
    inside = path.relative_to(HOME).parts
    return "/".join(inside[: 2 if inside[0] == "runtime" and len(inside) > 2 else 1])


@cache
def raised() -> list[tuple[str, Path, ast.AST]]:
    """Looking for a code, or mapping it to something else, raises nothing. All else is made an error, now or by a helper."""
    return [(code, path, node) for code, path, node in mentioned() if not isinstance(node, ast.Compare | ast.Dict | ast.Set)]


def test_every_code_that_is_raised_or_looked_for_is_registered() -> None:
    assert sorted({(code, str(path)) for code, path, _ in mentioned() if code not in CODES}) == []


def test_every_registered_code_is_raised() -> None:
    assert sorted(CODES.keys() - {code for code, _, _ in raised()}) == []


def test_every_code_is_named_by_a_test() -> None:
    files = [each for each in sorted((ROOT / "tests").rglob("*.py")) if each != Path(__file__)]
    files += sorted((ROOT / "conformance").glob("*.yaml"))
    tested = {code for each in files for code in re.findall(r"(?<!\w)[LDSNUAXW]\d{3}\b", each.read_text("utf-8"))}
    assert CODES.keys() - tested == UNTESTED


def test_no_code_is_registered_twice() -> None:
    keys = [
        key.value
        for node in ast.walk(ast.parse(REGISTRY.read_text("utf-8")))
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    ]
    assert sorted({key for key in keys if keys.count(key) > 1}) == []
    assert keys == [*KINDS, *CODES]


def test_the_registry_stands_in_order() -> None:
    assert list(CODES) == sorted(CODES, key=lambda code: (list(KINDS).index(code[0]), code))


@pytest.mark.parametrize("code", CODES)
def test_a_meaning_is_one_sentence_of_its_own(code: str) -> None:
    meaning, remedy = CODES[code]
    assert CODE.fullmatch(code)
    assert meaning.endswith(".")
    assert ". " not in meaning
    assert meaning[0] in "`" or meaning[0].isupper() or meaning.split()[0] in ("pyspark", "pandas", "nats-server")
    assert remedy.endswith((".", "`"))
    assert [other for other in CODES if CODES[other][0] == meaning] == [code]
    assert not re.search(r"cannot be\b|unless said|is told|goes on|\bmend", meaning + remedy)


@pytest.mark.parametrize("code", NUMBERS)
def test_a_meaning_has_the_limits_as_they_are(code: str) -> None:
    assert re.search(rf"(?<![\d,]){NUMBERS[code]:,}(?![\d,])", CODES[code][0])


def test_the_letter_of_a_code_is_that_of_its_error() -> None:
    made = [
        (node.func.id, code)
        for code, _, node in raised()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MADE_OF
    ]
    assert len(made) > 400
    assert [(name, code) for name, code in made if code[0] != MADE_OF[name]] == []


def test_every_class_of_errors_has_a_letter() -> None:
    assert ERRORS - {"FairleadError"} | {"FairleadWarning"} == {kind for kind, _ in KINDS.values()}


def test_a_code_belongs_to_one_part_or_is_shared_on_purpose() -> None:
    parts: dict[str, set[str]] = {}
    for code, path, _ in raised():
        parts.setdefault(code, set()).add(part_of(path))
    several = {code for code, found in parts.items() if len(found) > 1 and code[0] not in "DL"}
    assert several == SHARED


@pytest.mark.parametrize(
    "make",
    [
        lambda code: DataError(code, "a problem"),
        lambda code: FairleadError(code, "a problem"),
        lambda code: FairleadWarning(code, "a problem", "a fix"),
        lambda code: LintWarning(code, "a problem", "a fix"),
    ],
)
@pytest.mark.parametrize("code", ["D999", "", "d001", "D0010"])
def test_no_error_or_warning_has_a_code_that_is_not_registered(make, code: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvariantError, match=f"^X001 the code of an error is listed in error_codes.py .code={code!r}"):
        make(code)


def test_the_page_is_made_from_the_registry() -> None:
    assert (ROOT / "docs" / "errors.md").read_text("utf-8") == error_page.page(), "run `make errors`"


def test_the_page_has_an_anchor_for_every_code() -> None:
    anchors = re.findall(r'<a id="([a-z]\d{3})"></a>', error_page.page())
    assert anchors == [code.lower() for code in CODES]


def test_documentation_names_registered_codes_only() -> None:
    pages = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")] + sorted(ROOT.glob("docs/*.md"))
    found = {
        (code, page.name) for page in pages for code in re.findall(r"(?<![=\w])[LDSNUAXW]\d{3}\b", page.read_text("utf-8"))
    }
    assert sorted((code, name) for code, name in found if code not in CODES) == []
