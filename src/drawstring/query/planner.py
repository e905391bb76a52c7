"""Plan snapshot queries: the current table, the table as of an instant, or its base files only.

`query_of` checks the arguments of a query. `snapshot_plan` returns one task for each file slice that can
hold rows of it, and what was left out. `latest_slices` lists the file slices.

Time travel: the query checks that the files of the time are still there, and uses the schema of that time.

Savepoints: a savepoint lists the files of every file slice as of its commit. These are all files that the
table had then, so a query as of exactly this instant reads them and no others, whatever cleans deleted
since (`facts_of_savepoint`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import FilesCleanedError, InvalidError, MissingFileError
from drawstring.base.lazy import lazy_map
from drawstring.expressions.columns import check_columns
from drawstring.expressions.predicate import Where, condition_sql, parse_where
from drawstring.filegroups.columnar_view import FileColumns, LatestSlices
from drawstring.filegroups.file_system_view import FileGroupView, Listing, SliceLookup
from drawstring.filegroups.read_task import InstantRange, ReadTask, nullable
from drawstring.formats.filter import ConditionSql, KeyRange
from drawstring.formats.metadata.rollback import decode_savepoint
from drawstring.merge.record_merger import check_mergeable
from drawstring.metadata.column_ranges import PARTITION_STATS
from drawstring.metadata.file_listing import knows_later_writes
from drawstring.model.files import FileSlice, FileStatus, has_bucket, join_path
from drawstring.model.instant import Action, Instant, time_of
from drawstring.model.plans import Savepoint
from drawstring.model.result import PARTITIONS, SLICES, Narrowing, Step
from drawstring.query.bucket_detection import FoundBuckets, found_buckets
from drawstring.query.data_skipping import DataSkipping
from drawstring.query.partition_pruning import (
    BucketFacts,
    BucketPruning,
    Candidate,
    CandidateColumns,
    LazyCandidates,
    Partition,
    bucket_pruning,
    key_range,
    partitions_to_read,
    select_candidates,
    stored_keys,
)
from drawstring.query.replanning import (
    DeletedFiles,
    Draft,
    Task,
    cleans_of,
    is_needed,
    planned,
    retry_on_change,
)
from drawstring.query.scan import Scan, scan_of_plan
from drawstring.query.table_state import TableFacts, check_readable, scoped_paths, visible_schema
from drawstring.storage import is_lasting
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.timeline import as_instant_time


def latest_slices(facts: TableFacts) -> list[FileSlice]:
    """Return the latest file slice of every file group.

    Args:
        facts: the loaded table; it is loaded again if a clean deleted files meanwhile.

    Raises:
        CorruptTableError: a required file is missing.
    """
    return list(planned(facts, _slices)[1].tasks)


def partition_sizes(facts: TableFacts) -> pa.Table:
    """Return the file groups, the files and their bytes of each partition, sorted by its path.

    Args:
        facts: the loaded table; it is loaded again if a clean deleted files meanwhile.

    Raises:
        CorruptTableError: a required file is missing.
    """
    slices = latest_slices(facts)
    counted = pa.table(
        {
            "partition": pa.array([each.partition for each in slices], pa.string()),
            "file_groups": pa.array([1] * len(slices), pa.int64()),
            "base_files": pa.array([int(each.base is not None) for each in slices], pa.int64()),
            "log_files": pa.array([len(each.logs) for each in slices], pa.int64()),
            "size_bytes": pa.array([each.size_bytes for each in slices], pa.int64()),
        }
    )
    sums = [(name, "sum") for name in counted.column_names[1:]]
    found = counted.group_by("partition").aggregate(sums).rename_columns(counted.column_names)
    return found.sort_by("partition")


def _slices(facts: TableFacts) -> Draft[FileSlice]:
    lookup = SliceLookup(facts.storage.spec, facts.config, facts.timeline)
    paths = facts.scoped(lookup.partitions())
    slices = [file_slice for path in paths for file_slice in lookup.slices(path)]
    return Draft(slices, partial(is_needed, facts))


def facts_of_savepoint(facts: TableFacts, time: str) -> TableFacts | None:
    """Return the table as a savepoint retains it.

    Args:
        facts: the table.
        time: requested time of the savepoint.

    Returns:
        The table with the files of the savepoint and the instants completed then; None when there is no
        savepoint at that time, or when it lacks files of its own commit.
    """
    completed = facts.timeline.completed_of(Action.SAVEPOINT)
    savepoint = next((instant for instant in completed if instant.requested == time), None)
    write = facts.timeline.write_at(time)
    if savepoint is None or write is None:
        return None
    saved = decode_savepoint(facts.store.read(savepoint))
    if not _has_files_of(facts, saved, write):
        return None
    then = facts.timeline.completed_by(time_of(write))
    view = FileGroupView(then, facts.config, _SavedListing(saved, facts.view.listing, time), facts.store)
    return replace(facts, timeline=then, view=view)


def _has_files_of(facts: TableFacts, saved: Savepoint, write: Instant) -> bool:
    """Return whether a savepoint lists all files of its commit; old Hudi releases left out log files."""
    listed_files = {join_path(partition, name) for partition, names in saved.files.items() for name in names}
    return all(stat.path in listed_files for stat in facts.store.commit_metadata(write).stats)


@dataclass(frozen=True, slots=True)
class _SavedListing:
    """The files of a savepoint; each partition is listed on first use.

    Attributes:
        saved: metadata of the savepoint.
        listing: listing of the current table.
        instant: requested time of the savepoint.
    """

    saved: Savepoint
    listing: Listing
    instant: str

    @property
    def is_complete(self) -> bool:
        return False

    def partitions(self) -> list[str]:
        return sorted(self.saved.files)

    def files(self, partition: str) -> list[FileStatus]:
        """Return the files of a partition.

        Raises:
            CorruptTableError: a file is missing.
        """
        listed = {status.name: status for status in self.listing.files(partition)}
        names = self.saved.files.get(partition, ())
        for name in names:
            if name not in listed:
                raise MissingFileError(
                    "A file of the savepoint is missing, so the table cannot be read as of it. Restore the"
                    " file from a backup, or read the table as of another instant.",
                    instant=self.instant,
                    path=join_path(partition, name),
                )
        return [listed[name] for name in names]

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        return None


def check_has_begun(facts: TableFacts, time: str) -> None:
    """Check that a table with writes had one at a time.

    Raises:
        InvalidError: all its writes, archived ones included, are later.
    """
    writes = facts.timeline.writes()
    if any(write.requested <= time for write in writes):
        return
    archived = open_archive(facts.storage, facts.config).completed("")
    first = min((each.requested for each in (*archived, *writes) if each.is_write), default="")
    if time < first:
        raise InvalidError(
            f"The table has no write up to {time}. Its first one is {first}: query the table as of that time"
            " or later. Times without an offset are in the time zone of the timeline,"
            f" {facts.config.timezone} (hoodie.table.timeline.timezone).",
            table=facts.storage.spec.uri,
        )


def check_not_cleaned(facts: TableFacts, time: str) -> None:
    """Check that no clean by commits or hours deletes files that the table had at a time.

    The metadata of archived cleans is not read: times before an archived clean cannot be queried.

    Raises:
        InvalidError: a completed or pending clean deletes files that the table had then.
    """
    cleans = cleans_of(facts.store, facts.timeline, after=time)
    earliest = next((clean.earliest for clean in cleans if clean.earliest), "")
    if earliest and time < earliest:
        raise _cleaned(facts, time, earliest)
    first = facts.timeline.start
    if earliest or first is None or time >= first:
        return
    archived = open_archive(facts.storage, facts.config).completed(time)
    later_cleans = [
        instant.requested
        for instant in archived
        if instant.action is Action.CLEAN and instant.requested > time
    ]
    if later_cleans:
        raise InvalidError(
            f"Files of the table as of {time} may have been cleaned away at {later_cleans[-1]}."
            f" Query the table as of {first} or later.",
            table=facts.storage.spec.uri,
        )


def check_versions_kept(facts: TableFacts, time: str) -> None:
    """Check that no clean by file versions deletes file slices that the table had at a time.

    Args:
        facts: the table as of the time.
        time: requested time of an instant.

    Raises:
        InvalidError: a completed or pending clean deletes files that the table had then.
    """
    cleans = [clean for clean in cleans_of(facts.store, facts.timeline, after=time) if not clean.earliest]
    if is_needed(facts, DeletedFiles.by(cleans), time):
        raise _cleaned(facts, time, cleans[0].last_completed)


def _cleaned(facts: TableFacts, time: str, earliest: str) -> InvalidError:
    return InvalidError(
        f"Files of the table as of {time} were cleaned away. Query the table as of {earliest} or later. To"
        " read older instants in future, raise hoodie.clean.commits.retained, or use table.holds.add() or a"
        " savepoint.",
        table=facts.storage.spec.uri,
    )


def with_schema_of(facts: TableFacts, time: str) -> TableFacts:
    """Return the table with the schema of a time, if that schema is known."""
    then = facts.as_of(time)
    return then if len(then.schema) else facts


def snapshot_scan(
    facts: TableFacts,
    *,
    columns: Sequence[str] | None = None,
    where: Where = None,
    as_of: str | datetime | date | None = None,
    read_optimized: bool = False,
    threads: int | None = None,
) -> Scan:
    """Query the table at one time.

    Args:
        facts: the table.
        columns: columns of the result, in order; None for all, including meta columns.
        where: SQL text or an Arrow expression; None for all rows.
        as_of: an instant or a date-time: the query sees instants requested up to it; None for now. An
            instant with a savepoint can be read for as long as the savepoint exists.
        read_optimized: read base files only.
        threads: number of tasks that run at once; None to choose by the tasks and the machine.

    Returns:
        A lazy scan.

    Raises:
        InvalidError: an unknown column, an invalid condition, a time before the first write, or one whose
            files were deleted by a clean under a policy that retains commits or hours.
        UnsupportedError: a feature of the table that this release cannot read.
    """
    time = None if as_of is None else as_instant_time(as_of, facts.config.timezone)
    request = _Request(columns, where, time, read_optimized)
    facts, query = retry_on_change(facts, request.query)
    return scan_of_plan(query.output, facts, partial(request.draft, facts, query), threads)


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of a snapshot query."""

    columns: Sequence[str] | None
    where: Where
    time: str | None
    read_optimized: bool

    def query(self, facts: TableFacts) -> Query:
        """Check the query against a loaded table and return it."""
        if self.time is None:
            return query_of(facts, self.columns, self.where, InstantRange.of(facts.timeline))
        saved = facts_of_savepoint(facts, self.time)
        if saved is None:
            check_has_begun(facts, self.time)
            check_not_cleaned(facts, self.time)
        then = with_schema_of(saved or facts, self.time)
        instants = InstantRange.of(then.timeline, self.time)
        return query_of(then, self.columns, self.where, instants)

    def draft(self, first: TableFacts, known: Query, facts: TableFacts) -> Draft[Task]:
        """Return the plan for a loaded table; `known` is the query on the table that was loaded first."""
        query = known if facts is first else same_columns(known, self.query(facts))
        tasks, narrowing = snapshot_plan(query, read_optimized=self.read_optimized)
        if self.time is not None and query.facts.timeline is facts.timeline:
            check_versions_kept(query.facts, self.time)
        is_latest = self.time is None and not self.read_optimized
        skips = partial(query.skipping_for, is_latest=is_latest)
        return Draft(tasks, partial(is_needed, query.facts, as_of=self.time), narrowing, skips)


