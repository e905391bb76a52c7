"""Create, build, show and drop indexes in the metadata table (as Apache Hudi 1.2.0).

    record_index              where each record key is
    bloom_filters             the bloom filters of base files
    column_stats              bounds of columns by file
    secondary_index_<name>    the record keys of each value of a column; needs the record index
    expr_index_<name>         bounds, or a bloom filter, of an expression of a column by file

`table.indexes.create` builds an index under the table lock from the records that the table has. Indexing
builds it while writers go on. From then on every write updates it. `table_indexes` shows the indexes, and
why queries do without some of them.

Indexing:

    schedule   lock:     the definition of the index, and a plan: `<T>.indexing.requested`
    run        lease of the instant, held to the end; a hold on the files of the table
               lock:     inflight, empty file groups, registered as being built: writers add their records
               no lock:  the records of the files that the table had then ──> base files
               lock:     completed, registered as complete

The base files come before all log files in the order of the metadata table, whenever they are written. So
the index has nothing to catch up with. Writers of Hudi that began before the index did may not know of it:
then the plan has to run again. If the process dies, the plan stays. The next run begins again from the
start, or finishes what was complete.

The metadata table: writes create and update it. `create_metadata_table` and `delete_metadata_table` create
and delete it on request.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from drawstring.base.errors import ConflictError, CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table_config import TableConfig
from drawstring.expressions.columns import check_columns
from drawstring.formats.metadata.plans import encode_index_plan, encode_indexing
from drawstring.metadata.building import BegunPartition, fill_partition
from drawstring.metadata.column_ranges import COLUMN_STATS, PARTITION_STATS
from drawstring.metadata.definitions import definitions, is_partitioned_index, reason_not_used
from drawstring.metadata.maintenance import BUILD, has_files, maintainers_of, pending_plans
from drawstring.metadata.partitions.column_stats import statistics_maintainers
from drawstring.metadata.partitions.expression_index import EXPRESSION_INDEX_PREFIX as EXPRESSION_PREFIX
from drawstring.metadata.partitions.expression_index import (
    FUNCTION,
    IDENTITY,
    SETTINGS,
    ExpressionIndex,
    ExpressionIndexMaintainer,
    is_indexable,
)
from drawstring.metadata.partitions.expression_index import KINDS as EXPRESSION_KINDS
from drawstring.metadata.partitions.maintainer import PartitionMaintainer, TableFacts
from drawstring.metadata.partitions.record_index import RecordIndexMaintainer
from drawstring.metadata.partitions.secondary_index import PREFIX, SecondaryIndexMaintainer, form_of
from drawstring.metadata.table import (
    BLOOM_FILTERS,
    FILES,
    METADATA_FOLDER,
    RECORD_INDEX,
    inflight_partitions,
    open_metadata_table,
)
from drawstring.metadata.writer import is_of_drawstring
from drawstring.model.index import TableIndex
from drawstring.model.instant import Action, Instant, State
from drawstring.model.plans import IndexedPartition, IndexPlan
from drawstring.query.data_skipping import derived_column
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties import load_config
from drawstring.timeline.schema import table_schema
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.foreign_features import switch_off_metadata_table
from drawstring.txn.heartbeat import describe_instant, runs_elsewhere
from drawstring.txn.holds import Holds
from drawstring.txn.locks.service_lease import service_lease
from drawstring.txn.locks.table_lock import conflict_if_lost
from drawstring.txn.plan_transitions import request_plan
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover

KINDS: Final = {PREFIX: "secondary_index", EXPRESSION_PREFIX: "expression_index"}
"""Kinds of indexes of a column, by the prefix of their names."""


def table_indexes(context: TableContext) -> list[TableIndex]:
    """Return the indexes of a table, by name, planned ones among them.

    Raises:
        CorruptTableError: the properties, the definitions of the indexes or a plan are damaged.
    """
    config, known = load_config(context.storage), definitions(context.storage)
    store = TimelineStore(context.storage, config, context.clock)
    timeline = store.load()
    planned = {name for _, plan in pending_plans(store, timeline) for name in plan.names}
    complete = {*config.metadata_partitions} - {FILES}
    is_of_expression = any(name.startswith(EXPRESSION_PREFIX) for name in complete)
    schema = table_schema(context.storage, store, timeline, config) if is_of_expression else pa.schema([])
    unused = {name: _reason_not_used(name, known, config, schema) for name in complete}
    return [
        _index(name, known.get(name, {}), is_complete=name in complete, unused=unused.get(name))
        for name in sorted(complete | planned)
    ]


def _index(name: str, defined: Mapping[str, Any], *, is_complete: bool, unused: str | None) -> TableIndex:
    """Return an index as its definition, if there is one, describes it."""
    kind = next((kind for prefix, kind in KINDS.items() if name.startswith(prefix)), name)
    fields = tuple(defined.get("sourceFields") or ())
    using, options = None, {}
    if name.startswith(EXPRESSION_PREFIX):
        using = str(defined.get("indexType")).lower()
        options = {str(key): str(value) for key, value in (defined.get("indexOptions") or {}).items()}
    return TableIndex(name, kind, fields, is_partitioned_index(defined), is_complete, unused, using, options)


def _reason_not_used(
    name: str, known: Mapping[str, Mapping[str, Any]], config: TableConfig, schema: pa.Schema
) -> str | None:
    """Return why queries do without an index that is built; None if they use it."""
    if name == RECORD_INDEX or name.startswith(PREFIX):
        return reason_not_used(known)
    if not name.startswith(EXPRESSION_PREFIX):
        return None
    derived = derived_column(ExpressionIndex.of(known.get(name, {})), schema, config)
    return derived if isinstance(derived, str) else None


_WITHOUT_COLUMN: Final = (RECORD_INDEX, BLOOM_FILTERS, COLUMN_STATS)
_SECONDARY: Final = "secondary_index"
_USING: Final = (_SECONDARY, *EXPRESSION_KINDS)
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """An index to create.

    Attributes:
        name: `record_index`, `bloom_filters`, `column_stats`, or the name of a secondary or expression index.
        column: the column of a secondary or expression index; None for the others.
        using: what an index of a column is: `secondary_index`, or `column_stats` or `bloom_filters` of an
            expression; None for a secondary index.
        is_partitioned: whether a record index has the keys of each partition by themselves.
        settings: of an expression index, by Hudi's names: `expr` names its function.
    """

    name: str
    column: str | None = None
    using: str | None = None
    is_partitioned: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_expression(self) -> bool:
        """Whether the index is of an expression."""
        return self.column is not None and self.using in EXPRESSION_KINDS

    @property
    def partition(self) -> str:
        """The partition of the metadata table that holds the index.

        Raises:
            InvalidError: the name cannot be that of an index, or the index needs a column, or no column.
        """
        if not isinstance(self.name, str):
            raise InvalidError(f"{self.name!r} cannot be the name of an index. Give it as text.")
        if self.using not in (None, *_USING):
            raise InvalidError(f"An index cannot use {self.using!r}. Use one of {', '.join(_USING)}.")
        if self.name in _WITHOUT_COLUMN and self.column is None:
            return self.name
        if self.name in _WITHOUT_COLUMN:
            raise InvalidError(f"The index {self.name} is of no single column. Leave the column out.")
        prefix = EXPRESSION_PREFIX if self.is_expression else PREFIX
        partition = prefix + self.name.removeprefix(prefix)
        if not _NAME.fullmatch(self.name) or partition == prefix:
            raise InvalidError(f"{self.name!r} cannot be the name of an index. Use letters, digits and _.")
        if self.column is None:
            raise InvalidError(
                f"The index {self.name} needs a column. Name it; without one there are only the indexes"
                f" {', '.join(_WITHOUT_COLUMN)}."
            )
        if self.settings and not self.is_expression:
            raise InvalidError(
                f"{', '.join(sorted(self.settings))} belong to an expression index. Create one with"
                f" using={' or using='.join(repr(each) for each in EXPRESSION_KINDS)}."
            )
        return partition


def index_settings(options: Mapping[str, Any] | None) -> tuple[dict[str, str], dict[str, Any]]:
    """Divide options into settings of an expression index, and options of the table.

    Args:
        options: by their keys.
    """
    given = options or {}
    settings = {name: str(value) for name, value in given.items() if name in SETTINGS}
    return settings, {name: value for name, value in given.items() if name not in SETTINGS}


def create_index(context: TableContext, options: WriteOptions, request: IndexRequest) -> TableIndex:
    """Build an index, and have all writes keep it.

    Args:
        context: the open table.
        options: of writes: lock wait, policy for failed writes.
        request: the index.

    Returns:
        The index.

    Raises:
        ConflictError: another writer holds the table, or is about to commit to it.
        InvalidError: there is such an index, no such column, or the index cannot be of this column or table.
        UnsupportedError: the version of the table has no such indexes.
        MetadataTableError: the metadata table is damaged.
    """
    with lock_table(context, options.locking) as locked:
        locked, wanted = prepared(locked, options, request)
        _check_settled(locked)
        locked.keeper.add(wanted)
    return next(each for each in table_indexes(context) if each.name == request.partition)


def prepared(
    locked: LockedTable, options: WriteOptions, request: IndexRequest
) -> tuple[LockedTable, Mapping[str, PartitionMaintainer]]:
    """Return a table that is ready for a new index, and what keeps it; see `table.indexes.create`.

    Args:
        locked: the locked table.
        options: of writes: policy for failed writes.
        request: the index.
    """
    context = locked.context
    _new_partition(locked, request)
    wanted = _maintainers(locked, options, request)
    locked = recover(locked, options.failed_writes)
    if not locked.config.metadata_partitions and not locked.keeper.build(locked.config):
        plans = _blocking_instants(locked)
        names = "; ".join(describe_instant(context.storage, context.clock, each) for each in plans)
        raise ConflictError(
            f"Actions are pending ({names}), so the metadata table, which holds the index, cannot be"
            " built now. Run them or roll them back first.",
            table=context.storage.spec.uri,
            instant=plans[0].requested if plans else None,
        )
    return locked, wanted


def _blocking_instants(locked: LockedTable) -> tuple[Instant, ...]:
    """Return the pending instants for which building the metadata table waits."""
    timeline = locked.store.load()
    waits_for_all = locked.config.rules.names_logs_by_slice
    return timeline.pending() if waits_for_all else timeline.pending_of(Action.CLUSTERING)


def drop_index(context: TableContext, options: WriteOptions, name: str) -> None:
    """Delete an index.

    Args:
        context: the open table.
        options: of writes: lock wait.
        name: of the index, with or without `secondary_index_` or `expr_index_`.

    Raises:
        ConflictError: another writer holds the table.
        InvalidError: there is no such index, or another one needs it.
    """
    with lock_table(context, options.locking) as locked:
        store, context = locked.store, locked.context
        plans = dict(pending_plans(store, store.load()))
        planned = [each for plan in plans.values() for each in plan.names]
        known = [each for each in (*locked.config.metadata_partitions, *planned) if each != FILES]
        names = (name, *(prefix + name for prefix in KINDS))
        partition = next((each for each in names if each in known), None)
        if partition is None:
            has = f"It has {', '.join(sorted(known))}." if known else "It has none."
            raise InvalidError(f"The table has no index {name}. {has}")
        dependents = [each for each in known if partition == RECORD_INDEX and each.startswith(PREFIX)]
        if dependents:
            raise InvalidError(f"{', '.join(dependents)} cannot be used without {name}. Drop that first.")
        also = {PARTITION_STATS} & {*known} if partition == COLUMN_STATS else set()
        for instant, plan in plans.items():
            if partition in plan.names:
                _give_up(locked, instant)
                also |= {*plan.names}
        locked.keeper.drop({partition, *also})


def _give_up(locked: LockedTable, instant: Instant) -> None:
    """Take an indexing action off the timeline; a process that runs it notices when it completes.

    Raises:
        ConflictError: it has just completed.
    """
    locked.lock.check()
    if isinstance(locked.store.fence(instant), Instant):
        raise ConflictError("The index has just been built. Drop it again.", instant=instant.requested)
    locked.store.remove_pending(instant)
    locked.store.forget_claim(instant)


def _new_partition(locked: LockedTable, request: IndexRequest) -> None:
    """Check that a table can have a new index.

    Raises:
        InvalidError: there is such an index, built or planned.
    """
    config, partition = locked.config, request.partition
    _check_version(config, request)
    for instant, plan in pending_plans(locked.store, locked.store.load()):
        if partition in plan.names:
            raise InvalidError(
                f"The indexing {instant.requested} builds the index {partition}. Run it, or drop the index."
            )
    if partition in config.metadata_partitions:
        raise InvalidError(f"The table has an index {partition}. Drop it first, or choose another name.")
    if request.is_partitioned and (partition != RECORD_INDEX or not config.partition_fields):
        raise InvalidError("Only a record index of a partitioned table can have its keys by partition.")


def _maintainers(
    locked: LockedTable, options: WriteOptions, request: IndexRequest
) -> Mapping[str, PartitionMaintainer]:
    """Return what keeps a new index, by partition of the metadata table."""
    config, partition, column = locked.config, request.partition, request.column
    if partition == RECORD_INDEX:
        return {partition: RecordIndexMaintainer(request.is_partitioned)}
    if partition == COLUMN_STATS:
        return statistics_maintainers(options.metadata, config)
    if column is None:
        return maintainers_of([partition])
    timeline = locked.store.load()
    schema = table_schema(locked.context.storage, locked.store, timeline, config)
    check_columns([column], schema)
    if request.is_expression:
        index = _expression_index(request, config, schema)
        return {partition: ExpressionIndexMaintainer(partition, index)}
    _check_column(schema, config, column)
    if RECORD_INDEX not in config.metadata_partitions:
        raise InvalidError(
            f"A secondary index needs the record index, which the table does not have. Create {RECORD_INDEX}"
            " first."
        )
    return {partition: SecondaryIndexMaintainer(partition, column)}


def _expression_index(request: IndexRequest, config: TableConfig, schema: pa.Schema) -> ExpressionIndex:
    """Return the expression index that is wanted.

    Raises:
        InvalidError: its function cannot be that of an index, or not of the column.
        UnsupportedError: this release cannot compute it.
    """
    settings = {name: value for name, value in request.settings.items() if name != FUNCTION}
    index = ExpressionIndex(
        request.partition,
        request.using or COLUMN_STATS,
        request.column or "",
        request.settings.get(FUNCTION, IDENTITY),
        settings,
        config.rules.has_index_versions,
    )
    index.check()
    if not is_indexable(index, schema, config):
        kind = schema.field(index.column).type
        raise InvalidError(
            f"{index.function}({index.column}) cannot have an index of {index.kind}: the column is {kind}."
            " Choose another function or column."
        )
    return index


def _check_column(schema: pa.Schema, config: TableConfig, column: str) -> None:
    if form_of(schema, config, column) is None:
        raise InvalidError(
            f"The column {column} of type {schema.field(column).type} cannot have a secondary index. Those of"
            " texts, whole numbers, floats, dates and timestamps (microseconds, UTC) can, if their values are"
            " in the files."
        )


def _check_version(config: TableConfig, request: IndexRequest) -> None:
    if not config.rules.has_all_indexes and (
        request.column is not None or request.is_partitioned or request.partition == PARTITION_STATS
    ):
        raise UnsupportedError(
            f"A table of version {config.version} can only have the indexes {', '.join(_WITHOUT_COLUMN)} of"
            " the whole table. Choose one of these, or upgrade the table first: `drawstring versions"
            " upgrade`."
        )


def check_background(config: TableConfig) -> None:
    """Check that the version of a table can have indexes that are built while writers go on.

    Raises:
        UnsupportedError: it cannot.
    """
    if not config.rules.has_all_indexes:
        raise UnsupportedError(
            "Indexes are built while writers go on in tables of version 8 and later only, and the table has"
            f" version {config.version}. Create the index at once (`table.indexes.create`,"
            " `drawstring indexes create`); writes wait meanwhile."
            " Or upgrade the table first: `drawstring versions upgrade`."
        )


def _check_settled(locked: LockedTable) -> None:
    """Make sure that no write is about to commit whose part of the metadata table is written already.

    Raises:
        ConflictError: there is one; its part of the new index would be missing.
    """
    context = locked.context
    timeline = locked.store.load()
    config = load_config(context.storage)
    metadata = open_metadata_table(context.storage, config, timeline, context.clock)
    for each in timeline.pending():
        if (known := metadata.own_timeline.find(each.requested)) is not None and known.is_completed:
            raise ConflictError(
                "Another write is about to complete:"
                f" {describe_instant(context.storage, context.clock, each)}. Create"
                " the index when it is done.",
                table=context.storage.spec.uri,
                instant=each.requested,
            )


_HOLD_HOURS: Final = 24.0
_REMOVING: Final = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
_NEVER: Final = "00000000000000000"
_log = logging.getLogger("drawstring")


def schedule_index(context: TableContext, options: WriteOptions, request: IndexRequest) -> str:
    """Put the plan of an index on the timeline, which any process may run.

    Args:
        context: the open table.
        options: of writes: lock wait, policy for failed writes.
        request: the index.

    Returns:
        The requested time of the indexing action.

    Raises:
        ConflictError: another writer holds the table.
        InvalidError: there is such an index, or it cannot be of this column or table.
        UnsupportedError: the version of the table has no such indexes, or builds none in the background.
        MetadataTableError: the metadata table is damaged.
    """
    with lock_table(context, options.locking) as locked:
        check_background(locked.config)
        locked, wanted = prepared(locked, options, request)
        for maintainer in wanted.values():
            maintainer.define(context.storage, load_config(context.storage))
        timeline = locked.store.load()
        plan = IndexPlan(tuple(IndexedPartition(name, _up_to(timeline)) for name in sorted(wanted)))
        time = locked.store.new_time(timeline)
        return request_plan(locked, Action.INDEXING, time, encode_index_plan(plan)).requested


def run_indexing(
    context: TableContext, options: WriteOptions, requested: str | None = None
) -> list[TableIndex]:
    """Run pending indexing actions, while writers go on.

    Args:
        context: the open table.
        options: of writes: lock wait.
        requested: requested time of one; None for all that no other process runs.

    Returns:
        The indexes that were built.

    Raises:
        ConflictError: another process runs it or dropped the index, or another writer holds the table.
        InvalidError: there is no such action.
        CorruptTableError: a file of the table is missing or damaged.
    """
    built: set[str] = set()
    with lock_table(context, options.locking) as locked:
        built |= locked.keeper.settle()
        pending = [instant.requested for instant in locked.store.load().pending_of(Action.INDEXING)]
    if requested is not None and requested not in pending:
        raise InvalidError(
            f"There is no pending indexing {requested}. Pending are: {', '.join(pending) or 'none'}."
        )
    for each in pending if requested is None else [requested]:
        with service_lease(context.storage, context.clock, context.ids, each) as lease:
            if lease is not None:
                with conflict_if_lost(lease):
                    built.update(_run(context, options, each, lease.check))
                lease.forget()
            elif requested is not None:
                raise runs_elsewhere(context, "indexing", each, None, "Wait until it is done.")
    return [each for each in table_indexes(context) if each.name in built]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A run of a plan by this process.

    Attributes:
        instant: inflight.
        fence: the claim on it, if another process tried before.
        plan: the partitions.
        begun: the partitions with empty file groups; None if they are complete.
        early: requested times of what was pending then.
        known: requested times of all instants then.
    """

    instant: Instant
    fence: Fence | None
    plan: IndexPlan
    begun: tuple[BegunPartition, ...] = ()
    early: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()


