"""`ALTER TABLE` of columns and properties.

| change | how |
|---|---|
| ADD COLUMNS at the end, also of structs; a wider type; DROP NOT NULL | a commit without rows |
| RENAME, DROP, move, TYPE STRING; all changes after one of them | the same, and a version of the schema |
| REPLACE COLUMNS | the drops, additions and moves that lead there, in one commit |
| comments | in the schema of the commit, and in the catalog |
| SET, UNSET TBLPROPERTIES | in the catalog; the storage layout in the table, too |
| RENAME TO | in the catalog, and `hoodie.table.name` in the table |
| defaults of columns | refused: they cannot be stored |
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import types as pt
from pyspark.sql.types import StructType

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions, options_of
from drawstring.config.table.storage_layout import STORAGE_LAYOUT
from drawstring.schema.column_changes import ChangeKind, ColumnChange, changed, commented, replacement
from drawstring.services.alter_columns import alter_columns, check_names
from drawstring.services.table_properties import rename
from drawstring.spark.engine.types import commented_schema, without_lengths
from drawstring.spark.sql.options import (
    check_reads,
    is_stored,
    session_options,
    table_options,
)
from drawstring.write.run import write_source
from drawstring.write.verbs import VERBS
from drawstring.write.write_source import InputRows

if TYPE_CHECKING:
    from drawstring.spark.sql.table import TablePeer
    from drawstring.table import Table

_ON_READ: Final = "hoodie.schema.on.read.enable"
_PROPERTIES: Final = ("SetProperty", "RemoveProperty")
_KINDS: Final[Mapping[str, ChangeKind]] = {
    "AddColumn": ChangeKind.ADD,
    "UpdateColumnType": ChangeKind.TYPE,
    "UpdateColumnNullability": ChangeKind.NULLABLE,
    "RenameColumn": ChangeKind.RENAME,
    "DeleteColumn": ChangeKind.DROP,
    "UpdateColumnPosition": ChangeKind.MOVE,
    "UpdateColumnComment": ChangeKind.COMMENT,
}
_BY_VERSIONS: Final = ("RenameColumn", "DeleteColumn", "UpdateColumnPosition")
_DONE: Final[Mapping[str, str]] = {
    "RenameColumn": "Renaming columns",
    "DeleteColumn": "Dropping columns",
    "UpdateColumnPosition": "Moving columns",
    "AddColumn": "Adding columns elsewhere than at the end",
    "UpdateColumnType": "Making texts of a column",
}


def check_alter(table: TablePeer, changes: Sequence[Mapping[str, Any]]) -> None:
    """Check that changes of a table can be carried out.

    Args:
        table: the table.
        changes: `kind` of each by Spark's name, `name` of the column or property; of a column its `path`, and
            `type`, `place` (empty for the first one), `value` (its new name), `comment` or `has_default`.

    Raises:
        InvalidError: a property describes the table, or there is no such option.
        UnsupportedError: columns are to be changed in a way that files or readers do not know.
    """
    if _is_replacement(changes) and not _has_versions(table):
        raise _needs_schema_on_read("REPLACE COLUMNS", table)
    for change in changes:
        kind, name = change["kind"], change["name"]
        if kind in _PROPERTIES:
            _check_property(table, name, change.get("value") or "")
        elif kind not in _KINDS or change.get("has_default"):
            raise UnsupportedError(
                f"Column {name} cannot have a default value: the table does not store it, and stored rows"
                " have null in a new column. Leave it out.",
                table=table.path,
            )
        elif _needs_versions(change) and not _has_versions(table):
            raise _needs_schema_on_read(f"{_DONE[kind]} ({name})", table)


def _needs_schema_on_read(what: str, table: TablePeer) -> UnsupportedError:
    return UnsupportedError(
        f"{what} needs Hudi's schema on read, with which readers find columns in old files by their ids. SET"
        f" {_ON_READ}=true, also where Apache Hudi reads the table from then on, or write the rows to a new"
        " table.",
        table=table.path,
    )


def _is_replacement(changes: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the changes are those of REPLACE COLUMNS: Spark drops all columns, and adds others."""
    return {"DeleteColumn", "AddColumn"} <= {each["kind"] for each in changes}


def _needs_versions(change: Mapping[str, Any]) -> bool:
    becomes_text = change["kind"] == "UpdateColumnType" and pt.is_string(_type(change))
    return change["kind"] in _BY_VERSIONS or change.get("place") is not None or becomes_text


