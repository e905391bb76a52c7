"""Parse the options of a write or table service into typed fields, and check them against the table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from os.path import abspath
from typing import Any, Final, Self

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.java_compat import simple_class_name
from drawstring.config.keys.concurrency import (
    CONCURRENCY_OPTIONS,
    FAILED_WRITES_OPTIONS,
    LOCK_OPTIONS,
    Concurrency,
    ConcurrencyMode,
    FailedWrites,
    LockSettings,
)
from drawstring.config.keys.index import (
    BUCKET_COUNT_KEYS,
    DEFAULT_BUCKET_COUNT,
    EXPRESSIONS,
    HASH_FIELDS,
    METADATA_COMPACTION_OPTIONS,
    METADATA_OPTIONS,
    MetadataCompaction,
    MetadataPartitions,
)
from drawstring.config.keys.ingest import (
    STREAMING_OPTIONS,
    SYNC_OPTIONS,
    VALIDATOR_OPTIONS,
    CatalogSync,
    PreCommitValidators,
    Streaming,
)
from drawstring.config.keys.read import METADATA_ENABLE
from drawstring.config.keys.rolling_metadata import ROLLING_OPTIONS, RollingMetadata
from drawstring.config.keys.services import (
    ARCHIVE_OPTIONS,
    CLEAN_OPTIONS,
    TTL_OPTIONS,
    Archiving,
    Cleaning,
    Clustering,
    CompactionSettings,
    PartitionTtl,
)
from drawstring.config.keys.sizing import SIZING_OPTIONS, Sizing
from drawstring.config.keys.write import (
    APPEND_OPTIONS,
    BOOTSTRAP_OPTIONS,
    BULK_OPTIONS,
    IDENTITY_OPTIONS,
    WRITE_BASE_PATH,
    WRITE_OPTIONS,
    AppendMerging,
    Bootstrap,
    BulkInsert,
)
from drawstring.config.merge_config import asked_mode
from drawstring.config.options.option import Given, Option, Scope, Value, text_of
from drawstring.config.options.read_options import ReadOptions
from drawstring.config.options.registry import (
    OPTION_OF_KEY,
    check_names,
    commit_metadata,
    fields_of,
    parse_options,
)
from drawstring.config.payload_classes import (
    DELETE_FIELD,
    DELETE_MARKER,
    EMPTY_PAYLOAD,
    MergeMode,
    payload_class,
)
from drawstring.config.table.key_settings import settings_of_write
from drawstring.config.table_config import TableConfig
from drawstring.config.table_types import (
    KeyGeneratorType,
    TableType,
    generator_of_class,
    generator_of_type,
    typed_columns,
)

OPERATION_KEY: Final = "hoodie.datasource.write.operation"
_TYPE_KEY: Final = "hoodie.datasource.write.keygenerator.type"
_CLASS_KEY: Final = "hoodie.datasource.write.keygenerator.class"
_PAYLOAD_KEY: Final = "hoodie.datasource.write.payload.class"
_MERGING_KEYS: Final = (
    "hoodie.record.merge.mode", _PAYLOAD_KEY, "hoodie.write.record.merge.strategy.id",
)  # fmt: skip
_CALL_ONLY_KEYS: Final = (
    OPERATION_KEY, "hoodie.datasource.write.partitions.to.delete",
    "hoodie.datasource.write.commitmeta.key.prefix",
)  # fmt: skip
_GROUPS: Final[Mapping[str, tuple[type[Any], tuple[Option, ...]]]] = {
    "sizing": (Sizing, SIZING_OPTIONS),
    "bulk": (BulkInsert, BULK_OPTIONS),
    "bootstrap": (Bootstrap, BOOTSTRAP_OPTIONS),
    "appending": (AppendMerging, APPEND_OPTIONS),
    "cleaning": (Cleaning, CLEAN_OPTIONS),
    "concurrency": (Concurrency, CONCURRENCY_OPTIONS),
    "failed_writes": (FailedWrites, FAILED_WRITES_OPTIONS),
    "archiving": (Archiving, ARCHIVE_OPTIONS),
    "streaming": (Streaming, STREAMING_OPTIONS),
    "sync": (CatalogSync, SYNC_OPTIONS),
    "ttl": (PartitionTtl, TTL_OPTIONS),
    "metadata": (MetadataPartitions, METADATA_OPTIONS),
    "validators": (PreCommitValidators, VALIDATOR_OPTIONS),
}
"""Groups of options that form one field of `WriteOptions`, with the type of the field."""

_OF_LOCKS: Final = (LOCK_OPTIONS, METADATA_COMPACTION_OPTIONS, ROLLING_OPTIONS)
_GROUPED: Final = frozenset(chain(*_OF_LOCKS, *(group for _, group in _GROUPS.values())))
_SINGLE: Final = tuple(option for option in WRITE_OPTIONS if option not in _GROUPED)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The parsed options of a write or table service; None or empty for those that the table decides.

    Attributes:
        operation: `upsert`, `insert`, `bulk_insert`, `append`, `delete`, `insert_overwrite`,
            `insert_overwrite_table`, `delete_partition` or `bootstrap`.
        partitions_to_delete: paths and patterns of delete_partition.
        table_name, table_type, table_version: name, type and version of a new table.
        record_key, partition_path, ordering, hive_style, url_encode: columns and paths of a new table.
        key_generator: kind of key generator of a new table.
        key_settings: settings of the key generator, by the keys under which tables store them.
        cdc_enabled, cdc_mode: whether a new table writes CDC log files, and with what contents.
        storage_layout: `lsm_tree` for a new table with files sorted by record key, else `default`.
        base_file_format: of a new table, in lower case.
        populate_meta_fields, drop_partition_columns: which columns the files of a new table have.
        merge_mode, payload_class: how versions of a record merge.
        delete_field, delete_marker: the column of a new table whose value marks deletes, and that value.
        index_type: one of `config.keys.index.SUPPORTED_INDEXES`.
        bucket_count, bucket_expressions, bucket_hash_fields, bucket_engine: settings of the bucket index.
        simple_, bloom_, record_index_update_partition_path: whether records change their partition.
        bloom_prunes_by_ranges: whether files are skipped by key range.
        log_index, log_index_clique_files: whether log files contain an index, and how many share a summary.
        log_block_format, record_positions: `parquet` or `avro`; whether log files have record positions.
        compression, bloom_enabled: codec of Parquet data; whether base files contain a bloom filter.
        sizing: settings of file sizing.
        bulk, bootstrap: settings of bulk_insert and of the bootstrap operation.
        clustering, appending: settings of clustering, and of the merging of small files after appends.
        cleaning, archiving, ttl: settings of cleaning, of archiving and of the partition TTL.
        sync: settings of the sync with catalogs.
        streaming, validators: settings of the stream whose batch the rows are, and of what checks the commit.
        concurrency, failed_writes: settings of concurrency control, and of the rollback of failed writes.
        partial_update, partial_merges: whether upsert, and updates and merges, write only some columns.
        null_for_missing: whether incoming rows may lack columns, which become null.
        allow_empty_commit: whether a write that changes no file still creates a commit.
        combine_before_insert, combine_before_upsert: whether incoming records of one key are merged first.
        insert_duplicates: `none`, `drop` or `fail`: what insert does with keys that are in the table.
        drop_duplicates: whether insert drops these, and merges incoming records of one key.
        services_enabled: whether table services follow writes.
        compaction: settings of compaction.
        metadata: the partitions that the metadata table gets.
        locking, commit_metadata: settings of the table lock; extra metadata of the commit.
    """

    operation: str
    partitions_to_delete: tuple[str, ...]
    table_name: str | None
    table_type: TableType | None
    table_version: int | None
    record_key: tuple[str, ...]
    partition_path: tuple[str, ...]
    ordering: tuple[str, ...]
    hive_style: bool | None
    url_encode: bool | None
    key_generator: KeyGeneratorType | None
    key_settings: Mapping[str, str]
    populate_meta_fields: bool | None
    drop_partition_columns: bool | None
    cdc_enabled: bool | None
    cdc_mode: str | None
    storage_layout: str | None
    base_file_format: str | None
    merge_mode: MergeMode | None
    payload_class: str | None
    delete_field: str | None
    delete_marker: str | None
    index_type: str | None
    bucket_count: int | None
    bucket_expressions: str | None
    bucket_hash_fields: tuple[str, ...]
    bucket_engine: str | None
    simple_index_update_partition_path: bool
    bloom_index_update_partition_path: bool
    record_index_update_partition_path: bool
    bloom_prunes_by_ranges: bool
    log_index: bool | None
    log_index_clique_files: int | None
    log_block_format: str
    record_positions: bool
    compression: str
    bloom_enabled: bool
    sizing: Sizing
    bulk: BulkInsert
    clustering: Clustering
    appending: AppendMerging
    cleaning: Cleaning
    concurrency: Concurrency
    failed_writes: FailedWrites
    archiving: Archiving
    bootstrap: Bootstrap
    streaming: Streaming
    sync: CatalogSync
    ttl: PartitionTtl
    validators: PreCommitValidators
    partial_update: bool
    null_for_missing: bool
    partial_merges: bool
    allow_empty_commit: bool
    combine_before_insert: bool
    insert_duplicates: str
    drop_duplicates: bool
    combine_before_upsert: bool
    services_enabled: bool
    compaction: CompactionSettings
    metadata: MetadataPartitions
    locking: LockSettings
    commit_metadata: Mapping[str, str]

    @property
    def is_non_blocking(self) -> bool:
        """Whether log files of several writers in one file group are no conflict."""
        return self.concurrency.mode == ConcurrencyMode.NON_BLOCKING

    @property
    def insert_dup_policy(self) -> str:
        """What insert does with rows whose key is in the table: `none`, `drop` or `fail`."""
        return "drop" if self.drop_duplicates else self.insert_duplicates

    @classmethod
    def parse(cls, given: Given) -> Self:
        """Parse options under Hudi's keys.

        Args:
            given: texts or Python values by key.

        Raises:
            InvalidError: a key is unknown, a value is not valid, or options contradict each other.
            UnsupportedError: a value is not supported by this release.
        """
        operation = given.get(OPERATION_KEY)
        if isinstance(operation, str) and len(given) == 1:
            return cls._of_operation(operation)
        return cls._parse(given)

    @classmethod
    @cache
    def _of_operation(cls, operation: str) -> Self:
        """Return the defaults of an operation: most writes of a pipeline give no options."""
        return cls._parse({OPERATION_KEY: operation})

    @classmethod
    def _parse(cls, given: Given) -> Self:
        parsed = parse_options(given, Scope.WRITE)
        fields = fields_of(_SINGLE, parsed)
        fields |= {name: group(**fields_of(options, parsed)) for name, (group, options) in _GROUPS.items()}
        concurrency, failed = fields["failed_writes"].beside_others(fields["concurrency"])
        fields |= {
            "compaction": CompactionSettings.take(fields),
            "locking": LockSettings.take(fields_of(LOCK_OPTIONS, parsed) | _of_metadata(parsed), given),
            "clustering": Clustering.take(fields),
            "commit_metadata": commit_metadata(given),
            "concurrency": concurrency,
            "failed_writes": failed,
            "table_type": fields["table_type"] and TableType(fields["table_type"]),
            "key_generator": _key_generator(parsed),
            "key_settings": settings_of_write(parsed),
            "merge_mode": asked_mode(*(_given_text(parsed, key) for key in _MERGING_KEYS)),
        }
        options = cls(**fields)
        _check_write(options)
        return options


