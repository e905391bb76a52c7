"""Compute as Java does on Arrow columns: string hashes and order, regular expressions, date patterns.

`simple_class_name` takes the package off the name of a Java class.

Strings: a `java.lang.String` is a sequence of UTF-16 code units. `hashCode` is a polynomial in 31 over them
modulo 2^32. `compareTo` compares them, so that a character above U+FFFF (a pair of units from U+D800 on)
sorts before U+E000.

Regular expressions: the properties of a table may contain patterns, such as bucket rules and delimiters of
date patterns. RE2, which is part of Arrow, matches them in linear time; a backtracking engine, such as
Python's `re`, takes exponential time for some of them. RE2 lacks lookaround, back references, possessive
quantifiers and counts above 1,000, and `linear_pattern` refuses patterns with these. Python's `re` matches
patterns that callers pass to a call of their own.

Date patterns, as Joda-Time interprets them: runs of a letter are fields, the rest is literal.

| letters | field | formatting | parsing |
|---|---|---|---|
| `y`, `Y` | year; two letters: its last two digits | yes | four letters and more |
| `M` | month: number, from three letters on its English name | yes | yes |
| `d`, `D` | day of the month, of the year | yes | yes |
| `H`, `k`, `h`, `K` | hour 0-23, 1-24, and with `a` 1-12, 0-11 | yes | yes |
| `m`, `s`, `S` | minute, second, fraction of a second | yes | yes |
| `E`, `e`, `w`, `x` | weekday as name and as number, week, year of the week | yes | no |
| `Z`, `ZZ` | offset as `+0200`, `+02:00` | yes | yes |

Letters between single quotes are literal; two single quotes are a literal quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.lazy import lazy_import

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    lazy_import(globals(), pc="pyarrow.compute")


Array: TypeAlias = "np.ndarray[Any, Any]"

_BLOCK_BYTES: Final = 1 << 16
_BLOCK_ROWS: Final = 1 << 13
_INVERSE_OF_31: Final = pow(31, -1, 1 << 32)

_FIRST_NOT_ASCII: Final = 0x80
_BYTES: Final = np.uint64(0x00FF00FF00FF00FF)
_PAIRS: Final = np.uint64(0x0000FFFF0000FFFF)
_31_TO_THE_8: Final = np.uint32(31**8 % (1 << 32))

# The number of UTF-16 code units that begin at each byte of UTF-8.
_UNITS = np.ones(256, np.int64)
_UNITS[0x80:0xC0] = 0
_UNITS[0xF0:] = 2

# UTF-8 sorts like UTF-16 except for the leading bytes EE and EF (U+E000 to U+FFFF), which have to come
# after F0 to F4 (characters above U+FFFF).
_FIRST_OUT_OF_ORDER: Final = 0xEE
_RANK = np.arange(256, dtype=np.uint8)
_RANK[[0xEE, 0xEF]] = [0xFD, 0xFE]


def string_hash(strings: pa.Array) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return `String.hashCode` of each string; the hash of null is 0.

    Args:
        strings: an array of strings, dictionary-encoded or not.
    """
    if pa.types.is_dictionary(strings.type):
        hashes_of_values = pa.array(string_hash(strings.dictionary)).take(strings.indices)
        hashes: Array = hashes_of_values.fill_null(0).to_numpy(zero_copy_only=False)
        return hashes
    offsets, data = utf8_parts(strings)
    hashes = np.empty(len(strings), np.uint32)
    if (size := _common_length(offsets)) and data[offsets[0] : offsets[-1]].max() < _FIRST_NOT_ASCII:
        for first in range(0, len(hashes), _BLOCK_ROWS):
            block = hashes[first : first + _BLOCK_ROWS]
            block[:] = _hash_equal_lengths(data[offsets[first] :], len(block), size)
        return hashes.view(np.int32)
    tables = Powers()
    for first, last in blocks(offsets):
        units, bounds = _utf16(
            data[offsets[first] : offsets[last]], offsets[first : last + 1] - offsets[first]
        )
        hashes[first:last] = _polynomials(units, bounds, tables)
    return hashes.view(np.int32)


