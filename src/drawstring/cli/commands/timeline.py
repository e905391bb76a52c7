"""`drawstring timeline`: the instants of a table, oldest first."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from drawstring.cli import output
from drawstring.cli.arguments import AsJson, StorageOptions, TablePath, open_table

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
    instants = open_table(path, storage_option).timeline.instants
    if last is not None:
        instants = instants[max(0, len(instants) - last) :]
    if as_json:
        output.print_json(
            [
                {
                    "requested": instant.requested,
                    "completed": instant.completed,
                    "action": str(instant.action),
                    "state": instant.state.name,
                }
                for instant in instants
            ]
        )
        return
    output.print_grid(
        ("instant", "action", "state", "requested", "completed"),
        (
            (
                instant.requested,
                str(instant.action),
                instant.state.name.lower(),
                output.instant_text(instant.requested),
                output.instant_text(instant.completed),
            )
            for instant in instants
        ),
    )
