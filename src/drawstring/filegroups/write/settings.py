"""Settings that the driver makes once for all tasks of a write; picklable."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import pyarrow as pa

from drawstring.base.bounds import (
    SORTED_LOG_GROUP_BYTES,
    SORTED_ROW_GROUP_BYTES,
    SORTED_ROW_GROUP_ROWS,
    VALUE_BYTES,
)
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.write.markers import MarkerDirState, Markers
from drawstring.filegroups.write.meta_columns import MetaColumnWriter
from drawstring.formats.lance.write import require_lance
from drawstring.formats.parquet import RowGroups, SharedEncodings
from drawstring.model.files import LANCE
from drawstring.schema.meta import with_meta
from drawstring.storage.protocol import Storage, StorageSpec

_LOG_GROUP_ROWS_MIN: Final = 1_024


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Settings with which one instant writes its data files.

    Attributes:
        storage: opens the table in a worker.
        config: the table.
        instant: requested time of the write.
        schema: the table's columns without meta columns.
        avro_schema: Avro text of the columns with meta columns.
        compression: Parquet codec.
        bloom: rate of false positives of the bloom filters of base files, 0 for none.
        base_file_bytes_max: size in bytes at which a new base file is started.
        log_format: format of data blocks, `parquet` or `avro`.
        clique_files: maximum number of log files in a clique; 0 if log files carry no index.
        partial: the only columns, besides meta columns, that log blocks hold; empty for all.
        logs_named_by: instant of the pending bucket resizing that names the log files; None for none.
        finds_positions: whether log blocks get the positions of their records in the base file.
        summarized: columns of which the writers of files note bounds and counts.
        marker_state: of the folder of markers, which all tasks in this process share.
    """

    storage: StorageSpec
    config: TableConfig
    instant: str
    schema: pa.Schema
    avro_schema: str
    compression: str
    bloom: float
    base_file_bytes_max: int
    log_format: str
    clique_files: int = 0
    partial: tuple[str, ...] = ()
    logs_named_by: str | None = None
    finds_positions: bool = False
    summarized: tuple[str, ...] = ()
    marker_state: MarkerDirState = field(default_factory=MarkerDirState, compare=False, repr=False)

    def markers(self, storage: Storage) -> Markers:
        """Return the markers of the files that are written, which precede the files."""
        return Markers(storage, self.instant, self.marker_state)

    @property
    def key_filter(self) -> float:
        """Rate of false positives of the bloom filters, 0 if files have none: there are none without keys."""
        return self.bloom if self.config.populate_meta_fields else 0.0

    @property
    def row_groups(self) -> RowGroups:
        """How large the row groups of a base file get."""
        if not self.config.has_sorted_files:
            return RowGroups()
        return RowGroups(SORTED_ROW_GROUP_ROWS, SORTED_ROW_GROUP_BYTES)

    @property
    def encodings(self) -> SharedEncodings:
        """What the base files that this process writes have in common."""
        return _encodings(self.storage.uri, self.instant, self.schema)

    def log_encodings(self, schema: pa.Schema) -> SharedEncodings:
        """Return what the log files or blocks with some columns have in common, those of later writes too."""
        return _log_encodings(self.storage.uri, schema)

    @property
    def log_row_groups(self) -> RowGroups:
        """How large the row groups of a native log file get."""
        if not self.config.has_sorted_files:
            return RowGroups()
        rows = SORTED_LOG_GROUP_BYTES // (VALUE_BYTES * len(self.full_schema))
        rows = max(_LOG_GROUP_ROWS_MIN, min(SORTED_ROW_GROUP_ROWS, rows))
        return RowGroups(rows, SORTED_LOG_GROUP_BYTES)

    @property
    def full_schema(self) -> pa.Schema:
        """Meta columns followed by the columns of the table."""
        return with_meta(self.schema)

    @property
    def log_schema(self) -> pa.Schema:
        """The columns of log blocks."""
        if not self.partial:
            return self.full_schema
        return with_meta(pa.schema([field for field in self.schema if field.name in self.partial]))

    @property
    def log_avro_schema(self) -> str:
        """Avro text of the columns of log blocks."""
        if not self.partial:
            return self.avro_schema
        names = set(self.log_schema.names)
        record = json.loads(self.avro_schema)
        return json.dumps({**record, "fields": [each for each in record["fields"] if each["name"] in names]})

    def meta_column_writer(self, task: int) -> MetaColumnWriter:
        """Return the writer of the meta columns for a task."""
        return MetaColumnWriter(self.instant, task, self.full_schema, self.config.populate_meta_fields)


_WRITES_KEPT: Final = 8
_LOGS_KEPT: Final = 64
_FILES_A_CHOICE: Final = 16
"""Log files or blocks after which their rows are looked at again."""


@lru_cache(maxsize=_WRITES_KEPT)
def _encodings(uri: str, instant: str, schema: pa.Schema) -> SharedEncodings:
    return SharedEncodings()


@lru_cache(maxsize=_LOGS_KEPT)
def _log_encodings(uri: str, schema: pa.Schema) -> SharedEncodings:
    return SharedEncodings(_FILES_A_CHOICE)


def check_installed(config: TableConfig) -> None:
    """Check that what writes the files of a table is installed, before the table is changed.

    Raises:
        InvalidError: it is not.
    """
    if config.base_extension == LANCE:
        require_lance()
