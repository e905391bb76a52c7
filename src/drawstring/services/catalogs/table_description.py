"""Describe a table for a catalog, as Hudi's sync writes it.

    name, name_ro, name_rt     a MERGE_ON_READ table is up to three tables in a catalog
    columns, partition keys    in Hive's types
    classes of Hive            by which Hive reads it: depend on the format of base files, as in Hudi
    spark.sql.sources.*        by which Spark reads it
    last_commit_*_sync         how far the catalog knows the table

Types: `hive_type` returns Hive's name of the type of a column, `spark_json` Spark's schema as JSON.

`Warehouse` is a folder of tables as Spark and Hive lay it out: `rides` of database default, `lake.db/rides`
of database lake.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.types as kinds

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.ingest import CatalogSync
from drawstring.config.table_config import TableConfig
from drawstring.schema.logical_types import is_vector
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties import BACKUP_PATH, PROPERTIES_PATH
from drawstring.timeline.timeline import Timeline

_HIVE: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (kinds.is_boolean, "boolean"),
    (lambda kind: kind in (pa.int8(), pa.int16(), pa.int32(), pa.time32("ms")), "int"),
    (kinds.is_int64, "bigint"),
    (kinds.is_time64, "bigint"),
    (kinds.is_float32, "float"),
    (kinds.is_float64, "double"),
    (lambda kind: kinds.is_string(kind) or kinds.is_large_string(kind), "string"),
    (lambda kind: kinds.is_binary(kind) or kinds.is_large_binary(kind), "binary"),
    (kinds.is_fixed_size_binary, "binary"),
    (is_vector, "binary"),
    (kinds.is_date, "date"),
)
_SPARK: Final[dict[str, str]] = {"int": "integer", "bigint": "long"}


def hive_type(kind: pa.DataType, has_timestamps: bool) -> str:
    """Return Hive's type of a column.

    Args:
        kind: of the column.
        has_timestamps: whether timestamps are `timestamp`, rather than `bigint`.

    Raises:
        UnsupportedError: Hive has none.
    """
    if kinds.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if kinds.is_timestamp(kind):
        return "timestamp" if has_timestamps else "bigint"
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return f"array<{hive_type(kind.value_type, has_timestamps)}>"
    if kinds.is_map(kind):
        key, value = hive_type(kind.key_type, has_timestamps), hive_type(kind.item_type, has_timestamps)
        return f"map<{key},{value}>"
    if kinds.is_struct(kind):
        fields = (f"{each.name}:{hive_type(each.type, has_timestamps)}" for each in kind)
        return f"struct<{','.join(fields)}>"
    return _plain(kind)


def _plain(kind: pa.DataType) -> str:
    for is_kind, name in _HIVE:
        if is_kind(kind):
            return name
    raise UnsupportedError(f"Catalogs have no type for {kind}.")


def spark_json(schema: pa.Schema) -> dict[str, Any]:
    """Return a schema as Spark's JSON has it."""
    fields = [
        {"name": each.name, "type": _spark_type(each.type), "nullable": each.nullable, "metadata": {}}
        for each in schema
    ]
    return {"type": "struct", "fields": fields}


def _spark_type(kind: pa.DataType) -> Any:
    if kinds.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if kinds.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        element = kind.value_field
        return {"type": "array", "elementType": _spark_type(element.type), "containsNull": element.nullable}
    if kinds.is_map(kind):
        key, value = _spark_type(kind.key_type), _spark_type(kind.item_type)
        nullable = kind.item_field.nullable
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": nullable}
    if kinds.is_struct(kind):
        return spark_json(pa.schema(list(kind)))
    name = _plain(kind)
    return _SPARK.get(name, name)


COMMIT_SYNCED: Final = "last_commit_time_sync"
COMPLETION_SYNCED: Final = "last_commit_completion_time_sync"
SYNCED: Final = (COMMIT_SYNCED, COMPLETION_SYNCED)
CREATED_BY: Final = "created by a sync of a Hudi table"
_HUDI_FORMATS: Final = "org.apache.hudi.hadoop."
_HIVE_FORMATS: Final = "org.apache.hadoop.hive.ql.io."
_NAME_IN_CLASSES: Final = {"PARQUET": "Parquet", "HFILE": "HFile", "LANCE": "Lance"}
_SPARK_PROPERTIES: Final = "spark.sql.sources."
_PROVIDER: Final = f"{_SPARK_PROPERTIES}provider"
_HUDI_CLASSES: Final = ("org.apache.hudi.", "com.uber.hoodie.")
_DAYS: Final = "SlashEncodedDayPartitionValueExtractor"
_NONE: Final = "NonPartitionedExtractor"


