"""Encode and decode commit metadata (JSON in layout 1, Avro in layout 2) and compaction plans (Avro in both).

Specification: Transaction Log, Commit Metadata. Decoders distinguish JSON and Avro by the first bytes, ignore
unknown fields, and treat an empty file as empty metadata. Write statistics (HoodieWriteStat) have the same
fields in both layouts, except that JSON omits the four fields of log files for base files.

`commit_in_layout` converts commit metadata between the layouts, which have the same field names. No reader
uses the fields that only one layout has: sums of the reader in JSON, a version in Avro.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from drawstring.base.errors import UnsupportedError
from drawstring.formats import schemas
from drawstring.formats.avro.container import DAMAGE, MAGIC, encode_container
from drawstring.formats.metadata.records import all_inside, damaged, inside, one_record, read_as
from drawstring.formats.metadata.rollback import (
    decode_rollback,
    decode_rollback_plan,
    encode_rollback,
    encode_rollback_plan,
)
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.plans import CompactionOperation, CompactionPlan
from drawstring.model.table_version import CommitEncoding, TimelineLayout

__all__ = [
    "clustering_groups",
    "commit_from_record",
    "decode_commit",
    "decode_compaction_plan",
    "decode_rollback",
    "decode_rollback_plan",
    "encode_commit",
    "encode_compaction_plan",
    "encode_requested_replace",
    "encode_rollback",
    "encode_rollback_plan",
    "is_clustering",
]

COMPACTION_PLAN_VERSION = 2
LOGS_ONLY_METRIC = "DRAWSTRING_LOGS_ONLY"
"""Metric of a compaction plan that requests a log compaction; Hudi ignores it and writes a base file."""

_DECODED_CACHED_MAX: Final = 64
_CACHED_BYTES_MAX: Final = 32 << 10
"""Number and largest size of commits whose decoded content a process caches."""

_STATS_READ: Final = 100
"""Number of statistics that a reader of the other fields reads; it passes over more."""

_CLUSTER_OPERATION = "CLUSTER"
_LOG_COMPACTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"


def encode_commit(meta: CommitMetadata, layout: TimelineLayout, replace: bool) -> bytes:
    """Return the content of a completed commit, delta commit or replace commit.

    Args:
        meta: the commit metadata.
        layout: of the timeline, which says whether it is JSON or Avro.
        replace: whether it is a replace commit, which lists the replaced file groups.
    """
    return _ENCODERS[layout.commit_encoding](meta, replace)


def _encode_json(meta: CommitMetadata, replace: bool) -> bytes:
    content: dict[str, Any] = {
        "partitionToWriteStats": _json_stats(meta.stats),
        "compacted": meta.compacted,
        "extraMetadata": dict(meta.extra),
        "operationType": str(meta.operation),
    }
    if replace:
        content["partitionToReplaceFileIds"] = _replaced(meta)
    return json.dumps(content, indent=2, separators=(",", " : "), ensure_ascii=False).encode()


def _encode_avro(meta: CommitMetadata, replace: bool) -> bytes:
    record: dict[str, Any] = {
        "partitionToWriteStats": _avro_stats(meta.stats),
        "compacted": meta.compacted,
        "extraMetadata": dict(meta.extra),
        "version": None,
        "operationType": str(meta.operation),
    }
    if replace:
        record["partitionToReplaceFileIds"] = _replaced(meta)
    schema = schemas.compact("replace_commit" if replace else "commit")
    return encode_container(schema, record, is_sized=len(meta.stats) > _STATS_READ)


_ENCODERS: Final[Mapping[CommitEncoding, Callable[[CommitMetadata, bool], bytes]]] = {
    CommitEncoding.JSON: _encode_json,
    CommitEncoding.AVRO: _encode_avro,
}


def _replaced(meta: CommitMetadata) -> dict[str, list[str]]:
    return {partition: list(ids) for partition, ids in meta.replaced.items()}


def decode_commit(data: bytes) -> CommitMetadata:
    """Return the metadata of a commit, delta commit or replace commit, completed or inflight.

    Args:
        data: the whole file; an empty file has empty metadata.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    if not data:
        return CommitMetadata()
    return _decoded(data) if len(data) > _CACHED_BYTES_MAX else _decoded_cached(data)


