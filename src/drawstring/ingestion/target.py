"""The table that rows are ingested into: opened, or created with the columns of the first rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from drawstring.base.errors import InvalidError, NoTableError
from drawstring.config.options.write_options import WriteOptions, table_scope
from drawstring.creation import create
from drawstring.engine.protocol import Engine
from drawstring.entry import open as open_table
from drawstring.ingestion.batch_engine import RowsOf
from drawstring.ingestion.checkpoints import StreamerCheckpoints
from drawstring.model.table_version import DEFAULT_VERSION
from drawstring.services.streams import StreamWriter, stream_options
from drawstring.table import Table

_STREAM: Final = "ingest"
_SEPARATORS: Final = re.compile(r"[,;|\t]")


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows go.

    Attributes:
        uri: root of the table.
        options: options of its writes, by Hudi's keys.
        storage_options: options of the object store.
        engine: runs the writes; None for the embedded one.
    """

    uri: str
    options: Mapping[str, Any]
    storage_options: Mapping[str, str]
    engine: Engine | None

    def open(self) -> Table | None:
        """Return the table, None if there is none yet."""
        try:
            return open_table(self.uri, storage_options=self.storage_options or None, engine=self.engine)
        except NoTableError:
            return None

    def create(self, schema: pa.Schema) -> Table:
        """Return a new table.

        Args:
            schema: its columns.

        Raises:
            InvalidError: the options do not describe a table with these columns.
        """
        try:
            return self._created(schema)
        except InvalidError as error:
            hint = _hint(schema.names)
            if not hint:
                raise
            raise InvalidError(f"{error.message} {hint}") from error

    def _created(self, schema: pa.Schema) -> Table:
        parsed = WriteOptions.parse(self.options)
        return create(
            self.uri,
            schema,
            record_key=parsed.record_key,
            name=parsed.table_name,
            table_type=parsed.table_type or "COPY_ON_WRITE",
            partition_by=parsed.partition_path,
            ordering=parsed.ordering,
            version=parsed.table_version or DEFAULT_VERSION,
            properties=table_scope(self.options),
            storage_options=self.storage_options or None,
            engine=self.engine,
        )

    def writer(self, table: Table, rows_of: RowsOf) -> StreamWriter:
        """Return what writes batches with checkpoints in Hudi's form to the table.

        Args:
            table: the table.
            rows_of: takes rows of a batch to the table.

        Raises:
            InvalidError: an option makes no sense.
            CorruptTableError: a commit is damaged.
        """
        options = stream_options(self.options, _STREAM)
        keeper = StreamerCheckpoints(is_old=not table.config.rules.layout.has_completion_times)
        return StreamWriter(table._context, rows_of, options, table._errors, keeper)


def _hint(names: Sequence[str]) -> str | None:
    """Return what to do about columns that look like those of CSV files that were read wrongly."""
    if len(names) == 1 and _SEPARATORS.search(names[0]):
        return "Name the separator of the files with hoodie.streamer.csv.sep."
    if "_c0" in names:
        return (
            "If the first lines of the files name the columns, set hoodie.streamer.csv.header=true; the"
            " separator is hoodie.streamer.csv.sep."
        )
    return None
