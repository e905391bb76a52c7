"""Procedures that show timeline, file slices and metadata table, and check or repair them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import numpy as np

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.model.files import BaseFile, FileSlice, LogFile, parse_data_file
from drawstring.model.instant import Action, State
from drawstring.model.instant_status import InstantStatus
from drawstring.query.incremental.path_glob import matches_folder
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
        verb = "Rolled back:" if instant.is_completed else "Rolls back"
        info = f"{verb} {', '.join(status.undone)}"
    elif instant.requested in undone:
        info = f"Rolled back by: {undone[instant.requested]}"
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
    bound = _latest_shown(call)
    if bound is None:
        return []
    uri = partial(_hadoop_uri, call)
    slices = (
        each
        for partition in _partitions_shown(call, call.given("path_regex"))
        for group in call.table._facts().view.groups(partition, bound or None)
        for each in reversed(group.slices)
    )
    return call.limited(
        (*_slice_row(each, uri), f"[{', '.join(_log_names(each.logs, uri))}]") for each in slices
    )


def _latest_shown(call: Call) -> str | None:
    """Return the requested time of the newest write whose files a view shows.

    Returns:
        The time; empty for no bound, None if the bound is before all writes.

    Raises:
        UnsupportedError: files of pending writes are asked for.
    """
    timeline, bound = call.table.timeline, call.text("max_instant")
    if call.flag("include_in_flight") and timeline.pending_writes():
        raise UnsupportedError(
            "include_in_flight => true is not supported while a write is pending: its files do not belong to"
            " the table yet. CALL show_timeline shows what is pending."
        )
    if bound is None:
        return ""
    times = [each.requested for each in timeline.writes()]
    is_inclusive = call.flag("include_max")
    return max((time for time in times if time < bound or (is_inclusive and time == bound)), default=None)


def _partitions_shown(call: Call, pattern: str | None) -> list[str]:
    """Return the partitions that a pattern of folders matches; `ALL_PARTITIONS` and None stand for all."""
    partitions = call.table._facts().view.partitions()
    if pattern in (None, _ALL):
        return partitions
    return [each for each in partitions if matches_folder(pattern, each)]


def _hadoop_uri(call: Call, path: str) -> str:
    """Return the address of a file as Hadoop writes it."""
    address = call.table._facts().storage.full_uri(path)
    return address.replace("file:///", "file:/", 1)


def _log_names(logs: Iterable[LogFile], uri: Callable[[str], str]) -> list[str]:
    """Return log files as the texts that Hudi shows."""
    return [
        f"HoodieLogFile(pathStr={uri(log.status.path)}, fileSize={log.status.size_bytes})" for log in logs
    ]


def show_fsview_latest(call: Call) -> Rows:
    """Return the newest file slice of each file group.

    Sizes and names of log files are divided as in Hudi: every size counts as scheduled once its write is
    complete, and the names of those that belong to a later write than the slice are the unscheduled ones.

    Raises:
        InvalidError: both path_regex and partition_path are given.
        UnsupportedError: slices are asked for as a pending compaction divides them.
    """
    if not call.flag("merge") and call.table.timeline.pending_of(Action.COMPACTION):
        raise UnsupportedError(
            "merge => false is not supported while a compaction is pending: of its file groups it shows the"
            " log files that came since, without what they change. Leave it out, or CALL run_compaction"
            " first."
        )
    pattern, partition = call.given("path_regex"), call.given("partition_path")
    if pattern is not None and partition is not None:
        raise InvalidError("path_regex and partition_path both name the partitions. Give one of them.")
    bound = _latest_shown(call)
    if bound is None:
        return []
    wanted = partition if pattern is None else pattern
    shown, uri = set(_partitions_shown(call, wanted)), partial(_hadoop_uri, call)
    view = call.table._facts().view
    slices = view.latest(sorted(shown), bound) if bound else call.table.file_slices()
    return call.limited(_latest_row(each, uri) for each in slices if each.partition in shown)


def _latest_row(each: FileSlice, uri: Callable[[str], str]) -> Sequence[Any]:
    row = _slice_row(each, uri)
    base_bytes, log_bytes = row[4], row[6]
    ratios = (log_bytes / base_bytes, 0.0) if base_bytes else (-1.0, -1.0)
    own = [log for log in each.logs if log.instant == each.base_instant]
    later = [log for log in each.logs if log.instant != each.base_instant]
    names = (f"[{','.join(_log_names(logs, uri))}]" for logs in (own, later))
    return (*row, log_bytes, 0, *ratios, *names)


_ALL: Final = "ALL_PARTITIONS"


def _slice_row(each: FileSlice, uri: Callable[[str], str]) -> tuple[Any, ...]:
    """Return a file slice as a row of Hudi's views of files."""
    base = None if each.base is None else each.base.status
    log_bytes = sum(log.status.size_bytes for log in each.logs)
    path, size = (uri(base.path), base.size_bytes) if base else ("", 0)
    return each.partition, each.file_id, each.base_instant, path, size, len(each.logs), log_bytes


def stats_file_sizes(call: Call) -> Rows:
    """Return the sizes of the data files that each commit wrote, and of all.

    Raises:
        InvalidError: the pattern of partitions has more or fewer folders than the table's partitions.
    """
    by_commit: dict[str, list[int]] = {}
    wanted = call.text("partition_path") if call.table.config.partition_fields else None
    view = call.table._facts().view
    if wanted is not None:
        _check_depth(call, wanted)
    for partition in _partitions_shown(call, wanted):
        for each in (each for group in view.groups(partition) for each in group.slices):
            files: list[BaseFile | LogFile] = [*each.logs, *([each.base] if each.base else [])]
            for file in files:
                by_commit.setdefault(file.instant, []).append(file.status.size_bytes)
    rows = [(time, *_sizes(sizes)) for time, sizes in sorted(by_commit.items(), reverse=True)]
    every = [size for sizes in by_commit.values() for size in sizes]
    return call.limited([*rows, ("ALL", *_sizes(every))])


def _check_depth(call: Call, pattern: str) -> None:
    """Check that a pattern of partitions has as many folders as partitions of the table."""
    fields = call.table.config.partition_fields
    depths = {len(each.split("/")) for each in call.table._facts().view.partitions()} or {len(fields)}
    depth = len(pattern.strip("/").split("/"))
    if depth not in depths:
        raise InvalidError(
            f"partition_path {pattern!r} has a depth of {depth}, but the table's partitions have"
            f" {' or '.join(map(str, sorted(depths)))} ({', '.join(fields)}). Give a pattern for each folder,"
            f" for example '{'/'.join('*' * max(depths))}'."
        )


def _sizes(sizes: list[int]) -> Sequence[Any]:
    if not sizes:
        return 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0
    # Percentiles and deviation as Hudi's library of metrics has them: ranks of n + 1, and of a sample.
    low, middle, high = (float(np.quantile(sizes, share, method="weibull")) for share in (0.1, 0.5, 0.95))
    deviation = float(np.std(sizes, ddof=1)) if len(sizes) > 1 else 0.0
    return min(sizes), low, middle, float(np.mean(sizes)), high, max(sizes), len(sizes), deviation


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
