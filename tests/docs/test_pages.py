"""What the pages say is true: examples print what they show, links lead somewhere, and the project speaks of itself alone."""

from __future__ import annotations

import contextlib
import io
import re
from functools import cache
from pathlib import Path

import pytest

from tests.root import ROOT

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]


def test_the_readme_example_prints_what_the_readme_shows() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n```\n(.*?)```", text, re.DOTALL)
    assert found is not None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(found[1], "README.md", "exec"), {})
    assert printed.getvalue() == found[2]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_anchor_is_a_heading(page: Path) -> None:
    links = re.findall(r"\]\(([\w./-]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    missing = [f"{link}#{anchor}" for link, anchor in links if anchor not in anchors(page.parent / link if link else page)]
    assert missing == []


def test_every_guarantee_of_the_readme_links_to_a_test() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    bullets = re.findall(r"^- \*\*.*?(?=^- \*\*|^```|\Z)", text, re.DOTALL | re.MULTILINE)
    guarantees = bullets[:4]
    assert len(guarantees) == 4
    for guarantee in guarantees:
        assert re.search(r"\]\((tests|conformance)/", guarantee), guarantee


def test_the_architecture_page_names_every_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = [each.name for each in (ROOT / "src" / "fairlead").iterdir() if (each / "__init__.py").exists()]
    assert [name for name in packages if f"{name}/" not in text] == []


@cache
def files() -> list[str]:
    """Those of the project. Folders that begin with a dot are made by tools."""
    found = [path for each in ROOT.iterdir() if not each.name.startswith(".") for path in (each, *each.rglob("*"))]
    return [path.relative_to(ROOT).as_posix() for path in found if path.is_file()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    """By its path, or the end of it. The changelog speaks of what was."""
    if page.name == "CHANGELOG.md":
        pytest.skip("names files of earlier releases")
    architecture = page.name == "ARCHITECTURE.md"
    endings = "py|lark|md|json" if architecture else "py|lark|md"  # elsewhere JSON files are those of users
    named = re.findall(rf"`([\w./]+\.(?:{endings}))`", page.read_text("utf-8"))
    assert not architecture or len(named) > 80
    assert [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files())] == []
