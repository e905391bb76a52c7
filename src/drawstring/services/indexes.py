"""Indexes in the metadata table: created, dropped and shown, under the names that Hudi gives them.

    record_index              where each record key is
    bloom_filters             the bloom filters of base files
    column_stats              bounds of columns by file
    secondary_index_<name>    the record keys of each value of a column; needs the record index

An index is built under the table lock from the records that the table has; every write keeps it from then on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from drawstring.base.errors import ConflictError, InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.expressions.column_names import check_columns
from drawstring.metadata.column_ranges import COLUMN_STATS, PARTITION_STATS
from drawstring.metadata.definitions import definitions
from drawstring.metadata.keeping import MetadataKeeper
from drawstring.metadata.maintained.kinds import maintainers_of
from drawstring.metadata.maintained.partition_stats import statistics_maintainers
from drawstring.metadata.maintained.protocol import PartitionMaintainer
from drawstring.metadata.maintained.record_index import RecordIndexMaintainer
from drawstring.metadata.maintained.secondary_index import PREFIX, SecondaryIndexMaintainer, form_of
from drawstring.metadata.metadata_table import open_metadata_table
from drawstring.metadata.partitions import BLOOM_FILTERS, FILES
from drawstring.metadata.record_index import RECORD_INDEX
from drawstring.model.table_index import TableIndex
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.table_schema import table_schema
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover

_WITHOUT_COLUMN: Final = (RECORD_INDEX, BLOOM_FILTERS, COLUMN_STATS)
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_KINDS: Final = {PREFIX: "secondary_index", "expr_index_": "expression_index"}


def create_index(
    context: TableContext, options: WriteOptions, name: str, column: str | None, *, is_partitioned: bool
) -> TableIndex:
    """Build an index, and have all writes keep it.

    Args:
        context: the open table.
        options: of writes: lock wait, policy for failed writes.
        name: `record_index`, `bloom_filters`, `column_stats`, or the name of a secondary index.
        column: the column of a secondary index; None for the others.
        is_partitioned: whether a record index has the keys of each partition by themselves.

    Returns:
        The index.

    Raises:
        ConflictError: another writer holds the table, or is about to commit to it.
        InvalidError: there is such an index, no such column, or the index cannot be of this column or table.
        UnsupportedError: the table has version 6.
        MetadataTableError: the metadata table is damaged.
    """
    with lock_table(context, options.locking) as locked:
        partition = _partition_of(locked, name, column)
        wanted = _maintainers(locked, options, partition, column, is_partitioned=is_partitioned)
        locked = recover(locked, options.failed_writes)
        keeper = MetadataKeeper(context.storage, context.clock, context.ids)
        if not locked.config.metadata_partitions and not keeper.build(locked.config):
            raise ConflictError(
                "A clustering is pending, so the metadata table, which holds the index, cannot be built now."
                " Run or roll the clustering back first."
            )
        _check_settled(locked)
        keeper.add(wanted, locked.lock.check)
    return next(each for each in table_indexes(context) if each.name == partition)


def drop_index(context: TableContext, options: WriteOptions, name: str) -> None:
    """Delete an index.

    Args:
        context: the open table.
        options: of writes: lock wait.
        name: of the index; that of a secondary index with or without `secondary_index_`.

    Raises:
        ConflictError: another writer holds the table.
        InvalidError: there is no such index, or another one needs it.
        UnsupportedError: the table has version 6.
    """
    with lock_table(context, options.locking) as locked:
        _check_version(locked.config)
        known = [each for each in locked.config.metadata_partitions if each != FILES]
        partition = next((each for each in (name, PREFIX + name) if each in known), None)
        if partition is None:
            has = f"It has {', '.join(sorted(known))}." if known else "It has none."
            raise InvalidError(f"The table has no index {name}. {has}")
        dependents = [each for each in known if partition == RECORD_INDEX and each.startswith(PREFIX)]
        if dependents:
            raise InvalidError(f"{', '.join(dependents)} cannot be used without {name}. Drop that first.")
        also = {PARTITION_STATS} & {*known} if partition == COLUMN_STATS else set()
        MetadataKeeper(context.storage, context.clock, context.ids).drop({partition, *also})


def table_indexes(context: TableContext) -> list[TableIndex]:
    """Return the indexes of a table, by name.

    Raises:
        CorruptTableError: the properties or the definitions of the indexes are damaged.
    """
    config, known = load_config(context.storage), definitions(context.storage)
    found = []
    for name in sorted(config.metadata_partitions):
        if name != FILES:
            defined = known.get(name, {})
            kind = next((kind for prefix, kind in _KINDS.items() if name.startswith(prefix)), name)
            options = defined.get("indexOptions") or {}
            is_partitioned = str(options.get("isPartitioned")).lower() == "true"
            found.append(TableIndex(name, kind, tuple(defined.get("sourceFields") or ()), is_partitioned))
    return found


def _partition_of(locked: LockedTable, name: str, column: str | None) -> str:
    """Return the partition of the metadata table for a new index."""
    config = locked.config
    _check_version(config)
    if name in _WITHOUT_COLUMN:
        partition = name
        if column is not None:
            raise InvalidError(f"The index {name} is of no single column. Leave the column out.")
    else:
        partition = PREFIX + name.removeprefix(PREFIX)
        if not _NAME.fullmatch(name) or partition == PREFIX:
            raise InvalidError(f"{name!r} cannot be the name of an index. Use letters, digits and _.")
        if column is None:
            raise InvalidError(
                f"The secondary index {name} needs a column. Name it; without one there are only the indexes"
                f" {', '.join(_WITHOUT_COLUMN)}."
            )
    if partition in config.metadata_partitions:
        raise InvalidError(f"The table has an index {partition}. Drop it first, or choose another name.")
    return partition


def _maintainers(
    locked: LockedTable, options: WriteOptions, partition: str, column: str | None, *, is_partitioned: bool
) -> Mapping[str, PartitionMaintainer]:
    """Return what keeps a new index, by partition of the metadata table."""
    config = locked.config
    if is_partitioned and (partition != RECORD_INDEX or not config.partition_fields):
        raise InvalidError("Only a record index of a partitioned table can have its keys by partition.")
    if partition == RECORD_INDEX:
        return {partition: RecordIndexMaintainer(is_partitioned)}
    if partition == COLUMN_STATS:
        return statistics_maintainers(options.metadata, config)
    if column is None:
        return maintainers_of([partition])
    timeline = locked.store.load()
    schema = table_schema(locked.context.storage, locked.store, timeline, config)
    _check_column(schema, config, column)
    if RECORD_INDEX not in config.metadata_partitions:
        raise InvalidError(
            f"A secondary index needs the record index, which the table does not have. Create {RECORD_INDEX}"
            " first."
        )
    return {partition: SecondaryIndexMaintainer(partition, column)}


def _check_column(schema: pa.Schema, config: TableConfig, column: str) -> None:
    check_columns([column], schema)
    if form_of(schema, config, column) is None:
        raise InvalidError(
            f"The column {column} of type {schema.field(column).type} cannot have a secondary index. Those of"
            " texts, whole numbers, floats, dates and timestamps (microseconds, UTC) can, if their values are"
            " in the files."
        )


def _check_version(config: TableConfig) -> None:
    if not config.layout.has_completion_times:
        raise UnsupportedError(
            f"The table has version {config.version}, in which this release keeps no metadata table. Upgrade"
            " it first: `drawstring upgrade`."
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
                f"The {each.action} {each.requested} is about to complete. Create the index when it is done.",
                instant=each.requested,
            )
