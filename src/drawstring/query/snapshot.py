"""Snapshot queries: the table as it is, as it was (`as_of`), or only its base files."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.filegroups.tasks import InstantRange, ReadTask, nullable
from drawstring.formats.clean_metadata import decode_clean
from drawstring.merge.choose import check_mergeable
from drawstring.model.clean import CleanMetadata, CleanPolicy
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action, Instant
from drawstring.query.buckets import BucketFacts, bucket_pruning
from drawstring.query.facts import TableFacts
from drawstring.query.key_conditions import stored_keys
from drawstring.query.names import check_columns
from drawstring.query.predicate import Where, parse_where
from drawstring.query.pruning import Partition, partitions_to_read
from drawstring.query.savepointed import facts_of_savepoint
from drawstring.query.scan import Scan
from drawstring.query.support import check_readable, schema_history, visible_schema
from drawstring.schema.history import SchemaHistory
from drawstring.timeline.archived import open_archive
from drawstring.timeline.instants import as_instant_time

_log = logging.getLogger("drawstring")


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
    time = None
    if as_of is not None:
        time = as_instant_time(as_of, facts.config.timezone)
        saved = facts_of_savepoint(facts, time)
        if saved is None:
            check_not_cleaned(facts, time)
        facts = _with_schema_of(saved or facts, time)
    query = query_of(facts, columns, where, InstantRange.of(facts.timeline, time), time)
    tasks = partial(snapshot_tasks, query, read_optimized=read_optimized)
    return Scan(query.output, tasks, threads, facts.storage.spec.uri)


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


def check_not_cleaned(facts: TableFacts, time: str) -> None:
    """Check that the files of a time are still there.

    A clean by commits says from when on they are. One that keeps the newest versions of each file group says
    no such thing, and as in Hudi the table answers with what is left of that time; the log warns then.
    What an archived clean took is not looked up: no time before it can be read.

    Raises:
        InvalidError: a clean removed files that the table had then, or may have.
    """
    found = _last_clean(facts)
    if found is None:
        _check_archived_cleans(facts, time)
        return
    instant, done = found
    if done.earliest and time < done.earliest:
        raise InvalidError(
            f"files of the table as of {time} were cleaned away: ask for {done.earliest} or later",
            table=facts.storage.spec.uri,
        )
    if done.policy == CleanPolicy.VERSIONS and not done.earliest and time < instant.requested:
        _log.warning(
            "%s: a clean at %s kept the newest versions of each file group only: rows of the table as of %s"
            " may be missing",
            facts.storage.spec.uri,
            instant.requested,
            time,
        )


def _check_archived_cleans(facts: TableFacts, time: str) -> None:
    first = facts.timeline.start
    if first is None or time >= first:
        return
    archived = open_archive(facts.storage, facts.config).completed(time)
    cleans = [each.requested for each in archived if each.action is Action.CLEAN and each.requested > time]
    if cleans:
        raise InvalidError(
            f"files of the table as of {time} may have been cleaned away at {cleans[-1]}:"
            f" ask for {first} or later",
            table=facts.storage.spec.uri,
        )


def _last_clean(facts: TableFacts) -> tuple[Instant, CleanMetadata] | None:
    """Return the last clean that deleted something."""
    for instant in reversed(facts.timeline.completed_of(Action.CLEAN)):
        if (data := facts.store.read(instant)) and (done := decode_clean(data)).took_something:
            return instant, done
    return None


def _with_schema_of(facts: TableFacts, time: str) -> TableFacts:
    """Return the facts with the schema of a time, where it is known."""
    then = facts.as_of(time)
    return then if len(then.schema) else facts
