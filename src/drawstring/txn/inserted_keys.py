"""Keys that two writes inserted side by side: whether one key may be among both.

    own files ── keys of this write ──> an array ─┐
    base files of the other one                   ├─> key range and bloom filter in the footer
    log files of the other one                    └─> keys, a batch at a time

Log files matter as well: a record whose deletion is still in a log file comes back by an update of that file
group, and with an index in log files new records go there. Where the keys cannot be told, or are too many,
the answer is that they may share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import DrawstringError
from drawstring.base.javahash import sorts_like_java
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.slice_merge import SliceMerge
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.formats.base_files import Selection, read_base
from drawstring.formats.base_footer import key_summary
from drawstring.formats.bloom.key_summary import StoredSummary
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.files import FileSlice, FileStatus, LogFile
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.meta import COMMIT_TIME, RECORD_KEY, with_meta_fields
from drawstring.storage.protocol import Storage

KEYS_MAX: Final = 1_000_000
"""Keys of the own write that are held in memory, by partition; beyond that they are not compared."""


@dataclass(frozen=True, slots=True)
class KeyRules:
    """Where keys are unique, and where new records are.

    Attributes:
        is_global: whether keys are unique in the table, rather than in their partition.
        fills_logs: whether new records go to log files.
    """

    is_global: bool
    fills_logs: bool


@dataclass(frozen=True, slots=True)
class Inserts:
    """The files of a write that may have inserted records.

    Attributes:
        time: requested time of the write.
        metadata: of the write.
    """

    time: str
    metadata: CommitMetadata

    def bases(self, place: str | None) -> list[WriteStat]:
        """Return the base files with inserts of a partition; None for the table."""
        return [stat for stat in self._of(place) if stat.num_inserts and not stat.is_log]

    def logs(self, place: str | None) -> list[WriteStat]:
        """Return the log files of a partition; None for the table."""
        return [stat for stat in self._of(place) if stat.is_log]

    def _of(self, place: str | None) -> Iterator[WriteStat]:
        return (stat for stat in self.metadata.stats if place is None or stat.partition == place)


def may_share_key(
    storage: Storage, config: TableConfig, own: Inserts, other: Inserts, rules: KeyRules
) -> bool:
    """Return whether two writes may have inserted the same key.

    Args:
        storage: the table's files.
        config: the table.
        own: a write whose files are there.
        other: a completed write, whose files may have been cleaned since.
        rules: where keys are unique, and where new records are.
    """
    own_paths, others_paths = ({stat.partition for stat in each.metadata.stats} for each in (own, other))
    places = {None} if rules.is_global else own_paths & others_paths
    read = _Keys(storage, config, own.metadata.schema_json or "")
    return any(_share_in(place, read, own, other, rules) for place in places)


def _share_in(place: str | None, read: _Keys, own: Inserts, other: Inserts, rules: KeyRules) -> bool:
    bases, logs = other.bases(place), other.logs(place)
    # Two writes that bring one record back by log files do so in one file group.
    to_compare = [
        (own.bases(place), [*bases, *logs]),
        (own.logs(place), [*bases, *logs] if rules.fills_logs else bases),
    ]
    for stats, others in to_compare:
        if not (stats and others):
            continue
        changed = sum(stat.num_inserts + stat.num_updates for stat in stats)
        if changed > KEYS_MAX or not read.config.populate_meta_fields:
            return True
        keys = read.of(stats, own.time)
        if any(read.has_any(stat, other.time, keys) for stat in others):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Keys:
    """Reads the keys of files.

    Attributes:
        storage: the table's files.
        config: the table.
        schema_json: the table schema.
    """

    storage: Storage
    config: TableConfig
    schema_json: str

    def of(self, stats: Sequence[WriteStat], time: str) -> pa.Array:
        """Return the keys that a write inserted or updated, without those that it only copied."""
        found: Iterable[pa.Array] = (
            each
            for stat in stats
            for each in ([self._of_log(stat, time)] if stat.is_log else self._of_base(stat.path, time))
        )
        return pa.chunked_array(found, pa.string()).combine_chunks()

    def has_any(self, stat: WriteStat, time: str, keys: pa.Array) -> bool:
        """Return whether a file has one of some keys.

        Those that a base file had before were not inserted anew. A file that cannot be read may have one.
        """
        try:
            if stat.is_log:
                found = iter([self._of_log(stat, time)])
            elif not _may_hold(key_summary(self.storage, stat.path), keys):
                return False
            else:
                found = self._of_base(stat.path)
            return any(pc.any(pc.is_in(each, value_set=keys)).as_py() for each in found)
        except (FileNotFoundError, DrawstringError):
            return True

    def _of_base(self, path: str, time: str | None = None) -> Iterator[pa.Array]:
        where = None if time is None else pc.field(COMMIT_TIME) == time
        for batch in read_base(self.storage, path, Selection([RECORD_KEY], where)):
            yield batch.column(RECORD_KEY).cast(pa.string())

    def _of_log(self, stat: WriteStat, time: str) -> pa.Array:
        log = LogFile.parse(FileStatus(stat.path, stat.size_bytes))
        file_slice = FileSlice(stat.partition, stat.file_id, time, None, (log,) if log else ())
        schema = avro_to_arrow(with_meta_fields(self.schema_json))
        visible = InstantRange(frozenset({time}))
        task = ReadTask(self.storage.spec, self.config, file_slice, schema, (RECORD_KEY,), instants=visible)
        return SliceMerge(task).log_keys


def _may_hold(summary: StoredSummary | None, keys: pa.Array) -> bool:
    """Return whether a file may have one of some keys, by its footer."""
    if summary is None:
        return True
    smallest, largest = summary.smallest, summary.largest
    if smallest and largest and sorts_like_java(pa.array([smallest, largest])) and sorts_like_java(keys):
        keys = keys.filter(pc.and_(pc.greater_equal(keys, smallest), pc.less_equal(keys, largest)))
    if not len(keys):
        return False
    bloom = summary.bloom_filter()
    return bloom is None or bloom.contains_any(keys)
