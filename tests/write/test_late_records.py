"""Copy on write leaves a file group as it is when none of its changes takes effect."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from drawstring.formats.parquet import reader as parquet_read
from drawstring.table import Table
from tests.support.faults import leftovers, orphans
from tests.support.merge_tables import KINDS, names, table_of, timed
from tests.support.rows import SCHEMA, changed_since, held, rides
from tests.support.tables import BUCKETS, WITHOUT_SERVICES, create

FIRST = [(f"{city}{number:02}", city, 10, 1.0) for number in range(40) for city in ("rome", "oslo")]
LATE = [(key, city, 9, 2.0) for key, city, _, _ in FIRST]
DELETED = pa.field("_hoodie_is_deleted", pa.bool_())

indexes = pytest.mark.parametrize(
    "properties",
    [{}, BUCKETS, {"hoodie.index.type": "BLOOM"}, {"hoodie.index.type": "GLOBAL_SIMPLE"}],
    ids=["simple", "bucket", "bloom", "global"],
)


def base_files(table: Table) -> set[str]:
    return {each.base.status.path for each in table.inspect.files() if each.base}


@pytest.fixture(params=["one batch", "many batches"])
def batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let base files come in one batch, or in more than are held back."""
    if request.param == "many batches":
        small = parquet_read.ParquetQuery

        def in_small_batches(*args: Any, **how: Any) -> parquet_read.ParquetQuery:
            return small(*args, **{"batch_rows": 4, **how})

        monkeypatch.setattr(parquet_read, "ParquetQuery", in_small_batches)


@indexes
@pytest.mark.parametrize("version", [6, 9])
def test_late_records_leave_the_files_and_make_a_commit(properties: dict[str, str], version: int) -> None:
    table = create(version=version, properties=properties)
    table.upsert(rides(*FIRST), options=WITHOUT_SERVICES)
    files, rows = base_files(table), table.scan().to_arrow()
    late = table.upsert(rides(*LATE), options=WITHOUT_SERVICES)
    assert (late.files, late.updates, late.records_written) == (0, 0, 0)
    assert base_files(table) == files
    assert table.scan().to_arrow().equals(rows)
    assert table.timeline.writes()[-1].requested == late.instant
    assert (orphans(table), leftovers(table)) == ([], [])


def test_reads_of_any_time_are_those_of_a_table_whose_files_were_written_anew() -> None:
    table = create()
    table.upsert(rides(*FIRST), options=WITHOUT_SERVICES)
    late = table.upsert(rides(*LATE), options=WITHOUT_SERVICES)
    newer = ("rome01", "rome", 11, 3.0)
    table.upsert(rides(newer), options=WITHOUT_SERVICES)
    first, middle, _ = table.timeline.writes()
    assert held(table, as_of=late.instant) == held(table, as_of=first.requested) == sorted(FIRST)
    assert (changed_since(table, first), changed_since(table, middle)) == ([newer], [newer])


@pytest.mark.usefixtures("batches")
@indexes
@pytest.mark.parametrize("at", [0, 17, 39])
def test_one_record_that_wins_makes_its_file_group_alone_new(properties: dict[str, str], at: int) -> None:
    table = create(properties=properties)
    table.upsert(rides(*FIRST), options=WITHOUT_SERVICES)
    files, newer = base_files(table), (f"rome{at:02}", "rome", 10, 3.0)
    done = table.upsert(rides(*LATE, newer), options=WITHOUT_SERVICES)
    assert (done.files, done.updates) == (1, 1)
    assert len(base_files(table) - files) == 1
    assert held(table) == sorted([*(each for each in FIRST if each[:2] != newer[:2]), newer])


@pytest.mark.usefixtures("batches")
@indexes
@pytest.mark.parametrize("bloom", ["true", "false"])
def test_a_new_record_among_late_ones_is_inserted(properties: dict[str, str], bloom: str) -> None:
    table = create(properties=properties)
    options = {**WITHOUT_SERVICES, "hoodie.parquet.bloom.filter.enabled": bloom}
    table.upsert(rides(*FIRST), options=options)
    new = ("new", "oslo", 1, 3.0)
    done = table.upsert(rides(*LATE, new), options=options)
    assert (done.inserts, done.updates) == (1, 0)
    assert held(table) == sorted([*FIRST, new])


@pytest.mark.usefixtures("batches")
@indexes
def test_deletes_that_come_late_or_find_nothing_leave_the_files(properties: dict[str, str]) -> None:
    table = create(SCHEMA.append(DELETED), properties=properties)
    table.upsert(rides(*FIRST), options=WITHOUT_SERVICES)
    files = base_files(table)
    gone = rides(*LATE, ("unknown", "rome", 99, 1.0))
    assert (
        table.upsert(
            gone.append_column(DELETED, pa.array([True] * len(gone))), options=WITHOUT_SERVICES
        ).files
        == 0
    )
    assert table.delete(rides(("unknown", "rome", 99, 1.0)), options=WITHOUT_SERVICES).files == 0
    assert (base_files(table), held(table)) == (files, sorted(FIRST))
    timely = rides(("rome20", "rome", 10, 1.0)).append_column(DELETED, pa.array([True]))
    assert table.upsert(pa.concat_tables([gone.append_column(DELETED, pa.array([True] * len(gone))), timely]),
                        options=WITHOUT_SERVICES).deletes == 1  # fmt: skip
    assert held(table) == sorted(each for each in FIRST if each[:2] != ("rome20", "rome"))


