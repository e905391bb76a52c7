"""An ingestion on Spark does what it does without, and either goes on where the other stopped."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.cli import app
from drawstring.testing import context_of
from drawstring.timeline.store import TimelineStore
from tests.support.kafka import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Row = dict[str, Any]
Put = Callable[[Path, int, list[Row]], None]
KEY = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.ordering.fields": "ts"}


def put_parquet(folder: Path, number: int, rows: list[Row]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), folder / f"{number}.parquet")


def put_orc(folder: Path, number: int, rows: list[Row]) -> None:
    po.write_table(pa.Table.from_pylist(rows), folder / f"{number}.orc")


def put_json(folder: Path, number: int, rows: list[Row]) -> None:
    (folder / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))


def put_csv(folder: Path, number: int, rows: list[Row]) -> None:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (folder / f"{number}.csv").write_text("\n".join(lines))


def arrive(folder: Path, put: Put, number: int, rows: list[Row]) -> None:
    """Let a file appear, each a second younger than the last one."""
    folder.mkdir(exist_ok=True)
    put(folder, number, rows)
    (path,) = folder.glob(f"{number}.*")
    os.utime(path, (1_000_000 + number, 1_000_000 + number))


class Both:
    """The same ingestion into two tables: one by turns on Spark and embedded, the other embedded."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        from drawstring.spark import SparkEngine

        self.folder = folder
        self.engine = SparkEngine(spark)
        self.is_on_spark = True

    def run(self, source: str, options: Mapping[str, Any], **more: Any) -> drawstring.IngestResult:
        """Ingest into both tables; the first one by the engine whose turn it is."""
        engine = self.engine if self.is_on_spark else None
        self.is_on_spark = not self.is_on_spark
        given = KEY | dict(options)
        one = drawstring.ingest(self.folder / "turns", source, options=given, engine=engine, **more)
        other = drawstring.ingest(self.folder / "embedded", source, options=given, **more)
        assert (one.batches, one.rows, one.rejected, one.checkpoint) == (
            other.batches,
            other.rows,
            other.rejected,
            other.checkpoint,
        )
        assert self.rows("turns") == self.rows("embedded")
        return one

    def rows(self, name: str) -> list[Row]:
        table = drawstring.open(self.folder / name)
        columns = [each for each in table.schema.names if not each.startswith("_hoodie_")]
        found: list[Row] = table.scan(columns=sorted(columns)).to_arrow().sort_by("id").to_pylist()
        return found

    def extra(self, name: str) -> list[Mapping[str, str]]:
        """Return what the commits have besides, as far as sources put it there."""
        table = drawstring.open(self.folder / name)
        store = TimelineStore(context_of(table).storage, table.config, context_of(table).clock)
        commits = [store.commit_metadata(each) for each in store.load().writes()]
        marks = ("checkpoint", "ingest")
        return [
            {key: text for key, text in each.extra.items() if any(mark in key for mark in marks)}
            for each in commits
        ]


@pytest.fixture
def both(tmp_path: Path, session: SparkSession) -> Both:
    return Both(tmp_path, session)


def rides(*ids: int, ts: int = 1) -> list[Row]:
    return [{"id": each, "ts": ts, "city": f"city {each % 3}", "fare": each / 2} for each in ids]


@pytest.mark.parametrize(
    ("source", "put"),
    [("parquet", put_parquet), ("orc", put_orc), ("json", put_json), ("csv", put_csv)],
)
def test_files_that_arrive_are_taken_by_either_engine_in_turn(both: Both, source: str, put: Put) -> None:
    folder = both.folder / "in"
    options = {"hoodie.streamer.source.dfs.root": str(folder), "hoodie.streamer.csv.header": "true"}
    arrive(folder, put, 0, rides(1, 2, 3))
    arrive(folder, put, 1, rides(3, 4, ts=2))
    assert both.run(source, options).rows == 5
    for number in range(2, 5):
        more = [row | {"fare": row["fare"] + number} for row in rides(number, number + 10, ts=number + 1)]
        arrive(folder, put, number, more)
        assert both.run(source, options).rows == 2
        assert not both.run(source, options)
    assert both.extra("turns") == both.extra("embedded")
    assert len(both.rows("turns")) == 7


