"""A table is filled from the commits of another one, with or without its deletes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.table import Table

SCHEMA = pa.schema({"id": pa.int64(), "city": pa.string(), "ts": pa.int64()})
Row = tuple[int, str, int]


def rows(*given: Row) -> pa.Table:
    return pa.table([list(column) for column in zip(*given, strict=True)], SCHEMA)


@pytest.fixture
def source(tmp_path: Path) -> Table:
    table = drawstring.create(tmp_path / "s", SCHEMA, record_key="id", partition_by="city", ordering="ts")
    table.upsert(rows((1, "oslo", 1), (2, "rome", 1)))
    return table


def ingest(source: Table, name: str = "hudi", options: Mapping[str, Any] = {}, **more: Any) -> Any:
    given = {
        "hoodie.streamer.source.hoodieincr.path": source.uri,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.table.ordering.fields": "ts",
        **options,
    }
    return drawstring.ingest(Path(source.uri).parent / "t", name, options=given, **more)


def content(table: Table) -> list[Row]:
    found = table.scan(columns=SCHEMA.names).to_arrow().to_pylist()
    return sorted(tuple(each.values()) for each in found)


def target(source: Table) -> Table:
    return drawstring.open(Path(source.uri).parent / "t")


def test_rows_of_commits_follow_once(source: Table) -> None:
    assert ingest(source).rows == 2
    assert not ingest(source)
    last = source.upsert(rows((2, "rome", 2), (3, "lima", 2)))
    result = ingest(source)
    assert (result.rows, result.checkpoint) == (2, last.completed)
    assert content(target(source)) == content(source)


def test_batches_have_as_many_commits_as_the_option_says(source: Table) -> None:
    ingest(source)
    for ts in range(2, 7):
        source.upsert(rows((1, "oslo", ts)))
    told: list[tuple[int, int]] = []
    ingest(
        source,
        options={"hoodie.streamer.source.hoodieincr.num_instants": 2},
        on_progress=lambda progress: told.append((progress.size, progress.left)),
    )
    assert told == [(2, 3), (2, 1), (1, 0)]
    assert content(target(source)) == content(source)


def test_the_first_batch_may_be_the_newest_commit(source: Table) -> None:
    source.upsert(rows((3, "lima", 2)))
    late = {"hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy": "READ_LATEST"}
    assert ingest(source, "org.apache.hudi.utilities.sources.HoodieIncrSource", late).rows == 1
    assert content(target(source)) == [(3, "lima", 2)]


def test_version_6_goes_by_requested_times(tmp_path: Path) -> None:
    source = drawstring.create(tmp_path / "s", SCHEMA, record_key="id", partition_by="city", version=6)
    first = source.upsert(rows((1, "oslo", 1)))
    assert ingest(source).checkpoint == first.instant
    source.upsert(rows((2, "oslo", 1)))
    assert ingest(source).rows == 1


def test_changes_bring_deletes_along(source: Table) -> None:
    ingest(source, "hudi-changes")
    source.upsert(rows((1, "oslo", 2), (4, "rome", 1)))
    source.delete(where="id = 2")
    source.delete(where="id = 4")
    source.upsert(rows((4, "rome", 5)))
    ingest(source, "hudi-changes")
    assert content(target(source)) == content(source) == [(1, "oslo", 2), (4, "rome", 5)]


def test_changes_keep_the_types_of_columns(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "day": dt.date(2024, 5, 1),
        "at": dt.datetime(2024, 5, 1, 10, tzinfo=dt.UTC),
        "price": Decimal("1.50"),
        "text": '2024-05-01 "x"',
        "list": [1, 2],
        "in": {"flag": True, "x": 0.5},
    }
    schema = pa.schema(
        {
            "id": pa.int64(),
            "day": pa.date32(),
            "at": pa.timestamp("us", "UTC"),
            "price": pa.decimal128(10, 2),
            "text": pa.string(),
            "list": pa.list_(pa.int32()),
            "in": pa.struct({"flag": pa.bool_(), "x": pa.float32()}),
        }
    )
    source = drawstring.create(tmp_path / "s", schema, record_key="id")
    source.upsert(pa.Table.from_pylist([row], schema))
    plain = {"hoodie.datasource.write.partitionpath.field": "", "hoodie.table.ordering.fields": ""}
    drawstring.create(tmp_path / "t", schema, record_key="id")
    ingest(source, "hudi-changes", plain)
    assert target(source).scan(columns=schema.names).to_arrow().to_pylist() == [row]


def test_what_changes_cannot_say_is_refused(tmp_path: Path) -> None:
    source = drawstring.create(
        tmp_path / "s", pa.schema({"id": pa.int64(), "b": pa.binary()}), record_key="id"
    )
    source.upsert(pa.table({"id": [1], "b": [b"x"]}))
    with pytest.raises(UnsupportedError, match="Changes of column b"):
        ingest(source, "hudi-changes")


def test_a_checkpoint_of_another_source_is_told(source: Table) -> None:
    with pytest.raises(InvalidError, match="is no time of a commit"):
        ingest(source, checkpoint="topic,0:1")
    with pytest.raises(InvalidError, match=r"Set hoodie\.streamer\.source\.hoodieincr\.path"):
        drawstring.ingest("memory://nothing", "hudi")


def test_a_table_of_changes_has_the_columns_in_their_order(tmp_path: Path) -> None:
    schema = pa.schema(
        {"z": pa.string(), "id": pa.int64(), "a": pa.string(), "city": pa.string(), "ts": pa.int64()}
    )
    source = drawstring.create(tmp_path / "s", schema, record_key="id", partition_by="city", ordering="ts")
    source.upsert(pa.table([["z"], [1], [None], ["oslo"], [1]], schema=schema))
    ingest(source, "hudi-changes")
    assert target(source).schema.names == [*schema.names, "_hoodie_is_deleted"]


def test_a_table_is_not_its_own_source(source: Table) -> None:
    own = {
        "hoodie.streamer.source.hoodieincr.path": source.uri,
        "hoodie.datasource.write.recordkey.field": "id",
    }
    for path in (source.uri, f"{source.uri}/oslo", f"file://{source.uri}"):
        given = own | {"hoodie.streamer.source.hoodieincr.path": path}
        with pytest.raises(InvalidError, match="is the table itself"):
            drawstring.ingest(source.uri, "hudi", options=given)
    assert len(source.timeline.writes()) == 1
