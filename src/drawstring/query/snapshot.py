"""Snapshot queries: the table as it is, as it was (`as_of`), or only its base files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError, OutrunError
from drawstring.expressions.column_names import check_columns
from drawstring.expressions.predicate import Where, parse_where
from drawstring.filegroups.read.tasks import InstantRange, ReadTask, nullable
from drawstring.merge.choose import check_mergeable
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action
from drawstring.query.bucket_pruning import BucketFacts, bucket_pruning
from drawstring.query.cleaned_files import Deleted, cleans_of, is_needed
from drawstring.query.facts import TableFacts
from drawstring.query.key_conditions import stored_keys
from drawstring.query.partition_pruning import Partition, partitions_to_read
from drawstring.query.replanning import Draft, Task, settled
from drawstring.query.savepoint_view import facts_of_savepoint
from drawstring.query.scan import Scan, scan_of_plan
from drawstring.query.support import check_readable, schema_history, visible_schema
from drawstring.schema.history import SchemaHistory
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.instants import as_instant_time


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
        columns: columns in the order wanted; None for all, meta columns included.
        where: SQL text or an Arrow expression; None for all rows.
        as_of: an instant or a date-time: the last instant requested up to it is seen; None for now. An
            instant with a savepoint can be read for as long as that keeps its files.
        read_optimized: leave log files out.
        threads: tasks that run at once; None for as many as the machine is good for.

    Returns:
        A lazy scan.

    Raises:
        InvalidError: an unknown column, a bad condition, or a time whose files were cleaned away by commits.
        UnsupportedError: a feature of the table that this release cannot read.
    """
    time = None if as_of is None else as_instant_time(as_of, facts.config.timezone)
    asked = _Asked(columns, where, time, read_optimized)
    facts, query = settled(facts, asked.query)
    return scan_of_plan(query.output, facts, partial(asked.draft, facts, query), threads)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a snapshot query asks for."""

    columns: Sequence[str] | None
    where: Where
    time: str | None
    read_optimized: bool

    def query(self, facts: TableFacts) -> Query:
        """Return the checked query on one look at the table."""
        if self.time is None:
            return query_of(facts, self.columns, self.where, InstantRange.of(facts.timeline))
        saved = facts_of_savepoint(facts, self.time)
        if saved is None:
            check_not_cleaned(facts, self.time)
        then = _with_schema_of(saved or facts, self.time)
        instants = InstantRange.of(then.timeline, self.time)
        return query_of(then, self.columns, self.where, instants, self.time)

    def draft(self, first: TableFacts, known: Query, facts: TableFacts) -> Draft[Task]:
        """Return the tasks on one look at the table; the query is known of the first."""
        query = known if facts is first else same_columns(known, self.query(facts))
        tasks = snapshot_tasks(query, read_optimized=self.read_optimized)
        if self.time is not None and query.facts.timeline is facts.timeline:
            check_versions_kept(query.facts, self.time)
        return Draft(tasks, partial(is_needed, query.facts, as_of=self.time))


@dataclass(frozen=True, slots=True)
class Query:
    """A checked selection on a table.

    Attributes:
        facts: the table.
        schema: all columns that may be asked for.
        columns: columns of the result.
        where: the condition.
        instants: which log blocks count.
        history: versions of the schema, for a table that evolved it on read.
        keys: record keys that rows of the condition can have at most; None for any.
    """

    facts: TableFacts
    schema: pa.Schema
    columns: tuple[str, ...]
    where: pc.Expression | None
    instants: InstantRange
    history: SchemaHistory | None
    keys: tuple[str, ...] | None = None

    @property
    def output(self) -> pa.Schema:
        """The columns of the result with their types."""
        return nullable(self.schema, self.columns)


def query_of(
    facts: TableFacts,
    columns: Sequence[str] | None,
    where: Where,
    instants: InstantRange,
    schema_time: str | None = None,
) -> Query:
    """Check what a query wants against a table.

    Args:
        facts: the table.
        columns: columns in the order wanted, or one column; None for all.
        where: SQL text or an Arrow expression; None for all rows.
        instants: which log blocks count.
        schema_time: the time whose schema `facts` tell; None for now.

    Raises:
        InvalidError: an unknown column or a bad condition.
        UnsupportedError: a feature of the table that this release cannot read.
    """
    check_readable(facts.config)
    schema = visible_schema(facts)
    asked = [columns] if isinstance(columns, str) else columns
    if asked is not None and not isinstance(asked, Iterable):
        raise InvalidError(f"columns are a list of names, not {asked!r}")
    asked = None if asked is None else list(asked)
    check_columns(asked or (), schema)
    wanted = tuple(schema.names if asked is None else dict.fromkeys(asked))
    history = schema_history(facts, schema_time)
    return Query(facts, schema, wanted, parse_where(where, schema), instants, history)


def snapshot_tasks(query: Query, *, read_optimized: bool = False) -> list[ReadTask]:
    """Return the tasks of a snapshot query: one for each file slice that may hold rows of it."""
    facts = query.facts
    table = BucketFacts(facts.storage, facts.config, query.instants)
    buckets = bucket_pruning(query.where, query.schema, table)
    query = replace(query, keys=stored_keys(query.where, facts.config, query.schema))
    found = []
    for partition in partitions_to_read(facts.view.partitions(), facts.config, query.schema, query.where):
        for file_slice in facts.view.slices(partition.path, query.instants.as_of):
            wanted = replace(file_slice, logs=()) if read_optimized else file_slice
            if (wanted.base or wanted.logs) and (buckets is None or buckets.may_hold(wanted)):
                found.append(task_of(query, partition, wanted))
    return found


def task_of(query: Query, partition: Partition, file_slice: FileSlice) -> ReadTask:
    """Return the task that reads a slice for a query.

    Raises:
        UnsupportedError: its records merge in a way that is not known.
    """
    facts = query.facts
    if file_slice.logs:
        check_mergeable(facts.config)
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
        query.history,
        query.keys,
    )


def same_columns(known: Query, query: Query) -> Query:
    """Return a query on a later look at the table with the columns that it had before.

    Raises:
        OutrunError: the table has other columns now.
    """
    asked = replace(query, columns=known.columns) if set(known.columns) <= set(query.schema.names) else query
    if not asked.output.equals(known.output):
        raise OutrunError(
            "The columns of the table were changed after this query was planned, and the files that it was to"
            " read were deleted: run the query again.",
            table=query.facts.storage.spec.uri,
        )
    return asked


def check_not_cleaned(facts: TableFacts, time: str) -> None:
    """Check that the files of a time are still there, as far as cleans by commits or by hours say.

    What an archived clean took is not looked up: no time before it can be read.

    Raises:
        InvalidError: a clean removed files that the table had then, or is about to.
    """
    cleans = cleans_of(facts.store, facts.timeline, after=time)
    earliest = next((each.earliest for each in cleans if each.earliest), "")
    if earliest and time < earliest:
        raise _cleaned(facts, time, earliest)
    first = facts.timeline.start
    if earliest or first is None or time >= first:
        return
    archived = open_archive(facts.storage, facts.config).completed(time)
    then = [each.requested for each in archived if each.action is Action.CLEAN and each.requested > time]
    if then:
        raise InvalidError(
            f"files of the table as of {time} may have been cleaned away at {then[-1]}:"
            f" ask for {first} or later",
            table=facts.storage.spec.uri,
        )


def check_versions_kept(facts: TableFacts, time: str) -> None:
    """Check that cleans which count versions of file groups left the slices of a time.

    Args:
        facts: the table as of the time.
        time: an instant.

    Raises:
        InvalidError: a clean removed files that the table had then, or is about to.
    """
    cleans = [each for each in cleans_of(facts.store, facts.timeline, after=time) if not each.earliest]
    if is_needed(facts, Deleted.by(cleans), time):
        raise _cleaned(facts, time, cleans[0].last_completed)


def _cleaned(facts: TableFacts, time: str, earliest: str) -> InvalidError:
    return InvalidError(
        f"files of the table as of {time} were cleaned away: ask for {earliest} or later, and keep more with"
        " hoodie.clean.commits.retained, or by table.hold() or a savepoint, what is to be read later",
        table=facts.storage.spec.uri,
    )


def _with_schema_of(facts: TableFacts, time: str) -> TableFacts:
    """Return the facts with the schema of a time, where it is known."""
    then = facts.as_of(time)
    return then if len(then.schema) else facts
