"""MATCH: elements, AND, THEN, OR."""

import pytest

from fairlead.model.clauses.then import Precedence
from fairlead.model.plans.pattern import Slot

from .sentences import branch, refused_in, subscription


def names(found):
    return [f"{slot.type}[{slot.instance}]={slot.alias}[{slot.alias_index}]" for slot in found.slots]


def test_the_signature_is_sorted_by_type_and_numbered_in_the_order_of_the_text():
    found = branch("Trade y AND Order o AND Trade z[2]")
    assert names(found) == ["Order[1]=o[1]", "Trade[1]=y[1]", "Trade[2]=z[1]", "Trade[3]=z[2]"]
    assert [each.alias for each in found.elements] == ["y", "o", "z"]


def test_the_alias_defaults_to_the_name_of_the_type_and_as_is_optional():
    assert branch("Trade[2] AND Order AS o").slots == (
        Slot("Order", 1, "o", 1),
        Slot("Trade", 1, "Trade", 1),
        Slot("Trade", 2, "Trade", 2),
    )


def test_and_puts_nothing_in_order():
    assert branch("Trade t AND Order o").clauses == ()


def test_then_puts_every_event_on_its_left_before_every_event_on_its_right():
    assert branch("Trade t[2] THEN Order o").clauses == (Precedence((1, 2), (0,)),)


def test_and_binds_tighter_than_then():
    assert branch("Order o AND Note n THEN Trade t").clauses == (Precedence((0, 1), (2,)),)
    assert branch("(Order o AND Note n) THEN Trade t").clauses == (Precedence((0, 1), (2,)),)
    assert branch("Order o AND (Note n THEN Trade t)").clauses == (Precedence((0,), (2,)),)  # Note is slot 0


def test_a_chain_of_then_is_transitive_however_it_is_bracketed():
    chain = branch("Trade t THEN Note n THEN Order o").clauses  # slots: Note 0, Order 1, Trade 2
    assert chain == (Precedence((0, 2), (1,)), Precedence((2,), (0,)))
    assert branch("(Trade t THEN Note n) THEN Order o").clauses == chain
    assert branch("Trade t THEN (Note n THEN Order o)").clauses == chain


def test_or_makes_branches_that_know_their_place_in_the_text():
    found = subscription("(Trade t THEN Order o) OR Note n OR (Order o OR Trade x)")
    signatures = [("Note",), ("Order",), ("Order", "Trade"), ("Trade",)]
    assert [each.signature for each in found.branches] == signatures
    assert [found.branches[at].signature for at in found.in_text_order] == [signatures[at] for at in (2, 0, 1, 3)]


def test_branches_may_use_the_same_alias():
    assert len(subscription("Order x OR Trade x").branches) == 2


def test_aliases_do_not_change_the_digest_but_the_pattern_does():
    digest = subscription("Order o THEN Trade t WHERE o.id = t.id").digest
    assert subscription("Order x THEN Trade y WHERE x.id = y.id").digest == digest
    assert subscription("Order x AND Trade y WHERE x.id = y.id").digest != digest
    assert subscription("Order x THEN Trade y WHERE x.id = y.id MATCHING RECENT").digest != digest


@pytest.mark.parametrize(
    ("code", "marked", "fix"),
    [
        ("L010", "«Ordr» o", "did you mean 'Order'?"),
        ("L010", "«Zebra» z", "declare it: TYPE Zebra"),
        ("L019", "«Heartbeat» h", "of your own"),
        ("L020", "Order o AND («Trade t OR Note n»)", "write (Order o AND Trade t) OR (Order o AND Note n)"),
        ("L020", "Order o THEN («(Trade t THEN Note n) OR Note n[2]»)", "(Order o THEN Note n[2])"),
        ("L021", "Order x AND Trade «x»", "its own alias"),
        ("L021", "Order AND «Order»", "write Order x AND Order y"),
        ("L022", "Order o[«0»]", "1 to 64"),
        ("L022", "Order o[«65»]", "1 to 64"),
        ("L022", "Order o[60] AND Trade t[«5»]", "1 to 64"),
        ("L006", "Order o[«12345678901234567890»]", "smaller"),
    ],
)
def test_a_wrong_pattern_is_refused_at_its_place(code, marked, fix):
    refused_in(code, marked, fix)


def test_the_largest_pattern_is_accepted():
    assert len(branch("Order o[60] AND Trade t[4]").slots) == 64
