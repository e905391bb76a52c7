"""Change the columns (ALTER TABLE with schema on read), the properties or the name of a table.

    versions so far ── changes ──> new version ──> .hoodie/.schema, latest_schema and schema of the commit

`alter_columns` makes a commit without rows that has another version of the schema. Data files stay as they
are; readers look for columns by their ids (`config.table.schema_versions`).

Statistics by the name of a column would then be of another column, so the commit drops those of the
metadata table. A write with their options builds them again for other readers. Queries of such a table do
not use them, since a file may have had another column under the name (`query.planner`).

`overwrite_properties` replaces all properties of a table, to repair them. `rename` changes its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.schema_versions import SchemaHistory
from drawstring.config.table.storage_layout import LSM_TREE, STORAGE_LAYOUT, is_sorted
from drawstring.config.table_config import TableConfig, table_config
from drawstring.filegroups.file_system_view import table_view
from drawstring.metadata.column_ranges import COLUMN_STATS, PARTITION_STATS
from drawstring.metadata.definitions import definitions
from drawstring.model.commit import CommitMetadata, WriteOperation
from drawstring.model.instant import Action
from drawstring.model.result import CommitResult
from drawstring.schema.avro import (
    Comments,
    arrow_to_avro,
    avro_to_arrow,
    comments_of,
    record_name,
    with_comments,
)
from drawstring.schema.fields import (
    IS_DELETED_COLUMN,
    META_COLUMNS,
    OPERATION_COLUMN,
    stored_columns,
    without_meta,
)
from drawstring.schema.internal_schema import (
    ChangeKind,
    ColumnChange,
    changed,
    comments_after,
    evolved_history,
    first_history,
)
from drawstring.schema.logical_types import descriptor
from drawstring.timeline.properties import save_properties
from drawstring.timeline.schema import table_schema_json, with_history
from drawstring.timeline.timeline import Timeline
from drawstring.txn.events import emit_commit
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, begin, lock_table, recover_and_load
from drawstring.write.retry import run_attempts
from drawstring.write.write_outcome import WriteOutcome

_OPERATION: Final = "alter_columns"
_OF_THE_FORMAT: Final = (*META_COLUMNS, OPERATION_COLUMN)
_STATISTICS: Final = (COLUMN_STATS, PARTITION_STATS)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a table.

    Attributes:
        schema: the columns.
        comments: their comments.
        history: the versions of the schema, None if it has none.
    """

    schema: pa.Schema
    comments: Comments
    history: SchemaHistory | None


def alter_columns(
    context: TableContext,
    changes: Sequence[ColumnChange],
    options: WriteOptions,
    *,
    by_versions: bool = True,
) -> WriteOutcome:
    """Change columns of a table in one commit.

    Args:
        context: the table.
        changes: the changes, in order.
        options: of writes: lock, policy for failed writes, services that follow.
        by_versions: whether columns are found by ids from then on. Comments never need that, nor do columns
            that are added at the end or get a wider type; for a new VECTOR, BLOB or VARIANT at the end it is
            not done, since versions have no such types.

    Raises:
        ConflictError: another writer holds the lock.
        InvalidError: there is no such column, or it cannot be changed so; nothing was written.
    """
    by_versions = by_versions and not all(map(_is_without_version, changes))
    return run_attempts(
        context, options, lambda _: _altered(context, changes, options, by_versions=by_versions)
    )


def _is_without_version(change: ColumnChange) -> bool:
    if change.kind is ChangeKind.ADD and change.place is None and len(change.path) == 1:
        return change.type is not None and descriptor(change.type) is not None
    return change.kind is ChangeKind.COMMENT


def _altered(
    context: TableContext, changes: Sequence[ColumnChange], options: WriteOptions, *, by_versions: bool
) -> WriteOutcome:
    watch = Stopwatch()
    with lock_table(context, options.locking) as locked:
        for change in changes:
            _check_change(locked, change)
        with locked.lock.race_if_lost():
            locked, timeline = recover_and_load(locked, options.failed_writes)
        if any(_takes_deletion_mark(each) for each in changes):
            _check_no_marks(locked, timeline)
        before = _columns(locked, timeline, by_versions=by_versions)
        time = locked.store.new_time(timeline)
        after = _after(before, changes, locked.config, time)
        if not all(each.keeps_values for each in changes):
            _drop_statistics(locked)
        action = Action.DELTA_COMMIT if locked.config.is_merge_on_read else Action.COMMIT
        with begin(locked, action, time, failed=options.failed_writes) as transaction:
            text = arrow_to_avro(after.schema, *record_name(locked.config.name))
            extra = {"schema": with_comments(text, after.comments)}
            metadata = CommitMetadata(operation=WriteOperation.ALTER_SCHEMA, extra=extra)
            completed = transaction.commit(metadata, after.history)
        result = CommitResult.of(completed, _OPERATION, (), watch.seconds())
        emit_commit(context, locked.config, result, watch.laps)
        return WriteOutcome(context, locked.config, options, result, timeline.with_completed(completed))


def _takes_deletion_mark(change: ColumnChange) -> bool:
    is_taken = change.kind in (ChangeKind.DROP, ChangeKind.RENAME)
    return is_taken and change.column.lower() == IS_DELETED_COLUMN


def _check_no_marks(locked: LockedTable, timeline: Timeline) -> None:
    """Check that no log file may have rows that the column marks as deleted: these would be there again."""
    if not locked.config.is_merge_on_read:
        return
    view = table_view(locked.context.storage, locked.config, timeline, locked.store)
    if any(each.logs for each in view.all_slices()):
        raise InvalidError(
            f"{IS_DELETED_COLUMN} marks rows in log files as deleted, which would be there again without it."
            " Compact the table first (compact)."
        )


