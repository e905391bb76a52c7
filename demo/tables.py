"""The two tables of the demo: their columns and settings, in Arrow and in Hudi's words."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

EVENT_TIME = pa.timestamp("us", "UTC")

FLIGHT_SCHEMA = pa.schema(
    [
        ("year", pa.int32()),
        ("month", pa.int32()),
        ("day", pa.int32()),
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("tailnum", pa.string()),
        ("distance", pa.int32()),
        ("sched_dep_time", pa.int32()),
        ("sched_arr_time", pa.int32()),
        ("dep_time", pa.int32()),
        ("dep_delay", pa.int32()),
        ("arr_time", pa.int32()),
        ("arr_delay", pa.int32()),
        ("air_time", pa.int32()),
        ("status", pa.string()),
        ("event_time", EVENT_TIME),
    ]
)

DELAY_SCHEMA = pa.schema(
    [
        ("carrier", pa.string()),
        ("month", pa.int32()),
        ("day", pa.int32()),
        ("flights", pa.int64()),
        ("departed", pa.int64()),
        ("landed", pa.int64()),
        ("dep_delay_minutes", pa.int64()),
        ("arr_delay_minutes", pa.int64()),
        ("arr_delay_worst", pa.int32()),
    ]
)

GROUP = ("carrier", "month", "day")
"""The columns that `delay_by_carrier_day` groups flights by."""


BY_HAND = {"hoodie.compact.inline": "false"}
"""The demo compacts in a step of its own, for all to see."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table's name, kind and columns that Hudi gives a meaning."""

    name: str
    table_type: str
    schema: pa.Schema
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)

    def spark_options(self, operation: str) -> dict[str, str]:
        """Return the options of a write as scripts for Hudi's own bundle have them."""
        options = {
            "hoodie.table.name": self.name,
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.recordkey.field": ",".join(self.record_key),
            "hoodie.datasource.write.partitionpath.field": ",".join(self.partition_by),
            "hoodie.datasource.write.operation": operation,
            **BY_HAND,
        }
        if self.ordering:
            options["hoodie.datasource.write.precombine.field"] = ",".join(self.ordering)
        return options | self.properties


FLIGHTS = TableSpec(
    name="flights",
    table_type="MERGE_ON_READ",
    schema=FLIGHT_SCHEMA,
    record_key=("month", "day", "carrier", "flight", "origin"),
    partition_by=("month",),
    ordering=("event_time",),
    properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
)

DELAYS = TableSpec(
    name="delay_by_carrier_day",
    table_type="COPY_ON_WRITE",
    schema=DELAY_SCHEMA,
    record_key=GROUP,
    partition_by=("month",),
    # No ordering column: a group computed anew replaces what was there, also when flights left it.
    properties={"hoodie.index.type": "SIMPLE"},
)
