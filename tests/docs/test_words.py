"""Documentation, `--help`, docstrings, comments and texts of the source have established words: no phrase of words.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from fairlead.cli.command_table import cli
from tests.docs.words import findings, source_findings
from tests.root import ROOT

PROSE = (".md", ".yaml", ".fl", ".toml")
PAGES = [
    *(
        ROOT / name
        for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml")
    ),
    *sorted(
        path
        for room in ("docs", "conformance", "examples", "benchmarks")
        for path in (ROOT / room).rglob("*")
        if path.suffix in PROSE
    ),
]

SOURCE = ROOT / "src" / "fairlead"
MODULES = sorted(path for room in (SOURCE, ROOT / "examples", ROOT / "benchmarks") for path in room.rglob("*.py"))

EARLIER = [
    "A durable one goes on exactly behind what it acknowledged",
    "States of the matcher are put down now and then",
    "the first bad one is told with its code",
    "An event that comes late is late.",
    "So who has a disjunction needs the right to publish `Heartbeat`",
    "and `to_log` is not to be had (A260)",
    "an argument or option that cannot be, a test file without the form below",
    "| `FIRST` (unless said) | the oldest events that fit |",
    "| `.csv` | one JSON object a line |",
    "blocks behind them are a stream a type",
    "| function | gives |",
    "`publish_many` takes tables of pyarrow",
    "| code | problem | mends it |",
    "breaks something, mends it, and one fault of each kind",
    "two at the same time under one name are found out (S131)",
    "a column `stream` tells them apart",
    "its derived events lose for whoever reads them",
    "they stand at the head of the queue for good",
    "Which fault is reported first",
    "a log that is full refuses",
    "A session that runs is taken as it is",
    "Who publishes waits for `patience` seconds, then is told why",
    "so that no row is a promise only",
    "its child goes when it goes",
    "filter rows before, if you can tell them",
    "write it with its element then",
    "Whom the server knows us as",
    "has no end to say `until` of",
    "what kernels found",
    "it goes on where it was",
    "who publishes, and what comes again",
    "sends every target what it reads, as one\nArrow blob a slice and type",
    "hand over, then put the state down",
    "Its text is what tells two programs apart.",
    "The newest event stands behind all that are queued.",
    "It writes nothing where it cannot be (D018).",
]
"""Sentences of earlier editions, each with a phrase that must be found."""

PLAIN = [
    "Late events are never reordered; they are reported as late.",
    "The stream lags behind by 2,000 blocks.",
    "`match` takes 0.3 s for a million events.",
    "`compile` takes a quarter less time.",
    "A table cannot be read if it has no header.",
    "The arguments and the searches behind each verdict, behind the seam.",
    "`goes on behind` is code.",
    "one block per type, one task per key, a row in a table",
    "- ready, set, go\n- on the next line",
    "Fault injection: every injected fault is undone, and `Fault` is a class.",
]
"""What is said in established words."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_none_of_the_phrases(page: Path) -> None:
    found = findings(page.read_text("utf-8"), page.relative_to(ROOT))
    assert not found, "\n" + "\n".join(map(str, found))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.relative_to(ROOT).as_posix())
def test_docstrings_comments_and_texts_have_none_of_the_phrases(module: Path) -> None:
    found = source_findings(module.read_text("utf-8"), module.relative_to(ROOT))
    assert not found, "\n" + "\n".join(map(str, found))


def test_phrases_in_docstrings_comments_and_texts_are_found() -> None:
    source = '''
"""A module that goes
on behind it."""

LIMIT = 3
"""Whoever reads this."""
text = "it goes on"


class Reader:
    def read(self) -> None:
        """It is

        told."""
        # a comment that goes
        # on
        return  # for good
'''
    found = [(each.place, each.phrase) for each in source_findings(source, "m")]
    assert sorted(found) == [
        ("m:15", "goes on"),
        ("m:17", "for good"),
        ("m:2", "behind it"),
        ("m:2", "goes on"),
        ("m:6", "Whoever"),
        ("m:7", "goes on"),
    ]


def helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """The help of a command and of those below it, each paragraph in one line. A command keeps the help option of its first
    context, so that must be as it is when it runs: with the settings of the group, of which `-h` is one."""
    settings = {**command.context_settings, "max_content_width": 10_000, "terminal_width": 10_000}
    context = click.Context(command, parent, info_name=name.rpartition(" ")[2], **settings)
    yield name, command.get_help(context)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            assert below is not None
            yield from helps(below, f"{name} {each}", context)


@pytest.mark.parametrize(("name", "text"), [pytest.param(*each, id=each[0]) for each in helps(cli, "fairlead")])
def test_help_has_none_of_the_phrases(name: str, text: str) -> None:
    found = findings(text, f"{name} --help")
    assert not found, "\n" + "\n".join(map(str, found))


@pytest.mark.parametrize("sentence", EARLIER)
def test_a_phrase_of_earlier_editions_is_found(sentence: str) -> None:
    assert findings(sentence, "page")


@pytest.mark.parametrize("sentence", PLAIN)
def test_plain_sentences_raise_no_alarm(sentence: str) -> None:
    assert findings(sentence, "page") == []
