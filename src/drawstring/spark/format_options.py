"""What the readers and writers of `format("hudi")` share: names of formats, paths and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import SparkSession

from drawstring.base.errors import InvalidError
from drawstring.config.options.option import text_of
from drawstring.config.options.registry import OPTION_OF_KEY
from drawstring.config.table_types import split_list, typed_columns

FORMATS: Final = frozenset({"hudi", "org.apache.hudi", "drawstring"})
_PARTITION_BY: Final = "hoodie.datasource.write.partitionpath.field"


def is_drawstring_format(source: str | None, spark: SparkSession) -> bool:
    """Return whether a format, or without one the session's default format, is drawstring's."""
    name = source or spark.conf.get("spark.sql.sources.default", "parquet") or ""
    return name.lower() in FORMATS


def as_text(key: str, value: Any) -> dict[str, str]:
    """Return an option as a text by its key; nothing for None."""
    text = text_of(value)
    return {} if text is None else {key: text}


def one_path(path: Any, options: Mapping[str, str]) -> str:
    """Return the path of a table: the argument or the option.

    Raises:
        InvalidError: there is not exactly one path.
    """
    paths = path if isinstance(path, list | tuple) else [path or _option_path(options)]
    if len(paths) != 1 or not isinstance(paths[0], str):
        raise InvalidError("A table has exactly one path. Pass it to the call, or set option path.")
    return str(paths[0])


def without_path(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options other than the path."""
    return {key: value for key, value in options.items() if key.lower() != "path"}


def with_partitions(options: Mapping[str, str], partition_by: Sequence[str], path: str) -> dict[str, str]:
    """Return the options; the columns of `partitionBy` are the default for the partition path option.

    Args:
        options: of a write, without its path.
        partition_by: columns of `partitionBy`.
        path: of the table, for the error.

    Raises:
        InvalidError: `partitionBy` and the option name different columns.
    """
    if not partition_by:
        return dict(options)
    columns = _partition_columns(options)
    if columns is None:
        return {**options, _PARTITION_BY: ",".join(partition_by)}
    if columns != tuple(partition_by):
        raise InvalidError(
            f"partitionBy names {', '.join(partition_by)} and {_PARTITION_BY}"
            f" {', '.join(columns) or 'no column'}. Nothing was written. Leave one of them out.",
            table=path,
        )
    return dict(options)


def _partition_columns(options: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the partition columns that the options name, None without such an option."""
    option = OPTION_OF_KEY[_PARTITION_BY]
    values = [value for key, value in options.items() if key.lower() in option.keys]
    return typed_columns(split_list(values[0]))[0] if values else None


def _option_path(options: Mapping[str, str]) -> str | None:
    return next((value for key, value in options.items() if key.lower() == "path"), None)
