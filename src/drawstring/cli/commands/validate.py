"""`drawstring validate` and `drawstring repair`: is a table as it should be, and put right what can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from drawstring.base.errors import CorruptTableError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.cli.bar import progress_bar
from drawstring.model.validation import Finding, Validation

Quick = Annotated[
    bool, Parameter(negative="", help="Compare names and sizes alone; leave what is in the files alone.")
]
GlobalKeys = Annotated[
    bool,
    Parameter(
        negative="", help="A key may be in one partition only, also where the table does not name its index."
    ),
]
Apply = Annotated[bool, Parameter(negative="", help="Do it; without this, only what would be done is shown.")]
Only = Annotated[
    tuple[str, ...],
    Parameter(
        negative="",
        help="Only this: orphan, partition-metadata, properties, rollback or temporary; may be repeated.",
    ),
]


def validate(
    path: TablePath,
    *,
    quick: Quick = False,
    global_keys: GlobalKeys = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Check the invariants of a table, key by key; exit code 2 says that there is an error."""
    table = open_table(path, storage_option)
    with progress_bar(table.config.name) as began:
        reading = began(f"reading {table.config.name}")
        found = table.validate(quick=quick, global_keys=global_keys, progress=reading)
    if as_json:
        output.print_json({"sound": found.is_sound, **asdict(found)})
    else:
        _show(found.findings)
        output.print_line(_summary(found))
    if not found.is_sound:
        errors = sum(1 for each in found.findings if each.severity == "error")
        raise CorruptTableError(f"{errors} errors found: see what each says", table=path)


def repair(
    path: TablePath,
    *,
    apply: Apply = False,
    only: Only = (),
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Show what can be put right without anybody's decision, and with --apply do it."""
    done = open_table(path, storage_option).repair(only=only, apply=apply, options=named_values(option))
    if as_json:
        output.print_json([asdict(each) for each in done])
        return
    _show(done)
    if not done:
        output.print_line("nothing to repair")
    elif apply:
        output.print_line(f"{len(done)} things put right")
    else:
        output.print_line(f"{len(done)} things to put right: --apply does it")


def _show(findings: Sequence[Finding]) -> None:
    if findings:
        rows = [(each.severity, each.check, each.path, each.instant, each.what) for each in findings]
        output.print_grid(("severity", "check", "where", "instant", "what"), rows)


def _summary(found: Validation) -> str:
    looked = f"{found.instants} instants, {found.partitions} partitions, {found.file_groups} file groups"
    read = f", {found.records} records" if found.records is not None else ""
    verdict = "sound" if found.is_sound else "not sound"
    return f"{verdict}: looked at {looked}, {found.files} files{read}"
