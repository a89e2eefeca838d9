"""TYPE and EVENT UNION."""

import pytest

from fairlead.language import compile_text
from fairlead.model.events.types import Attribute, DataType, Kind

from .sentences import TYPES, plan, refused


def test_every_data_type_and_its_second_name():
    text = "TYPE T (a BOOLEAN, b INT, c Integer, d BIGINT, e LONG, f double, g STRING, h TIMESTAMP, i BINARY)"
    kinds = [each.type.kind.value for each in compile_text(text).types["T"].attributes]
    assert kinds == ["BOOLEAN", "INT", "INT", "BIGINT", "BIGINT", "DOUBLE", "STRING", "TIMESTAMP", "BINARY"]


def test_decimals_have_a_precision_and_a_scale():
    types = compile_text("TYPE T (a DECIMAL, b DECIMAL(5), c DECIMAL(38, 18))").types["T"].attributes
    assert [str(each.type) for each in types] == ["DECIMAL(10,0)", "DECIMAL(5,0)", "DECIMAL(38,18)"]


def test_a_type_may_have_no_attributes():
    assert compile_text("TYPE Tick ()").types["Tick"].attributes == ()


def test_a_subtype_inherits_attributes_first_and_the_time():
    block = plan("").types["BlockTrade"]
    assert [each.name for each in block.attributes] == ["id", "ticker", "size", "value", "at", "desk"]
    assert (block.supertype, block.time_attribute) == ("Trade", "at")
    assert plan("").types.accepts("Trade") == ("BlockTrade", "Trade")


def test_a_subtype_may_add_a_time_that_its_supertype_has_not():
    types = compile_text("TYPE A (x INT) TYPE B EXTENDS A (at TIMESTAMP) TIME at").types
    assert not types["A"].timed
    assert types["B"].timed


def test_a_union_has_the_attributes_that_all_members_share():
    flow = plan("").types["Flow"]
    assert flow.attributes == (Attribute("id", DataType(Kind.STRING)), Attribute("at", DataType(Kind.TIMESTAMP)))
    assert flow.members == ("Order", "Trade")
    assert flow.implicit_time


def test_a_union_with_an_untimed_member_has_no_time():
    assert not plan("EVENT UNION Mixed = Order + Note").types["Mixed"].timed


def test_a_union_of_unions_is_the_union_of_their_members():
    assert plan("EVENT UNION All = Flow + Note").types["All"].members == ("Order", "Trade", "Note")


def test_words_of_the_language_may_be_attributes():
    text = "TYPE Step (match STRING, first INT, within INT, where STRING, time TIMESTAMP) TIME time"
    rule = " SUBSCRIPTION S MATCH Step s WHERE s.first > s.within AND first = 1 AND s.where = s.match"
    assert len(compile_text(text + rule).subscriptions[0].branches[0].predicates) == 3


@pytest.mark.parametrize(
    ("code", "marked", "fix"),
    [
        ("L011", "TYPE T (a «STRIN»)", "did you mean 'STRING'?"),
        ("L011", "TYPE T (a «VARCHARACTERS»)", "use BOOLEAN"),
        ("L011", "TYPE T (a «VARCHAR»(10))", "use STRING"),
        ("L011", "TYPE T (a «bool»)", "use BOOLEAN"),
        ("L011", "TYPE T (a «Float64»)", "use DOUBLE"),
        ("L011", "TYPE T (a «DateTime»)", "use TIMESTAMP"),
        ("L011", "TYPE T (a INT(«5»))", "only DECIMAL"),
        ("L011", "TYPE T (a DECIMAL(«39», 2))", "precision is 1 to 38"),
        ("L011", "TYPE T (a DECIMAL(«3», 4))", "scale 0 to the precision"),
        ("L006", "TYPE T (a DECIMAL(«99999999999999999999»))", "smaller"),
        ("L013", "TYPE «Order» ()", "another name"),
        ("L013", "TYPE T (a INT, «a» STRING)", "another name"),
        ("L013", "TYPE T EXTENDS Trade («ticker» INT)", "remove it"),
        ("L013", "EVENT UNION «Order» = Trade", "another name"),
        ("L013", "SUBSCRIPTION X MATCH Order SUBSCRIPTION «X» MATCH Trade", "another name"),
        ("L014", "TYPE T («type» STRING)", "type_"),
        ("L014", "TYPE T («_source» STRING)", "source_"),
        ("L014", "TYPE «Heartbeat» (at TIMESTAMP)", "another name"),
        ("L010", "TYPE T EXTENDS «Trad» ()", "did you mean 'Trade'?"),
        ("L015", "TYPE T EXTENDS «U» () TYPE U ()", "before its subtypes"),
        ("L015", "TYPE T EXTENDS «Flow» ()", "extend a TYPE"),
        ("L015", "TYPE T EXTENDS «Seen» () SUBSCRIPTION S MATCH Order o EMIT Seen(id = o.id)", "declare TYPE Seen"),
        ("L016", "TYPE T (a INT, at TIMESTAMP) TIME «a»", "name at"),
        ("L016", "TYPE T (moment TIMESTAMP) TIME «momnt»", "did you mean 'moment'?"),
        ("L016", "TYPE T EXTENDS Trade (late TIMESTAMP) TIME «late»", "leave out TIME"),
        ("L010", "EVENT UNION U = Order + «Trde»", "did you mean 'Trade'?"),
        ("L017", "EVENT UNION U = Order + «Flow»", "once"),
        ("L017", "EVENT UNION U = Order + «Heartbeat»", "remove it"),
        ("L017", "EVENT UNION U = Order + «Seen» SUBSCRIPTION S MATCH Order o EMIT Seen(id = o.id)", "declare TYPE Seen"),
    ],
)
def test_a_wrong_declaration_is_refused_at_its_place(code, marked, fix):
    refused(code, marked, fix)


def test_the_types_of_these_tests_are_themselves_fine():
    assert compile_text(TYPES).warnings == ()
