"""What single operations do, seen from outside."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError
from drawstring.schema.fields import META_COLUMNS
from drawstring.testing import context_of
from tests.support.rows import A1, A2, B1, SCHEMA, changed_since, held, rides
from tests.support.tables import AVRO_LOGS, BUCKETS, COW, MOR, NEW_FILE_GROUPS, create, table_types


@table_types
def test_insert_keeps_duplicates_as_they_come(table_type: str) -> None:
    table = create(table_type=table_type)
    table.insert(rides(A1, A2, B1))
    table.insert(rides(A1))
    assert held(table) == [A1, A1, A2, B1]


@table_types
def test_insert_keeps_the_newest_duplicate_when_told_to_combine(table_type: str) -> None:
    for verb in ("insert", "bulk_insert", "insert_overwrite"):
        table = create(table_type=table_type)
        getattr(table, verb)(rides(A2, B1, A1), options={"hoodie.combine.before.insert": "true"})
        assert held(table) == [A2, B1]


@table_types
def test_upsert_and_delete_reach_every_copy_of_a_key(table_type: str) -> None:
    table = create(table_type=table_type)
    table.insert(rides(A1, B1))
    table.insert(rides(A1, B1), options=NEW_FILE_GROUPS)
    newer = ("a", "rome", 3, 3.0)
    table.upsert(rides(newer))
    assert held(table) == [newer, newer, B1, B1]
    table.delete(rides(B1))
    assert held(table) == [newer, newer]


@table_types
def test_delete_needs_key_and_partition_columns_only(table_type: str) -> None:
    table = create(table_type=table_type)
    table.upsert(rides(A2, B1))
    table.delete(pa.table({"city": ["rome", "rome"], "id": ["a", "unknown"]}))
    assert held(table) == [B1]
    assert table.timeline.latest_write() is not None


@table_types
@pytest.mark.parametrize("properties", [{}, BUCKETS], ids=["simple", "bucket"])
def test_an_ordering_value_is_no_obstacle_to_a_plain_delete(
    table_type: str, properties: dict[str, str]
) -> None:
    table = create(table_type=table_type, properties=properties)
    table.upsert(rides(("a", "rome", 100, 1.0)))
    table.delete(rides(("a", "rome", 1, 0.0)))
    assert held(table) == []


@table_types
@pytest.mark.parametrize("properties", [{}, BUCKETS], ids=["simple", "bucket"])
def test_a_late_soft_delete_loses_and_a_timely_one_wins(table_type: str, properties: dict[str, str]) -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = create(schema, table_type=table_type, properties=properties)
    table.upsert(rides(("a", "rome", 5, 1.0), ("b", "rome", 5, 1.0)))
    marks = rides(("a", "rome", 4, 1.0), ("b", "rome", 5, 1.0), ("new", "rome", 1, 1.0))
    table.upsert(marks.append_column("_hoodie_is_deleted", pa.array([True, True, True])))
    assert held(table) == [("a", "rome", 5, 1.0)]


@pytest.mark.parametrize("properties", [{}, BUCKETS], ids=["simple", "bucket"])
@pytest.mark.parametrize("version", [6, 9])
def test_a_row_that_is_older_than_its_soft_delete_stays_deleted(
    version: int, properties: dict[str, str]
) -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = create(schema, table_type=MOR, version=version, properties=properties)
    table.upsert(rides(("a", "rome", 5, 1.0)))
    gone = rides(("a", "rome", 9, 1.0)).append_column("_hoodie_is_deleted", pa.array([True]))
    table.upsert(gone)
    table.upsert(rides(("a", "rome", 7, 2.0)))
    assert held(table) == []
    table.upsert(rides(("a", "rome", 10, 3.0)))
    assert held(table) == [("a", "rome", 10, 3.0)]
    assert table.scan(read_optimized=True).to_arrow().num_rows == 1, "the key is in one file group"


@table_types
def test_several_ordering_columns_compare_one_after_the_other(table_type: str) -> None:
    schema = SCHEMA.append(pa.field("seq", pa.int32()))
    table = create(schema, table_type=table_type, ordering=("ts", "seq"))

    def upsert(ts: int, seq: int, fare: float) -> None:
        table.upsert(rides(("a", "rome", ts, fare)).append_column("seq", pa.array([seq], pa.int32())))

    upsert(1, 5, 1.0)
    upsert(1, 4, 2.0)
    assert held(table) == [("a", "rome", 1, 1.0)]
    upsert(2, 1, 3.0)
    assert held(table) == [("a", "rome", 2, 3.0)]


@table_types
@pytest.mark.parametrize("verb", ["upsert", "insert", "delete", "insert_overwrite"])
def test_no_rows_are_a_commit_that_changes_nothing(table_type: str, verb: str) -> None:
    table = create(table_type=table_type)
    table.upsert(rides(A1))
    result = getattr(table, verb)(rides())
    assert (result.files, held(table)) == (0, [A1])
    assert [each.requested for each in table.timeline.writes()][-1] == result.instant


@table_types
def test_overwriting_a_table_with_no_rows_empties_it(table_type: str) -> None:
    table = create(table_type=table_type)
    before = table.upsert(rides(A1))
    table.insert_overwrite_table(rides())
    assert held(table) == []
    assert held(table, as_of=before.instant) == [A1]
    table.upsert(rides(B1))
    assert held(table) == [B1]


def test_deleting_from_an_empty_table_deletes_nothing() -> None:
    table = create()
    result = table.delete(rides(A1))
    assert (result.deletes, held(table)) == (0, [])


@table_types
def test_the_result_counts_what_happened(table_type: str) -> None:
    table = create(table_type=table_type)
    first = table.upsert(rides(A1, B1))
    assert (first.inserts, first.updates, first.deletes, first.files) == (2, 0, 0, 1)
    second = table.upsert(rides(A2, ("c", "rome", 1, 1.0)))
    assert (second.inserts, second.updates, second.files) == (1, 1, 1)
    assert (second.records_written, second.bytes_written > 0) == (3, True)
    third = table.delete(rides(B1))
    assert (third.inserts, third.updates, third.deletes, third.operation) == (0, 0, 1, "delete")
    assert first.instant < second.instant < third.instant


def test_rows_come_from_anything_that_speaks_arrow() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = create()
    table.upsert(rides(A1))
    table.upsert(pandas.DataFrame([("b", "rome", 1, 1.0)], columns=SCHEMA.names))
    table.upsert(polars.DataFrame([("c", "rome", 1, 1.0)], schema=SCHEMA.names, orient="row"))
    table.upsert(rides(("d", "rome", 1, 1.0)).to_batches()[0])
    table.upsert(rides(("e", "rome", 1, 1.0)).to_reader())
    assert [row[0] for row in held(table)] == ["a", "b", "c", "d", "e"]
    with pytest.raises(InvalidError, match="from_pylist"):
        table.upsert([{"id": "a"}])


def test_a_stream_is_read_once_and_never_held_whole() -> None:
    table = create(partition_by=())
    alive, most = 0, 0

    def stream() -> Iterator[pa.RecordBatch]:
        nonlocal alive, most
        for number in range(20):
            alive += 1
            most = max(most, alive)
            batch = rides((f"k{number:02}", "rome", 1, 1.0)).to_batches()[0]
            yield batch
            alive -= 1

    table.bulk_insert(pa.RecordBatchReader.from_batches(SCHEMA, stream()))
    assert len(held(table)) == 20
    assert most == 1


def test_a_load_begins_another_base_file_at_the_size_limit() -> None:
    table = create(partition_by=())
    batches = [rides(*((f"{part}-{n}", "rome", n, n * 0.1) for n in range(3000))) for part in range(4)]
    reader = pa.RecordBatchReader.from_batches(
        SCHEMA, [batch for part in batches for batch in part.to_batches()]
    )
    result = table.bulk_insert(reader, options={"hoodie.parquet.max.file.size": "20000"})
    assert result.files > 1
    assert len(held(table)) == 12_000


@pytest.mark.parametrize("hive", [True, False])
@pytest.mark.parametrize("encode", [True, False])
def test_partition_values_of_any_kind_are_found_again(hive: bool, encode: bool) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("kind", pa.string()), ("n", pa.int32())])
    table = create(
        schema,
        ordering=(),
        partition_by=("day", "kind"),
        properties={
            "hoodie.datasource.write.hive_style_partitioning": str(hive),
            "hoodie.datasource.write.partitionpath.urlencode": str(encode),
        },
    )
    kinds = [None, "plain", "mit Ümlaut", "a b", *(["a/b", "100%", "x=y"] if encode else [])]
    days = [dt.date(2024, 2, 29), None]
    rows = [
        {"id": number, "day": day, "kind": kind, "n": 0}
        for number, (day, kind) in enumerate((day, kind) for day in days for kind in kinds)
    ]
    table.upsert(pa.Table.from_pylist(rows, schema))
    newer = [{**row, "n": 1} for row in rows]
    table.upsert(pa.Table.from_pylist(newer, schema))
    found = table.scan(columns=schema.names).to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == newer
    for row in newer:
        where = " and ".join(
            f"{name} is null" if row[name] is None else f"{name} = '{row[name]}'" for name in ("day", "kind")
        )
        assert table.scan(columns=schema.names, where=where).to_arrow().to_pylist() == [row]


TYPES = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("flag", pa.bool_()),
        ("small", pa.int32()),
        ("single", pa.float32()),
        ("exact", pa.decimal128(20, 4)),
        ("data", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("tags", pa.list_(pa.string())),
        ("scores", pa.map_(pa.string(), pa.float64())),
        ("place", pa.struct([("name", pa.string()), ("point", pa.struct([("x", pa.float64())]))])),
        ("stops", pa.list_(pa.struct([("name", pa.string()), ("wait", pa.int32())]))),
    ]
)


def typed_row(number: int, turn: int) -> dict[str, Any]:
    if number == 0:
        return {**dict.fromkeys(TYPES.names), "id": 0}
    return {
        "id": number,
        "flag": turn % 2 == 0,
        "small": -(2**31) + turn,
        "single": 0.5 * turn,
        "exact": Decimal("-1234567890123456.7891") + turn,
        "data": bytes([0, 255, turn]),
        "day": dt.date(1969, 12, 31) + dt.timedelta(days=turn),
        "at": dt.datetime(1900, 1, 1, 1, 2, 3, 456789 + turn, tzinfo=dt.UTC),
        "local": dt.datetime(2200, 1, 1, 1, 2, 3, 456789 + turn),
        "tags": [] if turn == 0 else ["ä", None, str(turn)],
        "scores": [("one", 1.5), ("two", None)],
        "place": {"name": None, "point": {"x": float(turn)}},
        "stops": [{"name": "s", "wait": turn}, None],
    }


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(("table_type", "options"), [(COW, {}), (MOR, {}), (MOR, AVRO_LOGS)])
def test_every_type_of_column_survives(version: int, table_type: str, options: dict[str, str]) -> None:
    table = create(TYPES, table_type=table_type, version=version, partition_by=(), ordering="id")

    def found() -> list[dict[str, Any]]:
        rows = table.scan(columns=TYPES.names).to_arrow().cast(TYPES).to_pylist()
        return sorted(rows, key=lambda row: row["id"])

    first = [typed_row(number, 0) for number in range(4)]
    table.upsert(pa.Table.from_pylist(first, TYPES), options=options)
    assert found() == first
    second = [typed_row(number, number) for number in range(3)]
    table.upsert(pa.Table.from_pylist(second, TYPES), options=options)
    assert found() == [*second, first[3]]
    if table_type == MOR:
        assert table.services.compact()
        assert found() == [*second, first[3]]


@pytest.mark.parametrize(("table_type", "options"), [(COW, {}), (MOR, {}), (MOR, AVRO_LOGS)])
def test_columns_grow_at_any_depth_and_widen(table_type: str, options: dict[str, str]) -> None:
    old = pa.schema([("id", pa.string()), ("n", pa.int32()), ("place", pa.struct([("name", pa.string())]))])
    new = pa.schema(
        [
            ("id", pa.string()),
            ("extra", pa.date32()),
            ("n", pa.int64()),
            ("place", pa.struct([("name", pa.string()), ("zip", pa.int32())])),
        ]
    )
    table = create(old, table_type=table_type, partition_by=(), ordering=())
    before = table.upsert(
        pa.Table.from_pylist([{"id": key, "n": 1, "place": {"name": "x"}} for key in "abc"], old),
        options=options,
    )
    wide = {"id": "b", "n": 2**40, "place": {"name": "y", "zip": 7}, "extra": dt.date(2024, 1, 1)}
    table.upsert(pa.Table.from_pylist([wide], new), options=options)
    table.upsert(
        pa.Table.from_pylist([{"id": "c", "n": 3}], pa.schema([("id", pa.string()), ("n", pa.int32())])),
        options={"hoodie.write.set.null.for.missing.columns": "true"},
    )

    def found(**how: Any) -> dict[str, dict[str, Any]]:
        rows = table.scan(**how).to_arrow().drop_columns(META_COLUMNS).to_pylist()
        return {row["id"]: row for row in rows}

    a = {"id": "a", "n": 1, "place": {"name": "x", "zip": None}, "extra": None}
    expected = {"a": a, "b": wide, "c": {"id": "c", "n": 3, "place": None, "extra": None}}
    assert found() == expected
    assert table.schema.field("n").type == pa.int64()
    if table_type == MOR:
        table.services.compact()
        assert found() == expected
    assert found(as_of=before.instant)["b"] == {"id": "b", "n": 1, "place": {"name": "x"}}
    assert found(where="extra is not null") == {"b": wide}


@table_types
def test_a_commit_carries_what_the_caller_adds(table_type: str) -> None:
    table = create(table_type=table_type)
    rows = context_of(table).engine.rows(SCHEMA, rides(A1).to_batches())  # type: ignore[attr-defined]
    result = table._write_rows("upsert", rows, {}, {"checkpoint": "17"})
    assert result.completed
    assert b"checkpoint" in b"".join(
        context_of(table).storage.read(each.path)
        for each in context_of(table).storage.list_files(".hoodie/timeline")
    )


def test_an_inline_compaction_runs_after_so_many_delta_commits() -> None:
    table = create(table_type=MOR)
    options = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}
    for turn in range(1, 7):
        table.upsert(rides(("a", "rome", turn, float(turn))), options=options)
        logs = [len(each.logs) for each in table.inspect.files()]
        assert logs == [{1: 0, 2: 1, 3: 0, 4: 1, 5: 2, 6: 0}[turn]]
        assert held(table) == [("a", "rome", turn, float(turn))]


def test_a_late_row_is_among_the_changes_of_its_commit_whatever_a_compaction_in_the_range_holds() -> None:
    table = create(SCHEMA, table_type=MOR, properties=BUCKETS)
    table.upsert(rides(("a", "rome", 5, 1.0)))
    table.upsert(rides(("a", "rome", 9, 2.0), ("b", "rome", 9, 2.0)))
    first = table.timeline.writes()[0]
    second = table.timeline.writes()[1]
    table.services.compact()
    table.upsert(rides(("a", "rome", 7, 3.0)))
    assert changed_since(table, first) == [("a", "rome", 9, 2.0), ("b", "rome", 9, 2.0)]
    assert changed_since(table, second) == [("a", "rome", 7, 3.0)]
    assert held(table) == [("a", "rome", 9, 2.0), ("b", "rome", 9, 2.0)]
