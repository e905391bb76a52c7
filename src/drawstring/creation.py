"""Create a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from drawstring.base.clock import SystemClock
from drawstring.base.errors import InvalidError, UnsupportedError, errors_at
from drawstring.base.lazy import lazy_import
from drawstring.config.keys.index import EXPRESSIONS
from drawstring.config.keywords import with_keywords
from drawstring.config.options.write_options import DEFAULT_BUCKET_COUNT, table_scope
from drawstring.config.table.properties import CLASS_KEY, TYPE_KEY, new_table_properties
from drawstring.config.table.virtual_keys import DROPPED
from drawstring.config.table_config import KeyGeneratorType, TableType, table_config
from drawstring.config.table_types import META_FIELDS, registered_key_generator, typed_columns
from drawstring.engine.local import engine_of
from drawstring.engine.protocol import Engine
from drawstring.keygen.key_generator import KeyGenerator
from drawstring.keygen.texts import java_text
from drawstring.model.table_version import DEFAULT_VERSION
from drawstring.schema.avro import arrow_to_avro, commented, comments_in, record_name, with_comments
from drawstring.schema.evolution import evolve, normalise
from drawstring.schema.fields import type_at, without_meta
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage, folders_above
from drawstring.table import Table
from drawstring.timeline.properties import PROPERTIES_PATH, create_table
from drawstring.txn.table_context import TableContext

if TYPE_CHECKING:
    from drawstring.index.bucket import BucketCounts, encode_counts
else:
    lazy_import(
        globals(),
        BucketCounts="drawstring.index.bucket:BucketCounts",
        encode_counts="drawstring.index.bucket:encode_counts",
    )


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """Type, columns and version of a new table."""

    table_type: str
    version: int
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: tuple[str, ...]


def create(
    uri: str | os.PathLike[str],
    schema: Any,
    *,
    record_key: str | Sequence[str] | None = (),
    name: str | None = None,
    table_type: str = TableType.COPY_ON_WRITE,
    partition_by: str | Sequence[str] | None = (),
    ordering: str | Sequence[str] | None = (),
    index: str | None = None,
    bucket_count: int | None = None,
    merge_mode: str | None = None,
    hive_style: bool | None = None,
    cdc: bool | None = None,
    version: int = DEFAULT_VERSION,
    properties: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> Table:
    """Create an empty Hudi table.

    Args:
        uri: path or address of the root: `/path`, `file://`, `s3://` (or `s3a://`), `gs://`,
            `abfss://` or `az://`, or `memory://`, which exists as long as the process.
        schema: its columns: a pyarrow schema, or an object that exports one (`__arrow_c_schema__`). The entry
            `comment` in the metadata of a field is its comment.
        record_key: column or columns that identify a record in its partition; without them every row gets a
            generated key, which rows of a scan carry when they are updated.
        name: name of the table; the last part of the address by default.
        table_type: `COPY_ON_WRITE` or `MERGE_ON_READ`.
        partition_by: partition columns; with a CUSTOM key generator with their type, as in `"city:SIMPLE"`.
        ordering: ordering fields, also inside struct columns (`event.seq`): of versions with the same key,
            the greatest value wins; by default the latest write wins.
        index: index type: `SIMPLE`, `BLOOM`, `GLOBAL_SIMPLE`, `GLOBAL_BLOOM`,
            `RECORD_LEVEL_INDEX`, `GLOBAL_RECORD_LEVEL_INDEX` or `BUCKET`
            (`hoodie.index.type`). By default the table stores none, and writers use `SIMPLE`.
        bucket_count: buckets per partition for index `BUCKET` (`hoodie.bucket.index.num.buckets`).
        merge_mode: which version of a record wins: `EVENT_TIME_ORDERING` or `COMMIT_TIME_ORDERING`
            (`hoodie.record.merge.mode`). By default event time with ordering fields, else commit time.
        hive_style: whether names of partition folders have the form `column=value`
            (`hoodie.datasource.write.hive_style_partitioning`). False by default.
        cdc: whether writes log changes for `Table.changes` (`hoodie.table.cdc.enabled`). False by default.
        version: table version: 9, 10, 8 or 6.
        properties: further table properties by Hudi's keys, as in
            `{"hoodie.datasource.write.keygenerator.type": "COMPLEX"}`.
        storage_options: options of the object store, as in `{"region": "eu-central-1"}`.
        engine: runs the table's tasks; the embedded one by default.

    Returns:
        The table, open.

    Raises:
        InvalidError: a table already exists, or the arguments contradict each other.
        UnsupportedError: this release cannot write such tables (version, index, file format, merge mode).

    Example:
        >>> schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("ts", pa.int64())])
        >>> table = drawstring.create(
        ...     "memory://trips", schema, record_key="id", partition_by="city", ordering="ts",
        ...     index="BUCKET", bucket_count=4, properties={"hoodie.table.timeline.timezone": "UTC"},
        ... )
        >>> table.config.index_type
        'BUCKET'
    """
    said = {"index": index, "bucket_count": bucket_count, "merge_mode": merge_mode}
    given = with_keywords("create", properties, {**said, "hive_style": hive_style, "cdc": cdc})
    storage = open_storage(uri, storage_options)
    root = os.fspath(uri).rstrip("/")
    with errors_at(root):
        try:
            stored = described(
                name or root.rpartition("/")[2],
                _columns_of(schema),
                TableDefinition(
                    table_type,
                    version,
                    _names("record_key", record_key),
                    _names("partition_by", partition_by),
                    _names("ordering", ordering),
                ),
                table_scope(given, strict=True),
            )
            make_table(storage, stored)
            return Table(TableContext(storage, engine_of(engine)))
        except FileNotFoundError as error:
            raise InvalidError("A folder cannot be created at this path. Use another path.") from error


def make_table(storage: Storage, properties: Mapping[str, str]) -> None:
    """Create an empty table.

    Args:
        storage: storage of the table.
        properties: result of `described`; bucket rules are written to their own file.

    Raises:
        InvalidError: a table already exists.
    """
    rules = properties.get(EXPRESSIONS, "")
    stored = {key: value for key, value in properties.items() if key != EXPRESSIONS}
    if rules and not storage.exists(PROPERTIES_PATH):
        count = table_config(stored).bucket_count or DEFAULT_BUCKET_COUNT
        path, content = encode_counts(BucketCounts(count, rules))
        storage.put_if_absent(path, content)
        storage.sync(folders_above([path]))
    create_table(storage, stored, SystemClock())


def _columns_of(schema: Any) -> pa.Schema:
    """Return the columns of a new table."""
    try:
        # pyarrow copies a schema through the C interface, which truncates names at a NUL.
        given = schema if isinstance(schema, pa.Schema) else pa.schema(schema)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidError(
            f"Columns cannot be read from {type(schema).__name__}. Give a pyarrow schema, for example"
            " pyarrow.table(data).schema."
        ) from error
    return commented(evolve(pa.schema([]), without_meta(normalise(given))), comments_in(given))


def described(
    name: str, columns: pa.Schema, definition: TableDefinition, extra: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of a new table.

    Args:
        name: its name.
        columns: its columns.
        definition: type, columns and version of the table.
        extra: further table properties.

    Raises:
        InvalidError: the arguments contradict each other.
        UnsupportedError: this release cannot write such tables.
    """
    given_name: object = name
    if not isinstance(given_name, str):
        raise InvalidError(f"{name!r} is not a valid table name. Give a text.")
    try:
        table_type = TableType(str(definition.table_type).upper())
    except ValueError:
        raise InvalidError(
            f"There is no table type {definition.table_type!r}. Use COPY_ON_WRITE or MERGE_ON_READ."
        ) from None
    for what, names in (
        ("record_key", definition.record_key),
        ("partition_by", typed_columns(definition.partition_by)[0]),
        ("ordering", definition.ordering),
    ):
        _check_columns(what, names, columns)
    _check_nested(definition, extra, columns)
    is_dropped = extra.get(DROPPED, "").lower() == "true"
    left_out = typed_columns(definition.partition_by)[0] if is_dropped else ()
    stored = pa.schema([field for field in columns if field.name not in left_out])
    properties = new_table_properties(
        name=name,
        table_type=table_type,
        version=definition.version,
        record_key=definition.record_key,
        partition_by=definition.partition_by,
        ordering=definition.ordering,
        schema_json=with_comments(arrow_to_avro(stored, *record_name(name)), comments_in(stored)),
        extra=extra,
    )
    _check_key_types(properties, definition, columns)
    _check_buckets(properties)
    _check_payload(properties, columns)
    return properties