def decode_head(data: bytes, *, whole: bool) -> tuple[CommitMetadata, bool]:
    """Return the metadata of a commit and whether it is whole: of large metadata only `extra`, if that does.

    Args:
        data: the whole file.
        whole: whether all of it is needed.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    if whole or len(data) <= _CACHED_BYTES_MAX or data[:4] != MAGIC:
        return decode_commit(data), True
    return commit_from_record(one_record(data, "extraMetadata")), False


def _decoded(data: bytes) -> CommitMetadata:
    return commit_from_record(one_record(data) if data[:4] == MAGIC else json_commit(data))


_decoded_cached = lru_cache(maxsize=_DECODED_CACHED_MAX)(_decoded)
"""Cached decoding of small commits, since most operations on a table read the newest ones again."""


def commit_from_record(content: dict[str, Any]) -> CommitMetadata:
    """Return the commit metadata in a decoded record.

    Raises:
        CorruptTableError: the content does not match the format.
    """
    return read_as(_commit_of, content, "commit metadata")


def json_commit(data: bytes) -> dict[str, Any]:
    """Return the decoded JSON of commit metadata in layout 1.

    Raises:
        CorruptTableError: it is not a JSON object.
    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged("commit metadata", error) from error
    if not isinstance(content, dict):
        raise damaged("commit metadata", "it is not a JSON object")
    return content


def _commit_of(content: dict[str, Any]) -> CommitMetadata:
    replaced = content.get("partitionToReplaceFileIds") or {}
    return CommitMetadata(
        stats=_stats_of(content.get("partitionToWriteStats") or {}),
        operation=content.get("operationType") or WriteOperation.UNKNOWN,
        extra=_texts(content.get("extraMetadata") or {}),
        replaced={partition: tuple(ids) for partition, ids in replaced.items()},
        compacted=bool(content.get("compacted")),
    )


def _texts(extra: dict[str, Any]) -> dict[str, str]:
    """Return the entries that are not null; other writers store nulls."""
    return {key: str(value) for key, value in extra.items() if value is not None}


def encode_compaction_plan(plan: CompactionPlan, *, is_log_compaction: bool = False) -> bytes:
    """Return the content of `<instant>.compaction.requested` or `<instant>.logcompaction.requested`.

    Args:
        plan: the file slices to compact.
        is_log_compaction: True for a log compaction.
    """
    strategy = {"compactorClassName": _LOG_COMPACTOR, "strategyParams": {}, "version": 1}
    record = {
        "operations": [_operation_record(operation) for operation in plan.operations],
        "extraMetadata": {},
        "version": COMPACTION_PLAN_VERSION,
        "strategy": strategy if is_log_compaction else None,
        "preserveHoodieMetadata": is_log_compaction,
        "missingSchedulePartitions": [],
    }
    return encode_container(schemas.compact("compaction_plan"), record)


def _operation_record(operation: CompactionOperation) -> dict[str, Any]:
    return {
        "baseInstantTime": operation.base_instant,
        "deltaFilePaths": list(operation.log_files),
        "dataFilePath": operation.base_file,
        "fileId": operation.file_id,
        "partitionPath": operation.partition,
        "metrics": {
            **{name: float(value) for name, value in operation.metrics.items()},
            **({LOGS_ONLY_METRIC: 1.0} if operation.logs_only else {}),
        },
        "bootstrapFilePath": operation.source,
    }


def decode_compaction_plan(data: bytes) -> CompactionPlan:
    """Return a compaction or log compaction plan.

    Args:
        data: the whole requested file.

    Raises:
        CorruptTableError: the bytes are damaged.
        UnsupportedError: the plan has version 1, whose paths are absolute.
    """
    return read_as(_compaction_of, one_record(data), "a compaction plan")


def _compaction_of(record: dict[str, Any]) -> CompactionPlan:
    if record.get("version") != COMPACTION_PLAN_VERSION:
        raise UnsupportedError(
            f"A compaction plan of version {record.get('version')} is not supported. "
            "Run the compaction with the engine that scheduled it."
        )
    return CompactionPlan(tuple(_operation_of(each) for each in record.get("operations") or ()))


def _operation_of(record: dict[str, Any]) -> CompactionOperation:
    metrics = dict(record.get("metrics") or {})
    logs_only = bool(metrics.pop(LOGS_ONLY_METRIC, 0))
    return CompactionOperation(
        partition=inside(record["partitionPath"] or ""),
        file_id=record["fileId"],
        base_instant=record["baseInstantTime"],
        base_file=inside(record.get("dataFilePath") or "") or None,
        log_files=all_inside(record.get("deltaFilePaths") or ()),
        metrics=metrics,
        logs_only=logs_only,
        source=record.get("bootstrapFilePath"),
    )


def encode_requested_replace(operation: str | None = None) -> bytes:
    """Return the content of `<instant>.replacecommit.requested` of an overwrite.

    Args:
        operation: name of the operation; None leaves every field empty, as in insert_overwrite.
    """
    record: dict[str, Any] = {
        "operationType": operation,
        "clusteringPlan": None,
        "extraMetadata": None if operation is None else {},
        "version": None if operation is None else 1,
    }
    return encode_container(schemas.compact("requested_replace"), record)


