"""Conversion of read options to scans."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.read import VALUES_FROM_PATHS
from drawstring.config.options.write_options import ReadOptions
from drawstring.config.table.config import KeyGeneratorType, TableConfig
from drawstring.entry import open as open_table
from drawstring.filegroups.read.cdc import CHANGE_SCHEMA
from drawstring.query.policies import NEWEST
from drawstring.query.scan import Scan
from drawstring.table import Table


def scan_of(table: Table, read_options: ReadOptions) -> Scan:
    """Return the scan for read options.

    Args:
        table: the table.
        read_options: the options.

    Raises:
        InvalidError: an incremental query without a begin and an end.
        UnsupportedError: values of partition columns are to come from paths that do not have them.
    """
    check_values_in_paths(table.config, read_options)
    if read_options.query_type != "incremental":
        return table.scan(
            read_options.columns,
            where=read_options.where,
            as_of=read_options.as_of,
            read_optimized=read_options.query_type == "read_optimized",
        )
    if read_options.begin is None and read_options.end is None:
        raise InvalidError(
            "An incremental query needs a begin. Set hoodie.datasource.read.begin.instanttime to an instant"
            " or to earliest."
        )
    begin = NEWEST if read_options.begin is None else read_options.begin
    if read_options.is_cdc:
        return table.changes(
            begin,
            read_options.end,
            include_start=read_options.include_start,
            holes=read_options.holes,
        )
    return table.incremental(
        begin,
        read_options.end,
        columns=read_options.columns,
        where=read_options.where,
        include_start=read_options.include_start,
        holes=read_options.holes,
        full_scan=read_options.full_scan,
        path_glob=read_options.path_glob,
    )


def scan_at(path: str, storage_options: Mapping[str, str], read_options: ReadOptions) -> Scan:
    """Open a table and return the scan for read options; see `scan_of`.

    Args:
        path: the table's root.
        storage_options: options of the object store.
        read_options: the options.
    """
    table = open_table(path, storage_options=storage_options, options=read_options.of_table)
    return scan_of(table, read_options)


def schema_of(table: Table, read_options: ReadOptions) -> pa.Schema:
    """Return the columns of a query or a stream with read options.

    Args:
        table: the table.
        read_options: the options.

    Raises:
        UnsupportedError: values of partition columns are to come from paths that do not have them.
    """
    check_values_in_paths(table.config, read_options)
    if read_options.query_type == "incremental" and read_options.is_cdc:
        return CHANGE_SCHEMA
    return table.scan(read_options.columns, where=read_options.where, as_of=read_options.as_of).schema


def check_values_in_paths(config: TableConfig, read_options: ReadOptions) -> None:
    """Check that paths have the values of partition columns, if these are to come from paths.

    Args:
        config: the table.
        read_options: the options.

    Raises:
        UnsupportedError: a key generator formats a column as a date, or makes paths by rules of its own.
    """
    if not read_options.values_from_paths:
        return
    is_custom = config.path_generator is KeyGeneratorType.CUSTOM and not config.partition_types
    has_own_rules = is_custom or config.path_generator is KeyGeneratorType.USER_PROVIDED
    if formatted := config.partition_fields if has_own_rules else config.formatted_partition_fields:
        raise UnsupportedError(
            f"{VALUES_FROM_PATHS} would show folders in place of the values of {', '.join(formatted)}: the"
            " table's key generator makes other texts of them. Leave the option out, and select"
            " _hoodie_partition_path to see the folders."
        )
