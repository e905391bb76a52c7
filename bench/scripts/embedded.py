"""The ride table on drawstring's embedded engine."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from drawstring import Table, create  # all of the package is loaded now, as other peers load theirs


def create_rides(table: str, schema: pa.Schema, table_type: str, properties: Mapping[str, str]) -> Table:
    """Create the empty table of rides."""
    return create(
        table,
        schema,
        name="rides",
        table_type=table_type,
        record_key=["ride_id"],
        partition_by=["city"],
        ordering=["ts"],
        properties=properties,
    )