@pytest.mark.usefixtures("batches")
def test_a_later_record_of_the_same_time_wins_as_ever() -> None:
    table = create()
    table.upsert(rides(*FIRST), options=WITHOUT_SERVICES)
    again = [(key, city, 10, 5.0) for key, city, _, _ in FIRST]
    assert table.upsert(rides(*again), options=WITHOUT_SERVICES).updates == len(again)
    assert held(table) == sorted(again)


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize("mode", ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"])
def test_late_records_are_no_changes(mode: str) -> None:
    logs = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": mode}
    table = create(properties=logs)
    start = table.upsert(rides(*FIRST), options=WITHOUT_SERVICES)
    table.upsert(rides(*LATE), options=WITHOUT_SERVICES)
    table.upsert(rides(*LATE, ("oslo30", "oslo", 11, 7.0)), options=WITHOUT_SERVICES)
    found = table.changes(start.completed).to_arrow().to_pylist()
    assert [(row["op"], json.loads(row["after"])["fare"]) for row in found] == [("u", 7.0)]


@pytest.mark.usefixtures("batches")
def test_late_records_that_fill_nothing_leave_the_files_where_records_merge_by_column() -> None:
    keys = [f"k{number:02}" for number in range(20)]
    with table_of(KINDS["v9 ignore defaults"], "COPY_ON_WRITE") as table:
        table.upsert(timed(*((key, 5, "x") for key in keys), ("last", 5, None)), options=WITHOUT_SERVICES)
        files = base_files(table)
        assert table.upsert(timed(*((key, 4, "late") for key in keys)), options=WITHOUT_SERVICES).files == 0
        assert base_files(table) == files
        assert (
            table.upsert(timed(("k01", 4, "late"), ("last", 4, "late")), options=WITHOUT_SERVICES).updates
            == 1
        )
        assert names(table) == {**dict.fromkeys(keys, "x"), "last": "late"}


@pytest.mark.usefixtures("batches")
def test_keys_made_from_columns_tell_it_too() -> None:
    table = create(properties={"hoodie.populate.meta.fields": "false"})
    table.upsert(rides(*FIRST), options=WITHOUT_SERVICES)
    assert table.upsert(rides(*LATE), options=WITHOUT_SERVICES).files == 0
    newer = ("rome33", "rome", 12, 3.0)
    assert table.upsert(rides(*LATE, newer), options=WITHOUT_SERVICES).updates == 1
    assert held(table) == sorted([*(each for each in FIRST if each[:2] != newer[:2]), newer])


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize(
    ("kind", "early", "late", "later"),
    [
        (pa.string(), "b", "a", "c"),
        (pa.int32(), -5, -6, -4),
        (pa.float64(), 1.5, 1.0, float("nan")),
        (pa.date32(), dt.date(2024, 1, 2), dt.date(2024, 1, 1), dt.date(2024, 1, 3)),
        (pa.decimal128(9, 2), Decimal("1.50"), Decimal("1.49"), Decimal("1.51")),
        (
            pa.timestamp("us", "UTC"),
            dt.datetime(2024, 1, 2),
            dt.datetime(2024, 1, 1),
            dt.datetime(2024, 1, 3),
        ),
        (pa.timestamp("us"), dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 3)),
        (pa.int64(), 5, None, 6),
    ],
    ids=str,
)
def test_ordering_values_of_all_kinds_come_late(kind: pa.DataType, early: Any, late: Any, later: Any) -> None:
    def rows(value: Any, fare: float, numbers: range = range(20)) -> pa.Table:
        columns = [pa.array([f"k{at:02}" for at in numbers]), pa.array([value] * len(numbers), kind)]
        return pa.table([*columns, pa.array([fare] * len(numbers))], names=["id", "at", "fare"])

    table = create(rows(early, 1.0).schema, partition_by=(), ordering="at")
    table.upsert(rows(early, 1.0), options=WITHOUT_SERVICES)
    assert table.upsert(rows(late, 2.0), options=WITHOUT_SERVICES).files == 0
    assert table.upsert(rows(late, 2.0, range(21)), options=WITHOUT_SERVICES).inserts == 1
    assert table.upsert(rows(later, 3.0, range(19, 20)), options=WITHOUT_SERVICES).updates == 1
    assert table.upsert(rows(late, 4.0, range(19)), options=WITHOUT_SERVICES).files == 0
    found = table.scan(columns=["id", "fare"]).to_arrow().sort_by("id")["fare"].to_pylist()
    assert found == [*[1.0] * 19, 3.0, 2.0]


def test_a_column_that_late_records_bring_is_there_and_empty() -> None:
    table = create()
    table.upsert(rides(*FIRST), options=WITHOUT_SERVICES)
    wider = rides(*LATE).append_column("tip", pa.array([1.0] * len(LATE)))
    assert table.upsert(wider, options=WITHOUT_SERVICES).files == 0
    assert table.scan(columns=["tip"]).to_arrow().column("tip").null_count == len(FIRST)


def test_no_trace_is_left_where_empty_commits_are_not_allowed() -> None:
    table = create()
    table.upsert(rides(*FIRST), options=WITHOUT_SERVICES)
    before = table.timeline.instants
    assert (
        table.upsert(rides(*LATE), options={**WITHOUT_SERVICES, "hoodie.allow.empty.commit": "false"}).instant
        == ""
    )
    assert table.timeline.instants == before


def test_a_table_is_cleaned_and_archived_across_commits_without_files() -> None:
    table = create()
    often = {
        "hoodie.clean.commits.retained": "2",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
    }
    table.upsert(rides(*FIRST), options=often)
    for number in range(8):
        table.upsert(rides(*LATE), options=often)
        table.upsert(rides(("rome00", "rome", 11 + number, 1.0)), options=often)
    assert len(held(table)) == len(FIRST)
    assert table.services.validate().is_sound
