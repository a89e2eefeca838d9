"""PER, WITHIN, MATCHING, DISPOSAL, WITHOUT."""

import pytest

from fairlead.language import compile_text
from fairlead.model.clauses.without import Absence, NegationBetween, Timer
from fairlead.model.plans.options import Disposal, Matching

from .sentences import branch, refused_in, subscription

NOT_STEPWISE = (Disposal.INFIX, Disposal.INFIX_POSTFIX, Disposal.NONE)


@pytest.mark.parametrize(
    ("matching", "disposal"),
    [
        (matching, disposal)
        for matching in Matching
        for disposal in Disposal
        if not matching.stepwise or disposal not in NOT_STEPWISE
    ],
)
def test_all_combinations(matching, disposal):
    named = " 2" if disposal is Disposal.ADVANCE else " o" if disposal.upto else ""
    found = subscription(f"Order o[3] MATCHING {matching.words} DISPOSAL {disposal.words.lower()}{named}")
    assert (found.matching, found.disposal) == (matching, disposal)
    assert found.disposal_words == f"{disposal.words}{named}"


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Order o[3] DISPOSAL ADVANCE 1", "Order o[3] DISPOSAL FIRST PREFIX"),
        ("Order o[3] DISPOSAL ADVANCE 3", "Order o[3] DISPOSAL PREFIX INFIX"),
        ("Order o[3] DISPOSAL ADVANCE 7", "Order o[3]"),
        ("Order o[3] DISPOSAL UPTO o", "Order o[3] DISPOSAL UPTO LAST o"),
        ("Order o DISPOSAL UPTO FIRST o", "Order o DISPOSAL UPTO LAST o"),
        ("Order o[2] KEEP o", "Order p[2] KEEP p"),
        ("Order o AND Order p KEEP p, o", "Order o AND Order p KEEP o, p"),
    ],
)
def test_options_that_mean_the_same_have_one_digest(text, other):
    assert subscription(text).digest == subscription(other).digest


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Order o[3] DISPOSAL ADVANCE 2", "Order o[3] DISPOSAL FIRST PREFIX"),
        ("Order o[4] DISPOSAL ADVANCE 2", "Order o[4] DISPOSAL ADVANCE 3"),
        ("Order o[2] MATCHING ALL DISPOSAL ADVANCE 2", "Order o[2] MATCHING ALL DISPOSAL PREFIX INFIX"),
        ("Order o[2] DISPOSAL UPTO FIRST o", "Order o[2] DISPOSAL UPTO LAST o"),
        ("Order o AND Order p DISPOSAL UPTO o", "Order o AND Order p DISPOSAL UPTO p"),
        ("Order o AND Order p KEEP o", "Order o AND Order p KEEP p"),
        ("Order o[2] KEEP o", "Order o[2]"),
        ("Order o[2] MATCHING ALL", "Order o[2] MATCHING ALL LIMIT 3 PER EVENT"),
        ("Order o[2] MATCHING ALL LIMIT 2 PER EVENT", "Order o[2] MATCHING ALL LIMIT 3 PER EVENT"),
    ],
)
def test_options_that_mean_something_else_have_another_digest(text, other):
    assert subscription(text).digest != subscription(other).digest


def test_keep_and_limit_remain_names():
    found = subscription("Order keep THEN Order limit WHERE keep.id = limit.id KEEP limit")
    assert found.kept_aliases == ("limit",)


def test_without_options_the_oldest_matches_and_everything_up_to_it_goes():
    found = subscription("Order o")
    assert (found.matching, found.disposal) == (Matching.FIRST, Disposal.PREFIX_INFIX)
    assert (found.within_us, found.per, found.emits) == (None, (), None)


def test_clauses_stand_in_any_order():
    one = subscription("Order o AND Trade t PER id WITHIN 1 HOUR WHERE o.size > 1 DISPOSAL INFIX MATCHING RECENT")
    other = subscription("Order o AND Trade t MATCHING RECENT WHERE o.size > 1 DISPOSAL INFIX WITHIN 60 MINUTES PER id")
    assert one.digest == other.digest


@pytest.mark.parametrize(
    ("duration", "microseconds"),
    [
        ("1 MICROSECOND", 1),
        ("5 milliseconds", 5_000),
        ("0.5 SECONDS", 500_000),
        ("1 MINUTE", 60_000_000),
        ("1.5 HOURS", 5_400_000_000),
        ("2 DAYS", 172_800_000_000),
        ("1 WEEK", 604_800_000_000),
        ("1e3 SECONDS", 1_000_000_000),
    ],
)
def test_within(duration, microseconds):
    assert subscription(f"Order o WITHIN {duration}").within_us == microseconds


