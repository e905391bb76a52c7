"""What an index can do, and the columns that it works on.

A prepared batch has the table's columns and then

    _hoodie_record_key | _hoodie_partition_path | _drawstring_route

The route says which file group of the partition a row goes to: a bucket number (bucket index), a
file id (simple index), or null where the key is new and any new file group will do. The column is
missing where nobody looked for one (plain inserts without a hashed index).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.engine.protocol import Rows
from drawstring.filegroups.write.settings import FileSettings
from drawstring.index.tagging import TableLook
from drawstring.model.files import FileSlice
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY

ROUTE: Final = "_drawstring_route"
IS_DELETED: Final = "_drawstring_is_deleted"

LOCATION_SCHEMA: Final = pa.schema(
    [(RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string()), (ROUTE, pa.string()), (IS_DELETED, pa.bool_())]
)
"""What a look at the table tells of a key: the columns that a reader of keys yields, the file id as route.

A log file may have deleted the key; the file group remembers its ordering value, so a new version of the
record belongs there all the same.
"""


class Index(Protocol):
    """One way to find the file group of a key. Picklable."""

    @property
    def is_hashed(self) -> bool:
        """Whether the key alone decides the route, for old keys and new ones."""
        ...

    @property
    def is_global(self) -> bool:
        """Whether a key is looked for in all partitions, whatever the row says."""
        ...

    @property
    def can_index_log_files(self) -> bool:
        """Whether new records may go to log files; else they come to base files only."""
        ...

    def routes(self, keys: pa.Array, partitions: pa.Array) -> pa.Array | None:
        """Return the routes that follow from keys and partition paths alone, or None when they do not."""
        ...

    def gather(self, rows: Rows, settings: FileSettings) -> Rows:
        """Bring rows of one record together, where they may be told apart by their partition paths."""
        ...

    def locate(self, rows: Rows, look: TableLook) -> Rows:
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
