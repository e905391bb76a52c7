"""Procedures that show commits, active and archived, and their files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from drawstring.base.errors import InvalidError
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.instant import Action, Instant
from drawstring.spark.sql.procedures.procedure import Call, Procedure, Rows
from drawstring.timeline.archive.reader import open_archive

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
    facts = call.table._facts()
    for instant in sorted(facts.timeline.writes(), key=lambda each: each.requested, reverse=True):
        yield instant, facts.store.commit_metadata(instant)


def _archived(call: Call) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield the archived writes of a range, newest first."""
    facts = call.table._facts()
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


def _files(instant: Instant, metadata: CommitMetadata) -> Iterator[Sequence[Any]]:
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
    return call.limited(row for each in _active(call) for row in _files(*each))


def show_archived_commits(call: Call) -> Rows:
    """Return the archived writes, newest first."""
    rows = (_summary(*each) for each in _archived(call))
    return call.limited((*row[:2], *row[3:]) for row in rows)


def show_archived_commits_metadata(call: Call) -> Rows:
    """Return the files of the archived writes."""
    return call.limited(row for each in _archived(call) for row in _files(*each))


def _one(call: Call) -> tuple[Instant, CommitMetadata]:
    """Return the write at `instant_time`.

    Raises:
        InvalidError: the active timeline has none.
    """
    facts, time = call.table._facts(), call.needed("instant_time")
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


PROCEDURES: Final = (
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