@dataclass(frozen=True, slots=True)
class HiveClasses:
    """The classes by which Hive reads and writes a table."""

    input_format: str
    output_format: str
    serde: str


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table as a catalog has it.

    Attributes:
        database, name: its name.
        location: address of the table's root.
        columns, partition_keys: names and Hive's types.
        classes: by which Hive reads it.
        serde_properties, properties: of the table.
        owner_deletes: whether the catalog deletes the files of a table that is dropped.
    """

    database: str
    name: str
    location: str
    columns: tuple[tuple[str, str], ...]
    partition_keys: tuple[tuple[str, str], ...]
    classes: HiveClasses
    serde_properties: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    owner_deletes: bool = False

    @property
    def full_name(self) -> str:
        """Name with the database."""
        return f"{self.database}.{self.name}"


@dataclass(frozen=True, slots=True)
class CatalogPartition:
    """A partition as a catalog has it: its values and the address of its folder."""

    values: tuple[str, ...]
    location: str


def is_hudi(properties: Mapping[str, str], input_format: str | None) -> bool:
    """Return whether a table of a catalog is a Hudi table, for Spark or for Hive.

    Args:
        properties: of the table in the catalog.
        input_format: class by which Hive reads it, None if it has none.
    """
    provider = properties.get(_PROVIDER, "")
    return provider.lower() == "hudi" or (input_format or "").startswith(_HUDI_CLASSES)


def format_of(properties: Mapping[str, str], input_format: str | None, table_type: str | None) -> str:
    """Return what a table of a Hive metastore or of Glue is, which is no Hudi table.

    Args:
        properties: of the table in the catalog.
        input_format: class by which Hive reads it, None if it has none.
        table_type: `VIRTUAL_VIEW` of a view.
    """
    if "VIEW" in (table_type or "").upper():
        return "view"
    return properties.get("table_type") or properties.get(_PROVIDER) or input_format or "unknown"


def other_format(catalog: str, name: str, found: str) -> InvalidError:
    """Return the error for a table that is in a catalog under the name of a Hudi table, and is none.

    Args:
        catalog: name of the product.
        name: of the table, with its database.
        found: its format.
    """
    return InvalidError(
        f"{catalog} has {name} as a table of another format, {found}. It was not changed. Give the Hudi table"
        " another name by hoodie.datasource.hive_sync.table or hoodie.datasource.hive_sync.database, or drop"
        f" {name} from the catalog first if nobody needs it."
    )


def tables_of(
    config: TableConfig, schema: pa.Schema, location: str, timeline: Timeline, sync: CatalogSync
) -> list[CatalogTable]:
    """Return the tables that a catalog has of a table.

    Args:
        config: the table's settings.
        schema: columns as queries show them.
        location: address of the table's root.
        timeline: says how far the catalog knows the table then.
        sync: settings of the sync.

    Raises:
        UnsupportedError: only Hive would read the table, and would read files that are not its current ones.
    """
    if config.base_file_format == "ORC" and not sync.as_data_source:
        raise UnsupportedError(
            "A table with ORC base files is not registered for Hive alone"
            " (hoodie.datasource.hive_sync.sync_as_datasource=false): Hive would read superseded files, too."
            " Leave the option out, and read the table with Spark.",
            table=location,
        )
    keys = partition_fields(config, sync)
    types = {each.name: hive_type(each.type, sync.has_timestamps) for each in schema}
    columns = tuple((name.lower(), kind) for name, kind in types.items() if name not in keys)
    partition_keys = tuple((name.lower(), types.get(name, "string")) for name in keys)
    properties = _lines(sync.table_properties) | _positions(timeline)
    if not sync.managed:
        properties["EXTERNAL"] = "TRUE"
    if sync.as_data_source:
        properties |= _spark_properties(schema, keys, sync.schema_part_length)
    return [
        CatalogTable(
            sync.database or config.properties.get("hoodie.database.name") or "default",
            name.lower(),
            location,
            columns,
            partition_keys,
            _classes(config.base_file_format, is_base=is_base or not config.is_merge_on_read),
            _serde_properties(sync, location, is_base=is_base),
            properties,
            sync.managed,
        )
        for name, is_base in _names(sync.table or config.name, config, sync)
    ]


def _classes(base_format: str, *, is_base: bool) -> HiveClasses:
    """Return the classes for a format of base files; Hive's own for ORC, which knows no file slices."""
    if base_format == "ORC":
        orc = f"{_HIVE_FORMATS}orc.Orc"
        return HiveClasses(f"{orc}InputFormat", f"{orc}OutputFormat", f"{orc}Serde")
    name = _NAME_IN_CLASSES[base_format]
    own = f"Hoodie{name}InputFormat" if is_base else f"realtime.Hoodie{name}RealtimeInputFormat"
    parquet = f"{_HIVE_FORMATS}parquet."
    return HiveClasses(
        f"{_HUDI_FORMATS}{own}", f"{parquet}MapredParquetOutputFormat", f"{parquet}serde.ParquetHiveSerDe"
    )


