"""Texts that count up: what sequence numbers and generated keys end in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.filegroups.base_file_writer import counted_texts

BORDERS = (0, 9, 10, 99, 100, 999, 1_000, 9_999, 10_000, 99_999, 100_000, 12_345_678_900_000)


@pytest.mark.parametrize("border", BORDERS)
def test_numbers_on_both_sides_of_a_new_digit_are_written_as_python_writes_them(border: int) -> None:
    start = max(0, border - 3)
    texts = counted_texts("20250101000000000_0_", start, 7)
    texts.validate(full=True)
    assert texts.to_pylist() == [f"20250101000000000_0_{number}" for number in range(start, start + 7)]


@given(st.integers(0, 1 << 40), st.integers(0, 25_000), st.text(min_size=1, max_size=5))
def test_texts_of_any_run_are_the_prefix_and_the_number(start: int, rows: int, prefix: str) -> None:
    texts = counted_texts(prefix, start, rows)
    texts.validate(full=True)
    assert texts.to_pylist() == [f"{prefix}{number}" for number in range(start, start + rows)]
