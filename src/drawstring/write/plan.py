"""Step zero of a write: check that it may be done, and fix schema, index and file settings."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options import DEFAULT_BUCKET_COUNT, WriteOptions, check_against
from drawstring.config.table import KeyGeneratorType, MergeMode, TableConfig
from drawstring.filegroups.settings import FileSettings
from drawstring.index.choose import choose_index
from drawstring.index.protocol import Index
from drawstring.schema.avro import arrow_to_avro, avro_to_arrow
from drawstring.schema.evolve import evolve
from drawstring.schema.meta import with_meta_fields, without_meta
from drawstring.schema.names import record_name
from drawstring.schema.normal import normalise
from drawstring.write.prepare import Prepare
from drawstring.services.transaction import Transaction
from drawstring.timeline.table_schema import table_schema_json
from drawstring.write.verbs import Verb

CONSISTENT_HASHING = ".hoodie/.bucket_index/consistent_hashing_metadata"


@dataclass(frozen=True, slots=True)
class WritePlan:
    """All that a write's tasks need.

    Attributes:
        schema_json: Avro text of the table schema after the write, without meta columns.
        settings: how files are written.
        index: finds file groups.
        prepare: adds keys and routes to rows.
        combine: whether duplicate keys in the batch are resolved.
    """

    schema_json: str
    settings: FileSettings
    index: Index
    prepare: Prepare
    combine: bool


def plan_write(txn: Transaction, incoming: pa.Schema, verb: Verb, options: WriteOptions) -> WritePlan:
    """Fix everything about a write that does not depend on its rows.

    Args:
        txn: the open transaction.
        incoming: columns of the rows.
        verb: the operation's rules.
        options: the caller's options.

    Raises:
        InvalidError: the columns do not fit the table, or the options contradict it.
        UnsupportedError: the table has a feature that this release cannot write.
    """
    config = txn.session.config
    check_against(options, config)
    check_writable(txn)
    schema_json, schema = _schema_after(txn, without_meta(normalise(incoming)), verb)
    index = choose_index(
        options.index_type or config.index_type or "SIMPLE",
        options.bucket_count or config.bucket_count or DEFAULT_BUCKET_COUNT,
        options.bucket_hash_fields or config.bucket_hash_fields or config.record_key_fields,
    )
    combine = options.combine_before_upsert if verb.looks_up else options.combine_before_insert
    return WritePlan(
        schema_json=schema_json,
        settings=FileSettings(
            storage=txn.session.state.storage.spec,
            config=config,
            instant=txn.instant.requested,
            schema=schema,
            avro_schema=with_meta_fields(schema_json),
            compression=options.compression,
            bloom=options.bloom_enabled,
            base_file_bytes_max=options.base_file_size_max_bytes,
            log_format=options.log_block_format,
        ),
        index=index,
        prepare=Prepare(config, pa.schema([]) if verb.is_delete else schema, index),
        combine=combine,
    )


def check_writable(txn: Transaction) -> None:
    """Refuse tables with features that a write of this release would break.

    Raises:
        UnsupportedError: naming the feature and the table property.
    """
    config = txn.session.config
    refusals = [
        (config.cdc_enabled, "logs changes for CDC queries (hoodie.table.cdc.enabled)"),
        (not config.populate_meta_fields, "has no meta columns (hoodie.populate.meta.fields=false)"),
        (config.drop_partition_columns, "drops its partition columns from the files"),
        (config.base_file_format != "PARQUET", f"has {config.base_file_format} base files"),
        (config.merge_mode is MergeMode.CUSTOM, f"merges by custom code ({config.payload_class})"),
        (bool(config.partial_update_mode), "merges column by column (hoodie.table.partial.update.mode)"),
        (bool(config.merge_properties), "deletes by a custom column (hoodie.record.merge.property.*)"),
        (not config.record_key_fields, "has generated record keys"),
        (
            config.key_generator
            not in (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION),
            f"has key generator {config.key_generator}",
        ),
        (bool(txn.session.state.storage.list_folders(CONSISTENT_HASHING)), "has a consistent hashing index"),
    ]
    for refused, what in refusals:
        if refused:
            raise UnsupportedError(
                f"cannot write yet to a table that {what}; reading works: write with Apache Hudi",
                table=txn.session.state.storage.spec.uri,
            )


def _schema_after(txn: Transaction, incoming: pa.Schema, verb: Verb) -> tuple[str, pa.Schema]:
    """Return the table schema after the write, as Avro text and in Arrow."""
    config = txn.session.config
    current_json = table_schema_json(txn.session.state.storage, txn.session.store, txn.timeline, config)
    name, namespace = record_name(config.name)
    if current_json is None:
        if verb.is_delete:
            raise InvalidError("the table has no data yet: there is nothing to delete")
        return arrow_to_avro(incoming, name, namespace), incoming
    current = without_meta(avro_to_arrow(current_json))
    if verb.is_delete:
        return current_json, current
    _check_columns(incoming, config)
    evolved = evolve(current, incoming)
    if evolved.equals(current):
        return current_json, current
    return arrow_to_avro(evolved, name, namespace), evolved


def _check_columns(incoming: pa.Schema, config: TableConfig) -> None:
    """Refuse rows that lack a column that the table cannot do without."""
    needed = (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)
    missing = [name for name in needed if name not in incoming.names]
    if missing:
        raise InvalidError(
            f"the rows lack {', '.join(missing)}: the table's record key, partition and ordering columns"
            f" are {', '.join(needed)}; the rows have {', '.join(incoming.names)}"
        )