def test_columns_that_come_later_and_wider_are_found_by_both(both: Both) -> None:
    folder = both.folder / "in"
    options = {"hoodie.streamer.source.dfs.root": str(folder)}
    arrive(folder, put_json, 0, [{"id": 1, "ts": 1, "n": 1, "at": {"x": 1}}])
    arrive(folder, put_json, 1, [{"id": 2, "ts": 1, "n": 1.5, "tags": ["a"]}])
    both.run("json", options)
    arrive(folder, put_json, 2, [{"id": 3, "ts": 1, "n": 2, "late": "yes"}])
    both.run("json", options)
    arrive(folder, put_json, 3, [{"id": 4, "ts": 1, "n": 2, "later": True}])
    both.run("json", options)
    assert [each["n"] for each in both.rows("turns")] == [1.0, 1.5, 2.0, 2.0]


def test_two_jobs_in_one_session_query_their_own_rows(
    both: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = type(both.engine.spark.range(1))
    name, have_named = frames.createOrReplaceTempView, Barrier(2, timeout=120)

    def name_together(frame: DataFrame, view: str) -> None:
        name(frame, view)
        have_named.wait()

    def ingest(number: int) -> list[int]:
        arrive(tmp_path / f"in{number}", put_parquet, 1, rides(number))
        options = KEY | {"hoodie.streamer.source.dfs.root": str(tmp_path / f"in{number}")}
        query = "SELECT * FROM <SRC> WHERE id > 0"
        target = tmp_path / f"table{number}"
        drawstring.ingest(target, "parquet", options=options, engine=both.engine, transformers=[query])
        found: list[int] = drawstring.open(target).scan(["id"]).to_arrow().column("id").to_pylist()
        return found

    monkeypatch.setattr(frames, "createOrReplaceTempView", name_together)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(ingest, (1, 2))) == [[1], [2]]


def test_transformers_run_in_spark(both: Both) -> None:
    folder = both.folder / "in"
    arrive(folder, put_parquet, 0, [row | {"at": {"x": row["id"]}} for row in rides(1, 2, 3)])
    options = {
        "hoodie.streamer.source.dfs.root": str(folder),
        "hoodie.streamer.transformer.class": "SqlQueryBasedTransformer,FlatteningTransformer",
        "hoodie.streamer.transformer.sql": "SELECT *, nvl(city, '-') AS town FROM <SRC> WHERE id > 1;",
    }
    both.run("parquet", options)
    assert [(each["id"], each["town"], each["at_x"]) for each in both.rows("turns")] == [
        (2, "city 2", 2),
        (3, "city 0", 3),
    ]


def test_a_function_gets_a_dataframe_and_a_query_has_sparks_functions(both: Both) -> None:
    folder = both.folder / "in"
    arrive(folder, put_parquet, 0, rides(1, 2))

    def doubled(df: DataFrame) -> DataFrame:
        return df.withColumn("fare", df.fare * 2)

    result = drawstring.ingest(
        both.folder / "t",
        "parquet",
        options=KEY | {"hoodie.streamer.source.dfs.root": str(folder)},
        transformers=[doubled, "SELECT *, soundex(city) AS sound FROM <SRC>", lambda df: df.toArrow()],
        engine=both.engine,
    )
    assert result.rows == 2
    assert [(each["fare"], each["sound"]) for each in both.rows("t")] == [(1.0, "C300"), (2.0, "C300")]


def test_a_statement_that_is_no_query_is_refused_and_not_run(both: Both) -> None:
    folder = both.folder / "in"
    arrive(folder, put_parquet, 0, rides(1))
    both.engine.spark.sql("CREATE OR REPLACE TEMP VIEW kept AS SELECT 1 AS id")
    for query in ("DROP VIEW kept", "SELECT nothing FROM <SRC>", "SELECT id FRM <SRC>"):
        with pytest.raises(InvalidError, match=rf"The query '{query}' failed: .*\[[A-Z_.]+\] "):
            drawstring.ingest(
                both.folder / "t",
                "parquet",
                options=KEY | {"hoodie.streamer.source.dfs.root": str(folder)},
                transformers=[query],
                engine=both.engine,
            )
    assert both.engine.spark.table("kept").count() == 1
    assert not (both.folder / "t").exists()


