"""CSV files as a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.types as pt

from drawstring.ingestion.sources.columns import as_known, merged, reader_of, source_file
from drawstring.ingestion.sources.opened import opened
from drawstring.ingestion.sources.protocol import Reading
from drawstring.storage.protocol import Storage

_BLOCK_BYTES: Final = 8 << 20
"""Bytes that are looked at to find out the types of a file's columns."""


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """Reads CSV files; see `ReadFiles`.

    Attributes:
        separator, quote, escape: what separates and encloses values, and what precedes a quote in one.
        null: the text of nulls.
        has_header: whether the first line names the columns.
        is_multi_line: whether values contain line ends.
        names: the columns of files without a header; `_c0`, `_c1`, ... if there are none.
    """

    separator: str = ","
    quote: str = '"'
    escape: str | None = None
    null: str = ""
    has_header: bool = False
    is_multi_line: bool = False
    names: Sequence[str] = field(default_factory=tuple)

    def __call__(self, storage: Storage, paths: Sequence[str], reading: Reading) -> pa.RecordBatchReader:
        """Read files."""
        schema = merged((path, self._schema(storage, path, reading.known)) for path in paths)
        return reader_of(schema, ((path, self._rows(storage, path, schema)) for path in paths))

    def _schema(self, storage: Storage, path: str, known: pa.Schema) -> pa.Schema:
        """Return the columns of a file; those in which nothing is found are text."""
        with source_file(path), opened(storage, path) as file:
            found = self._renamed(self._open(file, known).schema)
        kinds = {each.name: each.type for each in known}
        return pa.schema(
            [
                each.with_type(kinds.get(each.name, pa.string() if pt.is_null(each.type) else each.type))
                for each in found
            ]
        )

    def _rows(self, storage: Storage, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with opened(storage, path) as file:
            for batch in self._open(file, schema):
                rows = pa.Table.from_arrays(batch.columns, schema=self._renamed(batch.schema))
                yield from as_known(rows, schema).to_batches()

    def _open(self, file: pa.NativeFile, types: pa.Schema) -> pc.CSVStreamingReader:
        names = [] if self.has_header else list(self.names)
        return pc.open_csv(
            file,
            pc.ReadOptions(
                use_threads=False,
                block_size=_BLOCK_BYTES,
                column_names=names or None,
                autogenerate_column_names=not (self.has_header or names),
            ),
            pc.ParseOptions(
                delimiter=self.separator,
                quote_char=self.quote or False,
                escape_char=self.escape or False,
                newlines_in_values=self.is_multi_line,
            ),
            pc.ConvertOptions(
                column_types={_plain_name(each.name): _parsed_type(each.type) for each in types},
                null_values=[self.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _renamed(self, schema: pa.Schema) -> pa.Schema:
        if self.has_header or self.names:
            return schema
        return pa.schema([each.with_name(f"_c{at}") for at, each in enumerate(schema)])


def _parsed_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that Arrow parses values as: it takes no time without a zone for one with a zone."""
    return pa.string() if pt.is_timestamp(kind) and kind.tz else kind


def _plain_name(name: str) -> str:
    """Return the name that Arrow gives to a column without one, which is `_c0` as in Spark."""
    return f"f{name[2:]}" if name.startswith("_c") and name[2:].isdigit() else name
