"""Conditions that Spark pushes into a read skip file slices by the metadata table, and the plan says why."""

from __future__ import annotations

import re
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import drawstring
import drawstring.spark
from drawstring.table import Table
from tests.support.rows import arrow_rows
from tests.support.tables import create

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("fare", pa.int64()),
        ("name", pa.string()),
    ]
)
QUIET = {
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
}
INDEXED = {
    **QUIET,
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}
DAY = (("a", "rome", 1, 10, "ann"), ("b", "oslo", 1, 1010, "bob"))
LATER = (("c", "rome", 2, 20, "cid"), ("d", "oslo", 2, 1020, "dan"))


def rows(*given: tuple[object, ...]) -> pa.Table:
    return arrow_rows(SCHEMA, *given)


@pytest.fixture(scope="module", params=["MERGE_ON_READ", "COPY_ON_WRITE"])
def table(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Table:
    """A table with two file slices in each of two cities; a MERGE_ON_READ table has a log file in each."""
    path = str(tmp_path_factory.mktemp("skipping") / "rides")
    made = create(SCHEMA, path, table_type=request.param)
    for each in (DAY, LATER):
        made.insert(rows(*each), options=INDEXED)
    made.indexes.create("by_name", "name", using="column_stats", options={"expr": "upper"})
    for each in (DAY, LATER):
        made.upsert(rows(*((*row[:2], 9, *row[3:]) for row in each)), options=QUIET)
    return drawstring.open(path)


def plan_of(df: DataFrame) -> str:
    """Return what `explain` prints."""
    printed = StringIO()
    with redirect_stdout(printed):
        df.explain(True)
    return printed.getvalue()


def skipped(df: DataFrame) -> tuple[int, set[str]]:
    """Return how many file slices a query reads by its plan, and what others were skipped by."""
    plan = plan_of(df)
    found = re.search(r"(\d+)(?: of \d+)? file slices(?: \(skipped (.*?)\))?", plan)
    assert found is not None, plan
    return int(found[1]), set(re.findall(r"by ([a-z_ ]+)", found[2] or ""))


CONDITIONS = {
    "id = 'c'": (1, {"record_index"}),
    "fare > 1015": (1, {"partition_stats", "column_stats"}),
    "fare > 500": (2, {"partition_stats"}),
    "upper(name) = 'BOB'": (1, {"expr_index_by_name"}),
    "upper(name) in ('ANN', 'DAN') and city = 'oslo'": (1, {"partition or bucket", "expr_index_by_name"}),
    "lower(name) = 'ann'": (4, set()),
}


def slices_by(df: DataFrame) -> set[int]:
    """Return how many file slices the scans of a query read by its plan."""
    plan = df._jdf.queryExecution().executedPlan().toString()
    return {int(count) for count in re.findall(r"(\d+)(?: of \d+)? file slices", plan)}


def files_read(df: DataFrame) -> int:
    """Return how many files Spark's own reader opens for the rows of a query."""
    df.collect()
    leaves = df._jdf.queryExecution().executedPlan().collectLeaves()
    return sum(int(leaves.apply(n).metrics().apply("numFiles").value()) for n in range(leaves.length()))


def ids(df: DataFrame) -> list[str]:
    return sorted(row.id for row in df.select("id").collect())


@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_of_queries_skip_by_the_index_that_knows(
    session: SparkSession, table: Table, where: str
) -> None:
    df = session.read.format("hudi").load(table.uri).where(where)
    assert skipped(df) == CONDITIONS[where]
    if table.config.table_type == "COPY_ON_WRITE":
        assert files_read(df) == CONDITIONS[where][0]
    found = table.scan(["id"], where=where)
    assert ids(df) == sorted(found.to_arrow()["id"].to_pylist())
    assert found.explain().file_slices == CONDITIONS[where][0]


@pytest.mark.parametrize("where", ["fare > 1015", "upper(name) = 'DAN'"])
def test_queries_of_other_times_skip_by_what_is_known_of_files(
    session: SparkSession, table: Table, where: str
) -> None:
    """A record index and statistics of partitions describe the latest rows only."""
    by = {"expr_index_by_name" if "name" in where else "column_stats"}
    _, second, _, last = (write.requested for write in table.timeline.writes())
    then = session.read.format("hudi").option("as.of.instant", last).load(table.uri).where(where)
    assert (skipped(then), ids(then)) == ((1, by), ["d"])
    changes = drawstring.spark.read(session, table.uri, incremental=(second, None)).where(where)
    assert (skipped(changes), ids(changes)) == ((1, by), ["d"])


def test_rows_that_a_later_write_deletes_are_still_found(
    session: SparkSession, table: Table, tmp_path: Path
) -> None:
    """A DataFrame shows the table of its load, also if it looks into the indexes later."""
    copy = str(tmp_path / "copy")
    shutil.copytree(table.uri, copy)
    df = session.read.format("hudi").load(copy)
    later = drawstring.open(copy)
    later.delete(rows(("a", "rome", 10, 10, "ann")), options=QUIET)
    later.upsert(rows(("e", "rome", 10, 5000, "eve")), options=QUIET)
    assert ids(df.where("id = 'a'")) == ["a"]
    assert ids(df.where("fare > 4000 or fare < 15")) == ["a"]
    assert ids(session.read.format("hudi").load(copy).where("id = 'a' or id = 'e'")) == ["e"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A COPY_ON_WRITE table of four files of one row each, in two cities."""
    made = create(SCHEMA, str(tmp_path_factory.mktemp("files") / "rides"))
    for each in (DAY, LATER):
        made.insert(rows(*each), options=INDEXED)
    return drawstring.open(made.uri)


def test_files_are_left_out_in_sql_behind_joins_and_unions(session: SparkSession, files: Table) -> None:
    df = session.read.format("hudi").load(files.uri)
    df.createOrReplaceTempView("skipped_rides")
    both = session.sql(
        "select l.id from skipped_rides l join skipped_rides r on l.ts = r.ts"
        " where l.id = 'c' and r.fare > 1015"
    )
    assert both.collect() == [("c",)]
    assert slices_by(both) == {1}
    either = df.where("id = 'a'").union(df.where("fare in (20, 1010)")).select("ID").where("upper(Id) <> 'B'")
    assert (ids(either), files_read(either)) == (["a", "c"], 3)
    nested = session.sql(
        "select id from skipped_rides where fare in (20, 1020)"
        " and id = (select max(id) from skipped_rides where fare < 500)"
    )
    assert ids(nested) == ["c"]
    assert slices_by(nested) == {2}


def test_a_condition_that_no_file_meets_reads_none(session: SparkSession, files: Table) -> None:
    df = session.read.format("hudi").load(files.uri).where("fare < 0")
    assert (df.collect(), files_read(df), skipped(df)) == ([], 0, (0, {"partition_stats"}))
    assert df.groupBy("city").count().collect() == []
    assert df.agg({"fare": "sum"}).collect() == [(None,)]


def test_a_cached_query_of_a_condition_serves_that_condition_only(
    session: SparkSession, files: Table
) -> None:
    df = session.read.format("hudi").load(files.uri)
    one = df.where("id = 'a'").cache()
    assert ids(one) == ["a"]
    assert ids(df) == ["a", "b", "c", "d"]
    assert ids(df.where("id = 'a' or id = 'd'")) == ["a", "d"]
    one.unpersist()


def test_buckets_of_keys_are_known(session: SparkSession, tmp_path: Path) -> None:
    made = create(SCHEMA, str(tmp_path / "t"), index="BUCKET", bucket_count=4)
    made.insert(rows(*((f"key{n}", "rome", n, n, "ann") for n in range(40))), options=QUIET)
    df = session.read.format("hudi").load(made.uri).where("id = 'key7'")
    assert (ids(df), files_read(df), skipped(df)) == (["key7"], 1, (1, {"partition or bucket"}))


def test_statements_of_tables_in_the_catalog_leave_files_out(session: SparkSession, files: Table) -> None:
    session.sql(f"create table skipped_files using hudi location '{files.uri}'")
    df = session.sql("select id from skipped_files where fare > 1015")
    assert (ids(df), files_read(df)) == (["d"], 1)
    nested = session.sql(
        "select id from skipped_files where fare > 15 and fare = (select max(fare) from skipped_files)"
    )
    assert ids(nested) == ["d"]
    assert slices_by(nested) == {3}
    session.sql("drop table skipped_files")
