"""Options of a table of the catalog: properties of `CREATE TABLE`, and settings of the session.

| of `CREATE TABLE` | of drawstring |
|---|---|
| PARTITIONED BY | `hoodie.datasource.write.partitionpath.field` |
| primaryKey | `hoodie.datasource.write.recordkey.field` |
| orderingFields, preCombineField | `hoodie.table.ordering.fields` |
| type | `hoodie.datasource.write.table.type` |

Of an option that is given several times the last one counts: property of the table, `SET` in the session,
option of the write. As in Hudi, those that the table stores are its own once it exists.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import SparkSession

from drawstring.base.errors import InvalidError
from drawstring.config.options.registry import OPTION_OF_KEY
from drawstring.spark.sql.driver import java

RECORD_KEY: Final = "hoodie.datasource.write.recordkey.field"
PARTITION_PATH: Final = "hoodie.datasource.write.partitionpath.field"
ORDERING: Final = "hoodie.table.ordering.fields"
TABLE_TYPE: Final = "hoodie.datasource.write.table.type"
INSERT_OPERATION: Final = "hoodie.spark.sql.insert.into.operation"
OVERWRITE_MODE: Final = "hoodie.datasource.overwrite.mode"
OPERATION: Final = "hoodie.datasource.write.operation"
_OPTION_PREFIX: Final = "option."
_NAMES: Final = {
    "primarykey": RECORD_KEY,
    "orderingfields": ORDERING,
    "precombinefield": ORDERING,
    "type": TABLE_TYPE,
}
"""Hudi's own names of properties in `CREATE TABLE`, in lower case, as options."""

_WRITTEN: Final = {name.lower(): name for name in ("primaryKey", "orderingFields", "preCombineField")}
_SLIP_RATIO: Final = 0.85
"""Similarity from which the name of a property counts as a misspelling: a letter or two differ."""

_TYPES: Final = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_OF_STATEMENTS: Final = (INSERT_OPERATION, OVERWRITE_MODE, OPERATION)


def table_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options among the properties of `CREATE TABLE`, under Hudi's keys.

    Args:
        properties: as Spark passes them; those of OPTIONS have a prefix.

    Raises:
        InvalidError: a type of table that there is not.
    """
    options: dict[str, str] = {}
    for name, value in properties.items():
        key = name.removeprefix(_OPTION_PREFIX).lower()
        if key in _NAMES:
            options[_NAMES[key]] = _type_of(value) if key == "type" else value
        elif key.startswith(("hoodie.", "drawstring.")):
            options[key] = value
    return options


def check_names(properties: Mapping[str, str]) -> None:
    """Check that no property of `CREATE TABLE` is a misspelling of those that say what a record is.

    Other properties are the user's own. One of these would make a table without keys or without an order.

    Raises:
        InvalidError: one is.
    """
    for name in properties:
        key = name.removeprefix(_OPTION_PREFIX).lower()
        if key in _NAMES or "." in key:
            continue
        if near := difflib.get_close_matches(key, _WRITTEN, n=1, cutoff=_SLIP_RATIO):
            raise InvalidError(f"There is no property {name!r}. Did you mean {_WRITTEN[near[0]]!r}?")


def _type_of(text: str) -> str:
    name = _TYPES.get(text.lower(), text.upper())
    if name not in _TYPES.values():
        raise InvalidError(f"There is no table type {text!r}. Use type 'cow' or 'mor'.")
    return name


def session_options(spark: SparkSession) -> dict[str, str]:
    """Return Hudi's options that were set in a session with `SET`."""
    found: dict[str, str] = json.loads(java(spark, "Calls").settings(spark._jsparkSession, "hoodie."))
    return found


def write_options(
    spark: SparkSession, properties: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Return the options of a write to a table that exists.

    Args:
        spark: the session.
        properties: properties of the table in the catalog.
        given: options of the write itself.
    """
    options = {**table_options(properties), **session_options(spark), **table_options(given)}
    return {key: value for key, value in options.items() if not is_stored(key) and key not in _OF_STATEMENTS}


def is_stored(key: str) -> bool:
    """Return whether an option describes the table, which has its own value of it."""
    option = OPTION_OF_KEY.get(key)
    return key in (RECORD_KEY, PARTITION_PATH, ORDERING, TABLE_TYPE) or (
        option is not None and bool(option.stored_as)
    )


def statement_option(
    spark: SparkSession, properties: Mapping[str, str], given: Mapping[str, str], keys: Sequence[str]
) -> str | None:
    """Return the value of an option that says what a statement does, None if it is not set.

    Args:
        spark: the session.
        properties: properties of the table in the catalog.
        given: options of the write itself.
        keys: the option and its alternatives, the first of which wins.
    """
    options: dict[str, Any] = {
        **table_options(properties),
        **session_options(spark),
        **table_options(given),
    }
    return next((str(options[key]) for key in keys if options.get(key)), None)