def test_a_union_of_timed_types_has_a_window():
    assert subscription("Flow f[2] WITHIN 1 HOUR").within_us


def test_per_names_one_attribute_of_every_type_absent_ones_too():
    found = subscription("Order o AND Trade t WITHOUT Note n BETWEEN o AND t PER id")
    assert found.branches[0].keys == (("Order", ("id",)), ("Trade", ("id",)), ("Note", ("id",)))
    assert found.per == ("id",)


def test_per_may_name_a_different_attribute_for_each_type():
    found = subscription("Order o AND Trade t[2] AND BlockTrade b PER o.user = t.ticker, id")
    assert found.branches[0].keys == (
        ("BlockTrade", ("ticker", "id")),
        ("Order", ("user", "id")),
        ("Trade", ("ticker", "id")),
    )
    assert found.per == ("o.user = t.ticker", "id")


def test_the_left_most_name_is_the_key_of_types_that_are_not_named():
    assert branch("Order o AND Trade t AND Note n PER o.id = t.ticker").keys[0] == ("Note", ("id",))


def test_whole_numbers_of_both_widths_make_one_key():
    assert branch("Order o AND Trade t PER size").keys


def test_per_reaches_every_branch():
    found = subscription("Order o OR Trade t PER o.user = t.ticker")
    assert [each.keys for each in found.branches] == [(("Order", ("user",)),), (("Trade", ("ticker",)),)]


def test_negation_between_members():
    found = branch("Order o THEN Trade t[2] WITHOUT Note BETWEEN o AND t[2] WHERE Note.id = o.id AND code > 3")
    (negation,) = found.prompt
    assert negation == NegationBetween("Note", "Note", 3, 0, 2, negation.predicates)
    assert [(each.text, each.slots) for each in negation.predicates] == [("Note.id = o.id", (0, 3)), ("code > 3", (3,))]
    assert found.alias_names() == ["o", "t[1]", "t[2]", "Note"]


def test_absence_within_a_time():
    found = branch("Order o WHERE o.size > 1 WITHOUT Trade s WITHIN 2 HOURS OF o WHERE s.id = o.id")
    (absence,) = found.waiting
    assert absence == Absence("s", "Trade", 1, 0, 7_200_000_000, absence.predicates)
    assert [each.text for each in found.predicates] == ["o.size > 1"]


def test_several_withouts_have_slots_in_the_order_of_what_they_say():
    absence, between = "WITHOUT Order x WITHIN 1 HOUR OF o WHERE x.id = o.id", "WITHOUT Note n BETWEEN o AND t"
    for clauses in (f"{absence} {between}", f"{between} {absence}"):
        found = branch(f"Order o THEN Trade t {clauses}")
        assert (found.prompt[0].slot, found.waiting[0].slot) == (2, 3)
        assert found.waiting[0].predicates[0].slots == (0, 3)


def test_a_without_belongs_to_the_branches_that_have_its_members():
    found = subscription("Order o OR Trade t OR (Trade t AND Order o) WITHOUT Order n WITHIN 1 DAY OF o WHERE n.id = o.id")
    assert [len(found.branches[at].waiting) for at in found.in_text_order] == [1, 0, 1]


def test_only_the_where_right_after_a_without_belongs_to_it():
    rule = "Order o WITHOUT Trade t WITHIN 1 DAY OF o WHERE t.id = o.id WHERE o.size > 1"
    found = branch(rule)
    assert [each.text for each in found.predicates] == ["o.size > 1"]
    assert [each.text for each in found.waiting[0].predicates] == ["t.id = o.id"]


