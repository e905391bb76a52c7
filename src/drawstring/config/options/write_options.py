"""Options of one write or one read as typed fields, parsed once at the edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.append import APPEND_OPTIONS, AppendMerging
from drawstring.config.keys.archive import ARCHIVE_OPTIONS, Archiving
from drawstring.config.keys.bootstrap import BOOTSTRAP_OPTIONS, Bootstrap
from drawstring.config.keys.bulk import BULK_OPTIONS, BulkInsert
from drawstring.config.keys.clean import CLEAN_OPTIONS, Cleaning
from drawstring.config.keys.clustering import Clustering
from drawstring.config.keys.compaction import CompactionSettings
from drawstring.config.keys.failed_writes import FAILED_WRITES_OPTIONS, FailedWrites
from drawstring.config.keys.index import EXPRESSIONS
from drawstring.config.keys.sizing import SIZING_OPTIONS, Sizing
from drawstring.config.keys.ttl import TTL_OPTIONS, PartitionTtl
from drawstring.config.keys.write import IDENTITY_OPTIONS, WRITE_OPTIONS
from drawstring.config.options.option import Given, Option, Scope, Value, text_of
from drawstring.config.options.read_options import ReadOptions
from drawstring.config.options.registry import (
    OPTION_OF_KEY,
    check_names,
    fields_of,
    parse_options,
    unknown_key,
)
from drawstring.config.table.config import TableConfig
from drawstring.config.table.key_settings import KEY_SETTINGS
from drawstring.config.table.kinds import (
    KeyGeneratorType,
    TableType,
    generator_of_class,
    generator_of_type,
    typed_columns,
)
from drawstring.config.table.merging import MergeMode, asked_mode

DEFAULT_BUCKET_COUNT: Final = 256
OPERATION_KEY: Final = "hoodie.datasource.write.operation"
_TYPE_KEY: Final = "hoodie.datasource.write.keygenerator.type"
_CLASS_KEY: Final = "hoodie.datasource.write.keygenerator.class"
_MODE_KEY: Final = "hoodie.record.merge.mode"
_PAYLOAD_KEY: Final = "hoodie.datasource.write.payload.class"
_GROUPS: Final[Mapping[str, tuple[type[Any], tuple[Option, ...]]]] = {
    "sizing": (Sizing, SIZING_OPTIONS),
    "bulk": (BulkInsert, BULK_OPTIONS),
    "bootstrap": (Bootstrap, BOOTSTRAP_OPTIONS),
    "appending": (AppendMerging, APPEND_OPTIONS),
    "cleaning": (Cleaning, CLEAN_OPTIONS),
    "failed_writes": (FailedWrites, FAILED_WRITES_OPTIONS),
    "archiving": (Archiving, ARCHIVE_OPTIONS),
    "ttl": (PartitionTtl, TTL_OPTIONS),
}
"""Options that make one field of `WriteOptions` together, and what that is."""

_SINGLE: Final = tuple(
    option for option in WRITE_OPTIONS if not any(option in group for _, group in _GROUPS.values())
)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a write was told; None or empty where it was told nothing and the table knows.

    Attributes:
        operation: `upsert`, `insert`, `bulk_insert`, `append`, `delete`, `insert_overwrite`,
            `insert_overwrite_table`, `delete_partition` or `bootstrap`.
        partitions_to_delete: paths and patterns of delete_partition.
        table_name, table_type, table_version: of a new table.
        record_key, partition_path, ordering: columns of a new table.
        hive_style, url_encode: of the partition paths of a new table.
        key_generator: kind of key generator of a new table.
        key_settings: what else it has to know, by the keys that tables store it under.
        cdc_enabled, cdc_mode: whether and how a new table logs changes.
        populate_meta_fields, drop_partition_columns: what files of a new table hold.
        merge_mode, payload_class: how versions of a record merge.
        index_type: `SIMPLE`, `BLOOM`, `GLOBAL_SIMPLE`, `GLOBAL_BLOOM` or `BUCKET`.
        bucket_count, bucket_expressions, bucket_hash_fields, bucket_engine: of the bucket index.
        simple_index_moves, bloom_index_moves: whether records change their partition with a global index.
        bloom_prunes_by_ranges: whether bloom indexes look at key ranges.
        log_index, log_index_clique_files: whether log files carry an index, and how many tell of it together.
        log_block_format: `parquet` or `avro`.
        compression: codec of Parquet data.
        bloom_enabled: whether base files carry a bloom filter.
        sizing: how large base files are to be.
        bulk, bootstrap: how a bulk insert orders rows, and what a bootstrap makes a table of.
        clustering: what clustering brings together, and when.
        appending: when appends merge small files.
        cleaning: which old versions of files go.
        failed_writes: who takes back what dead writers left.
        archiving: how many instants stay on the active timeline.
        ttl: how long partitions live.
        partial_update, partial_merges: whether upsert, and updates and merges, write some columns alone.
        allow_empty_commit: whether a write that changes no file is a commit all the same.
        combine_before_insert, combine_before_upsert: whether one record of a key is kept.
        insert_duplicates: `none`, `drop` or `fail`: what insert does with keys that are there.
        drop_duplicates: whether insert drops them, and keeps one record of a key.
        compaction: how and when a table is compacted.
        lock_wait_ms: how long a write waits for another one.
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
    merge_mode: MergeMode | None
    payload_class: str | None
    index_type: str | None
    bucket_count: int | None
    bucket_expressions: str | None
    bucket_hash_fields: tuple[str, ...]
    bucket_engine: str | None
    simple_index_moves: bool
    bloom_index_moves: bool
    bloom_prunes_by_ranges: bool
    log_index: bool | None
    log_index_clique_files: int | None
    log_block_format: str
    compression: str
    bloom_enabled: bool
    sizing: Sizing
    bulk: BulkInsert
    clustering: Clustering
    appending: AppendMerging
    cleaning: Cleaning
    failed_writes: FailedWrites
    archiving: Archiving
    bootstrap: Bootstrap
    ttl: PartitionTtl
    partial_update: bool
    null_for_missing: bool
    partial_merges: bool
    allow_empty_commit: bool
    combine_before_insert: bool
    insert_duplicates: str
    drop_duplicates: bool
    combine_before_upsert: bool
    compaction: CompactionSettings
    lock_wait_ms: int

    @property
    def known_keys(self) -> str:
        """What insert does with rows whose key the table has: `none`, `drop` or `fail`."""
        return "drop" if self.drop_duplicates else self.insert_duplicates

    @classmethod
    def parse(cls, given: Given) -> Self:
        """Return the options that texts (or Python values) under Hudi's keys say.

        Raises:
            InvalidError: an unknown key, a value that makes no sense, or a contradiction.
            UnsupportedError: something that this release does not carry out.
        """
        found = parse_options(given, Scope.WRITE)
        fields = fields_of(_SINGLE, found)
        fields |= {name: group(**fields_of(options, found)) for name, (group, options) in _GROUPS.items()}
        table_type = fields["table_type"]
        fields |= {
            "compaction": CompactionSettings.take(fields),
            "clustering": Clustering.take(fields),
            "table_type": TableType(table_type) if table_type else None,
            "key_generator": _key_generator(found),
            "key_settings": {
                option.stored_as: text_of(found[option][1]) for option in KEY_SETTINGS if option in found
            },
            "merge_mode": asked_mode(_given_text(found, _MODE_KEY), _given_text(found, _PAYLOAD_KEY)),
        }
        options = cls(**fields)
        _check_write(options)
        return options


def check_call(given: Given, operation: str | None = None) -> None:
    """Refuse what makes no sense beside a verb of the Python interface.

    Args:
        given: options as the user gave them.
        operation: what the verb does; None for a service.

    Raises:
        InvalidError: a name that is no option, or another operation.
    """
    check_names(given)
    asked = _given_text(parse_options(given, Scope.WRITE), OPERATION_KEY)
    if operation and asked and asked != operation:
        raise InvalidError(
            f"{OPERATION_KEY} is {asked} but the call is {operation}: leave the option out, or call {asked}"
        )


def table_scope(given: Given, *, strict: bool = False) -> dict[str, str]:
    """Return the options that a new table stores, under the keys that it stores them by.

    Args:
        given: options or table properties as a user gave them.
        strict: refuse options that a table does not store, rather than leave them to the write.

    Raises:
        InvalidError: as `WriteOptions.parse`; in strict mode also an option of single writes or reads.
        UnsupportedError: as `WriteOptions.parse`.
    """
    if strict:
        check_names(given)
    stored: dict[str, str] = {}
    for option, (key, value) in parse_options(given, Scope.WRITE).items():
        text = text_of(value)
        if option.stored_as and text:
            stored[option.stored_as] = text
        elif strict and option in _NOT_OF_TABLES:
            what = "an argument of its own" if option in IDENTITY_OPTIONS else "an option of a write"
            raise InvalidError(f"{key} is not a property to set on a table: it is {what}")
    if strict:
        for name in given:
            option_of_read = OPTION_OF_KEY.get(name.lower())
            if option_of_read is not None and option_of_read.scope is Scope.READ:
                raise InvalidError(f"{name} is not a property of a table: it is an option of a read")
    return stored


def check_against(options: WriteOptions, config: TableConfig) -> None:
    """Make sure that what a write or a service says about its table is what the table says.

    Raises:
        InvalidError: they differ.
    """
    columns, types = typed_columns(options.partition_path)
    for what, asked, actual in (
        ("table name", options.table_name, config.name),
        ("table type", options.table_type, config.table_type),
        ("table version", options.table_version, config.version),
        ("record key", options.record_key, config.record_key_fields),
        ("partition path", columns, config.partition_fields),
        ("ordering", options.ordering, config.ordering_fields),
        ("hive-style partitioning", options.hive_style, config.hive_style),
        ("URL-encoding of partitions", options.url_encode, config.url_encode),
        ("key generator", options.key_generator, config.path_generator),
        ("types of partition columns", config.partition_types and types, config.partition_types),
        *((key, text, config.properties.get(key) or text) for key, text in options.key_settings.items()),
        ("meta columns", options.populate_meta_fields, config.populate_meta_fields),
        ("dropping partition columns", options.drop_partition_columns, config.drop_partition_columns),
        ("CDC logging", options.cdc_enabled, config.cdc_enabled),
        ("CDC logging mode", (config.cdc_enabled and options.cdc_mode) or None, config.cdc_mode),
        ("merge mode", options.merge_mode, config.merge_mode),
        (
            "a bucket index",
            config.index_type and _is_bucket(options.index_type),
            _is_bucket(config.index_type),
        ),
        ("bucket engine", config.index_type and options.bucket_engine, config.bucket_engine),
        ("number of buckets", config.bucket_count and options.bucket_count, config.bucket_count),
    ):
        if asked not in (None, ()) and asked != actual:
            raise InvalidError(
                f"the options say {what} {_shown(asked)} but the table has {_shown(actual)}: "
                "leave the option out, or name another table"
            )
    has_buckets = "BUCKET" in (options.index_type, config.index_type) or config.bucket_count is not None
    if options.bucket_count and not has_buckets:
        raise InvalidError(
            "hoodie.bucket.index.num.buckets needs a bucket index, and the table names none: leave the option"
            " out, or set hoodie.index.type=BUCKET if the table was written with that"
        )


_NOT_OF_TABLES: Final = frozenset(option for option in WRITE_OPTIONS if not option.stored_as)


def _given_text(found: Mapping[Option, tuple[str, Value]], key: str) -> str | None:
    entry = found.get(OPTION_OF_KEY[key])
    return text_of(entry[1]) or None if entry else None


def _key_generator(found: Mapping[Option, tuple[str, Value]]) -> KeyGeneratorType | None:
    by_type, by_class = _given_text(found, _TYPE_KEY), _given_text(found, _CLASS_KEY)
    kinds = {generator_of_type(by_type)} if by_type else set()
    if by_class:
        kinds.add(generator_of_class(by_class))
    if len(kinds) > 1:
        raise InvalidError(f"{_TYPE_KEY}={by_type} and {_CLASS_KEY}={by_class} differ: leave out one")
    return kinds.pop() if kinds else None


def _check_write(options: WriteOptions) -> None:
    if options.operation == "upsert" and not options.combine_before_upsert:
        raise UnsupportedError(
            "hoodie.combine.before.upsert=false would leave several records of a key: leave it out"
        )
    if options.drop_duplicates and options.insert_duplicates == "fail":
        raise InvalidError(
            "hoodie.datasource.insert.dup.policy=fail and hoodie.datasource.write.insert.drop.duplicates=true"
            " contradict each other: leave one of them out"
        )
    if options.partial_update and options.operation != "upsert":
        raise InvalidError(
            f"drawstring.write.partial_update goes with operation upsert, and this is {options.operation}:"
            " leave it out"
        )
    if options.partitions_to_delete and options.operation != "delete_partition":
        raise InvalidError(
            "hoodie.datasource.write.partitions.to.delete goes with operation delete_partition, and this is"
            f" {options.operation}: leave one of them out"
        )
    if options.index_type not in (None, "BUCKET") and options.bucket_count:
        raise InvalidError(
            "hoodie.bucket.index.num.buckets needs hoodie.index.type=BUCKET: set it, or leave out the buckets"
        )
    if options.bucket_expressions and (options.index_type or "BUCKET") != "BUCKET":
        raise InvalidError(f"{EXPRESSIONS} needs hoodie.index.type=BUCKET: set it, or leave out the buckets")
    if stray := set(options.bucket_hash_fields) - set(options.record_key or options.bucket_hash_fields):
        raise InvalidError(
            f"hoodie.bucket.index.hash.field has {', '.join(sorted(stray))}, which is no column of the "
            f"record key ({', '.join(options.record_key)})"
        )


def _is_bucket(index_type: str | None) -> bool | None:
    return None if index_type is None else index_type == "BUCKET"


def _shown(value: object) -> str:
    return ",".join(value) or "none" if isinstance(value, tuple) else str(value)


__all__ = [
    "DEFAULT_BUCKET_COUNT",
    "OPERATION_KEY",
    "ReadOptions",
    "WriteOptions",
    "check_against",
    "check_call",
    "table_scope",
    "unknown_key",
]
