"""Lint: legal, but probably not what was meant."""

import pytest

import fairlead

from .sentences import plan, warned, warnings


@pytest.mark.parametrize(
    "quiet",
    [
        "Order o",
        "Order o AND Trade t PER id WITHIN 1 HOUR",
        "Order o AND Trade t WHERE o.id = t.id PER id",
        "Order o AND Trade t WHERE o.at = t.at",
        "Order x THEN Order y",
        "Order x[2] WHERE x[1].size > x[2].size",
        "Trade t[3] WHERE sum(t.value) > 1 MATCHING RECENT",
        "Order o WITHOUT Trade t WITHIN 1 HOUR OF o PER id",
        "Order o WITHOUT Trade t WITHIN 1 HOUR OF o WHERE t.id = o.id",
        "Order o AND Trade t WITHIN 1 HOUR DISPOSAL INFIX",
        "Order o WHERE o.size NOT IN (1, 2)",
        "Order o OR Order x",
    ],
)
def test_a_sound_subscription_earns_no_warning(quiet):
    assert warned(quiet) == []


def test_an_equality_join_without_per():
    (found,) = warnings("Order o AND Trade t WHERE o.size > 1 AND o.id = t.id")
    assert (found.code, found.subscription, found.fix) == ("W001", "S", "add PER id")
    assert (found.place.column, found.place.width) == (
        len("SUBSCRIPTION S MATCH Order o AND Trade t WHERE o.size > 1 AND ") + 1,
        11,
    )
    assert warnings("Order o AND Trade t WHERE o.user = t.ticker")[0].fix == "add PER o.user = t.ticker"
    assert warned("Trade t[2] WHERE t[1].id = t[2].id") == ["W001"]
    assert warned("Order o AND Trade t AND Note n WHERE o.id = t.id AND t.id = n.id") == ["W001"]
    assert "every type" in warnings("Order o AND Trade t AND Note n WHERE o.user = t.ticker")[0].fix


def test_two_elements_of_one_type_are_not_in_any_order():
    (found,) = warnings("Order x AND Order y")
    assert found.code == "W002"
    assert "x always comes before y" in found.problem
    assert "x always comes after y" in warnings("Order x AND Order y MATCHING RECENT")[0].problem


def test_a_then_that_never_matches():
    assert warned("Order x THEN Order y MATCHING RECENT") == ["W003"]
    assert warned("Order x THEN Trade y MATCHING RECENT") == []


def test_an_index_that_is_missing():
    (found,) = warnings("Trade t[2] WHERE t.value > 1 AND t.size > 2")
    assert (found.code, found.fix) == ("W004", "write t[1].value, or an aggregate of all")
    assert warnings("Trade t[2] WHERE value > 1")[0].fix.startswith("write t[1].value")
    assert warned("Trade t[2] EMIT X(a = t.id)") == ["W004"]


def test_recent_numbers_instances_from_the_newest():
    assert warned("Trade t[2] WHERE t[1].value > t[2].value MATCHING RECENT") == ["W005"]


def test_an_absence_that_anything_cancels():
    assert warned("Order o WITHOUT Trade t WITHIN 1 HOUR OF o") == ["W006"]
    assert warned("Order o THEN Trade t WITHOUT Note n BETWEEN o AND t") == ["W006"]


def test_a_condition_of_an_absence_that_does_not_name_the_absent_event():
    assert warned("Order o WITHOUT Trade t WITHIN 1 HOUR OF o WHERE t.id = o.id AND o.size > 5") == ["W007"]


def test_events_before_a_member_that_are_kept_for_ever():
    once = "Order o WITHOUT Trade t BEFORE o"
    assert warned(f"{once} PER id") == []
    assert warned(f"{once} WITHIN 1 HOUR PER id") == []
    assert warned(f"{once} WHERE t.size > 5 PER id") == []
    assert warned("Order o WITHOUT Order p BEFORE o WITHIN 1 HOUR PER id") == []
    assert warned(f"{once} WHERE t.id = o.id") == ["W018"]
    assert warned(f"{once} WITHIN 1 HOUR WHERE t.id = o.id") == ["W018"]
    assert warned("Order o AND Trade t WITHOUT Trade u BEFORE o PER id") == ["W018"]
    assert warned("Order o AND Trade t WITHIN 1 HOUR WITHOUT Trade u BEFORE o WITHIN 1 HOUR PER id") == []


