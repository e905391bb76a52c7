"""Values of partition columns, parsed from partition paths.

Only the SIMPLE and COMPLEX key generators, with columns of text, integers, booleans or dates, make paths
from which the value follows unambiguously.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as pt

from drawstring.config.table.config import KeyGeneratorType, TableConfig
from drawstring.keygen.paths import split_path

_PARSEABLE: Final = (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX)
_SLASHED_DATES: Final = "hoodie.datasource.write.slash.separated.date.partitioning"


def path_values(path: str, config: TableConfig, schema: pa.Schema) -> dict[str, Any]:
    """Return the values of the partition columns that follow from a path, None for null.

    Args:
        path: partition path.
        config: configuration of the table.
        schema: the table's columns.
    """
    fields = config.partition_fields
    is_slashed = config.properties.get(_SLASHED_DATES, "").lower() == "true"
    if not fields or config.path_generator not in _PARSEABLE or is_slashed:
        return {}
    texts = split_path(path, fields, hive_style=config.hive_style, url_encode=config.url_encode)
    ambiguous = config.rules.ambiguous_partition
    values = {}
    for name, text in zip(fields, texts or (), strict=False):
        if name not in schema.names:
            continue
        if text is not None and text == ambiguous:
            continue
        value = None if text is None else parse_value(text, schema.field(name).type)
        if text is None or value is not None:
            values[name] = value
    return values


def parse_value(text: str, kind: pa.DataType) -> Any:
    """Return the value that a text represents, None if values of the type are not written like that."""
    for matches, parse in _PARSERS:
        if matches(kind):
            try:
                return parse(text)
            except (ValueError, KeyError):
                return None
    return None


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
