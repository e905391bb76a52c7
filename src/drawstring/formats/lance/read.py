"""The reader of Lance files, by the package `lance`, an optional extra.

Lance opens files of the machine: those of other storages are copied to a temporary file first.

A batch has as many rows as take 4 MiB by the rows before. Lance's statistics are not public and its files
have no checksums: only bloom filter and bounds of the keys leave out files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from drawstring.base.bounds import BATCH_BYTES
from drawstring.base.disk_errors import temporary_disk_errors
from drawstring.base.errors import not_installed
from drawstring.base.temporary_folders import TemporaryFolder
from drawstring.formats.lance.footer import check_lance
from drawstring.formats.lance.panics import panics_translated
from drawstring.formats.wanted_rows import AskedRows

_COPIED_BYTES: Final = 4 << 20
_BATCHES_AHEAD: Final = 2
_BATCHES_HELD: Final = 2 + _BATCHES_AHEAD
"""How many batches are in memory together: that which is yielded, one that is decoded, and those ahead."""
_WINDOW_BYTES: Final = 16 << 20
"""Stored bytes that Lance may read ahead."""

_FIRST_ROWS: Final = 256
"""Rows that are read before it is known how much memory a row takes."""


def read_open_lance(file: pa.NativeFile, local: str | None, asked: AskedRows) -> Iterator[pa.RecordBatch]:
    """Yield all rows of an open Lance file, in its order, a bounded batch at a time.

    Args:
        file: the file.
        local: its path on this machine; None if it has none.
        asked: the rows, of which the condition leaves out none. A batch has fewer rows than it says if these
            take too many bytes: all that are in memory take `BATCH_BYTES`.

    Raises:
        InvalidError: the package is not installed.
        pa.ArrowInvalid: the file is damaged.
    """
    with panics_translated(), _file_of_machine(file, local) as path:
        present = _opened(path).metadata().schema.names
        names = present if asked.columns is None else [name for name in asked.columns if name in present]
        # Without a column the batches would not have a number of rows.
        reader = _opened(path, names or present[:1])
        # Lance reads ahead within a window.
        window_rows = max(1, reader.num_rows() * _WINDOW_BYTES // max(1, file.size()))
        for batch in _windows(reader, window_rows, asked.batch_rows):
            yield batch.select(names).replace_schema_metadata(None)


def _windows(reader: Any, window_rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file window by window; the batches of one are as large as those before tell."""
    start, end = 0, reader.num_rows()
    rows = window = min(_FIRST_ROWS, batch_rows)
    while start < end:
        found = reader.read_range(
            start, min(window, end - start), batch_size=rows, batch_readahead=_BATCHES_AHEAD
        )
        first, window_bytes = start, 0
        for batch in found.to_batches():
            start += batch.num_rows
            window_bytes += batch.nbytes
            yield batch
        if start == first:
            raise pa.ArrowInvalid(f"it ends at row {start} of {end}")
        of_batch = (start - first) * (BATCH_BYTES // _BATCHES_HELD) // max(1, window_bytes)
        rows = max(1, min(batch_rows, of_batch))
        window = max(rows, window_rows)


def open_lance_schema(file: pa.NativeFile, local: str | None) -> pa.Schema:
    """Return the schema of an open Lance file; see `read_open_lance`."""
    with panics_translated(), _file_of_machine(file, local) as path:
        return _opened(path).metadata().schema.remove_metadata()


def _opened(local: str, columns: list[str] | None = None) -> Any:
    try:
        from lance.file import LanceFileReader
    except ImportError as error:
        raise not_installed("Lance files need pylance", "lance") from error
    return LanceFileReader(local, columns=columns)


@contextmanager
def _file_of_machine(file: pa.NativeFile, local: str | None) -> Iterator[str]:
    """Provide the path of a file on this machine.

    Raises:
        pa.ArrowInvalid: it is no Lance file.
    """
    check_lance(file)
    if local is not None:
        yield local
        return
    folder = TemporaryFolder("lance")
    try:
        path = os.path.join(folder.path, "rows.lance")
        with temporary_disk_errors(), open(path, "wb") as target:
            file.seek(0)
            shutil.copyfileobj(file, target, _COPIED_BYTES)
        yield path
    finally:
        folder.drop()
