"""Location of a record: the file group in its partition that it is written to, as a value and as a column.

    kind             text in the column            source
    BUCKET           <prefix of the file id>       hash of the key (hashing indexes)
    FILE_GROUP       <file id>                     keys of the table (joining indexes), or file sizing
    NEW_FILE_GROUP   +<number in the partition>    file sizing: the key and its file group are new
    UNKNOWN          null                          none yet: the key is new

Rows of the same file group have equal texts, so engines group them by one column. Only this module encodes
and decodes these texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import pyarrow as pa

LOCATION: Final = "_drawstring_location"
"""Name of the location column, a text column of prepared rows."""

_NEW: Final = "+"
"""Prefix of the texts of new file groups; no file id begins with it."""


class LocationKind(Enum):
    """Kind of a location."""

    UNKNOWN = auto()
    BUCKET = auto()
    FILE_GROUP = auto()
    NEW_FILE_GROUP = auto()


@dataclass(frozen=True, slots=True)
class Location:
    """A file group within a partition.

    Attributes:
        kind: meaning of the value.
        value: prefix of the file id (BUCKET), the file id (FILE_GROUP), or a decimal number (NEW_FILE_GROUP);
            empty for UNKNOWN.
    """

    kind: LocationKind
    value: str = ""

    @staticmethod
    def file_group(file_id: str) -> Location:
        """Return the location of an existing file group."""
        return Location(LocationKind.FILE_GROUP, file_id)

    @staticmethod
    def bucket(prefix: str) -> Location:
        """Return the location of the file group whose id begins with the prefix of a bucket."""
        return Location(LocationKind.BUCKET, prefix)

    @staticmethod
    def new_file_group(number: int) -> Location:
        """Return the location of a new file group that a write creates in a partition."""
        return Location(LocationKind.NEW_FILE_GROUP, str(number))

    @property
    def is_new(self) -> bool:
        """Whether the file group does not exist yet."""
        return self.kind is LocationKind.NEW_FILE_GROUP

    def encode(self) -> str | None:
        """Return the text of the column."""
        if self.kind is LocationKind.UNKNOWN:
            return None
        return _NEW + self.value if self.is_new else self.value

    @staticmethod
    def decode(text: str | None, *, is_hashed: bool) -> Location:
        """Return the location of a text.

        Args:
            text: value of the location column.
            is_hashed: whether the index of the write is a hashing index.
        """
        if text is None:
            return UNKNOWN
        if is_hashed:
            return Location.bucket(text)
        if text.startswith(_NEW):
            return Location(LocationKind.NEW_FILE_GROUP, text.removeprefix(_NEW))
        return Location.file_group(text)


UNKNOWN: Final = Location(LocationKind.UNKNOWN)
"""The location of a record with a new key."""


def is_unknown(locations: pa.Array) -> pa.Array:
    """Return for each row whether its location is unknown."""
    return locations.is_null()


def file_group_locations(file_ids: pa.Array) -> pa.Array:
    """Return the locations of rows that were read from file groups.

    Args:
        file_ids: file id of each row; null for rows that come from no file group.
    """
    return file_ids
