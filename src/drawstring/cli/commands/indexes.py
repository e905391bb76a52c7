"""`drawstring indexes`: create, drop and show indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.model.index import TableIndex

Name = Annotated[str, Parameter(help="record_index, bloom_filters, column_stats, or a name of your own.")]
Only = Annotated[str | None, Parameter(help="One index only; all by default.")]
Planned = Annotated[str | None, Parameter(help="Instant of one plan only; all plans by default.")]
Column = Annotated[
    str | None, Parameter(name="--column", help="Column of a secondary index, or of an expression.")
]
Using = Annotated[
    Literal["column_stats", "bloom_filters"] | None,
    Parameter(
        name="--using",
        help="What an index of an expression has of each file. Its function is an option: expr=upper.",
    ),
]
Partitioned = Annotated[
    bool,
    Parameter(name="--partitioned", negative="", help="Give each partition a record index of its own."),
]


def create_index(
    path: TablePath,
    name: Name,
    /,
    *,
    column: Column = None,
    using: Using = None,
    partitioned: Partitioned = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Create an index in the metadata table, and build it at once."""
    table, given = open_table(path, storage_option), named_values(option)
    created = table.indexes.create(name, column, using=using, partitioned=partitioned, options=given)
    _print([created], as_json=as_json)


def schedule_index(
    path: TablePath,
    name: Name,
    /,
    *,
    column: Column = None,
    using: Using = None,
    partitioned: Partitioned = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Plan an index, for `drawstring indexes run` to build in any process while writers go on."""
    table, given = open_table(path, storage_option), named_values(option)
    planned = table.indexes.schedule(name, column, using=using, partitioned=partitioned, options=given)
    _print_change("planned", planned, as_json=as_json)


def run_indexes(
    path: TablePath,
    instant: Planned = None,
    /,
    *,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Build the planned indexes while writers go on."""
    table, given = open_table(path, storage_option), named_values(option)
    _print(table.indexes.run(instant, options=given), as_json=as_json, nothing="no index is planned")


def drop_index(
    path: TablePath,
    name: Name,
    /,
    *,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Drop an index from the metadata table."""
    open_table(path, storage_option).indexes.drop(name, options=named_values(option))
    _print_change("dropped", name, as_json=as_json)


def list_indexes(
    path: TablePath,
    name: Only = None,
    /,
    *,
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """List the indexes of a table with their kinds and states, and why queries do not use some."""
    found = open_table(path, storage_option).indexes.list()
    _print([each for each in found if name in (None, each.name)], as_json=as_json)


def _print_change(what: str, name: str, *, as_json: bool) -> None:
    if as_json:
        output.print_json({what: name})
    else:
        output.print_line(f"{what} {name}")


def _print(indexes: list[TableIndex], *, as_json: bool, nothing: str = "no index") -> None:
    if as_json:
        output.print_json([_fields(each) for each in indexes])
        return
    if not indexes:
        output.print_line(nothing)
        return
    rows = ((each.name, each.kind, ", ".join(each.columns), _options(each), _state(each)) for each in indexes)
    output.print_grid(("index", "kind", "columns", "options", "state"), rows)
    print_unused(indexes)


def print_unused(indexes: Sequence[TableIndex]) -> None:
    """Print why some indexes are not used, and what to do; nothing if all are.

    Args:
        indexes: of a table.
    """
    reasons = dict[str, list[str]]()
    for each in indexes:
        if each.unused is not None:
            reasons.setdefault(each.unused, []).append(each.name)
    for why, names in reasons.items():
        output.print_line(f"Queries do not use {' and '.join(names)}. {why}")


def _options(index: TableIndex) -> str:
    given = (f"{name}={value}" for name, value in index.options.items())
    return ", ".join([index.using, *given] if index.using else given)


def _state(index: TableIndex) -> str:
    if index.unused is not None:
        return "not used"
    return "complete" if index.is_complete else "planned"


def _fields(index: TableIndex) -> dict[str, Any]:
    """Return the fields of an index to print."""
    return {
        "name": index.name,
        "kind": index.kind,
        "columns": list(index.columns),
        "is_partitioned": index.is_partitioned,
        "is_complete": index.is_complete,
        "unused": index.unused,
        "using": index.using,
        "options": dict(index.options),
    }
