"""Reader of native log files: the file as one block, whose content is the whole file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import REPAIR, CorruptTableError, UnsupportedError
from drawstring.formats.base_files import open_rows, open_schema, with_types
from drawstring.formats.base_footer import BaseFooter, has_footer, open_footer
from drawstring.formats.conditions import bound_columns
from drawstring.formats.file_errors import about_file
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.log_inline import BlockType, DeleteRecords, HeaderKey, LogBlock
from drawstring.formats.log_native.deletes import deletes_of
from drawstring.formats.log_native.footer import AVRO_SCHEMA, decode_footer
from drawstring.formats.parquet import ParquetQuery, read_open_parquet
from drawstring.formats.wanted_rows import EVERY_ROW, AskedRows, WantedRows
from drawstring.model.files import HFILE, PARQUET, LogFile, NativeLog, file_extension
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolve import conform
from drawstring.schema.meta import KEY_ALONE, RECORD_KEY

MAGIC: Final = b"PAR1"
_SCHEMA: Final = "schema"
_KINDS: Final[Mapping[NativeLog, BlockType]] = {
    NativeLog.DATA: BlockType.PARQUET_DATA,
    NativeLog.DELETES: BlockType.DELETE,
    NativeLog.CDC: BlockType.CDC_DATA,
}
_KEYS_ASKED_MAX: Final = 100
"""Number of record keys up to which a file is asked for each by statistics and bloom filter."""


@dataclass(frozen=True, slots=True)
class NativeBlock(LogBlock):
    """A native log file.

    Attributes:
        extension: of the file's name, which tells its format.
        footer: its footer; None for an HFile.
        local: path of the file on this machine; None if it has none.
    """

    extension: str = PARQUET
    footer: BaseFooter | None = None
    local: str | None = None

    def excludes(self, wanted: WantedRows) -> bool:
        """Return whether the footer says that the file has no row that is wanted."""
        keys, key_range = wanted.keys, wanted.key_range
        asked = AskedRows()
        if keys is not None and len(keys) <= _KEYS_ASKED_MAX:
            asked = AskedRows(keys=keys.to_pylist())
        elif key_range is not None and key_range.column == RECORD_KEY:
            asked = AskedRows(where=key_range.condition, bound=KEY_ALONE)
        return not asked.are_all and self.footer is not None and not self.footer.may_have(asked)


def native_block(file: pa.NativeFile, log: LogFile, local: str | None = None) -> NativeBlock:
    """Return an open native log file as a block.

    Args:
        file: the file, open for random access.
        log: its name. What it holds is told by the name, and by its footer if the name does not.
        local: its path on this machine; None if it has none.

    Raises:
        CorruptTableError: the file is damaged.
        UnsupportedError: this release cannot read its format.
    """
    size = file.size()
    extension = file_extension(log.status.name) if log.native else PARQUET
    footer: BaseFooter | None = None
    if has_footer(extension):
        footer = open_footer(file, log.status.path, extension)
        entries = footer.entries
    elif extension == HFILE:
        info = {_text(name): _text(value) for name, value in HFileReader(file, size).info.items()}
        entries = {**info, AVRO_SCHEMA: info[_SCHEMA]} if _SCHEMA in info else info
    else:
        raise UnsupportedError(
            f"Native log files of the format {extension} are not supported, only Parquet, ORC, Lance and"
            " HFile. Compact the table with the engine that wrote it."
        )
    header, stated = decode_footer(entries)
    header.setdefault(HeaderKey.INSTANT_TIME, log.instant)
    if log.native is not None:
        stated = _KINDS[log.native]
    kind = BlockType.PARQUET_DATA if stated is None else stated
    if kind is BlockType.PARQUET_DATA and extension == HFILE:
        kind = BlockType.HFILE_DATA
    return NativeBlock(kind, 0, size, 0, size, header, extension, footer, local)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def native_rows(
    file: pa.NativeFile,
    block: NativeBlock,
    columns: pa.Schema | None,
    wanted: WantedRows = EVERY_ROW,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a native log file.

    Args:
        file: the file, open.
        block: the file as a block.
        columns: columns of the table to read, by their names in the file, of which those that it lacks are
            left out; None for all of the file.
        wanted: the rows to read; row groups that cannot have one are not read. A range on a column that the
            file lacks is ignored.

    Raises:
        CorruptTableError: the file is damaged.
    """
    names = None if columns is None else columns.names
    if block.footer is None:
        yield from _hfile_rows(file, block, names)
    elif block.footer.parquet is None:
        yield from _columnar_rows(file, block, names, wanted)
    else:
        metadata = block.footer.parquet
        where = _condition(wanted, metadata.schema.names)
        query = ParquetQuery(names, where, wanted.batch_rows, columns, ahead_bytes=wanted.ahead_bytes)
        with about_file(None):
            yield from read_open_parquet(file, query, metadata)


def _columnar_rows(
    file: pa.NativeFile, block: NativeBlock, names: Sequence[str] | None, wanted: WantedRows
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file whose format has not all types of a table; its schema has them."""
    types = avro_to_arrow(block.schema_json) if block.schema_json else pa.schema([])
    where = _condition(wanted, types.names)
    bound = pa.schema([]) if where is None else bound_columns(where, types)
    asked = AskedRows(names, where, bound, batch_rows=wanted.batch_rows)
    for batch in open_rows(file, block.extension, block.local, asked):
        yield conform(batch, with_types(batch.schema, types))


def _condition(wanted: WantedRows, present: Sequence[str]) -> pc.Expression | None:
    """Return the condition of the wanted rows of a file."""
    if wanted.keys is not None and RECORD_KEY in present:
        return pc.field(RECORD_KEY).isin(wanted.keys)
    key_range = wanted.key_range
    return key_range.condition if key_range is not None and key_range.column in present else None


def _hfile_rows(
    file: pa.NativeFile, block: NativeBlock, names: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    if block.schema_json is None:
        raise CorruptTableError(f"A log file has no record schema: {REPAIR}.")
    entries = HFileReader(file, block.content_bytes).scan()
    yield from read_hfile_records(entries, block.schema_json, names)


def native_deletes(file: pa.NativeFile, block: NativeBlock) -> DeleteRecords:
    """Return the deletes of a native log file.

    Args:
        file: the file, open.
        block: the file as a block.

    Raises:
        CorruptTableError: the file is damaged.
    """
    if block.extension == HFILE:
        return _hfile_deletes(file, block)
    batches = list(native_rows(file, block, None))
    return deletes_of(pa.Table.from_batches(batches) if batches else _no_rows(file, block))


def _no_rows(file: pa.NativeFile, block: NativeBlock) -> pa.Table:
    if block.footer is not None and block.footer.parquet is not None:
        return block.footer.parquet.schema.to_arrow_schema().empty_table()
    return open_schema(file, block.extension, block.local).empty_table()


def native_deletes_windows(
    file: pa.NativeFile, block: NativeBlock, wanted: WantedRows
) -> Iterator[DeleteRecords]:
    """Yield the deletes of a native log file batch by batch; see `native_rows`."""
    if block.extension == HFILE:
        yield _hfile_deletes(file, block)
        return
    for batch in native_rows(file, block, None, wanted):
        yield deletes_of(pa.Table.from_batches([batch]))


def _hfile_deletes(file: pa.NativeFile, block: NativeBlock) -> DeleteRecords:
    found = [entries.keys for entries in HFileReader(file, block.content_bytes).scan()]
    keys = pa.concat_arrays([pa.array([], pa.string()), *found])
    return DeleteRecords(keys, None, pa.repeat(pa.scalar(True), len(keys)))
