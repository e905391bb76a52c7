"""Partition TTL: drops expired partitions in one commit, as Hudi's partition TTL does.

    KEEP_BY_TIME            age since the last write to the partition
    KEEP_BY_CREATION_TIME   age since the partition metadata file was written

Log files of version 6 are named after their file slice, so their names do not show when they were written;
the writes on the active timeline do, and before it the modification time of the file.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.config.keys.services import PartitionTtl
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.base_file_writer import partition_created
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.model.files import FileSlice
from drawstring.model.instant import time_of
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline, instant_time
from drawstring.txn.conflict_resolution import write_lookup
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import lock_table, recover_and_load
from drawstring.write.delete_partition import drop_listed
from drawstring.write.retry import run_attempts
from drawstring.write.write_outcome import WriteOutcome

_DAY_MS: Final = 86_400_000
_log: Final = logging.getLogger(__name__)


def expire_partitions(
    context: TableContext, options: WriteOptions, *, waits: bool = True
) -> WriteOutcome | None:
    """Drop the expired partitions; the caller runs the services that follow a commit.

    Args:
        context: the open table.
        options: of the write, with the lifetime of partitions.
        waits: whether it waits for a pending clustering of an expired partition, as a write does.

    Returns:
        The commit, None if no partition has expired.

    Raises:
        InvalidError: no lifetime is set.
        ConflictError: another writer holds the table, or a partition stays part of a pending clustering.
    """
    if not waits:
        return _expire(context, options)
    return run_attempts(context, options, lambda _: _expire(context, options))


def _expire(context: TableContext, options: WriteOptions) -> WriteOutcome | None:
    with lock_table(context, options.locking) as locked:
        _check(options.ttl)
        locked, timeline = recover_and_load(locked, options.failed_writes)
        lookup = write_lookup(locked, timeline, options)
        expired = _Ages(context, locked.config, locked.store, timeline, lookup).expired(options.ttl)
        return drop_listed(locked, expired, lookup, options) if expired else None


def planned_expiry(context: TableContext, options: WriteOptions) -> list[str]:
    """Return the expired partitions; the table is not changed."""
    _check(options.ttl)
    config = load_config(context.storage)
    store = TimelineStore(context.storage, config, context.clock)
    timeline = store.load()
    lookup = context.lookup(config, timeline)
    return _Ages(context, config, store, timeline, lookup).expired(options.ttl)


def _check(ttl: PartitionTtl) -> None:
    if ttl.days < 0:
        raise InvalidError(
            "The lifetime of partitions is not set. Set hoodie.partition.ttl.strategy.days.retain."
        )


@dataclass(frozen=True, slots=True)
class _Ages:
    """The times at which the partitions of a table were last written to."""

    context: TableContext
    config: TableConfig
    store: TimelineStore
    timeline: Timeline
    lookup: SliceLookup

    def expired(self, ttl: PartitionTtl) -> list[str]:
        """Return the expired partitions, limited to as many as may be dropped at once.

        A damaged partition is skipped, so that it does not block the others.
        """
        cutoff_ms = self.context.clock.now_ms() - ttl.days * _DAY_MS
        cutoff = instant_time(cutoff_ms, self.config.timezone)
        by_creation = ttl.strategy == "KEEP_BY_CREATION_TIME"
        recent = {} if by_creation else self._written_since(cutoff)
        expired: list[str] = []
        for partition in self.lookup.partitions_including_lost():
            is_selected = partition and (not ttl.selected or partition in ttl.selected)
            if not is_selected or partition in recent or not self._slices(partition):
                continue
            is_young = (
                partition_created(self.context.storage, partition) > cutoff
                if by_creation
                else self._is_younger(partition, cutoff, cutoff_ms)
            )
            if not is_young:
                expired.append(partition)
        return expired[: ttl.partitions_max]

    def _slices(self, partition: str) -> Sequence[FileSlice]:
        """Return the slices of a partition; none if files of the partition are missing."""
        try:
            return self.lookup.slices(partition)
        except CorruptTableError as error:
            _log.warning(
                "%s: the partition %r is damaged and is not dropped, whatever its age. Repair it, or drop it"
                " by name (delete_partition): %s",
                self.context.storage.spec.uri,
                partition,
                error,
            )
            return ()

    def _written_since(self, cutoff: str) -> Mapping[str, bool]:
        """Return the partitions that writes of the active timeline wrote to since a time."""
        return {
            stat.partition: True
            for write in self.timeline.writes()
            if time_of(write) > cutoff
            for stat in self.store.commit_metadata(write).stats
        }

    def _is_younger(self, partition: str, cutoff: str, cutoff_ms: int) -> bool:
        """Return whether a file of the partition is younger than a time."""
        by_name = not self.config.rules.names_logs_by_slice
        for each in self.lookup.slices(partition):
            times = [each.base_instant, *(log.instant for log in each.logs)]
            if max(times) > cutoff:
                return True
            if not by_name and any(log.status.modified_ms > cutoff_ms for log in each.logs):
                return True
        return False
