"""Incremental queries: the records that the commits of a range wrote.

    range (start, end] ──> completed writes in it ──> the files that they wrote
        ──> slices of these files alone, merged ──> records whose commit time is one of theirs

Log blocks with some of the columns say too little alone: the records that they touch are read in the whole
slice, as the range left it (`query.incremental.base_slices`).

When commits of the range were archived, or files that they wrote were cleaned away, the records come
from the whole table, by their commit times: later changes hide earlier ones then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import UnsupportedError
from drawstring.expressions.predicate import Where
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.filegroups.view.dual_write_files import may_be_gone
from drawstring.filegroups.view.file_groups import FileGroupView
from drawstring.filegroups.view.listing import FixedListing
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import BaseFile, FileStatus, LogFile
from drawstring.model.instant import time_of
from drawstring.query.cleaned_files import Deleted, is_needed
from drawstring.query.facts import TableFacts
from drawstring.query.incremental.base_slices import Beneath
from drawstring.query.incremental.commit_ranges import (
    CommitRange,
    RangeSpec,
    check_scannable,
    find_range,
    same_range,
)
from drawstring.query.incremental.listed_files import ListedFiles
from drawstring.query.partition_pruning import partitions_to_read
from drawstring.query.replanning import Draft, Task, settled, slices_of
from drawstring.query.scan import Scan, scan_of_plan
from drawstring.query.snapshot import Query, query_of, same_columns, snapshot_tasks, task_of
from drawstring.schema.meta import COMMIT_TIME
from drawstring.timeline.timeline import Timeline


def incremental_scan(
    facts: TableFacts,
    asked: RangeSpec,
    *,
    columns: Sequence[str] | None = None,
    where: Where = None,
    threads: int | None = None,
) -> Scan:
    """Query what changed in a range of commits.

    Args:
        facts: the table.
        asked: the range.
        columns: columns in the order wanted; None for all, meta columns included.
        where: SQL text or an Arrow expression; None for all rows.
        threads: tasks that run at once; None for as many as the machine is good for.

    Returns:
        A lazy scan: the records written in the range, each as the last commit of the range left it;
        deleted records are not in it.

    Raises:
        InvalidError: an unknown column, a bad condition, or a time that cannot be read.
        UnavailableError: a pending write would be missed.
        UnsupportedError: the table keeps no commit times.
    """
    check_commit_times(facts)
    facts, found = settled(facts, lambda look: find_range(look, asked))
    return range_scan(facts, found, columns=columns, where=where, threads=threads)


def range_scan(
    facts: TableFacts,
    found: CommitRange,
    *,
    columns: Sequence[str] | None = None,
    where: Where = None,
    threads: int | None = None,
) -> Scan:
    """Query what changed in a range that is known already; see `incremental_scan`."""
    facts, query = settled(facts, lambda look: range_query(look, found, columns, where))

    def draft(look: TableFacts) -> Draft[Task]:
        if look is facts:
            return range_draft(query, found)
        then = same_range(look, found)
        return range_draft(same_columns(query, range_query(look, then, columns, where)), then)

    return scan_of_plan(query.output, facts, draft, threads)


def range_query(facts: TableFacts, found: CommitRange, columns: Sequence[str] | None, where: Where) -> Query:
    """Return the checked query of a range on one look at the table."""
    latest = max(found.commit_times, default=None)
    is_written = bool(facts.timeline.pending_writes())
    instants = InstantRange(frozenset(found.commit_times), None, latest, is_written)
    return query_of(facts, columns, where, instants)


def range_draft(query: Query, found: CommitRange) -> Draft[Task]:
    """Return the tasks that read a range on one look at the table, see `incremental_scan`."""
    tasks, is_whole = _tasks(query, found)

    def lacks(deleted: Deleted) -> bool:
        if is_whole:
            return is_needed(query.facts, deleted)
        return any(deleted.reaches(each) for each in slices_of(tasks))

    return Draft(tasks, lacks)


def check_commit_times(facts: TableFacts) -> None:
    """Check that records tell which commit wrote them.

    Raises:
        UnsupportedError: they do not.
    """
    if not facts.config.populate_meta_fields:
        raise UnsupportedError("the table has no meta columns, hence no commit times to query incrementally")


def _tasks(query: Query, asked: CommitRange) -> tuple[list[ReadTask], bool]:
    """Return the tasks of a range, and whether they read the whole table."""
    if asked.reaches_archive:
        check_scannable(asked, "commits of the range were archived")
        return _tasks_with_archived(query, asked), True
    if not asked.writes:
        return [], False
    files = files_written(query.facts, asked)
    if files is None:
        check_scannable(asked, "files that commits of the range wrote were cleaned away")
        return _with_commit_times(_whole_table(query), asked.commit_times), True
    return _with_commit_times(_tasks_of_files(query, asked, files), asked.commit_times), False


def _tasks_of_files(query: Query, asked: CommitRange, files: Sequence[FileStatus]) -> list[ReadTask]:
    """Return the tasks that read just the files that the writes of a range made."""
    facts = query.facts
    timeline = _timeline_of(facts, asked, files)
    view = FileGroupView(timeline, facts.config, FixedListing(files), facts.store)
    as_of = query.instants.as_of if not facts.config.layout.has_completion_times else None
    partitions = partitions_to_read(view.partitions(), facts.config, query.schema, query.where)
    beneath = Beneath(query, asked)
    return [
        beneath.under(task_of(query, partition, file_slice))
        for partition in partitions
        for file_slice in view.slices(partition.path, as_of)
    ]


def _timeline_of(facts: TableFacts, asked: CommitRange, files: Sequence[FileStatus]) -> Timeline:
    """Return the timeline at the end of a range: what replaced file groups later does not take rows away.

    A write during the resizing of buckets names its files in the new buckets by the resizing. Once that
    is completed they count, and the old buckets do not.
    """
    if asked.end is None:
        return facts.timeline
    parsed = [LogFile.parse(file) or BaseFile.parse(file) for file in files]
    named = {file.instant for file in parsed if file is not None}
    return facts.timeline.completed_by(asked.end, besides=named)


def files_written(facts: TableFacts, asked: CommitRange) -> list[FileStatus] | None:
    """Return the data files that the writes of a range made; None when one of them is gone."""
    listing = ListedFiles(facts.view.listing)
    found: dict[str, FileStatus] = {}
    settled: set[tuple[str, str]] = set()
    for instant in sorted(asked.writes, key=time_of, reverse=True):
        commit = facts.store.commit_metadata(instant)
        for stat in commit.stats:
            status = listing.find(stat.partition, stat.path)
            if status is not None:
                found[stat.path] = status
            elif may_be_gone(facts.timeline, instant, stat):
                continue
            elif not asked.skips_superseded or (stat.partition, stat.file_id) not in settled:
                return None
        settled |= settled_groups(commit)
    return list(found.values())


def settled_groups(commit: CommitMetadata) -> set[tuple[str, str]]:
    """Return the file groups, as partition and file id, whose earlier files do not show after a commit."""
    settled = {(s.partition, s.file_id) for s in commit.stats if BaseFile.parse(FileStatus(s.path, 0))}
    return settled | {(partition, file_id) for partition, ids in commit.replaced.items() for file_id in ids}


def _with_commit_times(tasks: list[ReadTask], commit_times: tuple[str, ...]) -> list[ReadTask]:
    return [replace(task, commit_times=commit_times) for task in tasks]


def _whole_table(query: Query) -> list[ReadTask]:
    return snapshot_tasks(replace(query, instants=InstantRange.of(query.facts.timeline)))


def _tasks_with_archived(query: Query, asked: CommitRange) -> list[ReadTask]:
    """Read the whole table for the records of archived commits and of those in the range."""
    first = query.facts.timeline.start
    time = pc.field(COMMIT_TIME)
    condition = time.isin(pa.array(asked.commit_times, pa.string()))
    if not asked.archived:
        archived = time > asked.start
        for bound in (first, asked.end):
            archived = archived if bound is None else archived & (time <= bound)
        condition = condition | archived
    where = condition if query.where is None else query.where & condition
    return _whole_table(replace(query, where=where))