def test_a_window_that_was_meant_for_what_is_before_a_member():
    assert warned("Order o WITHOUT Trade t BEFORE o WHERE t.size > 5 WITHIN 1 HOUR PER id") == ["W019"]
    assert warned("Order o WITHOUT Trade t BEFORE o PER id WITHIN 1 HOUR") == ["W019"]
    assert "W019" not in warned("Order o AND Order p WITHOUT Trade t BEFORE o WHERE t.size > 5 PER id WITHIN 1 HOUR")


def test_conditions_that_do_not_depend_on_events():
    assert warned("Order o WHERE 1 = 1") == ["W008"]
    assert warned("Order o OR Trade t WHERE 1 = 1") == ["W008"]
    assert warned("Order o WHERE TRUE") == ["W008"]
    assert warned("Order o WHERE o.size NOT IN (1, NULL)") == ["W009"]


def test_types_that_nobody_uses():
    found = plan("TYPE Idle () SUBSCRIPTION S MATCH Flow f AND BlockTrade b AND Note n")
    assert [(each.code, each.place.line) for each in found.warnings] == [("W010", 7)]
    assert "'Idle'" in found.warnings[0].problem
    assert plan("").warnings == ()


def test_floating_point_keys():
    assert warned("Trade t PER value") == ["W011"]


def test_queues_that_nothing_bounds():
    assert warned("Order o DISPOSAL INFIX POSTFIX") == ["W012"]
    assert warned("Order o DISPOSAL PREFIX INFIX") == []


RISE = "Trade t[3] WHERE t[1].value < t[2].value AND t[2].value < t[3].value"


def test_a_rise_between_which_others_may_stand():
    (found,) = warnings(RISE)
    assert (found.code, found.place.width) == ("W015", len("t[2].value < t[3].value"))
    assert warned(RISE.replace("<", ">=")) == ["W015"]
    assert warned(RISE.replace("t[1].value < t[2].value", "t[2].value > t[1].value")) == ["W015"]


@pytest.mark.parametrize(
    "more", [" MATCHING FIRST CONTIGUOUS", " MATCHING RECENT CONTIGUOUS", " PER id MATCHING FIRST CONTIGUOUS"]
)
def test_a_rise_of_neighbours_is_quiet(more):
    assert "W015" not in warned(RISE + more)


def test_a_rise_of_one_key_skips_events_too():
    (found,) = warnings(RISE + " PER id")
    assert (found.code, found.fix) == ("W015", "add MATCHING FIRST CONTIGUOUS for an unbroken run")
    assert "RECENT CONTIGUOUS" in next(each.fix for each in warnings(RISE + " PER id MATCHING RECENT") if each.code == "W015")
    assert "W015" not in warned(RISE.replace("Trade t[3]", "Order o AND Trade t[3]") + " PER id")


def test_a_rise_of_aliases_of_one_type():
    aliases = "Trade a THEN Trade b THEN Trade c WHERE a.value < b.value AND b.value < c.value PER id"
    assert warned(aliases) == ["W015"]
    assert warned(aliases + " MATCHING FIRST CONTIGUOUS") == []


READINGS = """
TYPE Reading (sensor INT, value INT)
SUBSCRIPTION S MATCH Reading r[3] WHERE r[1].value < r[2].value AND r[2].value < r[3].value PER sensor
"""


def test_the_remedy_for_a_rise_finds_the_unbroken_run():
    events = [{"type": "Reading", "sensor": 1, "value": each} for each in (1, 5, 3, 4, 6)]
    assert [each.positions for each in fairlead.match(fairlead.compile(READINGS), events)] == [(0, 2, 3)]
    remedied = fairlead.compile(READINGS + " MATCHING FIRST CONTIGUOUS")
    assert [each.positions for each in fairlead.match(remedied, events)] == [(2, 3, 4)]


TRAVEL = """
TYPE Login (user STRING, city STRING, at TIMESTAMP) TIME at
SUBSCRIPTION S MATCH Login a THEN Login b WHERE a.city != b.city PER user WITHIN 1 HOUR
"""


def test_impossible_travel_without_a_disposal():
    (found,) = fairlead.compile(TRAVEL).warnings
    assert found.code == "W020"
    assert found.problem == "a Login that ends a relation cannot begin the next, and others may be in between"
    assert "MATCHING FIRST CONTIGUOUS DISPOSAL FIRST PREFIX" in found.fix


