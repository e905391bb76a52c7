"""Copying of row groups of small base files into new file groups without decoding, where that pays off.

The key column is read for the bloom filter of the new file, and nothing else is decoded. Joined filters of
the small files would be full. Page indexes are lost, and the codec and the encodings of the small files stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from drawstring.base.clock import Ids, Stopwatch
from drawstring.filegroups.write.base_writer import ensure_partition
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.parquet.column_chunks import ChunkSource, chunk_source
from drawstring.formats.parquet.row_group_copy import can_stitch, stitch
from drawstring.formats.parquet.units import has_table_units
from drawstring.model.commit import WriteStat
from drawstring.model.files import PARQUET, BaseFile, FileSlice, file_extension, join_path, random_file_id
from drawstring.storage.protocol import Storage

ROW_GROUP_BYTES_MIN: Final = 128 << 10
"""Average bytes of a row group below which rows are rewritten: tiny row groups slow every reader down."""

_IO_TYPE: Final = "CREATE"


def stitched(
    settings: FileSettings, storage: Storage, slices: Sequence[FileSlice], write_token: str, ids: Ids
) -> list[WriteStat] | None:
    """Write the base files of file slices into new file groups by copying their row groups.

    Args:
        settings: of the new files.
        storage: the table's files.
        slices: of one partition.
        write_token: of the task attempt.
        ids: names file groups.

    Returns:
        The new files; None if rows have to be decoded: there are log files, different schemas, timestamps in
        units that the table does not have, or very small row groups.

    Raises:
        CorruptTableError: a file is missing or damaged.
    """
    files = _base_files(slices)
    if files is None or any(settings.config.renames(each.instant) is not None for each in files):
        return None
    candidates = [chunk_source(storage, each.status.path) for each in files]
    sources = [each for each in candidates if each is not None]
    row_groups = sum(len(each.row_groups) for each in sources)
    size_bytes = sum(each.status.size_bytes for each in files)
    if len(sources) < len(candidates) or not sources or not can_stitch(sources):
        return None
    if not has_table_units(sources[0], settings.full_schema):
        return None
    if size_bytes < row_groups * ROW_GROUP_BYTES_MIN:
        return None
    sized_sources = [(source, file.status.size_bytes) for source, file in zip(sources, files, strict=True)]
    parts = [
        (each, random_file_id(ids.uuid())) for each in _files_of(sized_sources, settings.base_file_bytes_max)
    ]
    return [
        _write(settings, storage, part, BaseFile.name_of(file_id, write_token, settings.instant))
        for part, file_id in parts
    ]


def _base_files(slices: Sequence[FileSlice]) -> list[BaseFile] | None:
    files = [each.base for each in slices if each.base is not None and not each.logs]
    if len(files) < len(slices) or not all(_has_own_rows(each) for each in files):
        return None
    return files


def _has_own_rows(base: BaseFile) -> bool:
    return base.source is None and file_extension(base.status.name) == PARQUET


def _files_of(sources: Sequence[tuple[ChunkSource, int]], bytes_max: int) -> Iterator[list[ChunkSource]]:
    """Divide the sources into new files, in order."""
    group: list[ChunkSource] = []
    group_bytes = 0
    for source, size_bytes in sources:
        if group and group_bytes + size_bytes > bytes_max:
            yield group
            group, group_bytes = [], 0
        group.append(source)
        group_bytes += size_bytes
    yield group


def _write(settings: FileSettings, storage: Storage, sources: Sequence[ChunkSource], name: str) -> WriteStat:
    watch = Stopwatch()
    partition = sources[0].path.rpartition("/")[0]
    path = join_path(partition, name)
    has_meta = settings.config.populate_meta_fields
    ensure_partition(storage, partition, settings.instant)
    markers = settings.markers(storage)
    markers.create(path, _IO_TYPE)
    size_bytes = stitch(storage, sources, path, name if has_meta else None, bloom=settings.key_filter)
    markers.confirm(path, _IO_TYPE)
    rows = sum(each.rows for each in sources)
    return WriteStat(
        partition=partition,
        file_id=name.partition("_")[0],
        path=path,
        num_writes=rows,
        num_inserts=rows,
        size_bytes=size_bytes,
        seconds=watch.seconds(),
        created=True,
    )
