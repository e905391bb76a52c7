"""Links in Markdown files lead somewhere, and the check of the built site finds those that do not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.check_site import faults
from tests.docs.pages import PAGES, ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    heads = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def dead_links(page: Path) -> list[str]:
    dead = []
    for link in LINK.findall(FENCED.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        address, _, anchor = link.partition("#")
        target = page.parent / address if address else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_a_site_without_faults_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#part">b</a><a href="https://example.org/">out</a>')
    (tmp_path / "b.html").write_text('<h1 id="part">b</h1><a href="#part">up</a><img src="c.svg">')
    (tmp_path / "c.svg").write_text("<svg/>")
    assert faults(tmp_path) == []


def test_dead_links_missing_anchors_and_what_is_fetched_from_elsewhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="gone.html">1</a><a href="#nowhere">2</a><script src="https://cdn.example/x.js"></script>'
    )
    assert faults(tmp_path) == [
        "a.html fetches https://cdn.example/x.js",
        "a.html has a dead link: gone.html",
        "a.html has a dead link: #nowhere",
    ]


def test_a_folder_without_pages_is_a_fault(tmp_path: Path) -> None:
    assert faults(tmp_path) == [f"there are no pages in {tmp_path}"]


def test_each_page_has_folders_of_its_own() -> None:
    """A reader who tries a second page finds no table there of the first one."""
    owners: dict[str, set[str]] = {}
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for folder in re.findall(r"/tmp/([\w-]+)", page.read_text()):
            owners.setdefault(folder, set()).add(page.name)
    assert {folder: pages for folder, pages in owners.items() if len(pages) > 1} == {}
