"""Read and write Lance files by the package `lance`, an optional extra.

Footer (`lance_footer`): the number of rows, and the metadata of the schema, where Hudi has its entries.

    data | ... | offsets and sizes of the global buffers, 16 bytes each | last 40 bytes

    last 40 bytes   8 start of the columns' metadata | 8 offset of the columns' offsets
                    8 offset of the global buffers' offsets | 4 their number | 4 number of columns
                    2 major, 2 minor version | "LANC"                      little-endian

The first global buffer is a protocol buffer message: 1 schema (with a map of texts in its field 5), 2 rows.

Reading: Lance opens only local files, so the reader first copies files of other storages to a temporary file.
A batch has as many rows as take 4 MiB by the rows before. Lance's statistics are not public and its files
have no checksums, so only bloom filter and key bounds exclude files.

Writing (`LanceEncoder`): the encoder writes a temporary local file and then copies it to its storage. The
schema has the key summary as metadata, under the names of Parquet footers, as Hudi's writer does.

Lance panics on array forms and file damage that it does not expect; `panics_translated` raises an Arrow error
instead.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base import limits
from drawstring.base.errors import InvalidError, not_installed, temporary_disk_errors
from drawstring.base.resources import TemporaryFolder
from drawstring.formats.file_format import BaseFooter, FileEncoder, FileFormat, FileSpec
from drawstring.formats.filter import RowSelection
from drawstring.formats.hfile.blocks import message_fields
from drawstring.schema.evolution import conform
from drawstring.schema.logical_types import VECTOR_COLUMNS, is_vector, vector_columns

MAGIC: Final = b"LANC"
DECODED_BYTES_KEY: Final = "drawstring.plain.bytes"
"""Entry of the files of drawstring: how much memory the rows take, of which nothing in the format tells."""

_EXPANSION: Final = 8
"""Bytes in memory for a stored byte, where there is no such entry."""

_END: Final = struct.Struct("<QQQIIHH4s")
_PLACE: Final = struct.Struct("<QQ")
_SCHEMA, _ROWS, _SCHEMA_METADATA, _NAME, _VALUE = 1, 2, 5, 1, 2
_DESCRIPTOR_BYTES_MAX: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class LanceFooter:
    """What the footer of a Lance file says.

    Attributes:
        entries: metadata of the schema.
        rows, columns: their numbers; a field of a struct is a column.
        size_bytes: size of the file.
    """

    entries: dict[str, str]
    rows: int
    columns: int
    size_bytes: int

    @property
    def plain_bytes(self) -> int:
        """About how much memory the rows take."""
        stored = self.entries.get(DECODED_BYTES_KEY, "")
        return int(stored) if stored.isdecimal() else _EXPANSION * self.size_bytes


def lance_footer(file: pa.NativeFile) -> LanceFooter:
    """Return the footer of an open file.

    Raises:
        pa.ArrowInvalid: it is no Lance file, or damaged.
    """
    try:
        return _footer(file)
    except (ValueError, struct.error) as error:
        raise pa.ArrowInvalid(f"its footer cannot be read: {error}") from error


def check_lance(file: pa.NativeFile) -> None:
    """Check that a file ends like a Lance file.

    Raises:
        pa.ArrowInvalid: it does not.
    """
    size = file.size()
    if size < _END.size or file.read_at(len(MAGIC), size - len(MAGIC)) != MAGIC:
        raise pa.ArrowInvalid("it does not end as Lance files do")


def _footer(file: pa.NativeFile) -> LanceFooter:
    check_lance(file)
    size = file.size()
    *_, places, count, columns, _, _, _ = _END.unpack(file.read_at(_END.size, size - _END.size))
    if not count or places > size - _PLACE.size:
        raise ValueError("it has no schema")
    offset, length = _PLACE.unpack(file.read_at(_PLACE.size, places))
    if length > _DESCRIPTOR_BYTES_MAX or offset + length > size:
        raise ValueError(f"its schema claims {length} bytes at {offset} of {size}")
    descriptor = dict(message_fields(file.read_at(length, offset)))
    schema, rows = descriptor.get(_SCHEMA, b""), descriptor.get(_ROWS, 0)
    if not (isinstance(schema, bytes) and isinstance(rows, int)):
        raise ValueError("its schema has another form")
    items = (value for number, value in message_fields(schema) if number == _SCHEMA_METADATA)
    pairs = (dict(message_fields(each)) for each in items if isinstance(each, bytes))
    entries = {_text(each.get(_NAME)): _text(each.get(_VALUE)) for each in pairs}
    return LanceFooter(entries, rows, columns, size)


def _text(value: int | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


_PANIC: Final = "PanicException"


@contextmanager
def panics_translated() -> Iterator[None]:
    """Translate panics, which are no subclass of `Exception`, into an error of Arrow.

    Raises:
        pa.ArrowInvalid: Lance panicked.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise pa.ArrowInvalid(str(error)) from error


