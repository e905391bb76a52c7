"""Concatenation of Parquet files with the same schema by copying their row groups without decoding.

    PAR1 | row groups of file 1 | row groups of file 2 | ... | one footer with all of them

Only the meta column with the file's own name differs between the files: its chunks are rewritten with the new
name, and the bytes of all other columns are copied (`column_chunks`). Record keys are read to build the
footer's bloom filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa

from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.formats.bloom.key_summary import KeySummary
from drawstring.formats.file_errors import about_file
from drawstring.formats.parquet.column_chunks import STRANGE, ChunkSink, ChunkSource, FileNames, damaged
from drawstring.formats.parquet.read import ParquetQuery, read_parquet
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import Storage

ROW_GROUPS_MAX: Final = 32_767
"""Row groups in a file: their ordinals have 16 bits."""


def can_stitch(sources: Sequence[ChunkSource]) -> bool:
    """Return whether the row groups of files can be copied into one file."""
    first = sources[0]
    match = all(source.schema == first.schema and source.entries == first.entries for source in sources)
    return match and sum(len(source.row_groups) for source in sources) <= ROW_GROUPS_MAX


def stitch(
    storage: Storage, sources: Sequence[ChunkSource], path: str, name: str | None, *, bloom: float
) -> int:
    """Write one file with the row groups of several.

    Args:
        storage: storage of the table.
        sources: the source files, in order; `can_stitch` returned True for them.
        path: path of the new file.
        name: file name for the meta column; None copies that column, too.
        bloom: rate of false positives of the bloom filter that the footer gets beside the smallest and
            largest key, 0 for neither.

    Returns:
        The file's size in bytes.

    Raises:
        CorruptTableError: a source is missing or damaged.
    """
    keys = _keys(storage, sources, bloom) if bloom else {}
    target = storage.create(path)
    try:
        with disk_errors(TABLE_DISK, path):
            return _stitched(storage, sources, target, sources[0].names(name), keys)
    finally:
        with suppress(OSError):
            target.close()


def _stitched(
    storage: Storage,
    sources: Sequence[ChunkSource],
    target: pa.NativeFile,
    names: FileNames | None,
    keys: Mapping[str, str],
) -> int:
    sink = ChunkSink(target, names)
    for source in sources:
        with about_file(source.path), storage.open(source.path) as file:
            try:
                for group in source.row_groups:
                    sink.copy(file, group)
            except STRANGE as error:
                raise damaged(error) from error
    sink.finish(sources[0].footer, {**sources[0].entries, **keys})
    size_bytes = int(target.tell())
    target.close()
    return size_bytes


def _keys(storage: Storage, sources: Sequence[ChunkSource], rate: float) -> dict[str, str]:
    """Return the key summary for the footer, for which only the record key column is read."""
    summary = KeySummary(rate=rate)
    for source in sources:
        for batch in read_parquet(storage, source.path, ParquetQuery(columns=[RECORD_KEY])):
            summary.add(batch.column(RECORD_KEY))
    return summary.footer()
