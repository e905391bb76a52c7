"""Deletion of whole partitions: a replacecommit that replaces their file groups by nothing.

names and patterns, or the partitions of given rows ──> existing partitions ──> replacecommit
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import ConflictError, InvalidError
from drawstring.config.keys.concurrency import ConcurrencyMode
from drawstring.config.options.write_options import WriteOptions
from drawstring.engine.protocol import Rows
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.formats.metadata.commit import encode_requested_replace
from drawstring.index.factory import STORED_INDEX_LIFECYCLE
from drawstring.index.protocol import IndexCommit, completing_instant
from drawstring.model.commit import CommitMetadata, WriteOperation
from drawstring.model.files import PARTITION_METADATA, join_path
from drawstring.model.instant import Action
from drawstring.model.result import CommitResult
from drawstring.schema.fields import PARTITION_PATH
from drawstring.timeline.schema import table_schema_json
from drawstring.txn.conflict_resolution import cancel_conflicting_clusterings, write_lookup
from drawstring.txn.events import emit_commit
from drawstring.txn.reservations import Parts, refuse_reserved
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, begin, lock_table, recover_and_load
from drawstring.write.facts import WriteFacts
from drawstring.write.plan import VERBS, plan_write
from drawstring.write.replaced_file_groups import replaced_groups
from drawstring.write.retry import run_attempts
from drawstring.write.validation import validate_commit
from drawstring.write.write_outcome import WriteOutcome

DELETE_PARTITION: Final = "delete_partition"
_ANY: Final = re.compile(r"\*|%2A")
_SHOWN: Final = 5
_log: Final = logging.getLogger(__name__)


def delete_partitions(
    context: TableContext,
    rows: Rows | None,
    options: WriteOptions,
    extra: Mapping[str, str] | None = None,
    *,
    exact: bool = False,
) -> WriteOutcome:
    """Delete partitions in one commit.

    Args:
        context: the table.
        rows: rows whose partitions are deleted, if the options name none.
        options: options of the write, including the names of the partitions.
        extra: extra metadata of the commit.
        exact: whether the names are paths of partitions, in which `*` is a character like others.

    Raises:
        ConflictError: another writer holds the lock, or a file group is part of a pending compaction or
            clustering.
        InvalidError: no partitions are given, or the table is not partitioned; nothing was written.
    """
    requested = options.partitions_to_delete
    if not requested and rows is None:
        raise InvalidError(
            "No partition to delete was given. Give a partition path, or a pattern such as '2024/*'."
        )
    if not all(map(_stripped, requested)):
        raise InvalidError(
            "An empty path is not a partition. Remove it, or use '*' to delete all partitions."
        )
    if rows is not None and not requested and options.concurrency.mode != ConcurrencyMode.SINGLE_WRITER:
        rows = rows.repeatable()
    return run_attempts(
        context, options, lambda _: _delete_requested(context, requested, rows, options, extra, exact)
    )


def _delete_requested(
    context: TableContext,
    requested: Sequence[str],
    rows: Rows | None,
    options: WriteOptions,
    extra: Mapping[str, str] | None,
    exact: bool,
) -> WriteOutcome:
    with lock_table(context, options.locking) as locked:
        if not locked.config.partition_fields:
            raise InvalidError(
                'The table is not partitioned. Use delete(where="true") to delete all rows, or'
                " insert_overwrite_table to replace them."
            )
        if not requested and rows is not None:
            requested = _partitions_of(locked, rows, options)
        with locked.lock.race_if_lost():
            locked, timeline = recover_and_load(locked, options.failed_writes)
        lookup = write_lookup(locked, timeline, options)
        partitions = lookup.partitions_including_lost()
        if exact:
            dropped = _existing(locked, requested, partitions)
        else:
            _warn_of_unknown(locked, requested, partitions)
            dropped = matching(requested, partitions)
        refuse_pending_compactions(locked, dropped, lookup, "dropped")
        return drop_listed(locked, dropped, lookup, options, extra)


def _existing(locked: LockedTable, requested: Sequence[str], partitions: Sequence[str]) -> list[str]:
    """Return those of some paths that are partitions, including added ones that nobody has written to.

    Args:
        locked: the table, locked and recovered.
        requested: partition paths.
        partitions: all partition paths that the table lists; a metadata table has no added ones.
    """
    wanted = frozenset(requested)
    storage = locked.context.storage
    added = (
        path for path in wanted.difference(partitions) if storage.exists(join_path(path, PARTITION_METADATA))
    )
    return sorted([*wanted.intersection(partitions), *added])


def refuse_pending_compactions(
    locked: LockedTable, partitions: Sequence[str], lookup: SliceLookup, done: str
) -> None:
    """Refuse partitions with file groups that a compaction or log compaction is to rewrite, as Hudi does.

    Args:
        locked: the table, locked and recovered.
        partitions: partition paths.
        lookup: file slices of the table under the lock.
        done: the participle of what was to be done, for the error.

    Raises:
        ConflictError: there is such a plan.
    """
    view = locked.context.view(locked.config, lookup.timeline, locked.store)
    refused = frozenset(partitions)
    for (partition, _), instant in {**view.pending_log_compactions(), **view.pending_compactions()}.items():
        if partition in refused:
            raise ConflictError(
                f"Partition {partition} has file groups in the pending compaction {instant}, so it is not"
                f" {done}. Run that compaction, or give its plan up with rollback; then try again.",
                table=locked.context.storage.spec.uri,
                instant=instant,
            )


def drop_listed(
    locked: LockedTable,
    dropped: Sequence[str],
    lookup: SliceLookup,
    options: WriteOptions,
    extra: Mapping[str, str] | None = None,
) -> WriteOutcome:
    """Delete partitions of a locked table in one commit; see `delete_partitions`.

    Args:
        locked: the table, locked and recovered.
        dropped: partition paths.
        lookup: file slices of the table under the lock.
        options: the write's options.
        extra: extra metadata of the commit.

    Raises:
        ReservedError: another write goes first in one of them.
    """
    watch, timeline = Stopwatch(), lookup.timeline
    # As in Hudi, the commit also names partitions without file groups, which tells that they are gone.
    replaced = {**dict.fromkeys(dropped, ()), **replaced_groups(dropped, lookup)}
    if not (any(replaced.values()) or options.allow_empty_commit):
        empty = CommitResult.nothing(DELETE_PARTITION, watch.seconds())
        return WriteOutcome(locked.context, locked.config, options, empty, timeline)
    refuse_reserved(locked.context, timeline, Parts(frozenset(replaced)), options.failed_writes)
    schema = table_schema_json(locked.context.storage, locked.store, timeline, locked.config)
    requested = encode_requested_replace(WriteOperation.DELETE_PARTITION)
    time = locked.store.new_time(timeline)
    with begin(locked, Action.REPLACE_COMMIT, time, requested, options.failed_writes) as transaction:
        metadata = CommitMetadata(
            operation=WriteOperation.DELETE_PARTITION,
            extra={**options.commit_metadata, **(extra or {}), **({"schema": schema} if schema else {})},
            replaced=replaced,
        )
        if options.validators.names:
            validate_commit(transaction, timeline, metadata, options.validators)
        cancel_conflicting_clusterings(locked, timeline, options, metadata)
        change = IndexCommit(locked.context.storage, timeline, time, tuple(replaced))
        with completing_instant(STORED_INDEX_LIFECYCLE, change):
            completed = transaction.commit(metadata)
    result = replace(
        CommitResult.of(completed, DELETE_PARTITION, (), watch.seconds()),
        partitions_dropped=sum(map(bool, replaced.values())),
        groups_dropped=sum(map(len, replaced.values())),
    )
    emit_commit(locked.context, locked.config, result, watch.laps)
    after = timeline.with_completed(completed)
    return WriteOutcome(locked.context, locked.config, options, result, after)


def matching(requested: Iterable[str], partitions: Sequence[str]) -> list[str]:
    """Return the partitions that names and patterns match; as in Hudi, unknown names match none.

    Args:
        requested: partition paths; `*` (or `%2A`, its form in URL-encoded paths) matches any text, including
            slashes.
        partitions: all partition paths of the table.
    """
    matched = {path for each in requested for path in _matches(each, partitions)}
    return [path for path in partitions if path in matched]


def _matches(requested: str, partitions: Sequence[str]) -> list[str]:
    """Return the partitions that a name or pattern matches, first with surrounding spaces, then without."""
    for spelled in (requested.strip("/"), _stripped(requested)):
        pattern = re.compile(".*".join(re.escape(part) for part in _ANY.split(spelled)), re.DOTALL)
        matches = [path for path in partitions if pattern.fullmatch(path)]
        if matches:
            return matches
    return []


def _stripped(path: str) -> str:
    """Strip white space and slashes from a path."""
    return path.strip().strip("/")


def _warn_of_unknown(locked: LockedTable, requested: Iterable[str], partitions: Sequence[str]) -> None:
    """Log a warning for paths and patterns without a partition; Hudi ignores them too."""
    by_folded = {path.casefold(): path for path in partitions}
    unknown = (each for each in requested if not _matches(each, partitions))
    for path in dict.fromkeys(map(_stripped, unknown)):
        near = get_close_matches(path.casefold(), by_folded, _SHOWN)
        shown = [by_folded[each] for each in near] or partitions[:_SHOWN]
        _log.warning(
            "%s has no partition %r, so it was ignored: %s",
            locked.context.storage.spec.uri,
            path,
            f"there are {', '.join(map(repr, shown))}" + (", ..." if len(shown) < len(partitions) else "")
            if shown
            else "it has none yet",
        )


def _partitions_of(locked: LockedTable, rows: Rows, options: WriteOptions) -> tuple[str, ...]:
    """Return the partitions of rows; nothing is written yet."""
    timeline = locked.store.load()
    facts = WriteFacts(locked, timeline, locked.store.new_time(timeline))
    prepare = plan_write(facts, rows.schema, VERBS["delete"], options).prepare
    return tuple(rows.map_batches(prepare, prepare.output_schema).distinct(PARTITION_PATH))