def options_of(operation: str, given: Given) -> WriteOptions:
    """Parse the options of a write operation; see `WriteOptions.parse` for errors.

    Args:
        operation: `insert`, `upsert`, `delete`, `bulk_insert`, `append`, `insert_overwrite`,
            `insert_overwrite_table`, `delete_partition` or `merge`.
        given: options by Hudi's keys.
    """
    return WriteOptions.parse({**given, OPERATION_KEY: operation})


def with_delete_operation(given: Given) -> Given:
    """Return options of a DataFrame write, with operation delete in place of a payload of deletes.

    Scripts for Hudi delete the rows of a DataFrame by the payload class `EmptyHoodieRecordPayload`.

    Args:
        given: options by Hudi's keys.
    """
    empty = [
        key
        for key, value in given.items()
        if OPTION_OF_KEY.get(key.lower()) is OPTION_OF_KEY[_PAYLOAD_KEY]
        and simple_class_name(str(value)) == EMPTY_PAYLOAD
    ]
    if not empty:
        return given
    return {**{key: value for key, value in given.items() if key not in empty}, OPERATION_KEY: "delete"}


def check_call(given: Given, operation: str | None = None) -> None:
    """Check the options of a call of the Python interface.

    Args:
        given: options as the user gave them.
        operation: the write operation of the call; None for a table service.

    Raises:
        InvalidError: a name is not an option key, or the options name another operation.
    """
    if not given:
        return
    check_names(given)
    requested = _given_text(parse_options(given, Scope.WRITE), OPERATION_KEY)
    if operation and requested and requested != operation:
        raise InvalidError(
            f"{OPERATION_KEY} is {requested}, but the call is {operation}."
            f" Drop the option, or call {requested}."
        )


