"""The reader of Lance files, by the package `lance`, an optional extra.

Lance opens files of the machine: those of other storages are copied to a temporary file first.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from drawstring.base.bounds import BATCH_ROWS
from drawstring.base.disk_errors import temporary_disk_errors
from drawstring.base.errors import not_installed
from drawstring.base.temporary_folders import TemporaryFolder
from drawstring.formats.lance.footer import check_lance
from drawstring.formats.lance.panics import panics_translated

_COPIED_BYTES: Final = 4 << 20
_BATCHES_AHEAD: Final = 2
_WINDOW_BYTES: Final = 32 << 20
"""Stored bytes that Lance may read ahead."""


def read_open_lance(
    file: pa.NativeFile, local: str | None, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of an open Lance file, in its order, a bounded batch at a time.

    Args:
        file: the file.
        local: its path on this machine; None if it has none.
        columns: top-level columns to yield, in this order, of which those that the file lacks are omitted;
            None for all.

    Raises:
        InvalidError: the package is not installed.
        pa.ArrowInvalid: the file is damaged.
    """
    with panics_translated(), _file_of_machine(file, local) as path:
        present = _opened(path).metadata().schema.names
        names = present if columns is None else [name for name in columns if name in present]
        # Without a column the batches would not have a number of rows.
        reader = _opened(path, names or present[:1])
        for start, rows in _windows(reader.num_rows(), file.size()):
            found = reader.read_range(start, rows, batch_size=BATCH_ROWS, batch_readahead=_BATCHES_AHEAD)
            for batch in found.to_batches():
                yield batch.select(names).replace_schema_metadata(None)


def _windows(rows: int, size_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield the first row and the number of rows of each part of a file; Lance reads ahead within one."""
    window = max(BATCH_ROWS, rows * _WINDOW_BYTES // max(1, size_bytes))
    for start in range(0, rows, window):
        yield start, min(window, rows - start)


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
