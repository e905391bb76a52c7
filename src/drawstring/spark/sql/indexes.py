"""`CREATE INDEX`, `DROP INDEX` and `SHOW INDEXES` of a table of the catalog.

| USING | index |
|---|---|
| record_index | of record keys |
| secondary_index, or nothing, with a column | of the values of a column |
| column_stats | with `OPTIONS (expr = ...)`, of an expression |
| bloom_filters | of the values of a column, or of an expression |

Without USING, an index that is named record_index, column_stats or bloom_filters is the whole table's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.metadata.expressions.index import SETTINGS
from drawstring.model.table_index import TableIndex
from drawstring.services.indexes import index_settings
from drawstring.spark.sql.options import table_options

if TYPE_CHECKING:
    from drawstring.spark.sql.table import TablePeer

_LOG: Final = logging.getLogger("drawstring")
_TYPE: Final = "type"
_EXPRESSION: Final = "expr"
_IDENTITY: Final = "identity"
_SECONDARY: Final = "secondary_index"
_OF_EXPRESSION: Final = "expr_index"
_RECORD_INDEX: Final = "record_index"
_OF_FILES: Final = (_RECORD_INDEX, "column_stats", "bloom_filters")
_EXPRESSION_TYPES: Final = ("column_stats", "bloom_filters")
_NAME: Final = "name"
_COLUMNS: Final = "columns"
SHOWN: Final = "index_name string, index_type string, col_name string"
"""Columns of `SHOW INDEXES`, as Hudi has them."""


def create_index(table: TablePeer, given: Mapping[str, Any]) -> None:
    """Build an index.

    Args:
        table: the table.
        given: `name`, `type`, `columns` as trees, and options.

    Raises:
        InvalidError: there is such an index, no such column or function, or no record index for a secondary
            index.
        UnsupportedError: there is no such type of index.
    """
    name = given[_NAME]
    kind = (given.get(_TYPE) or (name if name in _OF_FILES else _SECONDARY)).lower()
    columns = [".".join(each["column"]) for each in given[_COLUMNS]]
    if kind not in (_SECONDARY, *_OF_FILES):
        raise UnsupportedError(
            f"There is no index of type {kind}. Use {', '.join((_SECONDARY, *_OF_FILES))}.", table=table.path
        )
    is_of_expression = _EXPRESSION in given or (kind == "bloom_filters" != name)
    if kind == "column_stats" != name and not is_of_expression:
        raise InvalidError(
            f"Index {name} has no expression: the statistics of all columns are one index. Give OPTIONS (expr"
            " = 'year'), or create the whole index with CREATE INDEX column_stats ON the table.",
            table=table.path,
        )
    if is_of_expression and kind not in _EXPRESSION_TYPES:
        raise InvalidError(
            f"An index of an expression is of type {' or '.join(_EXPRESSION_TYPES)}, not {kind}. Name one of"
            " them behind USING.",
            table=table.path,
        )
    if kind == _RECORD_INDEX:
        _check_key(table, columns)
    if (is_of_expression or kind == _SECONDARY) and len(columns) != 1:
        raise InvalidError(
            f"Index {name} is of one column, and {len(columns)} are given. Name one.", table=table.path
        )
    settings, others = index_settings({key: given[key] for key in given.keys() - {_NAME, _TYPE, _COLUMNS}})
    options = table.write_options(table_options(others))
    if is_of_expression:
        _check_settings(table, others)
        settings.setdefault(_EXPRESSION, _IDENTITY)
        table.for_writes().create_index(name, columns[0], using=kind, options={**options, **settings})
    elif kind == _SECONDARY:
        table.for_writes().create_index(name, columns[0], options=options)
    else:
        table.for_writes().create_index(kind, options=options)


def _check_settings(table: TablePeer, others: Mapping[str, Any]) -> None:
    """Check that the options of an expression index are settings of functions, or options of the table."""
    unknown = [key for key in others if not key.startswith(("hoodie.", "drawstring."))]
    if unknown:
        raise InvalidError(
            f"An index of an expression has no option {unknown[0]!r}. The options of functions are"
            f" {', '.join(sorted(SETTINGS))}.",
            table=table.path,
        )


def _check_key(table: TablePeer, columns: Sequence[str]) -> None:
    """Check that the columns of a record index are those of the record key, which it is of."""
    key = table.open().config.record_key_fields
    if sorted(map(str.lower, columns)) != sorted(map(str.lower, key)) and key:
        raise InvalidError(
            f"A record index is of the record key ({', '.join(key)}), not of {', '.join(columns)}. Name the"
            " columns of the key, or create a secondary index: CREATE INDEX name ON table (column).",
            table=table.path,
        )


def drop_index(table: TablePeer, name: str) -> None:
    """Delete an index."""
    table.for_writes().drop_index(name, options=table.write_options({}))


def has_index(table: TablePeer, name: str) -> bool:
    """Return whether a table has an index of a name, given with or without its prefix."""
    names = (name, f"{_SECONDARY}_{name}", f"{_OF_EXPRESSION}_{name}")
    return any(each.name in names for each in table.open().indexes())


def shown(index: TableIndex) -> tuple[str, str, str]:
    """Return an index as a row of `SHOW INDEXES`; log why queries do not use it, if they do not."""
    if index.unused is not None:
        _LOG.warning("Queries do not use the index %s. %s", index.name, index.unused)
    kind = index.using or index.kind
    return index.name, kind, ",".join(index.columns) if index.name != kind else ""