def _has_versions(table: TablePeer) -> bool:
    """Return whether schema on read is switched on, or was used already."""
    given = {**table_options(table.properties), **session_options(table.spark)}
    is_on = given.get(_ON_READ, "").strip().lower() == "true"
    return is_on or table.open()._facts().config.history is not None


def rename_table(table: TablePeer, name: str) -> None:
    """Store the new name of a table in its properties, as Hudi does.

    Raises:
        ConflictError: another writer holds the table.
    """
    target = table.for_writes()
    with target._errors():
        rename(target._context, name, options_of("insert", table.write_options({})))


def prepare_alter(table: TablePeer, changes: Sequence[Mapping[str, Any]]) -> None:
    """Check changes as `check_alter`, and make those of properties that the table itself stores.

    Raises:
        ConflictError: another writer holds the table.
        InvalidError: as of `check_alter`; or the layout of the files cannot become the one asked for.
        UnsupportedError: as of `check_alter`.
    """
    check_alter(table, changes)
    for change in changes:
        if change["name"] == STORAGE_LAYOUT and change["kind"] == "SetProperty":
            table.for_writes().set_storage_layout(change["value"])


def _check_property(table: TablePeer, name: str, value: str) -> None:
    if name == STORAGE_LAYOUT and value:
        return
    for key in table_options({name: value or "cow"}):
        if is_stored(key):
            raise InvalidError(
                f"Property {name} describes the table, which was created with a value of its own. Create"
                " another table to change it.",
                table=table.path,
            )
        if value:
            WriteOptions.parse({key: value})
            check_reads({key: value})


def alter(table: TablePeer, given: Mapping[str, Any]) -> None:
    """Change the columns of a table, by a commit without rows. As in Hudi, no table service follows it.

    Args:
        table: the table.
        given: `changes` as of `check_alter`, and `schema`, all columns after them as Spark's JSON.

    Raises:
        InvalidError: there is no such column, or its type cannot become the new one.
    """
    target, changes = table.for_writes(), given["changes"]
    options = table.write_options({"hoodie.allow.empty.commit": "true"})
    parsed = options_of("insert", options)
    with target._errors():
        of_columns = [each for each in _changes(target, changes) if not _is_nullable_already(target, each)]
        if not of_columns:
            return
        for change in of_columns:
            check_names(change)
        by_versions = any(map(_needs_versions, changes))
        if by_versions or target._facts().config.history is not None or _has_comment(of_columns):
            alter_columns(target._context, of_columns, parsed, by_versions=by_versions)
            return
        rows = commented_schema(
            StructType.fromJson(json.loads(without_lengths(given["schema"])))
        ).empty_table()
        context, source = target._rows_of(rows)
        write_source(context, InputRows(source), VERBS["insert"], parsed)


def _changes(target: Table, told: Sequence[Mapping[str, Any]]) -> list[ColumnChange]:
    """Return the changes of columns that a statement asks for."""
    asked = [_change(each) for each in told if each["kind"] in _KINDS]
    comments = [
        commented(each["name"], each["comment"])
        for each in told
        if each["kind"] == "AddColumn" and each.get("comment")
    ]
    if not _is_replacement(told):
        return asked + comments
    wanted = pa.schema(
        [pa.field(each.column, each.type) for each in asked if each.kind is ChangeKind.ADD and each.type]
    )
    return replacement(target.schema, wanted, target.config.partition_fields) + comments


def _is_nullable_already(target: Table, change: ColumnChange) -> bool:
    return change.kind is ChangeKind.NULLABLE and changed(target.schema, change) == target.schema


def _has_comment(changes: Sequence[ColumnChange]) -> bool:
    return any(each.kind is ChangeKind.COMMENT for each in changes)


def _change(told: Mapping[str, Any]) -> ColumnChange:
    kind, place, comment = _KINDS[told["kind"]], told.get("place"), ""
    if kind is ChangeKind.COMMENT:
        comment = told.get("comment") or ""
    return ColumnChange(kind, tuple(told["path"]), told.get("value") or "", _type(told), place, comment)


def _type(told: Mapping[str, Any]) -> pa.DataType | None:
    if "type" not in told:
        return None
    field = {"name": "c", "type": json.loads(without_lengths(told["type"])), "nullable": True, "metadata": {}}
    return commented_schema(StructType.fromJson({"type": "struct", "fields": [field]})).field(0).type