def test_bad_records_go_to_the_error_table(both: Both) -> None:
    folder = both.folder / "in"
    arrive(folder, put_json, 0, rides(1))
    options = {"hoodie.streamer.source.dfs.root": str(folder)}
    both.run("json", options)
    both.is_on_spark = True
    lines = [*map(json.dumps, rides(2)), "nonsense", '{"id": "x", "ts": 1}', '{"ts": 1}', '{"ts": 1}']
    arrive(folder, lambda to, at, _: put_text(to, at, lines), 1, [])
    for name in ("turns", "embedded"):
        more = options | {
            "hoodie.errortable.enable": "true",
            "hoodie.errortable.base.path": str(both.folder / f"bad {name}"),
        }
        engine = both.engine if name == "turns" else None
        result = drawstring.ingest(both.folder / name, "json", options=KEY | more, engine=engine)
        assert (result.rows, result.rejected) == (3, 4)
    assert both.rows("turns") == both.rows("embedded")
    bad = [bad_records(both.folder / f"bad {name}") for name in ("turns", "embedded")]
    assert bad[0] == bad[1]
    assert len(bad[0]) == 4


def bad_records(folder: Path) -> list[Row]:
    names = ["data_record", "source_position"]
    table = drawstring.open(folder).scan(columns=names).to_arrow()
    found: list[Row] = table.sort_by([(each, "ascending") for each in names]).to_pylist()
    return found


def put_text(folder: Path, number: int, lines: list[str]) -> None:
    (folder / f"{number}.json").write_text("\n".join(lines))


def test_records_that_cannot_be_read_are_an_error_or_left_out(both: Both) -> None:
    folder = both.folder / "in"
    arrive(folder, lambda to, at, _: put_text(to, at, ['{"id": 1, "ts": 1}', "nonsense"]), 0, [])
    options = {"hoodie.streamer.source.dfs.root": str(folder)}
    with pytest.raises(InvalidError, match=r"The record at 0\.json:2 cannot be read"):
        drawstring.ingest(both.folder / "t", "json", options=KEY | options, engine=both.engine)
    result = both.run("json", options | {"hoodie.streamer.source.json.skip.invalid.records": "true"})
    assert (result.rows, result.rejected) == (1, 1)


def test_another_table_is_followed_with_its_deletes(both: Both) -> None:
    schema = pa.schema({"id": pa.int64(), "ts": pa.int64(), "city": pa.string()})
    source = drawstring.create(
        both.folder / "s", schema, table_type="MERGE_ON_READ", record_key="id", ordering="ts"
    )
    options = {"hoodie.streamer.source.hoodieincr.path": source.uri}
    for ts in range(1, 4):
        source.upsert(pa.table([[ts, ts + 1, ts + 10], [ts] * 3, ["oslo"] * 3], schema))
        both.run("hudi", options)
    (both.folder / "changes").mkdir()
    changes = Both(both.folder / "changes", both.engine.spark)
    changes.run("hudi-changes", options)
    source.delete(where="id = 2")
    source.upsert(pa.table([[3], [9], ["rome"]], schema))
    changes.is_on_spark = True
    changes.run("hudi-changes", options)
    assert [each["id"] for each in changes.rows("turns")] == [1, 3, 4, 11, 12, 13]


def test_a_database_and_a_query_are_read(both: Both) -> None:
    with sqlite3.connect(both.folder / "shop.db") as shop:
        shop.execute("CREATE TABLE sales (id INTEGER, ts BIGINT, item TEXT)")
        shop.execute("INSERT INTO sales VALUES (1, 10, 'tea'), (2, 20, 'cup')")
    options = {
        "hoodie.streamer.jdbc.url": f"jdbc:sqlite:{both.folder / 'shop.db'}",
        "hoodie.streamer.jdbc.table.name": "sales",
        "hoodie.streamer.jdbc.incr.pull": "true",
        "hoodie.streamer.jdbc.table.incr.column.name": "ts",
    }
    assert both.run("jdbc", options).checkpoint == "20"
    with sqlite3.connect(both.folder / "shop.db") as shop:
        shop.execute("INSERT INTO sales VALUES (3, 30, 'pot')")
    assert both.run("jdbc", options).rows == 1
    (both.folder / "sql").mkdir()
    query = f"SELECT id, ts, upper(item) AS item FROM hudi.`{both.folder / 'turns'}` WHERE id > 1"
    of_query = Both(both.folder / "sql", both.engine.spark)
    assert of_query.run("sql", {"hoodie.streamer.source.sql.sql.query": query}).rows == 2
    assert [each["item"] for each in of_query.rows("turns")] == ["CUP", "POT"]


