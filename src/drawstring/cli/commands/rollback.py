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
from drawstring.model.result import RollbackResult
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
    hoodie: HudiOptions = (),
    as_json: AsJson = False,
    option: StorageOptions = (),
) -> None:
    """Roll a write back whose writer died, or withdraw the plan of a compaction or clustering.

    Rows that are there stay; to undo what is completed, see `restore`.
    """
    table, given = open_table(path, option), named_values(hoodie)
    result = (table.plan_rollback if dry_run else table.rollback)(instant, **given)
    if as_json:
        output.print_json(asdict(result) if result else None)
    elif result is None:
        output.print_line("no write is pending")
    elif isinstance(result, RollbackResult):
        output.print_line(f"rolled back the {result.action} {result.instant}: {result.files} files")
    else:
        output.print_grid(("file to take back",), [(each,) for each in result.files])
        text = f"the {result.action} {result.instant}, {len(result.files)} files; nothing was rolled back"
        output.print_line(text)
    if not as_json:
        for each in undoable(table.timeline):
            if result is None or each.requested != result.instant:
                text = f"also pending, to be rolled back by name: the {each.action} {each.requested}"
                output.print_line(text)
