"""The properties of a new table, with every key that readers of versions 6, 8, 9 and 10 need.

| | 6 | 8 | 9, 10 |
|---|---|---|---|
| merge mode | - | yes | yes |
| strategy id, payload class | yes | yes | - |
| ordering columns also as `precombine.field` | yes | yes | - |
| initial version, several base formats | - | yes | yes |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table.kinds import (
    TableType,
    has_some_meta_fields,
    typed_columns,
)
from drawstring.config.table.new_index import index_properties
from drawstring.config.table.new_keys import KEY_PROPERTIES, key_properties
from drawstring.config.table.new_merging import MODE_KEY, PAYLOAD_KEYS, STRATEGY_KEY, new_merging
from drawstring.config.table.properties import table_checksum
from drawstring.config.table.storage_layout import BASE_FORMAT, layout_property
from drawstring.config.table.virtual_keys import (
    check_leaner_files,
    meta_field_properties,
)
from drawstring.model.table_version import WRITABLE_VERSIONS, VersionRules, writable_rules

_CHOICE: Final = f"Choose one of {', '.join(map(str, WRITABLE_VERSIONS))}."
_EXTRACTORS: Final = "org.apache.hudi.hive."
CDC_MODE: Final = "hoodie.table.cdc.supplemental.logging.mode"
_CONSUMED: Final = frozenset(
    {
        MODE_KEY,
        STRATEGY_KEY,
        "hoodie.table.checksum",
        "hoodie.table.initial.version",
        *KEY_PROPERTIES,
        "hoodie.timeline.layout.version",
        *PAYLOAD_KEYS,
    }
)
"""Keys of `extra` that determine other keys, or that users cannot set."""


def new_table_properties(
    *,
    name: str,
    table_type: TableType,
    version: int,
    record_key: Sequence[str],
    partition_by: Sequence[str],
    ordering: Sequence[str],
    schema_json: str | None,
    extra: Mapping[str, str],
) -> dict[str, str]:
    """Return the properties of a new table, including the checksum.

    Args:
        name: name of the table.
        table_type: COPY_ON_WRITE or MERGE_ON_READ.
        version: table version, 6, 8, 9 or 10.
        record_key, partition_by, ordering: column names; partition columns have types with a CUSTOM key
            generator.
        schema_json: Avro schema of the table without meta columns.
        extra: further keys that a table stores, as returned by `options.table_scope`.

    Raises:
        InvalidError: the name is not valid, or the properties contradict each other.
        UnsupportedError: drawstring cannot write the version or the merge mode.
    """
    _check_name(name)
    if not isinstance(version, int):
        raise InvalidError(f"The table version {version!r} is not a number. {_CHOICE}")
    rules = writable_rules(version)
    if rules is None:
        raise UnsupportedError(f"A table of version {version} cannot be created. {_CHOICE}")
    merging = new_merging(extra, tuple(ordering), rules)
    of_index = index_properties(extra, record_key)
    keys = key_properties(tuple(record_key), tuple(partition_by), rules, extra)
    properties = _identity(name, TableType(table_type), rules, extra)
    properties |= _columns(tuple(record_key), merging.ordering, rules) | merging.properties
    properties |= keys | _layout(len(partition_by), extra)
    if schema_json:
        properties["hoodie.table.create.schema"] = schema_json
    properties |= {key: value for key, value in extra.items() if key not in _CONSUMED} | _change_logs(extra)
    properties[BASE_FORMAT] = _base_format(properties[BASE_FORMAT], rules)
    if not has_some_meta_fields(properties):
        properties |= meta_field_properties(properties, has_mode=rules.stores_meta_fields_mode)
    properties |= of_index | layout_property(properties, record_key, rules)
    columns, _ = typed_columns(partition_by)
    check_leaner_files(properties, record_key, columns, merging.ordering)
    properties["hoodie.table.checksum"] = str(table_checksum(name, extra.get("hoodie.database.name", "")))
    return properties


def _base_format(name: str, rules: VersionRules) -> str:
    base_format = name.upper()
    if base_format not in rules.base_formats:
        raise InvalidError(
            f"{BASE_FORMAT}={name} needs a later table version: no reader of version {rules.number} knows it."
            " Change that, or drop the option."
        )
    return base_format


def _check_name(name: str) -> None:
    if not name or name != name.strip() or "/" in name:
        raise InvalidError(
            f"{name!r} is not a valid table name. Give a name without slashes and without outer blanks."
        )


def _identity(
    name: str, table_type: TableType, rules: VersionRules, extra: Mapping[str, str]
) -> dict[str, str]:
    properties = {
        "hoodie.table.name": name,
        "hoodie.table.type": table_type.value,
        "hoodie.table.version": str(rules.number),
        "hoodie.timeline.layout.version": str(rules.layout.number),
        "hoodie.table.format": "native",
        BASE_FORMAT: "PARQUET",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": rules.archive_folder,
        "hoodie.populate.meta.fields": "true",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.cdc.enabled": "false",
    }
    if rules.stores_initial_version:
        properties["hoodie.table.initial.version"] = str(rules.number)
        properties["hoodie.table.multiple.base.file.formats.enable"] = "false"
    return properties


def _columns(record_key: tuple[str, ...], ordering: tuple[str, ...], rules: VersionRules) -> dict[str, str]:
    properties = {}
    if record_key:
        properties["hoodie.table.recordkey.fields"] = ",".join(record_key)
    if ordering:
        properties["hoodie.table.ordering.fields"] = ",".join(ordering)
        if rules.stores_precombine_field:
            # Releases before 1.1 read only this key.
            properties["hoodie.table.precombine.field"] = ",".join(ordering)
    return properties


def _change_logs(extra: Mapping[str, str]) -> dict[str, str]:
    is_on = extra.get("hoodie.table.cdc.enabled", "").lower() == "true"
    mode = extra.get(CDC_MODE)
    if mode and not is_on:
        raise InvalidError(f"{CDC_MODE} needs hoodie.table.cdc.enabled=true. Set it, or drop the mode.")
    return {CDC_MODE: mode or "DATA_BEFORE_AFTER"} if is_on else {}


def _layout(partition_columns: int, extra: Mapping[str, str]) -> dict[str, str]:
    hive_style = extra.get("hoodie.datasource.write.hive_style_partitioning", "false").lower()
    if partition_columns != 1:
        extractor = "MultiPartKeysValueExtractor"
    elif hive_style == "true":
        extractor = "HiveStylePartitionValueExtractor"
    else:
        extractor = "SinglePartPartitionValueExtractor"
    return {
        "hoodie.table.partition_extractor_class": _EXTRACTORS + extractor,
        "hoodie.datasource.write.hive_style_partitioning": hive_style,
        "hoodie.datasource.write.partitionpath.urlencode": "false",
    }
