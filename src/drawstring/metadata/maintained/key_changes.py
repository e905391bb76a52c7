"""The keys that an instant brings to file groups or takes from them, file group by file group.

    new base file              all its keys have come
    rewritten base file        the keys that it has and the former one had not, and the reverse
    log files                  of the keys in them: those that live now and that the index has not there; and
                               those that the index has there and that live no more
    replaced file group        all its keys have gone, unless a service put them elsewhere

A log file says which keys it writes or deletes, but not whether a delete is late and loses. So only for keys
whose place may have changed the slice is merged: none for updates of records that the index knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BATCH_ROWS, worker_threads
from drawstring.base.threads import at_once
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.keys import ReadKeys
from drawstring.filegroups.read.open_logs import record_keys
from drawstring.filegroups.read.slice_merge import SliceMerge
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.merge.versions import flat
from drawstring.metadata.partitions import IS_REMOVED, KEY
from drawstring.metadata.record_index import FILE_ID, PARTITION, RecordIndex
from drawstring.model.files import FileSlice
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import StorageSpec

INSTANT_MS: Final = "instant_ms"
CHANGED: Final = pa.schema(
    [
        (KEY, pa.string()),
        (PARTITION, pa.string()),
        (FILE_ID, pa.string()),
        (INSTANT_MS, pa.int64()),
        (IS_REMOVED, pa.bool_()),
    ]
)
"""Columns of changes: a key, where it came to or from, when, and whether it is gone."""

_LOG_BYTES_MAX: Final = 32 << 20
"""Bytes of log files whose keys are looked up at once."""

_READ: Final = pa.schema(
    [(RECORD_KEY, pa.string()), (PARTITION, pa.string()), (FILE_ID, pa.string()), (IS_REMOVED, pa.bool_())]
)


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """A file group that an instant writes to or replaces.

    Attributes:
        before: the slice whose keys it had; None for none, or if `logged` or `held` tells the changes.
        after: the slice whose keys it has; None for none.
        instant_ms: when keys that come get there, milliseconds since the epoch.
        logged: the log files of the instant alone; None if it wrote a base file.
        held: the changes, if the writer of the file knew them: columns `key` and `is_removed`.
        here: the keys of the log files that the index has in the file group.
    """

    before: FileSlice | None
    after: FileSlice | None
    instant_ms: int
    logged: FileSlice | None = None
    held: pa.Table | None = None
    here: pa.Array | None = None

    @property
    def place(self) -> tuple[str, str]:
        """Partition path and file id."""
        known = self.logged or self.after or self.before
        return ("", "") if known is None else (known.partition, known.file_id)


@dataclass(frozen=True, slots=True)
class ReadKeyChanges:
    """Yields what changes in a file group; see `CHANGED`. Picklable.

    Attributes:
        storage: opens the table.
        config: the table.
        schema: its columns with meta columns.
        instants: the instants whose log blocks count once the instant is complete.
        index: the record index before; None if it is being built.
    """

    storage: StorageSpec
    config: TableConfig
    schema: pa.Schema
    instants: InstantRange
    index: RecordIndex | None = None

    def __call__(self, group: GroupKeys) -> Iterator[pa.RecordBatch]:
        """Read one file group."""
        if group.held is not None:
            flags = group.held.column(IS_REMOVED)
            yield from self._changed(group, group.held.column(KEY).filter(flags), is_removed=True)
            yield from self._changed(group, group.held.column(KEY).filter(pc.invert(flags)))
        elif group.logged is not None:
            yield from self._logged(group, group.logged)
        elif group.before is None or group.after is None:
            known = group.before or group.after
            for keys in [] if known is None else self._live(known):
                yield from self._changed(group, keys, is_removed=group.after is None)
        else:
            yield from self._compared(group, group.before, group.after)

    def _compared(self, group: GroupKeys, before: FileSlice, after: FileSlice) -> Iterator[pa.RecordBatch]:
        old, new = (pa.chunked_array(list(self._live(each)), pa.string()) for each in (before, after))
        yield from self._changed(group, _without(old, new), is_removed=True)
        yield from self._changed(group, _without(new, old))

    def _logged(self, group: GroupKeys, logged: FileSlice) -> Iterator[pa.RecordBatch]:
        merge = SliceMerge(self._task(logged))
        named = merge.log_keys
        here = named.slice(0, 0) if group.here is None else group.here
        doubtful = pc.unique(pa.concat_arrays([merge.deleted_keys(), _without(named, here)]))
        if not len(doubtful):
            return
        live = pa.chunked_array([], pa.string())
        if group.after is not None:
            keys = self._live(group.after, doubtful)
            live = pa.chunked_array(
                [each.filter(pc.is_in(each, value_set=doubtful)) for each in keys], pa.string()
            )
        dead = _without(doubtful, live)
        yield from self._changed(group, dead.filter(pc.is_in(dead, value_set=here)), is_removed=True)
        yield from self._changed(group, _without(live, here))

    def looked_up(self, groups: Sequence[GroupKeys]) -> Iterator[GroupKeys]:
        """Yield file groups with what the index has there of the keys in their log files.

        Each look-up reads much of the index, which has keys in the order of their hashes: so the keys of as
        many file groups as fit into memory are looked up at once.
        """
        for part in _by_log_bytes(groups):
            named = at_once(self._named, part, worker_threads())
            if self.index is not None and self.index.is_partitioned:
                by_partition: dict[str, list[int]] = defaultdict(list)
                for number, group in enumerate(part):
                    by_partition[group.place[0]].append(number)
                numbers_at_once = list(by_partition.values())
            else:
                numbers_at_once = [list(range(len(part)))]
            for numbers in numbers_at_once:
                found = self._locations([named[each] for each in numbers], part[numbers[0]].place[0])
                for each in numbers:
                    yield replace(part[each], here=_at(found, part[each].place))

    def _named(self, group: GroupKeys) -> pa.Array:
        """Return the keys in the log files of a file group."""
        if group.logged is None:
            return pa.array([], pa.string())
        return SliceMerge(self._task(group.logged)).log_keys

    def _locations(self, keys: Sequence[pa.Array], partition: str) -> pa.Table | None:
        wanted = pc.unique(pa.chunked_array(list(keys), pa.string()))
        return self.index.locations(wanted, (partition,)) if self.index is not None and len(wanted) else None

    def _live(self, file_slice: FileSlice, among: pa.Array | None = None) -> Iterator[pa.Array]:
        """Yield the keys of the live records of a slice, or at least those among some keys."""
        if among is None:
            read = ReadKeys(self.storage, self.config, self.schema, self.instants, _READ)
            for batch in read(file_slice):
                yield batch.filter(pc.invert(batch.column(IS_REMOVED))).column(RECORD_KEY)
            return
        task = replace(self._task(file_slice), keys=tuple(among.to_pylist()))
        for batch in SliceMerge(task).batches():
            yield record_keys(batch, self.config)

    def _task(self, file_slice: FileSlice) -> ReadTask:
        config = self.config
        columns = (RECORD_KEY,) if config.populate_meta_fields else config.record_key_fields
        return ReadTask(self.storage, config, file_slice, self.schema, columns, instants=self.instants)

    def _changed(
        self, group: GroupKeys, keys: pa.Array | pa.ChunkedArray, *, is_removed: bool = False
    ) -> Iterator[pa.RecordBatch]:
        values = (*group.place, group.instant_ms, is_removed)
        for start in range(0, len(keys), BATCH_ROWS):
            part = flat(keys.slice(start, BATCH_ROWS))
            constants = (pa.repeat(pa.scalar(each), len(part)) for each in values)
            yield pa.RecordBatch.from_arrays([part, *constants], schema=CHANGED)


def _by_log_bytes(groups: Sequence[GroupKeys]) -> Iterator[list[GroupKeys]]:
    """Yield the file groups in parts whose log files come to a bounded number of bytes."""
    part: list[GroupKeys] = []
    size_bytes = 0
    for group in groups:
        logs = () if group.logged is None else group.logged.logs
        own_bytes = sum(log.status.size_bytes for log in logs)
        if part and size_bytes + own_bytes > _LOG_BYTES_MAX:
            yield part
            part, size_bytes = [], 0
        part.append(group)
        size_bytes += own_bytes
    if part:
        yield part


def _at(found: pa.Table | None, place: tuple[str, str]) -> pa.Array:
    """Return the keys that are in a file group."""
    if found is None:
        return pa.array([], pa.string())
    partition, file_id = place
    is_here = pc.and_(pc.equal(found.column(PARTITION), partition), pc.equal(found.column(FILE_ID), file_id))
    return flat(found.column(KEY).filter(is_here))


def _without(keys: pa.Array | pa.ChunkedArray, others: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the keys that are not among others."""
    known = flat(keys)
    return known.filter(pc.invert(pc.is_in(known, value_set=flat(others))))
