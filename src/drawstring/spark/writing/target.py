"""The target of a DataFrame write: a table that is opened, created or replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from drawstring.base.errors import InvalidError
from drawstring.bootstrapping import Place, bootstrapped
from drawstring.config.keys.locks import without_provider
from drawstring.config.keys.write import BASE_PATH
from drawstring.config.options.write_options import WriteOptions, table_scope
from drawstring.creation import TableDefinition, create
from drawstring.engine.protocol import Engine
from drawstring.entry import open as open_table
from drawstring.model.files import HOODIE_FOLDER
from drawstring.model.result import CommitResult
from drawstring.model.table_version import DEFAULT_VERSION
from drawstring.spark.engine.spark_engine import SparkRows
from drawstring.spark.reading.dataframe import plan_name
from drawstring.spark.writing.overwrite import Replacement, replace_table
from drawstring.storage.protocol import Storage
from drawstring.table import Table


@dataclass(frozen=True, slots=True)
class Target:
    """The target table of a write.

    Attributes:
        path: the table's root as the user gave it.
        storage: storage of the table.
        storage_options: options that opened the storage.
        engine: runs the write.
    """

    path: str
    storage: Storage
    storage_options: Mapping[str, str]
    engine: Engine

    def exists(self) -> bool:
        """Return whether a table exists, intact or damaged."""
        names = ("hoodie.properties", "hoodie.properties.backup")
        return any(self.storage.exists(f"{HOODIE_FOLDER}/{name}") for name in names)

    def open(self) -> Table:
        """Open the existing table."""
        return open_table(self.path, storage_options=self.storage_options, engine=self.engine)

    def create(self, schema: pa.Schema, write_options: WriteOptions, options: Mapping[str, Any]) -> Table:
        """Create a table with a schema.

        Raises:
            InvalidError: the options do not describe a table.
        """
        self._check_description(write_options)
        return self._create(self.path, schema, write_options, options)

    def bootstrap(self, write_options: WriteOptions, options: Mapping[str, Any]) -> CommitResult:
        """Bootstrap a table from the folder that the options name.

        Raises:
            InvalidError: the table already exists, or the options or the folder do not describe a table.
        """
        definition = TableDefinition(
            write_options.table_type or "COPY_ON_WRITE",
            write_options.table_version or DEFAULT_VERSION,
            write_options.record_key,
            write_options.partition_path,
            write_options.ordering,
        )
        place = Place(self.path, self.storage_options, self.engine)
        return bootstrapped(place, write_options.table_name, definition, options)

    def replace(
        self, df: DataFrame, rows: SparkRows, write_options: WriteOptions, options: Mapping[str, Any]
    ) -> CommitResult:
        """Replace the existing table by a new one.

        Raises:
            InvalidError: the options do not describe a table, or the rows come from the table that would be
                dropped; the table is unchanged.
        """
        self._check_description(write_options)
        self._check_not_read(df)

        def create_at(path: str) -> Table:
            return self._create(path, rows.schema, write_options, options)

        def write(table: Table, rows: SparkRows) -> CommitResult:
            # Beside the old table the new one needs no lock but its own: that of the options is held.
            is_beside = table.uri != self.storage.spec.uri
            own = without_provider({**options, BASE_PATH: None}) if is_beside else options
            return table._write_rows(write_options.operation, rows, own)

        create_at("memory://drawstring-check")._context.storage.delete_tree("")
        return replace_table(self.path, rows, Replacement(self.storage, create_at, write, write_options))

    def _check_description(self, write_options: WriteOptions) -> None:
        if write_options.operation in ("delete", "delete_partition"):
            raise InvalidError(
                "There is no table to delete from. Write rows to it first, then delete with mode append.",
                table=self.path,
            )

    def _create(
        self, path: str, schema: pa.Schema, write_options: WriteOptions, options: Mapping[str, Any]
    ) -> Table:
        return create(
            path,
            schema,
            record_key=write_options.record_key,
            name=write_options.table_name or self.path.rstrip("/").rpartition("/")[2],
            table_type=write_options.table_type or "COPY_ON_WRITE",
            partition_by=write_options.partition_path,
            ordering=write_options.ordering,
            version=write_options.table_version or DEFAULT_VERSION,
            properties=table_scope(options),
            storage_options=self.storage_options,
            engine=self.engine,
        )

    def _check_not_read(self, df: DataFrame) -> None:
        """Check that the rows do not come from the table that is dropped.

        Raises:
            InvalidError: they do.
        """
        root = self.storage.full_uri("")
        plan = df._jdf.queryExecution().analyzed().toString()
        local = root.removeprefix("file://")
        files = [file.replace("file:///", "file:/").removeprefix("file:") for file in df.inputFiles()]
        if plan_name(root) in plan or any(file.startswith(f"{local}/") for file in files):
            raise InvalidError(
                "The rows to write come from the table that mode overwrite would drop. Use operation"
                " insert_overwrite_table, or write the rows elsewhere first.",
                table=self.path,
            )
