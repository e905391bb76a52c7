"""`drawstring alter`: add, rename, drop, move and describe columns."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.schema.type_names import type_named

Act = Annotated[
    Literal["add", "rename", "drop", "type", "move", "comment"],
    Parameter(help="What to do with the column."),
]
Column = Annotated[str, Parameter(help="The column, with dots for a field of a struct.")]
Value = Annotated[
    str | None,
    Parameter(
        help="For add and type: the type by its name in SQL, such as bigint or 'decimal(10,2)'. For rename:"
        " the new name. For comment: the text, or nothing to take it away."
    ),
]
First = Annotated[
    bool, Parameter(name="--first", negative="", help="For add and move: before all other columns.")
]
After = Annotated[
    str | None, Parameter(name="--after", help="For add and move: behind this column; the last by default.")
]
Comment = Annotated[str | None, Parameter(name="--comment", help="For add: what the column means.")]

_NEEDED: Final = {"add": "its type", "type": "its new type", "rename": "its new name"}
_WITHOUT: Final = ("drop", "move")
_PLACED: Final = ("add", "move")


def alter(
    act: Act,
    path: TablePath,
    column: Column,
    value: Value = None,
    /,
    *,
    first: First = False,
    after: After = None,
    comment: Comment = None,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Change a column in a commit without rows; files stay as they are.

    All but `comment` need schema on read: Apache Hudi then reads the table right with
    hoodie.schema.on.read.enable=true only.
    """
    _check(act, value, is_placed=first or after is not None, has_comment=comment is not None)
    table, given = open_table(path, storage_option), named_values(option)
    if act == "add":
        kind = type_named(value or "")
        done = table.add_column(column, kind, first=first, after=after, comment=comment, options=given)
    elif act == "rename":
        done = table.rename_column(column, value or "", options=given)
    elif act == "drop":
        done = table.drop_column(column, options=given)
    elif act == "type":
        done = table.change_column_type(column, type_named(value or ""), options=given)
    elif act == "move":
        done = table.move_column(column, first=first, after=after, options=given)
    else:
        done = table.comment_column(column, value or None, options=given)
    if as_json:
        output.print_json({**output.result_fields(done), "columns": list(table.schema.names)})
    else:
        output.print_line(f"{done.instant}: {', '.join(table.schema.names)}")


def _check(act: str, value: str | None, *, is_placed: bool, has_comment: bool) -> None:
    """Check that a call has what it needs, and nothing that it has no use for."""
    if act in _NEEDED and not value:
        raise InvalidError(
            f"`drawstring alter {act}` needs the column and {_NEEDED[act]}. Give it after the column."
        )
    if act in _WITHOUT and value is not None:
        raise InvalidError(f"`drawstring alter {act}` needs the column only. Leave {value!r} out.")
    if is_placed and act not in _PLACED:
        raise InvalidError(f"`drawstring alter {act}` leaves the column in its place. Leave the place out.")
    if has_comment and act != "add":
        raise InvalidError(f"`drawstring alter {act}` takes no --comment. Use `drawstring alter comment`.")
