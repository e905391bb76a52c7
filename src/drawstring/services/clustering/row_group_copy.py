"""The base files of a group put together without decoding them, where that is possible and pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from drawstring.base.clock import Ids, Stopwatch
from drawstring.filegroups.write.base_writer import ensure_partition
from drawstring.filegroups.write.markers import Markers
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.parquet.row_group_copy import StitchSource, can_stitch, stitch, stitch_source
from drawstring.model.commit import WriteStat
from drawstring.model.files import BaseFile, FileSlice, file_extension, file_id_of, join_path
from drawstring.storage.protocol import Storage

ROW_GROUP_BYTES_MIN: Final = 128 << 10
"""Bytes of a row group, on average, below which rows are read and written: crumbs cost every reader."""

_IO_TYPE: Final = "CREATE"


def stitched(
    settings: FileSettings, storage: Storage, slices: Sequence[FileSlice], write_token: str, ids: Ids
) -> list[WriteStat] | None:
    """Write the base files of some slices into new file groups by copying their row groups.

    Args:
        settings: of the new files.
        storage: the table's.
        slices: of one partition.
        write_token: of the task's attempt.
        ids: names file groups.

    Returns:
        The new files; None when rows have to be read: there are log files, or files of different schemas, or
        very small row groups.

    Raises:
        CorruptTableError: a file is missing or damaged.
    """
    files = _base_files(slices)
    if files is None:
        return None
    found = [stitch_source(storage, each.status.path) for each in files]
    sources = [each for each in found if each is not None]
    row_groups = sum(len(each.row_groups) for each in sources)
    size_bytes = sum(each.status.size_bytes for each in files)
    if len(sources) < len(found) or not sources or not can_stitch(sources):
        return None
    if size_bytes < row_groups * ROW_GROUP_BYTES_MIN:
        return None
    sized = [(source, file.status.size_bytes) for source, file in zip(sources, files, strict=True)]
    parts = [(each, file_id_of(ids.uuid())) for each in _files_of(sized, settings.base_file_bytes_max)]
    return [
        _write(settings, storage, part, BaseFile.name_of(file_id, write_token, settings.instant))
        for part, file_id in parts
    ]


def _base_files(slices: Sequence[FileSlice]) -> list[BaseFile] | None:
    files = [each.base for each in slices if each.base is not None and not each.logs]
    if len(files) < len(slices) or not all(_is_whole(each) for each in files):
        return None
    return files


def _is_whole(base: BaseFile) -> bool:
    return base.source is None and file_extension(base.status.name) == ".parquet"


def _files_of(sources: Sequence[tuple[StitchSource, int]], bytes_max: int) -> Iterator[list[StitchSource]]:
    """Divide sources among new files, in order."""
    together: list[StitchSource] = []
    held_bytes = 0
    for source, size_bytes in sources:
        if together and held_bytes + size_bytes > bytes_max:
            yield together
            together, held_bytes = [], 0
        together.append(source)
        held_bytes += size_bytes
    yield together


def _write(settings: FileSettings, storage: Storage, sources: Sequence[StitchSource], name: str) -> WriteStat:
    watch = Stopwatch()
    partition = sources[0].path.rpartition("/")[0]
    path = join_path(partition, name)
    has_meta = settings.config.populate_meta_fields
    ensure_partition(storage, partition, settings.instant)
    markers = Markers(storage, settings.instant)
    markers.create(path, _IO_TYPE)
    size_bytes = stitch(storage, sources, path, name if has_meta else None, bloom=settings.bloom and has_meta)
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
