"""Plan a write: check the call, and determine schema, index and file settings.

`VERBS` holds the rules of each write operation: what it looks up, merges and replaces. `plan_write`
determines everything about a write that does not depend on its rows.

Every write that appends to a MERGE_ON_READ table is a delta commit, bulk inserts too, and an overwrite is a
replace commit. So a commit on the timeline of such a table is always a compaction, and the number of delta
commits since the last compaction decides when the next one is due. Readers do not rely on it: Hudi's bulk
insert is a commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from drawstring.base.clock import Ids
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions, check_against
from drawstring.config.payload_classes import MergeMode
from drawstring.config.table.storage_layout import LSM_TREE, STORAGE_LAYOUT
from drawstring.config.table_config import KeyGeneratorType, TableConfig
from drawstring.config.table_types import columns_of
from drawstring.filegroups.base_file_writer import FileSettings, check_installed
from drawstring.filegroups.sorted_merge import is_key_order
from drawstring.index.factory import bloom_rate, check_non_blocking, choose_index, log_index_cliques
from drawstring.index.protocol import DualWrite, Index
from drawstring.merge.record_merger import takes_partial_blocks
from drawstring.metadata.maintenance import summarized_columns
from drawstring.model.commit import WriteOperation, WriteStat
from drawstring.model.instant import Action
from drawstring.schema.avro import (
    arrow_to_avro,
    avro_to_arrow,
    comments_in,
    comments_of,
    comments_of_new,
    record_name,
    with_comments,
)
from drawstring.schema.evolution import check_deletion_mark, evolve, missing_columns, normalise
from drawstring.schema.fields import (
    IS_DELETED_COLUMN,
    PARTITION_PATH,
    RECORD_KEY,
    stored_columns,
    type_at,
    with_meta_fields,
    without_meta,
)
from drawstring.schema.internal_schema import evolved_history
from drawstring.timeline.schema import check_timeline, table_schema_json, with_history
from drawstring.write.bulk_insert import Arrangement, arrangement
from drawstring.write.facts import WriteFacts, key_config
from drawstring.write.mislabelled_files import keeping_millis
from drawstring.write.placement import Prepare


@dataclass(frozen=True, slots=True)
class Verb:
    """Rules of a write operation.

    Attributes:
        operation: name in commit metadata.
        looks_up: whether rows are tagged and merged with existing records.
        is_delete: whether the rows are keys to delete.
        replaces: `""`, or what is replaced: the `partitions` of the rows or the whole `table`.
        named: partition paths; these and the partitions below them are replaced, too, without any rows.
        fills_files: whether untagged rows fill small files first.
        arranges: whether rows may be sorted before they are written.
        hashes: whether it supports hashing indexes.
        merges_files: whether small files are merged after it when there are enough of them.
        called: name for the caller if it differs from `operation`.
    """

    operation: WriteOperation
    looks_up: bool = False
    is_delete: bool = False
    replaces: str = ""
    named: tuple[str, ...] = ()
    fills_files: bool = False
    arranges: bool = False
    hashes: bool = True
    merges_files: bool = False
    called: str = ""

    @property
    def name(self) -> str:
        """Name for the caller."""
        return self.called or self.operation.lower()

    @property
    def keeps_apart(self) -> bool:
        """Whether its rows go to new file groups, whatever the table has."""
        return not (self.looks_up or self.fills_files or self.replaces)

    def action(self, config: TableConfig) -> Action:
        """The action of its instant."""
        if self.replaces:
            return Action.REPLACE_COMMIT
        return Action.DELTA_COMMIT if config.is_merge_on_read else Action.COMMIT

    def on(self, config: TableConfig, columns: Sequence[str]) -> Verb:
        """Return the operation on a given table: without key columns, only meta column keys identify rows.

        Args:
            config: the table.
            columns: columns of the rows.

        Raises:
            InvalidError: rows to delete have no keys.
        """
        if config.record_key_fields or not self.looks_up or RECORD_KEY in columns:
            return self
        if self.is_delete:
            raise InvalidError(
                f"The table has no key columns. To delete rows, give those of a scan that includes"
                f" {RECORD_KEY}."
            )
        return VERBS["insert"]


VERBS: Final = {
    "insert": Verb(WriteOperation.INSERT, fills_files=True),
    "upsert": Verb(WriteOperation.UPSERT, looks_up=True),
    "delete": Verb(WriteOperation.DELETE, looks_up=True, is_delete=True),
    "bulk_insert": Verb(WriteOperation.BULK_INSERT, arranges=True),
    # Hudi has no such operation in commits; it equals a bulk insert.
    "append": Verb(WriteOperation.BULK_INSERT, hashes=False, merges_files=True, called="append"),
    "insert_overwrite": Verb(WriteOperation.INSERT_OVERWRITE, replaces="partitions"),
    "insert_overwrite_table": Verb(WriteOperation.INSERT_OVERWRITE_TABLE, replaces="table"),
}

UPDATE: Final = Verb(WriteOperation.UPSERT, looks_up=True, called="update")
MERGE: Final = Verb(WriteOperation.UPSERT, looks_up=True, called="merge")
BOOTSTRAP: Final = Verb(WriteOperation.BOOTSTRAP, arranges=True)


def verb_of(operation: str) -> Verb:
    """Return the rules of an operation.

    Raises:
        InvalidError: the operation is unknown.
    """
    if operation.lower() == BOOTSTRAP.name:
        raise InvalidError(
            "A bootstrap creates a table. Call drawstring.bootstrap with the path of a new table."
        )
    try:
        return VERBS[operation.lower()]
    except KeyError:
        raise InvalidError(
            f"There is no write operation {operation!r}. Use one of {', '.join(VERBS)}."
        ) from None


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Everything that the tasks of a write need.

    Attributes:
        schema_json: Avro text of the table schema after the write, without meta columns.
        settings: settings of the files.
        index: index of the write.
        prepare: adds keys and locations to rows.
        combine: whether duplicate keys in the batch are merged.
        duplicates: policy for rows whose key the table has: `none`, `drop` or `fail`.
        ids: generates file ids.
        arrangement: sort and shuffle of a bulk insert.
        dual_write: dual write of buckets that are being resized; None without any.
    """

    schema_json: str
    settings: FileSettings
    index: Index
    prepare: Prepare
    combine: bool
    duplicates: str
    ids: Ids
    arrangement: Arrangement
    dual_write: DualWrite | None = None

    def looked_up(self, stats: list[WriteStat]) -> list[WriteStat]:
        """Return the statistics of files, which say so if their keys were looked up in all partitions."""
        return [each.looked_up for each in stats] if self.index.is_global else stats

    def once(self, stats: list[WriteStat]) -> list[WriteStat]:
        """Return the statistics for the result, without copies in buckets that are being resized."""
        return self.dual_write.once(stats) if self.dual_write else stats


