"""`drawstring head`: the first rows of a snapshot, or what reading it takes."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from drawstring.cli import output
from drawstring.cli.arguments import (
    AsJson,
    HudiOptions,
    StorageOptions,
    TablePath,
    column_names,
    named_values,
    open_table,
)
from drawstring.query.scan import Scan
from drawstring.schema.meta import without_meta

Rows = Annotated[int, Parameter(name=("--rows", "-n"), validator=Number(gte=0), help="How many rows.")]
Columns = Annotated[
    tuple[str, ...],
    Parameter(name=("--columns", "-c"), negative="", help="Columns, separated by commas; may be repeated."),
]
Where = Annotated[str | None, Parameter(name=("--where", "-w"), help="SQL predicate that selects the rows.")]
AsOf = Annotated[str | None, Parameter(name="--as-of", help="As of an instant or a date-time.")]
ReadOptimized = Annotated[
    bool, Parameter(name="--read-optimized", negative="", help="Read base files only, without log files.")
]
Explain = Annotated[
    bool,
    Parameter(name="--explain", negative="", help="Show which files are read and skipped, instead of rows."),
]


def head(
    path: TablePath,
    *,
    rows: Rows = 10,
    columns: Columns = (),
    where: Where = None,
    as_of: AsOf = None,
    read_optimized: ReadOptimized = False,
    explain: Explain = False,
    option: HudiOptions = (),
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """Print the first rows of a table."""
    table = open_table(path, storage_option, named_values(option))
    scan = partial(table.scan, where=where, as_of=as_of, read_optimized=read_optimized)
    if explain:
        _explain(scan(), as_json=as_json)
        return
    names = column_names(columns, "--columns") or without_meta(scan().schema).names
    shown = _first_rows(scan(columns=names), rows)
    if as_json:
        output.print_json(shown)
    else:
        output.print_grid(names, ([row[name] for name in names] for row in shown))


def _explain(scan: Scan, *, as_json: bool) -> None:
    explanation = scan.explain()
    if as_json:
        output.print_json(explanation.to_dict())
    else:
        output.print_line(explanation.summary)
        output.print_grid(("", "step", "skipped", "kept"), explanation.rows())
        for note in explanation.notes:
            output.print_line(note)


def _first_rows(scan: Scan, count: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for batch in scan.to_batches():
        found += batch.slice(0, min(count - len(found), batch.num_rows)).to_pylist(maps_as_pydicts="lossy")
        if len(found) >= count:
            break
    return found
