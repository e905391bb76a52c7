"""ORC as a format of base files and native log files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyarrow import orc

from drawstring.formats.file_format import BaseFooter, FileEncoder, FileFormat, FileSpec, text_of
from drawstring.formats.filter import RowSelection
from drawstring.plugins.orc.footer import OrcFooter, footer_errors
from drawstring.plugins.orc.reader import open_orc_schema, read_open_orc
from drawstring.plugins.orc.writer import OrcEncoder


class OrcFormat(FileFormat):
    """ORC, by pyarrow."""

    has_footer = True
    schema_entry = "orc.avro.schema"

    def footer(self, file: pa.NativeFile) -> BaseFooter:
        opened = orc.ORCFile(file)
        stored: Mapping[bytes, bytes] = opened.metadata or {}
        entries = {text_of(name): text_of(value) for name, value in stored.items()}
        with footer_errors("footer"):
            plain_bytes = OrcFooter.of(opened).plain_bytes()
        return BaseFooter(entries, opened.nrows, len(opened.schema), plain_bytes)

    def schema(self, file: pa.NativeFile, local: str | None) -> pa.Schema:
        return open_orc_schema(file)

    def rows(
        self, file: pa.NativeFile, local: str | None, selection: RowSelection
    ) -> Iterator[pa.RecordBatch]:
        return read_open_orc(file, selection)

    def encoder(self, spec: FileSpec) -> Callable[[pa.NativeFile], FileEncoder]:
        stripe_bytes = spec.row_groups.size_bytes
        return partial(
            OrcEncoder, schema=spec.schema, compression=spec.compression, stripe_bytes=stripe_bytes
        )

    def check_installed(self) -> None:
        """Do nothing: pyarrow reads and writes ORC."""
