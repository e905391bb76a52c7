"""Positions of records in log files: right where the index finds them, and of the base file of the slice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import drawstring
from drawstring.table import Table
from tests.support.combinations import pairs_first
from tests.support.engines import ENGINES, start_engine
from tests.support.limits import SetLimits
from tests.support.positions import Logged, check_positions
from tests.support.rows import WIDE, arrow_rows, rides
from tests.support.sorted_tables import LSM
from tests.support.tables import AVRO_LOGS, BUCKETS, MOR, NEW_FILE_GROUPS, WITHOUT_SERVICES, create

KEYS = [f"k{number:02}" for number in range(40)]


def first_rows(city: str = "rome") -> pa.Table:
    shuffled = np.random.default_rng(1).permutation(KEYS).tolist()
    return rides(*((key, city, 1, 1.0) for key in shuffled))


def changed(table: Table, *keys: str, ts: int = 2, city: str = "rome", **options: str) -> None:
    table.upsert(rides(*((key, city, ts, float(ts)) for key in keys)), options=WITHOUT_SERVICES | options)


def deleted(table: Table, *keys: str, **options: str) -> None:
    rows = pa.table({"id": list(keys), "city": ["rome"] * len(keys)})
    table.delete(rows, options=WITHOUT_SERVICES | options)


def known(blocks: list[Logged]) -> list[list[str] | None]:
    """Return the keys of each block, None for those without positions."""
    return [None if each.positions is None else sorted(each.keys) for each in blocks]


@pairs_first(
    version={"v8": 8, "v9": 9, "v10": 10},
    index={name: name for name in ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")},
    log_format={"parquet": "parquet", "avro": "avro"},
)
def test_updates_and_deletes_have_the_positions_of_their_rows(
    version: int, index: str, log_format: str
) -> None:
    table = create(table_type=MOR, version=version, properties={"hoodie.index.type": index})
    table.insert(first_rows())
    log = {"hoodie.logfile.data.block.format": log_format}
    changed(table, "k07", "k31", "k02", **log)
    changed(table, "k02", "k02", "k39", ts=3, **log)  # again, one row twice
    deleted(table, "k39", "k00", "k07", "k07", **log)
    changed(table, "k39", "k01", ts=4, **log)  # a deleted key comes back
    blocks = check_positions(table)
    assert known(blocks) == [
        ["k02", "k07", "k31"],
        ["k02", "k39"],
        ["k00", "k07", "k39"],
        ["k01", "k39"],
    ]
    assert all(each.base is not None for each in blocks)


@pytest.mark.parametrize("version", [9, 10])
def test_rows_that_are_marked_as_deletes_have_positions(version: int) -> None:
    schema = rides().schema.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = create(schema, table_type=MOR, version=version, properties={"hoodie.index.type": "SIMPLE"})
    rows = first_rows()
    table.insert(rows.append_column(schema.field(4), pa.array([False] * len(rows))))
    some = rides(*((key, "rome", 2, 2.0) for key in ("k09", "k03", "k30", "k11")))
    marks = pa.array([True, False, True, False])
    table.upsert(some.append_column(schema.field(4), marks), options=WITHOUT_SERVICES)
    assert known(check_positions(table)) == [["k03", "k11"], ["k09", "k30"]]


@pytest.mark.parametrize("version", [9, 10])
def test_a_record_that_moves_to_another_partition_is_deleted_at_its_position(version: int) -> None:
    table = create(table_type=MOR, version=version, properties={"hoodie.index.type": "GLOBAL_SIMPLE"})
    table.insert(first_rows())
    table.insert(rides(("o1", "oslo", 1, 1.0)))
    moved = rides(("k05", "oslo", 2, 2.0), ("k21", "rome", 2, 2.0), ("o1", "oslo", 2, 2.0))
    table.upsert(moved, options=WITHOUT_SERVICES | NEW_FILE_GROUPS)
    assert sorted(known(check_positions(table))) == [["k05"], ["k21"], ["o1"]]
    assert sum(row["city"] == "oslo" for row in table.scan().to_arrow().to_pylist()) == 2


@pytest.mark.parametrize("version", [9, 10])
def test_a_partial_update_has_positions(version: int) -> None:
    table = create(WIDE, table_type=MOR, version=version, properties={"hoodie.index.type": "SIMPLE"})
    table.insert(arrow_rows(WIDE, *((key, "rome", 1, "old") for key in KEYS)))
    source = arrow_rows(WIDE, ("k05", "rome", 2, "x"), ("k01", "rome", 2, "y"), ("new", "rome", 2, "z"))
    logged = WITHOUT_SERVICES | {"hoodie.spark.sql.merge.into.partial.updates": "true"}
    (
        table.merge(source, "target.id = source.id and target.city = source.city", options=logged)
        .when_matched_update({"ts": "source.ts"})
        .when_not_matched_insert_all()
        .execute()
    )
    (block,) = check_positions(table)
    assert block.is_partial
    assert known([block]) == [["k01", "k05"]]
    rows = {row["id"]: (row["ts"], row["note"]) for row in table.scan().to_arrow().to_pylist()}
    assert [rows[key] for key in ("k00", "k01", "new")] == [(1, "old"), (2, "old"), (2, "z")]


@pytest.mark.parametrize("plans_first", [True, False], ids=["pending", "done"])
@pytest.mark.parametrize("version", [9, 10])
def test_positions_are_of_the_base_file_that_the_write_saw(version: int, plans_first: bool) -> None:
    table = create(table_type=MOR, version=version, properties={"hoodie.index.type": "SIMPLE"})
    table.insert(first_rows())
    deleted(table, "k00")
    planned = table.services.schedule_compaction()
    assert planned is not None
    if plans_first:
        changed(table, "k04")
        table.services.compact(planned)
    else:
        table.services.compact(planned)
        changed(table, "k04")
    before, after = check_positions(table)
    assert (before.keys, after.keys) == (["k00"], ["k04"])
    assert before.base is not None
    assert after.base is not None
    assert (after.base.instant == before.base.instant) is plans_first
    # The log file of the second write belongs to the new slice in either case: its readers compare instants.
    assert {row["id"] for row in table.scan().to_arrow().to_pylist()} == {*KEYS} - {"k00"}
    assert [row["ts"] for row in table.scan(where="id = 'k04'").to_arrow().to_pylist()] == [2]


@pytest.mark.parametrize(
    ("how", "options"),
    [
        ({"properties": BUCKETS}, {}),
        ({"properties": {"hoodie.index.type": "SIMPLE"}, "version": 6}, {}),
        ({"properties": {"hoodie.index.type": "SIMPLE"}}, {"hoodie.write.record.positions": "false"}),
        ({"properties": {"hoodie.index.type": "SIMPLE", **LSM}, "version": 10}, {}),
        ({"properties": {"hoodie.index.type": "BLOOM"}}, {"hoodie.index.log.enable": "true"}),
        ({"properties": {"hoodie.index.type": "SIMPLE", "hoodie.table.base.file.format": "ORC"}}, {}),
    ],
    ids=["bucket", "version 6", "turned off", "lsm_tree", "index in log files", "orc"],
)
def test_log_files_have_no_positions(how: dict[str, Any], options: dict[str, str]) -> None:
    table = create(table_type=MOR, **how)
    table.insert(first_rows(), options=options)
    changed(table, "k07", "k31", **options)
    deleted(table, "k00", **options)
    blocks = check_positions(table)
    assert blocks
    assert all(each is None for each in known(blocks))


@pytest.mark.parametrize("version", [9, 10])
def test_a_key_that_the_base_file_has_twice_has_no_position(version: int) -> None:
    table = create(table_type=MOR, version=version, properties={"hoodie.index.type": "SIMPLE"})
    table.bulk_insert(rides(*(("k01", "rome", 1, fare) for fare in (1.0, 2.0)), ("k02", "rome", 1, 3.0)))
    changed(table, "k02", "k01")
    changed(table, "k02", ts=3)
    deleted(table, "k02", "k01")
    assert known(check_positions(table)) == [None, ["k02"], None]


def test_each_block_of_a_large_change_has_its_own_positions(limit: SetLimits) -> None:
    limit(piece_bytes_max=500)
    table = create(table_type=MOR, properties={"hoodie.index.type": "SIMPLE"})
    table.bulk_insert(first_rows())
    changed(table, *KEYS[:30], **NEW_FILE_GROUPS)
    blocks = check_positions(table)
    assert len(blocks) > 2
    assert sorted(key for each in known(blocks) for key in each or ()) == KEYS[:30]


def test_a_native_log_file_with_too_many_records_has_no_positions(limit: SetLimits) -> None:
    limit(positions_max=3)
    table = create(table_type=MOR, version=10, properties={"hoodie.index.type": "SIMPLE"})
    table.insert(first_rows())
    changed(table, *KEYS[:4])
    deleted(table, *KEYS[:3])
    assert known(check_positions(table)) == [None, KEYS[:3]]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE"])
def test_both_engines_write_positions(engine: str, index: str, tmp_path: Path) -> None:
    started, _ = start_engine(engine)
    path = str(tmp_path / "rides")
    create(path=path, table_type=MOR, properties={"hoodie.index.type": index})
    table = drawstring.open(path, engine=started)
    table.insert(first_rows())
    table.upsert(
        rides(("k07", "rome", 2, 2.0), ("k31", "rome", 2, 2.0)), options=WITHOUT_SERVICES | AVRO_LOGS
    )
    deleted(table, "k00", "k31")
    assert known(check_positions(table)) == [["k07", "k31"], ["k00", "k31"]]