def plan_write(facts: WriteFacts, incoming: pa.Schema, verb: Verb, options: WriteOptions) -> WritePlan:
    """Determine everything about a write that does not depend on its rows.

    Args:
        facts: the table before the write.
        incoming: columns of the rows.
        verb: rules of the operation.
        options: options of the caller.

    Raises:
        InvalidError: the columns do not fit the table, the options contradict it, or a package is missing.
        UnsupportedError: this release does not have the index.
    """
    config = facts.locked.config
    _check(config, options)
    index = _index(facts, verb, options)
    needed = _needed_columns(config, verb, index)
    schema_json, schema = _schema_after(facts, incoming, verb, needed, options)
    key_schema = _key_schema(schema, config, needed)
    if verb.looks_up and not config.record_key_fields:
        key_schema = key_schema.append(pa.field(RECORD_KEY, pa.string()))
    written = pa.schema([]) if verb.is_delete else schema
    return WritePlan(
        schema_json=schema_json,
        settings=FileSettings(
            storage=facts.locked.context.storage.spec,
            config=_with_version(facts, schema),
            instant=facts.time,
            schema=schema,
            avro_schema=with_meta_fields(schema_json),
            compression=options.compression,
            bloom=bloom_rate(options, config),
            base_file_bytes_max=options.sizing.base_file_size_max_bytes,
            log_format=options.log_block_format,
            clique_files=log_index_cliques(options.log_index, options.log_index_clique_files, config),
            partial=_partial(options, incoming, schema, config, index),
            finds_positions=_finds_positions(options, config, index),
            summarized=summarized_columns(facts.locked.context.storage, config),
        ),
        index=index,
        prepare=Prepare(key_config(facts, options, key_schema), written, key_schema, index),
        combine=config.has_sorted_files or _combines(verb, options),
        duplicates=options.insert_dup_policy if verb.operation is WriteOperation.INSERT else "none",
        ids=facts.locked.context.ids,
        arrangement=_arrangement(verb, options, schema, config),
    )


def _check(config: TableConfig, options: WriteOptions) -> None:
    check_against(options, config)
    check_installed(config)


def _finds_positions(options: WriteOptions, config: TableConfig, index: Index) -> bool:
    """Return whether log blocks get the positions of their records, which come with the keys of base files.

    Files in the order of keys, and log files that have new records, too, cannot have or use them.
    """
    knows = not (index.is_hashed or index.can_index_log_files or config.has_sorted_files)
    return knows and options.record_positions and config.is_merge_on_read and config.rules.has_positions


