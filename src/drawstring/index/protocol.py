"""What an index can do, and the columns that it works on.

A prepared batch has the table's columns and then

    _hoodie_record_key | _hoodie_partition_path | _drawstring_route

The route says which file group of the partition a row goes to: a bucket number (bucket index), a
file id (simple index), or null where the key is new and any new file group will do. The column is
missing where nobody looked for one (plain inserts without a hashed index).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.engine.protocol import Rows
from drawstring.model.files import FileSlice

KEY: Final = "_hoodie_record_key"
PARTITION: Final = "_hoodie_partition_path"
ROUTE: Final = "_drawstring_route"
IS_DELETED: Final = "_drawstring_is_deleted"

LOCATION_SCHEMA: Final = pa.schema(
    [(KEY, pa.string()), (PARTITION, pa.string()), (ROUTE, pa.string()), (IS_DELETED, pa.bool_())]
)
"""What a look at the table tells of a key: the columns that a `KeyReader` yields.

A log file may have deleted the key; the file group remembers its ordering value, so a new version of the
record belongs there all the same.
"""

SlicesOf = Callable[[str], Sequence[FileSlice]]
"""Latest file slices of a partition path."""

KeyReader = Callable[[FileSlice], Iterator[pa.RecordBatch]]
"""Reads the keys of a file slice, the file id as their route; columns `LOCATION_SCHEMA`."""


class Index(Protocol):
    """One way to find the file group of a key. Picklable."""

    @property
    def is_hashed(self) -> bool:
        """Whether the key alone decides the route, for old keys and new ones."""
        ...

    def routes(self, keys: pa.Array) -> pa.Array | None:
        """Return the routes that follow from the keys alone, or None when they do not."""
        ...

    def locate(self, rows: Rows, slices_of: SlicesOf, read_keys: KeyReader) -> Rows:
        """Fill in the routes that need a look at the table."""
        ...

    def find(self, route: str | None, slices: Sequence[FileSlice]) -> FileSlice | None:
        """Return the slice that a route means, or None when a new file group is due.

        Raises:
            InvalidError: the slices were not written with this index.
        """
        ...

    def new_file_id(self, route: str | None, ids: Ids) -> str:
        """Name a new file group for a route."""
        ...
