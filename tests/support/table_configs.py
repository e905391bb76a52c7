"""Properties of tables: new ones, and files that Hudi wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drawstring.config.table.properties import decode_properties
from drawstring.config.table_config import TableType, new_table_properties

DATA = Path(__file__).parents[1] / "config/data"


def new_table(**changes: Any) -> dict[str, str]:
    """Return the properties of a new table, described by keywords of `new_table_properties`."""
    return new_table_properties(
        **{
            "name": "t",
            "table_type": TableType.MERGE_ON_READ,
            "version": 9,
            "record_key": ["id"],
            "partition_by": ["part"],
            "ordering": ["ts"],
            "schema_json": None,
            "extra": {},
            **changes,
        }
    )


def properties_of(name: str) -> dict[str, str]:
    """Return the properties in a file that Hudi wrote."""
    return decode_properties((DATA / f"{name}.properties").read_bytes())
