"""One place for a clause: how many files know it, that the page says which, and that a clause nobody knows runs all the same.

What is counted, for each clause: the modules of the package that mention it by an identifier (a class of its module in
model/clauses/, a word for it, an import of its module) or by its keyword in a text for people, and the grammar. Docstrings and
comments do not count, nor rules that a module runs, nor what is generated (tables.json).

Before clauses answered for themselves, WITHOUT was in 48 files by this measure, and under the name `negated` in 6 more, THEN
in 27.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass as frozen
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest

from fairlead.dataclass import dataclass
from fairlead.engine import Engine
from fairlead.explanation import explain
from fairlead.guarantees.shape import links
from fairlead.language import compile_text
from fairlead.language.parsing.keywords import ALL_KEYWORDS, CLAUSE_KEYWORDS
from fairlead.model.clauses.clause import Clause, NotingClause, Pair
from fairlead.model.expressions.expression import Predicate
from fairlead.model.plans.plan import Plan
from fairlead.testing.properties.clauses import CHECKS
from fairlead.transport.admission.records import RecordReader
from tests.root import ROOT
from tests.source_trees import HOME, modules, nodes_of, tree_of

GRAMMAR = HOME / "language" / "parsing" / "grammar.lark"
FILES_MAX = 11
RULE = re.compile(r"\s*SUBSCRIPTION \w+ MATCH ")
"""Rules that a module runs say nothing about a clause."""


@frozen(frozen=True)
class Words:
    keyword: str
    identifiers: str
    """Beside the names of its classes."""

    @property
    def module(self) -> str:
        return self.keyword.lower()

    @property
    def classes(self) -> set[str]:
        return {
            each.name
            for each in tree_of(HOME / "model" / "clauses" / f"{self.module}.py").body
            if isinstance(each, ast.ClassDef)
        }


CLAUSES = (
    Words("WITHOUT", r"negation|(?-i:[Aa]bsen[ct]|ABSENCE)|^_?withouts$|^without[A-Z_]?(between|within|node)"),
    Words("THEN", r"preceden|^inorder$|^then(node|clause)"),
)


@cache
def words_of(path: Path) -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
    """Of a module: its identifiers; the parts of the names that it imports, and of their modules; its texts, not docstrings."""
    identifiers, imported, texts = set[str](), set[str](), list[ast.Constant]()
    documented: set[int] = set()
    for node in nodes_of(path):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                identifiers.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                identifiers.add(name)
            case ast.keyword(arg=str() as name):
                identifiers.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                of_module = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
                imported.update(of_module, *(each.name.split(".") for each in names))
            case ast.Expr(value=value):
                documented.add(id(value))
            case ast.Constant(value=str()):
                texts.append(node)
    plain = tuple(str(each.value) for each in texts if id(each) not in documented)
    return frozenset(identifiers), frozenset(imported), plain


def files_of(clause: Words) -> set[str]:
    found = {str(GRAMMAR.relative_to(HOME))} if re.search(rf"\b_?{clause.keyword}\b", GRAMMAR.read_text("utf-8")) else set()
    pattern, keyword = re.compile(clause.identifiers, re.IGNORECASE), re.compile(rf"\b{clause.keyword}\b")
    classes = clause.classes
    for path in modules():
        identifiers, imported, texts = words_of(path)
        known = any(each in classes or pattern.search(each) for each in identifiers | imported)
        told = (each for each in texts if not RULE.match(each))
        if known or clause.module in imported or any(map(keyword.search, told)):
            found.add(str(path.relative_to(HOME)))
    return found


OF_CASE = {"model/expressions/expression.py", "language/parsing/complaint.py"}
"""Their THEN is that of CASE WHEN."""
FACADES = {"language/parsing/syntax/__init__.py"}
"""They list the names of all nodes, and know nothing of any."""


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda each: each.keyword)
def test_few_files_know_a_clause_and_the_page_says_which(clause: Words) -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("## How to add a clause")[1].split("\n## ")[0]
    rows = [line for line in page.splitlines() if re.search(rf"\| *{clause.keyword}|\| both", line)]
    listed = {path for row in rows for path in re.findall(r"`([\w/]+\.(?:py|lark))`", row)}
    assert files_of(clause) - OF_CASE - FACADES == listed
    assert len(listed) <= FILES_MAX


def test_the_keywords_for_messages_are_those_of_the_grammar() -> None:
    tables = json.loads((HOME / "language" / "parsing" / "tables.json").read_text("utf-8"))
    marked = {each for each in tables["signs"] if each.startswith("_")}  # keywords only with what follows them
    words = {each.lstrip("_").replace("_", " ") for each in {*tables["words"], *marked}} - {"NAME", "ANY", "COLON"}
    words.discard("WITHIN STEP")  # WITHIN, where OF PREVIOUS follows
    assert words == set(ALL_KEYWORDS)
    assert set(CLAUSE_KEYWORDS) < set(ALL_KEYWORDS)


def test_the_checkers_know_every_clause() -> None:
    def final(kind: type[Clause]) -> Iterator[type[Clause]]:
        below = kind.__subclasses__()
        if not below and kind.__module__.startswith("fairlead."):
            yield kind
        for each in below:
            yield from final(each)

    assert set(CHECKS) == set(final(Clause))


# A clause that no layer knows

TYPES = "\n".join(f"TYPE {name} (k INT, x INT, at TIMESTAMP) TIME at" for name in "ABC")


@dataclass(frozen=True)
class Enclosed(Clause):
    """The member `inner` stands between the two others."""

    word = "enclosed"

    first: int
    inner: int
    last: int

    @property
    def anchors(self) -> tuple[int, ...]:
        return (self.first, self.inner, self.last)

    @property
    def orders(self) -> tuple[Pair, ...]:
        return ((self.first, self.inner), (self.inner, self.last))

    @property
    def line(self) -> str:
        return f"enclosed {self.first} {self.inner} {self.last}"

    def words(self, names: Sequence[str]) -> str:
        return f"{names[self.inner]} ENCLOSED"

    def explained(self, names: Sequence[str]) -> str:
        return f"{names[self.inner]} between {names[self.first]} and {names[self.last]}"


@dataclass(frozen=True)
class Quiet(NotingClause):
    """No event of the type after a member: before another one, or for a time."""

    word = "quiet"

    alias: str
    type: str
    slot: int
    start: int
    end: int | None
    length_us: int = 0
    predicates: tuple[Predicate, ...] = ()

    @property
    def since(self) -> int:
        return self.start

    @property
    def until(self) -> int | None:
        return self.end

    @property
    def apart_us(self) -> int:
        return self.length_us

    @property
    def line(self) -> str:
        return f"quiet {self.type} {self.start} {self.end} {self.length_us}"

    def words(self, names: Sequence[str]) -> str:
        return f"QUIET {self.type}"

    def explained(self, names: Sequence[str]) -> str:
        return f"{self.type} after {names[self.start]}"


def quiet(plan: Plan, *reach: int | None) -> Quiet:
    """With the condition that the plan's own clause has."""
    (mine,) = plan.subscriptions[0].branches[0].noting
    return Quiet("c", "C", mine.slot, *reach, predicates=mine.predicates)  # type: ignore[arg-type, misc]