def _index(facts: WriteFacts, verb: Verb, options: WriteOptions) -> Index:
    """Return the index of a write; raise if it does not support the operation."""
    config = facts.locked.config
    index = choose_index(options, config, facts.locked.context.storage.spec, facts.timeline)
    if options.is_non_blocking:
        check_non_blocking(index, config)
    if verb.replaces:
        index = index.for_overwrite(facts.time)
    if index.is_hashed and not config.record_key_fields:
        raise InvalidError("A bucket index needs key columns, but the table has none. Use SIMPLE.")
    if index.is_hashed and not verb.hashes:
        raise InvalidError(
            "Append writes every batch to new file groups, but with a bucket index the key determines the"
            " file group of a record. Use insert, or a table with hoodie.index.type=SIMPLE."
        )
    return index


def _arrangement(verb: Verb, options: WriteOptions, schema: pa.Schema, config: TableConfig) -> Arrangement:
    """Return how rows are arranged before they are written; sorted files determine it."""
    if config.has_sorted_files and not verb.looks_up:
        columns = options.bulk.sort_columns if verb.arranges else ()
        if not is_key_order(columns, config.record_key_fields):
            raise InvalidError(
                f"The files of the table are sorted by record key ({STORAGE_LAYOUT}={LSM_TREE}), so a bulk"
                f" insert cannot sort by {', '.join(columns)}. Leave the sort columns out."
            )
        return Arrangement((PARTITION_PATH, RECORD_KEY), global_sort=True)
    return arrangement(options.bulk, schema) if verb.arranges else Arrangement()


def _combines(verb: Verb, options: WriteOptions) -> bool:
    """Return whether duplicate keys in the batch are merged."""
    if verb.looks_up:
        return options.combine_before_upsert
    drops = verb.operation is WriteOperation.INSERT and options.drop_duplicates
    return options.combine_before_insert or drops


def _partial(
    options: WriteOptions, incoming: pa.Schema, schema: pa.Schema, config: TableConfig, index: Index
) -> tuple[str, ...]:
    if options.partial_update and index.is_global:
        raise UnsupportedError(
            "A partial update is not supported with a global index, which moves whole rows. Use an index that"
            " is not global."
        )
    partial = partial_columns(incoming, schema, config) if options.partial_update else ()
    if partial and (index.is_hashed or index.can_index_log_files):
        # New records may go to log files too, which then need their key columns.
        return tuple(without_meta(incoming).names)
    return partial


def with_columns_set(plan: WritePlan, sets: tuple[str, ...], options: WriteOptions) -> WritePlan:
    """Return a plan in which updates write only the columns that they set, if readers support it.

    Args:
        plan: plan of a write that reads the records that it updates.
        sets: the columns; empty for a write of whole records.
        options: the caller's options.
    """
    settings = plan.settings
    config = settings.config
    if not (sets and options.partial_merges) or plan.index.is_global:
        return plan
    columns = tuple(
        name for name in settings.schema.names if name in (*sets, *columns_of(config.ordering_fields))
    )
    written = {*columns, *config.key_columns}
    if written >= {*settings.schema.names} or not partial_columns(settings.schema, settings.schema, config):
        return plan
    return replace(plan, settings=replace(settings, partial=columns))


def partial_columns(incoming: pa.Schema, schema: pa.Schema, config: TableConfig) -> tuple[str, ...]:
    """Return the columns that a partial update writes to log blocks; empty if it writes whole rows.

    Tables with the column `_hoodie_is_deleted` get whole rows: Hudi 1.2.0 looks for it in partial blocks at
    its position in the whole row, and fails or drops rows. So do tables with commit-time ordering: Hudi
    cannot read a slice with partial blocks if a record follows the delete of its key in the log files.

    Args:
        incoming: the columns that are set, and the key columns.
        schema: all columns of the table.
        config: the table.
    """
    if not (config.is_merge_on_read and config.populate_meta_fields and takes_partial_blocks(config)):
        return ()
    if IS_DELETED_COLUMN in schema.names or config.merge_mode is MergeMode.COMMIT_TIME_ORDERING:
        return ()
    return tuple(name for name in without_meta(incoming).names if name not in config.key_columns)


