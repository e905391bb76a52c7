"""Procedures that show timeline, file slices and metadata table, and check or repair them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np

from drawstring.model.files import FileSlice, parse_data_file
from drawstring.model.instant import State
from drawstring.model.instant_status import InstantStatus
from drawstring.spark.sql.procedures.procedure import Call, Procedure, Rows
from drawstring.timeline.archive.reader import open_archive

_STATES: Final = {State.REQUESTED: "REQUESTED", State.INFLIGHT: "INFLIGHT", State.COMPLETED: "COMPLETED"}
_FSVIEW: Final = (
    "table STRING, path STRING, max_instant STRING, include_max BOOLEAN=false,"
    " include_in_flight BOOLEAN=false, exclude_compaction BOOLEAN=false, limit INT=10, path_regex STRING,"
    " filter STRING"
)
TIMELINE: Final = (
    "instant_time STRING, action STRING, state STRING, requested_time STRING, inflight_time STRING,"
    " completed_time STRING, timeline_type STRING, rollback_info STRING"
)
FILE_SLICES: Final = (
    "partition STRING, file_id STRING, base_instant STRING, data_file STRING, data_file_size BIGINT,"
    " num_delta_files BIGINT, total_delta_file_size BIGINT"
)


def show_timeline(call: Call) -> Rows:
    """Return the instants, newest first."""
    start, end = call.text("startTime"), call.text("endTime")
    rows = [
        row
        for row in timeline_rows(call, archived=call.flag("showArchived"))
        if (not start or row[0] >= start) and (not end or row[0] <= end)
    ]
    return rows if start and end else call.limited(rows)


def timeline_rows(call: Call, *, archived: bool) -> list[Sequence[Any]]:
    """Return the instants of a table, newest first."""
    instants = call.table.instants()
    undone = {time: each.instant.requested for each in instants for time in each.undone}
    rows = [_timeline_row(each, undone) for each in instants]
    if archived:
        facts = call.table._facts()
        times = {row[0] for row in rows}
        for each in open_archive(facts.storage, facts.config).completed(""):
            if each.requested not in times:
                rows.append(_timeline_row(InstantStatus(each), {}, "ARCHIVED"))
    return sorted(rows, key=lambda row: row[0], reverse=True)


def _timeline_row(status: InstantStatus, undone: dict[str, str], kind: str = "ACTIVE") -> Sequence[Any]:
    instant = status.instant
    info = None
    if status.undone:
        info = f"Rolled back {', '.join(status.undone)}"
    elif instant.requested in undone:
        info = f"Rolled back by {undone[instant.requested]}"
    requested = _shown(instant.requested)
    inflight = "-" if instant.state is State.REQUESTED else requested
    completed = _shown(instant.completed) if instant.completed else "-"
    begin = (instant.requested, str(instant.action), _STATES[instant.state])
    return (*begin, requested, inflight, completed, kind, info)


def _shown(time: str) -> str:
    """Return a time of the timeline as Hudi shows it."""
    return datetime.strptime(time[:14], "%Y%m%d%H%M%S").strftime("%m-%d %H:%M:%S")


def show_fsview_all(call: Call) -> Rows:
    """Return the file slices of all file groups, newest first in each."""
    return call.limited((*slice_row(each), _names(each)) for each in file_slices(call, newest=False))


def show_fsview_latest(call: Call) -> Rows:
    """Return the newest file slice of each file group."""
    pending = call.table._facts().view.pending_compactions()

    def row(each: FileSlice) -> Sequence[Any]:
        base_bytes = each.base.status.size_bytes if each.base else 0
        log_bytes = sum(log.status.size_bytes for log in each.logs)
        is_planned = (each.partition, each.file_id) in pending
        sizes = (log_bytes, 0) if is_planned else (0, log_bytes)
        ratios = tuple(size / base_bytes if base_bytes else -1.0 for size in sizes)
        names = (_names(each), "[]") if is_planned else ("[]", _names(each))
        return (*slice_row(each), *sizes, *ratios, *names)

    wanted = call.text("partition_path")
    slices = (each for each in file_slices(call, newest=True) if wanted in (None, _ALL, each.partition))
    return call.limited(map(row, slices))


_ALL: Final = "ALL_PARTITIONS"


def file_slices(call: Call, *, newest: bool) -> Iterator[FileSlice]:
    """Yield file slices, by partition; newest ones only, or all."""
    if newest:
        yield from call.table.file_slices()
        return
    view = call.table._facts().view
    for partition in view.partitions():
        for group in view.groups(partition):
            yield from group.slices


def slice_row(each: FileSlice) -> Sequence[Any]:
    """Return a file slice as a row of Hudi's views of files."""
    base = None if each.base is None else each.base.status
    log_bytes = sum(log.status.size_bytes for log in each.logs)
    path, size = (base.path, base.size_bytes) if base else (None, 0)
    return each.partition, each.file_id, each.base_instant, path, size, len(each.logs), log_bytes


def _names(each: FileSlice) -> str:
    return f"[{', '.join(log.status.path for log in each.logs)}]"


def stats_file_sizes(call: Call) -> Rows:
    """Return the sizes of the base files that each commit wrote, and of all."""
    by_commit: dict[str, list[int]] = {}
    for each in file_slices(call, newest=False):
        if each.base is not None:
            by_commit.setdefault(each.base.instant, []).append(each.base.status.size_bytes)
    rows = [(time, *_sizes(sizes)) for time, sizes in sorted(by_commit.items(), reverse=True)]
    every = [size for sizes in by_commit.values() for size in sizes]
    return [*call.limited(rows), *([("ALL", *_sizes(every))] if every else [])]


