"""Define the options of ingestion, streaming writes, catalog sync and pre-commit validators.

- Ingestion: `drawstring.ingest`, by the keys of Hudi's own ingestion tool.
- Streaming: writes that are batches of a stream.
- Catalog sync: after each commit.

Hudi's validators are Java classes. Those that run SQL are known here by their names. For others a user
registers a Python function (`register_validator`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.option import Kind, Option, Value

_STREAMER: Final = "hoodie.streamer."
_DELTASTREAMER: Final = "hoodie.deltastreamer."
_DRAWSTRING: Final = "drawstring.ingest."
_ERRORS: Final = "hoodie.errortable."


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """What is ingested, and how.

    Attributes:
        files_root: folder or address of the files.
        files_age_ms: milliseconds since its last change from which on a file counts as complete.
        csv_separator, csv_quote, csv_escape, csv_null: how CSV files are written.
        csv_header: whether their first line names the columns.
        csv_multi_line: whether values may contain line ends.
        skips_invalid_json: whether lines that are no JSON objects are left out.
        kafka_topic: the topic that is ingested.
        kafka_max_events: largest number of its records in a batch.
        kafka_fails_on_loss: whether records that the broker deleted before they were read are an error.
        kafka_commits: whether the broker is told what was read, for its consumer group.
        kafka_appends_offsets: whether rows get columns that say where each record was.
        registry: address of a subject in a schema registry, or of the registry.
        hudi_path: root of the Hudi table that is ingested.
        hudi_commits: largest number of its commits in a batch.
        hudi_begins: `READ_LATEST` for the newest commit first, else everything there is.
        jdbc_url, jdbc_user, jdbc_password, jdbc_password_file: the database that is ingested, and the login.
        jdbc_table: its table.
        jdbc_column: column whose values grow.
        jdbc_is_incremental: whether batches have the rows with greater values, rather than all rows.
        query: the query whose result is ingested.
        query_has_checkpoint: whether its commits have the time as checkpoint.
        source_schema, target_schema: files with Avro schemas of the records as read and as written.
        transformers: what changes the rows between source and table: Hudi's classes, or `module:function`.
        sql, sql_file: the query of the SQL transformers, or the file that it is in.
        tables: tables that one call ingests into, each with options of its own; empty for one.
        target_path: root of one of them.
        quarantines: whether bad records go to an error table.
        quarantine_path, quarantine_name: root and name of that table.
        quarantine_checks_keys: whether records without a record key are such.
        quarantine_failure: `ROLLBACK_COMMIT` to fail with the error table, or `LOG_ERROR` to go on.
    """

    files_root: str | None
    files_age_ms: int
    csv_separator: str
    csv_quote: str
    csv_escape: str | None
    csv_null: str
    csv_header: bool
    csv_multi_line: bool
    skips_invalid_json: bool
    kafka_topic: str | None
    kafka_max_events: int
    kafka_fails_on_loss: bool
    kafka_commits: bool
    kafka_appends_offsets: bool
    registry: str | None
    hudi_path: str | None
    hudi_commits: int
    hudi_begins: str
    jdbc_url: str | None
    jdbc_user: str | None
    jdbc_password: str | None
    jdbc_password_file: str | None
    jdbc_table: str | None
    jdbc_column: str | None
    jdbc_is_incremental: bool
    query: str | None
    query_has_checkpoint: bool
    source_schema: str | None
    target_schema: str | None
    transformers: tuple[str, ...]
    sql: str | None
    sql_file: str | None
    tables: tuple[str, ...]
    target_path: str | None
    quarantines: bool
    quarantine_path: str | None
    quarantine_name: str | None
    quarantine_checks_keys: bool
    quarantine_failure: str


def _option(
    name: str, doc: str, field: str, kind: Kind = Kind.TEXT, default: Value = None, minimum: int = 1
) -> Option:
    return Option(
        f"{_STREAMER}{name}",
        doc,
        kind=kind,
        default=default,
        alternatives=(f"{_DELTASTREAMER}{name}",),
        field=field,
        minimum=minimum,
    )


def _flag(name: str, doc: str, field: str) -> Option:
    return _option(name, doc, field, Kind.FLAG, False)


INGEST_OPTIONS: Final[tuple[Option, ...]] = (
    _option(
        "source.dfs.root", "Folder or address whose files are ingested, with all folders below.", "files_root"
    ),
    Option(
        f"{_DRAWSTRING}files.min_age_ms",
        "Milliseconds since its last change from which on a file is taken: longer than it takes to write one,"
        " where files are not moved into the folder when they are complete.",
        kind=Kind.NUMBER,
        default=0,
        field="files_age_ms",
        minimum=0,
    ),
    Option(
        f"{_STREAMER}csv.sep",
        "What separates the values of CSV files: one character, or `\\t` for a tab.",
        default=",",
        alternatives=(f"{_DELTASTREAMER}csv.sep",),
        field="csv_separator",
        keeps_blanks=True,
    ),
    _option("csv.quote", "What encloses values.", "csv_quote", default='"'),
    _option(
        "csv.escape", "What precedes a quote inside a value; when not given, another quote.", "csv_escape"
    ),
    _option("csv.nullvalue", "The text of nulls.", "csv_null", default=""),
    _flag("csv.header", "Whether the first line of a CSV file names the columns.", "csv_header"),
    _flag("csv.multiline", "Whether values may contain line ends.", "csv_multi_line"),
    _flag(
        "source.json.skip.invalid.records",
        "Whether lines that are no JSON objects are left out, with a warning; else they are an error.",
        "skips_invalid_json",
    ),
    _option("source.kafka.topic", "The topic that is ingested.", "kafka_topic"),
    _option(
        "kafka.source.maxevents",
        "Largest number of records in a batch.",
        "kafka_max_events",
        Kind.NUMBER,
        5_000_000,
    ),
    _flag(
        "source.kafka.enable.failondataloss",
        "Whether records that the broker deleted before they were read are an error; else a warning.",
        "kafka_fails_on_loss",
    ),
    _flag(
        "source.kafka.enable.commit.offset",
        "Whether the offsets of a commit go to the broker as well, for the consumer group `group.id`.",
        "kafka_commits",
    ),
    _flag(
        "source.kafka.append.offsets",
        "Whether rows get the columns `_hoodie_kafka_source_offset`, `_hoodie_kafka_source_partition`,"
        " `_hoodie_kafka_source_timestamp` and `_hoodie_kafka_source_key`.",
        "kafka_appends_offsets",
    ),
    _option(
        "schemaprovider.registry.url",
        "Address of a subject's version in a schema registry with Confluent's interface, as in"
        " `http://host:8081/subjects/rides-value/versions/latest`: the schema of the records as read.",
        "registry",
    ),
    _option("source.hoodieincr.path", "Root of the Hudi table that is ingested.", "hudi_path"),
    _option(
        "source.hoodieincr.num_instants",
        "Largest number of its commits in a batch after the first one.",
        "hudi_commits",
        Kind.NUMBER,
        5,
    ),
    Option(
        f"{_STREAMER}source.hoodieincr.missing.checkpoint.strategy",
        "What the first batch has: everything there is, or only the newest commit (`READ_LATEST`).",
        default="READ_UPTO_LATEST_COMMIT",
        alternatives=(f"{_DELTASTREAMER}source.hoodieincr.missing.checkpoint.strategy",),
        choices=("READ_UPTO_LATEST_COMMIT", "READ_LATEST"),
        field="hudi_begins",
    ),
    _option(
        "jdbc.url",
        "Address of the database that is ingested: as JDBC has it for PostgreSQL, MySQL, MariaDB and SQLite,"
        " or as SQLAlchemy has it for all that it knows.",
        "jdbc_url",
    ),
    _option("jdbc.user", "Who logs in.", "jdbc_user"),
    _option("jdbc.password", "The password.", "jdbc_password"),
    _option("jdbc.password.file", "File with the password.", "jdbc_password_file"),
    _option("jdbc.table.name", "The table or view, with its schema where needed.", "jdbc_table"),
    _option(
        "jdbc.table.incr.column.name",
        "Column whose values grow: its greatest value is the checkpoint.",
        "jdbc_column",
    ),
    _flag(
        "jdbc.incr.pull",
        "Whether a batch has the rows with greater values of that column; otherwise each run has all rows.",
        "jdbc_is_incremental",
    ),
    _option(
        "source.sql.sql.query",
        "Query in Spark's dialect whose result is ingested once a run, by DuckDB; it names files and tables"
        " as in ``parquet.`/lake/rides/*.parquet` `` and ``hudi.`/lake/rides` ``.",
        "query",
    ),
    _flag(
        "source.sql.checkpoint.emit",
        "Whether the commits of a query have its time as checkpoint.",
        "query_has_checkpoint",
    ),
    _option(
        "schemaprovider.source.schema.file",
        "File with the Avro schema of the records as they are read; found out when not given.",
        "source_schema",
    ),
    _option(
        "schemaprovider.target.schema.file",
        "File with the Avro schema of the records as they are written, if transformers change them.",
        "target_schema",
    ),
    _option(
        "transformer.class",
        "What changes the rows, one after the other: `SqlQueryBasedTransformer`, `SqlFileBasedTransformer`"
        " or `FlatteningTransformer`, with Hudi's package or without, or a Python function as"
        " `module:function`. A name before it, as in `a:SqlQueryBasedTransformer`, gives it a key of its own:"
        " `hoodie.streamer.transformer.sql.a`.",
        "transformers",
        Kind.LIST,
        (),
    ),
    _option(
        "transformer.sql",
        "Query of a SQL transformer, in Spark's dialect, run by DuckDB; `<SRC>` stands for the rows.",
        "sql",
    ),
    _option("transformer.sql.file", "File with the query of a `SqlFileBasedTransformer`.", "sql_file"),
    _option(
        "ingestion.tablestobeingested",
        "Tables into which one call of `drawstring ingest` ingests, as `database.table`; each has a file of"
        " options that `hoodie.streamer.ingestion.<database>.<table>.configFile` names.",
        "tables",
        Kind.LIST,
        (),
    ),
    _option(
        "ingestion.targetbasepath",
        "In the options of one of several tables: its root.",
        "target_path",
    ),
    Option(
        f"{_ERRORS}enable",
        "Whether records that cannot be read, do not fit the known columns or have no record key go to an"
        " error table, and the ingestion goes on.",
        kind=Kind.FLAG,
        default=False,
        field="quarantines",
    ),
    Option(f"{_ERRORS}base.path", "Root of the error table, which is created.", field="quarantine_path"),
    Option(
        f"{_ERRORS}target.table.name",
        "Name of a new error table; the last part of its root when not given.",
        field="quarantine_name",
    ),
    Option(
        f"{_ERRORS}validate.recordcreation.enable",
        "Whether records without a record key go to the error table; else they are an error.",
        kind=Kind.FLAG,
        default=True,
        field="quarantine_checks_keys",
    ),
    Option(
        f"{_ERRORS}write.failure.strategy",
        "What happens when the error table cannot be written: the batch fails (`ROLLBACK_COMMIT`), or its bad"
        " records are lost and it is committed (`LOG_ERROR`).",
        default="ROLLBACK_COMMIT",
        choices=("ROLLBACK_COMMIT", "LOG_ERROR"),
        field="quarantine_failure",
    ),
)


_PREFIX: Final = "hoodie.datasource.write.streaming."


@dataclass(frozen=True, slots=True)
class Streaming:
    """Settings of a stream.

    Attributes:
        name: whose position a commit has: one name for each stream into a table.
        attempts: how often a batch is tried.
        pause_ms: milliseconds before the second attempt; each further pause is twice as long.
        ignores_failed: whether a batch that failed is left out.
        skips_compaction: whether the stream leaves compaction to others.
    """

    name: str
    attempts: int
    pause_ms: int
    ignores_failed: bool
    skips_compaction: bool


STREAMING_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        f"{_PREFIX}checkpoint.identifier",
        "Name of a stream: a commit stores its position under it, so that each batch counts once. Give"
        " streams into the same table different names.",
        default="default_single_writer",
        field="name",
    ),
    Option(
        f"{_PREFIX}retry.count",
        "How often a batch of a stream is tried.",
        kind=Kind.NUMBER,
        default=3,
        field="attempts",
    ),
    Option(
        f"{_PREFIX}retry.interval.ms",
        "Milliseconds between the first and the second attempt; each further pause is twice as long.",
        kind=Kind.NUMBER,
        default=2000,
        minimum=0,
        field="pause_ms",
    ),
    Option(
        f"{_PREFIX}ignore.failed.batch",
        "Whether a stream goes on without a batch that failed. Its rows are lost.",
        kind=Kind.FLAG,
        default=False,
        field="ignores_failed",
        warning="a batch of a stream that fails is left out, and its rows are lost.",
    ),
    Option(
        f"{_PREFIX}disable.compaction",
        "Whether a stream never compacts a MERGE_ON_READ table; another process does.",
        kind=Kind.FLAG,
        default=False,
        field="skips_compaction",
    ),
)


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


def _sync_flag(name: str, doc: str, field: str, default: bool = False) -> Option:
    return Option(f"{_HIVE}{name}", doc, kind=Kind.FLAG, default=default, field=field)


def _list(key: str, doc: str, field: str, *default: str) -> Option:
    return Option(key, doc, kind=Kind.LIST, default=tuple(default), field=field)


SYNC_OPTIONS: Final[tuple[Option, ...]] = (
    _sync_flag(
        "enable", "Whether a Hive metastore is told about the table after each commit.", "hive_enabled"
    ),
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
        " Glue, `DataHubSyncTool` for DataHub, in full or without package; `PolarisSyncTool` for Polaris;"
        " the name of an entry point of the group `drawstring.catalogs` for others.",
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
    _sync_flag(
        "skip_ro_suffix", "Whether the read-optimized table of `ALL` has no suffix.", "skips_ro_suffix"
    ),
    _sync_flag(
        "support_timestamp",
        "Whether timestamps are `timestamp`, rather than `bigint`.",
        "has_timestamps",
    ),
    _sync_flag(
        "sync_as_datasource",
        "Whether Spark reads the table as a Hudi table.",
        "as_data_source",
        True,
    ),
    _sync_flag("auto_create_database", "Whether a missing database is created.", "creates_database", True),
    _sync_flag("create_managed_table", "Whether dropping the table in Hive deletes its files.", "managed"),
    _sync_flag("omit_metadata_fields", "Whether the meta columns are left out.", "omits_meta"),
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


_VALIDATORS_PREFIX: Final = "hoodie.precommit.validators"
EQUALITY_QUERIES: Final = f"{_VALIDATORS_PREFIX}.equality.sql.queries"
INEQUALITY_QUERIES: Final = f"{_VALIDATORS_PREFIX}.inequality.sql.queries"
SINGLE_VALUE_QUERIES: Final = f"{_VALIDATORS_PREFIX}.single.value.sql.queries"
TABLE_VARIABLE: Final = "<TABLE_NAME>"
"""Stands in the queries for the table."""

EQUALITY: Final = "SqlQueryEqualityPreCommitValidator"
INEQUALITY: Final = "SqlQueryInequalityPreCommitValidator"
SINGLE_VALUE: Final = "SqlQuerySingleResultPreCommitValidator"
_PACKAGE: Final = "org.apache.hudi.client.validator."

Validator: TypeAlias = Callable[[Any, Any], "str | None"]
"""A function of two scans, the rows before and after a commit, that returns what is wrong or None."""

_validators: dict[str, Validator] = {}


@dataclass(frozen=True, slots=True)
class PreCommitValidators:
    """Settings of the validators.

    Attributes:
        names: Hudi's classes, or names of registered functions; empty for none.
        equality, inequality: queries whose results have to stay, or have to change, separated by `;`.
        single_value: queries with the only value of each behind `#`, separated by `;`.
        failure_policy: `FAIL`, or `WARN_LOG`: whether a write whose validator fails is rolled back.
    """

    names: tuple[str, ...]
    equality: str
    inequality: str
    single_value: str
    failure_policy: str

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in _validators and simple_class_name(name) not in self.queries:
                raise UnsupportedError(
                    f"There is no validator {name}. Use one of"
                    f" {', '.join(_PACKAGE + each for each in self.queries)}, or register a"
                    " function under the name with drawstring.register_validator."
                )
            if name not in _validators and not self.queries[simple_class_name(name)][1]:
                raise InvalidError(
                    f"The validator {name} has no query. Give at least one in"
                    f" {self.queries[simple_class_name(name)][0]}."
                )

    @property
    def queries(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Option and queries of each kind of validator that runs SQL."""
        texts = {
            EQUALITY: (EQUALITY_QUERIES, self.equality),
            INEQUALITY: (INEQUALITY_QUERIES, self.inequality),
            SINGLE_VALUE: (SINGLE_VALUE_QUERIES, self.single_value),
        }
        return {
            kind: (key, tuple(each.strip() for each in text.split(";") if each.strip()))
            for kind, (key, text) in texts.items()
        }


