"""Save mode `overwrite`: a new table in the place of an old one, which stays until the new one is there.

folder         write the new table beside the old one -> rename both -> delete the old one
object store   compute and check all rows -> delete the old table -> write the new one

An object store cannot rename. There, rows that fail, fail before anything is deleted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from drawstring.base.clock import SystemClock, SystemIds
from drawstring.base.errors import DrawstringError, UnavailableError
from drawstring.config.options.write_options import WriteOptions
from drawstring.engine.protocol import TaskContext
from drawstring.model.result import CommitResult
from drawstring.spark.engine.spark_engine import SparkRows
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.txn.locks.table_lock import table_lock
from drawstring.txn.transaction import lock_table
from drawstring.write.facts import WriteFacts
from drawstring.write.plan import plan_write
from drawstring.write.verbs import verb_of


@dataclass(frozen=True, slots=True)
class Replacement:
    """What takes the place of a table.

    Attributes:
        storage: the old table's files.
        create: creates the new table, empty, at a path.
        write: writes the rows to it.
        asked: the options of the write.
    """

    storage: Storage
    create: Callable[[str], Table]
    write: Callable[[Table, SparkRows], CommitResult]
    asked: WriteOptions


def replace_table(path: str, rows: SparkRows, by: Replacement) -> CommitResult:
    """Put a new table in the place of the one that is there.

    Args:
        path: the old table's root.
        rows: of the new table.
        by: the new table.

    Raises:
        ConflictError: somebody writes to the old table.
        DrawstringError: whatever the write fails with; the old table is as it was.
    """
    try:
        beside = _room_beside(by.storage)
        if beside is None:
            return _replaced_after_check(path, rows, by)
        return _replaced_by_swap(*beside, rows, by)
    except DrawstringError as error:
        error.table = path
        raise


def _replaced_by_swap(root: Path, staged: Path, rows: SparkRows, by: Replacement) -> CommitResult:
    try:
        with table_lock(by.storage, SystemClock(), SystemIds(), by.asked.lock_wait_ms):
            result = by.write(by.create(str(staged)), rows)
            _swap(root, staged, open_storage(root.parent, by.storage.spec.options))
        return result
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _room_beside(storage: Storage) -> tuple[Path, Path] | None:
    """Return a table's folder and an empty one beside it, None where folders cannot be renamed."""
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


def _swap(root: Path, staged: Path, around: Storage) -> None:
    """Put one folder in the place of another, which goes; a failure leaves both where they were.

    Args:
        root: the old table.
        staged: the new one.
        around: the folder that both are in.
    """
    aside = staged.with_name(f"{staged.name}.old")
    around.sync([""])
    try:
        root.rename(aside)
        try:
            staged.rename(root)
        except OSError:
            aside.rename(root)
            raise
    except OSError as error:
        raise UnavailableError(
            f"the new table could not take the place of the old one ({error}): the old one is as it was;"
            " check who may rename the folder, then write again"
        ) from error
    around.sync([""])
    shutil.rmtree(aside, ignore_errors=True)


def _replaced_after_check(path: str, rows: SparkRows, by: Replacement) -> CommitResult:
    kept = rows.persist()
    try:
        _check_rows(kept, by)
        by.storage.delete_tree("")
        return by.write(by.create(path), kept)
    finally:
        kept.release()


def _check_rows(rows: SparkRows, by: Replacement) -> None:
    """Compute all rows, and their keys and columns as the new table has them."""
    state = by.create("memory://drawstring-check")._context
    try:
        with lock_table(state, by.asked.lock_wait_ms) as session:
            timeline = session.store.load()
            facts = WriteFacts(session, timeline, session.store.new_time(timeline))
            plan = plan_write(facts, rows.schema, verb_of(by.asked.operation), by.asked)
        rows.map_batches(plan.prepare, plan.prepare.output_schema).run(WalkThrough())
    finally:
        state.storage.delete_tree("")


@dataclass(frozen=True, slots=True)
class WalkThrough:
    """A task that takes all rows and does nothing with them."""

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterable[int]:
        return [sum(batch.num_rows for batch in batches)]