def compacted_groups(data: bytes) -> list[tuple[str, str]]:
    """Return the file groups, as partition and file id, of a requested compaction or log compaction.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    return [(operation.partition, operation.file_id) for operation in decode_compaction_plan(data).operations]


def clustering_groups(data: bytes) -> list[tuple[str, str]]:
    """Return the file groups, as partition and file id, that a requested clustering replaces.

    Args:
        data: content of `<instant>.clustering.requested` or `<instant>.replacecommit.requested`;
            empty for a replace commit without a clustering plan.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    return read_as(_clustered, one_record(data), "a clustering plan") if data else []


def is_clustering(data: bytes) -> bool:
    """Return whether a requested replace commit of layout 1 is a clustering, rather than an overwrite.

    Raises:
        CorruptTableError: the bytes are damaged.
    """
    if not data:
        return False
    record = one_record(data)
    return record.get("clusteringPlan") is not None or record.get("operationType") == _CLUSTER_OPERATION


def _clustered(record: dict[str, Any]) -> list[tuple[str, str]]:
    groups = (record.get("clusteringPlan") or {}).get("inputGroups") or ()
    return [
        (info["partitionPath"] or "", info["fileId"]) for group in groups for info in group["slices"] or ()
    ]


def _json_stats(stats: Iterable[WriteStat]) -> dict[str, list[dict[str, Any]]]:
    """Return write stats by partition for JSON, in the field order of layout 1."""
    return _by_partition((stat, _json_stat(stat)) for stat in stats)


def _avro_stats(stats: Iterable[WriteStat]) -> dict[str, list[dict[str, Any]]]:
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


def _stats_of(partitions: Mapping[str, Iterable[Mapping[str, Any]]]) -> tuple[WriteStat, ...]:
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


_TEXTS: Final = "extraMetadata"
_STATS: Final = "partitionToWriteStats"
_LOG_FIELDS: Final = ("logVersion", "logOffset", "baseFile", "logFiles")
_NULLS: Final = ("path", "cdcStats", "prevBaseFile")
_FIRST_VERSION: Final = 1


def commit_in_layout(data: bytes, layout: TimelineLayout, *, replace: bool) -> bytes:
    """Convert the content of a commit, delta commit or replace commit to a layout.

    Args:
        data: the file; an empty file remains empty.
        layout: that it is to have.
        replace: whether it is a replace commit.

    Raises:
        CorruptTableError: the content is damaged.
    """
    if not data:
        return data
    encoding = CommitEncoding.AVRO if data[:4] == MAGIC else CommitEncoding.JSON
    if encoding is layout.commit_encoding:
        return data
    return _CONVERTERS[layout.commit_encoding](data, replace)


def avro_commit(content: Mapping[str, Any], *, replace: bool) -> bytes:
    """Return decoded commit metadata as an Avro file.

    Raises:
        CorruptTableError: the content does not match the format.
    """
    record = dict(content)
    texts = record.get(_TEXTS) or {}
    record[_TEXTS] = {key: str(text) for key, text in texts.items() if text is not None}
    record.setdefault("version", _FIRST_VERSION)
    try:
        return encode_container(schemas.compact("replace_commit" if replace else "commit"), record)
    except DAMAGE as error:
        raise damaged("commit metadata", error) from error


def _avro_of_json(data: bytes, replace: bool) -> bytes:
    return avro_commit(json_commit(data), replace=replace)


def avro_file(schema_name: str, record: Mapping[str, Any]) -> bytes:
    """Return a decoded record of a timeline file as an Avro file.

    Raises:
        CorruptTableError: the content does not match the format.
    """
    try:
        return encode_container(schemas.compact(schema_name), dict(record))
    except DAMAGE as error:
        raise damaged("an archived instant", error) from error


def _json(record: Mapping[str, Any]) -> bytes:
    content = {key: value for key, value in record.items() if key != "version" and value is not None}
    try:
        content[_STATS] = {
            partition: [_stat(stat) for stat in stats]
            for partition, stats in (record.get(_STATS) or {}).items()
        }
    except (AttributeError, TypeError) as error:
        raise damaged("commit metadata", error) from error
    return json.dumps(content, indent=2, separators=(",", " : "), ensure_ascii=False).encode()


def _json_of_avro(data: bytes, _replace: bool) -> bytes:
    return _json(one_record(data))


_CONVERTERS: Final[Mapping[CommitEncoding, Callable[[bytes, bool], bytes]]] = {
    CommitEncoding.JSON: _json_of_avro,
    CommitEncoding.AVRO: _avro_of_json,
}


def _stat(stat: Mapping[str, Any]) -> dict[str, Any]:
    """Return a write stat for JSON, which omits the fields of log files for base files."""
    is_log = stat.get("logVersion") is not None
    return {
        key: value
        for key, value in stat.items()
        if (value is not None or key in _NULLS or (is_log and key in _LOG_FIELDS))
        and (is_log or key not in _LOG_FIELDS)
    }
