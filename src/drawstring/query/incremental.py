r"""Run incremental queries: the records that the commits of a range wrote.

    range (start, end] ──> completed writes in it ──> the files that they wrote
        ──> slices of these files only, merged ──> records with the commit time of one of these writes

The range (`find_range`):

    (start, end]      completion times (versions 8 and 9) or requested times (version 6)
    start only        up to the newest write
    end only          the newest write up to the end; compaction and clustering do not count
    neither           the newest write

A bound of a change query may also be the commit time of a row, which is the requested time of a write. As
start it excludes that write, as end it includes it (Hudi's change queries use requested times only).

In version 6 a write may complete after a write that was requested after it. Such a pending write is a hole:
a query by requested times that passes it would never read it. The caller chooses how to treat holes.

Partial log blocks contain only some of the columns and do not make whole rows. The records that they change
are read from the whole slice as of the end of the range (`WholeSlices`, `filegroups.file_slice_reader`).

Archived commits, cleaned files: when commits of the range were archived, or files that they wrote were
cleaned away, the records are read from the whole table by their commit times. Changes after the range then
hide earlier ones.

Path patterns (`PathGlob`) are those of Hadoop's `GlobPattern`:

| pattern | matches |
|---|---|
| `*`, `?` | any text, also across folders; one character |
| `[ab]`, `[!ab]`, `[^ab]` | one character of these, one other character |
| `{a,b}` | one of these |
| `\` | the next character as it is |

The pattern of an incremental query is that of the end of a path: it is matched as if it began with `*`. It
is matched with the whole address of a file, as Hudi does, so a folder above the table counts too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError, UnavailableError, UnsupportedError
from drawstring.config.keys.read import PATH_GLOB
from drawstring.expressions.predicate import Where
from drawstring.filegroups.file_system_view import FileGroupView, FixedListing, Listing
from drawstring.filegroups.read_task import InstantRange, ReadTask
from drawstring.filegroups.view.missing_files import may_be_gone, refuse_external_file
from drawstring.filegroups.view.slicing import GroupFiles, Visibility, group_files, slices_by_completion
from drawstring.merge.record_merger import takes_partial_blocks
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile, join_path
from drawstring.model.instant import Instant, time_of
from drawstring.model.result import Narrowing
from drawstring.query.partition_pruning import Candidate
from drawstring.query.planner import Query, narrowed_slices, query_of, same_columns, snapshot_plan, task_of
from drawstring.query.policies import Holes
from drawstring.query.replanning import DeletedFiles, Draft, Task, is_needed, retry_on_change, slices_of
from drawstring.query.scan import Scan, scan_of_plan
from drawstring.query.table_state import TableFacts
from drawstring.schema.fields import COMMIT_TIME
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.timeline import EARLIEST, Timeline, as_instant_time, file_name, instant_time

_PLAIN: Final = {"*": ".*", "?": ".", "{": "(?:", "[": "[", "]": "]"}


class PathGlob:
    """A pattern of the paths of data files.

    Args:
        text: the pattern.

    Raises:
        InvalidError: it is no pattern.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InvalidError(
                f"path_glob is {text!r}. Give a pattern of paths as text, for example '/year=2026/*'."
            )
        try:
            self._pattern = re.compile(_expression(f"*{text}"), re.DOTALL)
        except re.error as error:
            raise InvalidError(
                f"{PATH_GLOB}={text!r} is no pattern of paths ({error}). Write for example /year=2026/*/*."
            ) from error

    def has(self, file_slice: FileSlice, root: str) -> bool:
        """Return whether the base file of a slice matches, or its newest log file if it has no base file.

        Args:
            file_slice: the slice.
            root: address of the table.
        """
        file = file_slice.base or file_slice.logs[-1]
        return self._pattern.fullmatch(f"{root.rstrip('/')}/{file.status.path}") is not None


def matches_folder(glob: str, folder: str) -> bool:
    """Return whether a pattern of folders, in which `*` stays within one folder, matches a whole path.

    Args:
        glob: the pattern, relative to what the path is relative to.
        folder: the path; empty for the root.

    Raises:
        InvalidError: it is no pattern.
    """
    patterns, names = glob.strip("/").split("/"), folder.split("/")
    try:
        pairs = [
            (re.compile(_expression(one), re.DOTALL), name)
            for one, name in zip(patterns, names, strict=False)
        ]
    except re.error as error:
        raise InvalidError(
            f"{glob!r} is no pattern of folders ({error}). Write for example day=*."
        ) from error
    return len(patterns) == len(names) and all(pattern.fullmatch(name) for pattern, name in pairs)


