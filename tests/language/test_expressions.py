"""Expressions: names, literals, operators, functions, and how they are typed."""

import re

import pytest

from fairlead.engine import Engine, compile
from fairlead.errors import LanguageError, UnsupportedError
from fairlead.language import compile_text
from fairlead.model.events.types import Kind
from fairlead.model.expressions.expression import (
    Aggregate,
    Arithmetic,
    Call,
    Compare,
    Field,
    In,
    IsNull,
    Like,
    Literal,
    Negative,
    PositionOf,
    TimeOf,
    Truth,
)

from .sentences import TYPES, condition, plan, refused, refused_in, refused_where, subscription

ORDER, FIRST, SECOND, THIRD = range(4)  # the slots of "Order o AND Trade t[3]"


def atom(text):
    (only,) = condition(text).predicates
    ((single,),) = only.condition.terms
    return single


def right(text):
    return atom(text).right


def kind(expression):
    """The kind of an expression, seen in what EMIT makes of it."""
    emitting = plan(f"SUBSCRIPTION S MATCH Order o AND Trade t[3] EMIT X(a = {expression})")
    return str(emitting.types["X"].attributes[0].type)


def test_names_are_resolved_to_slots():
    assert atom("o.size > 1").left == Field(ORDER, "size", Kind.INT)
    assert atom("t[2].value > 1").left == Field(SECOND, "value", Kind.DOUBLE)
    assert atom("t.value > 1").left == Field(FIRST, "value", Kind.DOUBLE)
    assert atom("urgent") == Truth(Field(ORDER, "urgent", Kind.BOOLEAN))
    assert atom("ticker = 'X'").left == Field(FIRST, "ticker", Kind.STRING)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("o.size = 5", Literal(5, Kind.INT)),
        ("o.size = 2147483648", Literal(2**31, Kind.BIGINT)),
        ("o.size = -2147483648", Literal(-(2**31), Kind.INT)),
        ("o.size = -9223372036854775808", Literal(-(2**63), Kind.BIGINT)),
        ("o.size = 007", Literal(7, Kind.INT)),
        ("o.size = 1.5", Literal(1.5, Kind.DOUBLE)),
        ("o.size = -1e3", Literal(-1000.0, Kind.DOUBLE)),
        ("o.id = 'it''s -- no /* comment'", Literal("it's -- no /* comment", Kind.STRING)),
        ("o.id = ''", Literal("", Kind.STRING)),
        ("o.urgent = TRUE", Literal(True, Kind.BOOLEAN)),
        ("o.at = TIMESTAMP '1970-01-01T00:00:01Z'", Literal(1_000_000, Kind.TIMESTAMP)),
        ("o.at = timestamp '1970-01-01 01:00:00+01:00'", Literal(0, Kind.TIMESTAMP)),
        ("o.at - t.at = 5 MINUTES", Literal(300_000_000, Kind.INTERVAL)),
        ("o.at - t.at = interval 1.5 second", Literal(1_500_000, Kind.INTERVAL)),
        ("o.at - t.at = -1 DAY", Literal(-86_400_000_000, Kind.INTERVAL)),
    ],
)
def test_literals(text, literal):
    found = right(text)
    assert (found, type(found.value)) == (literal, type(literal.value))


@pytest.mark.parametrize(
    ("written", "operator"),
    [("=", "="), ("==", "="), ("!=", "!="), ("<>", "!="), ("<", "<"), ("<=", "<="), (">", ">"), (">=", ">=")],
)
def test_comparisons_and_their_second_spellings(written, operator):
    assert atom(f"o.size {written} t.size").operator == operator


