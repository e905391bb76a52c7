"""`drawstring metadata`: what the metadata table of a table holds."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from cyclopts import Parameter

from drawstring.base.counted import counted
from drawstring.base.errors import CorruptTableError
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, StorageOptions, TablePath, open_table
from drawstring.cli.commands.index import print_unused

OnePartition = Annotated[
    str | None, Parameter(help="Partition of the metadata table; all are listed without.")
]
Keys = Annotated[
    tuple[str, ...],
    Parameter(
        name="--key",
        negative="",
        help="Show only a record key of record_index, a value of a secondary index, a column of statistics"
        " or a partition of files; may be repeated.",
    ),
]


def metadata(
    path: TablePath,
    partition: OnePartition = None,
    /,
    *,
    key: Keys = (),
    as_json: AsJson = False,
    storage_option: StorageOptions = (),
) -> None:
    """Show the partitions of the metadata table, or the records of one: files, statistics, keys."""
    table = open_table(path, storage_option)
    rows = table.metadata(partition, keys=key or None)
    if as_json:
        output.print_json(rows.to_pylist())
        return
    titles = [name.replace("_", " ") for name in rows.column_names]
    output.print_grid(titles, (list(row.values()) for row in rows.to_pylist()))
    output.print_line(counted(rows.num_rows, "partition" if partition is None else "record"))
    with suppress(CorruptTableError):  # `drawstring validate` tells
        print_unused([each for each in table.indexes() if partition in (None, each.name)])