def _schema_after(
    facts: WriteFacts, incoming: pa.Schema, verb: Verb, needed: tuple[str, ...], options: WriteOptions
) -> tuple[str, pa.Schema]:
    """Return the table schema after the write, as Avro text and as Arrow schema.

    Args:
        facts: the table before the write.
        incoming: columns of the rows.
        verb: the operation's rules.
        needed: columns that the operation requires.
        options: options, among them those on columns that the rows lack.
    """
    locked, config = facts.locked, facts.locked.config
    given, incoming = incoming, without_meta(normalise(incoming))
    ordering = () if verb.is_delete else config.ordering_fields
    _check_columns(incoming, tuple(dict.fromkeys((*needed, *ordering))))
    if config.drop_partition_columns:
        incoming = pa.schema([field for field in incoming if field.name not in config.partition_fields])
    check_timeline(locked.context.storage, config, facts.timeline)
    current_json = table_schema_json(locked.context.storage, locked.store, facts.timeline, config)
    name, namespace = record_name(config.name)
    if current_json is None:
        if verb.is_delete:
            raise InvalidError("The table has no data yet, so there is nothing to delete. Write rows first.")
        check_deletion_mark(incoming)
        return with_comments(arrow_to_avro(incoming, name, namespace), comments_in(given)), incoming
    current = without_meta(avro_to_arrow(current_json))
    if verb.is_delete:
        return current_json, current
    incoming = _with_numbers(incoming, current, config)
    fixed = (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)
    evolved = evolve(current, incoming, fixed)
    kept = incoming if evolved.equals(current) else keeping_millis(facts, current, incoming, evolved)
    evolved = evolved if kept is incoming else evolve(current, kept, fixed)
    if not (options.partial_update or options.null_for_missing):
        _check_complete(current, incoming, verb, config)
    if evolved.equals(current):
        return current_json, current
    told = {**comments_of_new(current_json, comments_in(given)), **comments_of(current_json)}
    return with_comments(arrow_to_avro(evolved, name, namespace), told), evolved


def _with_numbers(incoming: pa.Schema, current: pa.Schema, config: TableConfig) -> pa.Schema:
    """Return columns of rows with the numbers that a TIMESTAMP generator formats, where they have texts.

    Queries show the texts of these numbers, so rows that come from a query have them.
    """
    if config.path_generator is not KeyGeneratorType.TIMESTAMP:
        return incoming
    stored = {
        field.name: field.type
        for field in current
        if field.name in config.partition_fields and pt.is_integer(field.type)
    }
    return pa.schema(
        [
            field.with_type(stored[field.name])
            if field.name in stored and pt.is_string(field.type)
            else field
            for field in incoming
        ]
    )


def _with_version(facts: WriteFacts, schema: pa.Schema) -> TableConfig:
    """Return the settings with the version of the schema of the new files, if the table has versions."""
    locked = facts.locked
    config = with_history(locked.config, locked.context.storage, locked.store, facts.timeline)
    if config.history is None:
        return config
    full = stored_columns(schema, has_meta=config.populate_meta_fields)
    return replace(config, history=evolved_history(config.history, full, facts.time))


def _check_complete(current: pa.Schema, incoming: pa.Schema, verb: Verb, config: TableConfig) -> None:
    """Check that rows have all columns of the table: an upsert would replace values by nulls.

    A row without the delete marker column is not deleted and loses nothing. Dropped partition columns are not
    in the files.
    """
    dropped = config.partition_fields if config.drop_partition_columns else ()
    optional = (IS_DELETED_COLUMN, *dropped)
    missing = [name for name in missing_columns(current, incoming) if name not in optional]
    if not missing:
        return
    partial = (
        ", or set drawstring.write.partial_update=true to leave these columns as they are"
        if verb.looks_up
        else ""
    )
    raise InvalidError(
        f"The rows lack columns of the table: {', '.join(missing)}. Nothing was written. Add the columns"
        f"{partial}, or set hoodie.write.set.null.for.missing.columns=true to write nulls."
    )


def _key_schema(schema: pa.Schema, config: TableConfig, needed: tuple[str, ...]) -> pa.Schema:
    """Return the key and partition columns with the types of the table.

    Dropped partition columns have the type string.
    """
    names = config.key_columns
    fields = [schema.field(name) if name in schema.names else pa.field(name, pa.string()) for name in names]
    return pa.schema([each if each.name in needed else each.with_nullable(True) for each in fields])


def _needed_columns(config: TableConfig, verb: Verb, index: Index) -> tuple[str, ...]:
    """Return the columns that an operation requires.

    A delete with a global index does not need partition columns.
    """
    partition = () if verb.is_delete and index.is_global else config.partition_fields
    ordering = () if verb.is_delete else config.ordering_fields
    return columns_of((*config.record_key_fields, *partition, *ordering))


def _check_columns(incoming: pa.Schema, needed: tuple[str, ...]) -> None:
    """Check that rows have all columns, and fields in columns, that the operation requires."""
    names = incoming.names
    missing = [name for name in needed if name not in names and type_at(name, incoming) is None]
    if missing:
        raise InvalidError(
            f"The rows lack {', '.join(missing)}; they have {', '.join(incoming.names) or 'no columns'}."
            f" Add the missing columns: the operation needs {', '.join(needed)} (record key, partition and"
            " ordering columns)."
        )
