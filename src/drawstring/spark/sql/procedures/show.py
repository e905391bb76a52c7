"""Define the procedures that show a table: timeline, commits, files, metadata table and lease audit.

STATE_PROCEDURES     show timeline, file slices and metadata table, and check or repair them
COMMIT_PROCEDURES    show commits, active and archived, and their files
HISTORY_PROCEDURES   show what cleans and rollbacks did, the commits by which one table is behind
                     another, and the state of a file
AUDIT_PROCEDURES     record and check a table's leases (`hoodie.write.lock.provider` on object stores)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import numpy as np

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.formats.metadata.plans import decode_clean
from drawstring.formats.metadata.rollback import decode_restore, decode_rollback
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.files import BaseFile, FileSlice, LogFile, join_path, parse_data_file
from drawstring.model.instant import Action, Instant, InstantStatus, State
from drawstring.model.plans import RollbackMetadata
from drawstring.query.incremental import matches_folder
from drawstring.query.table_state import TableFacts
from drawstring.services.lock_report import clean_lock_audit, has_lock_audit, lock_audit
from drawstring.spark.sql.procedures.procedure import Call, Procedure, Rows
from drawstring.spark.sql.tables import open_named_table
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.reader import open_archive
from drawstring.txn.locks.storage_lock import AUDIT_FOLDER, AUDIT_SWITCH, is_audited, switch_audit

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
    instants = call.table.inspect.instants()
    undone = {time: each.instant.requested for each in instants for time in each.rolled_back}
    rows = [_timeline_row(each, undone) for each in instants]
    if archived:
        facts = call.table._calls.facts()
        times = {row[0] for row in rows}
        for each in open_archive(facts.storage, facts.config).completed(""):
            if each.requested not in times:
                rows.append(_timeline_row(InstantStatus(each), {}, "ARCHIVED"))
    return sorted(rows, key=lambda row: row[0], reverse=True)


def _timeline_row(status: InstantStatus, undone: dict[str, str], kind: str = "ACTIVE") -> Sequence[Any]:
    instant = status.instant
    info = None
    if status.rolled_back:
        verb = "Rolled back:" if instant.is_completed else "Rolls back"
        info = f"{verb} {', '.join(status.rolled_back)}"
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
        for group in call.table._calls.facts().view.groups(partition, bound or None)
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
    partitions = call.table._calls.facts().view.partitions()
    if pattern in (None, _ALL):
        return partitions
    return [each for each in partitions if matches_folder(pattern, each)]


def _hadoop_uri(call: Call, path: str) -> str:
    """Return the address of a file as Hadoop writes it."""
    address = call.table._calls.facts().storage.full_uri(path)
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
    view = call.table._calls.facts().view
    slices = view.latest(sorted(shown), bound) if bound else call.table.inspect.files()
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
    view = call.table._calls.facts().view
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
    depths = {len(each.split("/")) for each in call.table._calls.facts().view.partitions()} or {len(fields)}
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
    rows: list[dict[str, Any]] = call.table.inspect.metadata("files").to_pylist()
    return rows


def validate_metadata_table_files(call: Call) -> Rows:
    """Compare the files that the metadata table knows with those that are stored."""
    table = call.table
    known = {(row["partition"], row["file"]): row["size_bytes"] for row in _files(call)}
    listing = table._calls.facts().view.listing
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
    findings = call.table.services.repair(
        only="partition-metadata", apply=not call.flag("dry_run"), options=call.options
    )
    action = "None" if call.flag("dry_run") else "Repaired"
    return [(each.path, "No", action) for each in findings]


def export_instants(call: Call) -> Rows:
    """Write the content of completed instants to a local folder."""
    from pathlib import Path

    facts, folder = call.table._calls.facts(), Path(call.needed("local_folder"))
    wanted = call.names("actions")
    limit = call.number("limit")
    instants = [each for each in facts.timeline.instants if each.is_completed and str(each.action) in wanted]
    instants.sort(key=lambda each: each.requested, reverse=call.flag("desc"))
    chosen = instants if limit is None or limit < 0 else instants[:limit]
    for each in chosen:
        (folder / f"{each.requested}.{each.action}").write_bytes(facts.store.read(each))
    return [(f"Exported {len(chosen)} Instants to {folder}",)]


STATE_PROCEDURES: Final = (
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


_FIRST: Final = ""
_ACTION: Final = " action STRING,"
_COMMIT: Final = (
    "commit_time STRING, state_transition_time STRING, action STRING, total_bytes_written BIGINT,"
    " total_files_added BIGINT, total_files_updated BIGINT, total_partitions_written BIGINT,"
    " total_records_written BIGINT, total_update_records_written BIGINT, total_errors BIGINT"
)
_FILE: Final = (
    "commit_time STRING, state_transition_time STRING, action STRING, partition STRING, file_id STRING,"
    " previous_commit STRING, num_writes BIGINT, num_inserts BIGINT, num_deletes BIGINT,"
    " num_update_writes BIGINT, total_errors BIGINT, total_log_blocks BIGINT,"
    " total_corrupt_log_blocks BIGINT,"
    " total_rollback_blocks BIGINT, total_log_records BIGINT, total_updated_records_compacted BIGINT,"
    " total_bytes_written BIGINT"
)
_ARCHIVED: Final = "table STRING!, limit INT=10, start_ts STRING, end_ts STRING"
_ONE: Final = "table STRING!, limit INT=10, instant_time STRING!"


def _active(call: Call) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield the completed writes of the active timeline, newest first."""
    facts = call.table._calls.facts()
    for instant in sorted(facts.timeline.writes(), key=lambda each: each.requested, reverse=True):
        yield instant, facts.store.commit_metadata(instant)


