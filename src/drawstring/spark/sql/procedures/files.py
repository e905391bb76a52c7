"""Procedures that look into files: logs, statistics, sources of a bootstrap, sizes of folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from typing import Any, Final

import pyarrow as pa

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.filegroups.file_slice_reader import read_task
from drawstring.filegroups.read_task import ReadTask
from drawstring.formats.data_file import is_parquet
from drawstring.formats.log_files import block_deletes, block_rows, log_blocks
from drawstring.formats.parquet import parquet_schema
from drawstring.metadata.column_overlap import column_overlaps
from drawstring.metadata.table import open_metadata_table
from drawstring.model.files import FileSlice, LogFile, parse_data_file
from drawstring.model.result import size_text
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.fields import KEY_ALONE
from drawstring.spark.sql.procedures.procedure import Call, Procedure, Rows
from drawstring.spark.storage_options import path_of, storage_options
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage

_STATISTICS: Final = "column_stats"
_BASE_PATH: Final = "hoodie.bootstrap.base.path"
_NO_QUOTA: Final = -1


def _logs(call: Call) -> tuple[Storage, list[LogFile]]:
    """Return the log files of the table whose paths match the pattern, oldest first."""
    facts = call.table._calls.facts()
    pattern = _without_scheme(call.needed("log_file_path_pattern"))
    logs = {
        log.status.path: log
        for partition in facts.view.partitions()
        for group in facts.view.stored_groups(partition)
        for each in group.slices
        for log in each.logs
    }
    matching = [
        log
        for path, log in sorted(logs.items())
        if fnmatch(path, pattern) or fnmatch(_without_scheme(facts.storage.full_uri(path)), pattern)
    ]
    return facts.storage, matching


def _without_scheme(address: str) -> str:
    """Return the address of a local file as its path, any other one as it is."""
    return address.removeprefix("file://").removeprefix("file:")


def show_logfile_metadata(call: Call) -> Rows:
    """Return the blocks of log files."""
    storage, logs = _logs(call)

    def rows() -> Iterator[Sequence[Any]]:
        for log in logs:
            with storage.open(log.status.path) as file:
                for block in log_blocks(file, log):
                    count = 0
                    if block.kind.is_data:
                        count = sum(batch.num_rows for batch in block_rows(file, block, KEY_ALONE))
                    elif block.kind.name == "DELETE":
                        count = len(block_deletes(file, block).keys)
                    header = json.dumps({key.name: value for key, value in block.header.items()})
                    yield block.instant, count, f"{block.kind.name}_BLOCK", header, "{}"

    return call.limited(rows())


def show_logfile_records(call: Call) -> Rows:
    """Return the records of log files as JSON: as they are stored, or as the table shows their slices."""
    storage, logs = _logs(call)

    def stored() -> Iterator[pa.RecordBatch]:
        for log in logs:
            with storage.open(log.status.path) as file:
                for block in log_blocks(file, log):
                    if block.kind.is_data:
                        yield from block_rows(file, block, avro_to_arrow(block.schema_json or ""))

    def merged() -> Iterator[pa.RecordBatch]:
        wanted = {log.status.path for log in logs}
        for task in call.table.scan().tasks():
            if isinstance(task, ReadTask) and wanted & {log.status.path for log in task.file_slice.logs}:
                yield from read_task(task)

    batches = merged() if call.flag("merge") else stored()
    return call.limited((json.dumps(row, default=str),) for batch in batches for row in batch.to_pylist())


def show_metadata_table_column_stats(call: Call) -> Rows:
    """Return the statistics of columns that the metadata table has of files."""
    wanted, columns = call.text("partition"), call.names("targetColumns")
    return [
        (row["file"], row["column"], row["min"], row["max"], row["nulls"])
        for row in call.table.inspect.metadata(_STATISTICS).to_pylist()
        if wanted in (None, row["partition"]) and (not columns or row["column"] in columns)
    ]


def show_metadata_column_stats_overlap(call: Call) -> Rows:
    """Return how many files of a partition a query for one value of a column reads."""
    facts, table = call.table._calls.facts(), call.table
    opened = open_metadata_table(facts.storage, facts.config, facts.timeline, table._context.clock)
    prefixes, wanted = tuple(call.names("partition")), call.names("targetColumns")
    slices = [each for each in table.inspect.files() if not prefixes or each.partition.startswith(prefixes)]
    columns = [each for each in table.schema if not wanted or each.name in wanted]
    return [
        (
            each.partition,
            each.column,
            each.average,
            each.greatest,
            each.files,
            *each.percentiles,
            each.values,
        )
        for each in column_overlaps(opened, slices, columns)
    ]


def show_metadata_table_stats(call: Call) -> Rows:
    """Return numbers and sizes of the partitions of the metadata table."""
    return [
        (f"{row['partition']}.{name}", str(row[column]))
        for row in call.table.inspect.metadata().to_pylist()
        for name, column in (
            ("fileGroupCount", "file_groups"),
            ("baseFileCount", "base_files"),
            ("logFileCount", "log_files"),
            ("totalFileSizeInBytes", "size_bytes"),
        )
    ]


def _bootstrapped(call: Call) -> Iterator[FileSlice]:
    """Yield the file slices whose rows are in source files."""
    return (each for each in call.table.inspect.files() if each.base is not None and each.base.source)


def show_bootstrap_mapping(call: Call) -> Rows:
    """Return which source file has the rows of each base file."""
    root = call.table.config.properties.get(_BASE_PATH, "")
    wanted, ids = call.text("partition_path"), call.names("file_ids")
    rows = []
    for each in _bootstrapped(call):
        assert each.base is not None
        if wanted in (None, each.partition) and (not ids or each.file_id in ids):
            folder, _, name = (each.base.source or "").rpartition("/")
            source = folder.removeprefix(root.rstrip("/")).strip("/")
            rows.append((each.partition, each.file_id, root, source, name))
    names = [field.name for field in call.procedure.result]
    place = names.index(call.text("sort_by") or names[0])
    return call.limited(sorted(rows, key=lambda row: row[place], reverse=call.flag("desc")))


def show_bootstrap_partitions(call: Call) -> Rows:
    """Return the partitions with files whose rows are in source files."""
    return sorted({(each.partition,) for each in _bootstrapped(call)})


def show_fs_path_detail(call: Call) -> Rows:
    """Return numbers and sizes of the files of a folder, or of each folder in it."""
    root = path_of(call.needed("path"))
    storage = open_storage(root, storage_options(call.spark, root, {}))
    folders = sorted(storage.list_folders("")) if call.flag("is_sub") else [""]
    rows = []
    for folder in folders:
        files = storage.list_tree(folder)
        size = sum(each.size_bytes for each in files)
        below = len({each.folder for each in files})
        sizes = (below, len(files), size, size_text(size))
        rows.append((*sizes, storage.full_uri(folder), size, _NO_QUOTA, _NO_QUOTA))
    if call.flag("sort"):
        rows.sort(key=lambda row: int(row[2]), reverse=True)
    return call.limited(rows)


def show_invalid_parquet(call: Call) -> Rows:
    """Return the base files of a table whose footer cannot be read.

    Raises:
        UnsupportedError: they are to be deleted: with them the table would lose rows for good.
    """
    if call.flag("needDelete"):
        raise UnsupportedError(
            "needDelete => true is refused: the rows of a file that is deleted are lost for good. Restore the"
            " file from a backup, or the table to a savepoint."
        )
    facts = call.table._calls.facts()
    wanted, instants = call.names("partitions"), call.names("instants")

    def rows() -> Iterator[Sequence[Any]]:
        for partition in facts.view.listing.partitions():
            for status in facts.view.listing.files(partition) if not wanted or partition in wanted else ():
                parsed = parse_data_file(status)
                is_asked = not instants or getattr(parsed, "instant", None) in instants
                if is_asked and is_parquet(status.path) and parsed is not None:
                    try:
                        parquet_schema(facts.storage, status.path)
                    except CorruptTableError:
                        yield (facts.storage.full_uri(status.path),)

    return call.limited(rows())


_LOGS: Final = "table STRING, path STRING, log_file_path_pattern STRING!"
PROCEDURES: Final = (
    Procedure(
        "show_logfile_metadata",
        f"{_LOGS}, limit INT=10, filter STRING",
        "instant_time STRING, record_count INT, block_type STRING, header_metadata STRING,"
        " footer_metadata STRING",
        show_logfile_metadata,
    ),
    Procedure(
        "show_logfile_records",
        f"{_LOGS}, merge BOOLEAN=false, limit INT=10, filter STRING",
        "records STRING",
        show_logfile_records,
    ),
    Procedure(
        "show_metadata_table_column_stats",
        "table STRING, path STRING, partition STRING, targetColumns STRING, filter STRING",
        "file_name STRING, column_name STRING, min_value STRING, max_value STRING, null_number BIGINT",
        show_metadata_table_column_stats,
    ),
    Procedure(
        "show_metadata_column_stats_overlap",
        "table STRING, path STRING, partition STRING, targetColumns STRING, filter STRING",
        "Partition path STRING, Field name STRING, Average overlap DOUBLE, Maximum file overlap INT,"
        " Total file number INT, 50% overlap INT, 75% overlap INT, 95% overlap INT, 99% overlap INT,"
        " Total value number INT",
        show_metadata_column_stats_overlap,
    ),
    Procedure(
        "show_metadata_table_stats",
        "table STRING, path STRING, filter STRING",
        "stat_key STRING, stat_value STRING",
        show_metadata_table_stats,
    ),
    Procedure(
        "show_bootstrap_mapping",
        "table STRING, path STRING, partition_path STRING, file_ids STRING, limit INT=10,"
        " sort_by STRING='partition', desc BOOLEAN=false, filter STRING",
        "partition STRING, file_id STRING, source_base_path STRING, source_partition STRING,"
        " source_file STRING",
        show_bootstrap_mapping,
    ),
    Procedure(
        "show_bootstrap_partitions",
        "table STRING, path STRING, filter STRING",
        "indexed_partitions STRING",
        show_bootstrap_partitions,
    ),
    Procedure(
        "show_fs_path_detail",
        "path STRING!, is_sub BOOLEAN=false, sort BOOLEAN=true, limit INT=100, filter STRING",
        "path_num BIGINT, file_num BIGINT, storage_size BIGINT, storage_size(unit) STRING,"
        " storage_path STRING, space_consumed BIGINT, quota BIGINT, space_quota BIGINT",
        show_fs_path_detail,
    ),
    Procedure(
        "show_invalid_parquet",
        "path STRING!, parallelism INT=100, limit INT=100, needDelete BOOLEAN=false, partitions STRING,"
        " instants STRING, filter STRING",
        "path STRING",
        show_invalid_parquet,
    ),
)
