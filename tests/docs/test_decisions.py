"""Decision records are pages of one form, with unique numbers in order, and an index."""

from __future__ import annotations

import re

from tests.docs.decisions import INDEX, decisions, index

SECTIONS = ["Context", "Decision", "Runner-up", "Consequences"]
WORDS_MAX = 550
"""Words of a page."""
LINE_MAX = 120


def test_every_decision_is_accepted_and_has_a_date() -> None:
    for each in decisions():
        assert each.header.get("Status") == "accepted", each.path.name
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", each.header.get("Date", "")), each.path.name


def test_every_decision_has_the_four_sections_on_one_page() -> None:
    for each in decisions():
        text = each.path.read_text()
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS, each.path.name
        assert len(text.split()) <= WORDS_MAX, each.path.name
        prose = [line for line in text.splitlines() if not line.startswith("|")]
        assert max(map(len, prose)) <= LINE_MAX, each.path.name


def test_numbers_are_those_of_the_files_and_none_comes_twice() -> None:
    numbers = [each.number for each in decisions()]
    assert numbers == sorted(set(numbers))
    assert all(each.path.name.startswith(f"{each.number:04}-") for each in decisions())


def test_the_index_lists_them() -> None:
    assert INDEX.read_text() == index(), "run: python -m tests.docs.decisions > docs/adr/index.md"
