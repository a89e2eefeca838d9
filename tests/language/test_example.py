"""The example that the language is introduced with compiles exactly as written."""

from fairlead.language import compile_text
from fairlead.model.events.types import Attribute, DataType, EventType, Kind
from fairlead.model.expressions.expression import Arithmetic, Compare, Condition, Field, Predicate
from fairlead.model.plans.options import Disposal, Matching
from fairlead.model.plans.pattern import Element, Emission, Quantifier, Slot

EXAMPLE = """TYPE EarningsReport (symbol STRING, at TIMESTAMP) TIME at
TYPE StockQuote (symbol STRING, value DOUBLE, at TIMESTAMP) TIME at

SUBSCRIPTION Rally
MATCH EarningsReport r AND StockQuote q[3]
WHERE q[1].at > r.at AND q[2].value > q[1].value AND q[3].value > q[2].value
PER symbol
WITHIN 5 MINUTES
MATCHING FIRST
DISPOSAL PREFIX INFIX
EMIT RallySeen(symbol = r.symbol, gain = q[3].value - q[1].value)
"""


def higher(left: int, right: int, name: str, kind: Kind, text: str) -> Predicate:
    condition = Condition(((Compare(">", Field(left, name, kind), Field(right, name, kind)),),))
    return Predicate(condition, tuple(sorted((left, right))), text)


def test_the_example_means_what_it_says():
    plan = compile_text(EXAMPLE)
    rally = plan["Rally"]
    (branch,) = rally.branches
    assert branch.elements == (
        Element("r", "EarningsReport"),
        Element("q", "StockQuote", Quantifier(3, 3)),
    )
    assert branch.slots == (
        Slot("EarningsReport", 1, "r", 1),
        Slot("StockQuote", 1, "q", 1),
        Slot("StockQuote", 2, "q", 2),
        Slot("StockQuote", 3, "q", 3),
    )
    assert branch.predicates == (
        higher(1, 0, "at", Kind.TIMESTAMP, "q[1].at > r.at"),
        higher(2, 1, "value", Kind.DOUBLE, "q[2].value > q[1].value"),
        higher(3, 2, "value", Kind.DOUBLE, "q[3].value > q[2].value"),
    )
    assert branch.keys == (("EarningsReport", ("symbol",)), ("StockQuote", ("symbol",)))
    gain = Arithmetic("-", Field(3, "value", Kind.DOUBLE), Field(1, "value", Kind.DOUBLE), Kind.DOUBLE)
    assert branch.emission == Emission("RallySeen", (("symbol", Field(0, "symbol", Kind.STRING)), ("gain", gain)))
    assert (rally.per, rally.within_us) == (("symbol",), 300_000_000)
    assert (rally.matching, rally.disposal) == (Matching.FIRST, Disposal.PREFIX_INFIX)
    assert plan.warnings == ()
    assert plan.guarantees == {}
    assert plan.text == EXAMPLE


def test_the_example_defines_its_derived_type_after_the_declared_ones():
    types = compile_text(EXAMPLE).catalogue.types
    assert [each.name for each in types] == ["EarningsReport", "StockQuote", "RallySeen"]
    attributes = (Attribute("symbol", DataType(Kind.STRING)), Attribute("gain", DataType(Kind.DOUBLE)))
    assert types[2] == EventType("RallySeen", attributes, derived=True, implicit_time=True)


def test_keywords_may_be_written_in_any_case_and_comments_and_semicolons_stand_anywhere():
    shouted = compile_text(EXAMPLE)
    whispered = EXAMPLE
    for word in (
        "TYPE",
        "TIME",
        "SUBSCRIPTION",
        "MATCH",
        "WHERE",
        "PER",
        "WITHIN",
        "MINUTES",
        "FIRST",
        "AND",
        "EMIT",
        "STRING",
    ):
        whispered = whispered.replace(f"{word} ", f"{word.lower()} /* {word} */ ").replace(
            f"{word}\n", f"{word.title()} -- x\n"
        )
    again = compile_text(whispered.replace("\nsubscription", ";;\nsubscription") + ";")
    assert again["Rally"].digest == shouted["Rally"].digest
    assert [each.text for each in again["Rally"].branches[0].predicates] == [
        each.text for each in shouted["Rally"].branches[0].predicates
    ]


def test_an_empty_text_is_an_empty_plan():
    assert compile_text("").subscriptions == ()
    assert compile_text(" ;; -- nothing\n").catalogue.types == ()
