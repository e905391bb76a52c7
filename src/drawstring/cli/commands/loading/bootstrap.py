"""`drawstring bootstrap`: create a table from a folder of Parquet files."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

import drawstring
from drawstring.base.text_format import pluralize
from drawstring.cli import output
from drawstring.cli.arguments import (
    AsJson,
    HudiOptions,
    StorageOptions,
    TablePath,
    column_names,
    named_values,
    storage_options,
)
from drawstring.model.result import size_text

Columns = Annotated[
    tuple[str, ...], Parameter(negative="", help="Columns, separated by commas; may be repeated.")
]


def bootstrap(
    path: TablePath,
    source: Annotated[str, Parameter(help="Folder of Parquet files; it is not modified.")],
    *,
    record_key: Columns,
    partition_by: Columns = (),
    ordering: Columns = (),
    mode: Annotated[
        Literal["metadata", "full"],
        Parameter(help="Leave the rows in the source files (metadata), or write them to the table (full)."),
    ] = "metadata",
    matching: Annotated[
        str | None,
        Parameter(help="Pattern of the source folders that get the mode; other folders get the other mode."),
    ] = None,
    name: Annotated[
        str | None, Parameter(help="Name of the table; the last part of PATH by default.")
    ] = None,
    table_type: Annotated[
        Literal["COPY_ON_WRITE", "MERGE_ON_READ"], Parameter(help="Type of the table.")
    ] = "COPY_ON_WRITE",
    version: Annotated[Literal[6, 8, 9, 10], Parameter(help="Version of the table.")] = 9,
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Create a table from a folder of Parquet files."""
    result = drawstring.bootstrap(
        path,
        source,
        record_key=column_names(record_key, "--record-key") or (),
        partition_by=column_names(partition_by, "--partition-by") or (),
        ordering=column_names(ordering, "--ordering") or (),
        mode=mode,
        matching=matching,
        name=name,
        table_type=table_type,
        version=version,
        options=named_values(option),
        storage_options=storage_options(storage_option) or None,
    )
    if as_json:
        output.print_result(result)
        return
    size = size_text(result.bytes_written)
    written = f"{pluralize(result.records_written, 'row')}, {pluralize(result.files, 'base file')} ({size})"
    output.print_line(f"made a table: {written} in {result.seconds:.1f} s")
