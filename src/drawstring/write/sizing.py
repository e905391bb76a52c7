r"""File sizing: new records fill small base files first, then new file groups of the target size.

    row counts by partition
      \-- all rows fit into the smallest file --> that file takes the new records
       \-- they may not fit --------------------> count the new records, then divide them

The rules are those of Apache Hudi's upsert partitioners. A small file takes records by a rewrite, in a
MERGE_ON_READ table too: if the index, like Hudi's, does not find keys in log files, only file groups without
log files are filled, and few of them at once. If the index finds them (`can_index_log_files`), small file
groups take records in log files, and the size of the log files counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import pyarrow as pa

from drawstring.config.keys.sizing import Sizing
from drawstring.engine.grouping import GroupCounts
from drawstring.engine.protocol import Rows
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.formats.data_file import has_footer
from drawstring.index.protocol import LOCATION, Location, is_unknown
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action
from drawstring.schema.fields import PARTITION_PATH
from drawstring.write.assign_inserts import AssignInserts, InsertBucket, InsertBuckets
from drawstring.write.facts import WriteFacts

Groups: TypeAlias = frozenset[tuple[str, str]]

_COMMITS_LOOKED_AT: Final = 5
_COMPRESSION_GUESS: Final = 0.5
_GROUP_ROWS_MIN: Final = 100


@dataclass(frozen=True, slots=True)
class Sizer:
    """Divides the new records of a write among file groups.

    Attributes:
        facts: the table before the write.
        lookup: slices of the table.
        sizing: the target sizes.
        fills_logs: whether new records go to log files.
    """

    facts: WriteFacts
    lookup: SliceLookup
    sizing: Sizing
    fills_logs: bool = False

    def has_to_count(self, *, combine: bool) -> bool:
        """Return whether untagged rows must be counted before placement.

        Otherwise they are streamed into new file groups of the target size.

        Args:
            combine: whether all records of a key must be placed together.
        """
        may_fill = self.sizing.small_file_limit_bytes > 0 and self.facts.timeline.latest_write() is not None
        return combine or may_fill

    def without_small_files(self) -> Sizer:
        """Return a sizer that places new records in new file groups only."""
        return replace(self, sizing=replace(self.sizing, small_file_limit_bytes=0))

    @contextmanager
    def sized(self, kept: Rows, located: Rows) -> Iterator[tuple[Rows, Groups]]:
        """Assign locations to new records.

        Args:
            kept: prepared, persisted rows.
            located: the same rows, with the locations of existing keys if they were tagged.

        Yields:
            Rows with locations, and the file groups (partition path, file id) whose base files they fill.
        """
        tally = kept.count_by((PARTITION_PATH,))
        small = {path: self._small(path) for (path,) in tally.rows}
        if located is kept or not self._unclear(tally, small):
            buckets = self._insert_buckets(tally, small)
            yield self._located(located, buckets), self._filled(buckets)
            return
        counted = located.consume().persist()
        try:
            new = counted.map_batches(only_new, counted.schema).count_by((PARTITION_PATH,))
            kept.release()
            buckets = self._insert_buckets(
                GroupCounts(new.rows, int(tally.row_bytes * sum(new.rows.values()))), small
            )
            yield self._located(counted, buckets), self._filled(buckets)
        finally:
            counted.release()

    def _small(self, partition: str) -> list[FileSlice]:
        """Return the file groups that can take new records, the smallest first."""
        view = self.lookup.view()
        small = [
            each
            for each in self.lookup.slices(partition)
            if _is_small(each, self.sizing.small_file_limit_bytes, with_logs=self.fills_logs)
            and (partition, each.file_id) not in view.pending_compactions()
            and (partition, each.file_id) not in view.pending_clusterings()
        ]
        small.sort(key=lambda each: (each.size_bytes, each.file_id))
        is_merge_on_read = self.facts.locked.config.is_merge_on_read
        return small[: self.sizing.candidates_max] if is_merge_on_read and not self.fills_logs else small

    def _unclear(self, tally: GroupCounts, small: Mapping[str, Sequence[FileSlice]]) -> bool:
        """Return whether the placement depends on the number of new records."""
        return any(
            self.lookup.slices(path) and not self._fit(rows * tally.row_bytes, small[path])
            for (path,), rows in tally.rows.items()
        )

    def _fit(self, size_bytes: float, small: Sequence[FileSlice]) -> bool:
        """Return whether the rows fit into one file, with a safety margin for their stored size."""
        return size_bytes <= self.sizing.base_file_size_max_bytes - (small[0].size_bytes if small else 0)

    def _insert_buckets(self, tally: GroupCounts, small: Mapping[str, Sequence[FileSlice]]) -> InsertBuckets:
        buckets: dict[str, tuple[InsertBucket, ...]] = {}
        record_bytes: float | None = None
        for (path,), rows in tally.rows.items():
            if not self._fit(rows * tally.row_bytes, small[path]):
                if record_bytes is None:
                    record_bytes = self._record_bytes(tally)
                buckets[path] = divide(rows, record_bytes, small[path], self.sizing)
            elif small[path]:
                buckets[path] = (InsertBucket(Location.file_group(small[path][0].file_id), rows),)
        return buckets

    def _filled(self, buckets: InsertBuckets) -> Groups:
        if self.fills_logs:
            return frozenset()
        return frozenset(
            (path, each.location.value)
            for path, some in buckets.items()
            for each in some
            if not each.location.is_new
        )

    def _located(self, rows: Rows, buckets: InsertBuckets) -> Rows:
        locate = AssignInserts(buckets, marks=self.facts.locked.config.is_merge_on_read)
        return rows.map_batches(locate, locate.output_schema(rows.schema))

    def _record_bytes(self, tally: GroupCounts) -> float:
        writes = [each for each in self.facts.timeline.writes() if each.action is not Action.REPLACE_COMMIT]
        store = self.facts.locked.store
        stats = [
            stat
            for instant in writes[-_COMMITS_LOOKED_AT:]
            for stat in store.commit_metadata(instant).stats
            if stat.log_version is None and stat.num_writes and stat.size_bytes
        ]
        return record_bytes(stats, tally.row_bytes * _COMPRESSION_GUESS, self.sizing)


def record_bytes(stats: Sequence[WriteStat], guess: float, sizing: Sizing) -> float:
    """Estimate the size of a record in a base file, in bytes.

    It is the average in large files of earlier commits. Without any it is the option of the user, or else the
    minimum of the averages in small files, which include file overhead, and in the incoming rows.

    Args:
        stats: statistics of base files of earlier commits.
        guess: average size of the incoming rows, in bytes.
        sizing: sizing options.
    """
    threshold = sizing.record_size_threshold * sizing.small_file_limit_bytes
    large = [stat for stat in stats if stat.size_bytes > threshold]
    if large:
        return _average(large)
    if sizing.record_size_bytes is not None:
        return sizing.record_size_bytes
    return min(guess, _average(stats)) if stats else guess


def divide(
    rows: int, record_bytes: float, small: Sequence[FileSlice], sizing: Sizing
) -> tuple[InsertBucket, ...]:
    """Divide the new records of a partition: fill small files, then create new file groups of equal size.

    Args:
        rows: number of new records.
        record_bytes: size of a record in a base file, in bytes.
        small: file groups to fill, in this order.
        sizing: sizing options.
    """
    buckets: list[InsertBucket] = []
    remaining = rows
    for each in small:
        room = sizing.base_file_size_max_bytes - each.size_bytes
        taken = min(remaining, int(room / max(record_bytes, 1.0)))
        if taken > 0:
            buckets.append(InsertBucket(Location.file_group(each.file_id), taken))
            remaining -= taken
    if remaining:
        by_size = sizing.base_file_size_max_bytes / max(record_bytes, 1.0)
        most = max(_GROUP_ROWS_MIN, by_size) if sizing.auto_split else sizing.split_rows
        count = math.ceil(remaining / most)
        buckets += [
            InsertBucket(Location.new_file_group(number), remaining / count) for number in range(count)
        ]
    return tuple(buckets)


def only_new(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep only rows with unknown location."""
    for batch in batches:
        yield batch.filter(is_unknown(batch.column(LOCATION)))


def _average(stats: Sequence[WriteStat]) -> float:
    return sum(stat.size_bytes for stat in stats) / sum(stat.num_writes for stat in stats)


def _is_small(file_slice: FileSlice, limit_bytes: int, *, with_logs: bool) -> bool:
    base = file_slice.base
    if base is not None and (base.source is not None or not has_footer(base.status.name)):
        return False
    return (with_logs or (base is not None and not file_slice.logs)) and file_slice.size_bytes < limit_bytes