def _run(
    context: TableContext, options: WriteOptions, requested: str, check: Callable[[], None]
) -> Collection[str]:
    with ExitStack() as ends:
        with lock_table(context, options.locking) as locked:
            ends.enter_context(_files_held(context))
            attempt = _claim(recover(locked, options.failed_writes), requested)
            if attempt is None:  # a process that died had decided to complete it
                return locked.keeper.settle()
        storage, clock, ids = context.storage, context.clock, context.ids
        with _conflict_if_removed(context, attempt):
            paths = [path for each in attempt.begun for path in fill_partition(storage, clock, ids, each)]
        with lock_table(context, options.locking) as locked:
            check()
            _complete(locked, attempt, paths)
        return attempt.plan.names


@contextmanager
def _conflict_if_removed(context: TableContext, attempt: _Attempt) -> Iterator[None]:
    """Blame missing files on what removed files of the table meanwhile.

    Raises:
        ConflictError: something did.
    """
    try:
        yield
    except (CorruptTableError, FileNotFoundError) as error:
        store = TimelineStore(context.storage, load_config(context.storage), context.clock)
        removing = (each for each in store.load().instants if each.action in _REMOVING)
        later = next((each for each in removing if each.requested not in attempt.known), None)
        if later is None:
            raise
        raise ConflictError(
            f"The {later.action} {later.requested} removed files that the index is built of. Run the indexing"
            " again, or schedule it again if it is not pending.",
            instant=attempt.instant.requested,
        ) from error


