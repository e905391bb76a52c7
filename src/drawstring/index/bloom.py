"""Bloom index: leave out the file slices that cannot have any of the keys, before their keys are read.

    keys of the change ── by partition, sorted ──> every slice, in the task that would read its keys

    footer      smallest and largest key   none of the keys lies between   -> left out
                bloom filter               it knows none of those that do  -> left out
    log files   their keys                 one of them is wanted           -> stays

    the slices that stay ──> their keys, for the join (`simple`)

Inserts of Hudi's bloom index go to base files only. Other writers add keys to log files, with the
record index or a bucket index for instance; a key that was missed would come to a second file group.
So the keys of log files are looked at, which are few beside those of the base file.
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

from drawstring.base.javahash import sorts_like_java
from drawstring.engine.grouping import GroupKey
from drawstring.engine.key_sets import KeyEnds, KeySet, KeySets
from drawstring.filegroups.read.keys import ReadKeys
from drawstring.filegroups.read.slice_reader import SliceMerge
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.filegroups.write.cliques import logs_to_read
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.base_files import is_parquet
from drawstring.formats.bloom.key_summary import StoredSummary
from drawstring.formats.parquet import stored_summary
from drawstring.index.tagging import TagContext
from drawstring.model.files import FileSlice
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage import open_spec

_TEXT: Final = methodcaller("as_py")

ASKING_SHARE: Final = 1 / 2
"""Keys to ask a filter about, by rows of its file, above which reading the file's keys is cheaper."""


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """Keys that a change has in one partition, or in the whole table.

    Attributes:
        ends: where they begin and end.
        keys: all of them, sorted, each once; None where they are too many.
    """

    ends: KeyEnds
    keys: pa.Array | None = None

    @staticmethod
    def of(found: KeySet) -> SortedKeys:
        """Return the keys of a set in their order."""
        keys = found.keys
        if isinstance(keys, KeyEnds):
            return SortedKeys(keys)
        ordered = keys.take(pc.array_sort_indices(keys))
        return SortedKeys(KeyEnds(ordered[0].as_py(), ordered[-1].as_py(), sorts_like_java(ordered)), ordered)

    def within(self, summary: StoredSummary) -> SortedKeys | None:
        """Return the keys that lie between a file's smallest and largest one; None for no keys."""
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
        return SortedKeys(KeyEnds(smallest, largest, True), self.keys.slice(start, end - start))


Wanted: TypeAlias = Mapping[GroupKey, SortedKeys]
"""What a change asks for, by partition path; under the empty tuple where the partition does not matter."""


@dataclass(frozen=True, slots=True)
class BloomPruning:
    """Tells which slices may have one of a change's keys.

    Attributes:
        by_ranges: whether the smallest and largest key of a file are looked at.
        is_global: whether a key may be in any partition.
        by_log_index: whether log files tell of their keys (`filegroups.write.cliques`).
    """

    by_ranges: bool = True
    is_global: bool = False
    by_log_index: bool = False

    def before(self, read: ReadKeys, keys: KeySets, context: TagContext) -> ReadPruned:
        """Return what reads the keys of a slice that may have one of a change's.

        Args:
            read: reads the keys of any slice.
            keys: of the change, by partition path; all together where the index is global.
            context: the table.
        """
        wanted = {group: SortedKeys.of(found) for group, found in keys.items()}
        return ReadPruned(MayHold(context.settings, context.instants, wanted, self), read)


@dataclass(frozen=True, slots=True)
class ReadPruned:
    """Yields the keys of a slice, none of one that cannot have a key of the change.

    Attributes:
        may_hold: tells what of a slice has to be read.
        read: reads it.
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
    """Tells what of a slice has to be read to find the keys. Picklable.

    Attributes:
        settings: of the write.
        instants: which log blocks count.
        wanted: the keys.
        pruning: what is looked at.
    """

    settings: FileSettings
    instants: InstantRange
    wanted: Wanted
    pruning: BloomPruning

    def __call__(self, file_slice: FileSlice) -> FileSlice | None:
        """Return the slice, without the files that cannot have a key; None when it has none of them."""
        wanted = self.wanted.get(() if self.pruning.is_global else (file_slice.partition,))
        if wanted is None:
            return None
        if self.pruning.by_log_index:
            return self._narrowed(file_slice, wanted)
        holds = self._base_may_hold(file_slice, wanted) or self._logs_may_hold(file_slice, wanted)
        return file_slice if holds else None

    def _narrowed(self, file_slice: FileSlice, wanted: SortedKeys) -> FileSlice | None:
        """Ask the log files' own footers; the files that stay merge as all would, for these keys."""
        base = file_slice.base if self._base_may_hold(file_slice, wanted) else None
        storage = open_spec(self.settings.storage)
        logs = logs_to_read(storage, file_slice.logs, partial(self._may_hold, wanted))
        return replace(file_slice, base=base, logs=logs) if base or logs else None

    def _base_may_hold(self, file_slice: FileSlice, wanted: SortedKeys) -> bool:
        base = file_slice.base
        if base is None:
            return False
        if not is_parquet(base.status.path):
            return True
        summary = stored_summary(open_spec(self.settings.storage), base.status.path)
        return self._may_hold(wanted, summary, asking_share=ASKING_SHARE)

    def _may_hold(self, wanted: SortedKeys, summary: StoredSummary, asking_share: float = math.inf) -> bool:
        """Tell by its summary whether a file may have a key.

        Args:
            wanted: the keys.
            summary: of the file.
            asking_share: keys to ask the filter about, by rows of the file, above which nobody asks it.
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
