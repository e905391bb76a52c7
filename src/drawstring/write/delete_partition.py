"""Dropping whole partitions: every file group in them is replaced by nothing.

names and patterns, or the partitions of some rows ──> partitions that are there ──> replacecommit
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.engine.protocol import Rows
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.formats.metadata.commit import encode_requested_replace
from drawstring.index.lifecycle import IndexCommit, completing
from drawstring.index.stored import STORED_INDEX
from drawstring.model.commit import CommitMetadata, WriteOperation
from drawstring.model.instant import Action
from drawstring.model.result import CommitResult
from drawstring.schema.meta import PARTITION_PATH
from drawstring.timeline.table_schema import table_schema_json
from drawstring.timeline.timeline import Timeline
from drawstring.txn.clustering_conflicts import cancel_conflicting_clusterings, write_lookup
from drawstring.txn.events import emit_commit
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, begin, lock_table, recover_and_load
from drawstring.write.committed import Committed
from drawstring.write.facts import WriteFacts
from drawstring.write.plan import plan_write
from drawstring.write.replaced import replaced_groups
from drawstring.write.verbs import VERBS

DELETE_PARTITION: Final = "delete_partition"
_ANY: Final = re.compile(r"\*|%2A")
_SHOWN: Final = 5
_log: Final = logging.getLogger(__name__)


def delete_partitions(
    state: TableContext, rows: Rows | None, options: WriteOptions, extra: Mapping[str, str] | None = None
) -> Committed:
    """Drop partitions as one commit.

    Args:
        state: the table.
        rows: without names in the options: rows whose partitions are dropped.
        options: the write's options, the names of the partitions among them.
        extra: what else the commit says.

    Raises:
        ConflictError: another writer was there first, or a pending clustering has a file group.
        InvalidError: nothing says which partitions, or the table has none; nothing was written.
    """
    asked = options.partitions_to_delete
    if not asked and rows is None:
        raise InvalidError("there is no partition to delete: name one, or a pattern such as '2024/*'")
    if not all(map(_bare, asked)):
        raise InvalidError(
            "an empty path names no partition: leave it out, or use '*' to drop all partitions"
        )
    with lock_table(state, options.lock_wait_ms) as found:
        if not found.config.partition_fields:
            raise InvalidError(
                'the table has no partitions that could be dropped: delete(where="true") deletes all rows,'
                " insert_overwrite_table replaces them"
            )
        if not asked and rows is not None:
            asked = _partitions_of(found, rows, options)
        session, timeline = recover_and_load(found, options.failed_writes)
        lookup = write_lookup(session, timeline, options)
        partitions = lookup.replaceable_partitions()
        _warn_of_strays(session, asked, partitions)
        return drop_listed(session, matching(asked, partitions), lookup, options, extra)


def drop_listed(
    session: LockedTable,
    dropped: Sequence[str],
    lookup: SliceLookup,
    options: WriteOptions,
    extra: Mapping[str, str] | None = None,
) -> Committed:
    """Drop partitions of a table whose lock is held, as one commit; see `delete_partitions`.

    Args:
        session: the table, locked and cleared.
        dropped: partition paths.
        lookup: the table as it is under that lock.
        options: the write's options.
        extra: what else the commit says.
    """
    watch, timeline = Stopwatch(), lookup.timeline
    replaced = replaced_groups(dropped, lookup)
    if not (any(replaced.values()) or options.allow_empty_commit):
        nothing = CommitResult("", None, DELETE_PARTITION, seconds=watch.seconds())
        return Committed(session.state, session.config, options, nothing, timeline)
    schema = table_schema_json(session.state.storage, session.store, timeline, session.config)
    requested = encode_requested_replace(WriteOperation.DELETE_PARTITION)
    time = session.store.new_time(timeline)
    with begin(session, Action.REPLACE_COMMIT, time, requested, options.failed_writes) as transaction:
        metadata = CommitMetadata(
            operation=WriteOperation.DELETE_PARTITION,
            extra={**(extra or {}), **({"schema": schema} if schema else {})},
            replaced=replaced,
        )
        cancel_conflicting_clusterings(session, timeline, options, metadata)
        change = IndexCommit(session.state.storage, timeline, time, tuple(replaced))
        with completing(STORED_INDEX, change):
            completed = transaction.commit(metadata)
    result = replace(
        CommitResult.of(completed, DELETE_PARTITION, (), watch.seconds()),
        partitions_dropped=len(replaced),
        groups_dropped=sum(map(len, replaced.values())),
    )
    emit_commit(session.state, session.config, result, watch.laps)
    after = Timeline.of((*timeline.instants, completed))
    return Committed(session.state, session.config, options, result, after)


def matching(asked: Iterable[str], partitions: Sequence[str]) -> list[str]:
    """Return the partitions that names and patterns mean; names that are not there mean none, as in Hudi.

    Args:
        asked: partition paths; `*` (or `%2A`, its form in URL-encoded paths) stands for any text,
            slashes included.
        partitions: all partition paths of the table.
    """
    meant = {path for each in asked for path in _meant(each, partitions)}
    return [path for path in partitions if path in meant]


def _meant(asked: str, partitions: Sequence[str]) -> list[str]:
    """Return the partitions that one name or pattern means; white space at its ends counts where it fits."""
    for spelled in (asked.strip("/"), _bare(asked)):
        pattern = re.compile(".*".join(re.escape(part) for part in _ANY.split(spelled)), re.DOTALL)
        found = [path for path in partitions if pattern.fullmatch(path)]
        if found:
            return found
    return []


def _bare(path: str) -> str:
    """Return a path without white space and slashes at the ends."""
    return path.strip().strip("/")


def _warn_of_strays(session: LockedTable, asked: Iterable[str], partitions: Sequence[str]) -> None:
    """Tell of paths that name no partition; Hudi passes them over as well."""
    by_folded = {path.casefold(): path for path in partitions}
    strays = (each for each in asked if not _ANY.search(each) and not _meant(each, partitions))
    for path in dict.fromkeys(map(_bare, strays)):
        near = get_close_matches(path.casefold(), by_folded, _SHOWN)
        shown = [by_folded[each] for each in near] or partitions[:_SHOWN]
        _log.warning(
            "%s has no partition %r, so none was dropped for it: %s",
            session.state.storage.spec.uri,
            path,
            f"there are {', '.join(map(repr, shown))}" + (", ..." if len(shown) < len(partitions) else "")
            if shown
            else "it has none yet",
        )


def _partitions_of(session: LockedTable, rows: Rows, options: WriteOptions) -> tuple[str, ...]:
    """Return the partitions that rows fall into; nothing is written yet."""
    timeline = session.store.load()
    facts = WriteFacts(session, timeline, session.store.new_time(timeline))
    prepare = plan_write(facts, rows.schema, VERBS["delete"], options).prepare
    return tuple(rows.map_batches(prepare, prepare.output_schema).distinct(PARTITION_PATH))