def java_min_max(strings: pa.Array) -> tuple[str | None, str | None]:
    """Return the smallest and the largest string in the order of `String.compareTo`; None if all are null.

    Args:
        strings: an array of strings; nulls are ignored.
    """
    if sorts_like_java(strings):
        ends = pc.min_max(strings)
        return ends["min"].as_py(), ends["max"].as_py()
    offsets, data = utf8_parts(strings)
    text = data[offsets[0] : offsets[-1]]
    buffers = [strings.is_valid().buffers()[1], pa.py_buffer(offsets - offsets[0]), pa.py_buffer(_RANK[text])]
    ends = pc.min_max(pa.Array.from_buffers(pa.large_binary(), len(strings), buffers))
    return _unranked(ends["min"].as_py()), _unranked(ends["max"].as_py())


def sorts_like_java(strings: pa.Array) -> bool:
    """Return whether Java orders the strings as Arrow and Python do, which compare UTF-8 and code points.

    Args:
        strings: an array of strings.
    """
    offsets, data = utf8_parts(strings)
    text = data[offsets[0] : offsets[-1]]
    return len(text) == 0 or bool(text.max() < _FIRST_OUT_OF_ORDER)


def utf8_parts(strings: pa.Array) -> tuple[Array, Array]:
    """Return a string array as its offsets (int64, one more than rows) and its UTF-8 bytes (uint8).

    A null becomes an empty text.
    """
    if not pa.types.is_large_string(strings.type):
        strings = strings.cast(pa.string())
    if strings.null_count:
        strings = strings.fill_null("")
    _, offsets, data = strings.buffers()
    width = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    if offsets is None or len(strings) == 0:
        return np.zeros(len(strings) + 1, np.int64), np.empty(0, np.uint8)
    starts = np.frombuffer(offsets, width)[strings.offset : strings.offset + len(strings) + 1]
    bytes_of_all = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return starts.astype(np.int64), bytes_of_all


def _unranked(ranked: bytes | None) -> str | None:
    if ranked is None:
        return None
    return ranked.replace(b"\xfd", b"\xee").replace(b"\xfe", b"\xef").decode()


def _common_length(offsets: Array) -> int:
    """Return the length in bytes that all texts share, 0 if they differ."""
    lengths = np.diff(offsets)
    return int(lengths[0]) if len(lengths) and lengths.min() == lengths.max() else 0


