"""Run the validators of a write: SQL or functions that check what it is about to commit.

    table before ──┐                       ┌── SQL in the engine
                   ├── changed partitions ─┤                      ── failed? roll back, or warn
    and after    ──┘                       └── functions

The validators run under the table lock, so what they see is what the commit makes visible. Other writers
wait meanwhile. Hudi validates before it takes the lock, and sees base files only, so two writes that break
a rule together both pass. The rows are those of the changed partitions, as in Hudi. Two results are equal
if they have the same rows.

`staged_tables` returns the table as the write would leave it. The files of the write are on the storage,
and its instant is inflight. Readers see a table through a timeline and a listing; here both get the instant
as completed with the files of its metadata, in memory only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.config.keys.ingest import (
    EQUALITY,
    INEQUALITY,
    TABLE_VARIABLE,
    PreCommitValidators,
    registered_validator,
    simple_class_name,
)
from drawstring.engine.protocol import Engine
from drawstring.filegroups.columnar_view import FileColumns
from drawstring.filegroups.file_system_view import Listing, storage_listing, table_view
from drawstring.filegroups.read_task import InstantRange, ReadTask
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.arrow_dataset import ScannedDataset
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import FileStatus
from drawstring.model.instant import Instant, State
from drawstring.query.planner import query_of, snapshot_tasks
from drawstring.query.scan import Scan
from drawstring.query.table_state import TableFacts
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.fields import without_meta
from drawstring.timeline.schema import table_schema_json
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable, Transaction

_SHOWN_MAX: Final = 200
_log: Final = logging.getLogger("drawstring")


def validate_commit(
    transaction: Transaction, timeline: Timeline, metadata: CommitMetadata, settings: PreCommitValidators
) -> None:
    """Ask the validators of a write that is about to commit under the table lock.

    Args:
        transaction: the write; its files are on the storage.
        timeline: as it is now.
        metadata: what it is about to commit.
        settings: the validators.

    Raises:
        InvalidError: a validator fails, and its failure is not only to be logged.
    """
    before, after = staged_tables(transaction, timeline, metadata)
    engine, requested = transaction.locked.context.engine, transaction.instant.requested
    for name in settings.names:
        problem = _Asked(name, settings, before, after, engine, requested).problem()
        if problem is None:
            continue
        if settings.failure_policy == "WARN_LOG":
            _log.warning("The validator %s fails, and the commit %s goes on: %s.", name, requested, problem)
            continue
        raise InvalidError(
            f"The validator {name} fails: {problem}. Nothing was committed. Correct the rows, or the"
            " validator.",
            table=transaction.locked.context.storage.spec.uri,
            instant=requested,
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A validator that is asked about a commit."""

    name: str
    settings: PreCommitValidators
    before: StagedTable
    after: StagedTable
    engine: Engine
    requested: str

    def problem(self) -> str | None:
        """Return what is wrong, None if nothing is."""
        function = registered_validator(self.name)
        if function is not None:
            return self._of_function(function)
        kind = simple_class_name(self.name)
        for query in self.settings.queries[kind][1]:
            if kind == EQUALITY:
                problem = self._of_both(query, has_to_change=False)
            elif kind == INEQUALITY:
                problem = self._of_both(query, has_to_change=True)
            else:
                problem = self._of_value(query)
            if problem is not None:
                return problem
        return None

    def _of_function(self, function: Callable[[Any, Any], str | None]) -> str | None:
        try:
            found = function(self.before.scan(), self.after.scan())
        except DrawstringError:
            raise
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None if found is None else str(found).rstrip(".")

    def _of_both(self, query: str, *, has_to_change: bool) -> str | None:
        before, after = self._rows(query, self.before), self._rows(query, self.after)
        if (repr(before) != repr(after)) is has_to_change:
            return None
        if has_to_change:
            return f"the result of {query!r} stays {_shown(before)}"
        return f"the result of {query!r} is {_shown(after)} after the commit and {_shown(before)} before it"

    def _of_value(self, query: str) -> str | None:
        text, separator, expected = query.rpartition("#")
        if not separator:
            return f"the query {query!r} has no value behind #"
        rows = self._rows(text, self.after)
        if len(rows) != 1 or len(rows[0]) != 1:
            return f"the result of {text!r} is {_shown(rows)}, and not a single value"
        found = rows[0][0]
        return (
            None
            if _is_equal(found, expected.strip())
            else f"the result of {text!r} is {found}, not {expected}"
        )

    def _rows(self, query: str, table: StagedTable) -> list[tuple[Any, ...]]:
        """Return the rows of a query, sorted: those of a validation are few."""
        name = f"drawstring_staged_{self.requested}"
        result = self.engine.sql(query.replace(TABLE_VARIABLE, name), {name: table})
        return sorted(zip(*(column.to_pylist() for column in result.columns), strict=True), key=repr)


