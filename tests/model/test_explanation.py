"""Sizes as explanations and reports show them."""

import pytest

from drawstring.model.result import size_text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 40, "3.0 TiB")]
)
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert size_text(size) == text