def test_executors_read_a_topic(both: Both, broker: Broker) -> None:
    broker.create("spark.rides", 2)
    options = {
        "bootstrap.servers": broker.address,
        "auto.offset.reset": "earliest",
        "hoodie.streamer.source.kafka.topic": "spark.rides",
        "hoodie.streamer.source.kafka.append.offsets": "true",
    }
    for first in (0, 20, 40):
        broker.send("spark.rides", [json.dumps(row).encode() for row in rides(*range(first, first + 20))], 2)
        assert both.run("kafka-json", options).rows == 20
    assert not both.run("kafka-json", options)
    assert both.extra("turns") == both.extra("embedded")


def test_what_is_no_engine_and_what_executors_cannot_reach_is_told(both: Both) -> None:
    (both.folder / "in").mkdir()
    options = KEY | {"hoodie.streamer.source.dfs.root": str(both.folder / "in")}
    with pytest.raises(
        InvalidError, match=r"Leave it out, or give\s+drawstring\.spark\.SparkEngine\(spark\)"
    ):
        drawstring.ingest(both.folder / "t", "parquet", options=options, engine=both.engine.spark)
    with pytest.raises(UnsupportedError, match="executors cannot read a memory:// table"):
        drawstring.ingest("memory://t", "parquet", options=options, engine=both.engine)


def test_an_error_of_a_function_on_spark_names_it(both: Both) -> None:
    arrive(both.folder / "in", put_parquet, 0, rides(1))
    options = KEY | {"hoodie.streamer.source.dfs.root": str(both.folder / "in")}

    def selecting(df: DataFrame) -> DataFrame:
        return df.select("nothing")

    with pytest.raises(InvalidError, match=r"selecting failed with AnalysisException: .*, in selecting"):
        drawstring.ingest(
            both.folder / "t", "parquet", options=options, transformers=[selecting], engine=both.engine
        )


@pytest.mark.parametrize("given", [5, "local[2]", None])
def test_what_is_no_session_is_no_engine(given: Any) -> None:
    from drawstring.spark import SparkEngine

    with pytest.raises(InvalidError, match="is no session of Spark"):
        SparkEngine(given)


def test_a_dataframe_is_no_engine_but_has_a_session(spark: SparkSession) -> None:
    from drawstring.spark import SparkEngine

    given: Any = spark.range(1)
    with pytest.raises(InvalidError, match=r"This is a DataFrame\. Give its session: df\.sparkSession"):
        SparkEngine(given)
    with pytest.raises(InvalidError, match="is no session of Spark"):
        SparkEngine(given.sparkSession.sparkContext)


def test_a_mistaken_command_starts_no_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from drawstring.spark.session import StartedLate

    monkeypatch.setattr(StartedLate, "batches", lambda engine: pytest.fail("a session was started"))
    (tmp_path / "in").mkdir()
    folder = f"--option=hoodie.streamer.source.dfs.root={tmp_path / 'in'}"
    for more, why in (
        (["--source", "parket"], "There is no source 'parket'"),
        (["--source", "parquet"], "The source has no folder"),
        (["--source", "parquet", f"{folder}/none"], "There is no folder"),
        (["--source", "parquet", folder, "--transformer", "no.such:thing"], "cannot be imported"),
        (["--source", "parquet", folder, "--option=hoodie.index.type=NONE"], "hoodie.index.type"),
        (["--source", "kafka-json"], "The source has no topic"),
        (["--source", "parquet", folder, "--spark-conf", "hoodie.a=b"], "is no setting of Spark"),
    ):
        assert app.run(["ingest", str(tmp_path / "t"), "--engine", "spark", *more]) == 2
        assert why in capsys.readouterr().err


def test_the_command_takes_the_session_of_the_process(both: Both, capsys: pytest.CaptureFixture[str]) -> None:
    arrive(both.folder / "in", put_parquet, 0, rides(1, 2))
    options = {"hoodie.streamer.source.dfs.root": str(both.folder / "in"), **KEY}
    command = ["ingest", str(both.folder / "t"), "--source", "parquet"]
    command += [f"--option={key}={value}" for key, value in options.items()]
    assert app.run([*command, "--spark-conf", "spark.sql.shuffle.partitions=2"]) == 2
    assert "--spark-conf is for --engine spark" in capsys.readouterr().err
    query = "SELECT *, soundex(city) AS sound FROM <SRC>"
    assert app.run([*command, "--engine", "spark", "--transformer", query]) == 0
    assert capsys.readouterr().out.startswith("ingested 2 rows in 1 batch, ")
    assert {each["sound"] for each in both.rows("t")} == {"C300"}