@contextmanager
def _files_held(context: TableContext) -> Iterator[None]:
    """Keep cleaning and archiving of drawstring from the files of the table, older ones included."""
    holds = Holds(context.storage, context.clock, context.ids)
    hold = holds.put(f"indexing-{context.ids.uuid()}", _NEVER, _HOLD_HOURS, is_scan=True)
    try:
        yield
    finally:
        holds.release(hold.name)


def _claim(locked: LockedTable, requested: str) -> _Attempt | None:
    """Begin a plan, from the beginning if a process died; None if that is complete by now."""
    timeline = locked.store.load()
    plans = dict(pending_plans(locked.store, timeline))
    instant = next((each for each in plans if each.requested == requested), None)
    if instant is None:
        raise ConflictError(
            f"The indexing {requested} is not pending any more: another process completed or dropped it. Look"
            " at the indexes of the table, and schedule it again if it is missing.",
            instant=requested,
        )
    plan, fence = plans[instant], None
    if instant.state is State.INFLIGHT:
        taken = locked.store.fence(instant)
        if isinstance(taken, Instant):
            return None
        fence = taken
    begun = locked.keeper.begin(maintainers_of(plan.names))
    if instant.state is State.REQUESTED:
        instant = locked.store.start(instant)
    early = frozenset(each.requested for each in timeline.pending() if each.action is not Action.INDEXING)
    built = tuple(IndexedPartition(each.name, _up_to(timeline), {BUILD: each.requested}) for each in begun)
    known = frozenset(each.requested for each in timeline.instants)
    return _Attempt(instant, fence, IndexPlan(built), tuple(begun), early, known)