def _expression(glob: str) -> str:
    """Return a glob as a regular expression."""
    parts, place, depth, is_in_set = [], 0, 0, False
    while place < len(glob):
        one, place = glob[place], place + 1
        if one == "\\" and place < len(glob):
            parts.append(re.escape(glob[place]))
            place += 1
        elif is_in_set and one not in "]\\":
            parts.append("^" if one == "!" and parts[-1] == "[" else one)
        elif one == "," and depth:
            parts.append("|")
        elif one == "}" and depth:
            parts.append(")")
            depth -= 1
        else:
            parts.append(_PLAIN.get(one) or re.escape(one))
            depth += one == "{"
            is_in_set = one == "[" or (is_in_set and one != "]")
    return "".join(parts)


class ListedFiles:
    """Finds files in the listing of a table.

    Args:
        listing: lists the files of a partition.
    """

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._files: dict[str, Mapping[str, FileStatus]] = {}

    def of(self, partition: str) -> Mapping[str, FileStatus]:
        """Return the files of a partition by path."""
        if partition not in self._files:
            listed = self._listing.files(partition)
            self._files[partition] = {status.path: status for status in listed}
        return self._files[partition]

    def find(self, partition: str, path: str) -> FileStatus | None:
        """Return a file that a commit names, None if it does not exist.

        Raises:
            UnsupportedError: the file is an external file that another tool registered.
        """
        refuse_external_file(path)
        return self.of(partition).get(path)


Time = str | datetime | date


