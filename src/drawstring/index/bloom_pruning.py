"""Bloom index: skips the file slices that cannot have any of the keys before their keys are read.

    keys of the change ── by partition, sorted ──> every slice, in the task that would read its keys

    footer      smallest and largest key   none of the keys lies between   -> skipped
                bloom filter               contains none of those that do  -> skipped
    log files   their keys                 one of the keys is among them   -> read

    the remaining slices ──> their keys, for the join (`simple`)

With its bloom index, Hudi writes inserts to base files only. Other writers add keys to log files, for example
with the record index or a bucket index; a missed key would be written to a second file group. So the keys of
log files are checked too; they are few compared with those of the base file.

Hudi's bloom index makes a row for every pair of key and file whose range fits: a million random keys and a
hundred files make a hundred million rows to shuffle. Here each slice answers one question, whether it may
have any of the keys, and the join of the simple index finds the places. A filter is not asked about more keys
than half the rows of its file, since reading these takes less then. So this index finds the same records as
the simple one, and a missing filter only costs time.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.java_compat import sorts_like_java
from drawstring.engine.grouping import GroupKey, KeyRange, KeySet, KeySets
from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.filegroups.log_key_index import logs_to_read
from drawstring.filegroups.log_merge import SliceMerge
from drawstring.filegroups.read_task import InstantRange, ReadTask
from drawstring.formats.bloom_footer import StoredSummary
from drawstring.formats.data_file import key_summary
from drawstring.index.tag_context import TagContext
from drawstring.model.files import FileSlice
from drawstring.schema.fields import RECORD_KEY
from drawstring.storage import open_spec

_TEXT: Final = methodcaller("as_py")

ASKING_SHARE: Final = 1 / 2
"""Ratio of looked-up keys to rows of a file above which reading its keys is cheaper than its filter."""


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """Keys of the batch in one partition, or in the whole table.

    Attributes:
        ends: smallest and largest key.
        keys: the distinct keys, sorted; None if there are too many.
    """

    ends: KeyRange
    keys: pa.Array | None = None

    @staticmethod
    def of(found: KeySet) -> SortedKeys:
        """Return the sorted keys of a set."""
        keys = found.keys
        if isinstance(keys, KeyRange):
            return SortedKeys(keys)
        ordered = keys.take(pc.array_sort_indices(keys))
        return SortedKeys(
            KeyRange(ordered[0].as_py(), ordered[-1].as_py(), sorts_like_java(ordered)), ordered
        )

    def within(self, summary: StoredSummary) -> SortedKeys | None:
        """Return the keys between the smallest and the largest key of a file; None if there are none."""
        smallest, largest = summary.smallest, summary.largest
        if smallest is None or largest is None or not self.ends.sorts_like_java:
            return self
        if not sorts_like_java(pa.array([smallest, largest])):
            return self
        if self.keys is None:
            return self if self.ends.smallest <= largest and smallest <= self.ends.largest else None
        start = bisect_left(self.keys, smallest, key=_TEXT)
        end = bisect_right(self.keys, largest, key=_TEXT)
        if end <= start:
            return None
        return SortedKeys(KeyRange(smallest, largest, True), self.keys.slice(start, end - start))


Wanted: TypeAlias = Mapping[GroupKey, SortedKeys]
"""The keys to look up by partition path; under the empty tuple for a global index."""


@dataclass(frozen=True, slots=True)
class BloomPruning:
    """Determines the slices that may have keys of the batch.

    Attributes:
        by_ranges: whether to compare with the smallest and the largest key of a file.
        is_global: whether a key may be in any partition.
        by_log_index: whether log files carry an index of their keys (`filegroups.log_key_index`).
    """

    by_ranges: bool = True
    is_global: bool = False
    by_log_index: bool = False

    def before(self, read: ReadKeys, keys: KeySets, context: TagContext) -> ReadPruned:
        """Return a reader that skips the slices that cannot have keys of the batch.

        Args:
            read: reads the keys of any slice.
            keys: keys of the batch by partition path; all in one set for a global index.
            context: slices of the table.
        """
        wanted = {group: SortedKeys.of(found) for group, found in keys.items()}
        return ReadPruned(MayHold(context.settings, context.instants, wanted, self), read)


@dataclass(frozen=True, slots=True)
class ReadPruned:
    """Yields the keys of a slice; yields nothing for a slice that cannot have keys of the batch.

    Attributes:
        may_hold: returns the part of a slice that must be read.
        read: reads the keys of a slice.
    """

    may_hold: MayHold
    read: ReadKeys

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        """Read one slice."""
        narrowed = self.may_hold(file_slice)
        if narrowed is not None:
            yield from self.read(narrowed)


@dataclass(frozen=True, slots=True)
class MayHold:
    """Determines the files of a slice that must be read to find the keys. Picklable.

    Attributes:
        settings: of the write.
        instants: the visible instants of log blocks.
        wanted: the keys to look up.
        pruning: pruning settings.
    """

    settings: FileSettings
    instants: InstantRange
    wanted: Wanted
    pruning: BloomPruning

    def __call__(self, file_slice: FileSlice) -> FileSlice | None:
        """Return the slice without the files that cannot have a key; None if no file remains."""
        wanted = self.wanted.get(() if self.pruning.is_global else (file_slice.partition,))
        if wanted is None:
            return None
        if self.pruning.by_log_index:
            return self._narrowed(file_slice, wanted)
        holds = self._base_may_hold(file_slice, wanted) or self._logs_may_hold(file_slice, wanted)
        return file_slice if holds else None

    def _narrowed(self, file_slice: FileSlice, wanted: SortedKeys) -> FileSlice | None:
        """Prune log files by their footers; for these keys, the remaining files merge like all files."""
        base = file_slice.base if self._base_may_hold(file_slice, wanted) else None
        storage = open_spec(self.settings.storage)
        logs = logs_to_read(storage, file_slice.logs, partial(self._may_hold, wanted))
        return replace(file_slice, base=base, logs=logs) if base or logs else None

    def _base_may_hold(self, file_slice: FileSlice, wanted: SortedKeys) -> bool:
        base = file_slice.base
        if base is None:
            return False
        summary = key_summary(open_spec(self.settings.storage), base.status.path)
        if summary is None:
            return True
        return self._may_hold(wanted, summary, asking_share=ASKING_SHARE)

    def _may_hold(self, wanted: SortedKeys, summary: StoredSummary, asking_share: float = math.inf) -> bool:
        """Return whether a file may have one of the keys, according to its key summary.

        Args:
            wanted: the keys.
            summary: of the file.
            asking_share: ratio of keys to rows of the file above which the filter is not consulted.
        """
        near = wanted.within(summary) if self.pruning.by_ranges else wanted
        if near is None:
            return False
        if near.keys is None or len(near.keys) > asking_share * summary.rows:
            return True
        bloom = summary.bloom_filter()
        return bloom is None or bloom.contains_any(near.keys)

    def _logs_may_hold(self, file_slice: FileSlice, wanted: SortedKeys) -> bool:
        if not file_slice.logs:
            return False
        settings = self.settings
        task = ReadTask(
            settings.storage,
            settings.config,
            file_slice,
            settings.full_schema,
            (RECORD_KEY,),
            instants=self.instants,
        )
        logged = SliceMerge(task).log_keys
        return wanted.keys is None or bool(pc.any(pc.is_in(logged, value_set=wanted.keys)).as_py())