def _complete(locked: LockedTable, attempt: _Attempt, paths: Sequence[str]) -> None:
    """Complete an attempt, so that readers use the index."""
    context, requested = locked.context, attempt.instant.requested
    timeline = locked.store.load()
    registered = inflight_partitions(load_config(context.storage))
    is_pending = any(each.requested == requested for each in timeline.pending_of(Action.INDEXING))
    gone = not all(has_files(context.storage, each.name, each.requested) for each in attempt.begun)
    if not is_pending or gone or not {*attempt.plan.names} <= {*registered}:
        raise ConflictError(
            f"{', '.join(attempt.plan.names)} was dropped, or the table restored, while it was built."
            f" {'Run the indexing again.' if is_pending else 'Schedule it again.'}",
            instant=requested,
        )
    _check_early_writes(locked, attempt, timeline)
    locked.lock.check()
    facts = TableFacts(context.storage, load_config(context.storage), context.clock)
    metadata = open_metadata_table(facts.storage, facts.config, timeline, facts.clock).with_building()
    for each in attempt.begun:
        each.initial.complete(facts, metadata)
    locked.store.complete(attempt.instant, encode_indexing(attempt.plan), attempt.fence)
    locked.keeper.finish(attempt.plan.names)
    _log.info("Built %s of %d files.", ", ".join(attempt.plan.names), len(paths))