def default_options(given: Given) -> tuple[tuple[str, str], ...]:
    """Return the options of writes and services with which a table is opened, as keys and texts.

    Args:
        given: options as the user gave them; those of queries are left out.

    Raises:
        InvalidError: an option is not valid, or belongs to single calls or to the storage.
        UnsupportedError: a value is not supported by this release.
    """
    WriteOptions.parse(given)
    texts = {key.lower(): text_of(value) for key, value in given.items()}
    for key in texts:
        option = OPTION_OF_KEY.get(key)
        if option is not None and option.key in _CALL_ONLY_KEYS:
            raise InvalidError(
                f"{key} belongs to single calls, so it cannot be given when a table is opened."
            )
        if option is not None and option.scope is Scope.STORAGE:
            raise InvalidError(f"{key} is an option of the storage. Give it in storage_options.")
    return tuple(
        (key, text)
        for key, text in texts.items()
        if text is not None and getattr(OPTION_OF_KEY.get(key), "scope", Scope.WRITE) is Scope.WRITE
    )


def table_scope(given: Given, *, strict: bool = False) -> dict[str, str]:
    """Return the options that a new table stores, under the keys of its properties.

    Args:
        given: options or table properties as a user gave them.
        strict: whether to refuse options that a table does not store, rather than leave them to the write.

    Raises:
        InvalidError: as `WriteOptions.parse`; in strict mode also for options of single writes or reads.
        UnsupportedError: as `WriteOptions.parse`.
    """
    if strict:
        check_names(given, takes_metadata=False)
    stored: dict[str, str] = {}
    parsed = parse_options(given, Scope.WRITE)
    is_hashed = _given_text(parsed, "hoodie.index.type") == "BUCKET"
    for option, (key, value) in parsed.items():
        text = text_of(value)
        if option.key in BUCKET_COUNT_KEYS and not (strict or is_hashed):
            continue  # settings of an index that the table does not have, as in many scripts
        if option.stored_as and text:
            stored[option.stored_as] = text
        elif strict and option in _NOT_STORED_OPTIONS:
            if option in IDENTITY_OPTIONS:
                raise InvalidError(f"{key} has an argument of its own. Give that instead of the property.")
            raise InvalidError(f"{key} is an option of a write, not a table property. Give it to the write.")
    if strict:
        for name in given:
            option_of_read = OPTION_OF_KEY.get(name.lower())
            if option_of_read is not None and option_of_read.scope is Scope.READ:
                to = "when the table is opened" if option_of_read.is_of_writes else "to the read"
                raise InvalidError(f"{name} is an option of a read, not a table property. Give it {to}.")
    return stored


