"""`drawstring savepoint` and `restore`: retain the state of the table after a write, and return to it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from drawstring.base.counted import counted
from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import (
    AsJson,
    DryRun,
    HudiOptions,
    StorageOptions,
    TablePath,
    named_values,
    open_table,
)
from drawstring.model.instant import Action

OfWrite = Annotated[
    str | None, Parameter(name="--instant", help="Requested time of the write; the newest by default.")
]
Comments = Annotated[str, Parameter(name="--comments", help="Reason for the savepoint.")]
User = Annotated[str, Parameter(name="--user", help="Who makes the savepoint.")]
Delete = Annotated[
    bool, Parameter(name="--delete", negative="", help="Delete the savepoint of --instant instead.")
]
ShowAll = Annotated[bool, Parameter(name="--list", negative="", help="List the savepoints.")]
Instant = Annotated[
    str, Parameter(help="Requested time of a write with a savepoint, or whose files still exist.")
]


def savepoint(
    path: TablePath,
    *,
    instant: OfWrite = None,
    comments: Comments = "",
    user: User = "",
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
        elif not saved:
            output.print_line("no savepoint")
        else:
            rows = [(each.requested, output.instant_text(each.requested)) for each in saved]
            output.print_grid(("savepoint", "of the write of"), rows)
        return
    if delete and instant is None:
        raise InvalidError("--delete needs --instant. Give the write whose savepoint is to be deleted.")
    if delete and instant is not None:
        table.delete_savepoint(instant, options=given)
    else:
        instant = table.savepoint(instant, comments=comments, user=user, options=given)
    if as_json:
        output.print_json({"instant": instant})
    else:
        text = f"deleted the savepoint of {instant}" if delete else f"saved {instant}"
        output.print_line(text)


def restore(
    path: TablePath,
    instant: Instant,
    *,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Undo all changes after a write. This cannot be reverted: check with --dry-run first."""
    table, given = open_table(path, storage_option), named_values(option)
    if dry_run:
        plan = table.plan_restore(instant)
        if as_json:
            output.print_json(asdict(plan))
            return
        rows = [(time, action, output.instant_text(time)) for time, action in plan.instants]
        output.print_grid(("instant to undo", "action", "requested"), rows)
        output.print_line(f"{counted(len(rows), 'instant')}; nothing was undone")
        return
    result = table.restore(instant, options=given)
    if as_json:
        output.print_result(result)
    elif not result:
        output.print_line("nothing to undo")
    else:
        undone = f"undid {counted(len(result.undone), 'instant')}, deleted {counted(result.files, 'file')}"
        text = f"{undone}: the table is as of {result.restored_to}, in {result.seconds:.1f} s"
        output.print_line(text)
