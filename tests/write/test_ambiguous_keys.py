"""Keys of several columns whose values look like the text between the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.table import Table
from tests.support.tables import WITHOUT_COMPACTION, new_address

SCHEMA = pa.schema([("k1", pa.string()), ("k2", pa.string()), ("k3", pa.string()), ("n", pa.int64())])
AMBIGUOUS = ("a,k2:b", "c", "d")
TWIN = ("a", "b,k2:c", "d")


def create(table_type: str = "MERGE_ON_READ", properties: dict[str, str] | None = None) -> Table:
    return drawstring.create(
        new_address(),
        SCHEMA,
        name="pairs",
        table_type=table_type,
        record_key=["k1", "k2", "k3"],
        properties=properties or {},
    )


def rows_of(*keys: tuple[str | None, str, str], n: int = 1) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, (*key, n), strict=True)) for key in keys], SCHEMA)


def held(table: Table) -> list[tuple[Any, ...]]:
    found = table.scan(columns=SCHEMA.names).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=str)


def merge(table: Table, rows: pa.Table) -> object:
    return table.merge(rows, on=["k1", "k2", "k3"]).when_not_matched_insert_all().execute()


WRITES: dict[str, Callable[[Table, pa.Table], object]] = {
    "insert": lambda table, rows: table.insert(rows),
    "upsert": lambda table, rows: table.upsert(rows),
    "append": lambda table, rows: table.append(rows),
    "bulk_insert": lambda table, rows: table.bulk_insert(rows),
    "insert_overwrite": lambda table, rows: table.insert_overwrite(rows),
    "delete": lambda table, rows: table.delete(rows),
    "merge": merge,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("key", [AMBIGUOUS, ("a", "b,k3:", "c"), ("a,k3:b", "c", "d")])
def test_a_key_that_other_values_have_too_is_refused(
    write: Callable[[Table, pa.Table], object], key: tuple[str, str, str]
) -> None:
    table = create()
    table.insert(rows_of(TWIN))
    before = table.timeline.instants

    with pytest.raises(
        InvalidError, match=r"k[12] contains ',k[23]:' in 1 row, .* k1, k2, k3 .* same record key"
    ):
        write(table, rows_of(("x", "y", "z"), key, n=2))

    assert held(table) == [(*TWIN, 1)]
    assert [each.requested for each in table.timeline.writes()] == [each.requested for each in before]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_commas_and_colons_that_no_column_follows_stay_allowed(table_type: str) -> None:
    keys = [TWIN, ("a,k1:b", "c", "d"), ("k2:a", "b,x:y", ",k3:"), (",", ":", ",k4:"), (None, "a,", "b:")]
    table = create(table_type)

    table.upsert(rows_of(*keys))
    table.upsert(rows_of(*keys, n=2))

    assert len(held(table)) == len(keys)
    assert {row[-1] for row in held(table)} == {2}


def test_a_column_whose_name_ends_like_another_is_no_separator() -> None:
    table = create()

    table.upsert(rows_of(("a,xk2:b", "c", "d"), ("a", "b,xk2:c", "d")))

    assert len(held(table)) == 2


@pytest.mark.parametrize("meta_fields", ["true", "false"])
def test_a_table_that_has_such_keys_is_read_and_kept_in_shape(
    meta_fields: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(properties={"hoodie.populate.meta.fields": meta_fields})
    with monkeypatch.context() as patched:
        patched.setattr("drawstring.keygen.key_generator._check_unambiguous", lambda *_: None)
        table.upsert(rows_of(AMBIGUOUS), options=WITHOUT_COMPACTION)
        table.upsert(rows_of(AMBIGUOUS, n=2), options=WITHOUT_COMPACTION)

    assert held(table) == [(*AMBIGUOUS, 2)]
    assert table.services.validate().is_sound
    table.services.compact()
    table.delete(where="n = 2")
    assert held(table) == []
