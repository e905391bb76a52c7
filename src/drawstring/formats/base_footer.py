"""The footers of data files in any format: their entries, and what is known of their rows.

.parquet   key-value metadata
.orc       user metadata
.lance     metadata of the schema
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc

from drawstring.base.bounds import VALUE_BYTES
from drawstring.base.errors import UnsupportedError
from drawstring.formats.bloom.filters import BloomFilter
from drawstring.formats.bloom.key_summary import StoredSummary, reusable_filter
from drawstring.formats.file_errors import about_file
from drawstring.formats.lance.footer import lance_footer
from drawstring.formats.orc.footer import OrcFooter
from drawstring.formats.parquet import stored_summary
from drawstring.formats.parquet.units import in_table_units
from drawstring.formats.partition_match import ranges_that_match
from drawstring.formats.wanted_rows import AskedRows
from drawstring.model.files import FORMAT_NAMES, LANCE, ORC, PARQUET, file_extension
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import Storage


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

    def may_have(self, asked: AskedRows) -> bool:
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


def base_footer(storage: Storage, path: str, types: pa.Schema | None = None) -> BaseFooter:
    """Read the footer of a base file.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        types: the columns of the table by their names in the file, whose units timestamps get; None if they
            do not matter.

    Raises:
        CorruptTableError: the file is missing or damaged.
        UnsupportedError: files of its format have none that is known.
    """
    with storage.open(path) as file:
        footer = open_footer(file, path)
    if footer.parquet is None:
        return footer
    return replace(footer, parquet=in_table_units(footer.parquet, types))


def open_footer(file: pa.NativeFile, path: str, extension: str | None = None) -> BaseFooter:
    """Read the footer of an open file; see `base_footer`.

    Args:
        file: the file.
        path: its path or name.
        extension: tells its format; that of the name by default.
    """
    extension = extension or file_extension(path)
    with about_file(path, FORMAT_NAMES.get(extension, extension)):
        if extension not in _READERS:
            raise UnsupportedError(f"Files {extension} have no footer that this release knows.")
        return _READERS[extension](file)


def has_footer(path: str) -> bool:
    """Return whether files of a format have a footer that this release knows."""
    return file_extension(path) in _READERS


def key_summary(storage: Storage, path: str) -> StoredSummary | None:
    """Return the key summary in the footer of a base file; None if files of its format have none.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    extension = file_extension(path)
    if extension == PARQUET:
        return stored_summary(storage, path)
    if extension not in _READERS:
        return None
    with about_file(path, FORMAT_NAMES[extension]):
        footer = base_footer(storage, path)
    return StoredSummary.of(footer.entries, footer.rows)


def _of_parquet(file: pa.NativeFile) -> BaseFooter:
    metadata = pq.read_metadata(file)
    stored: Mapping[bytes, bytes] = metadata.metadata or {}
    entries = {_text(name): _text(value) for name, value in stored.items()}
    return BaseFooter(entries, metadata.num_rows, metadata.num_columns, parquet=metadata)


def _of_orc(file: pa.NativeFile) -> BaseFooter:
    opened = orc.ORCFile(file)
    stored: Mapping[bytes, bytes] = opened.metadata or {}
    entries = {_text(name): _text(value) for name, value in stored.items()}
    return BaseFooter(entries, opened.nrows, len(opened.schema), OrcFooter.of(opened).plain_bytes())


def _of_lance(file: pa.NativeFile) -> BaseFooter:
    footer = lance_footer(file)
    return BaseFooter(footer.entries, footer.rows, footer.columns, footer.plain_bytes)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


_READERS: Final[Mapping[str, Callable[[pa.NativeFile], BaseFooter]]] = {
    PARQUET: _of_parquet,
    ORC: _of_orc,
    LANCE: _of_lance,
}
