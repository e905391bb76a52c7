"""Updates, deletes and merges that meet one of several records with a key: what matches, or nothing."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.table import Table
from tests.support.rows import rides
from tests.support.tables import create, new_address, table_types

TWICE = (("k", "rome", 1, 1.0), ("a", "rome", 1, 1.0), ("k", "rome", 2, 2.0))
KEEP = {"hoodie.combine.before.insert": "false", "hoodie.datasource.insert.dup.policy": "none"}
MATCH = pa.table({"id": ["k"], "city": ["rome"], "ts": [1]})


def made(table_type: str, *, meta_columns: bool = True) -> Table:
    properties = {} if meta_columns else {"hoodie.populate.meta.fields": "false"}
    table = create(table_type=table_type, properties=properties)
    table.insert(rides(*TWICE), options=KEEP)
    assert len(table.inspect.files()) == 1
    return table


def fares(table: Table) -> list[tuple[str, float]]:
    rows = table.scan(["id", "fare"]).to_arrow().to_pylist()
    return sorted((each["id"], each["fare"]) for each in rows)


SOME: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: table.delete(where="id = 'k' AND fare = 1"),
    "update": lambda table: table.update("fare = 1", {"fare": 9.0}),
    "update all": lambda table: table.update("id = 'k'", {"fare": "fare + 1"}),
    "merge delete": lambda table: table.merge(MATCH, ["id", "city", "ts"]).when_matched_delete().execute(),
    "merge update": lambda table: (
        table.merge(MATCH, ["id", "city", "ts"]).when_matched_update({"fare": "5.0"}).execute()
    ),
}


@table_types
@pytest.mark.parametrize("meta_columns", [True, False])
@pytest.mark.parametrize("change", SOME)
def test_a_change_of_one_of_several_records_is_refused(
    change: str, meta_columns: bool, table_type: str
) -> None:
    table = made(table_type, meta_columns=meta_columns)
    with pytest.raises(InvalidError, match="several records with the key 'k'"):
        SOME[change](table)
    assert fares(table) == [("a", 1.0), ("k", 1.0), ("k", 2.0)]


@table_types
def test_all_records_with_a_key_are_deleted_and_others_are_changed(table_type: str) -> None:
    table = made(table_type)
    table.update("id = 'a'", {"fare": 7.0})
    assert fares(table) == [("a", 7.0), ("k", 1.0), ("k", 2.0)]
    table.delete(where="id = 'k'")
    assert fares(table) == [("a", 7.0)]
    table.upsert(rides(("k", "rome", 1, 3.0)))
    table.update("fare > 0", {"fare": 4.0})
    assert fares(table) == [("a", 4.0), ("k", 4.0)]


@table_types
def test_rows_of_the_caller_mean_all_records_with_their_keys(table_type: str) -> None:
    table = made(table_type)
    table.delete(rides(("k", "rome", 1, 1.0)))
    assert fares(table) == [("a", 1.0)]


@table_types
def test_a_change_of_one_of_several_records_with_keys_of_numbers_is_refused(table_type: str) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int32()), ("fare", pa.float64())])
    table = drawstring.create(new_address(), schema, table_type=table_type, record_key=["a", "b"])
    rows = pa.table([[1, 1, 1, 11], [1, 1, 2, 1], [1.0, 2.0, 3.0, 4.0]], schema=schema)
    table.insert(rows, options=KEEP)
    table.update("a = 1 AND b = 2", {"fare": 5.0})
    with pytest.raises(InvalidError, match="several records with the key 'a:1,b:1'"):
        table.update("fare = 2", {"fare": 6.0})
    found = table.scan(["a", "b", "fare"]).to_arrow().to_pydict()
    assert sorted(found["fare"]) == [1.0, 2.0, 4.0, 5.0]
