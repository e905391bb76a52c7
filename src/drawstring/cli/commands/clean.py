"""`drawstring clean`: delete old versions of files."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

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
from drawstring.model.clean import CleanPlan
from drawstring.model.result import CleanResult

RetainCommits = Annotated[
    int | None,
    Parameter(validator=Number(gte=1), help="Newest commits whose files are retained; 10 by default."),
]
RetainVersions = Annotated[
    int | None,
    Parameter(validator=Number(gte=1), help="Newest versions of each file group to retain instead."),
]
RetainHours = Annotated[
    int | None, Parameter(validator=Number(gte=1), help="Hours for which files are retained instead.")
]


def clean(
    path: TablePath,
    *,
    retain_commits: RetainCommits = None,
    retain_versions: RetainVersions = None,
    retain_hours: RetainHours = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Delete old versions of files; by default the files of the newest 10 commits are retained."""
    given = {
        "--retain-commits": retain_commits,
        "--retain-versions": retain_versions,
        "--retain-hours": retain_hours,
    }
    flags = [flag for flag, number in given.items() if number is not None]
    if len(flags) > 1:
        raise InvalidError(f"{' and '.join(flags)} exclude each other. Give one of them.")
    table = open_table(path, storage_option)
    call = partial(
        table.plan_clean if dry_run else table.clean,
        retain_commits=retain_commits,
        retain_versions=retain_versions,
        retain_hours=retain_hours,
    )
    result = call(options=named_values(option))
    if not isinstance(result, CleanResult):
        _show(result, as_json)
    elif as_json:
        output.print_result(result)
    else:
        output.print_line(_told(result) if result else "nothing to clean")


def _show(plan: CleanPlan | None, as_json: bool) -> None:
    if as_json:
        output.print_json(asdict(plan) if plan else None)
    elif plan is None or not plan.files:
        output.print_line("nothing to clean")
    else:
        rows = [(place, path.rpartition("/")[2]) for place, paths in plan.files.items() for path in paths]
        output.print_grid(("partition", "file to delete"), rows)
        kept = f"; files since {plan.earliest.requested} stay" if plan.earliest else ""
        gone = f", {len(plan.partitions_to_delete)} of them whole" if plan.partitions_to_delete else ""
        found = f"{counted(len(rows), 'file')} in {counted(len(plan.files), 'partition')}"
        output.print_line(f"{found}{gone}{kept}; nothing was deleted")


def _told(result: CleanResult) -> str:
    dropped = result.partitions_deleted
    gone = f", {counted(dropped, 'partition')} with them" if dropped else ""
    kept = f"; files since {result.earliest_retained} stay" if result.earliest_retained else ""
    deleted = f"{counted(result.files, 'file')} in {counted(result.partitions, 'partition')}"
    return f"deleted {deleted}{gone}{kept}, {result.seconds:.1f} s"
