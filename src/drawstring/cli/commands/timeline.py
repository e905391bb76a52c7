"""`drawstring timeline`: the instants of a table, oldest first."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from drawstring.cli import output
from drawstring.cli.arguments import AsJson, StorageOptions, TablePath, open_table
from drawstring.model.instant_status import InstantStatus

LastInstants = Annotated[
    int | None,
    Parameter(
        name=("--last", "-n"), validator=Number(gte=0), help="Show only this many of the newest instants."
    ),
]


def timeline(
    path: TablePath,
    *,
    last: LastInstants = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """List the instants of a table with action and times, oldest first."""
    states = open_table(path, storage_option).instants(last)
    if as_json:
        output.print_json(
            [
                {
                    "requested": instant.requested,
                    "completed": instant.completed,
                    "action": str(instant.action),
                    "state": instant.state.name,
                    "undone": list(each.undone),
                    "is_worked_on": each.is_worked_on,
                }
                for each in states
                for instant in (each.instant,)
            ]
        )
        return
    if not states:
        output.print_line("no instant")
        return
    output.print_grid(
        ("instant", "action", "state", "requested", "completed", "note"),
        (
            (
                instant.requested,
                str(instant.action),
                instant.state.name.lower(),
                output.instant_text(instant.requested),
                output.instant_text(instant.completed),
                _note(each),
            )
            for each in states
            for instant in (each.instant,)
        ),
    )


def _note(status: InstantStatus) -> str:
    """Return what a rollback or restore undid, and whether a process works on a pending action."""
    verb = "undid" if status.instant.is_completed else "undoes"
    notes = [f"{verb} {', '.join(status.undone)}"] if status.undone else []
    if status.is_worked_on is not None:
        notes.append("a process is at work" if status.is_worked_on else "no process is at work")
    return "; ".join(notes)
