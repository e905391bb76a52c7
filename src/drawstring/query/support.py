"""What a query sees of a table's columns, and which tables it can read rightly."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from drawstring.base.errors import CorruptTableError, DrawstringError, MissingFileError, UnsupportedError
from drawstring.config.table.config import KeyGeneratorType, TableConfig
from drawstring.query.facts import TableFacts
from drawstring.schema.history import SchemaColumn, SchemaHistory, decode_history

_BASE_FILE_FORMATS = ("PARQUET", "ORC", "HFILE")
_SCHEMA_ON_READ = "latest_schema"
SCHEMA_FOLDER = ".hoodie/.schema"


def check_readable(config: TableConfig) -> None:
    """Check that the data files of a table can be read.

    Raises:
        UnsupportedError: they cannot, naming the feature.
    """
    if config.base_file_format not in _BASE_FILE_FORMATS:
        raise UnsupportedError(
            f"the table has {config.base_file_format} base files: {', '.join(_BASE_FILE_FORMATS)} can be read"
        )


def visible_schema(facts: TableFacts) -> pa.Schema:
    """Return the columns of a query's rows.

    Two kinds of tables show other columns than their files have: one whose files lack the partition
    columns has them at the end, as text; and a timestamp-based key generator shows the column that
    it formats as text.

    Args:
        facts: the table.

    Raises:
        UnsupportedError: a formatted column that is neither text nor a whole number.
    """
    schema, config = facts.full_schema, facts.config
    if config.path_generator is KeyGeneratorType.TIMESTAMP:
        for field in schema:
            kind = field.type
            if field.name in config.partition_fields and not _can_be_shown(kind):
                raise UnsupportedError(
                    f"column {field.name} of type {kind} under a timestamp-based key generator"
                    " cannot be read yet"
                )
    return with_shown_columns(schema, config)


def _can_be_shown(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind))


def with_shown_columns(schema: pa.Schema, config: TableConfig) -> pa.Schema:
    """Return stored columns as queries show them; see `visible_schema`."""
    if config.drop_partition_columns:
        missing = [name for name in config.partition_fields if name not in schema.names]
        return pa.schema([*schema, *(pa.field(name, pa.string()) for name in missing)])
    if config.path_generator is KeyGeneratorType.TIMESTAMP:
        texts = {name: pa.field(name, pa.string()) for name in config.partition_fields}
        return pa.schema([texts.get(field.name, field) for field in schema])
    return schema


def schema_history(facts: TableFacts, as_of: str | None = None) -> SchemaHistory | None:
    """Return the versions of a schema that was evolved on read; None for a table without them.

    Args:
        facts: the table.
        as_of: the latest requested time that counts; None for all.

    Raises:
        CorruptTableError: the history is damaged.
    """
    latest = _latest_schema(facts, as_of)
    if latest is None:
        return None
    asked = decode_history(f'{{"schemas": [{latest}]}}')
    return SchemaHistory({**_stored_history(facts), **asked}, max(asked))


def _latest_schema(facts: TableFacts, as_of: str | None) -> str | None:
    """Return the version of the schema that the newest write names, None when it names none."""
    writes = [i for i in facts.timeline.writes() if as_of is None or i.requested <= as_of]
    for instant in reversed(writes):
        extra = facts.store.commit_metadata(instant).extra
        if text := extra.get(_SCHEMA_ON_READ):
            return text
        if extra.get("schema"):
            break
    return None


def _stored_history(facts: TableFacts) -> Mapping[int, tuple[SchemaColumn, ...]]:
    """Return the versions in the newest history file; none without one."""
    path = _history_path(facts)
    if path is None:
        return {}
    try:
        return decode_history(facts.storage.read(path).decode())
    except FileNotFoundError as error:
        raise MissingFileError(
            "The schema history is missing: restore it from a backup.", path=path
        ) from error
    except (DrawstringError, UnicodeDecodeError) as error:
        raise CorruptTableError(f"the schema history is damaged: {error}", path=path) from error


def _history_path(facts: TableFacts) -> str | None:
    """Return the path of the newest history that a completed write left."""
    completed = {instant.requested for instant in facts.timeline.writes()}
    start = facts.timeline.start
    found = []
    for status in facts.storage.list_files(SCHEMA_FOLDER):
        stem, _, kind = status.name.partition(".")
        instant = stem.partition("_")[0]
        if kind == "schemacommit" and (instant in completed or (start is not None and instant < start)):
            found.append((instant, status.path))
    return max(found)[1] if found else None
