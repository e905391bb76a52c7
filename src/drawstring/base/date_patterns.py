"""Java date patterns, as Joda-Time interprets them: runs of a letter are fields, the rest is literal.

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
from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError

WRITTEN: Final = frozenset("yYMdDHkhKamsSEewxZ")
READ: Final = frozenset("yYMdDHkhKamsSZ")
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HALVES: Final = ("AM", "PM")

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
        known: supported letters, `WRITTEN` for formatting, others, such as `READ`, for parsing.

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
    if known is READ and (not letters or len(set(letters)) < len(letters)):
        raise UnsupportedError(
            f"The date pattern {pattern!r} has no field, or has one twice. Give each field once."
        )
    return tuple(tokens)


def _field(token: Token, pattern: str, known: frozenset[str]) -> Token:
    is_zone_name = token.letter == "Z" and token.length > _OFFSET_LENGTH_MAX
    is_short_year = token.letter in "yY" and token.length == len("yy") and known is READ
    if token.letter not in known or is_zone_name or is_short_year:
        raise UnsupportedError(
            f"The date pattern {pattern!r} has {token.letter * token.length!r}, which this release cannot"
            f" {'format' if known is WRITTEN else 'parse'}. Use the letters {''.join(sorted(known))}."
        )
    return token
