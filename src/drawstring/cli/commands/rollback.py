"""`drawstring rollback`: take one pending action off the timeline."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

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
        help="Requested time of what is pending, see `timeline`; the newest write by default. Plans have to"
        " be named."
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
    """Roll a write back whose writer died, or withdraw the plan of a compaction or clustering.

    Rows that are there stay; to undo what is completed, see `restore`.
    """
    table, given = open_table(path, storage_option), named_values(option)
    result = (table.plan_rollback if dry_run else table.rollback)(instant, options=given)
    if as_json:
        _print_for_machines(result)
    elif not result:
        output.print_line("no write is pending")
    elif isinstance(result, RollbackResult):
        output.print_line(f"rolled back the {result.action} {result.instant}: {result.files} files")
    else:
        output.print_grid(("file to take back",), [(each,) for each in result.files])
        text = f"the {result.action} {result.instant}, {len(result.files)} files; nothing was rolled back"
        output.print_line(text)
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