_NOT_STORED_OPTIONS: Final = frozenset(option for option in WRITE_OPTIONS if not option.stored_as)


def _given_text(parsed: Mapping[Option, tuple[str, Value]], key: str) -> str | None:
    return (text_of(entry[1]) or None) if (entry := parsed.get(OPTION_OF_KEY[key])) else None


def _of_metadata(parsed: Mapping[Option, tuple[str, Value]]) -> dict[str, Any]:
    """Return what a write or service does with metadata table and commits, as fields of `LockSettings`."""
    given = parsed.get(OPTION_OF_KEY[METADATA_ENABLE])
    return {
        "uses_metadata": None if given is None else bool(given[1]),
        "metadata_compaction": MetadataCompaction(**fields_of(METADATA_COMPACTION_OPTIONS, parsed)),
        "rolling": RollingMetadata(**fields_of(ROLLING_OPTIONS, parsed)),
    }


def _key_generator(parsed: Mapping[Option, tuple[str, Value]]) -> KeyGeneratorType | None:
    by_type, by_class = _given_text(parsed, _TYPE_KEY), _given_text(parsed, _CLASS_KEY)
    kinds = {generator_of_type(by_type)} if by_type else set()
    if by_class:
        kinds.add(generator_of_class(by_class))
    if len(kinds) > 1:
        raise InvalidError(f"{_TYPE_KEY}={by_type} and {_CLASS_KEY}={by_class} differ. Drop one of them.")
    return kinds.pop() if kinds else None


