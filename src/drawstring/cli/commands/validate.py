"""`drawstring validate` and `drawstring repair`: check the invariants of a table, and repair it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from drawstring.base.counted import counted
from drawstring.base.errors import CorruptTableError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.cli.bar import progress_bar
from drawstring.model.validation import Finding, Validation

Quick = Annotated[
    bool, Parameter(negative="", help="Compare names and sizes only, without reading the files.")
]
GlobalKeys = Annotated[
    bool,
    Parameter(negative="", help="Require unique keys across partitions, even if the table names no index."),
]
Apply = Annotated[bool, Parameter(negative="", help="Apply the repairs; otherwise only show them.")]
Only = Annotated[
    tuple[str, ...],
    Parameter(
        negative="",
        help="Repair: metadata, orphan, partition-metadata, properties, rollback or temporary; may be"
        " repeated.",
    ),
]


def validate(
    path: TablePath,
    *,
    quick: Quick = False,
    global_keys: GlobalKeys = False,
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """Check the invariants of a table, key by key; the exit code is 2 if there is an error."""
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
        raise CorruptTableError(
            f"The table has {counted(errors, 'error')}. See each finding above.", table=path
        )


def repair(
    path: TablePath,
    *,
    apply: Apply = False,
    only: Only = (),
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Show the repairs that need no decision, and apply them with --apply."""
    done = open_table(path, storage_option).repair(only=only, apply=apply, options=named_values(option))
    if as_json:
        output.print_json([asdict(each) for each in done])
        return
    _show(done)
    if not done:
        output.print_line(
            "nothing to repair without a decision; drawstring validate tells whether anything else is wrong"
        )
    elif apply:
        output.print_line(f"{counted(len(done), 'repair')} applied")
    else:
        output.print_line(f"{counted(len(done), 'repair')} found; apply them with --apply")


def _show(findings: Sequence[Finding]) -> None:
    if findings:
        rows = [(each.severity, each.check, each.path, each.instant, each.what) for each in findings]
        output.print_grid(("severity", "check", "where", "instant", "what"), rows)


def _summary(found: Validation) -> str:
    looked = [
        counted(found.instants, "instant"),
        counted(found.partitions, "partition"),
        counted(found.file_groups, "file group"),
        counted(found.files, "file"),
    ]
    if found.records is not None:
        looked.append(counted(found.records, "record"))
    return f"{'sound' if found.is_sound else 'not sound'}: looked at {', '.join(looked)}"
