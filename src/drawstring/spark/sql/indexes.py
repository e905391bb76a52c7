"""`CREATE INDEX`, `DROP INDEX` and `SHOW INDEXES` of a table of the catalog.

| USING | index |
|---|---|
| record_index | of record keys |
| secondary_index, or nothing, with a column | of the values of a column |
| column_stats, bloom_filters | of what files contain |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.model.table_index import TableIndex
from drawstring.spark.sql.options import table_options, write_options

if TYPE_CHECKING:
    from drawstring.spark.sql.table import TablePeer

_TYPE: Final = "type"
_EXPRESSION: Final = "expr"
_SECONDARY: Final = "secondary_index"
_OF_FILES: Final = ("record_index", "column_stats", "bloom_filters")
_NAME: Final = "name"
_COLUMNS: Final = "columns"
SHOWN: Final = "index_name string, col_name string, index_type string, col_options string, options string"
"""Columns of `SHOW INDEXES`, as Hudi has them."""


def create_index(table: TablePeer, given: Mapping[str, Any]) -> None:
    """Build an index.

    Args:
        table: the table.
        given: `name`, `type`, `columns` as trees, and options.

    Raises:
        InvalidError: there is such an index, no such column, or no record index for a secondary one.
        UnsupportedError: there is no such type of index.
    """
    name = given[_NAME]
    kind = (given.get(_TYPE) or (name if name in _OF_FILES else _SECONDARY)).lower()
    columns = [".".join(each["column"]) for each in given[_COLUMNS]]
    if kind not in (_SECONDARY, *_OF_FILES):
        raise UnsupportedError(
            f"There is no index of type {kind}. Use {', '.join((_SECONDARY, *_OF_FILES))}.", table=table.path
        )
    if _EXPRESSION in given:
        raise UnsupportedError(
            "Indexes of expressions are not supported yet. Leave OPTIONS (expr = ...) out.", table=table.path
        )
    if kind == _SECONDARY and len(columns) != 1:
        raise InvalidError("A secondary index has one column. Name one.", table=table.path)
    options = write_options(table.spark, table.properties, table_options(given))
    if kind == _SECONDARY:
        table.for_writes().create_index(name, columns[0], options=options)
    else:
        table.for_writes().create_index(kind, options=options)


def drop_index(table: TablePeer, name: str) -> None:
    """Delete an index."""
    table.for_writes().drop_index(name, options=write_options(table.spark, table.properties, {}))


def has_index(table: TablePeer, name: str) -> bool:
    """Return whether a table has an index of a name, given with or without its prefix."""
    return any(each.name in (name, f"{_SECONDARY}_{name}") for each in table.open().indexes())


def shown(index: TableIndex) -> tuple[str, ...]:
    """Return an index as a row of `SHOW INDEXES`."""
    return (index.name, ",".join(index.columns), index.kind, "", "")
