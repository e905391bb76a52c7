"""Regular expressions of Java, matched in linear time by RE2, which is part of Arrow.

Tables come with patterns: rules of buckets, delimiters of date patterns. A backtracking engine, Python's `re`
for instance, takes exponential time for some of them.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError, UnsupportedError

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
"""What RE2 would read otherwise than Java does: the end may stand before a last line end, which no dot is."""
_NESTED_CLASS: Final = re.compile(r"\[[^\]]*(?:\[|&&)")
"""Classes that Java's regular expressions take apart and RE2 reads letter by letter."""
_JAVA_ONLY: Final = (
    "invalid perl operator",
    "invalid escape sequence",
    "bad repetition operator",
    "invalid repetition size",
    "invalid character class range",
    "pattern too large",
)
"""RE2's words for what Java has and RE2 lacks: lookaround, back references, `a*+`, large counts."""
_CUT: Final = "\0"


def linear_pattern(pattern: str) -> str:
    """Return a pattern of Java as RE2 reads it.

    Args:
        pattern: a regular expression of `java.util.regex`.

    Raises:
        InvalidError: it is no regular expression.
        UnsupportedError: it needs what RE2 lacks.
    """
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise UnsupportedError(f"The pattern is longer than {PATTERN_LENGTH_MAX} characters.")
    plain = _ESCAPED.sub("", pattern)
    if _NESTED_CLASS.search(plain) or _FLAGS.search(plain):
        raise UnsupportedError(
            "Patterns with classes in classes, && or flags but (?i) are not supported: write it without them."
        )
    expression = _PIECES.sub(lambda piece: _JAVA.get(piece[0], piece[0]), pattern)
    try:
        pc.match_substring_regex(pa.array([""]), expression)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        kind = UnsupportedError if any(words in str(error) for words in _JAVA_ONLY) else InvalidError
        raise kind(f"The pattern cannot be read: {error}.") from error
    return expression


def found_in(pattern: str, texts: pa.Array) -> pa.Array:
    """Tell for each text whether the pattern is found anywhere in it.

    Args:
        pattern: as `linear_pattern` returns it.
        texts: to look at.
    """
    return pc.match_substring_regex(texts, pattern)


def split_by(pattern: str, text: str) -> list[str]:
    """Return the parts of a text that stand between matches of a pattern.

    Args:
        pattern: as `linear_pattern` returns it.
        text: to divide.
    """
    # split_pattern_regex of Arrow does not end where a pattern matches the empty text.
    cut: str = pc.replace_substring_regex(pa.scalar(text), pattern, _CUT).as_py()
    return cut.split(_CUT)
