"""The reader of Lance files, by the package `lance`, an optional extra.

Lance opens files of the machine: those of other storages are copied to a temporary file first.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from drawstring.base.bounds import BATCH_ROWS
from drawstring.base.disk_errors import temporary_disk_errors
from drawstring.base.errors import not_installed
from drawstring.formats.lance.footer import check_lance

_PANIC: Final = "PanicException"
_COPIED_BYTES: Final = 4 << 20
_BATCHES_AHEAD: Final = 2


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
    with _translated(), _file_of_machine(file, local) as path:
        present = _opened(path).metadata().schema.names
        names = present if columns is None else [name for name in columns if name in present]
        # Without a column the batches would not have a number of rows.
        reader = _opened(path, names or present[:1])
        for batch in reader.read_all(batch_size=BATCH_ROWS, batch_readahead=_BATCHES_AHEAD).to_batches():
            yield batch.select(names).replace_schema_metadata(None)


def open_lance_schema(file: pa.NativeFile, local: str | None) -> pa.Schema:
    """Return the schema of an open Lance file; see `read_open_lance`."""
    with _translated(), _file_of_machine(file, local) as path:
        return _opened(path).metadata().schema.remove_metadata()


@contextmanager
def _translated() -> Iterator[None]:
    """Translate panics: Lance has them where some damage of a file does not occur to it."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise pa.ArrowInvalid(str(error)) from error


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
    with tempfile.NamedTemporaryFile(prefix="drawstring-", suffix=".lance") as copy:
        with temporary_disk_errors():
            file.seek(0)
            shutil.copyfileobj(file, copy, _COPIED_BYTES)
            copy.flush()
        yield copy.name
