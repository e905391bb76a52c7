"""The reader of Lance base files, by the package `lance`, an optional extra.

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
from drawstring.formats.file_errors import about_file
from drawstring.storage.protocol import Storage

_KIND: Final = "Lance"
_MAGIC: Final = b"LANC"
_PANIC: Final = "PanicException"
_COPIED_BYTES: Final = 4 << 20
_BATCHES_AHEAD: Final = 2


def read_lance(storage: Storage, path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a Lance file, in its order, a bounded batch at a time.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        columns: top-level columns to yield, in this order; those that the file lacks are omitted.

    Raises:
        CorruptTableError: the file is missing or damaged.
        InvalidError: the package is not installed.
    """
    with _reading(path), _file_of_machine(storage, path) as local:
        present = _opened(local).metadata().schema.names
        names = [name for name in columns if name in present]
        # Without a column the batches would not have a number of rows.
        reader = _opened(local, names or present[:1])
        for batch in reader.read_all(batch_size=BATCH_ROWS, batch_readahead=_BATCHES_AHEAD).to_batches():
            yield batch.select(names).replace_schema_metadata(None)


def lance_schema(storage: Storage, path: str) -> pa.Schema:
    """Return the schema of a Lance file.

    Raises:
        CorruptTableError: the file is missing or damaged.
        InvalidError: the package is not installed.
    """
    with _reading(path), _file_of_machine(storage, path) as local:
        return _opened(local).metadata().schema.remove_metadata()


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Translate errors; Lance panics where some damage of a file does not occur to it."""
    with about_file(path, _KIND):
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
        raise not_installed("Lance base files need pylance", "lance") from error
    return LanceFileReader(local, columns=columns)


@contextmanager
def _file_of_machine(storage: Storage, path: str) -> Iterator[str]:
    """Provide the path of a file on this machine.

    Raises:
        pa.ArrowInvalid: it is no Lance file.
    """
    with storage.open(path) as file:
        if file.size() < len(_MAGIC) or file.read_at(len(_MAGIC), file.size() - len(_MAGIC)) != _MAGIC:
            raise pa.ArrowInvalid("it does not end as Lance files do")
        local = storage.local_path(path)
        if local is not None:
            yield local
            return
        with tempfile.NamedTemporaryFile(prefix="drawstring-", suffix=".lance") as copy:
            with temporary_disk_errors():
                shutil.copyfileobj(file, copy, _COPIED_BYTES)
                copy.flush()
            yield copy.name
