"""Simple index: join the incoming keys with the keys of the partitions that they fall into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.base.errors import ConflictError
from drawstring.engine.protocol import Rows
from drawstring.index.protocol import KEY, LOCATION_SCHEMA, PARTITION, KeyReader, SlicesOf
from drawstring.model.files import FileSlice


@dataclass(frozen=True, slots=True)
class SimpleIndex:
    """Looks keys up in the key column of the touched partitions (partition-scoped)."""

    @property
    def is_hashed(self) -> bool:
        """The key alone decides nothing."""
        return False

    def routes(self, keys: pa.Array) -> pa.Array | None:
        """Return None: only the table knows."""
        return None

    def locate(self, rows: Rows, slices_of: SlicesOf, read_keys: KeyReader) -> Rows:
        """Join with the keys of every slice in the partitions that the rows name."""
        partitions = rows.distinct(PARTITION)
        sources = [file_slice for path in partitions for file_slice in slices_of(path)]
        return rows.join_keys((KEY, PARTITION), sources, read_keys, LOCATION_SCHEMA)

    def find(self, route: str | None, slices: Sequence[FileSlice]) -> FileSlice | None:
        """Return the slice with that file id; None for a new key."""
        if route is None:
            return None
        for file_slice in slices:
            if file_slice.file_id == route:
                return file_slice
        raise ConflictError(f"file group {route} went away while the write ran: write again")

    def new_file_id(self, route: str | None, ids: Ids) -> str:
        """Name a file group."""
        return f"{ids.uuid()}-0"
