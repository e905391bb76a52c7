"""Bloom index: leave out the file slices that cannot have any of the keys, before their keys are read.

    keys of the change ── by partition, sorted ──> every slice, several at once

    footer      smallest and largest key   none of the keys lies between   -> left out
                bloom filter               it knows none of those that do  -> left out
    log files   their keys                 one of them is wanted           -> stays

    the slices that stay ──> key join (`simple`)

Inserts of Hudi's bloom index go to base files only. Other writers add keys to log files, with the
record index or a bucket index for instance; a key that was missed would come to a second file group.
So the keys of log files are looked at, which are few beside those of the base file.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.javahash import sorts_like_java
from drawstring.engine.grouping import split_by
from drawstring.engine.protocol import Rows, TaskContext
from drawstring.filegroups.cliques import logs_to_read
from drawstring.filegroups.reader import SliceMerge
from drawstring.filegroups.settings import FileSettings
from drawstring.filegroups.tasks import InstantRange, ReadTask
from drawstring.formats.base_files import is_parquet
from drawstring.formats.key_summary import StoredSummary
from drawstring.formats.parquet import stored_summary
from drawstring.index.look import TableLook
from drawstring.model.files import FileSlice
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY
from drawstring.storage import open_spec

_TEXT: Final = methodcaller("as_py")

KEY_BYTES_MAX: Final = 64 << 20
"""Text of keys up to which filters are asked; a larger change is told by its key ranges only."""

ASKING_SHARE: Final = 1 / 2
"""Keys to ask a filter about, by rows of its file, above which reading the file's keys is cheaper."""


@dataclass(frozen=True, slots=True)
class KeySet:
    """Keys that a part of a change has in one partition, or in the whole table.

    Attributes:
        smallest, largest: in the order of UTF-8.
        sorts_like_java: whether that is the order of Java's strings too.
        keys: all of them, sorted, each once; None where they are too many.
    """

    smallest: str
    largest: str
    sorts_like_java: bool
    keys: pa.Array | None

    @staticmethod
    def of(keys: pa.Array) -> KeySet:
        """Return the set of some keys, of which there is at least one."""
        unique = pc.unique(keys)
        ordered = unique.take(pc.array_sort_indices(unique))
        return KeySet(ordered[0].as_py(), ordered[-1].as_py(), sorts_like_java(ordered), ordered)

    @staticmethod
    def ends_of(sets: Sequence[KeySet]) -> KeySet:
        """Return the ends of several sets, without their keys."""
        smallest, largest = min(each.smallest for each in sets), max(each.largest for each in sets)
        return KeySet(smallest, largest, all(each.sorts_like_java for each in sets), None)

    def within(self, summary: StoredSummary) -> KeySet | None:
        """Return the keys that lie between a file's smallest and largest one; None for no keys."""
        smallest, largest = summary.smallest, summary.largest
        if smallest is None or largest is None or not self.sorts_like_java:
            return self
        if not sorts_like_java(pa.array([smallest, largest])):
            return self
        if self.keys is None:
            return self if self.smallest <= largest and smallest <= self.largest else None
        start = bisect_left(self.keys, smallest, key=_TEXT)
        end = bisect_right(self.keys, largest, key=_TEXT)
        if end <= start:
            return None
        return KeySet(smallest, largest, True, self.keys.slice(start, end - start))


KeySets = Mapping[str, Sequence[KeySet]]
"""What a change asks for, by partition path; under the empty text where the partition does not matter."""


@dataclass(frozen=True, slots=True)
class BloomPruning:
    """Tells which slices may have one of a change's keys.

    Attributes:
        by_ranges: whether the smallest and largest key of a file are looked at.
        is_global: whether a key may be in any partition.
        by_log_index: whether log files tell of their keys (`filegroups.cliques`).
    """

    by_ranges: bool = True
    is_global: bool = False
    by_log_index: bool = False

    def candidates(self, rows: Rows, slices: Sequence[FileSlice], look: TableLook) -> list[FileSlice]:
        """Return the slices whose keys have to be read, of each only the files that may have one.

        Args:
            rows: prepared rows, kept by their engine.
            slices: those that may have their keys, as far as partitions tell.
            look: the table.
        """
        if not slices:
            return []
        parts = rows.run(GatherKeys(None if self.is_global else PARTITION_PATH))
        task = MayHold(look.settings, look.instants, _together(parts), self)
        return [each for each in rows.engine.map(task, slices) if each is not None]