@dataclass(frozen=True, slots=True)
class Query:
    """A query that was checked against a table.

    Attributes:
        facts: the table.
        schema: all columns that a query may select.
        columns: columns of the result.
        where: the condition.
        instants: instants whose log blocks the query sees.
        keys: all record keys that rows of the condition can have; None for any.
        key_range: range of these keys, for the merge of sorted files; None for any.
        wording: the SQL of the condition, for errors; None if it was given as an expression.
    """

    facts: TableFacts
    schema: pa.Schema
    columns: tuple[str, ...]
    where: pc.Expression | None
    instants: InstantRange
    keys: tuple[str, ...] | None = None
    key_range: KeyRange | None = None
    wording: ConditionSql | None = None

    def partitions(self, paths: Sequence[str]) -> Sequence[Partition]:
        """Return those of some partitions that can hold rows of the query.

        Raises:
            InvalidError: the condition fails on the values of a partition.
        """
        try:
            return partitions_to_read(self.facts.scoped(paths), self.facts.config, self.schema, self.where)
        except InvalidError as error:
            raise (error if self.wording is None else self.wording.of(error)) from error.__cause__

    @property
    def has_history(self) -> bool:
        """Whether files may have columns under other names, as with schema-on-read evolution."""
        return self.facts.config.history is not None

    def skipping(self, *, is_latest: bool = False) -> DataSkipping | None:
        """Return what rules out files by the metadata table; None if it is not used.

        With schema-on-read evolution a file may have had another column under the same name.

        Args:
            is_latest: whether the query reads the latest rows, log files included.
        """
        metadata = None if self.where is None or self.has_history else self.facts.metadata
        if metadata is None or self.where is None:
            return None
        is_current = is_latest and not knows_later_writes(metadata, self.facts.timeline)
        table = self.facts.storage, self.facts.config
        sql = None if self.wording is None else self.wording.sql
        return DataSkipping(metadata, *table, self.schema, self.where, self.keys, is_current, sql)

    def skipping_for(
        self, where: pc.Expression, sql: str | None, *, is_latest: bool = False
    ) -> DataSkipping | None:
        """Return what rules out files for a condition besides that of the query; see `skipping`.

        Args:
            where: the condition.
            sql: it, or a weaker one, in SQL; None if that is not known.
            is_latest: whether the query reads the latest rows, log files included.
        """
        both = where if self.where is None else self.where & where
        keys = stored_keys(both, self.facts.config, self.schema)
        found = replace(self, where=both, keys=keys).skipping(is_latest=is_latest)
        return None if found is None else replace(found, sql=sql)

    @property
    def output(self) -> pa.Schema:
        """The columns of the result with their types."""
        return nullable(self.schema, self.columns)


