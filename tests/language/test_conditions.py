"""Conditions: NOT pushed down, conjuncts split, disjunctive normal form, three-valued logic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import LanguageError
from fairlead.language.checking.typing.conditions import normal_form
from fairlead.language.checking.typing.expressions import formula
from fairlead.language.checking.typing.scope import AliasMember, Scope
from fairlead.language.parsing import syntax
from fairlead.language.parsing.fault import Span
from fairlead.language.parsing.parser import parse
from fairlead.model.events.types import Attribute, DataType, EventType, Kind
from fairlead.model.expressions.expression import Compare, IsNull, Literal, Logic, Truth

from .sentences import condition, refused_in, refused_where, subscription

NAMES = ("a", "b", "c", "d")
FACTS = EventType("Facts", tuple(Attribute(name, DataType(Kind.BOOLEAN)) for name in NAMES))
SCOPE = Scope({"f": AliasMember("f", FACTS, (0,))})


def texts(rule):
    return [each.text for each in condition(rule).predicates]


def shapes(rule):
    return [[len(term) for term in each.condition.terms] for each in condition(rule).predicates]


def test_top_level_ands_are_predicates():
    assert texts("o.size > 1 AND (o.urgent AND t[1].size > 2) AND (o.size = 1 OR o.size = 9)") == [
        "o.size > 1",
        "o.urgent",
        "t[1].size > 2",
        "o.size = 1 OR o.size = 9",
    ]


def test_a_predicate_knows_the_slots_that_it_reads():
    found = condition("t[3].size > o.size OR t[1].size = 1 AND sum(t.size) > 2").predicates
    assert [each.slots for each in found] == [(0, 1, 2, 3)]
    assert condition("o.size > 1").predicates[0].is_unary


def test_not_is_pushed_down_to_the_atoms_and_splits_what_it_turns_into_and():
    found = condition("NOT (o.size < 3 OR o.id IS NULL OR o.urgent)").predicates
    atoms = [each.condition.terms[0][0] for each in found]
    assert isinstance(atoms[0], Compare)
    assert atoms[0].operator == ">="
    assert isinstance(atoms[1], IsNull)
    assert isinstance(atoms[2], Truth)
    assert (atoms[1].negated, atoms[2].negated) == (True, True)
    assert [each.text for each in found] == ["NOT (o.size < 3)", "NOT (o.id IS NULL)", "NOT (o.urgent)"]


def test_between_takes_the_next_and_and_is_one_predicate():
    assert texts("o.size BETWEEN 1 AND 5 AND o.urgent") == ["o.size BETWEEN 1 AND 5", "o.urgent"]
    assert shapes("o.size BETWEEN 1 AND 5") == [[2]]
    assert shapes("o.size NOT BETWEEN 1 AND 5") == [[1, 1]]
    assert shapes("NOT (o.size NOT BETWEEN 1 AND 5)") == [[2]]


def test_or_binds_looser_than_and_and_not_tightest():
    assert shapes("o.urgent OR o.size = 1 AND o.size = 2") == [[1, 2]]
    assert shapes("NOT o.urgent OR o.size = 1") == [[1, 1]]
    assert shapes("(o.size = 1 OR o.size = 2) AND (o.size = 3 OR o.size = 4) OR o.urgent") == [[2, 2, 2, 2, 1]]


def test_an_atom_or_a_term_that_is_said_twice_counts_once():
    assert shapes("(o.urgent AND o.urgent) OR (o.urgent AND o.urgent)") == [[1]]


def test_text_is_shown_on_one_line_without_comments():
    assert texts("o.id = 'a  -- b' -- first\n   OR /* second */\n\to.urgent") == ["o.id = 'a  -- b' OR o.urgent"]


def test_a_predicate_belongs_to_every_branch_that_has_its_names():
    found = subscription("Order o OR Trade t OR (Order o AND Trade t) WHERE o.size > 1 AND t.size > 2 AND 1 = 1 AND urgent")
    assert [[each.text for each in found.branches[at].predicates] for at in found.in_text_order] == [
        ["o.size > 1", "1 = 1", "urgent"],
        ["t.size > 2", "1 = 1"],
        ["o.size > 1", "t.size > 2", "1 = 1", "urgent"],
    ]


def test_a_predicate_that_no_single_branch_can_decide_is_refused():
    refused_in("L033", "Order o OR Trade t WHERE «o.size > t.size»", "per branch")
    refused_in("L030", "Order o OR Trade t WHERE o.size > «x».size", "known are")
    refused_in("L012", "Order x OR Trade x WHERE x.«value» > 1", "it has")


def test_a_condition_that_explodes_is_refused():
    eight = " AND ".join(f"(o.size = {n} OR o.size = -{n})" for n in range(1, 9))
    assert [len(each) for each in shapes(f"({eight}) AND o.urgent")] == [2] * 8 + [1]
    assert [len(each) for each in shapes(f"NOT NOT ({eight} AND FALSE)")] == [2] * 8 + [1]
    across = eight.replace("= -", "= t.size - ")
    refused_where("L005", f"«o.urgent OR ({across})»", "IN")


def test_a_condition_on_one_event_keeps_its_form_where_it_would_explode():
    """It is one atom, evaluated as it is written."""
    eight = " AND ".join(f"(o.size = {n} OR o.size = -{n})" for n in range(1, 9))
    assert [len(each) for each in shapes(f"o.urgent OR ({eight})")] == [1]


def test_nesting_that_is_too_deep_is_refused():
    assert condition("(" * 60 + "o.urgent" + ")" * 60).predicates
    for hostile in ("(" * 10_000 + "o.urgent" + ")" * 10_000, "NOT " * 10_000 + "o.urgent", "o.size" + "+ 1" * 10_000 + " > 2"):
        with pytest.raises(LanguageError, match="L004"):
            condition(hostile)


# --- the normal form against the formula as written, under three-valued logic

atoms = st.sampled_from(NAMES)
formulas = st.recursive(
    atoms,
    lambda inner: st.one_of(
        inner.map(lambda x: f"NOT ({x})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda xs: "(" + " AND ".join(xs) + ")"),
        st.lists(inner, min_size=2, max_size=3).map(lambda xs: "(" + " OR ".join(xs) + ")"),
        st.sampled_from(NAMES).map(lambda x: f"{x} = TRUE"),
        st.sampled_from(NAMES).map(lambda x: f"{x} NOT BETWEEN FALSE AND TRUE"),
    ),
    max_leaves=10,
)
worlds = st.fixed_dictionaries({name: st.sampled_from([True, False, None]) for name in NAMES})


def invert(value):
    return None if value is None else not value


def every(values):
    found = list(values)
    return False if False in found else None if None in found else True


def some(values):
    return invert(every(invert(each) for each in values))


def as_written(node, world):
    match node:
        case syntax.Reference():
            return world[node.head.text]
        case syntax.Not():
            return invert(as_written(node.operand, world))
        case syntax.And():
            return every(as_written(part, world) for part in node.parts)
        case syntax.Or():
            return some(as_written(part, world) for part in node.parts)
        case syntax.Compare():
            return as_written(node.left, world)  # … = TRUE
        case syntax.Between():
            value = as_written(node.operand, world)
            return None if value is None else False  # every truth lies between FALSE and TRUE
    raise AssertionError(node)


def truth(atom, world):
    match atom:
        case Truth(operand=Logic()):  # more terms than the limit: as it was
            join = every if atom.operand.operator == "AND" else some
            return join(truth(part if not isinstance(part, Logic) else Truth(part), world) for part in atom.operand.operands)
        case Truth():
            value = world[atom.operand.attribute]
            return invert(value) if atom.negated else value
        case Compare(operator, left, Literal(value)):
            known = world[left.attribute]
            if known is None:
                return None
            return {"=": known == value, "!=": known != value, "<": known < value, ">": known > value}.get(
                operator, known >= value if operator == ">=" else known <= value
            )
    raise AssertionError(atom)


@given(formulas, worlds)
def test_the_normal_form_is_the_formula_it_came_from_in_three_valued_logic(text, world):
    node = parse(f"SUBSCRIPTION S MATCH Facts f WHERE {text}").subscriptions[0].clauses[0].condition
    typed = formula(node, SCOPE)
    assert no_not_above_atoms(typed)
    found = normal_form(typed, Span(0, 1))
    assert some(every(truth(atom, world) for atom in term) for term in found.terms) is as_written(node, world)


def no_not_above_atoms(found):
    return all(map(no_not_above_atoms, found.parts)) if isinstance(found, Logic) else found.kind is Kind.BOOLEAN
