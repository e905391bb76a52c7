"""`drawstring bootstrap`: make a table of a folder of Parquet files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from cyclopts import Parameter

import drawstring
from drawstring.cli import output
from drawstring.cli.arguments import AsJson, StorageOptions, TablePath, storage_options

Columns = Annotated[tuple[str, ...], Parameter(negative="", help="A column; may be repeated.")]


def bootstrap(
    path: TablePath,
    source: Annotated[str, Parameter(help="Folder of Parquet files; it stays as it is.")],
    *,
    record_key: Columns,
    partition_by: Columns = (),
    ordering: Columns = (),
    mode: Annotated[
        Literal["metadata", "full"],
        Parameter(help="Leave the rows where they are (metadata), or write them to the table (full)."),
    ] = "metadata",
    matching: Annotated[
        str | None,
        Parameter(help="Pattern of the source's folders that the mode is for; the others get the other one."),
    ] = None,
    merge_on_read: Annotated[bool, Parameter(negative="", help="Make a MERGE_ON_READ table.")] = False,
    version: Annotated[Literal[6, 8, 9], Parameter(help="Version of the table.")] = 9,
    as_json: AsJson = False,
    option: StorageOptions = (),
) -> None:
    """Make a table of a folder of Parquet files."""
    result = drawstring.bootstrap(
        path,
        source,
        record_key=record_key,
        partition_by=partition_by,
        ordering=ordering,
        mode=mode,
        matching=matching,
        table_type="MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE",
        version=version,
        storage_options=storage_options(option) or None,
    )
    if as_json:
        output.print_json(asdict(result))
        return
    size = output.size_text(result.bytes_written)
    written = f"{result.records_written} rows, {result.files} base files ({size})"
    output.print_line(f"made a table: {written} in {result.seconds:.1f} s")
