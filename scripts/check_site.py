"""Check the pages of the documentation site: `python scripts/check_site.py build/docs`.

Every link within the site leads to a file and, where it names one, to an anchor in it. No page makes a
browser fetch anything from another server. Prints what is wrong and exits with 1. Standard library only.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""Tags that make a browser fetch something, and where they say what."""


@dataclass(slots=True)
class Page:
    """What a page refers to.

    Attributes:
        anchors: names that links may lead to.
        links: where its links lead.
        fetched: what is fetched with it.
    """

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)


class Reader(HTMLParser):
    """Collects what a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.page.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.page.links.append(given["href"])
        if tag in FETCHED and FETCHED[tag] in given:
            self.page.fetched.append(given[FETCHED[tag]])


def read(path: Path) -> Page:
    """Return what a page refers to."""
    reader = Reader()
    reader.feed(path.read_text())
    return reader.page


def faults(site: Path) -> list[str]:
    """Return a line for everything that is wrong."""
    pages = {path.resolve(): read(path) for path in sorted(site.rglob("*.html"))}
    found: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found += [f"{name} fetches {address}" for address in page.fetched if urlsplit(address).netloc]
        inner = [address for address in (*page.links, *page.fetched) if not _leads_out(address)]
        dead = [address for address in inner if not _leads(path, address, pages)]
        found += [f"{name} has a dead link: {address}" for address in dead]
    return found if pages else [f"there are no pages in {site}"]


def _leads_out(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.scheme or parts.netloc)


def _leads(path: Path, address: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(address)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target not in pages:
        return target.is_file()
    return not parts.fragment or unquote(parts.fragment) in pages[target].anchors


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]))
    print("\n".join(wrong) or "all links lead somewhere")
    sys.exit(1 if wrong else 0)