@dataclass(frozen=True, slots=True)
class RangeSpec:
    """A range as the user gives it.

    Attributes:
        start: exclusive; None for the newest write only.
        end: inclusive; None for no end.
        include_start: whether the range includes writes at its start.
        holes: treatment of holes.
        full_scan: whether the query may read the whole table when files of the range were deleted.
        names_commits: whether a bound that equals the requested time of a write denotes that write.
        path_glob: pattern of the paths of files to read; empty for all.
    """

    start: Time | None = None
    end: Time | None = None
    include_start: bool = False
    holes: Holes = Holes.FAIL
    full_scan: bool = True
    names_commits: bool = False
    path_glob: str = ""


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds of a range.

    Attributes:
        start: exclusive.
        end: inclusive; None for no end.
        after: requested time of a write that is excluded although it completed after the start.
        until: requested time of a write that is included although it completed after the end.
        time_of: returns the time of a write that the bounds are compared with.
    """

    start: str
    end: str | None
    after: str | None
    until: str | None
    time_of: Callable[[Instant], str]

    def begin_before(self, write: Instant) -> bool:
        """Return whether the range starts before a write."""
        return self.start < self.time_of(write) and write.requested != self.after

    def end_after(self, write: Instant) -> bool:
        """Return whether the range ends with a write, or after it."""
        return self.end is None or self.time_of(write) <= self.end or write.requested == self.until


@dataclass(frozen=True, slots=True)
class CommitRange:
    """A range of times with its completed writes.

    Attributes:
        start: exclusive, unless `include_start`.
        end: inclusive; None for no end.
        writes: writes of the active timeline, sorted by requested time.
        archived: archived writes, sorted by requested time; empty in version 6, see `reaches_archive`.
        reaches_archive: whether the range contains archived writes.
        full_scan: whether the query may read the whole table when files of the range were deleted.
        skips_superseded: whether the query skips a deleted file if a later write of the range wrote a base
            file to its file group or replaced the group, so that none of its records is visible.
    """

    start: str
    end: str | None
    writes: tuple[Instant, ...]
    archived: tuple[Instant, ...] = ()
    reaches_archive: bool = False
    full_scan: bool = True
    skips_superseded: bool = False

    @property
    def commit_times(self) -> tuple[str, ...]:
        """Requested times of the writes."""
        return tuple(instant.requested for instant in (*self.archived, *self.writes))


def find_range(facts: TableFacts, spec: RangeSpec) -> CommitRange:
    """Return the writes of a range.

    Args:
        facts: the table.
        spec: the range, as the user gives it.

    Raises:
        InvalidError: a bound that is not a time, or an end before the start.
        UnavailableError: the range has a hole, and `spec.holes` is FAIL.
    """
    zone = facts.config.timezone
    time_in = _times(facts, spec.holes)
    begin = EARLIEST if spec.start is None else as_instant_time(spec.start, zone)
    writes = [write for write in _before_holes(facts, spec.holes, begin) if write.is_write]
    stop = None if spec.end is None else as_instant_time(spec.end, zone)
    bounds = _bounds(begin, stop, spec, writes, time_in)
    if spec.start is None:
        up_to_end = sorted(filter(bounds.end_after, writes), key=time_in)
        newest_first = reversed(up_to_end)
        changing = (write for write in newest_first if facts.store.commit_metadata(write).changes_records)
        newest = tuple(islice(changing, 1))
        if not newest and stop is not None:
            return _newest_archived(facts, stop, spec)
        end = max(map(time_in, newest), default=stop)
        return CommitRange(EARLIEST, end, newest, full_scan=spec.full_scan)
    if stop is not None and stop < begin:
        raise InvalidError(f"The range ends at {stop}, before its start {begin}. Swap start and end.")
    selected = tuple(write for write in writes if bounds.begin_before(write) and bounds.end_after(write))
    commit_range = CommitRange(bounds.start, stop, selected, full_scan=spec.full_scan)
    return _with_archived(facts, commit_range, bounds)


def _bounds(
    begin: str,
    stop: str | None,
    spec: RangeSpec,
    writes: Sequence[Instant],
    time_in: Callable[[Instant], str],
) -> _Bounds:
    """Return the bounds of a range; a bound at which a write completed is a completion time."""
    completed = {time_in(write) for write in writes}
    after = begin if spec.names_commits and begin not in completed else None
    until = stop if spec.names_commits and stop not in completed else None
    if spec.include_start:
        return _Bounds(_time_before(begin), stop, None, until, time_in)
    return _Bounds(begin, stop, after, until, time_in)


def _newest_archived(facts: TableFacts, stop: str, spec: RangeSpec) -> CommitRange:
    """Return a range with the newest archived write up to a time that changes records, if any."""
    archive = open_archive(facts.storage, facts.config)
    writes = (instant for instant in archive.completed(EARLIEST, stop) if instant.is_write)
    newest_first = sorted(writes, key=time_of, reverse=True)
    changing = (write for write in newest_first if archive.commit_metadata(write).changes_records)
    newest = tuple(islice(changing, 1))
    return CommitRange(EARLIEST, stop, (), newest, reaches_archive=bool(newest), full_scan=spec.full_scan)


def _with_archived(facts: TableFacts, commit_range: CommitRange, bounds: _Bounds) -> CommitRange:
    """Add the archived writes of a range.

    In timeline layout 1 the commit times of the records identify the records of archived writes, so the
    archive, which can be large, is not read.
    """
    archive = open_archive(facts.storage, facts.config)
    first = facts.timeline.start
    if not facts.config.layout.has_completion_times:
        reaches = (first is None or commit_range.start < first) and not archive.is_empty()
        return replace(commit_range, reaches_archive=reaches)
    # The write that the end denotes completed after the end.
    reads_past_end = bounds.until is not None and (first is None or bounds.until < first)
    archived = tuple(
        instant
        for instant in archive.completed(commit_range.start, None if reads_past_end else commit_range.end)
        if instant.is_write and facts.timeline.write_at(instant.requested) is None
        if bounds.begin_before(instant) and bounds.end_after(instant)
    )
    return replace(commit_range, archived=archived, reaches_archive=bool(archived))


def same_range(facts: TableFacts, commit_range: CommitRange) -> CommitRange:
    """Update a range for a table that was loaded again: writes may have been archived or rolled back.

    Args:
        facts: the table as it is now.
        commit_range: the range as of the first load.
    """
    timeline = facts.timeline
    active = tuple(write for write in commit_range.writes if timeline.write_at(write.requested) is not None)
    archived = tuple(
        write
        for write in commit_range.writes
        if write not in active and timeline.is_archived(write.requested)
    )
    if not archived:
        return replace(commit_range, writes=active)
    if commit_range.reaches_archive and not commit_range.archived:
        # Layout 1: commit times of records select the archived writes, up to the original end of the range.
        end = commit_range.end or max(write.requested for write in commit_range.writes)
        return replace(commit_range, end=end, writes=active)
    return replace(
        commit_range, writes=active, archived=(*commit_range.archived, *archived), reaches_archive=True
    )


def archived_writes(facts: TableFacts, commit_range: CommitRange) -> tuple[Instant, ...]:
    """Return the archived writes of a range, in every timeline layout."""
    if not commit_range.reaches_archive or commit_range.archived:
        return commit_range.archived
    first = facts.timeline.start
    return tuple(
        instant
        for instant in open_archive(facts.storage, facts.config).completed(
            commit_range.start, commit_range.end
        )
        if instant.is_write and (first is None or instant.requested < first)
    )


def _times(facts: TableFacts, holes: Holes) -> Callable[[Instant], str]:
    if facts.config.layout.has_completion_times or holes is not Holes.USE_TRANSITION_TIME:
        return time_of
    listed = facts.storage.list_files(facts.config.timeline_folder)
    layout = facts.config.layout
    modified = {status.name: instant_time(status.modified_ms, facts.config.timezone) for status in listed}
    return lambda instant: modified.get(file_name(instant, layout), instant.requested)


def _before_holes(facts: TableFacts, holes: Holes, begin: str) -> tuple[Instant, ...]:
    """Return the writes before the first hole; as in Hudi, a range without writes has no holes."""
    writes = facts.timeline.writes()
    if facts.config.layout.has_completion_times or holes is Holes.USE_TRANSITION_TIME:
        return writes
    pending = min((instant.requested for instant in facts.timeline.pending_writes()), default=None)
    if pending is None or not writes or writes[-1].requested < pending:
        return writes
    if holes is Holes.FAIL:
        if writes[-1].requested <= begin:
            return writes
        raise UnavailableError(
            "A write is pending although writes that were requested later have completed, so a range of"
            " requested times would skip it. Wait for it, roll it back, or set"
            " hoodie.read.timeline.holes.resolution.policy to BLOCK or USE_TRANSITION_TIME.",
            table=facts.storage.spec.uri,
            instant=pending,
        )
    return tuple(write for write in writes if write.requested < pending)


def _time_before(time: str) -> str:
    """Return a string that sorts before an instant time and after all earlier ones."""
    if not time.isdigit() or not int(time):
        return EARLIEST
    return f"{int(time) - 1:0{len(time)}d}~"


def check_scannable(commit_range: CommitRange, why: str) -> None:
    """Check that the query may read the whole table instead of deleted files.

    Args:
        commit_range: the range.
        why: sentence for the error that says why the files cannot be read.

    Raises:
        InvalidError: it may not.
    """
    if not commit_range.full_scan:
        raise InvalidError(
            f"{why} Start later, or set hoodie.datasource.read.incr.fallback.fulltablescan.enable to read the"
            " whole table by commit times."
        )


class WholeSlices:
    """Finds the whole slices of the log files that a range wrote.

    Args:
        query: the incremental query.
        commit_range: its commits.
    """

    def __init__(self, query: Query, commit_range: CommitRange) -> None:
        self._query = query
        facts = query.facts
        self._timeline = facts.timeline
        end = commit_range.end or max(map(time_of, commit_range.writes))
        before = [write.requested for write in facts.timeline.writes() if time_of(write) <= end]
        among = InstantRange.among(frozenset(before), facts.timeline)
        self._instants = replace(among, has_pending_write=query.instants.has_pending_write)
        self._files = ListedFiles(facts.view.listing)
        self._groups: dict[str, Mapping[str, GroupFiles]] = {}

    def attach(self, task: ReadTask) -> ReadTask:
        """Attach the task that reads the whole slice, if log blocks may be partial.

        Args:
            task: reads the files that the range wrote to a file group.
        """
        if not task.file_slice.logs or not takes_partial_blocks(task.config):
            return task
        whole = self._whole(task.file_slice)
        if whole is None:
            return task
        return replace(task, whole_slice=replace(task, file_slice=whole, instants=self._instants))

    def _whole(self, written: FileSlice) -> FileSlice | None:
        """Return the slice that the log files belong to now, without log files written after the range.

        If a compaction completed after the write, its base file has the same records as the slice that the
        write saw.
        """
        files = self._group(written.partition, written.file_id)
        times = self._query.facts.store.archived_completion_times
        visible = Visibility(self._timeline.completion_of, archived_completion_of=times.of)
        paths = {log.status.path for log in written.logs}
        for candidate in reversed(slices_by_completion(written.partition, written.file_id, files, visible)):
            if paths.isdisjoint(log.status.path for log in candidate.logs):
                continue
            admits = self._instants.admits
            logs = tuple(log for log in candidate.logs if log.status.path in paths or admits(log.instant))
            base = candidate.base or self._base_named_by_commit(written)
            return self._query.facts.store.sources.on([replace(candidate, base=base, logs=logs)])[0]
        return None

    def _base_named_by_commit(self, written: FileSlice) -> BaseFile | None:
        """Return the unlisted base file that the commit metadata names for a log file; reading it fails."""
        last = written.logs[-1]
        instant = self._timeline.write_at(last.instant)
        stats = self._query.facts.store.commit_metadata(instant).stats if instant else ()
        names = (stat.base_file for stat in stats if stat.path == last.status.path and stat.base_file)
        name = next(names, None)
        return None if name is None else BaseFile.parse(FileStatus(join_path(written.partition, name), 0))

    def _group(self, partition: str, file_id: str) -> GroupFiles:
        if partition not in self._groups:
            self._groups[partition] = group_files(self._files.of(partition).values())
        return self._groups[partition][file_id]


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
