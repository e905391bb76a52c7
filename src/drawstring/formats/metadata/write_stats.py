"""Write statistics in commit metadata (HoodieWriteStat), in JSON and Avro.

JSON of layout 1 and Avro of layout 2 have the same fields, except that JSON omits the four fields of log
files for base files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drawstring.formats.metadata.records import all_inside, inside
from drawstring.model.commit import WriteStat


def json_stats(stats: Iterable[WriteStat]) -> dict[str, list[dict[str, Any]]]:
    """Return write stats by partition for JSON, in the field order of layout 1."""
    return _by_partition((stat, _json_stat(stat)) for stat in stats)


def avro_stats(stats: Iterable[WriteStat]) -> dict[str, list[dict[str, Any]]]:
    """Return write stats by partition for Avro of layout 2."""
    return _by_partition((stat, _avro_stat(stat)) for stat in stats)


def _by_partition(pairs: Iterable[tuple[WriteStat, dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    partitions: dict[str, list[dict[str, Any]]] = {}
    for stat, record in pairs:
        partitions.setdefault(stat.partition, []).append(record)
    return partitions


def _json_stat(stat: WriteStat) -> dict[str, Any]:
    return {
        "numInserts": stat.num_inserts,
        "numUpdates": 0,
        "numDeletes": stat.num_deletes,
        "totalLogReadTimeMs": 0,
        "totalLogRecords": stat.log_records,
        "totalLogFilesCompacted": stat.log_files_compacted,
        "totalLogSizeCompacted": stat.log_size_compacted,
        "totalUpdatedRecordsCompacted": 0,
        "totalLogBlocks": stat.log_blocks,
        "totalValidLogBlocks": 0,
        "totalLogBlocksSize": 0,
        "totalLogBlocksScanTimeMs": 0,
        "totalCorruptLogBlock": 0,
        "totalRollbackBlocks": 0,
        "fileId": stat.file_id,
        "path": stat.path or None,
        "cdcStats": dict(stat.cdc_files) or None,
        "prevCommit": stat.prev_commit,
        "numWrites": stat.num_writes,
        "numUpdateWrites": stat.num_updates,
        "totalWriteBytes": stat.size_bytes,
        "totalWriteErrors": 0,
        "tempPath": None,
        "partitionPath": stat.partition,
        "fileSizeInBytes": stat.size_bytes,
        "minEventTime": None,
        "maxEventTime": None,
        "prevBaseFile": stat.prev_base_file,
        "runtimeStats": _runtime(stat),
        **(_log_fields(stat) if stat.log_version is not None else {}),
    }


def _avro_stat(stat: WriteStat) -> dict[str, Any]:
    return {
        "fileId": stat.file_id,
        "path": stat.path or None,
        "prevCommit": stat.prev_commit,
        "numWrites": stat.num_writes,
        "numDeletes": stat.num_deletes,
        "numUpdateWrites": stat.num_updates,
        "totalWriteBytes": stat.size_bytes,
        "totalWriteErrors": 0,
        "partitionPath": stat.partition,
        "totalLogRecords": stat.log_records,
        "totalUpdatedRecordsCompacted": 0,
        "numInserts": stat.num_inserts,
        "totalLogBlocks": stat.log_blocks,
        "totalCorruptLogBlock": 0,
        "totalRollbackBlocks": 0,
        "fileSizeInBytes": stat.size_bytes,
        **_log_fields(stat),
        "prevBaseFile": stat.prev_base_file,
        "runtimeStats": _runtime(stat),
        "cdcStats": dict(stat.cdc_files) or None,
        "totalLogFilesCompacted": stat.log_files_compacted,
        "totalLogReadTimeMs": 0,
        "totalLogSizeCompacted": stat.log_size_compacted,
        "numUpdates": 0,
    }


def _log_fields(stat: WriteStat) -> dict[str, Any]:
    return {
        "logVersion": stat.log_version,
        "logOffset": None if stat.log_version is None else 0,
        "baseFile": stat.base_file,
        "logFiles": None if stat.log_files is None else list(stat.log_files),
    }


def _runtime(stat: WriteStat) -> dict[str, int]:
    milliseconds = round(stat.seconds * 1000)
    return {
        "totalScanTime": 0,
        "totalUpsertTime": 0 if stat.created else milliseconds,
        "totalCreateTime": milliseconds if stat.created else 0,
    }


def stats_of(partitions: Mapping[str, Iterable[Mapping[str, Any]]]) -> tuple[WriteStat, ...]:
    """Return the write stats of decoded metadata, JSON or Avro.

    Args:
        partitions: `partitionToWriteStats` as decoded.
    """
    return tuple(_stat_of(partition, record) for partition, each in partitions.items() for record in each)


def _stat_of(partition: str, record: Mapping[str, Any]) -> WriteStat:
    log_files = record.get("logFiles")
    prev_commit = _text(record, "prevCommit") or "null"
    return WriteStat(
        partition=inside(partition),
        file_id=_text(record, "fileId"),
        path=inside(_text(record, "path")),
        prev_commit=prev_commit,
        num_writes=_number(record, "numWrites"),
        num_inserts=_number(record, "numInserts"),
        num_updates=_number(record, "numUpdateWrites"),
        num_deletes=_number(record, "numDeletes"),
        size_bytes=_number(record, "fileSizeInBytes") or _number(record, "totalWriteBytes"),
        base_file=None if record.get("baseFile") is None else inside(_text(record, "baseFile")),
        log_version=record.get("logVersion"),
        log_files=None if log_files is None else all_inside(log_files),
        prev_base_file=record.get("prevBaseFile"),
        log_records=_number(record, "totalLogRecords"),
        log_blocks=_number(record, "totalLogBlocks"),
        log_files_compacted=_number(record, "totalLogFilesCompacted"),
        log_size_compacted=_number(record, "totalLogSizeCompacted"),
        seconds=_seconds(record.get("runtimeStats") or {}),
        created=prev_commit == "null",
        cdc_files={inside(path): int(size) for path, size in (record.get("cdcStats") or {}).items()},
    )


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name) or ""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r} instead of a text")
    return value


def _number(record: Mapping[str, Any], name: str) -> int:
    return int(record.get(name) or 0)


def _seconds(runtime: Mapping[str, Any]) -> float:
    return (_number(runtime, "totalCreateTime") + _number(runtime, "totalUpsertTime")) / 1000
