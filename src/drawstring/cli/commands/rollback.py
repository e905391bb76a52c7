"""`drawstring rollback`: roll back one pending instant."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from drawstring.base.counted import counted
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
from drawstring.model.result import PlannedRollback, RollbackResult
from drawstring.services.manual_rollback import undoable

Pending = Annotated[
    str | None,
    Parameter(
        help="Requested time of the pending instant, see `timeline`; the newest write by default. Required"
        " for plans."
    ),
]


def rollback(
    path: TablePath,
    instant: Pending = None,
    *,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Roll back a failed write, or the plan of a compaction or clustering.

    Committed rows stay. To undo completed instants, see `restore`.
    """
    table, given = open_table(path, storage_option), named_values(option)
    result = (table.plan_rollback if dry_run else table.rollback)(instant, options=given)
    if as_json:
        _print_for_machines(result)
    elif not result:
        output.print_line("no write is pending")
    elif isinstance(result, RollbackResult):
        files = counted(result.files, "file")
        output.print_line(f"rolled back the {result.action} {result.instant}: {files}")
    else:
        output.print_grid(("file to delete",), [(each,) for each in result.files])
        files = counted(len(result.files), "file")
        output.print_line(f"the {result.action} {result.instant}, {files}; nothing was rolled back")
    if not as_json:
        for each in undoable(table.timeline):
            if not result or each.requested != result.instant:
                text = f"also pending, to be rolled back by name: the {each.action} {each.requested}"
                output.print_line(text)


def _print_for_machines(result: RollbackResult | PlannedRollback | None) -> None:
    if isinstance(result, RollbackResult):
        output.print_result(result)
    else:
        output.print_json(asdict(result) if result else None)
