"""The location of a record within its partition: which file group it goes to, as a value and as a column.

    kind             text in the column            known from
    BUCKET           <start of the file id>        the hash of the key (indexes that hash)
    FILE_GROUP       <file id>                     the keys of the table (indexes that join), or file sizing
    NEW_FILE_GROUP   +<number in the partition>    file sizing: the key is new, and so is its file group
    UNKNOWN          null                          nothing yet: the key is new

Rows that are written together have equal texts, so that engines group them by one column. Only this module
makes and reads these texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import pyarrow as pa

LOCATION: Final = "_drawstring_location"
"""Name of the column of locations, a text column of prepared rows."""

_NEW: Final = "+"
"""How the texts of new file groups begin; no file id does."""


class LocationKind(Enum):
    """What is known of the file group of a record."""

    UNKNOWN = auto()
    BUCKET = auto()
    FILE_GROUP = auto()
    NEW_FILE_GROUP = auto()


@dataclass(frozen=True, slots=True)
class Location:
    """A place within a partition.

    Attributes:
        kind: what is known.
        value: what the file id begins with (BUCKET), the file id (FILE_GROUP), or a number as decimal digits
            (NEW_FILE_GROUP); empty where nothing is known.
    """

    kind: LocationKind
    value: str = ""

    @staticmethod
    def file_group(file_id: str) -> Location:
        """Return the location of a file group that is there."""
        return Location(LocationKind.FILE_GROUP, file_id)

    @staticmethod
    def bucket(prefix: str) -> Location:
        """Return the location of the file group whose id begins with a bucket's prefix."""
        return Location(LocationKind.BUCKET, prefix)

    @staticmethod
    def new_file_group(number: int) -> Location:
        """Return the location of one of the new file groups that a write gives a partition."""
        return Location(LocationKind.NEW_FILE_GROUP, str(number))

    @property
    def is_new(self) -> bool:
        """Whether the file group is not there yet, whatever the table holds."""
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
            text: as it stands in the column.
            is_hashed: whether the index of the write fixes the file group of every key by a hash.
        """
        if text is None:
            return UNKNOWN
        if is_hashed:
            return Location.bucket(text)
        if text.startswith(_NEW):
            return Location(LocationKind.NEW_FILE_GROUP, text.removeprefix(_NEW))
        return Location.file_group(text)


UNKNOWN: Final = Location(LocationKind.UNKNOWN)
"""The location of a record whose key nobody has seen."""


def is_unknown(locations: pa.Array) -> pa.Array:
    """Tell for each row whether its location is unknown."""
    return locations.is_null()


def file_group_locations(file_ids: pa.Array) -> pa.Array:
    """Return the locations of rows that were read from file groups.

    Args:
        file_ids: of the file groups, by row; null for rows that come from none.
    """
    return file_ids