def simple_class_name(name: str) -> str:
    """Return the name of a class without its package."""
    return name.removeprefix(_PACKAGE)


def register_validator(name: str, validator: Validator) -> None:
    """Register a function that checks what a write is about to commit.

    Writes that name it in `hoodie.precommit.validators` call it before their commit. Registering a name again
    replaces the function.

    Args:
        name: the name in the option, such as the Java class that it stands for.
        validator: called with two scans of the partitions that the write changes: their rows before the
            commit, and after it. It returns a text that says what is wrong, or None if nothing is; an
            exception counts as the former. It runs in the process of the write, which holds the table lock.

    Raises:
        InvalidError: the name is empty, or the validator is not callable.

    Example:
        >>> def no_row_is_lost(before, after):
        ...     lost = before.to_arrow().num_rows - after.to_arrow().num_rows
        ...     return f"{lost} rows are lost" if lost > 0 else None
        >>> drawstring.register_validator("com.example.NoRowIsLost", no_row_is_lost)
    """
    untyped_name: Any = name
    if not isinstance(untyped_name, str) or not untyped_name.strip() or "," in untyped_name:
        raise InvalidError(
            f"A validator cannot be named {name!r}. Give a text that is not empty, without commas."
        )
    if not callable(validator):
        raise InvalidError(
            f"The validator {name!r} is a {type(validator).__name__}, which is not callable. Give a function."
        )
    _validators[name.strip()] = validator


