"""Save mode `overwrite`: replacement of a table by a new one.

folder         write the new table to a sibling folder -> rename both -> delete the old one
object store   compute and check all rows -> delete the old table -> write the new one

In a folder the old table exists until the new one is complete. An object store cannot rename; there, all rows
are checked before the old table is deleted.

Hudi deletes the folder first and writes then, so a row that fails costs the old table. An
`insert_overwrite_table` in the same table would need the old columns, keys and type. If a process dies
between the two renames, both tables are in hidden folders beside the place. In an object store, a failure of
the store after the check loses the old table.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from drawstring.base.clock import SystemClock, SystemIds
from drawstring.base.errors import DrawstringError, UnavailableError
from drawstring.config.options.write_options import WriteOptions
from drawstring.model.files import TaskContext
from drawstring.model.result import CommitResult
from drawstring.spark.engine.spark_engine import SparkRows
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.txn.locks.table_lock import table_lock
from drawstring.txn.told import told_pending
from drawstring.txn.transaction import lock_table
from drawstring.write.facts import WriteFacts
from drawstring.write.plan import plan_write
from drawstring.write.verbs import verb_of


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
        pending = partial(told_pending, by.storage, clock)
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
