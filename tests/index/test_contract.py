"""What every index does alike, on both engines: a key is found wherever it is, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.engine.protocol import Engine, Rows
from tests.support.combinations import first_of_all
from tests.support.index_reference import InMemory, Kind, content, history, table_of
from tests.support.merge_tables import by_payload, set_properties
from tests.support.record_indexes import indexed_places, places
from tests.support.tables import COW, MOR, create

Started = tuple[Engine, Callable[[pa.Table], Rows]]

BUCKETS = (("hoodie.bucket.index.num.buckets", "3"),)
LOG_INDEX = (("hoodie.index.log.enable", "true"), ("hoodie.index.log.clique.files", "2"))
KINDS = [
    Kind("SIMPLE", COW),
    Kind("SIMPLE", MOR),
    Kind("BLOOM", COW, version=6),
    Kind("BLOOM", MOR),
    Kind("BUCKET", COW, more=BUCKETS),
    Kind("BUCKET", MOR, version=8, more=BUCKETS),
    Kind("BUCKET", MOR, more=(*BUCKETS, ("hoodie.index.bucket.engine", "CONSISTENT_HASHING"))),
    *(
        Kind(index, table_type, ordering, moves)
        for index in ("GLOBAL_SIMPLE", "GLOBAL_BLOOM")
        for table_type in (COW, MOR)
        for ordering in ((), ("ts",))
        for moves in (True, False)
    ),
    Kind("RECORD_LEVEL_INDEX", COW),
    Kind("RECORD_LEVEL_INDEX", MOR, version=8),
    Kind("RECORD_INDEX", COW, ()),
    *(
        Kind("GLOBAL_RECORD_LEVEL_INDEX", table_type, moves=moves)
        for table_type in (COW, MOR)
        for moves in (True, False)
    ),
    Kind("BLOOM", MOR, version=6, more=LOG_INDEX),
    Kind("BLOOM", MOR, (), more=LOG_INDEX),
    Kind("GLOBAL_BLOOM", MOR, more=LOG_INDEX),
    Kind("GLOBAL_SIMPLE", MOR, version=6),
    Kind("GLOBAL_BLOOM", COW, version=8),
]
SPARK_KINDS = [
    Kind("BLOOM", MOR, more=LOG_INDEX),
    Kind("GLOBAL_BLOOM", COW),
    Kind("GLOBAL_SIMPLE", MOR),
    Kind("GLOBAL_RECORD_LEVEL_INDEX", MOR),
    Kind("RECORD_LEVEL_INDEX", COW),
]


def values_of(kind: Kind) -> set[object]:
    return {(kind.index, kind.table_type), kind.version, kind.ordering, (kind.index, kind.moves), kind.more}


def created(kind: Kind, path: Path) -> drawstring.Table:
    """Create a table that has a metadata table after its first write, if the index needs one."""
    kind.create(str(path / "rides"))
    options = {"hoodie.metadata.enable": "true"} if kind.by_record_index else {}
    return drawstring.open(str(path / "rides"), options=options)


def play(kind: Kind, path: Path, seed: int, steps: int, rows_of: Callable[[pa.Table], Rows]) -> None:
    """Carry a history out on a table and in memory, and compare them after every step."""
    table, memory = created(kind, path), InMemory(kind)
    for operation, rows in history(seed, steps):
        drawn = table_of(rows)
        if operation == "delete":
            drawn = drawn.select(["id", "city"])
        table._write_rows(operation, rows_of(drawn), kind.options)
        getattr(memory, operation)(rows)
        assert content(table) == memory.content()


@pytest.mark.parametrize("kind", first_of_all(KINDS, values_of), ids=str)
def test_an_index_finds_what_a_dictionary_finds(tmp_path: Path, kind: Kind) -> None:
    table, memory = created(kind, tmp_path), InMemory(kind)
    for operation, rows in history(7, 6):
        getattr(table, operation)(table_of(rows), options=kind.options)
        getattr(memory, operation)(rows)
        assert content(table) == memory.content()
        if kind.by_record_index:
            assert indexed_places(table) == places(table)


@pytest.mark.spark
@pytest.mark.parametrize("kind", SPARK_KINDS, ids=str)
@pytest.mark.parametrize("started", ["spark"], indirect=True)
def test_an_index_finds_the_same_on_spark(started: Started, tmp_path: Path, kind: Kind) -> None:
    play(kind, tmp_path, 11, 3, started[1])


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_a_global_delete_needs_no_partition(tmp_path: Path, index: str) -> None:
    table = Kind(index, MOR).create(str(tmp_path / "rides"))
    table.upsert(table_of([("a", "rome", 1, 1), ("b", "lima", 1, 2)]))
    table.delete(pa.table({"id": ["b", "nobody"]}))
    assert content(table) == [("a", "rome", 1, 1)]


def test_a_partition_scoped_delete_says_that_it_needs_one(tmp_path: Path) -> None:
    table = Kind("BLOOM", COW).create(str(tmp_path / "rides"))
    table.upsert(table_of([("a", "rome", 1, 1)]))
    with pytest.raises(InvalidError, match="The rows lack city"):
        table.delete(pa.table({"id": ["a"]}))


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_row_marked_as_deleted_deletes_its_record_in_another_partition(
    tmp_path: Path, table_type: str
) -> None:
    table = Kind("GLOBAL_SIMPLE", table_type).create(str(tmp_path / "rides"))
    rows = table_of([("a", "rome", 1, 1), ("b", "lima", 5, 2)])
    table.upsert(rows.append_column("_hoodie_is_deleted", pa.array([False, False])))
    gone = table_of([("a", "lima", 2, 0), ("b", "rome", 4, 0), ("c", "rome", 1, 0)])
    table.upsert(gone.append_column("_hoodie_is_deleted", pa.array([True, True, True])))
    assert content(table) == [("b", "lima", 5, 2)]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_key_that_several_partitions_have_ends_in_the_one_that_it_arrives_with(
    tmp_path: Path, table_type: str
) -> None:
    table = Kind("SIMPLE", table_type).create(str(tmp_path / "rides"))
    table.upsert(table_of([("a", "rome", 1, 1), ("a", "lima", 1, 2), ("a", "berlin", 1, 3)]))
    table.upsert(table_of([("a", "lima", 2, 4)]), options={"hoodie.index.type": "GLOBAL_SIMPLE"})
    assert content(table) == [("a", "lima", 2, 4)]


def test_a_record_takes_along_what_a_partial_row_does_not_say(tmp_path: Path) -> None:
    schema = pa.schema(
        [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("note", pa.string())]
    )
    create(schema, str(tmp_path), version=8, properties={"hoodie.index.type": "GLOBAL_SIMPLE"})
    table = set_properties(tmp_path, by_payload(8, "PartialUpdateAvroPayload"))

    def upsert(key: str, city: str, ts: int, note: str | None) -> None:
        table.upsert(pa.Table.from_pylist([{"id": key, "city": city, "ts": ts, "note": note}], schema))

    upsert("a", "rome", 1, "kept")
    upsert("a", "lima", 2, None)
    upsert("a", "berlin", 1, "late")
    rows = table.scan().to_arrow().select(["id", "_hoodie_partition_path", "ts", "note"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [("a", "lima", 2, "kept")]
