"""`drawstring savepoint`: retain the state of the table after a write."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.model.instant import Action

OfWrite = Annotated[
    str | None, Parameter(name="--instant", help="Requested time of the write; the newest by default.")
]
Comments = Annotated[str, Parameter(name="--comments", help="Reason for the savepoint.")]
Delete = Annotated[
    bool, Parameter(name="--delete", negative="", help="Delete the savepoint of --instant instead.")
]
ShowAll = Annotated[bool, Parameter(name="--list", negative="", help="List the savepoints.")]


def savepoint(
    path: TablePath,
    *,
    instant: OfWrite = None,
    comments: Comments = "",
    delete: Delete = False,
    show_all: ShowAll = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Retain the files of a write in cleaning and archiving, so that `restore` can return to it."""
    table, given = open_table(path, storage_option), named_values(option)
    if show_all:
        saved = [each for each in table.timeline.instants if each.action is Action.SAVEPOINT]
        if as_json:
            output.print_json([each.requested for each in saved])
        else:
            rows = [(each.requested, output.instant_text(each.requested)) for each in saved]
            output.print_grid(("savepoint", "of the write of"), rows)
        return
    if delete and instant is None:
        raise InvalidError("--delete needs --instant. Give the write whose savepoint is to be deleted.")
    if delete and instant is not None:
        table.delete_savepoint(instant, options=given)
    else:
        instant = table.savepoint(instant, comments=comments, options=given)
    if as_json:
        output.print_json({"instant": instant})
    else:
        text = f"deleted the savepoint of {instant}" if delete else f"saved {instant}"
        output.print_line(text)