@pytest.mark.parametrize(
    ("code", "marked", "fix"),
    [
        ("L050", "Order o WHERE o.size = 1 PER id «WHERE o.size = 2»", "with AND"),
        ("L050", "Order o PER id «PER user»", "keep one PER"),
        ("L050", "Order o MATCHING FIRST «MATCHING RECENT»", "keep one MATCHING"),
        ("L050", "Order o EMIT X() «EMIT Y()»", "keep one EMIT"),
        ("L051", "Order o AND Trade t PER «ticker»", "where the names differ"),
        ("L051", "Order o WITHOUT Trade n WITHIN 1 HOUR OF o PER «user»", "where the names differ"),
        ("L051", "Trade t PER «tickr»", "did you mean 'ticker'?"),
        ("L012", "Trade t PER t.«tickr»", "did you mean 'ticker'?"),
        ("L030", "Trade t PER «x».ticker", "known are t"),
        ("L052", "Order o AND Trade t PER «o.size = t.ticker»", "one type"),
        ("L031", "Order o AND Trade t PER «user» = t.ticker", "o.user"),
        ("L053", "Trade x AND Trade y PER x.id = y.«ticker»", "one attribute for each type"),
        ("L053", "Trade x PER id, «id»", "once"),
        ("L054", "Order o AND Note n «WITHIN 5 MINUTES»", "declare Note with TIME"),
        ("L007", "Order o WITHIN «0 SECONDS»", "5 MINUTES"),
        ("L007", "Order o WITHIN «0.1 MICROSECONDS»", "round"),
        ("L007", "Order o WITHIN 5 «MINUTESS»", "did you mean MINUTES?"),
        ("L055", "Order o WITHOUT Trade t WITHIN 1 HOUR OF o WHERE «o.size = 1»", "before WITHOUT"),
        ("L034", "Order o WHERE «t».size = 1 WITHOUT Trade t WITHIN 1 HOUR OF o", "right after the WITHOUT"),
        ("L030", "Order o THEN Trade t WITHOUT Note n BETWEEN o AND «x»", "known are o and t"),
        ("L056", "Order o WITHOUT Note n BETWEEN o AND «o»", "two members"),
        ("L056", "Order o THEN Trade t[2] WITHOUT Note n BETWEEN o AND «t»", "t[2]"),
        ("L056", "Order o OR Trade t WITHOUT Note n BETWEEN o AND «t»", "one branch"),
        ("L032", "Order o THEN Trade t[2] WITHOUT Note n BETWEEN o AND t[«3»]", "t[3]"),
        ("L057", "Order o WITHOUT «Note» n WITHIN 1 HOUR OF o", "BETWEEN"),
        ("L057", "Note n WITHOUT Order o WITHIN 1 HOUR OF «n»", "BETWEEN"),
        ("L021", "Order o WITHOUT Order «o» WITHIN 1 HOUR OF o", "alias"),
        ("L010", "Order o WITHOUT «Nte» n WITHIN 1 HOUR OF o", "did you mean 'Note'?"),
        ("L022", "Order o[«0»] WITHOUT Note n BETWEEN o AND o", "1 to 64"),
    ],
)
def test_a_wrong_clause_is_refused_at_its_place(code, marked, fix):
    refused_in(code, marked, fix)


def test_a_window_over_untimed_types_is_refused_also_in_a_later_branch():
    refused_in("L054", "Order o OR Note n «WITHIN 5 MINUTES»", "leave out WITHIN")


def test_text_is_kept_with_the_subscription():
    text = "TYPE A ()\nSUBSCRIPTION S\nMATCH A a -- one\n\nSUBSCRIPTION T MATCH A"
    first, second = compile_text(text).subscriptions
    assert (first.text, second.text) == ("SUBSCRIPTION S\nMATCH A a", "SUBSCRIPTION T MATCH A")


def test_a_timer_is_an_absence_of_nothing():
    found = branch("Order o AND Trade t AFTER 5 MINUTES OF t CLOCK BY Order, Trade AFTER 1 HOUR OF o CLOCK BY BlockTrade")
    assert [type(each) for each in found.waiting] == [Timer, Timer]
    assert {each.words(["o", "t"]) for each in found.waiting} == {
        "AFTER 5 MINUTES OF t",
        "AFTER 1 HOUR OF o CLOCK BY BlockTrade",
    }
    assert set(found.types) == {"Order", "Trade"}


def test_a_timer_is_told_from_no_timer_and_from_another():
    one, other, plain = (subscription(f"Order o{each}") for each in (" AFTER 5 MINUTES OF o", " AFTER 6 MINUTES OF o", ""))
    assert len({one.digest, other.digest, plain.digest}) == 3
    assert one.digest == subscription("Order p AFTER 300 SECONDS OF p AFTER 5 MINUTES OF p").digest


@pytest.mark.parametrize(
    ("code", "marked"),
    [
        ("L099", "Order o+ THEN Trade t «AFTER 5 MINUTES OF t»"),
        ("L056", "Order o[2] AFTER 5 MINUTES OF «o»"),
        ("L102", "Order o NEXT Trade t «AFTER 5 MINUTES OF t»"),
        ("L030", "Order o AFTER 5 MINUTES OF «q»"),
        ("L057", "Note n AFTER 5 MINUTES OF «n»"),
        ("L007", "Order o AFTER 5 «FORTNIGHTS» OF o"),
    ],
)
def test_a_timer_is_about_one_member_of_a_pattern_without_runs(code, marked):
    refused_in(code, marked)
