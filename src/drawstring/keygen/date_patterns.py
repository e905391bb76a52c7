"""Java date patterns, as Joda-Time reads them: runs of a letter are fields, the rest is literal.

| letters | field | written | read |
|---|---|---|---|
| `y`, `Y` | year; two letters: its last two digits | yes | four digits and more |
| `M` | month: number, from three letters on its English name | yes | yes |
| `d`, `D` | day of the month, of the year | yes | yes |
| `H`, `k`, `h`, `K` | hour 0-23, 1-24, and with `a` 1-12, 0-11 | yes | yes |
| `m`, `s`, `S` | minute, second, fraction of a second | yes | yes |
| `E`, `e`, `w`, `x` | weekday as name and number, week, its year | yes | no |
| `Z`, `ZZ` | offset as `+0200`, `+02:00` | yes | yes |

Letters between single quotes are literal; two quotes are one.
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
        letter: of the field, empty for literal text.
        length: how often the letter stands.
        text: literal text.
    """

    letter: str
    length: int = 0
    text: str = ""

    @property
    def is_number(self) -> bool:
        """Whether digits stand for it."""
        if self.letter == "M":
            return self.length < _NAMES_FROM
        return self.letter in "yYdDHkhKmsSewx" and bool(self.letter)


def parse_pattern(pattern: str, known: frozenset[str]) -> tuple[Token, ...]:
    """Return the parts of a pattern.

    Args:
        pattern: Java's date pattern.
        known: letters that can be carried out, `WRITTEN` or `READ`.

    Raises:
        InvalidError: the pattern is empty, or a quote in it has no end.
        UnsupportedError: a letter that is not known.
    """
    if not pattern:
        raise InvalidError("a date pattern is empty: give one such as yyyy/MM/dd")
    tokens = []
    for match in _PIECE.finditer(pattern):
        letter, quoted, plain, lone = match.groups()
        if lone:
            raise InvalidError(f"date pattern {pattern!r} has a quote without an end: close it")
        if letter:
            tokens.append(_field(Token(letter, len(match[0])), pattern, known))
        else:
            tokens.append(Token("", text=plain or (quoted or "'").replace("''", "'")))
    letters = [token.letter for token in tokens if token.letter]
    if known is READ and (not letters or len(set(letters)) < len(letters)):
        raise UnsupportedError(f"date pattern {pattern!r} has no field, or one of them twice: give each once")
    return tuple(tokens)


def _field(token: Token, pattern: str, known: frozenset[str]) -> Token:
    is_zone_name = token.letter == "Z" and token.length > _OFFSET_LENGTH_MAX
    is_short_year = token.letter in "yY" and token.length == len("yy") and known is READ
    if token.letter not in known or is_zone_name or is_short_year:
        raise UnsupportedError(
            f"date pattern {pattern!r} has {token.letter * token.length!r}, which this release does not"
            f" {'read' if known is READ else 'write'}: the letters are {''.join(sorted(known))}"
        )
    return token