@dataclass(frozen=True, slots=True)
class GatherKeys:
    """A task that tells the keys of a part by partition path.

    Attributes:
        by: column of the partition path, None where it does not matter.
        bytes_max: text of keys up to which they are told one by one.
    """

    by: str | None
    bytes_max: int = KEY_BYTES_MAX

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterable[KeySets]:
        """Read one part."""
        found: dict[str, list[KeySet]] = defaultdict(list)
        size = 0
        for batch in batches:
            size += batch.column(RECORD_KEY).nbytes
            for (path,), part in split_by(batch, (self.by,)) if self.by else [(("",), batch)]:
                if part.num_rows:
                    found[path].append(KeySet.of(part.column(RECORD_KEY).cast(pa.string())))
            if size > self.bytes_max:
                found = _without_keys(found)
        return [dict(found)]


@dataclass(frozen=True, slots=True)
class MayHold:
    """A task that tells what of a slice has to be read to find the keys.

    Attributes:
        settings: of the write.
        instants: which log blocks count.
        wanted: the keys.
        pruning: what is looked at.
    """

    settings: FileSettings
    instants: InstantRange
    wanted: KeySets
    pruning: BloomPruning

    def __call__(self, file_slice: FileSlice) -> FileSlice | None:
        """Return the slice, without the files that cannot have a key; None when it has none of them."""
        wanted = self.wanted.get("" if self.pruning.is_global else file_slice.partition, ())
        if not wanted:
            return None
        if self.pruning.by_log_index:
            return self._narrowed(file_slice, wanted)
        holds = self._base_may_hold(file_slice, wanted) or self._logs_may_hold(file_slice, wanted)
        return file_slice if holds else None

    def _narrowed(self, file_slice: FileSlice, wanted: Sequence[KeySet]) -> FileSlice | None:
        """Ask the log files' own footers; the files that stay merge as all would, for these keys."""
        base = file_slice.base if self._base_may_hold(file_slice, wanted) else None
        storage = open_spec(self.settings.storage)
        logs = logs_to_read(storage, file_slice.logs, partial(self._may_hold, wanted))
        return replace(file_slice, base=base, logs=logs) if base or logs else None

    def _base_may_hold(self, file_slice: FileSlice, wanted: Sequence[KeySet]) -> bool:
        base = file_slice.base
        if base is None:
            return False
        if not is_parquet(base.status.path):
            return True
        summary = stored_summary(open_spec(self.settings.storage), base.status.path)
        return self._may_hold(wanted, summary, asking_share=ASKING_SHARE)

    def _may_hold(
        self, wanted: Sequence[KeySet], summary: StoredSummary, asking_share: float = math.inf
    ) -> bool:
        """Tell by its summary whether a file may have a key.

        Args:
            wanted: the keys.
            summary: of the file.
            asking_share: keys to ask the filter about, by rows of the file, above which nobody asks it.
        """
        if self.pruning.by_ranges:
            wanted = [each for each in (keys.within(summary) for keys in wanted) if each is not None]
        keys = [each.keys for each in wanted if each.keys is not None]
        if len(keys) < len(wanted) or sum(map(len, keys)) > asking_share * summary.rows:
            return True
        bloom = summary.bloom_filter() if keys else None
        return bool(keys) and (bloom is None or any(map(bloom.contains_any, keys)))

    def _logs_may_hold(self, file_slice: FileSlice, wanted: Sequence[KeySet]) -> bool:
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
        return any(
            keys.keys is None or pc.any(pc.is_in(logged, value_set=keys.keys)).as_py() for keys in wanted
        )


def _together(parts: Sequence[KeySets]) -> KeySets:
    """Put the keys of all parts together, without the keys if they are too many for every task to have."""
    found: dict[str, list[KeySet]] = defaultdict(list)
    for part in parts:
        for path, sets in part.items():
            found[path].extend(sets)
    size = sum(each.keys.nbytes for sets in found.values() for each in sets if each.keys is not None)
    return found if size <= KEY_BYTES_MAX else _without_keys(found)


def _without_keys(found: KeySets) -> dict[str, list[KeySet]]:
    ends = {path: [KeySet.ends_of(sets)] for path, sets in found.items()}
    return defaultdict(list, ends)