def query_of(
    facts: TableFacts,
    columns: Sequence[str] | None,
    where: Where,
    instants: InstantRange,
) -> Query:
    """Check the arguments of a query against a table.

    Args:
        facts: the table.
        columns: columns of the result, in order, or one column; None for all.
        where: SQL text or an Arrow expression; None for all rows.
        instants: instants whose log blocks the query sees.

    Raises:
        InvalidError: an unknown column or an invalid condition.
        UnsupportedError: a feature of the table that this release cannot read.
    """
    check_readable(facts.config)
    schema = visible_schema(facts)
    requested = [columns] if isinstance(columns, str) else columns
    if requested is not None and not isinstance(requested, Iterable):
        raise InvalidError(f"The argument columns is {requested!r}. Pass a list of column names.")
    requested = None if requested is None else list(requested)
    if requested is not None:
        check_columns(requested, schema)
    names = tuple(schema.names if requested is None else dict.fromkeys(requested))
    condition = None if where is None else parse_where(where, schema)
    wording = None if where is None else condition_sql(where, condition)
    return Query(facts, schema, names, condition, instants, wording=wording)


def snapshot_tasks(query: Query) -> Sequence[ReadTask]:
    """Return the tasks of a snapshot query, one per file slice that can hold rows of it."""
    return snapshot_plan(query)[0]


