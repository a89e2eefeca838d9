"""Tables in patterns: their elements are read, and nothing else happens to them.

Takes: a subscription as written, its branches and their members. Gives: the branches with their tables, or a `Fault`.
Never: looks at a condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fairlead.language.checking.pattern import BranchPattern
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Fault
from fairlead.model.events.types import Catalogue
from fairlead.model.plans.plan import Branch


def with_tables(
    node: syntax.Subscription, branches: tuple[Branch, ...], shapes: Sequence[BranchPattern], catalogue: Catalogue
) -> tuple[Branch, ...]:
    tables = {word.text for word in node.reads if catalogue[word.text].table}
    if not tables:
        return branches
    for word, clause in _named(node):
        if word.text in tables:
            problem = f"{clause} names the table '{word.text}'"
            raise Fault("L124", word.span, problem, f"name {catalogue[word.text].members[0]}: tables are read by MATCH alone")
    for shape in shapes:
        _check(node, shape, tables)
    return tuple(
        replace(branch, tables=tuple((name, catalogue[name].table) for name in branch.queue_types if name in tables))
        for branch in branches
    )


def _named(node: syntax.Subscription) -> Iterator[tuple[syntax.Word, str]]:
    yield from ((word, clause.word) for clause in node.clauses for word in clause.reads)


def _check(node: syntax.Subscription, shape: BranchPattern, tables: set[str]) -> None:
    """Something arrives; what is read is one event, and no clause says what becomes of it."""
    if all(each.type.text in tables for each in shape.nodes):
        fix = "add the event for which the table is read: MATCH Order o AND " + shape.nodes[0].type.text
        raise Fault("L124", shape.nodes[0].span, "the pattern has tables only, which complete nothing", fix)
    for each in shape.nodes:
        if each.type.text in tables and each.repeat:
            problem = f"'{each.type.text}' is a table, and '{each.alias.text}' a run"
            raise Fault("L124", each.repeat.span, problem, "read its rows one by one, or write a run of the type itself")
    aliases = {each.alias.text for each in shape.nodes if each.type.text in tables}
    for clause in node.clauses:
        for word in _stays(clause):
            if word.text in aliases:
                problem = f"{clause.word} names '{word.text}', which is of a table"
                raise Fault("L124", word.span, problem, "leave it out: an event stays in a table until one with its key comes")


def _stays(clause: syntax.Clause) -> tuple[syntax.Word, ...]:
    match clause:
        case syntax.Keeping():
            return clause.aliases
        case syntax.Retaining():
            return tuple(each.alias for each in clause.bounds)
        case syntax.DisposalClause(upto=syntax.Word() as word):
            return (word,)
    return ()
