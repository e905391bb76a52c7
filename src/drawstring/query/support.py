"""What a query sees of a table's columns, and which tables it can read rightly."""

from __future__ import annotations

import json

import pyarrow as pa

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.config.table import KeyGeneratorType, TableConfig
from drawstring.model.files import FileSlice
from drawstring.query.facts import TableFacts

_SCHEMA_ON_READ = "latest_schema"


def check_readable(config: TableConfig) -> None:
    """Check that the data files of a table can be read.

    Raises:
        UnsupportedError: they cannot, naming the feature.
    """
    if config.base_file_format != "PARQUET":
        raise UnsupportedError(
            f"the table has {config.base_file_format} base files: only PARQUET can be read"
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
    schema = facts.full_schema
    config = facts.config
    if config.drop_partition_columns:
        missing = [name for name in config.partition_fields if name not in schema.names]
        return pa.schema([*schema, *(pa.field(name, pa.string()) for name in missing)])
    if config.key_generator is KeyGeneratorType.TIMESTAMP:
        for name in config.partition_fields:
            schema = _with_text(schema, name)
    return schema


def _with_text(schema: pa.Schema, name: str) -> pa.Schema:
    place = schema.get_field_index(name)
    if place < 0 or pa.types.is_string(schema.field(place).type):
        return schema
    if not pa.types.is_integer(schema.field(place).type):
        raise UnsupportedError(
            f"column {name} of type {schema.field(place).type} under a timestamp-based key generator"
            " cannot be read yet"
        )
    return schema.set(place, pa.field(name, pa.string()))


def check_same_columns(facts: TableFacts, file_slice: FileSlice, as_of: str | None) -> None:
    """Check that the columns of a slice's files can be found by their names.

    They cannot when the table evolves its schema on read and a file is older than the last change.

    Raises:
        UnsupportedError: this is so.
    """
    changed = _schema_version(facts, as_of)
    if changed is None:
        return
    instants = [log.instant for log in file_slice.logs]
    if file_slice.base is not None:
        instants.append(file_slice.base.instant)
    if min(instants) < changed:
        raise UnsupportedError(
            f"the schema was changed on read at {changed} and there are older files: reading them is not"
            " available yet; compact or rewrite the table first"
        )


def _schema_version(facts: TableFacts, as_of: str | None) -> str | None:
    """Return the instant of the last schema change on read, None for a table without any."""
    writes = [i for i in facts.timeline.writes() if as_of is None or i.requested <= as_of]
    for instant in reversed(writes):
        extra = facts.store.commit_metadata(instant).extra
        if text := extra.get(_SCHEMA_ON_READ):
            return _version_in(text)
        if extra.get("schema"):
            break
    return None


def _version_in(text: str) -> str:
    try:
        return str(json.loads(text)["version_id"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(f"{_SCHEMA_ON_READ} of a commit cannot be read: {error}") from error
