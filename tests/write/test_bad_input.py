"""Mistakes of a user and damaged properties: one clear error, and the table is as it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import drawstring
from drawstring.base.clock import SystemClock
from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.config.table.properties import decode_properties, encode_properties
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.properties import create_table
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.rows import SCHEMA, held, rides
from tests.support.storages import files_below
from tests.support.tables import COW, MOR, OLD, create, table_at

TYPES_TABLE = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.string()), ("fare", pa.float64())]
)


@pytest.fixture(params=[(COW, 9), (MOR, 9), (MOR, 6)], ids=["cow-9", "mor-9", "mor-6"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return table_at(tmp_path / "rides", *request.param)


def without(name: str) -> pa.Table:
    return rides(*OLD).drop_columns([name])


def replaced(name: str, values: pa.Array) -> pa.Table:
    rows = rides(*OLD)
    return rows.set_column(rows.schema.get_field_index(name), name, values)


CALLS: dict[str, tuple[Callable[[Table], Any], str]] = {
    "a column that is not there": (
        lambda table: table.scan(columns=["fair"]).to_arrow(),
        r"no column.*fair.*Did you mean.*fare",
    ),
    "a condition on a column that is not there": (
        lambda table: table.scan(where="fair > 1").to_arrow(),
        r"fair.*Did you mean.*fare",
    ),
    "a condition that is no SQL": (
        lambda table: table.scan(where="fare >").to_arrow(),
        r"'fare >' is not a SQL condition. Look at column 6",
    ),
    "a condition that fails on a row": (
        lambda table: table.scan(where=pc.divide(pc.scalar(5), pc.field("ts") - 1) > 1).to_arrow(),
        r"condition .*ts.* fails on a row \(divide by zero",
    ),
    "a SQL condition that fails on a row": (
        lambda table: table.scan(where="city < 'z' and (ts + 1) * 9223372036854775807 > 1 - 0.5").to_arrow(),
        r"The condition city < 'z' and \(ts \+ 1\) \* 9223372036854775807 > 1 - 0\.5 fails on a row \(over",
    ),
    "a SQL condition of an update that fails on a row": (
        lambda table: table.update("(ts + 1) * 9223372036854775807 > 1", {"fare": 1.0}),
        r"The condition \(ts \+ 1\) \* 9223372036854775807 > 1 fails on a row \(overflow\)",
    ),
    "a SQL condition of an incremental query that fails on a row": (
        lambda table: table.incremental("0", where="(ts + 1) * 9223372036854775807 > 1").to_arrow(),
        r"The condition \(ts \+ 1\) \* 9223372036854775807 > 1 fails on a row \(overflow\)",
    ),
    "a SQL condition that fails on a partition": (
        lambda table: table.scan(where="cast(city as bigint) > 1").to_arrow(),
        r"The condition cast\(city as bigint\) > 1 fails on a partition",
    ),
    "a SQL condition on types that do not compare": (
        lambda table: table.scan(where="cast(ts as boolean) = cast(5 as string)"),
        r"The condition cast\(ts as boolean\) = cast\(5 as string\) does not fit the columns",
    ),
    "a SQL condition on a date and a number": (
        lambda table: table.scan(where="ts = date '2024-01-31'"),
        r"The SQL contains .*ts = CAST.*type int64 with one of type date32.*cast one of the two values",
    ),
    "a SQL condition on a number as a date": (
        lambda table: table.scan(where="cast(ts as date) = '2024-01-31'"),
        r"The SQL contains 'CAST\(ts AS DATE\)', a cast from int64 to date32.* is not supported",
    ),
    "a condition that fails on a partition": (
        lambda table: table.scan(where=pc.field("city").cast("int64") > 1).to_arrow(),
        r"condition .*city.* fails on a partition",
    ),
    "a condition that is none": (lambda table: table.scan(where=5), r"SQL text or a pyarrow expression"),
    "a time that is a fraction": (lambda table: table.incremental(1.5), r"1\.5 is not a time"),
    "a time that is no day": (lambda table: table.scan(as_of=20269901), r"'20269901' is not a time"),
    "a frame with mixed objects": (
        lambda table: table.upsert(pd.DataFrame({"id": ["a", 5], "city": "x", "ts": 1, "fare": 1.0})),
        r"Rows of this DataFrame cannot be read: .*id",
    ),
    "a single column": (lambda table: table.upsert(pl.Series([1])), r"Rows of this Series cannot be read"),
    "a series of pandas": (lambda table: table.upsert(pd.Series([1])), r"Rows cannot be read from .*Series"),
    "a partition value too long for a folder": (
        lambda table: table.upsert(rides(("x", "x" * 300, 1, 1.0))),
        r"too long for the file system. Shorten .*the partition value",
    ),
    "a partition value with a NUL": (
        lambda table: table.upsert(rides(("x", "a\0b", 1, 1.0))),
        r"NUL character",
    ),
    "a time that is none": (lambda table: table.scan(as_of="yesterday").to_arrow(), r"yesterday"),
    "a null record key": (
        lambda table: table.upsert(replaced("id", pa.array(["c", None]))),
        r"(id.*null.*1)",
    ),
    "an option without its prefix": (
        lambda table: table.upsert(rides(*OLD), options={"index_type": "BUCKET"}),
        r"'index_type'. Did you mean 'hoodie.index.type'",
    ),
    "an option with underscores": (
        lambda table: table.upsert(rides(*OLD), options={"hoodie_index_type": "BUCKET"}),
        r"'hoodie_index_type'. Did you mean 'hoodie.index.type'",
    ),
    "an option that is nobody's": (lambda table: table.upsert(rides(*OLD), options={"foo": "yep"}), r"'foo'"),
    "another operation than the call's": (
        lambda table: table.upsert(rides(*OLD), options={"hoodie.datasource.write.operation": "delete"}),
        r"operation is delete, but the call is upsert.*call delete",
    ),
    "a slip in an option": (
        lambda table: table.upsert(rides(*OLD), options={"hoodie.parquet.compresion.codec": "gzip"}),
        r"Did you mean 'hoodie.parquet.compression.codec'",
    ),
    "a partition in Hudi's own folder": (
        lambda table: table.upsert(replaced("city", pa.array(["rome", ".hoodie"]))),
        r"city has the value '.hoodie'",
    ),
    "a partition in the timeline": (
        lambda table: table.upsert(replaced("city", pa.array(["rome", ".hoodie/timeline"]))),
        r"city has the value '.hoodie/timeline'",
    ),
    "a partition named like its metadata": (
        lambda table: table.bulk_insert(replaced("city", pa.array(["x/.hoodie_partition_metadata", "rome"]))),
        r"city has the value 'x/.hoodie_partition_metadata'",
    ),
    "rows without the record key": (lambda table: table.upsert(without("id")), r"lack id"),
    "rows without the partition column": (lambda table: table.upsert(without("city")), r"lack city"),
    "rows without the ordering column": (lambda table: table.upsert(without("ts")), r"lack ts"),
    "keys to delete without the partition column": (
        lambda table: table.delete(without("city")),
        r"lack city",
    ),
    "a column of another type": (
        lambda table: table.upsert(replaced("fare", pa.array([[1.0], [2.0]]))),
        r"'fare' is double in the table and list",
    ),
    "a key of another type": (
        lambda table: table.upsert(replaced("id", pa.array([[b"x"], [b"y"]]))),
        r"'id' is string in the table",
    ),
    "a new column of a type that Hudi lacks": (
        lambda table: table.upsert(rides(*OLD).append_column("wait", pa.array([1, 2], pa.duration("s")))),
        r"wait",
    ),
    "rows that are none": (lambda table: table.upsert([("a", 1)]), r"Rows cannot be read from list"),
    "a condition in the place of rows": (
        lambda table: table.delete("city = 'lima'"),
        r"Pass a condition as where=",
    ),
    "a list of dicts": (lambda table: table.upsert([{"id": "a"}]), r"from_pylist"),
    "a misspelt option": (
        lambda table: table.upsert(rides(*OLD), options={"hoodie.index.typ": "BUCKET"}),
        r"There is no option 'hoodie.index.typ'.*Did you mean 'hoodie.index.type'",
    ),
    "a value that an option does not have": (
        lambda table: table.upsert(rides(*OLD), options={"hoodie.logfile.data.block.format": "orc"}),
        r"hoodie.logfile.data.block.format is 'orc'. Choose one of parquet, avro. \(",
    ),
    "options of another table": (
        lambda table: table.upsert(rides(*OLD), options={"hoodie.datasource.write.recordkey.field": "city"}),
        r"record key city.*the table has id",
    ),
    "an operation that does not exist": (
        lambda table: table._write_rows("merge", context_of(table).engine.rows(SCHEMA, []), {}),
        r"write.operation is 'merge'.*upsert",
    ),
    "a table of that name": (
        lambda table: drawstring.create(table.uri, SCHEMA, record_key="id"),
        r"already",
    ),
}


@pytest.mark.parametrize(("call", "says"), CALLS.values(), ids=[name.replace(" ", "_") for name in CALLS])
def test_a_mistake_is_told_and_nothing_changes(table: Table, call: Callable[[Table], Any], says: str) -> None:
    before = files_below(table.uri)
    with pytest.raises(InvalidError, match=f"(?s){says}") as caught:
        call(table)
    assert caught.value.table == table.uri
    after = files_below(table.uri)
    assert data_of(after) == data_of(before)
    assert held(table) == OLD
    table.upsert(rides(("c", "rome", 1, 1.0)))
    assert held(table) == [*OLD, ("c", "rome", 1, 1.0)]


def data_of(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if not path.startswith(".hoodie")}


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("index.type", "'hoodie.index.type'"),
        ("foo", "'foo'"),
        ("hoodie.bucket.index.num.bucket", "'hoodie.bucket.index.num.buckets'"),
    ],
)
def test_a_property_that_does_not_exist_makes_no_table(tmp_path: Path, key: str, says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        table_at(tmp_path / "rides", properties={key: "4"})
    assert not (tmp_path / "rides").exists()


def test_a_compaction_takes_no_option_that_is_nobodys(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    with pytest.raises(InvalidError, match="'foo'"):
        table.services.compact(options={"foo": 1})
    assert table.services.compact(options={"hoodie.datasource.write.operation": "upsert"})


def test_a_value_that_does_not_fit_its_column_is_told(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    for rows in (
        replaced("ts", pa.array(["soon", "later"])),
        replaced("fare", pa.array(["cheap", "dear"])),
    ):
        with pytest.raises(InvalidError, match=r"ts|fare") as caught:
            table.upsert(rows)
        assert caught.value.table == table.uri
    assert held(table) == OLD


@pytest.mark.parametrize("version", ["11", "42", "5", "nine"])
def test_a_table_version_that_is_unknown_is_named(tmp_path: Path, version: str) -> None:
    table = table_at(tmp_path)
    change_properties(tmp_path, {"hoodie.table.version": version})
    before = files_below(table.uri)
    for call in (
        lambda: drawstring.open(tmp_path),
        lambda: table.scan().to_arrow(),
        lambda: table.upsert(rides(*OLD)),
        lambda: table.services.compact(),
    ):
        with pytest.raises((UnsupportedError, CorruptTableError), match=version) as caught:
            call()
        assert caught.value.table == table.uri
    assert files_below(table.uri) == before


def change_properties(root: Path, changes: dict[str, str]) -> None:
    for name in ("hoodie.properties", "hoodie.properties.backup"):
        path = root / ".hoodie" / name
        if path.exists():
            path.write_bytes(encode_properties({**decode_properties(path.read_bytes()), **changes}, 0))


def test_half_written_properties_are_read_from_their_backup_or_told(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    main = tmp_path / ".hoodie/hoodie.properties"
    whole = main.read_bytes()
    (tmp_path / ".hoodie/hoodie.properties.backup").write_bytes(whole)
    main.write_bytes(whole[: len(whole) // 2])
    assert held(table) == OLD
    table.upsert(rides(("c", "rome", 1, 1.0)))
    (tmp_path / ".hoodie/hoodie.properties.backup").unlink(missing_ok=True)
    main.write_bytes(whole[: len(whole) // 2])
    for call in (lambda: drawstring.open(tmp_path), lambda: table.upsert(rides(*OLD))):
        with pytest.raises(CorruptTableError, match=r"hoodie\.properties") as caught:
            call()
        assert caught.value.table == table.uri
    main.write_bytes(whole)
    assert len(held(table)) == 3


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_table_that_lost_its_properties_is_not_made_anew_over_its_data(
    tmp_path: Path, version: int
) -> None:
    table = table_at(tmp_path / "rides", MOR, version)
    lost = tmp_path / "rides/.hoodie/hoodie.properties"
    shutil.move(lost, tmp_path / "kept")
    before = files_below(table.uri)
    for call in (
        lambda: drawstring.create(tmp_path / "rides", SCHEMA, record_key="city"),
        lambda: drawstring.create(tmp_path / "rides", SCHEMA, record_key="id", version=6),
        lambda: drawstring.open(tmp_path / "rides"),
    ):
        with pytest.raises(CorruptTableError, match=r"properties are missing.*from a backup") as caught:
            call()
        assert caught.value.path == ".hoodie/hoodie.properties"
    assert files_below(table.uri) == before
    shutil.move(tmp_path / "kept", lost)
    assert held(drawstring.open(tmp_path / "rides")) == OLD


@pytest.mark.parametrize("kind", ["missing", "file", "empty", "parquet"])
def test_a_path_that_is_no_table_is_told(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "there"
    if kind == "file":
        path.write_text("x")
    elif kind != "missing":
        path.mkdir()
    if kind == "parquet":
        (path / "part-0.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidError, match=r"not a Hudi table") as caught:
        drawstring.open(path)
    assert caught.value.table == str(path)


def test_more_buckets_than_the_table_has_are_refused(tmp_path: Path) -> None:
    table = table_at(
        tmp_path, properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    )
    before = files_below(table.uri)
    with pytest.raises(InvalidError, match=r"number of buckets 4 but the table has 2"):
        table.upsert(
            rides(*OLD), options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
        )
    with pytest.raises(InvalidError, match="bucket index"):
        table.upsert(rides(*OLD), options={"hoodie.index.type": "SIMPLE"})
    assert files_below(table.uri) == before
    assert held(table) == OLD


@pytest.mark.parametrize("version", [6, 9])
def test_a_creation_that_died_leaves_no_half_table(tmp_path: Path, version: int) -> None:
    properties = decode_properties(
        (tmp_at(tmp_path / "model", version) / ".hoodie/hoodie.properties").read_bytes()
    )
    for steps in range(30):
        path = tmp_path / str(steps)
        faulty = FaultyStorage(open_storage(path), steps)
        try:
            create_table(faulty, properties, SystemClock())
        except InjectedFault:
            with pytest.raises(InvalidError, match="not a Hudi table"):
                drawstring.open(path)
            tmp_at(path, version)
        table = drawstring.open(path)
        table.upsert(rides(*OLD))
        assert held(table) == OLD
        if faulty.changes < steps:
            return
    raise AssertionError("creation takes more steps than that")


def tmp_at(path: Path, version: int) -> Path:
    create(path=path, version=version)
    return path