def _check_payload(properties: Mapping[str, str], columns: pa.Schema) -> None:
    """Check that the columns that a payload class orders by exist."""
    config = table_config(properties)
    missing = [name for name in config.ordering_fields if type_at(name, columns) is None]
    if missing:
        raise InvalidError(
            f"The payload class {config.payload_class} orders records by {', '.join(config.ordering_fields)},"
            f" but the schema lacks {', '.join(missing)}. Add it, or use another payload class."
        )


def _check_buckets(properties: Mapping[str, str]) -> None:
    """Check the bucket rules."""
    config = table_config(properties)
    rules = properties.get(EXPRESSIONS)
    if not rules:
        return
    if config.index_type != "BUCKET" or config.bucket_engine != "SIMPLE" or not config.partition_fields:
        raise InvalidError(
            f"{EXPRESSIONS} requires partitions, hoodie.index.type=BUCKET and"
            " hoodie.index.bucket.engine=SIMPLE. Remove it."
        )
    BucketCounts(config.bucket_count or DEFAULT_BUCKET_COUNT, rules).check()


def _check_key_types(properties: Mapping[str, str], definition: TableDefinition, columns: pa.Schema) -> None:
    """Check that the key generator supports the types of the partition columns."""
    config = table_config(properties)
    config = replace(
        config,
        key_function=registered_key_generator(config.key_generator_class),
        partition_types=typed_columns(definition.partition_by)[1],
    )
    KeyGenerator(config).check_columns(columns)
    for name in config.partition_fields if config.drop_partition_columns else ():
        if not pa.types.is_string(columns.field(name).type):
            raise InvalidError(
                f"{DROPPED} stores only the text of partition column {name}, which is"
                f" {columns.field(name).type}. Make it a string, or remove the option."
            )
    for name in config.partition_fields if config.path_generator is KeyGeneratorType.TIMESTAMP else ():
        kind = columns.field(name).type
        if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
            raise InvalidError(
                f"Partition column {name} is {kind}, but Hudi readers return the formatted value of a"
                " TIMESTAMP key generator as text. Make it a string or an integer, or use CUSTOM."
            )


