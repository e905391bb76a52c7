"""Java regular expressions, matched in linear time by RE2, which is part of Arrow.

The properties of a table may contain patterns: bucket rules, delimiters of date patterns. A backtracking
engine, such as Python's `re`, takes exponential time for some of them.

RE2 lacks lookaround, back references, possessive quantifiers and counts above 1,000: patterns with these are
refused. Patterns that callers pass to a call of their own are matched by Python's `re`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.later import import_later

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    import_later(globals(), pc="pyarrow.compute")

PATTERN_LENGTH_MAX: Final = 10_000
"""Characters of a pattern that is accepted."""

_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)
_FLAGS: Final = re.compile(r"\(\?(?!i[:)])[a-zA-Z-]+[:)]")
_PIECES: Final = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[.$]", re.DOTALL)
_JAVA: Final = {
    "$": r"(?:(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z)",
    ".": r"[^\n\r\x{85}\x{2028}\x{2029}]",
    r"\s": r"[\t-\r ]",
}
"""Constructs that RE2 and Java interpret differently, with the RE2 equivalent of Java's meaning.

In Java `$` also matches before a final line terminator, and `.` matches no line terminator.
"""
_NESTED_CLASS: Final = re.compile(r"\[[^\]]*(?:\[|&&)")
"""Nested character classes and intersections, which Java interprets and RE2 takes literally."""
_JAVA_ONLY: Final = (
    "invalid perl operator",
    "invalid escape sequence",
    "bad repetition operator",
    "invalid repetition size",
    "invalid character class range",
    "pattern too large",
)
"""RE2's error texts for Java features that it lacks: lookaround, back references, `a*+`, large counts."""
_CUT: Final = "\0"


def linear_pattern(pattern: str) -> str:
    """Translate a Java regular expression into RE2 syntax.

    Args:
        pattern: a regular expression of `java.util.regex`.

    Raises:
        InvalidError: the pattern is not a regular expression.
        UnsupportedError: the pattern uses a feature that RE2 lacks.
    """
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise UnsupportedError(
            f"The pattern is longer than {PATTERN_LENGTH_MAX} characters. Use a shorter one."
        )
    plain = _ESCAPED.sub("", pattern)
    if _NESTED_CLASS.search(plain) or _FLAGS.search(plain):
        raise UnsupportedError(
            "The pattern has nested character classes, && or flags other than (?i), which are not supported."
            " Write it without them."
        )
    expression = _PIECES.sub(lambda piece: _JAVA.get(piece[0], piece[0]), pattern)
    try:
        pc.match_substring_regex(pa.array([""]), expression)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        kind = UnsupportedError if any(text in str(error) for text in _JAVA_ONLY) else InvalidError
        raise kind(f"The pattern cannot be read: {error}.") from error
    return expression


def found_in(pattern: str, texts: pa.Array) -> pa.Array:
    """Return, for each text, whether the pattern matches anywhere in it.

    Args:
        pattern: as `linear_pattern` returns it.
        texts: an array of strings.
    """
    return pc.match_substring_regex(texts, pattern)


def split_by(pattern: str, text: str) -> list[str]:
    """Return the parts of a text between the matches of a pattern.

    Args:
        pattern: as `linear_pattern` returns it.
        text: the text to split.
    """
    # Arrow's split_pattern_regex never ends when the pattern matches the empty text.
    cut: str = pc.replace_substring_regex(pa.scalar(text), pattern, _CUT).as_py()
    return cut.split(_CUT)
