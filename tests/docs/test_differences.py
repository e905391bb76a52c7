"""Every difference from Apache Hudi has a reason and a test."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT

PAGE = ROOT / "docs/reference/differences.md"
COLUMNS = ("Subject", "Apache Hudi 1.2.0", "drawstring", "Why", "Test")
_CELL_END = re.compile(r"(?<!\\)\|")


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in _CELL_END.split(line)[1:-1]] for line in lines]


def test_every_difference_has_all_cells_and_names_a_test() -> None:
    head, _, *body = rows()
    assert tuple(head) == COLUMNS
    assert [row for row in body if len(row) != len(COLUMNS) or not all(row)] == []
    assert [row[0] for row in body if not re.search(r"`test_\w+(\[[^\]]+\])?`", row[-1])] == []


def test_no_difference_is_listed_twice() -> None:
    subjects = [row[0] for row in rows()[2:]]
    assert sorted(subjects) == sorted(set(subjects))
