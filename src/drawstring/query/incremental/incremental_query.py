"""Incremental queries: the records that the commits of a range wrote.

    range (start, end] ──> completed writes in it ──> the files that they wrote
        ──> slices of these files only, merged ──> records with the commit time of one of these writes

Partial log blocks contain some of the columns only. The records that they change are read from the whole
slice as of the end of the range (`query.incremental.whole_slices`).

When commits of the range were archived, or files that they wrote were cleaned away, the records are read from
the whole table by their commit times. Later changes then hide earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import UnsupportedError
from drawstring.expressions.predicate import Where
from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.filegroups.view.file_groups import FileGroupView
from drawstring.filegroups.view.listing import FixedListing
from drawstring.filegroups.view.missing_files import may_be_gone
from drawstring.model.commit import CommitMetadata
from drawstring.model.explanation import Narrowing
from drawstring.model.files import BaseFile, FileStatus, LogFile
from drawstring.model.instant import time_of
from drawstring.query.candidates import Candidate
from drawstring.query.cleaned_files import DeletedFiles, is_needed
from drawstring.query.facts import TableFacts
from drawstring.query.incremental.commit_ranges import (
    CommitRange,
    RangeSpec,
    check_scannable,
    find_range,
    same_range,
)
from drawstring.query.incremental.listed_files import ListedFiles
from drawstring.query.incremental.path_glob import PathGlob
from drawstring.query.incremental.whole_slices import WholeSlices
from drawstring.query.replanning import Draft, Task, retry_on_change, slices_of
from drawstring.query.scan import Scan, scan_of_plan
from drawstring.query.snapshot import Query, narrowed_slices, query_of, same_columns, snapshot_plan, task_of
from drawstring.schema.meta import COMMIT_TIME
from drawstring.timeline.timeline import Timeline


def incremental_scan(
    facts: TableFacts,
    spec: RangeSpec,
    *,
    columns: Sequence[str] | None = None,
    where: Where = None,
    threads: int | None = None,
) -> Scan:
    """Query what changed in a range of commits.

    Args:
        facts: the table.
        spec: the range, as the user gives it.
        columns: columns of the result, in order; None for all, including meta columns.
        where: SQL text or an Arrow expression; None for all rows.
        threads: number of tasks that run at once; None to choose by the tasks and the machine.

    Returns:
        A lazy scan of the records written in the range, each as of the last commit of the range, without
        deleted records.

    Raises:
        InvalidError: an unknown column, an invalid condition, or a bound that is not a time.
        UnavailableError: the query would skip a pending write.
        UnsupportedError: the table keeps no commit times.
    """
    check_commit_times(facts)
    glob = None if spec.path_glob in ("", None) else PathGlob(spec.path_glob)
    facts, commit_range = retry_on_change(facts, lambda current: find_range(current, spec))
    return range_scan(facts, commit_range, columns=columns, where=where, threads=threads, glob=glob)


def range_scan(
    facts: TableFacts,
    commit_range: CommitRange,
    *,
    columns: Sequence[str] | None = None,
    where: Where = None,
    threads: int | None = None,
    glob: PathGlob | None = None,
) -> Scan:
    """Query what changed in a known range, in files that match a pattern; see `incremental_scan`."""
    facts, query = retry_on_change(facts, lambda current: range_query(current, commit_range, columns, where))

    def draft(current: TableFacts) -> Draft[Task]:
        if current is facts:
            return range_draft(query, commit_range, glob)
        updated = same_range(current, commit_range)
        return range_draft(same_columns(query, range_query(current, updated, columns, where)), updated, glob)

    return scan_of_plan(query.output, facts, draft, threads)


def range_query(
    facts: TableFacts, commit_range: CommitRange, columns: Sequence[str] | None, where: Where
) -> Query:
    """Check the query of a range against a loaded table and return it."""
    latest = max(commit_range.commit_times, default=None)
    has_pending_write = bool(facts.timeline.pending_writes())
    instants = InstantRange(frozenset(commit_range.commit_times), None, latest, has_pending_write)
    return query_of(facts, columns, where, instants)


def range_draft(query: Query, commit_range: CommitRange, glob: PathGlob | None = None) -> Draft[Task]:
    """Return the plan that reads a range of a loaded table; see `incremental_scan`."""
    tasks, narrowing, is_whole = _tasks(query, commit_range)
    if glob is not None:
        root = query.facts.storage.spec.uri
        tasks = [task for task in tasks if glob.has(task.file_slice, root)]

    def lacks(deleted: DeletedFiles) -> bool:
        if is_whole:
            return is_needed(query.facts, deleted)
        return any(deleted.reaches(file_slice) for file_slice in slices_of(tasks))

    return Draft(tasks, lacks, narrowing, query.skipping_for)


def check_commit_times(facts: TableFacts) -> None:
    """Check that the records of a table have commit times.

    Raises:
        UnsupportedError: they have none, because the table has no meta columns.
    """
    if not facts.config.populate_meta_fields:
        raise UnsupportedError(
            "The table has no meta columns, so its records have no commit times for an incremental query."
            " Query snapshots, or create the table with hoodie.populate.meta.fields set to true."
        )


def _tasks(query: Query, commit_range: CommitRange) -> tuple[Sequence[ReadTask], Narrowing | None, bool]:
    """Return the tasks of a range, what was left out, and whether they read the whole table."""
    if commit_range.reaches_archive:
        check_scannable(commit_range, "Commits of the range were archived.")
        return *_plan_with_archived(query, commit_range), True
    if not commit_range.writes:
        return [], None, False
    files = files_written(query.facts, commit_range)
    is_whole = files is None
    if files is None:
        check_scannable(commit_range, "Files that commits of the range wrote were cleaned away.")
        tasks, narrowing = _whole_table(query)
    else:
        tasks, narrowing = _plan_of_files(query, commit_range, files)
    return [replace(task, commit_times=commit_range.commit_times) for task in tasks], narrowing, is_whole


def _plan_of_files(
    query: Query, commit_range: CommitRange, files: Sequence[FileStatus]
) -> tuple[list[ReadTask], Narrowing]:
    """Return the tasks that read only the files that the writes of a range created."""
    facts = query.facts
    timeline = _timeline_of(facts, commit_range, files)
    view = FileGroupView(timeline, facts.config, FixedListing(files), facts.store)
    as_of = query.instants.as_of if not facts.config.layout.has_completion_times else None
    partitions = query.partitions(view.partitions())
    whole_slices = WholeSlices(query, commit_range)
    tasks = {
        Candidate(partition, task.file_slice, task.whole_slice.file_slice if task.whole_slice else None): task
        for partition in partitions
        for file_slice in view.slices(partition.path, as_of)
        for task in [whole_slices.attach(task_of(query, partition, file_slice))]
    }
    candidates, narrowing = narrowed_slices(query, list(tasks), query.skipping())
    return [tasks[each] for each in candidates], narrowing


def _timeline_of(facts: TableFacts, commit_range: CommitRange, files: Sequence[FileStatus]) -> Timeline:
    """Return the timeline as of the end of a range, so that later replacements of file groups do not count.

    A write during the resizing of a consistent hash ring names its files in the new buckets by the instant of
    the resizing. Once the resizing is completed, the new buckets are visible and the old ones are not.
    """
    if commit_range.end is None:
        return facts.timeline
    parsed = [LogFile.parse(file) or BaseFile.parse(file) for file in files]
    instants = {file.instant for file in parsed if file is not None}
    return facts.timeline.completed_by(commit_range.end, besides=instants)


def files_written(facts: TableFacts, commit_range: CommitRange) -> list[FileStatus] | None:
    """Return the data files that the writes of a range created; None if one of them was deleted."""
    listing = ListedFiles(facts.view.listing)
    files: dict[str, FileStatus] = {}
    superseded: set[tuple[str, str]] = set()
    for instant in sorted(commit_range.writes, key=time_of, reverse=True):
        commit = facts.store.commit_metadata(instant)
        for stat in commit.stats:
            status = listing.find(stat.partition, stat.path)
            if status is not None:
                files[stat.path] = status
            elif may_be_gone(facts.timeline, instant, stat):
                continue
            elif not commit_range.skips_superseded or (stat.partition, stat.file_id) not in superseded:
                return None
        superseded |= superseded_groups(commit)
    return list(files.values())


def superseded_groups(commit: CommitMetadata) -> set[tuple[str, str]]:
    """Return the file groups (partition, file id) whose earlier files are superseded by a commit."""
    rewritten = {(s.partition, s.file_id) for s in commit.stats if BaseFile.parse(FileStatus(s.path, 0))}
    return rewritten | {(partition, file_id) for partition, ids in commit.replaced.items() for file_id in ids}


def _whole_table(query: Query) -> tuple[Sequence[ReadTask], Narrowing]:
    return snapshot_plan(replace(query, instants=InstantRange.of(query.facts.timeline)))


def _plan_with_archived(query: Query, commit_range: CommitRange) -> tuple[Sequence[ReadTask], Narrowing]:
    """Return the tasks that read the records of a range with archived commits from the whole table."""
    first = query.facts.timeline.start
    time = pc.field(COMMIT_TIME)
    condition = time.isin(pa.array(commit_range.commit_times, pa.string()))
    if not commit_range.archived:
        archived = time > commit_range.start
        for bound in (first, commit_range.end):
            archived = archived if bound is None else archived & (time <= bound)
        condition = condition | archived
    where = condition if query.where is None else query.where & condition
    return _whole_table(replace(query, where=where))
