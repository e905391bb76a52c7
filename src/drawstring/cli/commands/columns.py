"""`drawstring columns`: add, rename, drop, move and describe columns."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.model.result import CommitResult
from drawstring.schema.fields import type_named
from drawstring.table import Table

Column = Annotated[str, Parameter(help="The column, with dots for a field of a struct.")]
Type = Annotated[
    str, Parameter(help="The type by its name in SQL, such as bigint, varchar or 'decimal(10,2)'.")
]
NewName = Annotated[str, Parameter(help="The new name; of a field, without the struct.")]
Text = Annotated[str | None, Parameter(help="The text; without one the column loses its comment.")]
First = Annotated[bool, Parameter(name="--first", negative="", help="Before all other columns.")]
After = Annotated[
    str | None, Parameter(name="--after", help="Behind this column; behind the last one by default.")
]
Comment = Annotated[str | None, Parameter(name="--comment", help="What the column means.")]


def add_column(
    path: TablePath,
    name: Column,
    type: Type,
    /,
    *,
    first: First = False,
    after: After = None,
    comment: Comment = None,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Add a column, null in all rows, in a commit without rows; needs schema on read.

    Apache Hudi then reads the table right with hoodie.schema.on.read.enable=true only.
    """
    _check_place(first, after)
    table, given, kind = open_table(path, storage_option), named_values(option), type_named(type)
    done = table.columns.add(name, kind, first=first, after=after, comment=comment, options=given)
    _print(table, done, as_json)


def rename_column(
    path: TablePath,
    name: Column,
    new_name: NewName,
    /,
    *,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Rename a column in a commit without rows; needs schema on read.

    Apache Hudi then reads the table right with hoodie.schema.on.read.enable=true only.
    """
    table, given = open_table(path, storage_option), named_values(option)
    _print(table, table.columns.rename(name, new_name, options=given), as_json)


def drop_column(
    path: TablePath,
    name: Column,
    /,
    *,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Drop a column in a commit without rows; files keep its values; needs schema on read.

    Apache Hudi then reads the table right with hoodie.schema.on.read.enable=true only.
    """
    table, given = open_table(path, storage_option), named_values(option)
    _print(table, table.columns.drop(name, options=given), as_json)


def change_column_type(
    path: TablePath,
    name: Column,
    type: Type,
    /,
    *,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Change the type of a column to a wider one, in a commit without rows; needs schema on read.

    Apache Hudi then reads the table right with hoodie.schema.on.read.enable=true only.
    """
    table, given = open_table(path, storage_option), named_values(option)
    _print(table, table.columns.change_type(name, type_named(type), options=given), as_json)


def move_column(
    path: TablePath,
    name: Column,
    /,
    *,
    first: First = False,
    after: After = None,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Move a column to another place, in a commit without rows; needs schema on read.

    Apache Hudi then reads the table right with hoodie.schema.on.read.enable=true only.
    """
    _check_place(first, after)
    table, given = open_table(path, storage_option), named_values(option)
    _print(table, table.columns.move(name, first=first, after=after, options=given), as_json)


def comment_column(
    path: TablePath,
    name: Column,
    comment: Text = None,
    /,
    *,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Describe a column, or take its comment away, in a commit without rows."""
    table, given = open_table(path, storage_option), named_values(option)
    _print(table, table.columns.comment(name, comment or None, options=given), as_json)


def _check_place(first: bool, after: str | None) -> None:
    if first and after is not None:
        raise InvalidError(f"--first and --after {after} exclude each other. Give one of them.")


def _print(table: Table, done: CommitResult, as_json: bool) -> None:
    if as_json:
        output.print_json({**output.result_fields(done), "columns": list(table.schema.names)})
    else:
        output.print_line(f"{done.instant}: {', '.join(table.schema.names)}")
