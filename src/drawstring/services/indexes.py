"""Indexes in the metadata table: created, dropped and shown, under the names that Hudi gives them.

    record_index              where each record key is
    bloom_filters             the bloom filters of base files
    column_stats              bounds of columns by file
    secondary_index_<name>    the record keys of each value of a column; needs the record index
    expr_index_<name>         bounds, or a bloom filter, of an expression of a column by file

An index is built under the table lock from the records that the table has, or while writers go on
(`services.indexing`); every write keeps it from then on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from drawstring.base.errors import ConflictError, InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.expressions.column_names import check_columns
from drawstring.metadata.column_ranges import COLUMN_STATS, PARTITION_STATS
from drawstring.metadata.expressions.index import FUNCTION, IDENTITY, SETTINGS, ExpressionIndex
from drawstring.metadata.expressions.index import KINDS as EXPRESSION_KINDS
from drawstring.metadata.expressions.index import PREFIX as EXPRESSION_PREFIX
from drawstring.metadata.maintained.expression_index import ExpressionIndexMaintainer, is_indexable
from drawstring.metadata.maintained.indexing_plans import pending_plans
from drawstring.metadata.maintained.kinds import maintainers_of
from drawstring.metadata.maintained.partition_stats import statistics_maintainers
from drawstring.metadata.maintained.protocol import PartitionMaintainer
from drawstring.metadata.maintained.record_index import RecordIndexMaintainer
from drawstring.metadata.maintained.secondary_index import PREFIX, SecondaryIndexMaintainer, form_of
from drawstring.metadata.metadata_table import open_metadata_table
from drawstring.metadata.partitions import BLOOM_FILTERS, FILES, RECORD_INDEX
from drawstring.model.instant import Action, Instant
from drawstring.model.table_index import TableIndex
from drawstring.services.shown_indexes import KINDS, table_indexes
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.table_schema import table_schema
from drawstring.txn.table_context import TableContext
from drawstring.txn.told import told
from drawstring.txn.transaction import LockedTable, lock_table, recover

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
    """Return a table that is ready for a new index, and what keeps it; see `create_index`.

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
        plans = _in_the_way(locked)
        names = "; ".join(told(context.storage, context.clock, each) for each in plans)
        raise ConflictError(
            f"Actions are pending ({names}), so the metadata table, which holds the index, cannot be"
            " built now. Run them or roll them back first.",
            table=context.storage.spec.uri,
            instant=plans[0].requested if plans else None,
        )
    return locked, wanted


def _in_the_way(locked: LockedTable) -> tuple[Instant, ...]:
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
            " the whole table. Choose one of these, or upgrade the table first: `drawstring upgrade`."
        )


def check_background(config: TableConfig) -> None:
    """Check that the version of a table can have indexes that are built while writers go on.

    Raises:
        UnsupportedError: it cannot.
    """
    if not config.rules.has_all_indexes:
        raise UnsupportedError(
            "Indexes are built while writers go on in tables of version 8 and later only, and the table has"
            f" version {config.version}. Create the index at once (`create_index`, `drawstring index create`)"
            "; writes wait meanwhile. Or upgrade the table first: `drawstring upgrade`."
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
                f"Another write is about to complete: {told(context.storage, context.clock, each)}. Create"
                " the index when it is done.",
                table=context.storage.spec.uri,
                instant=each.requested,
            )
