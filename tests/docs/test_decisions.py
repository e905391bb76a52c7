"""Decision records have a status and a date, unique numbers in order, and an index."""

from __future__ import annotations

import re

from tests.docs.decisions import INDEX, decisions, index


def test_every_decision_has_a_status_and_a_date() -> None:
    for each in decisions():
        assert re.fullmatch(r"accepted|accepted, amended by .+", each.header.get("Status", "")), (
            each.path.name
        )
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", each.header.get("Date", "")), each.path.name


def test_numbers_are_those_of_the_files_and_none_comes_twice() -> None:
    numbers = [each.number for each in decisions()]
    assert numbers == sorted(set(numbers))
    assert all(each.path.name.startswith(f"{each.number:04}-") for each in decisions())


def test_the_index_lists_them() -> None:
    assert INDEX.read_text() == index(), "run: python -m tests.docs.decisions > docs/adr/index.md"
