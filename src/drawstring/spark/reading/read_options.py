"""Conversion of read options to scans."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import ReadOptions
from drawstring.entry import open as open_table
from drawstring.filegroups.read.cdc import CHANGE_SCHEMA
from drawstring.query.scan import Scan
from drawstring.table import Table


def scan_of(table: Table, asked: ReadOptions) -> Scan:
    """Return the scan for read options.

    Args:
        table: the table.
        asked: the options.

    Raises:
        InvalidError: an incremental query without a begin and an end.
    """
    if asked.query_type != "incremental":
        return table.scan(
            asked.columns,
            where=asked.where,
            as_of=asked.as_of,
            read_optimized=asked.query_type == "read_optimized",
        )
    if asked.begin is None and asked.end is None:
        raise InvalidError(
            "An incremental query needs a begin. Set hoodie.datasource.read.begin.instanttime to an instant"
            " or to earliest."
        )
    if asked.is_cdc:
        return table.changes(asked.begin, asked.end, include_start=asked.include_start, holes=asked.holes)
    return table.incremental(
        asked.begin,
        asked.end,
        columns=asked.columns,
        where=asked.where,
        include_start=asked.include_start,
        holes=asked.holes,
        full_scan=asked.full_scan,
    )


def scan_at(path: str, storage_options: Mapping[str, str], asked: ReadOptions) -> Scan:
    """Open a table and return the scan for read options; see `scan_of`.

    Args:
        path: the table's root.
        storage_options: options of the object store.
        asked: the options.
    """
    return scan_of(open_table(path, storage_options=storage_options), asked)


def schema_of(table: Table, asked: ReadOptions) -> pa.Schema:
    """Return the columns of a query or a stream with read options.

    Args:
        table: the table.
        asked: the options.
    """
    if asked.query_type == "incremental" and asked.is_cdc:
        return CHANGE_SCHEMA
    return table.scan(asked.columns, where=asked.where, as_of=asked.as_of).schema
