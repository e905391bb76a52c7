"""Read native log files, each one log block, and encode their footers and deletes (RFC-103).

Footer: two sets of entries, so that readers of either kind find their own.

    hudi.log.format.<NAME>     Apache Hudi's: the headers of a block by their names, and VERSION
    hudi.log.<name>            RFC-103 as first proposed: the same headers but the schema, and the type
    hudi.log.format.metadata   Apache Hudi's in June and July 2026: all headers in a JSON object; only read

The schema of the records is a header of the first set. Files without it have it in `parquet.avro.schema`, the
entry of every Parquet file of a table.

Files of records have the format of base files, and so do files of change images (`write_change_file`).

Files of deletes have a row for each deleted record:

    _hoodie_record_key     the record key
    <ordering field>...    its ordering values, with the types of the table; all null for none

A delete without ordering values wins over everything written before it. If the n-th ordering field (from 0)
is nested in a column, its column is `_hoodie_ordering_<n>`, as was proposed for Apache Hudi: readers go by
the order of the columns, not by their names. RFC-103 as first proposed has the partition path as well; here
the folder determines it.

HFiles of metadata tables:

    .log.hfile       keys and Avro datums, as in a base file; entries of a footer in the file information
    .deletes.hfile   keys of removed records; the datum of each has the key once more

Footer cache (`FOOTER_CACHE`): a read of a few keys reads the footers of all log files of a slice, and most
log files have none of the keys. A cached footer takes no time, and files that it excludes are not even
opened. Names of log files are never used again in a table that outlives the process. Footers of tables in
memory, and of files with a length other than listed, are not cached. Neither are footers of base files: their
bloom filters are as large as the keys.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from threading import Lock
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import REPAIR, CorruptTableError, UnsupportedError
from drawstring.formats.avro.encoder import RowEncoder
from drawstring.formats.data_file import (
    has_footer,
    open_footer,
    open_rows,
    open_schema,
    open_sink,
    schema_entry,
    with_types,
)
from drawstring.formats.errors import about_file
from drawstring.formats.file_format import BaseFooter, FileSpec
from drawstring.formats.filter import ALL_ROWS, LogRowSelection, RowSelection, bound_columns
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.log_inline import BlockType, DeleteRecords, HeaderKey, LogBlock
from drawstring.formats.parquet import ParquetQuery, read_open_parquet
from drawstring.model.files import (
    FORMAT_NAMES,
    HFILE,
    PARQUET,
    FileStatus,
    LogFile,
    NativeLog,
    file_extension,
)
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolution import conform
from drawstring.schema.fields import KEY_ALONE, PARTITION_PATH, RECORD_KEY, field_path, type_at
from drawstring.storage import is_lasting
from drawstring.storage.protocol import Storage

_RECORD: Final = "hudi_delete_log_record"


@dataclass(frozen=True, slots=True)
class DeleteLog:
    """What the files of deletes of a table look like.

    Attributes:
        schema: key and ordering columns.
        avro_schema: the same as Avro JSON.
    """

    schema: pa.Schema
    avro_schema: str

    def rows(self, keys: pa.Array, ordering: Sequence[pa.Array] | None) -> pa.RecordBatch:
        """Return deletes as rows of a file.

        Args:
            keys: record keys.
            ordering: their ordering values by column; None if they have none.
        """
        fields = list(self.schema)[1:]
        columns = [each.cast(field.type) for each, field in zip(ordering or (), fields, strict=False)]
        columns = columns or [pa.nulls(len(keys), field.type) for field in fields]
        return pa.RecordBatch.from_arrays([keys.cast(pa.string()), *columns], schema=self.schema)


def deletes_schema(table: pa.Schema, avro_schema: str, ordering_fields: Sequence[str]) -> DeleteLog:
    """Return what the files of deletes of a table look like.

    Args:
        table: columns of the table.
        avro_schema: the same as Avro JSON.
        ordering_fields: what orders the versions of a record: columns, and fields of structs as `a.k`.
    """
    stored = {
        name if name in table.names else f"_hoodie_ordering_{number}": (name, kind)
        for number, name in enumerate(ordering_fields)
        if (kind := type_at(name, table)) is not None
    }
    fields = [pa.field(column, kind) for column, (_, kind) in stored.items()]
    record_type = json.loads(avro_schema)
    avro: list[dict[str, Any]] = [{"name": RECORD_KEY, "type": "string"}]
    avro += [
        {"name": column, "type": _nullable(_avro_type(record_type, field_path(table, name))), "default": None}
        for column, (name, _) in stored.items()
    ]
    record = {"type": "record", "name": _RECORD, "fields": avro}
    key = pa.field(RECORD_KEY, pa.string(), nullable=False)
    return DeleteLog(pa.schema([key, *fields]), json.dumps(record, separators=(",", ":")))


def _avro_type(kind: Any, path: Sequence[str]) -> Any:
    """Return the Avro type at a path of fields."""
    if not path:
        return kind
    branches = kind if isinstance(kind, list) else [kind]
    record = next(each for each in branches if isinstance(each, dict) and each.get("type") == "record")
    inner = next(field["type"] for field in record["fields"] if field["name"] == path[0])
    return _avro_type(inner, path[1:])


def _nullable(kind: Any) -> Any:
    """Return an Avro type as a union that begins with null, so that null can be its default."""
    kinds = kind if isinstance(kind, list) else [kind]
    return ["null", *(each for each in kinds if each != "null")]


def deletes_of(rows: pa.Table) -> DeleteRecords:
    """Return the deletes in the rows of a file: the key column and the ordering columns, in their order.

    Raises:
        CorruptTableError: there is no key column, or a delete has no key.
    """
    if RECORD_KEY not in rows.column_names or rows.column(RECORD_KEY).null_count:
        raise CorruptTableError(f"A log file of deletes lacks record keys: {REPAIR}.")
    keys = rows.column(RECORD_KEY).combine_chunks().cast(pa.string())
    names = [name for name in rows.column_names if name not in (RECORD_KEY, PARTITION_PATH)]
    columns = [rows.column(name).combine_chunks() for name in names]
    if not columns:
        return DeleteRecords(keys, None, pa.repeat(pa.scalar(True), len(keys)))
    absent = reduce(pc.and_, [pc.is_null(each) for each in columns])
    several = [str(number) for number in range(len(columns))]
    ordering = columns[0] if len(columns) == 1 else pa.StructArray.from_arrays(columns, names=several)
    return DeleteRecords(keys, ordering, absent)


AVRO_SCHEMA: Final = "parquet.avro.schema"

_PREFIX: Final = "hudi.log.format."
_WRAPPED: Final = f"{_PREFIX}metadata"
_VERSION: Final = 2
"""What Apache Hudi's master writes into native files, and the greatest that it reads; blocks keep 1."""

