"""What a table says of its columns is what its queries show."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.schema.fields import without_meta
from drawstring.table import Table
from tests.support.tables import new_address

DAY = 1_700_000_000_000
COLUMNS = {"id": pa.string(), "made": pa.int64(), "fare": pa.float64()}
FORMATTED = {
    "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
}
DROPPED = {"hoodie.datasource.write.drop.partition.columns": "true"}


def filled(properties: dict[str, str], made: Any) -> Table:
    schema = pa.schema({**COLUMNS, "made": made[0]})
    options = {"record_key": "id", "partition_by": "made", "properties": properties}
    table = drawstring.create(new_address(), schema, **options)
    table.upsert(pa.Table.from_pylist([{"id": "a", "made": made[1], "fare": 1.0}], schema))
    return table


def types(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in without_meta(schema)]


@pytest.mark.parametrize(
    ("properties", "made", "shown"),
    [
        (FORMATTED, (pa.int64(), DAY), {**COLUMNS, "made": pa.string()}),
        (DROPPED, (pa.string(), "old"), {"id": pa.string(), "fare": pa.float64(), "made": pa.string()}),
        ({}, (pa.int64(), DAY), COLUMNS),
    ],
    ids=["formatted", "dropped", "plain"],
)
def test_the_columns_told_are_those_of_a_scan(
    properties: dict[str, str], made: Any, shown: dict[str, pa.DataType]
) -> None:
    table = filled(properties, made)
    assert types(table.schema) == list(shown.items())
    assert types(table.scan().schema) == types(table.schema)
    (row,) = table.scan(table.schema.names).to_arrow().to_pylist()
    assert row["made"] == (str(DAY) if properties is FORMATTED else made[1])
