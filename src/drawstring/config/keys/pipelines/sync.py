"""Options of the sync that tells a catalog about a table after each commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option

_HIVE: Final = "hoodie.datasource.hive_sync."
_META: Final = "hoodie.meta.sync."
_DATAHUB: Final = f"{_META}datahub."


@dataclass(frozen=True, slots=True)
class CatalogSync:
    """Settings of the sync.

    Attributes:
        hive_enabled, meta_enabled: whether a commit is followed by a sync: to Hive, and to what `tools` name.
        tools: Hudi's classes of sync tools.
        mode: how Hive is reached: `hms`, `hiveql`, `jdbc`; empty for the default.
        metastore_uris: addresses of the Hive metastore, as thrift://host:port.
        database, table: name in the catalog; by default those of the table.
        partition_fields: partition columns in the catalog; by default those of the table.
        extractor: Hudi's class that takes values out of partition paths.
        strategy: which tables a MERGE_ON_READ table is in the catalog: `ALL`, `RO` or `RT`.
        skips_ro_suffix: whether its read-optimized table has the plain name.
        has_timestamps: whether timestamps are `timestamp`, rather than `bigint`.
        as_data_source: whether Spark reads the table as a Hudi table.
        creates_database: whether a missing database is created.
        managed: whether dropping the table in the catalog deletes its files.
        omits_meta: whether the meta columns are left out.
        is_incremental: whether a sync looks at partitions with commits since the last one alone.
        schema_part_length: longest part of the schema in one table property.
        table_properties, serde_properties: more properties, as lines of `key=value`.
        datahub_server, datahub_token: address of DataHub, and the token that requests carry.
        datahub_platform, datahub_environment: parts of the names of DataHub's datasets.
        polaris_url: address of a catalog of Polaris.
    """

    hive_enabled: bool
    meta_enabled: bool
    tools: tuple[str, ...]
    mode: str
    metastore_uris: tuple[str, ...]
    database: str
    table: str
    partition_fields: tuple[str, ...]
    extractor: str
    strategy: str
    skips_ro_suffix: bool
    has_timestamps: bool
    as_data_source: bool
    creates_database: bool
    managed: bool
    omits_meta: bool
    is_incremental: bool
    schema_part_length: int
    table_properties: str
    serde_properties: str
    datahub_server: str
    datahub_token: str
    datahub_platform: str
    datahub_environment: str
    polaris_url: str


def _text(name: str, doc: str, field: str, default: str = "") -> Option:
    return Option(f"{_HIVE}{name}", doc, default=default, field=field)


def _flag(name: str, doc: str, field: str, default: bool = False) -> Option:
    return Option(f"{_HIVE}{name}", doc, kind=Kind.FLAG, default=default, field=field)


def _list(key: str, doc: str, field: str, *default: str) -> Option:
    return Option(key, doc, kind=Kind.LIST, default=tuple(default), field=field)


SYNC_OPTIONS: Final[tuple[Option, ...]] = (
    _flag("enable", "Whether a Hive metastore is told about the table after each commit.", "hive_enabled"),
    Option(
        "hoodie.datasource.meta.sync.enable",
        "Whether the catalogs of `hoodie.meta.sync.client.tool.class` are told about the table after each"
        " commit.",
        kind=Kind.FLAG,
        default=False,
        field="meta_enabled",
    ),
    _list(
        f"{_META}client.tool.class",
        "Hudi's classes of sync tools: `HiveSyncTool` for a Hive metastore, `AwsGlueCatalogSyncTool` for AWS"
        " Glue, `DataHubSyncTool` for DataHub, in full or without package; `PolarisSyncTool` for Polaris.",
        "tools",
        "org.apache.hudi.hive.HiveSyncTool",
    ),
    _text("mode", "How Hive is reached. `hms`, its metastore by Thrift, is supported.", "mode"),
    _list(
        f"{_HIVE}metastore.uris",
        "Addresses of the Hive metastore; the first that answers is taken.",
        "metastore_uris",
        "thrift://localhost:9083",
    ),
    _text("database", "Database in the catalog; `hoodie.database.name` or `default` by default.", "database"),
    _text("table", "Name in the catalog; the table's own by default.", "table"),
    _list(
        f"{_HIVE}partition_fields",
        "Partition columns in the catalog; the table's own by default.",
        "partition_fields",
    ),
    _text(
        "partition_extractor_class",
        "Class that takes values out of partition paths. `SlashEncodedDayPartitionValueExtractor` makes one"
        " date of three folders, `NonPartitionedExtractor` none; others are as the table's paths are.",
        "extractor",
    ),
    Option(
        f"{_HIVE}table.strategy",
        "Which tables a MERGE_ON_READ table is in the catalog: `RO` or `RT` one, read-optimized or as a"
        " snapshot; `ALL` both with suffixes `_ro` and `_rt`, and the snapshot without.",
        default="ALL",
        choices=("ALL", "RO", "RT"),
        field="strategy",
    ),
    _flag("skip_ro_suffix", "Whether the read-optimized table of `ALL` has no suffix.", "skips_ro_suffix"),
    _flag(
        "support_timestamp",
        "Whether timestamps are `timestamp`, rather than `bigint`.",
        "has_timestamps",
    ),
    _flag(
        "sync_as_datasource",
        "Whether Spark reads the table as a Hudi table.",
        "as_data_source",
        True,
    ),
    _flag("auto_create_database", "Whether a missing database is created.", "creates_database", True),
    _flag("create_managed_table", "Whether dropping the table in Hive deletes its files.", "managed"),
    _flag("omit_metadata_fields", "Whether the meta columns are left out.", "omits_meta"),
    Option(
        f"{_META}incremental",
        "Whether a sync looks at partitions with commits since the last sync alone; false compares all with"
        " those of the catalog.",
        kind=Kind.FLAG,
        default=True,
        field="is_incremental",
    ),
    Option(
        f"{_HIVE}schema_string_length_thresh",
        "Characters of the schema in one table property.",
        kind=Kind.NUMBER,
        default=4000,
        field="schema_part_length",
    ),
    _text("table_properties", "More table properties, one `key=value` a line.", "table_properties"),
    _text("serde_properties", "More serde properties, one `key=value` a line.", "serde_properties"),
    Option(
        f"{_DATAHUB}emitter.server",
        "Address of DataHub's metadata service.",
        default="",
        field="datahub_server",
    ),
    Option(
        f"{_DATAHUB}emitter.token", "Token that requests to DataHub carry.", default="", field="datahub_token"
    ),
    Option(
        f"{_DATAHUB}dataplatform.name",
        "Data platform of the dataset in DataHub.",
        default="hudi",
        field="datahub_platform",
    ),
    Option(
        f"{_DATAHUB}dataset.env",
        "Environment of the dataset in DataHub, such as `PROD`.",
        default="DEV",
        field="datahub_environment",
    ),
    Option(
        "drawstring.sync.polaris.url",
        "Address of a catalog of Apache Polaris, as in `https://polaris:8181/api/catalog/lake`. Id and secret"
        " of a principal may be before the host; else they are the environment's (`POLARIS_CREDENTIAL`,"
        " `ID:SECRET`, or `POLARIS_TOKEN`).",
        default="",
        field="polaris_url",
    ),
)
