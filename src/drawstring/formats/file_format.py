"""The formats of base files and native log files beside Parquet: a protocol, and a table by extension.

    .parquet    no format of this table: its row groups, pages and footers have readers and writers that
                other modules know (`parquet`)
    .hfile      `HFileFormat`: the values are Avro records of the file's own schema; there is no writer here
    .orc        a plug-in, without a library beside pyarrow (`drawstring.plugins.orc`)
    .lance      a plug-in, with the package `lance` (`drawstring.plugins.lance`)

A plug-in is an entry point of the group `drawstring.file_formats`, named by the extension without its dot: a
class that follows `FileFormat`. It is imported when a file with that extension is read or written first.

Footers (`BaseFooter`) have entries and the facts on the rows. The entries are the key-value metadata of
Parquet, the user metadata of ORC, and the metadata of the schema of Lance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.base.plugins import load_plugin
from drawstring.base.resources import VALUE_BYTES
from drawstring.formats.bloom import BloomFilter
from drawstring.formats.bloom_footer import StoredSummary, reusable_filter
from drawstring.formats.filter import RowSelection
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.parquet import RowGroups
from drawstring.formats.predicate_bounds import ranges_that_match
from drawstring.model.files import BASE_EXTENSIONS, FORMAT_NAMES, HFILE, PARQUET
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.fields import RECORD_KEY

_GROUP: Final = "drawstring.file_formats"
_DEFAULT_GROUPS: Final = RowGroups()


@dataclass(frozen=True, slots=True)
class BaseFooter:
    """The footer of a base file, or of a native log file.

    Attributes:
        entries: its entries.
        rows, columns: their numbers.
        plain_bytes: about how much memory the rows of a file take that is not a Parquet file.
        parquet: all metadata of a Parquet file.
    """

    entries: Mapping[str, str]
    rows: int
    columns: int
    plain_bytes: int = 0
    parquet: pq.FileMetaData | None = None

    @property
    def metadata(self) -> pq.FileMetaData:
        """All metadata of a file that is known to be a Parquet file."""
        assert self.parquet is not None
        return self.parquet

    def reusable_filter(self, rate: float) -> BloomFilter | None:
        """Return the bloom filter if the file that replaces this one can extend it, else None.

        Args:
            rate: rate of false positives that it may have.
        """
        return reusable_filter(self.entries, self.rows, rate)

    def bloom_filter(self) -> BloomFilter | None:
        """Return the bloom filter; None if there is none, or it cannot be read."""
        return StoredSummary.of(self.entries, self.rows).bloom_filter()

    def greatest(self, column: str) -> Any:
        """Return the greatest value of a column that is not nested; None if it is unknown."""
        bounds = self._bounds(column)
        return None if bounds is None else bounds[1]

    def may_have(self, asked: RowSelection) -> bool:
        """Return whether the file may have some rows, by the summary of its record keys.

        Args:
            asked: the rows.
        """
        summary = StoredSummary.of(self.entries, self.rows)
        if asked.keys is not None and not summary.may_hold_any(asked.keys):
            return False
        bounds = summary.bounds()
        if asked.where is None or bounds is None or RECORD_KEY not in asked.bound.names:
            return True
        key = pc.field(RECORD_KEY)
        try:
            return any(ranges_that_match(asked.where, asked.bound, [(key >= bounds[0]) & (key <= bounds[1])]))
        except pa.ArrowException:
            return True  # the condition fails on a value; evaluating it on rows reports the error

    def key_bounds(self) -> tuple[str, str] | None:
        """Return bounds of the record keys in the order of their UTF-8 bytes; None if they are unknown."""
        if self.parquet is None:
            return StoredSummary.of(self.entries, self.rows).bounds()
        bounds = self._bounds(RECORD_KEY)
        return bounds if bounds is not None and all(isinstance(each, str) for each in bounds) else None

    def last_keys(self) -> list[bytes] | None:
        """Return bounds of the last keys of the row groups of a Parquet file; None if one is unknown."""
        metadata = self.metadata
        places = range(metadata.num_columns if metadata.num_row_groups else 0)
        place = next((at for at in places if metadata.schema.column(at).path == RECORD_KEY), None)
        if place is None:
            return None
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        chunks = [group.column(place).statistics for group in groups]
        ends = [each.max_raw for each in chunks if each is not None and each.has_min_max]
        is_known = len(ends) == len(chunks) and all(isinstance(each, bytes) for each in ends)
        return ends if is_known else None

    def decoded_bytes(self) -> int:
        """Return about how much memory the rows take."""
        metadata = self.parquet
        groups = () if metadata is None else map(metadata.row_group, range(metadata.num_row_groups))
        stored: int = self.plain_bytes + sum(group.total_byte_size for group in groups)
        return max(stored, VALUE_BYTES * self.rows * self.columns)  # dictionaries grow

    def _bounds(self, column: str) -> tuple[Any, Any] | None:
        """Return the least and the greatest value of a column that is not nested, by Parquet's statistics."""
        metadata, least, greatest = self.parquet, [], []
        groups = () if metadata is None else map(metadata.row_group, range(metadata.num_row_groups))
        place: int | None = None
        for group in groups:
            if place is None:
                paths = (group.column(at).path_in_schema for at in range(group.num_columns))
                place = next((at for at, path in enumerate(paths) if path == column), None)
            statistics = None if place is None else group.column(place).statistics
            if statistics is None or not statistics.has_min_max:
                return None
            least.append(statistics.min)
            greatest.append(statistics.max)
        return (min(least), max(greatest)) if least else None


