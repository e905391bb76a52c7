"""`drawstring upgrade`, `downgrade` and `set-layout`: change the table version or its storage layout."""

from __future__ import annotations

from collections.abc import Callable
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
from drawstring.cli.bar import progress_bar
from drawstring.model.result import VersionPlan, VersionResult
from drawstring.model.table_version import DEFAULT_VERSION
from drawstring.table import Table

Higher = Annotated[int, Parameter(name="--to", help="Table version to upgrade to: 8, 9 or 10.")]
Lower = Annotated[int, Parameter(name="--to", help="Table version to downgrade to: 6, 8 or 9.")]
Layout = Annotated[str, Parameter(name="--to", help="Storage layout: default.")]


def upgrade(
    path: TablePath,
    *,
    to: Higher = DEFAULT_VERSION,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Upgrade a table to a higher version, by default to 9. First stop writers without support."""
    table = open_table(path, storage_option)
    _change(table, table.upgrade, to, "upgrading", named_values(option), dry_run=dry_run, as_json=as_json)


def downgrade(
    path: TablePath,
    *,
    to: Lower,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Downgrade a table to a lower version, for older readers and writers."""
    table = open_table(path, storage_option)
    _change(table, table.downgrade, to, "downgrading", named_values(option), dry_run=dry_run, as_json=as_json)


def set_layout(
    path: TablePath,
    *,
    to: Layout,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Return a table with sorted files (lsm_tree) to the default storage layout; no file is rewritten."""
    table = open_table(path, storage_option)
    changed = table.set_storage_layout(to, options=named_values(option))
    if as_json:
        output.print_json({"layout": table.config.storage_layout, "changed": changed})
        return
    text = "has the storage layout" if changed else "already had the storage layout"
    output.print_line(f"the table {text} {table.config.storage_layout}")


def _change(
    table: Table,
    change: Callable[..., VersionResult],
    to: int,
    running: str,
    options: dict[str, str],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Change the version of a table under a progress bar, or show what would change."""
    if dry_run:
        _show_plan(table.plan_version(to), as_json)
        return
    name = table.config.name
    with progress_bar(name) as began:
        result = change(to, progress=began(f"{running} {name}"), options=options)
    _show(result, as_json)


def _show_plan(plan: VersionPlan, as_json: bool) -> None:
    if as_json:
        output.print_json(asdict(plan))
        return
    if plan.properties:
        rows = [(key, before, after) for key, (before, after) in plan.properties.items()]
        output.print_grid(("table property", "now", "then"), rows)
    timeline = "; its timeline moves to another layout" if plan.moves_timeline else ""
    text = f"version {plan.old} to {plan.new}{timeline}; nothing was changed"
    output.print_line(text)


def _show(result: VersionResult, as_json: bool) -> None:
    if as_json:
        output.print_result(result)
        return
    if result.old == result.new:
        text = f"the table has version {result.new} already"
        if result.instants:
            text += f"; deleted {counted(result.instants, 'file')} of an interrupted change"
    else:
        moved = f", {counted(result.instants + result.archived, 'instant')} moved" if result.instants else ""
        folded = f", compacted at {result.compacted}" if result.compacted else ""
        text = f"version {result.old} is {result.new} now{folded}{moved}, in {result.seconds:.1f} s"
    output.print_line(text)
