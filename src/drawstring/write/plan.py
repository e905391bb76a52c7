"""Step zero of a write: check that it may be done, and fix schema, index and file settings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from drawstring.base.clock import Ids
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions, check_against
from drawstring.config.table.config import TableConfig
from drawstring.config.table.merging import MergeMode
from drawstring.filegroups.write.settings import FileSettings
from drawstring.index.choose import choose_index, log_index_cliques
from drawstring.index.lifecycle import DualWrite
from drawstring.index.protocol import Index
from drawstring.merge.choose import takes_partial_blocks
from drawstring.model.commit import WriteOperation
from drawstring.schema.avro import arrow_to_avro, avro_to_arrow, record_name
from drawstring.schema.evolve import check_deletion_mark, evolve, missing_columns
from drawstring.schema.meta import IS_DELETED_COLUMN, RECORD_KEY, with_meta_fields, without_meta
from drawstring.schema.normal import normalise
from drawstring.timeline.table_schema import table_schema_json
from drawstring.write.facts import WriteFacts, key_config
from drawstring.write.placement.arrangement import Arrangement, arrangement
from drawstring.write.placement.place import Prepare
from drawstring.write.verbs import Verb


@dataclass(frozen=True, slots=True)
class WritePlan:
    """All that a write's tasks need.

    Attributes:
        schema_json: Avro text of the table schema after the write, without meta columns.
        settings: how files are written.
        index: finds file groups.
        prepare: adds keys and locations to rows.
        combine: whether duplicate keys in the batch are resolved.
        duplicates: `none`, `drop` or `fail`: what becomes of rows whose key the table has.
        ids: names file groups.
        arrangement: how rows are brought together first.
        twice: repeats rows of buckets that are being resized; None where there are none.
    """

    schema_json: str
    settings: FileSettings
    index: Index
    prepare: Prepare
    combine: bool
    duplicates: str
    ids: Ids
    arrangement: Arrangement
    twice: DualWrite | None = None


def plan_write(facts: WriteFacts, incoming: pa.Schema, verb: Verb, options: WriteOptions) -> WritePlan:
    """Fix everything about a write that does not depend on its rows.

    Args:
        facts: the table as the write finds it.
        incoming: columns of the rows.
        verb: the operation's rules.
        options: the caller's options.

    Raises:
        InvalidError: the columns do not fit the table, or the options contradict it.
        UnsupportedError: an index that this release does not have.
    """
    config = facts.session.config
    check_against(options, config)
    index = _index(facts, verb, options)
    needed = _needed_columns(config, verb, index)
    schema_json, schema = _schema_after(facts, without_meta(normalise(incoming)), verb, needed, options)
    key_schema = _key_schema(schema, config, needed)
    if verb.looks_up and not config.record_key_fields:
        key_schema = key_schema.append(pa.field(RECORD_KEY, pa.string()))
    return WritePlan(
        schema_json=schema_json,
        settings=FileSettings(
            storage=facts.session.state.storage.spec,
            config=config,
            instant=facts.time,
            schema=schema,
            avro_schema=with_meta_fields(schema_json),
            compression=options.compression,
            bloom=options.bloom_enabled,
            base_file_bytes_max=options.sizing.base_file_size_max_bytes,
            log_format=options.log_block_format,
            clique_files=log_index_cliques(options.log_index, options.log_index_clique_files, config),
            partial=_partial(options, incoming, schema, config, index),
        ),
        index=index,
        prepare=Prepare(
            key_config(facts, options, key_schema),
            pa.schema([]) if verb.is_delete else schema,
            key_schema,
            index,
        ),
        combine=_combines(verb, options),
        duplicates=options.known_keys if verb.operation is WriteOperation.INSERT else "none",
        ids=facts.session.state.ids,
        arrangement=arrangement(options.bulk, schema) if verb.arranges else Arrangement(),
    )


def _index(facts: WriteFacts, verb: Verb, options: WriteOptions) -> Index:
    """Return the index of a write; refuse what it cannot do."""
    config = facts.session.config
    index = choose_index(options, config, facts.session.state.storage.spec, facts.timeline)
    if verb.replaces:
        index = index.overwriting(facts.time)
    if index.is_hashed and not config.record_key_fields:
        raise InvalidError("a bucket index needs key columns, which the table does not have: use SIMPLE")
    if index.is_hashed and not verb.hashes:
        raise InvalidError(
            "append makes a new file group of every batch, and in a table with a bucket index the key says"
            " which file group a record is in: use insert, or a table with hoodie.index.type=SIMPLE"
        )
    return index


def _combines(verb: Verb, options: WriteOptions) -> bool:
    """Tell whether one record of each key in the batch is kept."""
    if verb.looks_up:
        return options.combine_before_upsert
    drops = verb.operation is WriteOperation.INSERT and options.drop_duplicates
    return options.combine_before_insert or drops


def _partial(
    options: WriteOptions, incoming: pa.Schema, schema: pa.Schema, config: TableConfig, index: Index
) -> tuple[str, ...]:
    if options.partial_update and index.is_global:
        raise UnsupportedError(
            "a partial update needs an index within partitions: a global one moves whole rows"
        )
    partial = partial_columns(incoming, schema, config) if options.partial_update else ()
    if partial and (index.is_hashed or index.can_index_log_files):
        # New records may go to log files too, and have to say there who they are.
        return tuple(without_meta(incoming).names)
    return partial


def setting_only(plan: WritePlan, sets: tuple[str, ...], options: WriteOptions) -> WritePlan:
    """Return a plan by which updates write the columns that they set and no others, where readers know it.

    Args:
        plan: of a write that reads the records which it updates.
        sets: the columns; none for a write of whole records.
        options: the caller's options.
    """
    settings = plan.settings
    config = settings.config
    if not (sets and options.partial_merges) or plan.index.is_global:
        return plan
    columns = tuple(name for name in settings.schema.names if name in (*sets, *config.ordering_fields))
    said = {*columns, *config.record_key_fields, *config.partition_fields}
    if said >= {*settings.schema.names} or not partial_columns(settings.schema, settings.schema, config):
        return plan
    return replace(plan, settings=replace(settings, partial=columns))


def partial_columns(incoming: pa.Schema, schema: pa.Schema, config: TableConfig) -> tuple[str, ...]:
    """Return the columns that a partial update puts into log blocks; none where it rewrites whole rows.

    Hudi 1.2.0 looks for the mark of a deleted row in such blocks where the whole row has it, and fails or
    drops rows: tables with that column get whole rows. So do tables that go by commit time: there it cannot
    read a slice with such blocks once a record follows the delete of its key in the log files.

    Args:
        incoming: the columns that are set, and the keys.
        schema: all columns of the table.
        config: the table's settings.
    """
    if not (config.is_merge_on_read and config.populate_meta_fields and takes_partial_blocks(config)):
        return ()
    if IS_DELETED_COLUMN in schema.names or config.merge_mode is MergeMode.COMMIT_TIME_ORDERING:
        return ()
    fixed = (*config.record_key_fields, *config.partition_fields)
    return tuple(name for name in without_meta(incoming).names if name not in fixed)


def _schema_after(
    facts: WriteFacts, incoming: pa.Schema, verb: Verb, needed: tuple[str, ...], options: WriteOptions
) -> tuple[str, pa.Schema]:
    """Return the table schema after the write, as Avro text and in Arrow.

    Args:
        facts: the table as the write finds it.
        incoming: columns of the rows.
        verb: the operation's rules.
        needed: columns that the operation cannot do without.
        options: say what becomes of columns that the rows lack.
    """
    session, config = facts.session, facts.session.config
    _check_columns(incoming, needed)
    if config.drop_partition_columns:
        incoming = pa.schema([field for field in incoming if field.name not in config.partition_fields])
    current_json = table_schema_json(session.state.storage, session.store, facts.timeline, config)
    name, namespace = record_name(config.name)
    if current_json is None:
        if verb.is_delete:
            raise InvalidError("the table has no data yet: there is nothing to delete")
        check_deletion_mark(incoming)
        return arrow_to_avro(incoming, name, namespace), incoming
    current = without_meta(avro_to_arrow(current_json))
    if verb.is_delete:
        return current_json, current
    fixed = (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)
    evolved = evolve(current, incoming, fixed)
    if not (options.partial_update or options.null_for_missing):
        _check_complete(current, incoming, verb, config)
    if evolved.equals(current):
        return current_json, current
    return arrow_to_avro(evolved, name, namespace), evolved


def _check_complete(current: pa.Schema, incoming: pa.Schema, verb: Verb, config: TableConfig) -> None:
    """Refuse rows that lack columns of the table: an upsert would put nulls in the place of values.

    A row that lacks the mark of deleted rows is not deleted, and loses nothing. Partition columns that the
    table drops are in none of its files.
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
    """Return the columns that keys and partition paths are made from, as the table types them.

    Partition columns that the table drops are texts to it.
    """
    names = dict.fromkeys((*config.record_key_fields, *config.partition_fields))
    fields = [schema.field(name) if name in schema.names else pa.field(name, pa.string()) for name in names]
    return pa.schema([each if each.name in needed else each.with_nullable(True) for each in fields])


def _needed_columns(config: TableConfig, verb: Verb, index: Index) -> tuple[str, ...]:
    """Return the columns that an operation cannot do without.

    A delete that looks in all partitions does not need to know one.
    """
    partition = () if verb.is_delete and index.is_global else config.partition_fields
    ordering = () if verb.is_delete else config.ordering_fields
    return tuple(dict.fromkeys((*config.record_key_fields, *partition, *ordering)))


def _check_columns(incoming: pa.Schema, needed: tuple[str, ...]) -> None:
    """Refuse rows that lack a column that the operation cannot do without."""
    missing = [name for name in needed if name not in incoming.names]
    if missing:
        raise InvalidError(
            f"the rows lack {', '.join(missing)}: the operation needs {', '.join(needed)}"
            f" (record key, partition and ordering columns); the rows have {', '.join(incoming.names)}"
        )
