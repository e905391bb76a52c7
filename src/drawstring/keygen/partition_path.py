"""Escape and split partition paths, and parse the values of partition columns from them.

Specification: Partitioning. Only the SIMPLE and COMPLEX key generators, and the SIMPLE parts of CUSTOM ones,
make paths from which the value follows unambiguously (`path_values`), for columns of these types:

    text, integers, booleans, dates
    timestamps    the number of microseconds; Spark SQL in Hudi writes another text, which has no value here.
                  Of a column of milliseconds the number of these, in bulk inserts of Hudi's row writer that
                  of microseconds. A number that is no date in milliseconds counts as microseconds
    decimals      with all digits of the scale: Hudi's Spark writer rounds others, as 12.50 to 13
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import types as pt

from drawstring.config.table_config import KeyGeneratorType, TableConfig

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""Path of a null or empty value."""

_ESCAPED: Final = re.compile(r'[\x01-\x1f"#%\'*/:=?\\\x7f{\[\]^]')


def escape(value: str) -> str:
    """URL-encode a value as Hive does, for tables with URL-encoded paths."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)


def split_path(
    path: str, fields: Sequence[str], *, hive_style: bool, url_encode: bool
) -> list[str | None] | None:
    """Return the text of each partition column, or None if the path does not have one part per column.

    Args:
        path: a partition path.
        fields: partition columns, in the order of the path.
        hive_style: whether the parts are `column=value`.
        url_encode: whether the values are URL-encoded.

    Returns:
        A text for each column, None for a null or empty value.
    """
    parts = [path] if len(fields) == 1 else path.split("/")
    if len(parts) != len(fields):
        return None
    if hive_style:
        prefixes = [f"{field}=" for field in fields]
        if not all(part.startswith(prefix) for part, prefix in zip(parts, prefixes, strict=True)):
            return None
        parts = [part.removeprefix(prefix) for part, prefix in zip(parts, prefixes, strict=True)]
    values = [unquote(part) if url_encode else part for part in parts]
    return [None if value == DEFAULT_PARTITION else value for value in values]


_PARSEABLE: Final = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.CUSTOM)
_SIMPLE: Final = "SIMPLE"
_EPOCH: Final = datetime(1970, 1, 1)
_MILLIS_MIN: Final = (datetime(1, 1, 1) - _EPOCH) // timedelta(milliseconds=1)
_MILLIS_MAX: Final = (datetime(9999, 12, 31) - _EPOCH) // timedelta(milliseconds=1)


def path_values(path: str, config: TableConfig, schema: pa.Schema) -> dict[str, Any]:
    """Return the values of the partition columns that follow from a path, None for null.

    Args:
        path: partition path.
        config: configuration of the table.
        schema: the table's columns.
    """
    return path_parser(config, schema)(path)


def path_parser(config: TableConfig, schema: pa.Schema) -> Callable[[str], dict[str, Any]]:
    """Return what gives `path_values` for a path.

    Args:
        config: configuration of the table.
        schema: the table's columns.
    """
    fields = config.partition_fields
    is_slashed = config.has_slashed_dates
    if config.path_generator not in _PARSEABLE or (is_slashed and len(fields) > 1) or not fields:
        return lambda path: {}
    is_hive, is_encoded = config.hive_style, config.url_encode
    ambiguous = config.rules.ambiguous_partition
    types = {name: schema.field(name).type for name in fields if name in schema.names}
    columns = [
        (name, types.get(name) if kind == _SIMPLE else None)
        for name, kind in zip(fields, _kinds(config), strict=False)
    ]

    def parsed(path: str) -> dict[str, Any]:
        plain = path.replace("/", "-") if is_slashed else path
        texts = split_path(plain, fields, hive_style=is_hive, url_encode=is_encoded)
        values = {}
        for (name, kind), text in zip(columns, texts or (), strict=False):
            if kind is None or (text is not None and text == ambiguous):
                continue
            value = None if text is None else _parsed(text, kind)
            if text is None or value is not None:
                values[name] = value
        return values

    return parsed


def _kinds(config: TableConfig) -> tuple[str, ...]:
    """Return the type of each partition field; none if the table does not say them."""
    if config.path_generator is KeyGeneratorType.CUSTOM:
        return config.partition_types
    return (_SIMPLE,) * len(config.partition_fields)


def parse_value(text: str, kind: pa.DataType) -> Any:
    """Return the value that a text represents, None if values of the type are not written like that."""
    for matches, parse in _PARSERS:
        if matches(kind):
            try:
                return parse(text)
            except (ValueError, KeyError):
                return None
    return None


def _parsed(text: str, kind: pa.DataType) -> Any:
    """Return the value that a key generator wrote as a text, None if the text may mean something else."""
    try:
        if pt.is_timestamp(kind):
            return _parsed_timestamp(text, kind)
        return _decimal(text, kind) if pt.is_decimal(kind) else parse_value(text, kind)
    except (ValueError, OverflowError, InvalidOperation):
        return None


def _parsed_timestamp(text: str, kind: pa.TimestampType) -> datetime:
    micros = _whole_number(text)
    if kind.unit == "ms" and _MILLIS_MIN <= micros <= _MILLIS_MAX:
        micros *= 1000
    if kind.unit == "ms":
        micros -= micros % 1000
    local = _EPOCH + timedelta(microseconds=micros)
    return local if kind.tz is None else local.replace(tzinfo=UTC)


def _decimal(text: str, kind: pa.DataType) -> Decimal:
    number = Decimal(text)
    digits = len(text.lstrip("-").replace(".", "").lstrip("0"))
    has_scale = number.is_finite() and number.as_tuple().exponent == -kind.scale
    is_canonical = format(number, "f") == text and not (number.is_zero() and number.is_signed())
    if not (has_scale and is_canonical) or digits > kind.precision:
        raise ValueError(text)
    return number


def _whole_number(text: str) -> int:
    number = int(text)
    if str(number) != text:
        raise ValueError(text)
    return number


_PARSERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str], Any]], ...] = (
    (pt.is_string, str),
    (pt.is_integer, _whole_number),
    (pt.is_boolean, lambda text: {"true": True, "false": False}[text]),
    (pt.is_date32, date.fromisoformat),
)
