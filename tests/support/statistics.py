"""Statistics of columns, added to the metadata table of a table as a build of Apache Hudi adds them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import SystemClock, SystemIds
from drawstring.filegroups.log_scanner import open_logs
from drawstring.filegroups.read_task import InstantRange, LogReading
from drawstring.formats.data_file import Selection, read_base
from drawstring.formats.hfile import encode_hfile
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block
from drawstring.metadata.file_listing import named_files
from drawstring.metadata.log_format import stored_schema
from drawstring.metadata.table import KEY, PARTITIONS_KEY, STATISTICS, TYPE, file_hash, partition_hash
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.files import BaseFile, FileSlice, LogFile
from drawstring.model.instant import Action
from drawstring.query.table_state import facts_of
from drawstring.schema.fields import without_meta
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.properties import save_properties

EPOCH = date(1970, 1, 1)
INSTANT = "00000000000000001"
FILE, PARTITION = 3, 6
"""Record types of statistics."""

_WRAPPER = "org.apache.hudi.avro.model.{}Wrapper"
_TYPES = {
    pa.int32(): ("Int", 3),
    pa.int64(): ("Long", 4),
    pa.float64(): ("Double", 6),
    pa.string(): ("String", 7),
    pa.date32(): ("Int", 12),
}
"""Wrapper and logical type of each type, in indexes of version V2."""


def add_statistics(table: Table) -> None:
    """Add the partitions `column_stats` and `partition_stats`, built of all files, to a metadata table.

    Args:
        table: a table with a metadata table.
    """
    context, config = context_of(table), table.config
    files = named_files(context.storage, config, table.timeline, context.clock)
    statuses = (status for path in files.partitions() for status in files.files(path))
    parsed = (BaseFile.parse(status) or LogFile.parse(status) for status in statuses)
    columns = {file.status.path: (file, dict(columns_of(table, file))) for file in parsed if file is not None}
    of_files = [record(file, name, each) for file, held in columns.values() for name, each in held.items()]
    latest: dict[tuple[str, str], list[pa.Array]] = {}
    for each in table.inspect.files():
        for file in filter(None, (each.base, *each.logs)):
            for name, values in columns[file.status.path][1].items():
                latest.setdefault((each.partition, name), []).append(values)
    of_partitions = [of_partition(path, name, values) for (path, name), values in latest.items()]
    add_records(table, {"column_stats": of_files, "partition_stats": of_partitions})


def add_records(table: Table, rows: dict[str, list[dict[str, Any]]]) -> None:
    """Add partitions with statistics to a metadata table.

    Args:
        table: a table with a metadata table.
        rows: the records by partition of the metadata table.
    """
    storage = context_of(table).storage
    writer = MetadataWriter.of(storage, SystemClock(), SystemIds())
    instant = writer.begin(Action.DELTA_COMMIT, INSTANT)
    for partition, records in rows.items():
        writer.make_partition(partition, INSTANT)
        group = f"{partition.replace('_', '-').replace('column', 'col')}-0000-0"
        path = f"{partition}/{LogFile.name_of(group, INSTANT, 1, '0-0-0')}"
        writer.storage.put(path, _log_file(records))
    writer.complete(instant, [], {})
    names = sorted({*table.config.metadata_partitions, *rows})
    save_properties(storage, {**table.config.properties, PARTITIONS_KEY: ",".join(names)}, SystemClock())


def _log_file(records: list[dict[str, Any]]) -> bytes:
    schema = fastavro.parse_schema(json.loads(stored_schema()))
    values = []
    for each in records:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, schema, {"key": "", **{k: v for k, v in each.items() if k != KEY}})
        values.append(buffer.getvalue())
    keys = pa.array([each[KEY] for each in records], pa.string())
    content = encode_hfile(keys, pa.array(values, pa.binary()), {b"schema": stored_schema().encode()}, 0)
    header = {HeaderKey.INSTANT_TIME: INSTANT, HeaderKey.SCHEMA: stored_schema()}
    return encode_block(BlockType.HFILE_DATA, header, content)


def columns_of(table: Table, file: BaseFile | LogFile) -> Iterator[tuple[str, pa.Array]]:
    """Yield the values of each column in a file; none of a log file with a part of the columns."""
    storage, schema = context_of(table).storage, without_meta(table.schema)
    if isinstance(file, BaseFile):
        batches = list(read_base(storage, file.status.path, Selection(schema.names)))
    else:
        batches = list(_logged(table, file))
    if not batches:
        return
    rows = pa.Table.from_batches(batches)
    for name in rows.column_names:
        if name in schema.names:
            yield name, rows.column(name).combine_chunks()


def _logged(table: Table, log: LogFile) -> Iterator[pa.RecordBatch]:
    facts = facts_of(context_of(table))
    instants = InstantRange.of(facts.timeline)
    reading = LogReading(facts.storage, facts.config, without_meta(facts.schema), instants)
    with open_logs(reading, FileSlice(log.status.folder, log.file_id, log.instant, None, (log,))) as logs:
        for placed in logs.blocks_to_merge(instants):
            if placed.block.is_partial:
                return
            if placed.block.kind is not BlockType.DELETE:
                yield from logs.rows(placed)


def record(file: BaseFile | LogFile, name: str, values: pa.Array) -> dict[str, Any]:
    """Return the record of a column in a file."""
    key = partition_hash(name) + partition_hash(file.status.folder) + file_hash(file.status.name)
    return {KEY: key, TYPE: FILE, STATISTICS: statistics(file.status.name, name, [values], tight=False)}


def of_partition(path: str, name: str, values: list[pa.Array]) -> dict[str, Any]:
    """Return the record of a column in a partition."""
    key = partition_hash(name) + partition_hash(path)
    return {KEY: key, TYPE: PARTITION, STATISTICS: statistics(path, name, values, tight=True)}


def statistics(file: str, name: str, values: list[pa.Array], *, tight: bool) -> dict[str, Any]:
    """Return the statistics of a column; like parquet-mr's, without bounds where a value is NaN."""
    kind = values[0].type if values else pa.string()
    wrapper, ordinal = _TYPES[kind]
    known = [each for each in values if not (kind == pa.float64() and pc.any(pc.is_nan(each)).as_py())]
    bounds = [pc.min_max(each).as_py() for each in known]
    least = min((each["min"] for each in bounds if each["min"] is not None), default=None)
    greatest = max((each["max"] for each in bounds if each["max"] is not None), default=None)
    return {
        "fileName": file,
        "columnName": name,
        "minValue": _wrapped(least, wrapper),
        "maxValue": _wrapped(greatest, wrapper),
        "valueCount": sum(map(len, values)),
        "nullCount": sum(each.null_count for each in values),
        "totalSize": 0,
        "totalUncompressedSize": 0,
        "isDeleted": False,
        "isTightBound": tight,
        "valueType": {"typeOrdinal": ordinal, "additionalInfo": None},
    }


def _wrapped(value: Any, wrapper: str) -> tuple[str, dict[str, Any]] | None:
    if value is None:
        return None
    stored = (value - EPOCH).days if isinstance(value, date) else value
    return _WRAPPER.format(wrapper), {"value": stored}