def snapshot_plan(query: Query, *, read_optimized: bool = False) -> tuple[Sequence[ReadTask], Narrowing]:
    """Return the tasks of a snapshot query, one per slice that can hold rows of it, and what was left out.

    Args:
        query: the query.
        read_optimized: whether to read base files only.
    """
    facts = query.facts
    keys = stored_keys(query.where, facts.config, query.schema)
    of_range = (
        key_range(query.where, facts.config, query.schema) if keys is None and not query.has_history else None
    )
    query = replace(query, keys=keys, key_range=of_range)
    is_latest = query.instants.as_of is None and not read_optimized
    skipping = query.skipping(is_latest=is_latest)
    paths = scoped_paths(facts)
    partitions = query.partitions(paths)
    steps = [
        _step(PARTITIONS, "listed", paths, paths),
        _step(PARTITIONS, "path", paths, partitions),
    ]
    if skipping is not None and skipping.is_current:
        described = skipping.partitions(partitions)
        steps.append(_step(PARTITIONS, PARTITION_STATS, partitions, described))
        partitions = described
    listed = _candidates(query, partitions, read_optimized=read_optimized)
    buckets = _buckets(query) or _found_buckets(query, listed)
    candidates, narrowing = narrowed_slices(query, listed, skipping, buckets)
    tasks = _tasks(query, candidates)
    return tasks, replace(narrowing, steps=(*_skipping_steps(steps), *narrowing.steps))


def _candidates(
    query: Query, partitions: Sequence[Partition], *, read_optimized: bool
) -> Sequence[Candidate]:
    """Return the latest slices of partitions."""
    slices = query.facts.view.latest([each.path for each in partitions], query.instants.as_of)
    if isinstance(slices, LatestSlices):
        columns = slices.columns.without_logs() if read_optimized else slices.columns
        return LazyCandidates(columns, partitions)
    by_path = {each.path: each for each in partitions}
    return [
        Candidate(by_path[each.partition], replace(each, logs=()) if read_optimized else each)
        for each in slices
        if each.base or (each.logs and not read_optimized)
    ]


def _tasks(query: Query, candidates: Sequence[Candidate]) -> Sequence[ReadTask]:
    """Return the tasks that read slices; those of lazy candidates are lazy, too.

    Raises:
        UnsupportedError: this release does not know the record merger of the table.
    """
    if isinstance(candidates, LazyCandidates):
        if candidates.has_logs:
            check_mergeable(query.facts.config)
        return lazy_map(lambda each: task_of(query, each.partition, each.file_slice), candidates)
    if any(each.file_slice.logs for each in candidates):
        check_mergeable(query.facts.config)
    return [task_of(query, each.partition, each.file_slice) for each in candidates]