def _check_write(options: WriteOptions) -> None:
    if options.operation == "bootstrap" and not options.bootstrap.has_index:
        raise UnsupportedError(
            "hoodie.bootstrap.index.enable=false is not supported by this release: files in place are found"
            " by the index. Drop the option."
        )
    if options.operation == "upsert" and not options.combine_before_upsert:
        raise UnsupportedError(
            "hoodie.combine.before.upsert=false would leave several records with the same key. Drop the"
            " option."
        )
    if options.drop_duplicates and options.insert_duplicates == "fail":
        raise InvalidError(
            "hoodie.datasource.insert.dup.policy=fail and hoodie.datasource.write.insert.drop.duplicates=true"
            " contradict each other. Drop one of them."
        )
    if options.partial_update and options.operation != "upsert":
        raise InvalidError(
            f"drawstring.write.partial_update needs the operation upsert, but this is {options.operation}."
            " Drop the option."
        )
    if options.partial_update and options.null_for_missing:
        raise InvalidError(
            "drawstring.write.partial_update=true leaves missing columns as they are, and"
            " hoodie.write.set.null.for.missing.columns=true makes them null. Drop one of them."
        )
    if options.partitions_to_delete and options.operation != "delete_partition":
        raise InvalidError(
            "hoodie.datasource.write.partitions.to.delete needs the operation delete_partition, but this is"
            f" {options.operation}. Drop one of the options."
        )
    if options.bucket_expressions and (options.index_type or "BUCKET") != "BUCKET":
        raise InvalidError(f"{EXPRESSIONS} needs hoodie.index.type=BUCKET. Set it, or drop the rules.")
    if stray := set(options.bucket_hash_fields) - set(options.record_key or options.bucket_hash_fields):
        raise InvalidError(
            f"hoodie.bucket.index.hash.field has {', '.join(sorted(stray))}, which is not a column of the "
            f"record key ({', '.join(options.record_key)}). Use columns of the record key."
        )


__all__ = [
    "DEFAULT_BUCKET_COUNT",
    "OPERATION_KEY",
    "ReadOptions",
    "WriteOptions",
    "check_call",
    "table_scope",
]


_A_MODE: Final = "that of its merge mode"