def test_the_remedy_for_travel_compares_each_login_with_the_one_before_it():
    cities = enumerate(("Bonn", "Bonn", "Rome", "Oslo", "Oslo", "Bonn"))
    events = [{"type": "Login", "user": "ann", "city": each, "at": at} for at, each in cities]
    assert [each.positions for each in fairlead.match(fairlead.compile(TRAVEL), events)] == [(0, 2), (3, 5)]
    remedied = fairlead.compile(TRAVEL + " MATCHING FIRST CONTIGUOUS DISPOSAL FIRST PREFIX")
    assert remedied.warnings == ()
    assert [each.positions for each in fairlead.match(remedied, events)] == [(1, 2), (2, 3), (4, 5)]


@pytest.mark.parametrize(
    "more",
    [
        "x.size > y.size",
        "x.size > y.size PER id DISPOSAL PREFIX INFIX",
        "x.size = y.size PER id",
        "x.at < y.at - 5 MINUTES PER id",
        "x.size > 5 PER id",
    ],
)
def test_pairs_that_say_what_they_mean_or_do_not_differ_are_quiet(more):
    assert "W020" not in warned(f"Order x THEN Order y WHERE {more}")


LARGE = "Trade t[3] WHERE t[1].size > 5 AND t[2].size > 5 AND t[3].size > 5 PER id"


def test_neighbours_between_which_refused_events_may_stand():
    (found,) = warnings(f"{LARGE} MATCHING FIRST CONTIGUOUS")
    assert (found.code, found.place.width) == ("W016", len("Trade t[3]"))
    assert "WITHOUT Trade x BETWEEN t[1] AND t[3] WHERE NOT" in found.fix
    recent = next(each for each in warnings(f"{LARGE} MATCHING RECENT CONTIGUOUS") if each.code == "W016")
    assert "BETWEEN t[3] AND t[1]" in recent.fix
    two = "Trade t[2] THEN Trade u WHERE t[1].size > 5 AND t[2].size > 5 AND u.size < 5 PER id MATCHING FIRST CONTIGUOUS"
    assert "BETWEEN t[1] AND u " in warnings(two)[0].fix


@pytest.mark.parametrize(
    "quiet",
    [
        LARGE,
        f"{LARGE.replace('t[2].size > 5 AND ', '')} MATCHING FIRST CONTIGUOUS",  # every Trade fits the second
        "Trade t[3] WHERE t[1].size > t[2].size PER id MATCHING FIRST CONTIGUOUS",
        "Trade t WHERE t.size > 5 PER id MATCHING FIRST CONTIGUOUS",
        f"{LARGE} MATCHING FIRST CONTIGUOUS WITHOUT Trade x BETWEEN t[1] AND t[3] WHERE x.size <= 5",
    ],
)
def test_neighbours_that_are_neighbours_are_quiet(quiet):
    assert "W016" not in warned(quiet)


def test_an_attribute_that_all_instances_share_needs_no_index():
    assert warned("Trade t[2] PER id EMIT E(id = t.id)") == []
    assert warned("Trade t[2] AND Order o PER t.id = o.id EMIT E(id = t.id)") == []
    assert warned("Trade t[2] PER id EMIT E(size = t.size)") == ["W004"]
    assert warned("(Trade t[2] THEN Order o) OR Trade t[2] PER id EMIT E(id = t.id, size = t.size)") == ["W004"]


def test_the_fix_of_a_join_within_one_type_compiles():
    """A type has one key, so PER t.id = u.other is not a way out."""
    (found,) = warnings("Trade t THEN Trade u WHERE t.id = u.ticker")
    assert (found.code, "PER" in found.fix) == ("W001", False)
    assert warned("Trade t THEN Trade u WHERE t.id = u.ticker WITHIN 1 HOUR DISPOSAL INFIX") == ["W001"]


@pytest.mark.parametrize(
    "quiet",
    [
        "Trade t[3] WHERE t[1].value < t[2].value AND t[2].size < t[3].size",
        "Trade t[3] WHERE t[1].value < t[2].value AND t[1].value < t[3].value",
        "Trade t[3] WHERE t[1].value != t[2].value AND t[2].value != t[3].value",
    ],
)
def test_other_comparisons_are_no_rise(quiet):
    assert warned(quiet) == []