def test_arithmetic_binds_as_in_school():
    size, value = Field(ORDER, "size", Kind.INT), Field(FIRST, "value", Kind.DOUBLE)
    product = Arithmetic("*", value, Literal(2, Kind.INT), Kind.DOUBLE)
    assert atom("o.size + t[1].value * 2 > 1").left == Arithmetic("+", size, product, Kind.DOUBLE)
    total = Arithmetic("+", size, value, Kind.DOUBLE)
    assert atom("(o.size + t[1].value) * 2 > 1").left == Arithmetic("*", total, Literal(2, Kind.INT), Kind.DOUBLE)
    assert atom("-o.size < 1").left == Negative(size, Kind.BIGINT)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("o.size + o.size", "BIGINT"),
        ("o.size * t.size", "BIGINT"),
        ("o.size % 2", "BIGINT"),
        ("o.size - 1.5", "DOUBLE"),
        ("o.size / 2", "DOUBLE"),
        ("o.price / 2", "DOUBLE"),
        ("o.price + 1", "DECIMAL(38,2)"),
        ("o.price * o.price", "DECIMAL(38,4)"),
        ("o.price + t.value", "DOUBLE"),
        ("-o.price", "DECIMAL(38,2)"),
        ("o.at - t.at", "INTERVAL"),
        ("o.at + 5 MINUTES", "TIMESTAMP"),
        ("5 MINUTES + o.at", "TIMESTAMP"),
        ("o.at - 5 MINUTES", "TIMESTAMP"),
        ("1 HOUR + 30 MINUTES", "INTERVAL"),
        ("1 HOUR * 2", "INTERVAL"),
        ("o.size * 1 HOUR", "INTERVAL"),
        ("count(t)", "BIGINT"),
        ("count(t.value)", "BIGINT"),
        ("sum(t.size)", "BIGINT"),
        ("sum(t.value)", "DOUBLE"),
        ("sum(o.price)", "DECIMAL(38,2)"),
        ("avg(t.size)", "DOUBLE"),
        ("min(t.ticker)", "STRING"),
        ("max(t.at)", "TIMESTAMP"),
        ("max(o.size)", "INT"),
        ("position(t[2])", "BIGINT"),
        ("time(o)", "TIMESTAMP"),
        ("LENGTH(o.id)", "INT"),
        ("substring(o.id, 1, 2)", "STRING"),
        ("coalesce(o.size, 0)", "INT"),
        ("coalesce(o.size, t.size, NULL)", "BIGINT"),
        ("coalesce(NULL, t.value, 0)", "DOUBLE"),
        ("dayofweek(o.at)", "INT"),
        ("isnan(t.value)", "BOOLEAN"),
        ("o.size > 3", "BOOLEAN"),
        ("o.urgent", "BOOLEAN"),
    ],
)
def test_the_type_of_a_result(expression, expected):
    assert kind(expression) == expected


def test_aggregates_range_over_all_instances():
    assert atom("sum(t.value) > 1").left == Aggregate("sum", (1, 2, 3), "value", Kind.DOUBLE)
    assert atom("count(t) > 1").left == Aggregate("count", (1, 2, 3), None, Kind.BIGINT)
    assert atom("max(ticker) > 'A'").left == Aggregate("max", (1, 2, 3), "ticker", Kind.STRING)


def test_events_have_a_position_and_a_time():
    assert atom("position(t[3]) > position(o)") == Compare(">", PositionOf(THIRD), PositionOf(ORDER))
    assert atom("time(t) < o.at").left == TimeOf(FIRST)


def test_functions_are_written_in_any_case():
    assert atom("Lower(o.id) = 'x'").left == Call("lower", (Field(ORDER, "id", Kind.STRING),), Kind.STRING)


def test_the_other_atoms():
    identity = Field(ORDER, "id", Kind.STRING)
    assert atom("o.id IS NULL") == IsNull(identity)
    assert atom("o.id IS NOT NULL") == IsNull(identity, negated=True)
    assert atom("o.id LIKE 'a%'") == Like(identity, "a%")
    assert atom("o.id NOT LIKE 'a\\_'") == Like(identity, "a\\_", negated=True)
    assert atom("o.id IN ('a', t.id)") == In(identity, (Literal("a", Kind.STRING), Field(FIRST, "id", Kind.STRING)))
    assert atom("o.size NOT IN (1, 2.5)").negated
    assert atom("o.size IN (1, NULL)").options[1] == Literal(None, Kind.INT)


def test_numbers_compare_with_numbers():
    assert atom("o.price > t.value")
    assert atom("o.size > o.price")


