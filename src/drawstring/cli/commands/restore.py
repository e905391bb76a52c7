"""`drawstring restore`: restore the table to its state after a write."""

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

Instant = Annotated[
    str, Parameter(help="Requested time of a write with a savepoint, or whose files still exist.")
]


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
