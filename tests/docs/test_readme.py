"""README stays a page that is read once: what users need beyond it is in the guides."""

from __future__ import annotations

from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()
WORDS_MAX = 640
CELL_CHARS_MAX = 100


def test_readme_is_short() -> None:
    assert len([word for word in README.split() if word.strip("|-:")]) <= WORDS_MAX


def test_no_cell_of_a_table_is_longer_than_a_line() -> None:
    cells = [cell.strip() for line in README.splitlines() if line.startswith("|") for cell in line.split("|")]
    assert [cell for cell in cells if len(cell) > CELL_CHARS_MAX] == []


def test_the_two_commands_are_there() -> None:
    assert "make demo " in README and "make test " in README