@pytest.mark.parametrize(
    ("code", "marked", "fix"),
    [
        ("L012", "o.«usr» = 'x'", "did you mean 'user'?"),
        ("L012", "t[2].«zebra» = 1", "it has id"),
        ("L030", "«x».size = 1", "known are o and t"),
        ("L030", "«usr» = 'x'", "did you mean 'user'?"),
        ("L030", "«Order».id = 'x'", "called 'o'"),
        ("L031", "«id» = 'x'", "write o.id or t.id"),
        ("L032", "t[«0»].value > 1", "write t[1]"),
        ("L032", "t[«4»].value > 1", "declare t[4]"),
        ("L032", "o[«2»].size > 1", "declare o[2]"),
        ("L035", "«o» = 1", "o.id"),
        ("L035", "«t[2]» = 1", "t[2].id"),
        ("L040", "o.id = «5»", "write '5' in quotes"),
        ("L040", "o.size = «'5'»", "without quotes"),
        ("L040", "o.at > «'2024-01-01'»", "write TIMESTAMP '2024-01-01'"),
        ("L040", "«'2024-01-01'» < o.at", "write TIMESTAMP '2024-01-01'"),
        ("L040", "o.at - t.at < «5»", "5 SECONDS"),
        ("L040", "o.at > «5»", "TIMESTAMP"),
        ("L040", "o.urgent = «o.id»", "one type"),
        ("L040", "o.id IN ('a', «1»)", "in quotes"),
        ("L040", "o.size BETWEEN 1 AND «'2'»", "without quotes"),
        ("L041", "o.size = «o.size»", "another instance"),
        ("L041", "t.value < «t[1].value»", "another instance"),
        ("L041", "o.size + 1 > «o.size + 1»", "another"),
        ("L042", "o.id = «NULL»", "write IS NULL"),
        ("L042", "o.id <> «NULL»", "write IS NOT NULL"),
        ("L042", "o.size + «NULL» > 1", "IS NULL"),
        ("L042", "«NULL»", "IS NULL"),
        ("L043", "o.at «+» 5 > t.at", "5 SECONDS"),
        ("L043", "o.id «+» 'x' = 'y'", "numbers"),
        ("L043", "-«o.id» = 'y'", "sign"),
        ("L044", "«lenght»(o.id) = 1", "did you mean 'length'?"),
        ("L044", "«median»(o.size) = 1", "there are "),
        ("L044", "«casd»(o.size AS INT) = 1", "did you mean 'cast'?"),
        ("L044", "«cast(o.size, INT)» = 1", "write cast(o.size AS INT)"),
        ("L044", "«cast(o.size, DECIMAL(9, 2))» = 1", "write cast(o.size AS DECIMAL(9, 2))"),
        ("L044", "«try_cast(o.size + 1, 'bigint')» = 1", "write try_cast(… AS BIGINT)"),
        ("L044", "«cast(o.size)» = 1", "write cast(o.size AS BIGINT)"),
        ("L002", "o.size«::»INT = 1", "write cast(… AS type)"),
        ("L001", "«CASE» o.size WHEN 1 THEN 2 END = 1", "CASE WHEN o.size = … THEN"),
        ("L001", "«CASE» (o.size + 1) WHEN 1 THEN 2 ELSE 3 END = 1", "CASE WHEN (o.size + 1) = … THEN"),
        ("L001", "«case» lower(o.id) when 'a' then 2 end = 1", "CASE WHEN lower(o.id) = … THEN"),
        ("L001", "«CASE» 5 WHEN o.size THEN 2 END = 1", "CASE WHEN 5 = … THEN"),
        ("L001", "«CASE» -o.size WHEN 5 THEN 2 END = 1", "CASE WHEN -o.size = … THEN"),
        ("L001", "CASE WHEN o.urgent THEN «CASE» o.size WHEN 1 THEN 2 END END = 1", "CASE WHEN o.size = … THEN"),
        ("L001", "o.id = 'it'«s»'", "write '' for a quote"),
        ("L002", "o.id = «'x AND o.size = 1»\n AND o.user = 'y'", "add '"),
        ("L002", "o.id = «'x»", "add '"),
        ("L011", "cast(o.size AS «FLOAT») = 1", "use DOUBLE"),
        ("L045", "«cast(o.at AS DECIMAL(9,2))» = 1", "conversions"),
        ("L045", "cidr_match(o.id, «'ten'»)", "10.0.0.0/8"),
        ("L043", "o.id || «o.size» = 'x'", "cast"),
        ("L043", "«o.urgent» || o.urgent", "OR"),
        ("L042", "CASE WHEN o.urgent THEN «NULL» END = 1", "leave it out"),
        ("L040", "«CASE WHEN o.urgent THEN 1 ELSE 'a' END» = 1", "cast"),
        ("L048", "CASE WHEN «o.size» THEN 1 END = 1", "compare it"),
        ("L048", "«o.size» IS NOT TRUE", "compare it"),
        ("L049", "«o.size» RLIKE 'x'", "compare it"),
        ("L049", "o.id RLIKE «'(?=x)'»", "RE2"),
        ("L049", "o.id RLIKE «'(x'»", "add ), or write \\( "),
        ("L049", "o.id RLIKE «'x{2000}'»", "1,000 times"),
        ("L049", "o.id RLIKE «'x++'»", "remove one"),
        ("L049", r"o.id RLIKE «'(x)\1'»", "back references"),
        ("L049", f"o.id RLIKE «'{'x' * 10_001}'»", "several patterns, joined by OR"),
        ("L049", "o.id RLIKE «'" + r"\pL{500}" * 20 + "'»", "several patterns, joined by OR"),
        ("L049", "rlike(o.id, «o.user»)", "as a text"),
        ("L045", "«length(o.size)» = 1", "characters"),
        ("L045", "«length(o.id, 2)» = 1", "characters"),
        ("L045", "«coalesce(o.id, 2)» = 1", "not NULL"),
        ("L046", "«sum(1)» = 1", "sum(q.value)"),
        ("L046", "«count()» = 1", "count(q)"),
        ("L046", "sum(«t») = 1", "write sum(t.size)"),
        ("L046", "sum(«t.ticker») = 1", "numbers"),
        ("L046", "sum(t[«1»].value) = 1", "leave out the index"),
        ("L046", "position(«o.id») = 1", "position(o)"),
        ("L048", "«o.size»", "compare it"),
        ("L048", "o.urgent AND NOT «o.id»", "compare it"),
        ("L049", "«o.size» LIKE '1%'", "compare it"),
        ("L049", "o.id LIKE «'a\\'»", "backslash"),
        ("L059", "«o.id IN ()»", "IN"),
        ("L006", "o.size = «9223372036854775808»", "decimal point"),
        ("L006", "o.size = «1e999»", "smaller"),
        ("L007", "o.at - t.at < 5 «MINUTS»", "did you mean MINUTES?"),
        ("L007", "o.at - t.at < 5 «parsecs»", "use MICROSECONDS"),
        ("L007", "o.at - t.at < «1e30 WEEKS»", "292,000 years"),
        ("L007", "o.at - t.at < «99999999999 WEEKS»", "292,000 years"),
        ("L008", "o.at > TIMESTAMP «'yesterday'»", "ISO 8601"),
        ("L001", "o.at > «TIMESTMP» '2024-01-01'", "did you mean 'TIMESTAMP'?"),
        ("L001", "o.at - t.at > «INTERVALL» 5 MINUTES", "did you mean 'INTERVAL'?"),
    ],
)
def test_a_wrong_expression_is_refused_at_its_place(code, marked, fix):
    refused_where(code, marked, fix)


