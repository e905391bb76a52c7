"""Tables with every key generator: written, found again, and gone on with where real Hudi stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config import table_types
from drawstring.query.table_state import facts_of
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.golden import golden_table
from tests.support.rows import arrow_rows, scanned
from tests.support.tables import COW, MOR, new_address
from tests.support.tables import create as create_table

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("made", pa.int64()),
        ("ts", pa.int64()),
        ("fare", pa.float64()),
    ]
)
DAY = 1_700_000_000_000
TIMEBASED = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
HUDIS = "org.apache.hudi.keygen."
CLASS = "hoodie.datasource.write.keygenerator.class"
TYPE = "hoodie.datasource.write.keygenerator.type"
SLASHED = "hoodie.datasource.write.slash.separated.date.partitioning"

GENERATORS: dict[str, tuple[Any, dict[str, str], str, str]] = {
    "timestamp": ("made", {CLASS: HUDIS + "TimestampBasedKeyGenerator", **TIMEBASED}, "a", "2023/11/14"),
    "custom": (["city:SIMPLE", "made:TIMESTAMP"], {TYPE: "CUSTOM", **TIMEBASED}, "a", "rome/2023/11/14"),
    "custom-hive": (
        ["made:timestamp", "city:simple"],
        {"hoodie.datasource.write.hive_style_partitioning": "true", **TIMEBASED},
        "a",
        "made=2023/11/14/city=rome",
    ),
    "complex": ("city", {TYPE: "COMPLEX"}, "id:a", "rome"),
    "global": ((), {CLASS: HUDIS + "GlobalDeleteKeyGenerator"}, "id:a", ""),
    "own": (["city"], {CLASS: "com.example.Backwards"}, "A", "emor"),
}  # fmt: skip


def backwards(rows: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """Make upper-case keys and paths that read from the end."""
    return pc.utf8_upper(rows.column("id")), pc.utf8_reverse(rows.column("city"))


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    drawstring.register_key_generator("Backwards", backwards)
    yield
    table_types._generators.clear()


def create(partition_by: Any, properties: dict[str, str], version: int = 9, table_type: str = COW) -> Table:
    how = {"partition_by": partition_by, "version": version, "table_type": table_type}
    return create_table(SCHEMA, properties=properties, **how)


def held(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    return scanned(table, columns or ("id", "fare"))


@pytest.mark.parametrize(("version", "table_type"), [(6, MOR), (8, COW), (9, COW), (9, MOR)])
@pytest.mark.parametrize("name", GENERATORS)
def test_rows_get_their_keys_and_are_found_by_them(name: str, version: int, table_type: str) -> None:
    partition_by, properties, key, path = GENERATORS[name]
    table = create(partition_by, properties, version, table_type)
    types = {"hoodie.datasource.write.partitionpath.field": partition_by} if "custom" in name else {}
    table.insert(arrow_rows(SCHEMA, ("a", "rome", DAY, 1, 1.0), ("b", "oslo", DAY, 1, 2.0)), options=types)
    table.upsert(arrow_rows(SCHEMA, ("a", "rome", DAY, 2, 3.0), ("c", "rome", DAY, 2, 4.0)), options=types)
    table.delete(arrow_rows(SCHEMA, ("b", "oslo", DAY, 3, 0.0)), options=types)
    assert held(table) == [("a", 3.0), ("c", 4.0)]
    assert held(table, "_hoodie_record_key", "_hoodie_partition_path")[0] == (key, path)
    assert [row[0] for row in held(table, "id")] == ["a", "c"]
    found = table.scan(where="city = 'rome' and id = 'c'").to_arrow()
    assert found.num_rows == 1


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_rows_may_bring_the_numbers_of_dates_as_queries_show_them(table_type: str) -> None:
    table = create("made", {TYPE: "TIMESTAMP", **TIMEBASED}, table_type=table_type)
    table.upsert(arrow_rows(SCHEMA, ("a", "rome", DAY, 1, 1.0), ("b", "rome", DAY, 1, 1.0)))
    shown = table.scan().to_arrow()
    assert shown["made"].to_pylist() == [str(DAY)] * 2
    table.upsert(shown.set_column(shown.schema.get_field_index("fare"), "fare", pa.array([5.0, 6.0])))
    assert held(table) == [("a", 5.0), ("b", 6.0)]
    table.delete(shown.slice(1))
    assert held(table) == [("a", 5.0)]
    assert facts_of(context_of(table)).full_schema.field("made").type == pa.int64()
    wrong = shown.set_column(shown.schema.get_field_index("made"), "made", pa.array(["2024/01/15"] * 2))
    with pytest.raises(InvalidError, match="'made' does not fit its type int64"):
        table.upsert(wrong)


def test_the_settings_of_a_table_are_stored_and_may_not_change() -> None:
    table = create("made", {TYPE: "TIMESTAMP", **TIMEBASED})
    stored = table.config.properties
    assert stored["hoodie.keygen.timebased.output.dateformat"] == "yyyy/MM/dd"
    row = arrow_rows(SCHEMA, ("a", "rome", DAY, 1, 1.0))
    table.insert(row, options=TIMEBASED)
    with pytest.raises(InvalidError, match=r"output\.dateformat yyyyMM but the table has yyyy/MM/dd"):
        table.insert(row, options={"hoodie.keygen.timebased.output.dateformat": "yyyyMM"})
    with pytest.raises(InvalidError, match="key generator SIMPLE but the table has TIMESTAMP"):
        table.insert(row, options={TYPE: "SIMPLE"})
    assert len(table.timeline.writes()) == 1


@pytest.mark.parametrize(
    ("partition_by", "properties", "kind", "text"),
    [
        ("made", {TYPE: "TIMESTAMP"}, InvalidError, r"needs hoodie\.keygen\.timebased\.timestamp\.type"),
        ("fare", {TYPE: "TIMESTAMP", **TIMEBASED}, InvalidError, "fare is double"),
        ("city", {TYPE: "TIMESTAMP", **TIMEBASED}, InvalidError, "city is string"),
        (["made", "city"], {TYPE: "TIMESTAMP", **TIMEBASED}, InvalidError, "Use COMPLEX"),
        ((), {TYPE: "TIMESTAMP", **TIMEBASED}, InvalidError, "Use NON_PARTITION"),
        ("city", {TYPE: "CUSTOM"}, InvalidError, "city:SIMPLE"),
        ("city:SIMPLE", {TYPE: "SIMPLE"}, InvalidError, "without types"),
        ("city:DAILY", {}, InvalidError, "has the type DAILY. Use SIMPLE or TIMESTAMP"),
        ("made:TIMESTAMP", {}, InvalidError, "timestamp"),
        ("town:SIMPLE", {}, InvalidError, "names a column town"),
        ("city", {TYPE: "GLOBAL_DELETE"}, InvalidError, "Use SIMPLE"),
        ("city", {CLASS: "com.example.Nobody"}, UnsupportedError, "register_key_generator"),
        ("city", {TYPE: "USER_PROVIDED"}, InvalidError, "needs a class name"),
        (["city", "made"], {SLASHED: "true"}, InvalidError, "one partition column"),
        (
            "city",
            {SLASHED: "true", "hoodie.datasource.write.hive_style_partitioning": "true"},
            InvalidError,
            "not hive-style",
        ),
    ],
)
def test_contradictions_are_refused_before_there_is_a_table(
    partition_by: Any, properties: dict[str, str], kind: type[Exception], text: str
) -> None:
    uri = new_address()
    with pytest.raises(kind, match=text):
        drawstring.create(uri, SCHEMA, record_key="id", partition_by=partition_by, properties=properties)
    with pytest.raises(InvalidError):
        drawstring.open(uri)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ((pa.array(["a", None]), pa.array(["x", "y"])), "is null or empty in 1 row"),
        ((pa.array(["a", "b"]), pa.array(["x"])), "2 keys and 1 paths for 2 rows"),
        ((pa.array(["a", "b"]), pa.array(["x", "../y"])), "partition path '../y'"),
        ((pa.array(["a", "b"]), pa.array(["x", ".hoodie"])), "Hudi stores its own files"),
        (pa.array(["a", "b"]), "failed"),
    ],
)
def test_a_function_that_makes_no_keys_is_named(made: Any, text: str) -> None:
    drawstring.register_key_generator("com.example.Backwards", lambda rows: made)
    table = create(["city"], {CLASS: "com.example.Backwards"})
    with pytest.raises(InvalidError, match=text) as caught:
        table.insert(arrow_rows(SCHEMA, ("a", "rome", DAY, 1, 1.0), ("b", "rome", DAY, 1, 1.0)))
    assert "com.example.Backwards" in str(caught.value)
    assert table.timeline.writes() == ()


def test_a_table_with_somebody_elses_generator_is_read_and_not_written() -> None:
    table = create(["city"], {CLASS: "com.example.Backwards"})
    table.insert(arrow_rows(SCHEMA, ("a", "rome", DAY, 1, 1.0)))
    table_types._generators.clear()
    with pytest.raises(UnsupportedError, match=r"key generator com\.example\.Backwards\. Register"):
        table.insert(arrow_rows(SCHEMA, ("b", "rome", DAY, 1, 1.0)))
    assert held(table) == [("a", 1.0)]


@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize("is_bare", ["true", "false"])
def test_an_old_table_keeps_to_the_spelling_of_its_complex_keys(version: int, is_bare: str) -> None:
    bare = "hoodie.write.complex.keygen.new.encoding"
    table = create("city", {TYPE: "COMPLEX", bare: is_bare}, version)
    table.insert(arrow_rows(SCHEMA, ("a", "rome", DAY, 1, 1.0)))
    key = "a" if is_bare == "true" else "id:a"
    properties = dict(table.config.properties)
    properties.pop(bare, None)
    forget(table, properties)
    table.upsert(arrow_rows(SCHEMA, ("a", "rome", DAY, 2, 2.0)))
    assert held(table, "_hoodie_record_key", "fare") == [(key, 2.0)]
    with pytest.raises(InvalidError, match=f"record keys such as '{key}'"):
        table.upsert(
            arrow_rows(SCHEMA, ("a", "rome", DAY, 3, 3.0)),
            options={bare: "false" if is_bare == "true" else "true"},
        )


def forget(table: Table, properties: dict[str, str]) -> None:
    """Leave properties out of a table, as tables of older releases do."""
    from drawstring.base.clock import SystemClock
    from drawstring.timeline.properties import save_properties

    save_properties(context_of(table).storage, properties, SystemClock())


GOLDEN_CUSTOM = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
}


@pytest.mark.parametrize(
    "name", ["v8_cow_timestamp_keygen", "v9_cow_timestamp_keygen", "v9_cow_custom_keygen"]
)
def test_writes_put_rows_of_real_hudi_into_the_partitions_that_they_are_in(name: str, tmp_path: Path) -> None:
    table = golden_table(name, tmp_path)
    before = table.scan().to_arrow()
    options = GOLDEN_CUSTOM if "custom" in name else {}
    if options:
        with pytest.raises(InvalidError, match=r"hoodie\.keygen\.timebased"):
            table.upsert(before)
    raw = before.set_column(
        before.schema.get_field_index("created"), "created", before.column("created").cast(pa.int64())
    )
    table.upsert(raw, options=options)
    after = table.scan().to_arrow()
    paths = ["_hoodie_record_key", "_hoodie_partition_path"]
    assert sorted(after.select(paths).to_pylist(), key=str) == sorted(
        before.select(paths).to_pylist(), key=str
    )
    assert set(after.column("_hoodie_commit_time").to_pylist()) == {table.timeline.latest_write().requested}


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("name", GENERATORS)
def test_rows_are_changed_and_merged_where_they_are(name: str, table_type: str) -> None:
    partition_by, properties, _, _ = GENERATORS[name]
    table = create(partition_by, properties, 9, table_type)
    types = {"hoodie.datasource.write.partitionpath.field": partition_by} if "custom" in name else {}
    table.insert(arrow_rows(SCHEMA, ("a", "rome", DAY, 1, 1.0), ("b", "oslo", DAY, 1, 2.0)), options=types)
    table.update(f"made = {DAY} and city = 'rome'", {"fare": "fare + 10"}, options=types)
    source = arrow_rows(SCHEMA, ("a", "rome", DAY, 2, 0.5), ("c", "rome", DAY + 1, 1, 4.0))
    merge = table.merge(source, options=types).when_matched_update({"fare": "source.fare + target.fare"})
    merge.when_not_matched_insert_all().execute()
    table.delete(where="id = 'b'", options=types)
    assert held(table) == [("a", 11.5), ("c", 4.0)]
    table.upsert(
        arrow_rows(SCHEMA, ("a", "rome", DAY, 3, 7.0), ("c", "rome", DAY + 1, 3, 8.0)), options=types
    )
    assert held(table) == [("a", 7.0), ("c", 8.0)]
