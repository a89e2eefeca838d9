"""EMIT: derived types, and hierarchies of subscriptions."""

import pytest

from fairlead.language import compile_text
from fairlead.model.events.types import Kind
from fairlead.model.expressions.expression import Aggregate, Arithmetic, Field, Literal

from .sentences import plan, refused, refused_in


def emitted(rule):
    return plan(f"SUBSCRIPTION S MATCH {rule}").types["X"]


def fields(rule):
    return [dict(each.emission.fields) for each in plan(f"SUBSCRIPTION S MATCH {rule}").subscriptions[0].branches]


def test_a_derived_type_has_the_types_of_its_expressions():
    found = emitted(
        "Order o AND Trade t[2] EMIT X(who = o.user, total = sum(t.value), n = count(t), twice = o.price + o.price)"
    )
    assert str(found) == "TYPE X (who STRING, total DOUBLE, n BIGINT, twice DECIMAL(38,2)) TIME of its members"
    assert found.derived


def test_it_has_its_members_time_if_all_have_one():
    assert emitted("Order o EMIT X(a = 1)").implicit_time
    assert not emitted("Order o AND Note n EMIT X(a = 1)").timed
    assert not emitted("Order o OR Note n EMIT X(a = 1)").timed


def test_it_may_name_a_time_of_its_own():
    found = emitted("Order o AND Note n EMIT X(moment = o.at + 1 HOUR) TIME moment")
    assert (found.time_attribute, found.implicit_time) == ("moment", False)


def test_what_a_branch_does_not_have_is_null_there():
    first, second = fields(
        "Order o OR Trade t[2] EMIT X(a = o.user, b = t[2].value + 1, c = count(t), d = sum(t.size), e = ticker)"
    )
    assert first == {
        "a": Field(0, "user", Kind.STRING),
        "b": Arithmetic("+", Literal(None, Kind.DOUBLE), Literal(1, Kind.INT), Kind.DOUBLE),
        "c": Literal(0, Kind.BIGINT),
        "d": Literal(None, Kind.BIGINT),
        "e": Literal(None, Kind.STRING),
    }
    assert second["a"] == Literal(None, Kind.STRING)
    assert second["c"] == Aggregate("count", (0, 1), None, Kind.BIGINT)


def test_numbers_of_the_branches_widen_to_one_type():
    first, second = fields("Order x OR Trade x EMIT X(size = x.size)")
    assert first["size"].kind is second["size"].kind is Kind.BIGINT


def test_other_subscriptions_use_a_derived_type_before_or_after_it_in_the_text():
    text = """
    SUBSCRIPTION Late MATCH Big b[2] WITHIN 1 HOUR EMIT Two(id = b[1].id)
    SUBSCRIPTION Last MATCH Two t WHERE t.id = 'x'
    SUBSCRIPTION Early MATCH Order o EMIT Big(id = o.id)
    """
    found = plan(text)
    assert [each.name for each in found.subscriptions] == ["Late", "Last", "Early"]
    assert [each.name for each in found.types][-2:] == ["Two", "Big"]
    assert [each.name for each in found.types if each.derived] == ["Two", "Big"]


def test_a_digest_covers_what_is_upstream():
    text = "SUBSCRIPTION A MATCH Order o WHERE o.size > {} EMIT Big(id = o.id) SUBSCRIPTION B MATCH Big b"
    assert plan(text.format(1))["B"].digest != plan(text.format(2))["B"].digest
    assert plan(text.format(1))["B"].digest == plan(text.format(1).replace(" o", " x").replace("o.", "x."))["B"].digest


def test_two_subscriptions_may_emit_one_type_with_the_same_attributes():
    text = (
        "SUBSCRIPTION A MATCH Order o EMIT X(id = o.id, n = o.size) SUBSCRIPTION B MATCH Note n EMIT X(n = n.code, id = n.id)"
    )
    found = plan(text)
    assert [name for name, _ in found["B"].branches[0].emission.fields] == ["id", "n"]
    assert not found.types["X"].timed  # a Note has no time


def test_a_declared_type_may_be_emitted_and_is_derived_then():
    text = """TYPE Alert (id STRING, size BIGINT, value DOUBLE, price DECIMAL(12,2), at TIMESTAMP) TIME at
    EVENT UNION Signals = Alert + Trade
    SUBSCRIPTION S MATCH Order o EMIT Alert(at = o.at, id = o.id, size = o.size, value = o.size, price = 1.5)
    SUBSCRIPTION R MATCH Signals s"""
    found = plan(text)
    assert found.types["Alert"].derived
    assert "Alert" not in found.input_types
    assert [name for name, _ in found["S"].branches[0].emission.fields] == ["id", "size", "value", "price", "at"]
    kinds = [value.kind for _, value in found["S"].branches[0].emission.fields]
    assert kinds[1:4] == [Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL]