def _archived(call: Call) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield the archived writes of a range, newest first."""
    facts = call.table._calls.facts()
    archive = open_archive(facts.storage, facts.config)
    found = archive.completed(call.text("start_ts") or _FIRST, call.text("end_ts"))
    for instant in sorted(found, key=lambda each: each.requested, reverse=True):
        if instant.is_write:
            yield instant, archive.commit_metadata(instant)


def _summary(instant: Instant, metadata: CommitMetadata) -> Sequence[Any]:
    return (instant.requested, instant.completed, str(instant.action), *totals(metadata.stats))


def totals(stats: Sequence[WriteStat]) -> tuple[int, ...]:
    """Return bytes, new and updated files, partitions, records, updates and errors of a write."""
    new = sum(each.prev_commit == "null" for each in stats)
    return (
        sum(each.size_bytes for each in stats),
        new,
        len(stats) - new,
        len({each.partition for each in stats}),
        sum(each.num_writes for each in stats),
        sum(each.num_updates for each in stats),
        0,
    )


def _commit_files(instant: Instant, metadata: CommitMetadata) -> Iterator[Sequence[Any]]:
    begin = (instant.requested, instant.completed, str(instant.action))
    for each in metadata.stats:
        counts = (each.num_writes, each.num_inserts, each.num_deletes, each.num_updates)
        logs = (0, each.log_blocks, 0, 0, each.log_records, 0)
        yield (*begin, each.partition, each.file_id, each.prev_commit, *counts, *logs, each.size_bytes)


def show_commits(call: Call) -> Rows:
    """Return the writes of the active timeline, newest first."""
    return call.limited(_summary(*each) for each in _active(call))


def show_commits_metadata(call: Call) -> Rows:
    """Return the files of the writes of the active timeline."""
    return call.limited(row for each in _active(call) for row in _commit_files(*each))


def show_archived_commits(call: Call) -> Rows:
    """Return the archived writes, newest first."""
    rows = (_summary(*each) for each in _archived(call))
    return call.limited((*row[:2], *row[3:]) for row in rows)


def show_archived_commits_metadata(call: Call) -> Rows:
    """Return the files of the archived writes."""
    return call.limited(row for each in _archived(call) for row in _commit_files(*each))


def _one(call: Call) -> tuple[Instant, CommitMetadata]:
    """Return the write at `instant_time`.

    Raises:
        InvalidError: the active timeline has none.
    """
    facts, time = call.table._calls.facts(), call.needed("instant_time")
    instant = facts.timeline.write_at(time)
    if instant is None:
        raise InvalidError(f"There is no commit {time}. CALL show_commits shows those that there are.")
    return instant, facts.store.commit_metadata(instant)


def show_commit_files(call: Call) -> Rows:
    """Return the files of one write."""
    instant, metadata = _one(call)
    return call.limited(
        (
            *(str(instant.action), each.partition, each.file_id, each.prev_commit),
            *(each.num_updates, each.num_writes, each.size_bytes, 0, each.size_bytes),
        )
        for each in metadata.stats
    )


def show_commit_partitions(call: Call) -> Rows:
    """Return the partitions of one write."""
    instant, metadata = _one(call)
    rows = []
    for path in dict.fromkeys(each.partition for each in metadata.stats):
        stats = [each for each in metadata.stats if each.partition == path]
        size_bytes, added, updated, _, _, updates, errors = totals(stats)
        inserts = sum(each.num_inserts for each in stats)
        rows.append((str(instant.action), path, added, updated, inserts, updates, size_bytes, errors))
    return call.limited(rows)


def show_commit_write_stats(call: Call) -> Rows:
    """Return bytes and records of one write."""
    instant, metadata = _one(call)
    size_bytes, _, _, _, records, _, _ = totals(metadata.stats)
    average = math.ceil(size_bytes / records) if records else 0
    return [(str(instant.action), size_bytes, records, average)]


def show_commit_extra_metadata(call: Call) -> Rows:
    """Return the extra metadata of a write, the newest one by default."""
    found = _one(call) if call.text("instant_time") else next(_active(call), None)
    if found is None:
        return []
    instant, metadata = found
    key = call.text("metadata_key")
    pairs = [(name, text) for name, text in metadata.extra.items() if key in (None, name)]
    return call.limited((instant.requested, str(instant.action), *pair) for pair in pairs)


def stats_wa(call: Call) -> Rows:
    """Return the write amplification of each write of base files, and of all together.

    As in Hudi, records that are new do not count as updated, and log files do not count at all.
    """
    counts = [
        (
            instant.requested,
            sum(each.num_updates for each in metadata.stats),
            sum(each.num_writes for each in metadata.stats),
        )
        for instant, metadata in _active(call)
        if instant.action is not Action.DELTA_COMMIT
    ]
    counts.reverse()
    counts.append(("Total", sum(each[1] for each in counts), sum(each[2] for each in counts)))
    return call.limited(
        (time, updated, written, f"{written / updated:.2f}" if updated else "0")
        for time, updated, written in counts
    )


COMMIT_PROCEDURES: Final = (
    Procedure("show_commits", "table STRING!, limit INT=10", _COMMIT, show_commits),
    Procedure("show_commits_metadata", "table STRING!, limit INT=10", _FILE, show_commits_metadata),
    Procedure("show_archived_commits", _ARCHIVED, _COMMIT.replace(_ACTION, ""), show_archived_commits),
    Procedure("show_archived_commits_metadata", _ARCHIVED, _FILE, show_archived_commits_metadata),
    Procedure(
        "show_commit_files",
        _ONE,
        "action STRING, partition_path STRING, file_id STRING, previous_commit STRING,"
        " total_records_updated BIGINT, total_records_written BIGINT, total_bytes_written BIGINT,"
        " total_errors BIGINT, file_size BIGINT",
        show_commit_files,
    ),
    Procedure(
        "show_commit_partitions",
        _ONE,
        "action STRING, partition_path STRING, total_files_added BIGINT, total_files_updated BIGINT,"
        " total_records_inserted BIGINT, total_records_updated BIGINT, total_bytes_written BIGINT,"
        " total_errors BIGINT",
        show_commit_partitions,
    ),
    Procedure(
        "show_commit_write_stats",
        _ONE,
        "action STRING, total_bytes_written BIGINT, total_records_written BIGINT, avg_record_size BIGINT",
        show_commit_write_stats,
    ),
    Procedure(
        "show_commit_extra_metadata",
        "table STRING!, limit INT=100, instant_time STRING, metadata_key STRING",
        "instant_time STRING, action STRING, metadata_key STRING, metadata_value STRING",
        show_commit_extra_metadata,
    ),
    Procedure(
        "stats_wa",
        "table STRING!, limit INT=10",
        "commit_time STRING, total_upserted BIGINT, total_written BIGINT, write_amplification_factor STRING",
        stats_wa,
    ),
)


_EXISTS, _DELETED, _UNKNOWN, _ACTIVE = "exist", "deleted", "unknown", "active"


def _newest_first(facts: TableFacts, action: Action) -> list[Instant]:
    return sorted(facts.timeline.completed_of(action), key=lambda each: each.requested, reverse=True)


def refuse_archived_cleans(call: Call) -> None:
    """Refuse to show archived cleans, if there are any.

    Raises:
        UnsupportedError: there are, and they are asked for.
    """
    if not call.flag("showArchived"):
        return
    facts = call.table._calls.facts()
    archived = open_archive(facts.storage, facts.config).completed("")
    if any(each.action is Action.CLEAN for each in archived):
        raise UnsupportedError(
            "showArchived => true is not supported for a table with archived cleans. CALL"
            " show_timeline(showArchived => true, filter => \"action = 'clean'\") lists them."
        )


def show_cleans_metadata(call: Call) -> Rows:
    """Return what the cleans of the active timeline deleted, by partition."""
    refuse_archived_cleans(call)
    facts = call.table._calls.facts()

    def rows() -> Iterator[Sequence[Any]]:
        for instant in _newest_first(facts, Action.CLEAN):
            clean = decode_clean(facts.store.read(instant))
            files = sum(len(each.deleted) for each in clean.partitions.values())
            begin = (instant.requested, instant.completed, str(instant.action), clean.started)
            for path, each in sorted(clean.partitions.items()):
                deleted, failed = len(each.deleted), len(each.failed)
                counts = (deleted + failed, deleted, failed, each.is_gone, clean.millis, files)
                yield (*begin, path, clean.policy, *counts)

    return call.limited(rows())


def rollbacks_of(facts: TableFacts) -> Iterator[tuple[str, RollbackMetadata]]:
    """Yield what the rollbacks and restores of the active timeline undid, with their requested times."""
    root = facts.storage.spec.uri
    for instant in facts.timeline.completed_of(Action.ROLLBACK, Action.RESTORE):
        content = facts.store.read(instant)
        if instant.action is Action.ROLLBACK:
            yield instant.requested, decode_rollback(content, root)
            continue
        for undone in decode_restore(content, root).rollbacks.values():
            yield from ((instant.requested, each) for each in undone)


def show_rollback_detail(call: Call) -> Rows:
    """Return the files that a rollback or restore deleted, or could not delete.

    Raises:
        InvalidError: the active timeline has no such rollback or restore.
    """
    facts, time = call.table._calls.facts(), call.needed("instant_time")
    undone = [done for requested, done in rollbacks_of(facts) if requested == time]
    if not undone:
        raise InvalidError(
            f"There is no rollback {time}. CALL show_rollbacks shows those that there are (instant)."
        )
    root = facts.storage.spec.uri.rstrip("/")
    return call.limited(
        (time, f"[{done.instant}]", stat.partition, join_path(root, path), succeeded)
        for done in undone
        for stat in done.stats
        for paths, succeeded in ((stat.deleted, True), (stat.failed, False))
        for path in paths
    )


def commits_compare(call: Call) -> Rows:
    """Tell by which commits one table is behind another."""
    table, other = call.table, open_named_table(call.spark, None, call.needed("path")).table
    mine, theirs = ([each.requested for each in one.timeline.writes()] for one in (table, other))
    last, other_last = (max(times, default="") for times in (mine, theirs))
    place, times, since = ("behind", theirs, last) if last < other_last else ("ahead", mine, other_last)
    missing = [time for time in times if time > since]
    return [
        (
            f"Source {table.config.name} is {place} by {len(missing)} commits. Commits to catch up -"
            f" [{', '.join(missing)}]",
        )
    ]


def show_file_status(call: Call) -> Rows:
    """Tell whether a file is there, or which clean, rollback or restore deleted it.

    Raises:
        InvalidError: no partition is given of a partitioned table.
    """
    facts, name = call.table._calls.facts(), call.needed("file")
    given = call.text("partition")
    if given is None and facts.config.partition_fields:
        raise InvalidError("The table is partitioned. Give partition => the one that the file is in.")
    partition = (given or "").strip("/")
    path = join_path(partition, name)
    if facts.storage.exists(path):
        return [(_EXISTS, "", "", _ACTIVE, join_path(facts.storage.spec.uri.rstrip("/"), path))]
    for instant in _newest_first(facts, Action.CLEAN):
        found = decode_clean(facts.store.read(instant)).partitions.get(partition)
        if found is not None and name in found.deleted:
            return [(_DELETED, str(instant.action), instant.requested, _ACTIVE, "")]
    actions = {each.requested: str(each.action) for each in facts.timeline.instants}
    for requested, undone in rollbacks_of(facts):
        if any(path in stat.deleted for stat in undone.stats):
            return [(_DELETED, actions[requested], requested, _ACTIVE, "")]
    return [(_UNKNOWN, "", "", "", "")]


HISTORY_PROCEDURES: Final = (
    Procedure(
        "show_cleans_metadata",
        "table STRING!, limit INT=10, showArchived BOOLEAN=false, filter STRING",
        "clean_time STRING, state_transition_time STRING, action STRING, start_clean_time STRING,"
        " partition_path STRING, policy STRING, delete_path_patterns INT, success_delete_files INT,"
        " failed_delete_files INT, is_partition_deleted BOOLEAN, time_taken_in_millis BIGINT,"
        " total_files_deleted INT",
        show_cleans_metadata,
    ),
    Procedure(
        "show_rollback_detail",
        "table STRING!, limit INT=10, instant_time STRING!",
        "instant STRING, rollback_instant STRING, partition STRING, deleted_file STRING, succeeded BOOLEAN",
        show_rollback_detail,
    ),
    Procedure("commits_compare", "table STRING!, path STRING!", "compare_detail STRING", commits_compare),
    Procedure(
        "show_file_status",
        "table STRING, path STRING, partition STRING, file STRING!, filter STRING",
        "status STRING, action STRING, instant STRING, timeline STRING, full_path STRING",
        show_file_status,
    ),
)


_AUDIT_STATES: Final = {"enabled": True, "disabled": False}


def set_audit_lock(call: Call) -> Rows:
    """Have the leases on a table recorded, or no longer.

    Raises:
        InvalidError: the state is neither.
    """
    state = call.needed("state").lower()
    if state not in _AUDIT_STATES:
        raise InvalidError(f"state is {' or '.join(_AUDIT_STATES)}, not {state!r}.")
    switch_audit(_storage(call), _AUDIT_STATES[state])
    return [(_table_argument(call), state, f"Lock audit logging successfully {state}")]


def show_audit_lock_status(call: Call) -> Rows:
    """Return whether leases are recorded, and where."""
    storage = _storage(call)
    paths = storage.full_uri(AUDIT_SWITCH), storage.full_uri(AUDIT_FOLDER)
    return [(_table_argument(call), is_audited(storage), *paths)]


def validate_audit_lock(call: Call) -> Rows:
    """Check the recorded leases: whether two overlap, and whether each was released."""
    storage, name = _storage(call), _table_argument(call)
    if not has_lock_audit(storage):
        return [(name, "PASSED", 0, 0, "No audit folder found - nothing to validate")]
    found = lock_audit(storage)
    if not found.leases:
        return [(name, "FAILED", 0, len(found.unreadable), "Failed to parse any audit files")]
    errors = [f"[ERROR] {one} => overlaps with {other}" for one, other in found.overlaps]
    warnings = [
        f"[WARNING] {each} => transaction did not end gracefully. This could be due to driver OOM or"
        " non-graceful shutdown."
        for each in found.unended
    ]
    result = "FAILED" if errors else "WARNING" if warnings else "PASSED"
    details = ", ".join(errors + warnings) or "All audit lock transactions validated successfully"
    return [(name, result, found.leases, len(errors) + len(warnings), details)]


def cleanup_audit_lock(call: Call) -> Rows:
    """Delete old records of leases."""
    storage, name = _storage(call), _table_argument(call)
    days, is_dry = call.number("age_days") or 0, call.flag("dry_run")
    clock = call.table._context.clock
    has_records = has_lock_audit(storage)
    cleaned = len(clean_lock_audit(storage, clock, age_days=days, apply=not is_dry))
    if not has_records:
        return [(name, 0, is_dry, days, "No audit folder found - nothing to cleanup")]
    if not cleaned:
        message = f"No audit files older than {days} days found"
    elif is_dry:
        message = f"Dry run: Would delete {cleaned} audit files older than {days} days"
    else:
        message = f"Successfully deleted {cleaned} audit files older than {days} days"
    return [(name, cleaned, is_dry, days, message)]


def _storage(call: Call) -> Storage:
    return call.table._context.storage


def _table_argument(call: Call) -> str:
    """Return the table as the call names it."""
    return call.text("table") or call.needed("path")


AUDIT_PROCEDURES: Final = (
    Procedure(
        "set_audit_lock",
        "table STRING, path STRING, state STRING!",
        "table STRING, audit_state STRING, message STRING",
        set_audit_lock,
    ),
    Procedure(
        "show_audit_lock_status",
        "table STRING, path STRING",
        "table STRING, audit_enabled BOOLEAN, config_path STRING, audit_folder_path STRING",
        show_audit_lock_status,
    ),
    Procedure(
        "validate_audit_lock",
        "table STRING, path STRING",
        "table STRING, validation_result STRING, transactions_validated INT, issues_found INT,"
        " details STRING",
        validate_audit_lock,
    ),
    Procedure(
        "cleanup_audit_lock",
        "table STRING, path STRING, dry_run BOOLEAN=false, age_days INT=7",
        "table STRING, files_cleaned INT, dry_run BOOLEAN, age_days INT, message STRING",
        cleanup_audit_lock,
    ),
)
"""`CALL`: Hudi's procedures, by their names, parameters and columns."""