def _check_nested(definition: TableDefinition, extra: Mapping[str, str], columns: pa.Schema) -> None:
    """Check that a table with nested key fields has what they need."""
    fields = (*definition.record_key, *typed_columns(definition.partition_by)[0])
    nested = [name for name in fields if name not in columns.names]
    is_timestamp = "TIMESTAMP" in (extra.get(TYPE_KEY) or extra.get(CLASS_KEY) or "").upper()
    is_lean = extra.get(DROPPED, "").lower() == "true" or extra.get(META_FIELDS, "").lower() == "false"
    if nested and (is_timestamp or is_lean):
        raise UnsupportedError(
            f"The field {nested[0]} is nested in a column, which this release does not support together with"
            f" a TIMESTAMP key generator, {DROPPED} or {META_FIELDS}=false. Use a column of its own, or leave"
            " these out."
        )


def _check_columns(what: str, names: tuple[str, ...], columns: pa.Schema) -> None:
    """Check that columns exist, are named once, and have suitable types."""
    for column in names:
        kind = type_at(column, columns)
        if kind is None:
            near = get_close_matches(column, columns.names, 1)
            hint = f"Did you mean {near[0]}?" if near else f"The columns are {', '.join(columns.names)}."
            raise InvalidError(f"{what} names a column {column} that the schema lacks. {hint}")
        if names.count(column) > 1:
            raise InvalidError(f"{what} names column {column} more than once. Name it once.")
        if what != "ordering":
            java_text(pa.nulls(0, kind), column)
        elif pa.types.is_nested(kind):
            raise InvalidError(f"Ordering column {column} is {kind}, which has no order. Use another column.")


def _names(what: str, value: str | Sequence[str] | None) -> tuple[str, ...]:
    given: Any = value or ()
    names = given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:
        raise InvalidError(f"{what} has {wrong!r}, which is no name of a column. Give names as texts.")
    return tuple(names)
