"""Sources by name: short ones, and the classes of HoodieStreamer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError
from drawstring.config.keys.ingest import IngestOptions
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.properties import unescape
from drawstring.entry import open as open_table
from drawstring.ingestion.debezium import MYSQL, POSTGRES, DebeziumValues
from drawstring.ingestion.file_sources import (
    JSON_LIMIT_BYTES,
    CsvFiles,
    FileSource,
    ReadFiles,
    inspect_columnar_file,
    parse_records,
    read_avro_files,
    read_columnar_files,
    read_json_files,
)
from drawstring.ingestion.hudi_source import HudiSource, QuerySource
from drawstring.ingestion.jdbc import DatabaseTable, JdbcSource
from drawstring.ingestion.job import write_options
from drawstring.ingestion.kafka import Decode, KafkaSource, KafkaTopic, Reset, client_settings
from drawstring.ingestion.schema_registry import AvroValues, SchemaRegistry
from drawstring.ingestion.source_protocol import Source, is_within
from drawstring.ingestion.transformers.chain import read_text
from drawstring.storage import is_object_store, open_storage

_PACKAGE: Final = "org.apache.hudi.utilities.sources."


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What sources are made of.

    Attributes:
        options: of the ingestion.
        storage_options: of object stores.
        schema: columns of the source, if the user gave them.
        clock: tells the time.
        given: all options, among them those of clients.
        target: root of the table that is ingested into.
    """

    options: IngestOptions
    storage_options: Mapping[str, str]
    schema: pa.Schema | None
    clock: Clock
    given: Mapping[str, Any]
    target: str


def named_source(name: str, context: SourceContext) -> Source:
    """Return a source.

    Args:
        name: a short name, or a class of HoodieStreamer with its package or without.
        context: what it is made of.

    Raises:
        InvalidError: there is no such source, or it lacks an option.
    """
    return check_source(name, context).make(context)


