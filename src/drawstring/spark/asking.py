"""From read options to a scan."""

from __future__ import annotations

import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.config.options import ReadOptions
from drawstring.query.scan import Scan
from drawstring.table import Table


def scan_of(table: Table, asked: ReadOptions, where: pc.Expression | None = None) -> Scan:
    """Return the scan that read options ask for.

    Args:
        table: the table.
        asked: the options.
        where: a further condition, for when the options have none.

    Raises:
        InvalidError: an incremental query without a begin.
    """
    condition = where if asked.where is None else asked.where
    if asked.query_type != "incremental":
        return table.scan(asked.columns, condition, asked.as_of, asked.query_type == "read_optimized")
    if asked.begin is None:
        raise InvalidError(
            "an incremental query needs hoodie.datasource.read.begin.instanttime: an instant, or earliest"
        )
    return table.incremental(asked.begin, asked.end, columns=asked.columns, where=condition)
