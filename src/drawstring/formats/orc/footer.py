"""The footer of an ORC file, as far as Arrow does not tell it: places of stripes, statistics of columns.

    footer     3 stripes: 1 offset, 2 length of the index, 3 of the data, 4 of the footer, 5 rows
               4 types: 2 numbers of the nested types (packed); the first one has the columns
               6 rows
               7 statistics of each type (`statistics`)

A type is followed by those that are nested in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from pyarrow import orc

from drawstring.formats.orc.statistics import plain_bytes
from drawstring.formats.protobuf import message_fields, varint

Fields: TypeAlias = Sequence[tuple[int, int | bytes]]

STRIPES, ROWS = 3, 6
_TAIL_FOOTER: Final = 2
_TYPES, _STATISTICS, _NESTED = 4, 7, 2
_OFFSET, _INDEX_BYTES, _DATA_BYTES, _FOOTER_BYTES, _STRIPE_ROWS = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Stripe:
    """A stripe: where it is in the file, and the number of its rows.

    Attributes:
        footer_offset, footer_bytes: place of its footer.
        rows: number of rows.
        stored: the message in the file's footer.
    """

    footer_offset: int
    footer_bytes: int
    rows: int
    stored: bytes

    @staticmethod
    def of(stored: bytes) -> Stripe:
        """Return the stripe that a message describes."""
        fields = {number: value for number, value in message_fields(stored) if isinstance(value, int)}
        start, index, data = (fields.get(number, 0) for number in (_OFFSET, _INDEX_BYTES, _DATA_BYTES))
        rows = fields.get(_STRIPE_ROWS, 0)
        return Stripe(start + index + data, fields.get(_FOOTER_BYTES, 0), rows, stored)


@dataclass(frozen=True, slots=True)
class OrcFooter:
    """The footer of a file.

    Attributes:
        fields: numbers and values of its message.
        stripes: the stripes.
    """

    fields: Fields
    stripes: tuple[Stripe, ...]

    @staticmethod
    def of(opened: orc.ORCFile) -> OrcFooter:
        """Return the footer of a file that Arrow opened.

        Raises:
            ValueError: it is damaged.
        """
        tail = dict(message_fields(opened.reader.serialized_file_tail()))
        fields = tuple(message_fields(bytes_of(tail.get(_TAIL_FOOTER))))
        return OrcFooter(fields, tuple(Stripe.of(bytes_of(value)) for value in _all(fields, STRIPES)))

    def places(self, names: Sequence[str]) -> dict[str, range]:
        """Return by column the numbers of its type and of those nested in it.

        Args:
            names: the names of all columns of the file.
        """
        types = [bytes_of(value) for value in _all(self.fields, _TYPES)]
        starts = [*_packed(types[0] if types else b"", _NESTED), len(types)]
        return {name: range(*ends) for name, ends in zip(names, pairwise(starts), strict=False)}

    def plain_bytes(self, numbers: Sequence[int] | None = None) -> int:
        """Return about how much memory the values of some types take.

        Args:
            numbers: of the types; None for all.

        Raises:
            ValueError: the footer is damaged.
        """
        statistics = [bytes_of(value) for value in _all(self.fields, _STATISTICS)]
        chosen = range(len(statistics)) if numbers is None else numbers
        return sum(plain_bytes(statistics[number]) for number in chosen if number < len(statistics))


def bytes_of(value: int | bytes | None) -> bytes:
    """Return the value of a field that has bytes.

    Raises:
        ValueError: it has a number, or is missing.
    """
    if not isinstance(value, bytes):
        raise ValueError("a part of the file's footer is missing")
    return value


def _all(fields: Fields, wanted: int) -> list[int | bytes]:
    return [value for number, value in fields if number == wanted]


def _packed(message: bytes, wanted: int) -> list[int]:
    """Return the numbers in a field of a message, which writers store packed or one by one."""
    numbers: list[int] = []
    for number, value in message_fields(message):
        if number != wanted:
            continue
        if isinstance(value, int):
            numbers.append(value)
            continue
        at = 0
        while at < len(value):
            found, at = varint(value, at)
            numbers.append(found)
    return numbers