def _sizes(sizes: list[int]) -> Sequence[Any]:
    low, middle, high = (float(np.percentile(sizes, share)) for share in (10, 50, 95))
    average, deviation = float(np.mean(sizes)), float(np.std(sizes))
    return min(sizes), low, middle, average, high, max(sizes), len(sizes), deviation


def show_metadata_table_partitions(call: Call) -> Rows:
    """Return the partitions of the table that the metadata table knows."""
    return sorted({(row["partition"],) for row in _files(call)})


def show_metadata_table_files(call: Call) -> Rows:
    """Return the files of a partition that the metadata table knows."""
    wanted = call.text("partition") or ""
    return call.limited((row["file"],) for row in _files(call) if row["partition"] == wanted)


def _files(call: Call) -> list[dict[str, Any]]:
    """Return the records of files of the metadata table."""
    rows: list[dict[str, Any]] = call.table.metadata("files").to_pylist()
    return rows


def validate_metadata_table_files(call: Call) -> Rows:
    """Compare the files that the metadata table knows with those that are stored."""
    table = call.table
    known = {(row["partition"], row["file"]): row["size_bytes"] for row in _files(call)}
    listing = table._facts().view.listing
    stored = {
        (path, status.path.rpartition("/")[2]): status.size_bytes
        for path in listing.partitions()
        for status in listing.files(path)
        if parse_data_file(status) is not None
    }
    rows = []
    for key in sorted({*known, *stored}):
        if call.flag("verbose") or known.get(key) != stored.get(key):
            sizes = (stored.get(key, 0), known.get(key, 0))
            rows.append((*key, key in stored, key in known, *sizes))
    return rows


def repair_add_partition_meta(call: Call) -> Rows:
    """Add the metadata files that folders of partitions lack."""
    findings = call.table.repair(
        only="partition-metadata", apply=not call.flag("dry_run"), options=call.options
    )
    action = "None" if call.flag("dry_run") else "Repaired"
    return [(each.path, "No", action) for each in findings]


def export_instants(call: Call) -> Rows:
    """Write the content of completed instants to a local folder."""
    from pathlib import Path

    facts, folder = call.table._facts(), Path(call.needed("local_folder"))
    wanted = call.names("actions")
    limit = call.number("limit")
    instants = [each for each in facts.timeline.instants if each.is_completed and str(each.action) in wanted]
    instants.sort(key=lambda each: each.requested, reverse=call.flag("desc"))
    chosen = instants if limit is None or limit < 0 else instants[:limit]
    for each in chosen:
        (folder / f"{each.requested}.{each.action}").write_bytes(facts.store.read(each))
    return [(f"Exported {len(chosen)} Instants to {folder}",)]


PROCEDURES: Final = (
    Procedure(
        "show_timeline",
        "table STRING, path STRING, limit INT=20, showArchived BOOLEAN=false, filter STRING,"
        " startTime STRING, endTime STRING",
        TIMELINE,
        show_timeline,
    ),
    Procedure("show_fsview_all", _FSVIEW, f"{FILE_SLICES}, delta_files STRING", show_fsview_all),
    Procedure(
        "show_fsview_latest",
        f"{_FSVIEW}, partition_path STRING, merge BOOLEAN=true",
        f"{FILE_SLICES}, delta_size_compaction_scheduled BIGINT, delta_size_compaction_unscheduled BIGINT,"
        " delta_to_base_radio_compaction_scheduled DOUBLE,"
        " delta_to_base_radio_compaction_unscheduled DOUBLE, delta_files_compaction_scheduled STRING,"
        " delta_files_compaction_unscheduled STRING",
        show_fsview_latest,
    ),
    Procedure(
        "stats_file_sizes",
        "table STRING!, partition_path STRING, limit INT=10",
        "commit_time STRING, min BIGINT, 10th DOUBLE, 50th DOUBLE, avg DOUBLE, 95th DOUBLE,"
        " max BIGINT, num_files INT, std_dev DOUBLE",
        stats_file_sizes,
    ),
    Procedure(
        "show_metadata_table_partitions",
        "table STRING, path STRING, filter STRING",
        "partition STRING",
        show_metadata_table_partitions,
    ),
    Procedure(
        "show_metadata_table_files",
        "table STRING, path STRING, partition STRING, limit INT=100, filter STRING",
        "file_path STRING",
        show_metadata_table_files,
    ),
    Procedure(
        "validate_metadata_table_files",
        "table STRING!, verbose BOOLEAN=false",
        "partition STRING, file_name STRING, is_present_in_fs BOOLEAN, is_present_in_metadata BOOLEAN,"
        " fs_size BIGINT, metadata_size BIGINT",
        validate_metadata_table_files,
    ),
    Procedure(
        "repair_add_partition_meta",
        "table STRING!, dry_run BOOLEAN=true",
        "partition_path STRING, metadata_is_present STRING, action STRING",
        repair_add_partition_meta,
    ),
    Procedure(
        "export_instants",
        "table STRING!, local_folder STRING!, limit INT=-1,"
        " actions STRING='clean,commit,deltacommit,rollback,savepoint,restore', desc BOOLEAN=false",
        "export_detail STRING",
        export_instants,
    ),
)