def registered_validator(name: str) -> Validator | None:
    """Return the function of a name, None if none is registered."""
    return _validators.get(name)


VALIDATOR_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        _VALIDATORS_PREFIX,
        "Validators that a write asks before its commit: Hudi's classes that run SQL, or names given to"
        " `register_validator`.",
        kind=Kind.LIST,
        default=(),
        field="names",
    ),
    Option(
        EQUALITY_QUERIES,
        f"Queries of `{EQUALITY}`, separated by `;`: a commit must not change their results. They read the"
        f" partitions that it changes as `{TABLE_VARIABLE}`.",
        default="",
        field="equality",
    ),
    Option(
        INEQUALITY_QUERIES,
        f"Queries of `{INEQUALITY}`, separated by `;`: a commit has to change their results.",
        default="",
        field="inequality",
    ),
    Option(
        SINGLE_VALUE_QUERIES,
        f"Queries of `{SINGLE_VALUE}`, separated by `;`, each with its only value after the commit behind"
        " `#`.",
        default="",
        field="single_value",
    ),
    Option(
        f"{_VALIDATORS_PREFIX}.failure.policy",
        "Whether a write is rolled back when a validator fails, or a warning is logged.",
        default="FAIL",
        choices=("FAIL", "WARN_LOG"),
        field="failure_policy",
    ),
)
