"""Options of `drawstring.ingest`, by the keys of Hudi's own ingestion tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option, Value

_STREAMER: Final = "hoodie.streamer."
_OLD: Final = "hoodie.deltastreamer."
_OWN: Final = "drawstring.ingest."
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
        alternatives=(f"{_OLD}{name}",),
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
        f"{_OWN}files.min_age_ms",
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
        alternatives=(f"{_OLD}csv.sep",),
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
        alternatives=(f"{_OLD}source.hoodieincr.missing.checkpoint.strategy",),
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