def _check_change(locked: LockedTable, change: ColumnChange) -> None:
    """Check that nothing but the rows depends on a column."""
    config, name = locked.config, change.path[0]
    check_names(change)
    if change.kind in (ChangeKind.ADD, ChangeKind.MOVE, ChangeKind.COMMENT):
        return
    roles = {
        "record key": config.record_key_fields,
        "partition path": config.partition_fields,
        "ordering": config.ordering_fields,
        "bucket index": config.bucket_hash_fields,
        "merging": tuple(config.merge_properties.values()),
    }
    role = next(
        (role for role, names in roles.items() if any(_concerns(change, each) for each in names)), None
    )
    if role is not None:
        raise InvalidError(
            f"{name} is a column of the {role} in the properties of the table, and cannot be changed. Write"
            " the rows to a new table."
        )
    for index, defined in definitions(locked.context.storage).items():
        if index not in _STATISTICS and name in (defined.get("sourceFields") or ()):
            raise InvalidError(
                f"The index {index} is of column {name}. Drop the index first (table.indexes.drop),"
                " and create it again after the change."
            )


def _concerns(change: ColumnChange, field: str) -> bool:
    """Return whether a field is what is changed, in it, or around it."""
    return f"{field}.".startswith(f"{change.column}.") or f"{change.column}.".startswith(f"{field}.")


def check_names(change: ColumnChange) -> None:
    """Check that a change neither changes nor makes a column with a meaning in the table format.

    Raises:
        InvalidError: it does.
    """
    name, is_inner = change.path[0], len(change.path) > 1
    if name.lower() in _OF_THE_FORMAT:
        raise InvalidError(f"{name} is a column of the table format. Choose another column.")
    made = {ChangeKind.ADD: name, ChangeKind.RENAME: change.name}.get(change.kind)
    if made is None or is_inner:
        return
    if made.lower() in _OF_THE_FORMAT:
        raise InvalidError(f"{made} is a name of the table format. Choose another name.")
    if made.lower() == IS_DELETED_COLUMN:
        raise InvalidError(
            f"{made} is the name of the Boolean column that marks the rows to delete. Choose another name; to"
            " delete rows, write rows that have the column."
        )


def _columns(locked: LockedTable, timeline: Timeline, *, by_versions: bool) -> _Columns:
    """Return the columns of a table, with the first version of them if there is none and one is needed."""
    storage, store = locked.context.storage, locked.store
    text = table_schema_json(storage, store, timeline, locked.config)
    if text is None:
        raise InvalidError("The table has no columns yet. Write rows first.")
    schema, comments = without_meta(avro_to_arrow(text)), comments_of(text)
    history = with_history(locked.config, storage, store, timeline).history
    if history is None and by_versions:
        history = first_history(_full(schema, locked.config), comments)
    return _Columns(schema, comments, history)


def _after(before: _Columns, changes: Sequence[ColumnChange], config: TableConfig, time: str) -> _Columns:
    """Return columns and versions after the changes.

    Each change has a version of its own while they are applied, for a name may be another column after
    each of them; the last one is that of the commit.
    """
    now = before
    for change in changes:
        schema, comments = changed(now.schema, change), comments_after(now.comments, change)
        history = now.history
        if history is not None:
            renamed = {change.path: change.name} if change.kind is ChangeKind.RENAME else {}
            commented = {change.path: change.comment} if change.kind is ChangeKind.COMMENT else {}
            history = evolved_history(history, _full(schema, config), time, renamed, commented)
        now = _Columns(schema, comments, history)
    if now == before:
        raise InvalidError("The table has these columns already. There is nothing to change.")
    return now


def _full(schema: pa.Schema, config: TableConfig) -> pa.Schema:
    return stored_columns(schema, has_meta=config.populate_meta_fields)


def _drop_statistics(locked: LockedTable) -> None:
    registered = {*_STATISTICS} & {*locked.config.metadata_partitions}
    if registered:
        locked.keeper.drop(registered)


_NAME: Final = "hoodie.table.name"
_STAY: Final = ("hoodie.table.version", _NAME, "hoodie.table.type", "hoodie.timeline.path")


def overwrite_properties(
    context: TableContext, properties: Mapping[str, str], options: WriteOptions
) -> Mapping[str, str]:
    """Replace all properties of a table.

    Args:
        context: the table.
        properties: the new ones.
        options: of writes: lock.

    Returns:
        The properties before.

    Raises:
        ConflictError: another writer holds the table.
        InvalidError: the new ones are no properties of a table, or those of another table.
    """
    with lock_table(context, options.locking) as locked:
        old = dict(locked.config.properties)
        try:
            table_config(properties)
        except (CorruptTableError, UnsupportedError) as error:
            raise InvalidError(f"The new properties cannot be those of a table: {error.message}") from error
        for key in _STAY:
            if properties.get(key) != old.get(key):
                raise InvalidError(
                    f"{key} is {old.get(key)!r} and would become {properties.get(key)!r}, which the files of"
                    " the table are not. Correct the new properties."
                )
        if is_sorted(properties) and not locked.config.has_sorted_files:
            raise InvalidError(
                f"{STORAGE_LAYOUT} would become {LSM_TREE}, but the files of the table are not sorted by"
                " record key. Leave it out of the new properties."
            )
        locked.lock.check()
        save_properties(context.storage, properties, context.clock)
    return old


def rename(context: TableContext, name: str, options: WriteOptions) -> None:
    """Give a table another name (`hoodie.table.name`).

    Args:
        context: the table.
        name: the new one.
        options: of writes: lock.

    Raises:
        ConflictError: another writer holds the table.
    """
    with lock_table(context, options.locking) as locked:
        locked.lock.check()
        save_properties(context.storage, {**locked.config.properties, _NAME: name}, context.clock)