def _check_early_writes(locked: LockedTable, attempt: _Attempt, timeline: Timeline) -> None:
    """Make sure that no writer of another engine, which began before the index did, left it out.

    Writers of drawstring look for the partitions when they commit.

    Raises:
        ConflictError: one may have done so, or may still do so.
    """
    context = locked.context
    config = load_config(context.storage)
    metadata = open_metadata_table(context.storage, config, timeline, context.clock)
    for instant in metadata.own_timeline.instants:
        if instant.requested in attempt.early and instant.action is Action.DELTA_COMMIT:
            if instant.is_completed and is_of_drawstring(metadata.store.commit_metadata(instant)):
                continue
            raise ConflictError(
                f"Another engine began the write {instant.requested} before the index, and may have left it"
                " out. Run the indexing again when that write is complete.",
                instant=attempt.instant.requested,
            )


def _up_to(timeline: Timeline) -> str:
    """Return the requested time of the last write before which none is pending."""
    first = min((each.requested for each in timeline.pending_writes()), default=None)
    writes = (each.requested for each in timeline.writes() if first is None or each.requested < first)
    return max(writes, default=_NEVER)


def metadata_address(context: TableContext) -> str:
    """Return the address of the metadata table of a table."""
    return f"{context.storage.spec.uri}/{METADATA_FOLDER}"


def create_metadata_table(context: TableContext, options: WriteOptions) -> None:
    """Build the metadata table of a table that has none.

    Args:
        context: the table.
        options: of writes: lock, policy for failed writes.

    Raises:
        ConflictError: another writer holds the table, or pending actions are in the way.
        InvalidError: the table has one.
    """
    with lock_table(context, options.locking) as locked:
        if locked.config.metadata_partitions:
            raise InvalidError(
                f"The table has one already: {metadata_address(context)}. Delete it first to build it anew."
            )
        locked = recover(locked, options.failed_writes)
        if not locked.keeper.build(locked.config):
            raise ConflictError(
                "Actions are pending, so the metadata table cannot be built now. Run them or roll them back"
                " first."
            )


def delete_metadata_table(context: TableContext, options: WriteOptions) -> bool:
    """Delete the metadata table of a table, with its indexes; the next write that keeps one builds it anew.

    Args:
        context: the table.
        options: of writes: lock.

    Returns:
        Whether the table had one.

    Raises:
        ConflictError: another writer holds the table.
    """
    with lock_table(context, options.locking) as locked:
        return switch_off_metadata_table(context.storage, locked.config, context.clock) is not None
