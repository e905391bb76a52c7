"""The encoder of Lance files (`encoded_sink`), by the package `lance`, an optional extra.

Lance writes files of the machine: a file is written as a temporary one, and then copied to its storage. Its
schema has the key summary as metadata, under the names of Parquet footers, as Hudi's writer does.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.disk_errors import temporary_disk_errors
from drawstring.base.errors import InvalidError, not_installed
from drawstring.base.temporary_folders import TemporaryFolder
from drawstring.formats.lance.footer import PLAIN_BYTES
from drawstring.formats.lance.panics import panics_translated
from drawstring.schema.evolve import conform
from drawstring.schema.logical_types import VECTOR_COLUMNS, is_vector, vector_columns

PLAIN_VERSION, STRUCT_VERSION, MAP_VERSION = "2.0", "2.1", "2.2"
"""Versions of the format: that of Hudi 1.2.0, and the first ones with null structs, and with maps."""

CACHE_BYTES: Final = 64 << 20
"""Bytes of rows that the writer gathers before it writes pages, those of all columns together."""

_COPIED_BYTES: Final = 4 << 20
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
        with _unfit(), panics_translated():
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
        with temporary_disk_errors(), _numbered(), _unfit(), panics_translated():
            self._writer.write_batch(stored)
        self._plain_bytes += stored.nbytes

    def finish(self, entries: Mapping[str, str]) -> None:
        """Write what is left and the footer.

        Args:
            entries: metadata for the schema.

        Raises:
            InvalidError: Lance cannot store the rows.
        """
        with temporary_disk_errors(), _numbered(), _unfit(), panics_translated():
            vectors = {VECTOR_COLUMNS: self._vectors} if self._vectors else {}
            for name, value in {**entries, **vectors, PLAIN_BYTES: str(self._plain_bytes)}.items():
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
def _unfit() -> Iterator[None]:
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


def require_lance() -> None:
    """Check that the package is installed.

    Raises:
        InvalidError: it is not.
    """
    _class()


def _class() -> Any:
    try:
        from lance.file import LanceFileWriter
    except ImportError as error:
        raise not_installed("Lance files need pylance", "lance") from error
    return LanceFileWriter


def _writer(path: str, schema: pa.Schema) -> Any:
    return _class()(path, schema, version=format_version(schema), data_cache_bytes=CACHE_BYTES)