def test_an_untimed_event_has_no_time():
    refused_in("L058", "Note n WHERE time(«n») > TIMESTAMP '2024-01-01'", "position(n)")


def test_the_error_shows_line_caret_and_fix():
    types = "TYPE LoginFailed (user STRING)\nTYPE Login (user STRING)\n"
    rule = "SUBSCRIPTION S MATCH LoginFailed AND Login\nwhere LoginFailed.«usr» == Login.user"
    error = refused("L012", rule, types=types)
    assert str(error).split("\n")[0] == "L012 rules.fl, line 4, column 19: event type 'LoginFailed' has no attribute 'usr'"
    assert str(error).split("\n")[1:] == [
        "    where LoginFailed.usr == Login.user",
        "                      ^^^",
        "  fix: did you mean 'user'?",
    ]


def test_a_bare_attribute_that_is_also_an_alias_is_the_attribute():
    found = subscription("Order size WHERE size > 3").branches[0].predicates[0]
    assert found.condition.terms[0][0].left == Field(0, "size", Kind.INT)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "%", "||"])
@pytest.mark.parametrize("count", [80, 700, 100_000])
def test_a_chain_of_operators_is_not_called_parentheses(sign: str, count: int) -> None:
    """And takes no longer than other texts of its length: Lark reads only the short one again."""
    value = "o.id" if sign == "||" else "o.size"
    with pytest.raises(LanguageError, match="chain of more than 64 operators") as refused:
        compile_text(f"{TYPES} SUBSCRIPTION S MATCH Order o WHERE {f' {sign} '.join([value] * count)} = o.user")
    assert refused.value.code == "L004"
    assert "parentheses, (a + b" in str(refused.value.fix)
    grouped = f" {sign} ".join(["(" + f" {sign} ".join([value] * 30) + ")"] * 30)
    assert compile_text(f"{TYPES} SUBSCRIPTION S MATCH Order o WHERE {grouped} IS NULL")