def check_source(name: str, context: SourceContext) -> _Kind:
    """Check the name and the options of a source, without asking a store, a server or a database.

    Args:
        name: as for `named_source`.
        context: what it is made of. Options of object stores do not matter here.

    Returns:
        What makes it.

    Raises:
        InvalidError: there is no such source, or it lacks an option.
    """
    plain = name.removeprefix(_PACKAGE)
    kind = _SOURCES.get(plain.lower()) or _SOURCES.get(_CLASSES.get(plain, ""))
    if kind is None:
        raise InvalidError(
            f"There is no source {name!r}. Use one of {', '.join(_SOURCES)}, or one of Hudi's classes"
            f" {', '.join(_CLASSES)}."
        )
    kind.check(context)
    return kind


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of source.

    Attributes:
        check: raises InvalidError if an option is missing or wrong.
        make: returns a source.
    """

    check: Callable[[SourceContext], object]
    make: Callable[[SourceContext], Source]


def _columnar(context: SourceContext) -> Source:
    return replace(_files(context, read_columnar_files), look=inspect_columnar_file)


def _avro(context: SourceContext) -> Source:
    return _files(context, read_avro_files)


def _json(context: SourceContext) -> Source:
    return _files(context, read_json_files, JSON_LIMIT_BYTES)


def _csv(context: SourceContext) -> Source:
    options = context.options
    names = context.schema.names if context.schema is not None else ()
    read = CsvFiles(
        _character("hoodie.streamer.csv.sep", options.csv_separator),
        options.csv_quote,
        options.csv_escape,
        options.csv_null,
        options.csv_header,
        options.csv_multi_line,
        names,
    )
    return _files(context, read)


def _character(key: str, text: str) -> str:
    r"""Return the character that an option names, perhaps by an escape such as `\t`.

    Raises:
        InvalidError: it is none, or several.
    """
    character = unescape(text)
    if len(character) != 1 or character in "\r\n":
        raise InvalidError(f"{key} is {text!r}. Give one character, such as ';', or \\t for a tab.")
    return character


def _folder(context: SourceContext) -> str:
    root = context.options.files_root
    if not root:
        raise InvalidError(
            "The source has no folder. Set hoodie.streamer.source.dfs.root to the folder of the files."
        )
    local = None if is_object_store(root) else open_storage(root).local_path("")
    if local is not None and not os.path.isdir(local):
        raise InvalidError(
            f"There is no folder {local}, which hoodie.streamer.source.dfs.root names. Correct the option, or"
            " create the folder if nothing arrived yet."
        )
    if is_within(context.target, root):
        raise InvalidError(
            f"The table is in the folder {root} of its source, which would read the files of the table. Set"
            " hoodie.streamer.source.dfs.root to a folder without it."
        )
    return root


def _files(context: SourceContext, read: ReadFiles, limit_bytes: int | None = None) -> FileSource:
    storage = open_storage(_folder(context), context.storage_options)
    source = FileSource(storage, read, context.clock, context.options.files_age_ms)
    return source if limit_bytes is None else source.limited(limit_bytes)


def _topic(context: SourceContext) -> tuple[str, Reset]:
    """Return the topic, and where to begin in it."""
    topic = context.options.kafka_topic
    if not topic:
        raise InvalidError("The source has no topic. Set hoodie.streamer.source.kafka.topic.")
    reset = str(context.given.get("auto.offset.reset", Reset.LATEST)).lower()
    if reset not in list(Reset):
        raise InvalidError(f"auto.offset.reset is {reset!r}. Choose one of {', '.join(Reset)}.")
    return topic, Reset(reset)


def _kafka(context: SourceContext, decode: Decode) -> Source:
    options, (topic, reset) = context.options, _topic(context)
    return KafkaSource(
        KafkaTopic(topic, client_settings(context.given)),
        decode,
        options.kafka_max_events,
        reset,
        options.kafka_fails_on_loss,
        options.kafka_commits,
        options.kafka_appends_offsets,
    )


def _kafka_json(context: SourceContext) -> Source:
    return _kafka(context, parse_records)


def _kafka_avro(context: SourceContext) -> Source:
    return _kafka(context, _avro_values(context))


def _avro_values(context: SourceContext) -> AvroValues:
    registry = context.options.registry or context.given.get("schema.registry.url")
    if not registry:
        raise InvalidError(
            "The source has no schema registry. Set hoodie.streamer.schemaprovider.registry.url to the"
            " address of the subject, or schema.registry.url to that of the registry."
        )
    return AvroValues(SchemaRegistry.of_subject(str(registry)))


def _debezium(context: SourceContext, columns: Mapping[str, tuple[str, pa.DataType]]) -> Source:
    has_registry = context.options.registry or context.given.get("schema.registry.url")
    payload = WriteOptions.parse(write_options(context.given)).payload_class or ""
    avro = _avro_values(context) if has_registry else None
    return _kafka(context, DebeziumValues(columns, avro, "Debezium" not in payload))


def _debezium_postgres(context: SourceContext) -> Source:
    return _debezium(context, POSTGRES)


def _debezium_mysql(context: SourceContext) -> Source:
    return _debezium(context, MYSQL)


def _table_path(context: SourceContext) -> str:
    path = context.options.hudi_path
    if not path:
        raise InvalidError(
            "The source has no table. Set hoodie.streamer.source.hoodieincr.path to the root of one."
        )
    if is_within(path, context.target):
        raise InvalidError(
            f"The source {path} is the table itself: each batch would be the source of the next. Set"
            " hoodie.streamer.source.hoodieincr.path to another table."
        )
    return path


def _hudi(context: SourceContext, *, has_changes: bool = False) -> Source:
    options = context.options
    table = open_table(_table_path(context), storage_options=context.storage_options or None)
    return HudiSource(table, options.hudi_commits, options.hudi_begins == "READ_LATEST", has_changes)


def _hudi_changes(context: SourceContext) -> Source:
    return _hudi(context, has_changes=True)


def _check_jdbc(context: SourceContext) -> None:
    options = context.options
    needed = {"url": options.jdbc_url, "table.name": options.jdbc_table}
    if options.jdbc_is_incremental:
        needed["table.incr.column.name"] = options.jdbc_column
    missing = [f"hoodie.streamer.jdbc.{key}" for key, value in needed.items() if not value]
    if missing:
        raise InvalidError(f"The source has no database. Set {' and '.join(missing)}.")


def _jdbc(context: SourceContext) -> Source:
    options = context.options
    password = options.jdbc_password
    if options.jdbc_password_file:
        password = read_text(options.jdbc_password_file).strip()
    table = DatabaseTable.of(options.jdbc_url or "", options.jdbc_user, password, options.jdbc_table or "")
    column = options.jdbc_column if options.jdbc_is_incremental else None
    if column is not None:
        table.column(column)
    return JdbcSource(table, column, context.clock)


def _text_of_query(context: SourceContext) -> str:
    query = context.options.query
    if not query:
        raise InvalidError("The source has no query. Set hoodie.streamer.source.sql.sql.query.")
    return query


def _query(context: SourceContext) -> Source:
    options = context.options
    return QuerySource(
        _text_of_query(context), context.storage_options, context.clock, options.query_has_checkpoint
    )


_SOURCES: Final[Mapping[str, _Kind]] = {
    "parquet": _Kind(_folder, _columnar),
    "orc": _Kind(_folder, _columnar),
    "csv": _Kind(_folder, _csv),
    "json": _Kind(_folder, _json),
    "avro": _Kind(_folder, _avro),
    "kafka-json": _Kind(_topic, _kafka_json),
    "kafka-avro": _Kind(_topic, _kafka_avro),
    "debezium-postgres": _Kind(_topic, _debezium_postgres),
    "debezium-mysql": _Kind(_topic, _debezium_mysql),
    "hudi": _Kind(_table_path, _hudi),
    "hudi-changes": _Kind(_table_path, _hudi_changes),
    "jdbc": _Kind(_check_jdbc, _jdbc),
    "sql": _Kind(_text_of_query, _query),
}
_CLASSES: Final[Mapping[str, str]] = {
    "ParquetDFSSource": "parquet",
    "ORCDFSSource": "orc",
    "CsvDFSSource": "csv",
    "JsonDFSSource": "json",
    "AvroDFSSource": "avro",
    "JsonKafkaSource": "kafka-json",
    "AvroKafkaSource": "kafka-avro",
    "debezium.PostgresDebeziumSource": "debezium-postgres",
    "debezium.MysqlDebeziumSource": "debezium-mysql",
    "HoodieIncrSource": "hudi",
    "JdbcSource": "jdbc",
    "SqlSource": "sql",
}
