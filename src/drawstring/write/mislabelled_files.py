"""Files that call milliseconds microseconds, before a write widens their columns to microseconds.

Afterwards nothing would tell that their numbers are milliseconds (`schema.timestamp_units`). So the columns
stay as they are: timestamps of incoming rows are stored in milliseconds, and those with more digits refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from drawstring.base.resources import map_in_threads, worker_threads
from drawstring.filegroups.log_scanner import open_log
from drawstring.formats.data_file import is_parquet
from drawstring.formats.log_files import log_blocks
from drawstring.formats.log_inline import LogBlock
from drawstring.formats.log_native import NativeBlock
from drawstring.formats.parquet import parquet_schema
from drawstring.model.files import BaseFile, FileSlice, LogFile
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.timestamp_units import units_of_table
from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec
from drawstring.write.facts import WriteFacts


def keeping_millis(
    facts: WriteFacts, current: pa.Schema, incoming: pa.Schema, evolved: pa.Schema
) -> pa.Schema:
    """Return the columns of rows as they are written.

    Args:
        facts: the table before the write.
        current: its columns.
        incoming: those of the rows.
        evolved: those of the table after the write.

    Returns:
        The columns of the rows; with the units of the table, if these would change and a file has other ones.

    Raises:
        CorruptTableError: a file is missing or damaged.
    """
    if units_of_table(evolved, current) is evolved:
        return incoming
    context = facts.locked.context
    lookup = context.lookup(facts.locked.config, facts.timeline)
    files = list(_parts(each for path in lookup.partitions() for each in lookup.slices(path)))
    check = _IsMislabelled(context.storage.spec, current)
    return (
        units_of_table(incoming, current) if any(map_in_threads(check, files, worker_threads())) else incoming
    )


def _parts(slices: Iterator[FileSlice]) -> Iterator[BaseFile | LogFile]:
    """Yield all files that say the units of their columns.

    Apache Hudi copies row groups, so files of one instant may have different units: none speaks for another.
    """
    for each in slices:
        if each.base is not None and is_parquet(each.base.status.path):
            yield each.base
        yield from each.logs


@dataclass(frozen=True, slots=True)
class _IsMislabelled:
    """Tells whether a file has other units than the table."""

    storage: StorageSpec
    columns: pa.Schema

    def __call__(self, file: BaseFile | LogFile) -> bool:
        storage = open_spec(self.storage)
        if isinstance(file, BaseFile):
            stored = parquet_schema(storage, file.status.path)
            return units_of_table(stored, self.columns) is not stored
        with open_log(storage, file) as opened:
            blocks = log_blocks(opened, file, storage.local_path(file.status.path))
            return any(self._has_other_units(block) for block in blocks if block.kind.is_data)

    def _has_other_units(self, block: LogBlock) -> bool:
        parquet = block.footer.parquet if isinstance(block, NativeBlock) and block.footer else None
        if parquet is not None:
            stored = parquet.schema.to_arrow_schema()
        elif block.schema_json is not None:
            stored = avro_to_arrow(block.schema_json)
        else:
            return False
        return units_of_table(stored, self.columns, across_zones=parquet is None) is not stored
