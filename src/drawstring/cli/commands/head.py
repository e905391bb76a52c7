"""`drawstring head`: the first rows of a snapshot."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from drawstring.base.errors import InvalidError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, StorageOptions, TablePath, open_table
from drawstring.query.scan import Scan
from drawstring.schema.meta import without_meta

Rows = Annotated[int, Parameter(name=("--rows", "-n"), validator=Number(gte=0), help="How many rows.")]
Columns = Annotated[str | None, Parameter(name=("--columns", "-c"), help="Columns, with commas between.")]
Where = Annotated[str | None, Parameter(name=("--where", "-w"), help="SQL predicate that the rows fulfil.")]
AsOf = Annotated[str | None, Parameter(name="--as-of", help="As of an instant or a date-time.")]
ReadOptimized = Annotated[
    bool, Parameter(name="--read-optimized", negative="", help="Leave out what log files hold.")
]


def head(
    path: TablePath,
    *,
    rows: Rows = 10,
    columns: Columns = None,
    where: Where = None,
    as_of: AsOf = None,
    read_optimized: ReadOptimized = False,
    as_json: AsJson = False,
    option: StorageOptions = (),
) -> None:
    """Print the first rows of a table."""
    table = open_table(path, option)
    scan = partial(table.scan, where=where, as_of=as_of, read_optimized=read_optimized)
    names = _named(columns) if columns else without_meta(scan().schema).names
    shown = _first_rows(scan(columns=names), rows)
    if as_json:
        output.print_json(shown)
    else:
        output.print_grid(names, ([row[name] for name in names] for row in shown))


def _named(columns: str) -> list[str]:
    """Return column names that have commas between, and perhaps one behind."""
    names = [name.strip() for name in columns.removesuffix(",").split(",")]
    if not all(names):
        raise InvalidError(f"--columns {columns!r} has an empty name: put one comma between two columns")
    return names


def _first_rows(scan: Scan, count: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for batch in scan.to_batches():
        found += batch.slice(0, min(count - len(found), batch.num_rows)).to_pylist(maps_as_pydicts="lossy")
        if len(found) >= count:
            break
    return found