def _names(name: str, config: TableConfig, sync: CatalogSync) -> Iterator[tuple[str, bool]]:
    """Yield the names of the tables, and whether each is read-optimized."""
    if not config.is_merge_on_read:
        yield name, False
    elif sync.strategy != "ALL":
        yield name, sync.strategy == "RO"
    else:
        yield (name if sync.skips_ro_suffix else f"{name}_ro"), True
        yield f"{name}_rt", False
        if not sync.skips_ro_suffix:
            yield name, False


def _serde_properties(sync: CatalogSync, location: str, *, is_base: bool) -> dict[str, str]:
    properties = _lines(sync.serde_properties) | {"serialization.format": "1"}
    if sync.as_data_source:
        properties |= {"path": location, "hoodie.query.as.ro.table": "true" if is_base else "false"}
    return properties


def _positions(timeline: Timeline) -> dict[str, str]:
    latest = timeline.latest_write()
    if latest is None:
        return {}
    completed = max(each.completed or each.requested for each in timeline.writes())
    return {COMMIT_SYNCED: latest.requested, COMPLETION_SYNCED: completed}


def _spark_properties(schema: pa.Schema, keys: Sequence[str], part_length: int) -> dict[str, str]:
    """Return the schema as Spark keeps it in table properties, partition columns last."""
    last = [schema.field(name) for name in keys if name in schema.names]
    ordered = pa.schema([*(each for each in schema if each.name not in keys), *last])
    text = json.dumps(spark_json(ordered), separators=(",", ":"))
    parts = [text[start : start + part_length] for start in range(0, len(text), part_length)]
    properties = {_PROVIDER: "hudi", f"{_SPARK_PROPERTIES}schema.numParts": str(len(parts))}
    properties |= {f"{_SPARK_PROPERTIES}schema.part.{number}": part for number, part in enumerate(parts)}
    if keys:
        properties[f"{_SPARK_PROPERTIES}schema.numPartCols"] = str(len(keys))
        properties |= {
            f"{_SPARK_PROPERTIES}schema.partCol.{number}": name for number, name in enumerate(keys)
        }
    return properties


def partition_fields(config: TableConfig, sync: CatalogSync) -> tuple[str, ...]:
    """Return the partition columns that the catalog gets."""
    if sync.extractor.endswith(_NONE):
        return ()
    return sync.partition_fields or tuple(config.partition_fields)


def partition_of(path: str, location: str, config: TableConfig, sync: CatalogSync) -> CatalogPartition:
    """Return a partition by its path.

    Raises:
        UnsupportedError: the path does not have a value for each partition column.
    """
    fields = partition_fields(config, sync)
    parts = path.split("/") if len(fields) != 1 or sync.extractor.endswith(_DAYS) else [path]
    values = [part.partition("=")[2] if "=" in part else part for part in parts]
    if sync.extractor.endswith(_DAYS) and len(values) == 3:
        values = ["-".join(values)]
    if len(values) != len(fields):
        raise UnsupportedError(
            f"The path of partition {path!r} does not have a value for each of {', '.join(fields)}. Set"
            " hoodie.datasource.hive_sync.partition_fields or partition_extractor_class."
        )
    if config.url_encode:
        values = [unquote(value) for value in values]
    return CatalogPartition(tuple(values), f"{location}/{path}")


def _lines(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


_SUFFIX: Final = ".db"
_DEFAULT: Final = "default"


class Warehouse:
    """A folder of tables.

    Args:
        storage: of the folder.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def databases(self) -> list[str]:
        """Return the names of the databases; there is always a default one."""
        found = self._storage.list_folders("")
        return [_DEFAULT, *(each.removesuffix(_SUFFIX) for each in found if each.endswith(_SUFFIX))]

    def table_names(self, database: str) -> list[str]:
        """Return the names of the Hudi tables of a database."""
        found = self._storage.list_folders(_folder_of(database))
        return [each.rpartition("/")[2] for each in found if self._is_table(each)]

    def location(self, database: str, name: str) -> str | None:
        """Return the address of a Hudi table, None if there is none of this name."""
        folder = _folder_of(database)
        path = f"{folder}/{name}" if folder else name
        return f"{self._storage.spec.uri.rstrip('/')}/{path}" if self._is_table(path) else None

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _is_table(self, folder: str) -> bool:
        return any(self._storage.exists(f"{folder}/{file}") for file in (PROPERTIES_PATH, BACKUP_PATH))


def _folder_of(database: str) -> str:
    return "" if database == _DEFAULT else f"{database}{_SUFFIX}"
