"""Several processes that fill an empty table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import ConflictError, DrawstringError, LostRaceError
from drawstring.table import Table
from tests.support.faults import spaced
from tests.support.interleavings import OPTIMISTIC, interleave
from tests.support.interrupted import Interrupted, on
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, create
from tests.support.writer_pairs import upsert

ONCE = {**OPTIMISTIC, "hoodie.write.num.retries.on.conflict.failures": "0"}
BY_OPTION = {"hoodie.index.type": "BUCKET"}
RINGS = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING", **BUCKETS}
ROME, OSLO = ("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)
OPERATIONS: dict[str, Callable[..., Any]] = {
    "upsert": Table.upsert,
    "append": Table.append,
    "bulk_insert": Table.bulk_insert,
}
KINDS: list[tuple[str, int, dict[str, str]]] = [
    (COW, 9, {}),
    (MOR, 6, {}),
    (COW, 6, BUCKETS),
    (MOR, 9, BUCKETS),
    (MOR, 9, RINGS),
    (COW, 9, {"hoodie.index.type": "RECORD_INDEX"}),
]
kinds = pytest.mark.parametrize(
    ("table_type", "version", "how"),
    KINDS,
    ids=["cow9", "mor6", "cow6-buckets", "mor9-buckets", "mor9-rings", "cow9-record-index"],
)
operations = pytest.mark.parametrize("operation", OPERATIONS)


def stream(rows: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(rows.schema, iter(rows.to_batches()))


@operations
@pytest.mark.parametrize("is_streamed", [False, True])
@kinds
def test_first_writes_to_different_partitions_do_not_conflict(
    table_type: str, version: int, how: dict[str, str], operation: str, is_streamed: bool
) -> None:
    table = create(table_type=table_type, version=version, properties=how)
    has_buckets = how.get("hoodie.index.type") == "BUCKET"
    write = Table.insert if has_buckets and operation == "append" else OPERATIONS[operation]
    first = on(Interrupted(table, lambda other: write(other, rides(OSLO), options=ONCE)))
    write(first, stream(rides(ROME)) if is_streamed else rides(ROME), options=ONCE)
    assert held(table) == [ROME, OSLO]
    table.upsert(rides(("a", "rome", 2, 2.0), ("b", "oslo", 2, 2.0)))
    assert held(table) == [("a", "rome", 2, 2.0), ("b", "oslo", 2, 2.0)]


def test_first_appends_to_one_partition_do_not_conflict() -> None:
    table = create()
    first = on(Interrupted(table, lambda other: other.append(rides(("b", "rome", 1, 1.0)), options=ONCE)))
    first.append(stream(rides(ROME)), options=ONCE)
    assert held(table) == [ROME, ("b", "rome", 1, 1.0)]


@pytest.mark.scaled
@kinds
def test_what_two_first_writers_leave_is_what_one_after_the_other_leaves(
    table_type: str, version: int, how: dict[str, str]
) -> None:
    table = create(table_type=table_type, version=version, properties=how)
    own, other = upsert(("a", "rome", 1, 1.0), ("c", "bern", 1, 1.0)), upsert(("a", "rome", 2, 2.0), OSLO)
    assert "done" in interleave(table, own, other, every=spaced(7), offset=version)


@pytest.mark.parametrize("place", ["rome", "oslo"])
def test_first_writes_with_different_numbers_of_buckets_conflict(place: str) -> None:
    table = create(table_type=COW)
    rows = rides(*((f"k{number}", place, 1, 1.0) for number in range(20)))

    def write(other: Table) -> None:
        other.upsert(rows, options={**BY_OPTION, "hoodie.bucket.index.num.buckets": "8"})

    first = on(Interrupted(table, write))
    options = {**BY_OPTION, "hoodie.bucket.index.num.buckets": "4"}
    with pytest.raises(LostRaceError, match="the table was empty"):
        first.upsert(rides(ROME), options={**options, **ONCE})
    with pytest.raises(DrawstringError, match="bucket"):
        table.upsert(rides(ROME), options=options)


def test_first_writes_that_add_the_same_column_do_not_conflict() -> None:
    table = create()
    rows = [rides(row).append_column("note", pa.array(["x"])) for row in (ROME, OSLO)]
    first = on(Interrupted(table, lambda other: other.append(rows[1], options=ONCE)))
    first.append(rows[0], options=ONCE)
    assert table.scan().to_arrow().column("note").to_pylist() == ["x", "x"]


@pytest.mark.parametrize(("index", "place"), [("SIMPLE", "rome"), ("GLOBAL_SIMPLE", "oslo")])
def test_first_writes_of_the_same_key_conflict(index: str, place: str) -> None:
    table = create(properties={"hoodie.index.type": index})
    first = on(Interrupted(table, lambda other: other.upsert(rides(("a", place, 1, 1.0)))))
    with pytest.raises(ConflictError, match="same new keys"):
        first.upsert(rides(("a", "rome", 2, 2.0)), options=ONCE)
    assert held(table) == [("a", place, 1, 1.0)]