_PROPOSED_VERSION_KEY: Final = "hudi.log.format_version"
_PROPOSED_VERSION: Final = 2
_TYPE: Final = "hudi.log.block_type"
_TYPES: Final[Mapping[str, BlockType]] = {
    "parquet_data": BlockType.PARQUET_DATA,
    "hfile_data": BlockType.HFILE_DATA,
    "delete": BlockType.DELETE,
    "command": BlockType.COMMAND,
    "cdc": BlockType.CDC_DATA,
}
_TYPE_NAMES: Final = {kind: name for name, kind in _TYPES.items()}
_PROPOSED: Final[Mapping[HeaderKey, str]] = {
    HeaderKey.INSTANT_TIME: "hudi.log.instant_time",
    HeaderKey.TARGET_INSTANT_TIME: "hudi.log.target_instant_time",
    HeaderKey.COMMAND_BLOCK_TYPE: "hudi.log.command_block_type",
    HeaderKey.COMPACTED_BLOCK_TIMES: "hudi.log.compacted_block_times",
    HeaderKey.RECORD_POSITIONS: "hudi.log.record_positions",
    HeaderKey.BLOCK_IDENTIFIER: "hudi.log.block_identifier",
    HeaderKey.IS_PARTIAL: "hudi.log.is_partial",
    HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: "hudi.log.base_file_instant_of_positions",
}


def encode_footer(kind: BlockType, header: Mapping[HeaderKey, str]) -> dict[str, str]:
    """Return the footer entries of a native log file.

    Args:
        kind: type of the block that the file is.
        header: its headers.
    """
    first = {f"{_PREFIX}{HeaderKey.VERSION.name}": str(_VERSION)}
    first |= {f"{_PREFIX}{key.name}": text for key, text in header.items()}
    second = {_PROPOSED_VERSION_KEY: str(_PROPOSED_VERSION), _TYPE: _TYPE_NAMES[kind]}
    return first | second | {_PROPOSED[key]: text for key, text in header.items() if key in _PROPOSED}