def parquet_footer(file: pa.NativeFile) -> BaseFooter:
    """Return the footer of an open Parquet file."""
    metadata = pq.read_metadata(file)
    stored: Mapping[bytes, bytes] = metadata.metadata or {}
    entries = {text_of(name): text_of(value) for name, value in stored.items()}
    return BaseFooter(entries, metadata.num_rows, metadata.num_columns, parquet=metadata)


def text_of(data: bytes) -> str:
    """Return the text of an entry of a footer."""
    return data.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class FileSpec:
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


class FileEncoder(Protocol):
    """Writes the bytes of a file."""

    @property
    def bytes_written(self) -> int:
        """Number of bytes so far."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""

    def finish(self, entries: Mapping[str, str]) -> None:
        """Write what is left, and a footer with some entries."""

    def abort(self) -> None:
        """Give up."""


class FileFormat(Protocol):
    """A format of base files and native log files.

    Attributes:
        has_footer: whether its files have a footer with entries.
        schema_entry: name of the entry that has the record schema as Avro JSON; None if there is none.
    """

    has_footer: bool
    schema_entry: str | None

    def footer(self, file: pa.NativeFile) -> BaseFooter:
        """Return the footer of an open file of a format that has one.

        Raises:
            pa.ArrowInvalid: the file is damaged.
        """
        ...

    def schema(self, file: pa.NativeFile, local: str | None) -> pa.Schema:
        """Return the schema of an open file; see `rows`."""
        ...

    def rows(
        self, file: pa.NativeFile, local: str | None, selection: RowSelection
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of an open file, in its order, a bounded batch at a time.

        Args:
            file: the file, open for random access.
            local: its path on this machine; None if it has none.
            selection: columns and rows. The caller applies the condition; a format may leave out rows that
                it excludes.

        Raises:
            InvalidError: a package that the format needs is not installed.
            pa.ArrowInvalid: the file is damaged.
        """
        ...

    def encoder(self, spec: FileSpec) -> Callable[[pa.NativeFile], FileEncoder]:
        """Return a function that makes the encoder of an open new file.

        Args:
            spec: what the file is to look like.

        Raises:
            UnsupportedError: there is no writer of the format.
        """
        ...

    def check_installed(self) -> None:
        """Check that the packages that the format needs are installed.

        Raises:
            InvalidError: one is not.
        """
        ...


class HFileFormat(FileFormat):
    """HFile, of which the metadata table is made."""

    has_footer = False
    schema_entry = None

    def footer(self, file: pa.NativeFile) -> BaseFooter:
        raise UnsupportedError(f"Files {HFILE} have no footer that this release knows.")

    def schema(self, file: pa.NativeFile, local: str | None) -> pa.Schema:
        return avro_to_arrow(_schema_json(HFileReader(file, file.size())), with_unions=True)

    def rows(
        self, file: pa.NativeFile, local: str | None, selection: RowSelection
    ) -> Iterator[pa.RecordBatch]:
        reader = HFileReader(file, file.size())
        for batch in read_hfile_records(reader.scan(), _schema_json(reader), selection.columns):
            names = batch.schema.names
            wanted = names if selection.columns is None else selection.columns
            columns = [name for name in wanted if name in names]
            for start in range(0, batch.num_rows, selection.batch_rows):
                yield batch.select(columns).slice(start, selection.batch_rows)

    def encoder(self, spec: FileSpec) -> Callable[[pa.NativeFile], FileEncoder]:
        raise not_written(HFILE)

    def check_installed(self) -> None:
        """Do nothing: the reader is a part of drawstring."""


def _schema_json(reader: HFileReader) -> str:
    schema_json = reader.schema_json
    if schema_json is None:
        raise CorruptTableError("The HFile has no record schema. Restore it from a backup.")
    return schema_json


FORMATS: Final[dict[str, FileFormat]] = {HFILE: HFileFormat()}
"""The formats that were used in this process, by extension."""


def format_of(extension: str) -> FileFormat | None:
    """Return the format of files with an extension; None for Parquet and for formats that Hudi does not have.

    Args:
        extension: with its dot, in lower case.

    Raises:
        UnsupportedError: the plug-in of the format is missing.
    """
    if extension == PARQUET or extension not in BASE_EXTENSIONS:
        return None
    found = FORMATS.get(extension)
    return FORMATS.setdefault(extension, _plugin(extension)) if found is None else found


def _plugin(extension: str) -> FileFormat:
    kind: Callable[[], FileFormat] = load_plugin(
        _GROUP, extension.removeprefix("."), f"{FORMAT_NAMES[extension]} files"
    )
    return kind()


def not_read(extension: str) -> UnsupportedError:
    """Return the error for files of a format that drawstring does not read."""
    return UnsupportedError(
        f"Base files {extension or 'without an extension'} are not supported, only Parquet, ORC, HFile and"
        " Lance. Read the table with Apache Hudi."
    )


def not_written(extension: str) -> UnsupportedError:
    """Return the error for files of a format that drawstring does not write."""
    return UnsupportedError(
        f"Files {extension or 'without an extension'} cannot be written, only Parquet, ORC and Lance. Write"
        " to the table with Apache Hudi."
    )
