"""`drawstring archive`: move old instants into the archived timeline."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

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
from drawstring.model.instant import Instant

MinCommits = Annotated[
    int | None, Parameter(validator=Number(gte=1), help="Newest writes to retain; 20 by default.")
]
MaxCommits = Annotated[
    int | None,
    Parameter(
        validator=Number(gte=1), help="Number of active writes that triggers archiving; 30 by default."
    ),
]


def archive(
    path: TablePath,
    *,
    min_commits: MinCommits = None,
    max_commits: MaxCommits = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Move old instants to the archived timeline; by default above 30 writes, and 20 are retained."""
    table = open_table(path, storage_option)
    given = named_values(option)
    if dry_run:
        plan = table.plan_archive(min_commits=min_commits, max_commits=max_commits, options=given)
        _show(plan, as_json)
        return
    result = table.archive(min_commits=min_commits, max_commits=max_commits, options=given)
    if as_json:
        output.print_result(result)
    elif not result:
        output.print_line("nothing to archive")
    else:
        span = f"{output.instant_text(result.first)} to {output.instant_text(result.last)}"
        text = f"archived {counted(result.instants, 'instant')} of {span}, in {result.seconds:.1f} s"
        output.print_line(text)


def _show(instants: list[Instant], as_json: bool) -> None:
    if as_json:
        output.print_json([{"requested": each.requested, "action": str(each.action)} for each in instants])
        return
    if instants:
        rows = [(each.requested, str(each.action), output.instant_text(each.requested)) for each in instants]
        output.print_grid(("instant to archive", "action", "requested"), rows)
    output.print_line(f"{counted(len(instants), 'instant')}; nothing was archived")