def test_a_declared_type_without_time_takes_the_time_of_its_members():
    timed = "TYPE Alert (id STRING) SUBSCRIPTION S MATCH Order o EMIT Alert(id = o.id)"
    assert plan(timed).types["Alert"].implicit_time
    mixed = f"{timed} SUBSCRIPTION T MATCH Note n EMIT Alert(id = n.id)"
    assert not plan(mixed).types["Alert"].implicit_time
    untimed_first = timed.replace("SUBSCRIPTION", "SUBSCRIPTION T MATCH Note n EMIT Alert(id = n.id) SUBSCRIPTION")
    assert not plan(untimed_first).types["Alert"].implicit_time
    union = f"{timed} EVENT UNION U = Alert + Order SUBSCRIPTION R MATCH U u WITHIN 1 HOUR"
    assert plan(union).types["U"].timed


def test_an_emission_may_be_empty():
    assert emitted("Order o EMIT X()").attributes == ()


@pytest.mark.parametrize(
    ("code", "marked", "fix"),
    [
        ("L013", "Order o EMIT X(a = 1, «a» = 2)", "another name"),
        ("L014", "Order o EMIT X(«type» = 1)", "type_"),
        ("L012", "Order o EMIT X(a = o.«usr»)", "did you mean 'user'?"),
        ("L012", "Order o EMIT Note(id = o.id, «cod» = 1, body = NULL)", "did you mean 'code'?"),
        ("L016", "Order o EMIT X(a = 1) TIME «a»", "TIMESTAMP"),
        ("L016", "Order o EMIT X(a = o.at) TIME «b»", "name a"),
        ("L060", "Order o EMIT X(a = «NULL»)", "declare the emitted TYPE"),
        ("L061", "Order o EMIT «Note»(id = o.id, code = 1)", "add body"),
        ("L061", "Order o EMIT Note(id = o.id, code = «1.5», body = NULL)", "declare code DOUBLE"),
        ("L061", "Order o EMIT Note(id = «o.size», code = 1, body = NULL)", "declare id INT"),
        ("L061", "Order o EMIT Note(id = o.id, code = 1, body = NULL) TIME «id»", "leave out TIME"),
        ("L064", "Order o EMIT «Flow»(id = o.id)", "another type name"),
        ("L064", "Order o EMIT «Heartbeat»(at = o.at)", "another type name"),
        ("L035", "Order o EMIT X(a = «o»)", "o.id"),
        ("L034", "Order o WITHOUT Trade t WITHIN 1 DAY OF o EMIT X(a = «t».id)", "WITHOUT"),
    ],
)
def test_a_wrong_emission_is_refused_at_its_place(code, marked, fix):
    refused_in(code, marked, fix)


def test_branches_that_disagree_on_a_type_are_refused():
    types = "TYPE A (v INT) TYPE B (v STRING) "
    refused("L061", "SUBSCRIPTION S MATCH A x OR B x EMIT X(a = «x.v»)", "different name", types=types)


def test_two_emitters_that_disagree_are_refused():
    marked = "SUBSCRIPTION A MATCH Order o EMIT X(a = 1) SUBSCRIPTION B MATCH Order o EMIT «X»(a = 'x')"
    assert "(a INT)" in refused("L061", marked, "same attributes").problem


def test_a_decimal_that_needs_more_places_than_declared_is_refused():
    refused("L061", "TYPE P (p DECIMAL(10,2)) SUBSCRIPTION S MATCH Order o EMIT P(p = «o.price * o.price»)", "declare p")


def test_a_cycle_is_refused_and_printed():
    marked = "SUBSCRIPTION A MATCH Order o OR Loud l «EMIT Big(id = o.id)»\nSUBSCRIPTION B MATCH Big b EMIT Loud(id = b.id)"
    error = refused("L063", marked, "none of them reads")
    assert "A -> Big -> B -> Loud -> A" in error.problem
    assert "S -> Big -> S" in refused("L063", "SUBSCRIPTION S MATCH Big b «EMIT Big(id = b.id)»").problem


def test_a_cycle_through_a_supertype_or_union_is_found():
    refused("L063", "SUBSCRIPTION S MATCH Trade t «EMIT BlockTrade(id = t.id)»")
    refused("L063", "SUBSCRIPTION S MATCH Flow t «EMIT Order(id = t.id)»")


def test_a_long_chain_is_no_cycle():
    links = "\n".join(f"SUBSCRIPTION S{n} MATCH T{n + 1} t EMIT T{n}(a = t.a)" for n in range(1100))
    assert len(compile_text(f"TYPE T1100 (a INT)\n{links}").subscriptions) == 1100
