"""Keeps the partition `bloom_filters`: the filter in the footer of each base file (as Apache Hudi 1.2.0).

    write, compaction, clustering, ...   a record for each base file that has a filter
    clean                                a tombstone for each base file that it deleted

Time travel uses the filters of older files, so a filter stays until its file is cleaned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa

from drawstring.base.resources import EXCHANGE_BYTES_MAX, worker_threads
from drawstring.config.table_config import TableConfig
from drawstring.engine.local import stream
from drawstring.formats.data_file import key_summary
from drawstring.metadata.partitions.files import committed_files
from drawstring.metadata.partitions.maintainer import (
    GroupChange,
    Grouping,
    InitialPartition,
    TableChange,
    TableFacts,
)
from drawstring.metadata.table import BLOOM, BLOOM_FILTERS, Kind, file_hash, partition_hash, record_schema
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import BaseFile, FileStatus, LogFile, join_path
from drawstring.model.plans import CleanMetadata
from drawstring.storage.protocol import Storage

GROUPS: Final = 4
"""Number of file groups of a new partition (`hoodie.metadata.index.bloom.filter.file.group.count`)."""

_RECORD_TYPE: Final = 4
_SCHEMA: Final = record_schema(Kind.BLOOM_FILTERS)


@dataclass(frozen=True, slots=True)
class BloomFilterMaintainer:
    """Keeps the bloom filters of base files; see `PartitionMaintainer`.

    Attributes:
        memory_bytes: bytes of filters to hold in memory; more of them are spilled to disk.
    """

    memory_bytes: int = EXCHANGE_BYTES_MAX

    def changes(self, change: TableChange) -> Iterator[GroupChange]:
        """Yield the filters of the base files that an instant wrote, and tombstones of those it deleted."""
        ids = change.file_ids(BLOOM_FILTERS)
        if change.commit is not None:
            yield from self._filters(change.storage, _written(change.commit), ids)
        elif change.clean is not None:
            yield from self._grouped([_tombstones(change.clean)], ids)

    def define(self, storage: Storage, config: TableConfig) -> None:
        """Do nothing: Hudi has no definition of this index."""

    def initial(self, facts: TableFacts) -> InitialPartition:
        """Return the filters of the committed base files of a table, the older ones included."""
        committed = committed_files(facts.view.listing, facts.timeline).files.items()
        paths = [join_path(partition, name) for partition, sizes in committed for name in sizes]
        ids = [f"bloom-filters-{number:04}-0" for number in range(GROUPS)]
        return InitialPartition(tuple(ids), self._filters(facts.storage, _bases(paths), ids))

    def _filters(
        self, storage: Storage, files: Sequence[BaseFile], ids: Sequence[str]
    ) -> Iterator[GroupChange]:
        return self._grouped(stream(files, partial(_read, storage), worker_threads()), ids)

    def _grouped(self, batches: Iterable[pa.RecordBatch], ids: Sequence[str]) -> Iterator[GroupChange]:
        return Grouping(BLOOM_FILTERS, _SCHEMA, ids, self.memory_bytes).changes(batches)


def _written(commit: CommitMetadata) -> list[BaseFile]:
    return _bases(each.path for each in commit.stats if each.path and not each.is_log)


def _bases(paths: Iterable[str]) -> list[BaseFile]:
    """Return the base files among some files, each once."""
    parsed = (BaseFile.parse(FileStatus(path, 0)) for path in dict.fromkeys(paths))
    return [each for each in parsed if each is not None]


def _read(storage: Storage, file: BaseFile) -> Iterator[pa.RecordBatch]:
    """Yield the record of a base file; nothing for one without a filter."""
    summary = key_summary(storage, file.status.path)
    if summary is not None and summary.filter_text:
        filters = [summary.filter_text.encode()]
        yield filter_records([file], [summary.filter_type], filters, is_deleted=False)


def _tombstones(clean: CleanMetadata) -> pa.RecordBatch:
    cleaned = clean.partitions.items()
    names = ((path, name) for path, each in cleaned for name in (*each.deleted, *each.failed))
    files = _bases(join_path(*each) for each in names)
    return filter_records(files, [""] * len(files), [b""] * len(files), is_deleted=True)


def filter_records(
    files: Sequence[BaseFile | LogFile], types: Sequence[str], filters: Sequence[bytes], *, is_deleted: bool
) -> pa.RecordBatch:
    """Return the records of the filters of files.

    Args:
        files: the files.
        types: of their filters.
        filters: base64 of them.
        is_deleted: whether the files are gone.
    """
    keys = [partition_hash(each.status.folder) + file_hash(each.status.name) for each in files]
    columns = {
        "type": pa.array(types, pa.string()),
        "timestamp": pa.array([each.instant for each in files], pa.string()),
        "bloomFilter": pa.array(filters, pa.binary()),
        "isDeleted": pa.repeat(pa.scalar(is_deleted), len(files)),
    }
    stored = _SCHEMA.field(BLOOM).type
    contents = pa.StructArray.from_arrays([columns[each.name] for each in stored], fields=list(stored))
    kinds = pa.repeat(pa.scalar(_RECORD_TYPE, pa.int32()), len(files))
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.string()), kinds, contents], schema=_SCHEMA)
