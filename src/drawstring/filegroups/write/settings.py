"""What every task of one write needs to know: picklable, made once by the driver."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa

from drawstring.base.bounds import ROW_GROUP_ROWS
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.write.meta_columns import MetaColumnWriter
from drawstring.schema.meta import with_meta
from drawstring.storage.protocol import StorageSpec


@dataclass(frozen=True, slots=True)
class FileSettings:
    """How one instant writes its data files.

    Attributes:
        storage: opens the table in a worker.
        config: the table.
        instant: requested time of the write.
        schema: the table's columns without meta columns.
        avro_schema: Avro text of the columns with meta columns.
        compression: Parquet codec.
        bloom: whether base files carry a bloom filter.
        base_file_bytes_max: size at which a new base file is begun.
        log_format: `parquet` or `avro` data blocks.
        clique_files: log files that tell of their keys together; 0 where log files carry no index.
        row_group_rows: rows in a row group.
        partial: the only columns, besides meta columns, that log blocks hold; empty for all.
        logs_named_by: the pending resizing of buckets that log files are named by; None for what is usual.
    """

    storage: StorageSpec
    config: TableConfig
    instant: str
    schema: pa.Schema
    avro_schema: str
    compression: str
    bloom: bool
    base_file_bytes_max: int
    log_format: str
    clique_files: int = 0
    row_group_rows: int = ROW_GROUP_ROWS
    partial: tuple[str, ...] = ()
    logs_named_by: str | None = None

    @property
    def full_schema(self) -> pa.Schema:
        """The table's columns with the meta columns in front."""
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

    def stamp(self, task: int) -> MetaColumnWriter:
        """Return what puts the meta columns on the rows of a task."""
        return MetaColumnWriter(self.instant, task, self.full_schema, self.config.populate_meta_fields)
