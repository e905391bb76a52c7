"""Writers of base and log files in any format, which their file extension determines.

.parquet   row group by row group (`parquet.write`)
.orc       stripe by stripe (`orc.write`)
.lance     by the package `lance`, an optional extra (`lance.write`)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import pyarrow as pa

from drawstring.base.errors import UnsupportedError
from drawstring.formats.bloom.filters import BloomFilter
from drawstring.formats.bloom.key_summary import KeySummary
from drawstring.formats.encoded_sink import EncodedSink, FileEncoder
from drawstring.formats.lance.write import LanceEncoder
from drawstring.formats.orc.write import OrcEncoder
from drawstring.formats.parquet import ParquetSink, RowGroups, SharedEncodings
from drawstring.model.column_summary import ColumnSummary
from drawstring.model.files import LANCE, ORC, PARQUET, file_extension
from drawstring.schema.meta import with_meta_fields
from drawstring.storage.protocol import Storage

_DEFAULT_GROUPS: Final = RowGroups()
_SCHEMA_ENTRIES: Final = {PARQUET: "parquet.avro.schema", ORC: "orc.avro.schema"}


class FileSink(Protocol):
    """Writes a base or log file.

    Attributes:
        keys: what the footer says of the record keys; None if it says nothing.
    """

    keys: KeySummary | None

    @property
    def bytes_written(self) -> int:
        """Estimated size of the file if it ended here."""

    def write(self, batch: pa.RecordBatch, *, is_known: bool = False) -> None:
        """Add rows; `is_known` tells whether the file that this one replaces had all their keys."""

    def flush(self) -> bool:
        """Store the rows so far, which take no memory then; return whether the format can."""

    def close(self) -> int:
        """Finish the file and return its size in bytes."""

    def abort(self) -> None:
        """Discard the file and delete its written part."""

    def summarize(self, columns: Sequence[str]) -> None:
        """Have the summaries of some columns made, before any rows are written."""

    def share(self, encodings: SharedEncodings) -> None:
        """Choose the encodings together with other files, before any rows are written."""

    def add_entries(self, entries: Mapping[str, str]) -> None:
        """Add entries to the footer; they take the place of those with the same names."""

    def summaries(self) -> tuple[ColumnSummary, ...] | None:
        """Return the summaries of the closed file; None if none were wanted, or if one is unknown."""


@dataclass(frozen=True, slots=True)
class FileForm:
    """What a file is to look like.

    Attributes:
        schema: its columns, including meta columns.
        avro_schema: the record schema as Avro JSON; missing meta columns are added.
        compression: Parquet codec by name.
        bloom: rate of false positives of the bloom filter, 0 for no key summary; or the filter of the file
            that this one replaces.
        row_groups: how large its row groups or stripes get.
    """

    schema: pa.Schema
    avro_schema: str
    compression: str
    bloom: float | BloomFilter
    row_groups: RowGroups = _DEFAULT_GROUPS


def open_sink(storage: Storage, path: str, form: FileForm) -> FileSink:
    """Open a new file for writing.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root; its extension tells the format.
        form: what it is to look like.

    Raises:
        InvalidError: a package that the format needs is not installed, or the format lacks a type.
        UnsupportedError: this release cannot write the format.
    """
    extension = file_extension(path)
    if extension == PARQUET:
        return ParquetSink(
            storage,
            path,
            form.schema,
            table_avro_schema=form.avro_schema,
            compression=form.compression,
            bloom=form.bloom,
            row_groups=form.row_groups,
        )
    entries = schema_entry(path, with_meta_fields(form.avro_schema))
    return EncodedSink(storage, path, form.schema, _encoder(extension, form), entries, form.bloom)


def _encoder(extension: str, form: FileForm) -> Callable[[pa.NativeFile], FileEncoder]:
    if extension == ORC:
        stripe_bytes = form.row_groups.size_bytes
        return partial(
            OrcEncoder, schema=form.schema, compression=form.compression, stripe_bytes=stripe_bytes
        )
    if extension == LANCE:
        return partial(LanceEncoder, schema=form.schema)
    raise UnsupportedError(
        f"Files {extension or 'without an extension'} cannot be written, only Parquet, ORC and Lance. Write"
        " to the table with Apache Hudi."
    )


def schema_entry(path: str, schema_json: str) -> dict[str, str]:
    """Return the entry of a file's footer that has the record schema; Lance files have the schema of Arrow.

    Args:
        path: path of the file, whose extension tells the format.
        schema_json: the record schema as Avro JSON.
    """
    name = _SCHEMA_ENTRIES.get(file_extension(path))
    return {name: schema_json} if name else {}
