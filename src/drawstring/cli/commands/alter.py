"""`drawstring columns`: add, rename, drop, move and describe columns."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.schema.fields import type_named

Act = Annotated[
    Literal["add", "rename", "drop", "type", "move", "comment"],
    Parameter(help="What to do with the column."),
]
Column = Annotated[str, Parameter(help="The column, with dots for a field of a struct.")]
Value = Annotated[
    str | None,
    Parameter(
        help="For add and type: the type by its name in SQL, such as bigint, varchar or 'decimal(10,2)'. For"
        " rename: the new name. For comment: the text, or nothing to take it away."
    ),
]
First = Annotated[
    bool, Parameter(name="--first", negative="", help="For add and move: before all other columns.")
]
After = Annotated[
    str | None, Parameter(name="--after", help="For add and move: behind this column; the last by default.")
]
Comment = Annotated[str | None, Parameter(name="--comment", help="For add: what the column means.")]

_NEEDED: Final = {
    "add": ("its type", "bigint"),
    "type": ("its new type", "bigint"),
    "rename": ("its new name", "NEW_NAME"),
}
_WITHOUT: Final = ("drop", "move")
_PLACED: Final = ("add", "move")


def columns(
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
    if act in _NEEDED and not value:
        what, example = _NEEDED[act]
        raise InvalidError(
            f"`drawstring columns {act}` needs the column and {what}, as in: drawstring columns {act} {path}"
            f" {column} {example}"
        )
    _check(act, value, first=first, after=after, has_comment=comment is not None)
    table, given = open_table(path, storage_option), named_values(option)
    if act == "add":
        kind = type_named(value or "")
        done = table.columns.add(column, kind, first=first, after=after, comment=comment, options=given)
    elif act == "rename":
        done = table.columns.rename(column, value or "", options=given)
    elif act == "drop":
        done = table.columns.drop(column, options=given)
    elif act == "type":
        done = table.columns.change_type(column, type_named(value or ""), options=given)
    elif act == "move":
        done = table.columns.move(column, first=first, after=after, options=given)
    else:
        done = table.columns.comment(column, value or None, options=given)
    if as_json:
        output.print_json({**output.result_fields(done), "columns": list(table.schema.names)})
    else:
        output.print_line(f"{done.instant}: {', '.join(table.schema.names)}")


def _check(act: str, value: str | None, *, first: bool, after: str | None, has_comment: bool) -> None:
    """Check that a call has nothing that it has no use for."""
    if act in _WITHOUT and value is not None:
        raise InvalidError(f"`drawstring columns {act}` needs the column only. Leave {value!r} out.")
    if (first or after is not None) and act not in _PLACED:
        raise InvalidError(f"`drawstring columns {act}` leaves the column in its place. Leave the place out.")
    if first and after is not None:
        raise InvalidError(f"--first and --after {after} exclude each other. Give one of them.")
    if has_comment and act != "add":
        raise InvalidError(
            f"`drawstring columns {act}` takes no --comment. Use `drawstring columns comment`."
        )