def check_against(options: WriteOptions, config: TableConfig) -> None:
    """Check that the options of a write or table service agree with the table's configuration.

    Raises:
        InvalidError: they differ.
    """
    partition_path = options.partition_path
    columns, types = typed_columns(partition_path) if partition_path else ((), ())
    for name, requested, actual in (
        ("table name", options.table_name, config.name),
        ("table type", options.table_type, config.table_type),
        ("table version", options.table_version, config.version),
        ("record key", options.record_key, config.record_key_fields),
        ("partition path", columns, config.partition_fields),
        ("ordering", _prescribed(config) or options.ordering, config.ordering_fields),
        ("hive-style partitioning", options.hive_style, config.hive_style),
        ("URL-encoding of partitions", options.url_encode, config.url_encode),
        ("key generator", options.key_generator, config.path_generator),
        ("types of partition columns", config.partition_types and types, config.partition_types),
        *((key, text, config.properties.get(key) or text) for key, text in options.key_settings.items()),
        ("meta columns", options.populate_meta_fields, config.populate_meta_fields),
        ("dropping partition columns", options.drop_partition_columns, config.drop_partition_columns),
        ("CDC logging", options.cdc_enabled, config.cdc_enabled),
        ("CDC logging mode", (config.cdc_enabled and options.cdc_mode) or None, config.cdc_mode),
        (
            "storage layout",
            (config.is_merge_on_read and options.storage_layout) or None,
            config.storage_layout,
        ),
        ("format of base files", options.base_file_format, config.base_file_format.lower()),
        ("merge mode", options.merge_mode, config.merge_mode),
        *_payload(options, config),
        (
            "a bucket index",
            config.index_type and _is_bucket(options.index_type),
            _is_bucket(config.index_type),
        ),
        *_buckets(options, config),
    ):
        if requested not in (None, ()) and requested != actual:
            raise InvalidError(
                f"The options say {name} {_shown(requested)} but the table has {_shown(actual)}. "
                "Drop the option, or use another table."
            )


def check_place(given: Given, address: str) -> None:
    """Check that the options of a write or table service name no other folder than the table's.

    Args:
        given: the options.
        address: of the table's root.

    Raises:
        InvalidError: they do.
    """
    for key, value in given.items():
        if key.lower() == WRITE_BASE_PATH and value and _plain(str(value)) != _plain(address):
            raise InvalidError(
                f"{key} is {value}, but the table is at {address}. Drop the option, or open the other table."
            )


def _plain(address: str) -> str:
    """Return an address without what may differ between two of the same folder."""
    plain = re.sub(r"^file:/+", "/", re.sub(r"^s3[an]:", "s3:", address)).rstrip("/")
    return plain if "://" in plain else abspath(plain)


def _buckets(options: WriteOptions, config: TableConfig) -> tuple[tuple[str, object, object], ...]:
    """Return names, requested and actual values of the settings of a bucket index."""
    hashed = config.properties.get(HASH_FIELDS) and tuple(sorted(options.bucket_hash_fields))
    return (
        ("hash fields of buckets", hashed, tuple(sorted(config.bucket_hash_fields))),
        ("bucket engine", config.index_type and options.bucket_engine, config.bucket_engine),
        ("number of buckets", config.bucket_count and options.bucket_count, config.bucket_count),
    )


def _payload(options: WriteOptions, config: TableConfig) -> tuple[tuple[str, str | None, str], ...]:
    """Return names, requested and actual values of what merges beside the merge mode."""
    merging = options.payload_class and _merging(options.payload_class)
    stored = config.merge_properties
    return (
        ("payload class", merging, _stored_merging(config)),
        ("delete field", options.delete_field, stored.get(DELETE_FIELD, "none")),
        ("delete marker", options.delete_marker, stored.get(DELETE_MARKER, "none")),
    )


def _merging(class_name: str) -> str:
    """Return what the records of tables with a payload class merge by: a mode, or a class of its own."""
    known = payload_class(class_name)
    return _A_MODE if known and known.is_plain else simple_class_name(class_name)


def _stored_merging(config: TableConfig) -> str:
    return _merging(config.payload_class) if config.payload_class else _A_MODE


def _prescribed(config: TableConfig) -> tuple[str, ...]:
    """Return the ordering fields that the table's payload class prescribes, whatever writers name."""
    known = payload_class(config.payload_class)
    return config.ordering_fields if known and known.code.ordering_fields else ()


def _is_bucket(index_type: str | None) -> bool | None:
    return None if index_type is None else index_type == "BUCKET"


def _shown(value: object) -> str:
    return ",".join(value) or "none" if isinstance(value, tuple) else str(value)
