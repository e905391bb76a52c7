"""Save a DataFrame to a table that is opened, created or replaced.

Save mode `overwrite` replaces a table by a new one:

    folder         write the new table to a sibling folder -> rename both -> delete the old one
    object store   compute and check all rows -> delete the old table -> write the new one

In a folder the old table exists until the new one is complete. An object store cannot rename; there, all
rows are checked before the old table is deleted. Hudi deletes the folder first and writes then, so a row
that fails costs the old table. An `insert_overwrite_table` in the same table would need the old columns,
keys and type.

If a process dies between the two renames, both tables are in hidden folders beside the table's folder. In
an object store, a failure of the store after the check loses the old table.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from drawstring.base.clock import SystemClock, SystemIds
from drawstring.base.errors import DrawstringError, InvalidError, UnavailableError
from drawstring.bootstrapping import Place, bootstrapped
from drawstring.config.keys.concurrency import without_provider
from drawstring.config.keys.write import WRITE_BASE_PATH
from drawstring.config.options.write_options import WriteOptions, table_scope
from drawstring.creation import TableDefinition, create
from drawstring.engine.protocol import Engine
from drawstring.entry import open as open_table
from drawstring.model.files import HOODIE_FOLDER, TaskContext
from drawstring.model.result import CommitResult
from drawstring.model.table_version import DEFAULT_VERSION
from drawstring.spark.engine import SparkRows
from drawstring.spark.reading.dataframe import plan_name
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.txn.heartbeat import describe_pending
from drawstring.txn.locks.table_lock import table_lock
from drawstring.txn.transaction import lock_table
from drawstring.write.facts import WriteFacts
from drawstring.write.plan import plan_write, verb_of


@dataclass(frozen=True, slots=True)
class Replacement:
    """The replacement of a table.

    Attributes:
        storage: storage of the old table.
        create: creates the new table, empty, at a path.
        write: writes the rows to the new table.
        write_options: the options of the write.
    """

    storage: Storage
    create: Callable[[str], Table]
    write: Callable[[Table, SparkRows], CommitResult]
    write_options: WriteOptions


def replace_table(path: str, rows: SparkRows, by: Replacement) -> CommitResult:
    """Replace a table by a new one.

    Args:
        path: root of the old table.
        rows: rows of the new table.
        by: the replacement.

    Raises:
        ConflictError: another writer holds the lock of the old table.
        DrawstringError: the write failed; the old table is unchanged.
    """
    try:
        folders = _staging_folder(by.storage)
        if folders is None:
            return _replaced_after_check(path, rows, by)
        return _replaced_by_swap(*folders, rows, by)
    except DrawstringError as error:
        error.table = path
        raise


def _replaced_by_swap(root: Path, staged: Path, rows: SparkRows, by: Replacement) -> CommitResult:
    try:
        locking = by.write_options.locking
        clock = SystemClock()
        pending = partial(describe_pending, by.storage, clock)
        with table_lock(by.storage, clock, SystemIds(), locking.wait_ms, locking, pending):
            result = by.write(by.create(str(staged)), rows)
            _swap(root, staged, open_storage(root.parent, by.storage.spec.options))
        return result
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _staging_folder(storage: Storage) -> tuple[Path, Path] | None:
    """Return the table's folder and an empty sibling folder, None if folders cannot be renamed."""
    local = storage.local_path("")
    if local is None or os.path.ismount(local):
        return None
    root = Path(local).resolve()
    staged = root.with_name(f".{root.name}.replacement-{SystemIds().uuid()}")
    try:
        staged.mkdir()
        shutil.copymode(root, staged)
    except OSError:
        return None
    return root, staged


def _swap(root: Path, staged: Path, parent: Storage) -> None:
    """Replace the old folder by the new one and delete the old one; a failure leaves both unchanged.

    Args:
        root: folder of the old table.
        staged: folder of the new table.
        parent: storage of the parent folder.
    """
    retired = staged.with_name(f"{staged.name}.old")
    parent.sync([""])
    try:
        root.rename(retired)
        try:
            staged.rename(root)
        except OSError:
            retired.rename(root)
            raise
    except OSError as error:
        raise UnavailableError(
            f"The folder of the table could not be replaced ({error}). The old table is unchanged. Check the"
            " permission to rename the folder, then write again."
        ) from error
    parent.sync([""])
    shutil.rmtree(retired, ignore_errors=True)


def _replaced_after_check(path: str, rows: SparkRows, by: Replacement) -> CommitResult:
    persisted = rows.persist()
    try:
        _check_rows(persisted, by)
        by.storage.delete_tree("")
        return by.write(by.create(path), persisted)
    finally:
        persisted.release()


def _check_rows(rows: SparkRows, by: Replacement) -> None:
    """Compute all rows with the record keys and columns of the new table, and discard them."""
    context = by.create("memory://drawstring-check")._context
    try:
        with lock_table(context, by.write_options.locking.own()) as locked:
            timeline = locked.store.load()
            facts = WriteFacts(locked, timeline, locked.store.new_time(timeline))
            plan = plan_write(facts, rows.schema, verb_of(by.write_options.operation), by.write_options)
        rows.map_batches(plan.prepare, plan.prepare.output_schema).run(WalkThrough())
    finally:
        context.storage.delete_tree("")


@dataclass(frozen=True, slots=True)
class WalkThrough:
    """A task that computes and counts all rows."""

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterable[int]:
        return [sum(batch.num_rows for batch in batches)]


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
            own = without_provider({**options, WRITE_BASE_PATH: None}) if is_beside else options
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