UNKNOWN: dict[str, tuple[str, Callable[[Plan], Clause]]] = {
    "an order": ("MATCH A a THEN B b THEN C c PER k", lambda plan: Enclosed(0, 1, 2)),
    "noted between members": ("MATCH A a AND B b PER k WITHOUT C c BETWEEN a AND b", lambda plan: quiet(plan, 0, 1)),
    "noted, with a condition": (
        "MATCH A a AND B b WITHOUT C c BETWEEN a AND b WHERE c.x > a.x",
        lambda plan: quiet(plan, 0, 1),
    ),
    "noted until a time": (
        "MATCH A a PER k WITHOUT C c WITHIN 3 SECONDS OF a",
        lambda plan: quiet(plan, 0, None, 3_000_000),
    ),
}
"""A clause of the language, and one that nobody knows and that asks for the same."""


def happenings(seed: int) -> list[dict[str, object]]:
    draw, time = Random(seed), 0
    made: list[dict[str, object]] = []
    for _ in range(60):
        time += draw.choice((0, 1, 1, 2))
        at = f"2026-01-01T00:{time // 60:02}:{time % 60:02}Z"
        made.append({"type": draw.choice("AABBC"), "k": draw.randint(1, 2), "x": draw.randint(0, 3), "at": at})
    return made


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_clause_that_no_layer_knows_runs_on_both_lanes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answers are all that matchers, states, guarantees, costs and explanations need."""
    monkeypatch.setenv("FAIRLEAD_JIT", "0")
    text, made = UNKNOWN[name]
    known = compile_text(f"{TYPES}\nSUBSCRIPTION S {text}")
    subscription, branch = known.subscriptions[0], known.subscriptions[0].branches[0]
    unknown = replace(branch, clauses=(made(known),))
    plan = replace(known, subscriptions=(replace(subscription, branches=(unknown,)),))
    expected, plain, fast = Engine(known, kernels_from=None), Engine(plan, kernels_from=None), Engine(plan, kernels_from=0)
    count = 0
    for columns in RecordReader(known.catalogue).read(happenings(3)):
        wanted = [each.id for event in columns.events(plan.catalogue) for each in expected.arrive(event)]
        assert [each.id for event in columns.events(plan.catalogue) for each in plain.arrive(event)] == wanted
        assert [each.id for each in fast.feed(columns)] == wanted
        count += len(wanted)
    assert count > 3
    assert plain.dump() == fast.dump() == expected.dump()
    assert set().union(*links(unknown)) == set().union(*links(branch))
    assert unknown.clauses[0].explained(unknown.alias_names()) in str(explain(plan))