def _is_equal(found: Any, expected: str) -> bool:
    """Return whether a value has a text, as Java writes it, or is the same number."""
    if found is None or isinstance(found, bool):
        return found is not None and str(found).lower() == expected.lower()
    try:
        return str(found) == expected or Decimal(str(found)) == Decimal(expected)
    except InvalidOperation:
        return False


def _shown(rows: Sequence[tuple[Any, ...]]) -> str:
    text = ", ".join(str(row[0]) if len(row) == 1 else str(row) for row in rows) or "empty"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


@dataclass(frozen=True, slots=True)
class StagedTable:
    """The partitions that a write changes, before its commit or after it.

    Attributes:
        facts: the table in that state; its view has these partitions only.
    """

    facts: TableFacts

    @property
    def schema(self) -> pa.Schema:
        """The columns, meta columns included."""
        return self.scan().schema

    def scan(self, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> Scan:
        """Return some of its columns and rows."""
        facts = self.facts
        query = query_of(facts, columns, where, InstantRange.of(facts.timeline))
        return Scan(query.output, lambda: snapshot_tasks(query), table=facts.storage.spec.uri)

    def tasks(self) -> Sequence[ReadTask]:
        """Return the tasks that read its file slices."""
        return list(snapshot_tasks(query_of(self.facts, None, None, InstantRange.of(self.facts.timeline))))

    def dataset(self) -> ScannedDataset:
        """Return it as a dataset of Arrow."""
        return ScannedDataset(self.schema, lambda columns, where: self.scan(columns, where).to_reader())


def staged_tables(
    transaction: Transaction, timeline: Timeline, metadata: CommitMetadata
) -> tuple[StagedTable, StagedTable]:
    """Return the changed partitions before and after a commit, both with the columns after it.

    Args:
        transaction: the write; its files are on the storage.
        timeline: as it is now.
        metadata: what it is about to commit.
    """
    locked, instant = transaction.locked, transaction.instant
    context, config = locked.context, locked.config
    listing = context.listing(config, timeline) or storage_listing(context.storage)
    partitions = sorted({path for path, _ in metadata.touched})
    written = [FileStatus(stat.path, stat.size_bytes) for stat in metadata.stats]
    marked = frozenset(Markers(context.storage, instant.requested).files())
    files_before = _Staged(listing, partitions, marked, ())
    files_after = _Staged(listing, partitions, marked, written)
    completed = Instant(
        instant.requested,
        instant.action.completed_action,
        State.COMPLETED,
        locked.store.new_time(timeline) if config.layout.has_completion_times else None,
    )
    store = _WithPending(locked, completed, metadata)
    schema_json = metadata.schema_json or table_schema_json(context.storage, store, timeline, config)
    schema = without_meta(avro_to_arrow(schema_json)) if schema_json else pa.schema([])

    def state(now: Timeline, files: Listing) -> StagedTable:
        view = table_view(context.storage, config, now, store, files)
        return StagedTable(TableFacts(context.storage, config, now, store, view, schema, skips_data=False))

    return state(timeline, files_before), state(timeline.with_completed(completed), files_after)


class _WithPending(TimelineStore):
    """A timeline store that knows the metadata of one more instant."""

    def __init__(self, locked: LockedTable, instant: Instant, metadata: CommitMetadata) -> None:
        super().__init__(locked.context.storage, locked.config, locked.context.clock)
        self.recall(locked.store)
        self._commits[instant] = metadata


@dataclass(frozen=True, slots=True)
class _Staged:
    """The files of some partitions: those that are listed, and those of a write in place of what it marked.

    Attributes:
        listing: lists what was committed, and maybe files of the write.
        paths: the partitions.
        marked: paths of all files that tasks of the write began, among them those of failed attempts.
        written: the files that it commits.
    """

    listing: Listing
    paths: Sequence[str]
    marked: frozenset[str]
    written: Sequence[FileStatus]

    @property
    def is_complete(self) -> bool:
        """Return False: other partitions are left out."""
        return False

    def partitions(self) -> list[str]:
        return list(self.paths)

    def files(self, partition: str) -> list[FileStatus]:
        return [*self._listed(partition), *(each for each in self.written if each.folder == partition)]

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        return None

    def _listed(self, partition: str) -> Iterator[FileStatus]:
        own = {each.path for each in self.written}
        return (
            each
            for each in self.listing.files(partition)
            if each.path not in self.marked and each.path not in own
        )
