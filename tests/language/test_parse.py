"""Text that does not parse: the place, what was expected in plain words, and the keyword that was meant."""

import pytest

from fairlead.errors import LanguageError
from fairlead.language import compile_text
from fairlead.model.limits import LIMITS

from .sentences import refused, refused_in


@pytest.mark.parametrize(
    ("marked", "fix"),
    [
        ("«SUBSCRIPTON» S MATCH Order", "did you mean SUBSCRIPTION?"),
        ("«hello»", "TYPE, EVENT UNION, TOPIC, ORDER BY, SUBSCRIPTION"),
        ("SUBSCRIPTION S «MTCH» Order", "did you mean MATCH?"),
        ("SUBSCRIPTION S MATCH Order «WHRE» Order.size = 1", "did you mean WHERE?"),
        ("SUBSCRIPTION S MATCH Order o «WHRE» o.size = 1", "did you mean WHERE?"),
        ("SUBSCRIPTION S MATCH Order o WITHIN 5 MINUTES «MATCHNG» FIRST", "did you mean MATCHING?"),
        ("SUBSCRIPTION S MATCH Order o MATCHING «LAST»", "write ALL, FIRST, RECENT or STEPWISE"),
        ("SUBSCRIPTION S MATCH Order o DISPOSAL «POSTFIX»", "ADVANCE, FIRST, INFIX, NONE, PREFIX or UPTO"),
        ("SUBSCRIPTION S MATCH Order o WHERE 1 < o.size «<» 5", "do not chain"),
        ("SUBSCRIPTION S MATCH Order o WHERE o.size > 1 || o.size «<» 5", "write OR"),
        ("SUBSCRIPTION S MATCH Order o WHERE o.size = «WITHIN» 5 MINUTES", "an expression"),
        ("SUBSCRIPTION S MATCH «WHERE» o.size = 1", "a name"),
        ("SUBSCRIPTION S MATCH Order o «->» Trade t", "write THEN"),
        ("SUBSCRIPTION S MATCH Order o[2] «->» Trade t", "write THEN"),
        ("SUBSCRIPTION S MATCH Order o WHERE o.id LIKE «5»", "a text in single quotes"),
        ("TYPE T (a «,» b INT)", "a name"),
        ("SUBSCRIPTION S MATCH Order o WHERE (o.size = 1«»", "')'"),
        ("TYPE T«»", "EXTENDS"),
    ],
)
def test_a_text_that_does_not_parse(marked, fix):
    refused("L001", marked, fix)


@pytest.mark.parametrize(
    ("marked", "fix"),
    [
        ("Order o WHERE o.id = «'abc»\nPER id", "at its end"),
        ('Order o WHERE o.id = «"»abc"', "single quotes"),
        ("Order o WHERE o.id = «“»abc”", "single quotes"),
        ("Order o WHERE o.size = 1 «/*» open", "close it"),
        ("Order o «/*» open", "close it"),
        ("Order o WHERE o.size > 1 «&&» o.size < 5", "write AND"),
        ("Order o WHERE o.size «&» 1", "remove it"),
        ("Order o «$»", "remove it"),
    ],
)
def test_characters_that_do_not_belong(marked, fix):
    refused_in("L002", marked, fix)


def test_a_text_that_is_too_large_or_not_unicode():
    with pytest.raises(LanguageError, match="L003"):
        compile_text("-" * (LIMITS.text_bytes_max + 1))
    with pytest.raises(LanguageError, match="L018"):
        compile_text("TYPE T () -- \ud800")


def test_positions_survive_tabs_windows_line_ends_and_a_byte_order_mark():
    with pytest.raises(LanguageError) as caught:
        compile_text("\ufeffTYPE T (a INT)\r\n\tTYPE U (b STRIN)\r\n")
    assert (caught.value.place.line, caught.value.place.column) == (2, 12)
    assert caught.value.excerpt == " TYPE U (b STRIN)"


def test_an_endless_line_has_no_excerpt():
    with pytest.raises(LanguageError) as caught:
        compile_text("TYPE T () " * 1000 + "TYPE")
    assert caught.value.code in ("L001", "L013")
    assert len(str(caught.value)) < 1000