def _hash_equal_lengths(text: Array, rows: int, size: int) -> Array:
    """Return the hashes of adjacent ASCII texts of one length, eight characters at a time.

    Each step combines neighbours within a 64-bit word: bytes to 16 bits, these to 32 bits, these to the hash.
    """
    hashes = np.zeros(rows, np.uint32)
    for place in range(0, size - 7, 8):
        words = np.ndarray(rows, "<u8", text, place, (size,))
        words = (words & _BYTES) * np.uint64(31) + (words >> np.uint64(8) & _BYTES)
        words = (words & _PAIRS) * np.uint64(31**2) + (words >> np.uint64(16) & _PAIRS)
        words = words * np.uint64(31**4) + (words >> np.uint64(32))
        hashes *= _31_TO_THE_8
        hashes += words.astype(np.uint32)
    for place in range(size // 8 * 8, size):
        hashes *= np.uint32(31)
        hashes += np.ndarray(rows, np.uint8, text, place, (size,))
    return hashes


class Powers:
    """Tables of 31^-i and 31^(i-1) modulo 2^32, grown to the longest block so far."""

    def __init__(self) -> None:
        self.inverse = np.ones(1, np.uint32)
        self.forward = np.full(1, _INVERSE_OF_31, np.uint32)

    def reach(self, length: int) -> None:
        """Grow the tables to a length."""
        if length >= len(self.inverse):
            self.inverse = _geometric(1, _INVERSE_OF_31, length + 1)
            self.forward = _geometric(_INVERSE_OF_31, 31, length + 1)


def _geometric(first: int, ratio: int, length: int) -> Array:
    steps = np.full(length, ratio, np.uint32)
    steps[0] = first
    powers: Array = np.multiply.accumulate(steps, dtype=np.uint32)
    return powers


def _polynomials(units: Array, bounds: Array, tables: Powers) -> Array:
    """Return the hash of each run of units."""
    return hashes_of_parts(running_sums(units, tables), bounds[:-1], bounds[1:], tables)


def running_sums(units: Array, tables: Powers) -> Array:
    """Return the sums of which the hash of any run of units is made, see `hashes_of_parts`.

    Args:
        units: UTF-16 code units; bytes if all are ASCII.
        tables: are grown as needed.
    """
    tables.reach(len(units))
    sums = np.zeros(len(units) + 1, np.uint32)
    np.cumsum(units * tables.inverse[: len(units)], dtype=np.uint32, out=sums[1:])
    return sums


def hashes_of_parts(sums: Array, starts: Array, ends: Array, tables: Powers) -> Array:
    """Return the hashes of runs of units, computed from differences of one running sum.

    31 is odd, so it has an inverse modulo 2^32: with S the running sum of unit[i] * 31^-i, the hash
    of units[a:b] is (S[b] - S[a]) * 31^(b-1).

    Args:
        sums: of the units.
        starts, ends: of the runs.
        tables: those of the sums.

    Returns:
        uint32, one for each run.
    """
    hashes: Array = (sums[ends] - sums[starts]) * tables.forward[ends]
    return hashes


def _utf16(text: Array, bounds: Array) -> tuple[Array, Array]:
    """Return UTF-8 bytes as UTF-16 code units (uint32), and where each row's units start and end."""
    if len(text) == 0 or text.max() < _FIRST_NOT_ASCII:
        return text.astype(np.uint32), bounds
    units = np.frombuffer(text.tobytes().decode().encode("utf-16-le"), "<u2").astype(np.uint32)
    before = np.zeros(len(text) + 1, np.int64)
    np.cumsum(_UNITS[text], out=before[1:])
    return units, before[bounds]


def blocks(offsets: Array) -> Iterator[tuple[int, int]]:
    """Divide the rows into runs whose text fits a CPU cache; a longer row is a run of its own."""
    rows = len(offsets) - 1
    first = 0
    while first < rows:
        last = int(np.searchsorted(offsets, offsets[first] + _BLOCK_BYTES, side="right")) - 1
        last = min(rows, max(last, first + 1))
        yield first, last
        first = last


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


FORMATTED_LETTERS: Final = frozenset("yYMdDHkhKamsSEewxZ")
PARSED_LETTERS: Final = frozenset("yYMdDHkhKamsSZ")
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
AM_PM: Final = ("AM", "PM")

_PIECE: Final = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|([^A-Za-z']+)|(')")
_NAMES_FROM: Final = 3
_OFFSET_LENGTH_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class Token:
    """A field, or literal text.

    Attributes:
        letter: letter of the field, empty for literal text.
        length: number of repetitions of the letter.
        text: literal text.
    """

    letter: str
    length: int = 0
    text: str = ""

    @property
    def is_number(self) -> bool:
        """Whether the field consists of digits."""
        if self.letter == "M":
            return self.length < _NAMES_FROM
        return self.letter in "yYdDHkhKmsSewx" and bool(self.letter)


def parse_pattern(pattern: str, known: frozenset[str]) -> tuple[Token, ...]:
    """Return the tokens of a pattern.

    Args:
        pattern: a Java date pattern.
        known: supported letters, `FORMATTED_LETTERS` for formatting, others, such as `PARSED_LETTERS`, for
        parsing.

    Raises:
        InvalidError: the pattern is empty, or has a quote without an end.
        UnsupportedError: a letter is not supported.
    """
    if not pattern:
        raise InvalidError("A date pattern is empty. Give one such as yyyy/MM/dd.")
    tokens = []
    for match in _PIECE.finditer(pattern):
        letter, quoted, plain, lone = match.groups()
        if lone:
            raise InvalidError(f"The date pattern {pattern!r} has a quote without an end. Close it.")
        if letter:
            tokens.append(_field(Token(letter, len(match[0])), pattern, known))
        else:
            tokens.append(Token("", text=plain or (quoted or "'").replace("''", "'")))
    letters = [token.letter for token in tokens if token.letter]
    if known is PARSED_LETTERS and (not letters or len(set(letters)) < len(letters)):
        raise UnsupportedError(
            f"The date pattern {pattern!r} has no field, or has one twice. Give each field once."
        )
    return tuple(tokens)


def _field(token: Token, pattern: str, known: frozenset[str]) -> Token:
    is_zone_name = token.letter == "Z" and token.length > _OFFSET_LENGTH_MAX
    is_short_year = token.letter in "yY" and token.length == len("yy") and known is PARSED_LETTERS
    if token.letter not in known or is_zone_name or is_short_year:
        raise UnsupportedError(
            f"The date pattern {pattern!r} has {token.letter * token.length!r}, which this release cannot"
            f" {'format' if known is FORMATTED_LETTERS else 'parse'}. Use the letters"
            f" {''.join(sorted(known))}."
        )
    return token


def simple_class_name(name: str | None) -> str:
    """Return the name of a class without its package; an empty one for None."""
    return (name or "").rpartition(".")[2]