def narrowed_slices(
    query: Query,
    listed: Sequence[Candidate],
    skipping: DataSkipping | None,
    buckets: BucketPruning | FoundBuckets | None = None,
) -> tuple[Sequence[Candidate], Narrowing]:
    """Return those of some file slices that can hold rows of a query, and what was left out.

    Args:
        query: the query.
        listed: the file slices.
        skipping: rules slices out by the metadata table; None if it is not used.
        buckets: the buckets that can hold rows; None for any.
    """
    steps, left = [_step(SLICES, "listed", listed, listed)], listed
    rules: dict[str, Callable[[Sequence[Candidate]], Any]] = {}
    if buckets is not None:
        rules["bucket"] = partial(_in_buckets, buckets)
    if skipping is not None:
        rules |= skipping.rules()
    for name, rule in rules.items():
        kept = select_candidates(rule(left), left)
        steps.append(_step(SLICES, name, left, kept))
        left = kept
    if skipping is not None:
        steps += [Step(SLICES, name, 0, len(left), why) for name, why in skipping.unused.items()]
    where = query.where if query.wording is None else query.wording.sql
    text = None if where is None else str(where)
    if isinstance(listed, LazyCandidates):
        size_bytes = listed.size_bytes
    else:
        size_bytes = sum(each.file_slice.size_bytes for each in listed)
    return left, Narrowing(query.facts.listing, tuple(_skipping_steps(steps)), size_bytes, text)


def _in_buckets(buckets: BucketPruning | FoundBuckets, candidates: Sequence[Candidate]) -> Any:
    columns = CandidateColumns.of(candidates)
    return buckets.may_hold_each(columns.paths, columns.file_ids)


def _step(unit: str, by: str, before: Sequence[object], after: Sequence[object]) -> Step:
    """Return the step that left some of several things."""
    return Step(unit, by, len(before) - len(after), len(after))


def _skipping_steps(steps: Sequence[Step]) -> list[Step]:
    """Return the first step and the others that left something out, or say why they did not."""
    return [step for number, step in enumerate(steps) if number == 0 or step.skipped or step.note]


def may_hold(query: Query, groups: Collection[tuple[str, str]]) -> bool:
    """Return whether any of some file groups can hold rows of a query, as far as their names tell.

    Args:
        query: the query; it may be older than the file groups.
        groups: file groups, as partition and file id.
    """
    partitions = {each.path for each in query.partitions(sorted({path for path, _ in groups}))}
    buckets = _buckets(query)
    return any(
        path in partitions and (buckets is None or buckets.may_hold(path, file_id))
        for path, file_id in groups
    )


def _buckets(query: Query) -> BucketPruning | None:
    facts = query.facts
    table = BucketFacts(facts.storage, facts.config, query.instants)
    return bucket_pruning(query.where, query.schema, table)


def _found_buckets(query: Query, listed: Sequence[Candidate]) -> FoundBuckets | None:
    if query.keys is None or not listed or not has_bucket(listed[0].file_slice.file_id):
        return None
    table = BucketFacts(query.facts.storage, query.facts.config, query.instants)
    columns = CandidateColumns.of(listed)
    groups = list(zip(columns.paths.to_pylist(), columns.file_ids.to_pylist(), strict=True))
    return found_buckets(query.keys, table, groups, lambda place: listed[place].file_slice)


def task_of(query: Query, partition: Partition, file_slice: FileSlice) -> ReadTask:
    """Return the task that reads a file slice for a query."""
    facts = query.facts
    return ReadTask(
        facts.storage.spec,
        facts.config,
        file_slice,
        query.schema,
        query.columns,
        query.where,
        query.instants,
        None,
        partition.values,
        query.keys,
        wording=query.wording,
        key_range=query.key_range,
        remembers=is_lasting(facts.storage.spec.uri),
        by_position=facts.merges_by_position,
    )


def same_columns(known: Query, query: Query) -> Query:
    """Return a query on a table that was loaded again, with the columns that it first had.

    Raises:
        FilesCleanedError: the columns of the table have changed.
    """
    same = replace(query, columns=known.columns) if set(known.columns) <= set(query.schema.names) else query
    if not same.output.equals(known.output):
        raise FilesCleanedError(
            "After this query was planned, the columns of the table changed and files of the query were"
            " deleted. Run the query again.",
            table=query.facts.storage.spec.uri,
        )
    return same
