"""`drawstring indexes`: create, drop and show indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, HudiOptions, StorageOptions, TablePath, named_values, open_table
from drawstring.model.index import TableIndex

Act = Annotated[
    Literal["create", "drop", "list", "schedule", "run"],
    Parameter(help="What to do. What `schedule` plans, `run` builds in any process while writers go on."),
]
Name = Annotated[
    str | None,
    Parameter(
        help="record_index, bloom_filters, column_stats, or a name of your own; for run, a planned instant."
    ),
]
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


def indexes(
    act: Act,
    path: TablePath,
    name: Name = None,
    /,
    *,
    column: Column = None,
    using: Using = None,
    partitioned: Partitioned = False,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Create, plan, drop or show the indexes of a table, which its metadata table holds."""
    table, given = open_table(path, storage_option), named_values(option)
    if act == "list":
        _print([each for each in table.indexes.list() if name in (None, each.name)], as_json=as_json)
        return
    if act == "run":
        _print(table.indexes.run(name, options=given), as_json=as_json, nothing="no index is planned")
        return
    if name is None:
        raise InvalidError(f"`drawstring indexes {act}` needs the name of the index. Give it after the path.")
    if act == "create":
        created = table.indexes.create(name, column, using=using, partitioned=partitioned, options=given)
        _print([created], as_json=as_json)
        return
    if act == "schedule":
        planned = table.indexes.schedule(name, column, using=using, partitioned=partitioned, options=given)
        _print_change("planned", planned, as_json=as_json)
        return
    table.indexes.drop(name, options=given)
    _print_change("dropped", name, as_json=as_json)


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
