"""Base-file compaction: many small files become few, copied where they are alike, to the same rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.clock import SystemClock
from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.formats.metadata.plans import base_files_of, decode_clustering_plan, encode_clustering_plan
from drawstring.formats.parquet import parquet_footer
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faults import leftovers, orphans
from tests.support.limits import SetLimits
from tests.support.rows import held, meta_rows, rides
from tests.support.tables import (
    BUCKETS,
    COW,
    MOR,
    NEW_FILE_GROUPS,
    WITHOUT_COMPACTION,
    create,
    file_groups,
    store_of,
)

versions = pytest.mark.parametrize("version", (6, 8, 9))
COPY = "hoodie.clustering.plan.strategy.class"
STREAM_COPY = "SparkStreamCopyClusteringPlanStrategy"


@pytest.fixture
def copies_everything(limit: SetLimits) -> None:
    """Let row groups of a few rows be copied too."""
    limit(stitched_group_bytes_min=0)


def appended(table_type: str = COW, version: int = 9, batches: int = 5) -> Table:
    table = create(table_type=table_type, version=version)
    for batch in range(batches):
        rows = ((f"{key}{batch}", city, batch, batch / 4) for key in "abc" for city in ("oslo", "rome"))
        table.append(rides(*rows))
    return table


@versions
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.usefixtures("copies_everything")
def test_small_files_of_a_partition_become_one(table_type: str, version: int) -> None:
    table = appended(table_type, version)
    before, marks = held(table), meta_rows(table)
    assert file_groups(table) == 10
    result = table.services.compact_base_files()
    assert result and (result.files, result.records_written) == (2, 30)
    assert (file_groups(table), held(table), meta_rows(table)) == (2, before, marks)
    for each in table.inspect.files():
        assert each.base is not None
        data = pq.ParquetFile(pa.BufferReader(context_of(table).storage.read(each.base.status.path)))
        assert data.metadata.num_row_groups == 5
        assert set(data.read(["_hoodie_file_name"]).column(0).to_pylist()) == {each.base.status.name}
        footer = parquet_footer(context_of(table).storage, each.base.status.path)
        assert (footer["hoodie_min_record_key"], footer["hoodie_max_record_key"]) == ("a0", "c4")
    assert not table.services.compact_base_files()
    assert (orphans(table), leftovers(table), table.timeline.pending()) == ([], [], ())
    table.upsert(rides(("a0", "oslo", 99, 99.0), ("new", "rome", 1, 1.0)))
    assert ("a0", "oslo", 99, 99.0) in held(table) and len(held(table)) == 31


def test_crumbs_are_read_and_written_into_one_row_group() -> None:
    table = appended()
    before = held(table)
    table.services.compact_base_files()
    for each in table.inspect.files():
        assert each.base is not None
        data = context_of(table).storage.read(each.base.status.path)
        assert pq.read_metadata(pa.BufferReader(data)).num_row_groups == 1
    assert held(table) == before


@pytest.mark.usefixtures("copies_everything")
def test_files_from_before_a_column_was_added_are_read_and_written() -> None:
    table = appended(batches=2)
    wider = rides(("z", "oslo", 9, 9.0)).append_column("tip", pa.array([5.0]))
    table.append(wider)
    before = sorted(map(str, table.scan(columns=["id", "fare", "tip"]).to_arrow().to_pylist()))
    table.services.compact_base_files()
    assert file_groups(table) == 2
    assert sorted(map(str, table.scan(columns=["id", "fare", "tip"]).to_arrow().to_pylist())) == before


@pytest.mark.usefixtures("copies_everything")
def test_new_files_are_as_large_as_asked_for_and_large_ones_stay() -> None:
    table = appended(batches=6)
    size = max(each.size_bytes for each in table.inspect.files())
    assert not table.services.compact_base_files(options={"hoodie.parquet.small.file.limit": 0})
    result = table.services.compact_base_files(options={"hoodie.parquet.max.file.size": 2 * size + 10})
    assert result and result.files == 6
    assert not table.services.compact_base_files(options={"hoodie.parquet.small.file.limit": size})


def test_the_plan_says_which_files_come_together() -> None:
    table = appended()
    scheduled = table.services.schedule_base_file_compaction()
    assert scheduled is not None and table.services.schedule_base_file_compaction() is None
    store = store_of(table, SystemClock())
    (pending,) = table.timeline.pending_of(Action.CLUSTERING)
    plan = decode_clustering_plan(store.read_requested(pending))
    operations = base_files_of(plan)
    assert operations is not None
    assert [(partition, len(files)) for partition, files in operations] == [("oslo", 5), ("rome", 5)]
    named = {path for _, files in operations for path in files}
    assert named == {each.base.status.path for each in table.inspect.files() if each.base}
    table.services.cluster(instant=scheduled)
    assert file_groups(table) == 2
    table.append(rides(("z", "oslo", 1, 1.0)))
    table.services.schedule_clustering()
    (pending,) = table.timeline.pending_of(Action.CLUSTERING)
    assert base_files_of(decode_clustering_plan(store.read_requested(pending))) is None


def test_file_groups_with_log_files_are_left_to_compaction() -> None:
    table = appended(MOR)
    table.upsert(rides(("a0", "oslo", 99, 99.0)), options={**NEW_FILE_GROUPS, **WITHOUT_COMPACTION})
    result = table.services.compact_base_files()
    assert result and result.files == 2
    assert file_groups(table) == 3


@pytest.mark.parametrize("how", ["inline", "async"])
def test_appends_compact_base_files_when_due_by_themselves_or_in_a_thread(how: str) -> None:
    table = create()
    flag = {"inline": "hoodie.clustering.inline", "async": "hoodie.clustering.async.enabled"}[how]
    due = {flag: True, f"hoodie.clustering.{how}.max.commits": 3, COPY: STREAM_COPY}
    for batch in range(3):
        table.append(rides((f"a{batch}", "rome", batch, 1.0)), options=due)
    assert table.services.wait(30)
    assert (file_groups(table), len(held(table))) == (1, 3)
    switched_off = {**due, flag: False}
    for batch in range(3, 8):
        table.append(rides((f"a{batch}", "rome", batch, 1.0)), options=switched_off)
    assert (file_groups(table), len(held(table))) == (6, 8)


def test_rows_are_copied_where_row_groups_are_large_enough(tmp_path: Path) -> None:
    path = str(tmp_path / "rides")
    first = rides(("a", "rome", 1, 1.0))
    table = drawstring.create(path, first.schema, name="rides", record_key="id", partition_by="city")
    for batch in range(3):
        count = 40_000
        rows = pa.table(
            {
                "id": [f"{batch}-{at * 7919 % 1000003}" for at in range(count)],
                "city": ["rome"] * count,
                "ts": list(range(count)),
                "fare": [at * 0.7919 % 1 for at in range(count)],
            },
            first.schema,
        )
        table.append(rows)
    table.services.compact_base_files()
    (only,) = table.inspect.files()
    assert only.base is not None
    metadata = pq.read_metadata(str(tmp_path / "rides" / only.base.status.path))
    assert (metadata.num_rows, metadata.num_row_groups) == (120_000, 3)
    assert table.scan(where="id = '2-7919'").to_arrow().num_rows == 1


def test_a_bucketed_table_is_refused() -> None:
    table = create(properties=BUCKETS)
    table.insert(rides(("a", "rome", 1, 1.0)))
    with pytest.raises(drawstring.UnsupportedError, match="bucket index"):
        table.services.compact_base_files()


def test_a_base_file_compaction_that_was_planned_is_run_by_name() -> None:
    table = appended()
    before, planned = held(table), table.services.schedule_base_file_compaction()
    assert planned is not None
    result = table.services.compact_base_files(instant=planned)
    assert result and result.instant == planned
    assert (file_groups(table), held(table), table.timeline.pending()) == (2, before, ())
    assert not table.services.compact_base_files(instant=planned), "it is completed"
    with pytest.raises(InvalidError, match="no base-file compaction"):
        table.services.compact_base_files(instant=table.timeline.writes()[0].requested)


def test_a_clustering_is_not_run_as_a_base_file_compaction() -> None:
    table = appended()
    planned = table.services.schedule_clustering()
    assert planned is not None
    with pytest.raises(InvalidError, match="no base-file compaction"):
        table.services.compact_base_files(instant=planned)
    assert len(table.timeline.pending()) == 1


def test_a_plan_that_names_other_files_than_its_clustering_is_refused() -> None:
    table = appended()
    store = store_of(table, SystemClock())
    planned = table.services.schedule_base_file_compaction()
    assert planned is not None
    (instant,) = store.load().pending()
    plan = decode_clustering_plan(store.read_requested(instant))
    fewer = replace(plan, groups=plan.groups[:1])
    table.services.rollback(planned)
    planned = store.new_time(store.load())
    store.request(Action.CLUSTERING, planned, encode_clustering_plan(fewer, table.uri))
    for run in (table.services.compact_base_files, table.services.cluster):
        with pytest.raises(CorruptTableError, match=f"Unschedule it .rollback of {planned}"):
            run(instant=planned)
    assert file_groups(table) == 10
