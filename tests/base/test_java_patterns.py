"""Patterns of tables are matched as Java matches them, and in linear time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.java_compat import PATTERN_LENGTH_MAX, found_in, linear_pattern, split_by

LONG = "a" * 100_000 + "!"


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^b\d", "b1", True),
        (r"2024-(01|02)-\d{2}$", "day=2024-02-29", True),
        (r"\Qa.b\E", "axb", False),
        ("a.b", "a\nb", False),
        ("(?i)ROME", "rome", True),
        (r"a$", "a\n", True),
        ("é+", "caféé", True),
    ],
)
def test_patterns_mean_what_they_mean_in_java(pattern: str, text: str, found: bool) -> None:
    assert found_in(linear_pattern(pattern), pa.array([text])).to_pylist() == [found]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}$", "(a*)*b", "(a|a)*b"])
def test_patterns_that_backtracking_engines_hang_at_are_answered(pattern: str) -> None:
    # Each takes exponential time in Python's `re` and in Java: the test would not end.
    assert found_in(linear_pattern(pattern), pa.array([LONG])).to_pylist() == [False]


@pytest.mark.parametrize(
    "pattern",
    [
        "a(?=b)",
        "(?<!a)b",
        r"(a)\1",
        "a*+",
        "(?>a)",
        "[a-z&&[b]]",
        r"\h",
        "a{2000}",
        "(?s)a",
        "((a{99}){99}){99}",
    ],
)
def test_what_the_linear_engine_lacks_is_unsupported(pattern: str) -> None:
    with pytest.raises(UnsupportedError):
        linear_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", "a\\", "\udc9b"])
def test_what_is_no_pattern_is_invalid(pattern: str) -> None:
    with pytest.raises(InvalidError):
        linear_pattern(pattern)


def test_the_length_of_patterns_is_bounded() -> None:
    linear_pattern("[" + r"\a" * 2_000 + "]")
    with pytest.raises(InvalidError, match="missing ]"):
        linear_pattern("[" + r"\a" * 4_000)
    with pytest.raises(UnsupportedError, match="longer"):
        linear_pattern("[" * (PATTERN_LENGTH_MAX + 1))


@pytest.mark.parametrize(
    ("pattern", "parts"), [(",", ["a;b", " c"]), ("[;,]", ["a", "b", " c"]), ("(;)", ["a", "b, c"])]
)
def test_texts_are_split_by_patterns(pattern: str, parts: list[str]) -> None:
    assert split_by(linear_pattern(pattern), "a;b, c") == parts


def test_splitting_by_what_matches_the_empty_text_ends() -> None:
    assert split_by(linear_pattern("x*"), "ab") == ["", "a", "b", ""]
    assert split_by(linear_pattern("(a+)+$"), LONG) == [LONG]
