"""`drawstring archive`: move old instants into the archived timeline."""

from __future__ import annotations

from dataclasses import asdict

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
from drawstring.model.instant import Instant


def archive(
    path: TablePath,
    *,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    hoodie: HudiOptions = (),
    option: StorageOptions = (),
) -> None:
    """Move old instants into the archived timeline; by default beyond 30 writes, and 20 stay."""
    table = open_table(path, option)
    if dry_run:
        _show(table.plan_archive(**named_values(hoodie)), as_json)
        return
    result = table.archive(**named_values(hoodie))
    if as_json:
        output.print_json(asdict(result) if result else None)
    elif result is None:
        output.print_line("nothing to archive")
    else:
        span = f"{output.instant_text(result.first)} to {output.instant_text(result.last)}"
        text = f"archived {result.instants} instants of {span}, in {result.seconds:.1f} s"
        output.print_line(text)


def _show(instants: list[Instant], as_json: bool) -> None:
    if as_json:
        output.print_json([{"requested": each.requested, "action": str(each.action)} for each in instants])
        return
    if instants:
        rows = [(each.requested, str(each.action), output.instant_text(each.requested)) for each in instants]
        output.print_grid(("instant to archive", "action", "requested"), rows)
    output.print_line(f"{len(instants)} instants; nothing was archived")
