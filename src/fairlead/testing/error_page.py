"""`docs/errors.md`, made from the registry of codes: `make errors`.

Takes: error_codes.py. Gives: the page, on the standard output. Never: has a word about a code that the registry does not have.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.error_codes import CODES, KINDS

HEAD = """\
# Error codes

Every error has a code, a place, the problem and a fix:

```
L012 line 2, column 19: event type 'LoginFailed' has no attribute 'usr'
    where LoginFailed.usr == Login.user
                      ^^^
  fix: did you mean 'user'?
```

The code is stable, and has one meaning wherever it is raised. In Python, every error is a `fairlead.FairleadError` with the
fields `code`, `problem`, `fix` and `place`; the first letter determines its class. `fairlead error CODE` prints one entry.

| letter | class | about |
|---|---|---|
"""
FOOT = "This page is made from `src/fairlead/error_codes.py` by `make errors`.\n"


def page() -> str:
    return "".join(_lines())


def _lines() -> Iterator[str]:
    yield HEAD
    for letter, (kind, about) in KINDS.items():
        yield f"| [{letter}](#{_anchor(letter)}) | `{kind}` | {about} |\n"
    for letter, (kind, about) in KINDS.items():
        yield f"\n## {letter}: {kind}\n\n{about}\n\n| code | problem | fix |\n|---|---|---|\n"
        for code, (meaning, remedy) in CODES.items():
            if code[0] == letter:
                yield f'| <a id="{code.lower()}"></a>{code} | {_cell(meaning)} | {_cell(remedy)} |\n'
    yield "\n" + FOOT


def _anchor(letter: str) -> str:
    """Of the heading, as Markdown makes it."""
    return f"{letter}-{KINDS[letter][0]}".lower()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(page(), end="")
