"""Checks that the options of a write agree with the table."""

from __future__ import annotations

import re
from os.path import abspath
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.keys.index import HASH_FIELDS
from drawstring.config.keys.write import BASE_PATH
from drawstring.config.options.option import Given
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.config.table.kinds import typed_columns
from drawstring.config.table.merge_rules import (
    DELETE_FIELD,
    DELETE_MARKER,
    payload_rule,
    special_payload,
)

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
        if key.lower() == BASE_PATH and value and _plain(str(value)) != _plain(address):
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


def _merging(payload_class: str) -> str:
    """Return what the records of tables with a payload class merge by: a mode, or a class of its own."""
    return special_payload(payload_class) or _A_MODE


def _stored_merging(config: TableConfig) -> str:
    return _merging(config.payload_class) if config.payload_class else _A_MODE


def _prescribed(config: TableConfig) -> tuple[str, ...]:
    """Return the ordering fields that the table's payload class prescribes, whatever writers name."""
    rule = payload_rule(config.payload_class or "")
    return config.ordering_fields if rule is not None and rule.ordering_fields else ()


def _is_bucket(index_type: str | None) -> bool | None:
    return None if index_type is None else index_type == "BUCKET"


def _shown(value: object) -> str:
    return ",".join(value) or "none" if isinstance(value, tuple) else str(value)