def decode_footer(entries: Mapping[str, str]) -> tuple[dict[HeaderKey, str], BlockType | None]:
    """Return the headers in the footer of a native log file, and the type of the block if it has one.

    Raises:
        CorruptTableError: an entry is damaged.
        UnsupportedError: the file has a later version of the format.
    """
    wrapped = _unwrapped(entries)
    _check_version(wrapped.get(HeaderKey.VERSION.name), _VERSION)
    _check_version(entries.get(_PROPOSED_VERSION_KEY), _PROPOSED_VERSION)
    header = {key: entries[name] for key, name in _PROPOSED.items() if name in entries}
    header |= {key: wrapped[key.name] for key in HeaderKey if key.name in wrapped}
    if HeaderKey.SCHEMA not in header and AVRO_SCHEMA in entries:
        header[HeaderKey.SCHEMA] = entries[AVRO_SCHEMA]
    return header, _TYPES.get(entries.get(_TYPE, ""))


def _unwrapped(entries: Mapping[str, str]) -> dict[str, str]:
    """Return Apache Hudi's entries without their prefix, those of the early JSON object included."""
    found = {name.removeprefix(_PREFIX): text for name, text in entries.items() if name.startswith(_PREFIX)}
    if _WRAPPED not in entries:
        return found
    try:
        content: Any = json.loads(entries[_WRAPPED])
        return {str(name): str(text) for name, text in content.items() if text is not None} | found
    except (ValueError, AttributeError) as error:
        raise CorruptTableError(
            f"The footer entry {_WRAPPED} of a log file is damaged ({error}). To repair the table, {REPAIR}."
        ) from error


def _check_version(text: str | None, known: int) -> None:
    if text is None:
        return
    try:
        number = int(text)
    except ValueError:
        raise CorruptTableError(
            f"The footer of a log file has the format version {text!r}. To repair the table, {REPAIR}."
        ) from None
    if number > known:
        raise UnsupportedError(
            f"A log file has version {number} of its format, but this release reads versions up to {known}."
            " Upgrade drawstring."
        )


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

    def excludes(self, wanted: LogRowSelection) -> bool:
        """Return whether the footer says that the file has no row that is wanted."""
        keys, key_range = wanted.keys, wanted.key_range
        asked = RowSelection()
        if keys is not None and len(keys) <= _KEYS_ASKED_MAX:
            asked = RowSelection(keys=keys.to_pylist())
        elif key_range is not None and key_range.column == RECORD_KEY:
            asked = RowSelection(where=key_range.condition, bound=KEY_ALONE)
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
        with about_file(None, FORMAT_NAMES[HFILE]):
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
    wanted: LogRowSelection = ALL_ROWS,
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
    with about_file(None, FORMAT_NAMES[block.extension]):
        if block.footer is None:
            yield from _hfile_rows(file, block, names)
        elif block.footer.parquet is None:
            yield from _columnar_rows(file, block, names, wanted)
        else:
            metadata = block.footer.parquet
            where = _condition(wanted, metadata.schema.names)
            query = ParquetQuery(names, where, wanted.batch_rows, columns, ahead_bytes=wanted.ahead_bytes)
            yield from read_open_parquet(file, query, metadata)


