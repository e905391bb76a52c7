"""Open a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from drawstring.base.errors import NoTableError, errors_at
from drawstring.base.lazy import lazy_import
from drawstring.engine.local import engine_of
from drawstring.engine.protocol import Engine
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.txn.table_context import TableContext

if TYPE_CHECKING:
    from drawstring.config.options.read_options import table_options
    from drawstring.config.options.write_options import default_options
    from drawstring.query.table_state import table_above
else:
    lazy_import(
        globals(),
        table_options="drawstring.config.options.read_options:table_options",
        default_options="drawstring.config.options.write_options:default_options",
        table_above="drawstring.query.table_state:table_above",
    )


def open(
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    engine: Engine | None = None,
) -> Table:
    """Open a Hudi table.

    Args:
        uri: path or address of the table's root: `/path`, `file://`, `s3://` (or `s3a://`), `gs://`,
            `abfss://` or `az://`, or `memory://`, which exists as long as the process. Or of a partition
            folder, as in `/lake/trips/city=oslo`, or a pattern of these, as in `/lake/trips/2024/*`: queries
            then read these partitions only, and the table cannot be changed.
        storage_options: options of the object store, as in `{"region": "eu-central-1"}`; names of other
            clients are accepted too, for example `aws_region` or `fs.s3a.endpoint`.
        options: by Hudi's keys: the defaults of all later calls on the table, writes and services, as in
            `{"hoodie.clean.automatic": False}`; an option of a call wins. With `{"hoodie.metadata.enable":
            False}` queries, writes and services list the storage, and writes keep a metadata table only if
            there is one. By default they take the names of files from the metadata table, and the next write
            builds one if there is none (not in version 6); queries also leave out files that its statistics
            and indexes rule out, unless `hoodie.enable.data.skipping` is False.
        engine: runs the table's tasks; the embedded one by default.

    Returns:
        The table. Only its properties were read; each call loads its current timeline.

    Raises:
        InvalidError: there is no table, or the address or an option is invalid.
        UnsupportedError: this release does not support the table version or the scheme of the address.
        UnavailableError: the storage does not answer.
        CorruptTableError: the properties and their backup are damaged.

    Example:
        >>> table = drawstring.open("memory://rides")
        >>> table.scan(columns=["id"], where="fare > 15").to_arrow().num_rows
        2
    """
    context = TableContext(open_storage(uri, storage_options), engine_of(engine))
    with errors_at(os.fspath(uri)):
        if options:
            context = opened_with(context, options)
        try:
            return Table(context)
        except NoTableError:
            place = table_above(os.fspath(uri), storage_options)
            if place is None:
                raise
            return Table(replace(context, storage=place.storage, scope=place.scope))


def opened_with(context: TableContext, options: Mapping[str, Any]) -> TableContext:
    """Return the context of a table that is opened with options.

    Args:
        context: the table.
        options: as of `open`.

    Raises:
        InvalidError: an option is invalid, or belongs to single calls.
        UnsupportedError: a value is not supported by this release.
    """
    chosen = table_options(options)
    return replace(
        context,
        uses_metadata=chosen.uses_metadata,
        skips_data=chosen.skips_data,
        merges_by_position=chosen.merges_by_position,
        defaults=default_options(options),
    )