_COPIED_BYTES: Final = 4 << 20
_BATCHES_AHEAD: Final = 2
_BATCHES_HELD: Final = 2 + _BATCHES_AHEAD
"""How many batches are in memory together: that which is yielded, one that is decoded, and those ahead."""
_WINDOW_BYTES: Final = 16 << 20
"""Stored bytes that Lance may read ahead."""

_FIRST_ROWS: Final = 256
"""Rows that are read before it is known how much memory a row takes."""


def read_open_lance(file: pa.NativeFile, local: str | None, asked: RowSelection) -> Iterator[pa.RecordBatch]:
    """Yield all rows of an open Lance file, in its order, a bounded batch at a time.

    Args:
        file: the file.
        local: its path on this machine; None if it has none.
        asked: the rows, of which the condition leaves out none. A batch has fewer rows than it says if these
            take too many bytes: all that are in memory take `Limits.batch_bytes`.

    Raises:
        InvalidError: the package is not installed.
        pa.ArrowInvalid: the file is damaged.
    """
    with panics_translated(), _local_file(file, local) as path:
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
        of_batch = (start - first) * (limits.in_force.batch_bytes // _BATCHES_HELD) // max(1, window_bytes)
        rows = max(1, min(batch_rows, of_batch))
        window = max(rows, window_rows)


def open_lance_schema(file: pa.NativeFile, local: str | None) -> pa.Schema:
    """Return the schema of an open Lance file; see `read_open_lance`."""
    with panics_translated(), _local_file(file, local) as path:
        return _opened(path).metadata().schema.remove_metadata()


def _opened(local: str, columns: list[str] | None = None) -> Any:
    try:
        from lance.file import LanceFileReader
    except ImportError as error:
        raise not_installed("Lance files need pylance", "lance") from error
    return LanceFileReader(local, columns=columns)


@contextmanager
def _local_file(file: pa.NativeFile, local: str | None) -> Iterator[str]:
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


PLAIN_VERSION, STRUCT_VERSION, MAP_VERSION = "2.0", "2.1", "2.2"
"""Versions of the format: that of Hudi 1.2.0, and the first ones with null structs, and with maps."""


_ERROR_NUMBER: Final = re.compile(r"\(os error (\d+)\)")


class LanceEncoder:
    """Writes batches to a temporary file, which it copies to an open file at the end.

    Args:
        target: the file, open for writing.
        schema: its columns.

    Raises:
        InvalidError: the package is not installed, or Lance has no such column.
    """

    def __init__(self, target: pa.NativeFile, schema: pa.Schema) -> None:
        self._target = target
        self._types = lance_types(schema)
        self._vectors = vector_columns(schema)
        self._plain_bytes = 0
        self._folder = TemporaryFolder("lance")
        self._copy = os.path.join(self._folder.path, "rows.lance")
        with _unsupported_error(), panics_translated():
            self._writer = _writer(self._copy, self._types)

    @property
    def bytes_written(self) -> int:
        """Number of bytes that were written so far, under another name until the file is finished."""
        with os.scandir(self._folder.path) as files:
            return sum(file.stat().st_size for file in files)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Raises:
            InvalidError: Lance cannot store them.
        """
        stored = conform(batch, self._types)
        with temporary_disk_errors(), _numbered(), _unsupported_error(), panics_translated():
            self._writer.write_batch(stored)
        self._plain_bytes += stored.nbytes

    def finish(self, entries: Mapping[str, str]) -> None:
        """Write what is left and the footer.

        Args:
            entries: metadata for the schema.

        Raises:
            InvalidError: Lance cannot store the rows.
        """
        with temporary_disk_errors(), _numbered(), _unsupported_error(), panics_translated():
            vectors = {VECTOR_COLUMNS: self._vectors} if self._vectors else {}
            for name, value in {**entries, **vectors, DECODED_BYTES_KEY: str(self._plain_bytes)}.items():
                self._writer.add_schema_metadata(name, value)
            self._writer.close()
        with open(self._copy, "rb") as file:
            shutil.copyfileobj(file, self._target, _COPIED_BYTES)
        self._drop()

    def abort(self) -> None:
        """Give up."""
        self._drop()

    def _drop(self) -> None:
        self._writer = None
        self._folder.drop()


@contextmanager
def _numbered() -> Iterator[None]:
    """Give errors of the operating system their number, which Lance has in the text alone."""
    try:
        yield
    except OSError as error:
        found = _ERROR_NUMBER.search(str(error))
        if error.errno is not None or found is None:
            raise
        number = int(found[1])
        raise OSError(number, os.strerror(number)) from error


@contextmanager
def _unsupported_error() -> Iterator[None]:
    """Translate what Lance says of rows that it cannot store."""
    try:
        yield
    except (ValueError, NotImplementedError) as error:
        raise InvalidError(
            f"Rows cannot be stored in a Lance file: {' '.join(str(error).split())}. Use a table with Parquet"
            " base files."
        ) from error


def lance_types(schema: pa.Schema) -> pa.Schema:
    """Return the types that a file has for columns: nested values are nullable, dictionaries plain."""
    return pa.schema([pa.field(each.name, _stored(each.type), each.nullable) for each in schema])


def format_version(schema: pa.Schema) -> str:
    """Return the lowest version of the format that has the types of some columns."""
    kinds = [each.type for each in schema]
    if any(_has(kind, pt.is_map) for kind in kinds):
        return MAP_VERSION
    return STRUCT_VERSION if any(_has(kind, pt.is_struct) for kind in kinds) else PLAIN_VERSION


def _has(kind: pa.DataType, asked: Callable[[pa.DataType], bool]) -> bool:
    return asked(kind) or any(_has(kind.field(at).type, asked) for at in range(kind.num_fields))


def _stored(kind: pa.DataType) -> pa.DataType:
    if pt.is_dictionary(kind):
        return _stored(kind.value_type)
    if pt.is_struct(kind):
        return pa.struct([(each.name, _stored(each.type)) for each in kind.fields])
    if is_vector(kind):
        return pa.list_(kind.value_type, kind.list_size)
    if pt.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _stored(kind.value_type)))
    if pt.is_map(kind):
        return pa.map_(_stored(kind.key_type), _stored(kind.item_type))
    return kind


def _class() -> Any:
    try:
        from lance.file import LanceFileWriter
    except ImportError as error:
        raise not_installed("Lance files need pylance", "lance") from error
    return LanceFileWriter


def _writer(path: str, schema: pa.Schema) -> Any:
    return _class()(
        path, schema, version=format_version(schema), data_cache_bytes=limits.in_force.lance_gathered_bytes
    )


class LanceFormat(FileFormat):
    """Lance, by the package `lance`."""

    has_footer = True
    schema_entry = None  # files have the schema of Arrow

    def footer(self, file: pa.NativeFile) -> BaseFooter:
        footer = lance_footer(file)
        return BaseFooter(footer.entries, footer.rows, footer.columns, footer.plain_bytes)

    def schema(self, file: pa.NativeFile, local: str | None) -> pa.Schema:
        return open_lance_schema(file, local)

    def rows(
        self, file: pa.NativeFile, local: str | None, selection: RowSelection
    ) -> Iterator[pa.RecordBatch]:
        return read_open_lance(file, local, selection)

    def encoder(self, spec: FileSpec) -> Callable[[pa.NativeFile], FileEncoder]:
        return partial(LanceEncoder, schema=spec.schema)

    def check_installed(self) -> None:
        _class()
