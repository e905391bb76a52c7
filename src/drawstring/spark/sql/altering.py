"""`ALTER TABLE` of columns and properties.

| change | how |
|---|---|
| ADD COLUMNS, also of structs; a wider type; DROP NOT NULL | a commit without rows that has the new schema |
| SET, UNSET TBLPROPERTIES | in the catalog |
| RENAME, DROP, move, comment, default of columns | refused: they need schema on read, or cannot be stored |
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import StructType

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions, options_of
from drawstring.services.maintenance_tasks import after_commit
from drawstring.spark.engine.types import arrow_schema
from drawstring.spark.sql.options import is_stored, table_options, write_options
from drawstring.write.run import write_source
from drawstring.write.verbs import VERBS
from drawstring.write.write_source import InputRows

if TYPE_CHECKING:
    from drawstring.spark.sql.table import TablePeer

_PROPERTIES: Final = ("SetProperty", "RemoveProperty")
_EVOLVES: Final = ("AddColumn", "UpdateColumnType", "UpdateColumnNullability")
_REFUSED: Final[Mapping[str, str]] = {
    "RenameColumn": "Renaming columns",
    "DeleteColumn": "Dropping columns",
    "UpdateColumnPosition": "Moving columns",
    "UpdateColumnComment": "Comments on columns",
    "UpdateColumnDefaultValue": "Default values",
}


def check_alter(table: TablePeer, changes: Sequence[Mapping[str, Any]]) -> None:
    """Check that changes of a table can be carried out.

    Args:
        table: the table.
        changes: `kind` of each by Spark's name, `name` of the column or property, and `value`, `is_placed` or
            `has_default`.

    Raises:
        InvalidError: a property describes the table, or there is no such option.
        UnsupportedError: columns are to be changed in a way that files or readers do not know.
    """
    for change in changes:
        kind, name = change["kind"], change["name"]
        if kind in _PROPERTIES:
            _check_property(table, name, change.get("value") or "")
        elif kind not in _EVOLVES:
            raise UnsupportedError(
                f"{_REFUSED.get(kind, kind)} ({name}) needs Hudi's schema on read, which this release reads"
                " and does not write. Add columns, or write the rows to a new table.",
                table=table.path,
            )
        elif change.get("is_placed") or change.get("has_default"):
            raise UnsupportedError(
                f"Column {name} can only be added at the end and without default value: stored rows have null"
                " in it. Leave FIRST, AFTER and DEFAULT out.",
                table=table.path,
            )


def _check_property(table: TablePeer, name: str, value: str) -> None:
    for key in table_options({name: value or "cow"}):
        if is_stored(key):
            raise InvalidError(
                f"Property {name} describes the table, which was created with a value of its own. Create"
                " another table to change it.",
                table=table.path,
            )
        if value:
            WriteOptions.parse({key: value})


def alter(table: TablePeer, schema: str) -> None:
    """Give a table new columns or wider types, by a commit without rows.

    Args:
        table: the table.
        schema: all columns, as Spark's JSON.

    Raises:
        InvalidError: the type of a column cannot become the new one.
    """
    target = table.for_writes()
    rows = arrow_schema(StructType.fromJson(json.loads(schema))).empty_table()
    given = write_options(table.spark, table.properties, {"hoodie.allow.empty.commit": "true"})
    with target._errors():
        context, source = target._rows_of(rows)
        after_commit(write_source(context, InputRows(source), VERBS["insert"], options_of("insert", given)))