RULE = (
    "SUBSCRIPTION S MATCH Order o THEN Trade t[2] WHERE o.id LIKE 'a' AND o.id IS NOT NULL AND position(o) = 1 "
    "AND o.at > TIMESTAMP '2024-01-01' AND o.at - t.at < 3 SECONDS AND cast(o.size AS STRING) = 'x' "
    "AND CASE WHEN o.urgent IS FALSE THEN 1 ELSE 2 END = 1 AND rlike(o.id, 'x') AND o.id IN ('a') "
    "PER id WITHIN 5 MINUTES MATCHING FIRST CONTIGUOUS DISPOSAL PREFIX INFIX"
)
LOOKALIKES = {"S": "\u017f", "K": "\u212a", "I": "\u0131"}
WORDS = sorted({word for word in re.findall(r"[A-Z]{2,}|cast|position|rlike", RULE) if set(word.upper()) & set(LOOKALIKES)})


@pytest.mark.parametrize("word", WORDS)
def test_words_of_the_language_are_ascii(word: str) -> None:
    """Python takes the signs for kelvin and for a long s as K and S where case is ignored; I is the capital of a dotless i."""
    assert compile_text(TYPES + RULE)
    assert compile_text(TYPES + RULE.replace(word, word.swapcase()))
    for letter, other in LOOKALIKES.items():
        for written in (letter, letter.lower()):
            if written in word:
                with pytest.raises(LanguageError):
                    compile_text(TYPES + re.sub(rf"\b{word}\b", word.replace(written, other), RULE))


def test_a_line_break_in_a_text_is_part_of_it():
    made = atom("o.id = 'a\n--b''\n'")
    assert made.right.value == "a\n--b'\n"
    plans = [
        compile_text(f"{TYPES} SUBSCRIPTION S MATCH Order o WHERE o.id = {text}") for text in ("'a\nb'", "'a b'", "'a\\nb'")
    ]
    assert len({each.subscriptions[0].digest for each in plans}) == 3
    assert plans[0].subscriptions[0].branches[0].predicates[0].text == "o.id = 'a\\nb'"


def test_warnings_name_the_file():
    """Those of lint, and those of what cannot be compiled or costs much."""
    rule = (
        f"{TYPES}\nSUBSCRIPTION S MATCH Order o AND Trade t WHERE o.id || t.id = 'x'\n"
        "SUBSCRIPTION T MATCH Order o AND Trade t[2] "
        "WHERE o.id = t[1].id AND t[1].ticker < t[2].ticker AND o.size < t[2].size AND t[1].size < o.size"
    )
    warnings = compile(rule, "rules.fl").warnings
    assert {"W001", "W013", "W014"} <= {each.code for each in warnings}
    assert {each.place.file for each in warnings if each.place} == {"rules.fl"}
    with pytest.raises(UnsupportedError, match=r"U001 rules\.fl, line "):
        Engine(compile(rule, "rules.fl"))