def _columnar_rows(
    file: pa.NativeFile, block: NativeBlock, names: Sequence[str] | None, wanted: LogRowSelection
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file whose format has not all types of a table; its schema has them."""
    types = avro_to_arrow(block.schema_json) if block.schema_json else pa.schema([])
    where = _condition(wanted, types.names)
    bound = pa.schema([]) if where is None else bound_columns(where, types)
    asked = RowSelection(names, where, bound, batch_rows=wanted.batch_rows)
    for batch in open_rows(file, block.extension, block.local, asked):
        yield conform(batch, with_types(batch.schema, types))


def _condition(wanted: LogRowSelection, present: Sequence[str]) -> pc.Expression | None:
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
    with about_file(None, FORMAT_NAMES[block.extension]):
        if block.extension == HFILE:
            return _hfile_deletes(file, block)
        batches = list(native_rows(file, block, None))
        return deletes_of(pa.Table.from_batches(batches) if batches else _no_rows(file, block))


def _no_rows(file: pa.NativeFile, block: NativeBlock) -> pa.Table:
    if block.footer is not None and block.footer.parquet is not None:
        return block.footer.parquet.schema.to_arrow_schema().empty_table()
    return open_schema(file, block.extension, block.local).empty_table()


def native_deletes_windows(
    file: pa.NativeFile, block: NativeBlock, wanted: LogRowSelection
) -> Iterator[DeleteRecords]:
    """Yield the deletes of a native log file batch by batch; see `native_rows`."""
    with about_file(None, FORMAT_NAMES[block.extension]):
        if block.extension == HFILE:
            yield _hfile_deletes(file, block)
            return
        for batch in native_rows(file, block, None, wanted):
            yield deletes_of(pa.Table.from_batches([batch]))


def _hfile_deletes(file: pa.NativeFile, block: NativeBlock) -> DeleteRecords:
    found = [entries.keys for entries in HFileReader(file, block.content_bytes).scan()]
    keys = pa.concat_arrays([pa.array([], pa.string()), *found])
    return DeleteRecords(keys, None, pa.repeat(pa.scalar(True), len(keys)))


def write_change_file(
    storage: Storage,
    path: str,
    batches: Sequence[pa.RecordBatch],
    schema_json: str,
    header: Mapping[HeaderKey, str],
    compression: str,
) -> int:
    """Write a native log file of change images, and return its size in bytes.

    Args:
        storage: storage of the table.
        path: path of the file, whose extension tells the format.
        batches: the images.
        schema_json: Avro schema of the images.
        header: headers of the block that the file is.
        compression: Parquet codec by name.
    """
    schema = avro_to_arrow(schema_json)
    entries = encode_footer(BlockType.CDC_DATA, header) | schema_entry(path, schema_json)
    sink = open_sink(storage, path, FileSpec(schema, schema_json, compression, 0.0))
    try:
        for batch in batches:
            sink.write(batch)
        sink.add_entries(entries)
        return sink.close()
    except BaseException:
        sink.abort()
        raise


FOOTER_CACHE_BYTES_MAX: Final = 32 << 20
"""Bytes that a process keeps of all footers, about."""

_CHUNK_BYTES: Final = 1_800
"""Bytes that a footer in memory takes for a column chunk."""

_PARTS_MIN: Final = 16
"""Number of footers for which there is room, whatever their size; those that take more are not kept."""

_Key: TypeAlias = tuple[str, FileStatus]


class FooterCache:
    """Keeps the footers of the files that were read last.

    Args:
        bytes_max: bytes that are kept.
    """

    def __init__(self, bytes_max: int = FOOTER_CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = Lock()
        self._known: OrderedDict[_Key, NativeBlock] = OrderedDict()
        self._size_bytes = 0

    def recall(self, storage: Storage, log: LogFile) -> NativeBlock | None:
        """Return a log file as a block; None if its footer is not known."""
        key = (storage.spec.uri, log.status)
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
        return found

    def keep(self, storage: Storage, log: LogFile, block: NativeBlock) -> None:
        """Keep the footer of a file that is as it was listed, unless its name may come again."""
        uri, size_bytes = storage.spec.uri, _size_bytes(block)
        if log.status.size_bytes != block.size_bytes or not is_lasting(uri):
            return
        if block.footer is None or size_bytes * _PARTS_MIN > self._bytes_max:
            return
        with self._lock:
            if (uri, log.status) not in self._known:
                self._known[uri, log.status] = block
                self._size_bytes += size_bytes
            while self._size_bytes > self._bytes_max:
                _, dropped = self._known.popitem(last=False)
                self._size_bytes -= _size_bytes(dropped)

    def forget(self) -> None:
        """Keep nothing any more."""
        with self._lock:
            self._known.clear()
            self._size_bytes = 0


def _size_bytes(block: NativeBlock) -> int:
    """Return about how many bytes a footer takes in memory."""
    footer = block.footer
    if footer is None:
        return 0
    metadata = footer.parquet
    chunks = 0 if metadata is None else metadata.num_row_groups * metadata.num_columns
    texts = (*footer.entries.values(), *block.header.values())
    return chunks * _CHUNK_BYTES + sum(map(len, texts))


FOOTER_CACHE: Final = FooterCache()


_HFILE_SCHEMA: Final = b"schema"


def hfile_entries(kind: BlockType, header: Mapping[HeaderKey, str]) -> dict[bytes, bytes]:
    """Return the entries of the file information of a native log file.

    Args:
        kind: type of the block that the file is: of records, or of deletes without ordering values.
        header: its headers, the schema of the table among them.
    """
    avro_schema = _deletes().avro_schema if kind is BlockType.DELETE else header[HeaderKey.SCHEMA]
    footer = {name.encode(): text.encode() for name, text in encode_footer(kind, header).items()}
    return {_HFILE_SCHEMA: avro_schema.encode(), **footer}


def encoded_deletes(keys: pa.Array) -> pa.BinaryArray:
    """Return the Avro datum of each delete.

    Args:
        keys: record keys (string).
    """
    return _encoder().encode_columns({RECORD_KEY: keys})


@cache
def _deletes() -> DeleteLog:
    """Return what the files of deletes look like in a table that orders records by commit time."""
    return deletes_schema(pa.schema([]), json.dumps({"fields": []}), ())


@cache
def _encoder() -> RowEncoder:
    return RowEncoder.of(json.loads(_deletes().avro_schema))
