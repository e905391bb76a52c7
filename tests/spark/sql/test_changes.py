"""`UPDATE`, `DELETE` and `MERGE INTO`: each one commit, by Spark's rules for rows and Hudi's for keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.query.table_state import facts_of
from drawstring.testing import context_of
from drawstring.write import executor
from tests.support.sql import Ask

pytestmark = pytest.mark.spark

OCC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
TYPES = pytest.mark.parametrize("kind", ["cow", "mor"])


def rides(sql: Ask, kind: str = "cow", more: str = "") -> None:
    sql(
        "CREATE TABLE rides (id INT, fare DOUBLE, ts BIGINT, city STRING) USING hudi PARTITIONED BY (city)"
        f" TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = '{kind}'{more})"
    )
    sql("INSERT INTO rides VALUES (1, 1.5, 1, 'oslo'), (2, 2.5, 1, 'lima'), (3, 3.5, 1, 'oslo')")


def writes(tmp_path: Path) -> list[str]:
    table = drawstring.open(f"{tmp_path}/lake/rides")
    return [str(each.action) for each in table.timeline.writes()]


@TYPES
def test_an_update_sets_columns_of_the_rows_that_meet_a_condition(
    sql: Ask, tmp_path: Path, kind: str
) -> None:
    rides(sql, kind)
    sql("UPDATE rides SET fare = fare * 2, ts = ts + 1 WHERE city = 'oslo' AND fare > 2")
    assert sql("SELECT id, fare, ts FROM rides") == [(1, 1.5, 1), (2, 2.5, 1), (3, 7.0, 2)]
    sql("UPDATE rides r SET r.fare = 0 WHERE r.id IN (SELECT max(id) FROM rides)")
    assert sql("SELECT id, fare FROM rides") == [(1, 1.5), (2, 2.5), (3, 0.0)]
    assert len(writes(tmp_path)) == 3


@TYPES
def test_a_delete_removes_the_rows_that_meet_a_condition(sql: Ask, tmp_path: Path, kind: str) -> None:
    rides(sql, kind)
    sql("DELETE FROM rides WHERE fare < 2")
    assert sql("SELECT id FROM rides") == [(2,), (3,)]
    sql("DELETE FROM rides WHERE id IN (SELECT id FROM rides WHERE fare > 3) OR id IS NULL")
    assert sql("SELECT id FROM rides") == [(2,)]
    assert len(writes(tmp_path)) == 3


@TYPES
def test_a_change_of_one_of_several_records_with_a_key_is_refused(sql: Ask, kind: str) -> None:
    rides(sql, kind)
    sql("SET hoodie.combine.before.insert = false")
    sql(
        "INSERT INTO rides SELECT /*+ COALESCE(1) */ * FROM VALUES (4, 2.0, 1L, 'bern'), (4, 4.5, 2L, 'bern')"
    )
    assert sql("SELECT count(DISTINCT _hoodie_file_name) FROM rides WHERE id = 4") == [(1,)]
    everything = sql("SELECT id, fare FROM rides")
    assert everything == [(1, 1.5), (2, 2.5), (3, 3.5), (4, 2.0), (4, 4.5)]
    for change in (
        "DELETE FROM rides WHERE fare = 2",
        "UPDATE rides SET fare = 9 WHERE fare = 2",
        "MERGE INTO rides t USING (SELECT 2.0D AS fare) s ON t.fare = s.fare WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(InvalidError, match="several records with the key"):
            sql(change)
        assert sql("SELECT id, fare FROM rides") == everything
    sql("DELETE FROM rides WHERE id = 4")
    assert sql("SELECT id FROM rides") == [(1,), (2,), (3,)]


@TYPES
def test_a_merge_with_all_clauses_is_one_commit(sql: Ask, tmp_path: Path, kind: str) -> None:
    rides(sql, kind)
    sql("INSERT INTO rides VALUES (4, 4.5, 1, 'rome'), (5, 5.5, 1, 'rome')")
    before = len(writes(tmp_path))
    sql(
        "MERGE INTO rides t USING (SELECT * FROM VALUES (1, 10.0D, 2L, 'oslo'), (2, 20.0D, 2L, 'lima'),"
        " (7, 70.0D, 2L, 'oslo'), (8, 80.0D, 2L, 'bern') AS s(id, fare, ts, city)) s ON t.id = s.id"
        " WHEN MATCHED AND s.fare > 15 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET fare = s.fare + t.fare, ts = s.ts"
        " WHEN NOT MATCHED AND s.id = 7 THEN INSERT (id, ts, city) VALUES (s.id, s.ts, s.city)"
        " WHEN NOT MATCHED THEN INSERT *"
        " WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE"
        " WHEN NOT MATCHED BY SOURCE AND t.city = 'rome' THEN UPDATE SET fare = -1, ts = 2"
    )
    assert sql("SELECT id, fare, city FROM rides") == [
        (1, 11.5, "oslo"),
        (4, -1.0, "rome"),
        (5, -1.0, "rome"),
        (7, None, "oslo"),
        (8, 80.0, "bern"),
    ]
    assert len(writes(tmp_path)) == before + 1


def test_a_merge_follows_sparks_rules(sql: Ask) -> None:
    rides(sql)
    source = "(SELECT 1 AS id, 9.5D AS fare, 2L AS ts, 'oslo' AS city)"
    with pytest.raises(InvalidError, match="Several rows change the record with key '1'"):
        sql(
            f"MERGE INTO rides t USING (SELECT * FROM {source} UNION ALL SELECT * FROM {source}) s"
            " ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
        )
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        sql(f"MERGE INTO rides t USING {source} s ON t.id = s.nope WHEN MATCHED THEN DELETE")
    sql(f"MERGE INTO rides t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    sql(
        "MERGE INTO rides t USING (SELECT id + 10 AS id, fare, ts, city FROM rides) s ON t.id = s.id"
        " WHEN NOT MATCHED AND s.fare > 3 THEN INSERT *"
    )
    assert sql("SELECT id, fare FROM rides") == [(1, 9.5), (11, 9.5), (13, 3.5), (2, 2.5), (3, 3.5)]


def test_a_change_follows_hudis_rules_for_keys(sql: Ask) -> None:
    rides(sql)
    with pytest.raises(InvalidError, match="change the record key of a row from '1' to '7', but id cannot"):
        sql("UPDATE rides SET id = 7 WHERE id = 1")
    with pytest.raises(InvalidError, match="would change the partition path of a row"):
        sql("UPDATE rides SET city = 'rome' WHERE id = 1")
    sql("UPDATE rides SET fare = 9.5, ts = 0 WHERE id = 2")
    assert sql("SELECT id, fare, ts FROM rides WHERE id < 3") == [(1, 1.5, 1), (2, 2.5, 1)]
    sql(
        "MERGE INTO rides t USING (SELECT 1 AS id, 9.5D AS fare, 0L AS ts, 'rome' AS city) s"
        " ON t.id = s.id AND t.fare > 100 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    assert sql("SELECT id, fare, city FROM rides WHERE id = 1") == [(1, 1.5, "oslo"), (1, 9.5, "rome")]


@pytest.mark.parametrize(
    "more",
    [
        "",
        ", primaryKey = 'id', 'hoodie.index.type' = 'GLOBAL_SIMPLE'",
        *(
            pytest.param(f", primaryKey = 'id', {more}", marks=pytest.mark.long)
            for more in (
                "'hoodie.index.type' = 'BUCKET', 'hoodie.bucket.index.num.buckets' = '2'",
                "'hoodie.populate.meta.fields' = 'false'",
            )
        ),
    ],
)
def test_rows_keep_their_place_with_every_index(sql: Ask, more: str) -> None:
    sql(
        "CREATE TABLE rides (id INT, fare DOUBLE, city STRING) USING hudi PARTITIONED BY (city)"
        f" TBLPROPERTIES (type = 'mor'{more})"
    )
    sql("INSERT INTO rides VALUES (1, 1.5, 'oslo'), (2, 2.5, 'lima'), (3, 3.5, 'oslo')")
    sql("UPDATE rides SET fare = fare + 1 WHERE id < 3")
    sql("DELETE FROM rides WHERE id = 3")
    merge = (
        "MERGE INTO rides t USING (SELECT * FROM VALUES (1, 10.0D, 'oslo'), (4, 40.0D, 'lima'),"
        " (5, 50.0D, 'rome') AS s(id, fare, city)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET fare = s.fare WHEN NOT MATCHED THEN INSERT *"
    )
    sql(merge)
    sql(merge)
    assert sql("SELECT * FROM rides") == [
        (1, 10.0, "oslo"),
        (2, 3.5, "lima"),
        (4, 40.0, "lima"),
        (5, 50.0, "rome"),
    ]


MOVES = ", 'hoodie.index.type' = 'GLOBAL_SIMPLE'"
STAYS = ", 'hoodie.index.type' = 'RECORD_INDEX', 'hoodie.metadata.record.index.enable' = 'true'"
SOURCE = (
    "(SELECT * FROM VALUES (1, 10.0D, 2L, 'lima'), (2, 20.0D, 0L, 'rome'), (3, 30.0D, 1L, 'rome'),"
    " (4, 40.0D, 1L, 'oslo') AS s(id, fare, ts, city)) s"
)


@TYPES
@pytest.mark.parametrize(
    ("more", "city_of_3"),
    [
        pytest.param(MOVES, "rome", id="moves"),
        pytest.param(STAYS, "oslo", id="stays"),
        *(
            pytest.param(more, city, id=name, marks=pytest.mark.long)
            for more, city, name in (
                (
                    STAYS + ", 'hoodie.record.index.update.partition.path' = 'true'",
                    "rome",
                    "record index that moves",
                ),
                (
                    MOVES + ", 'hoodie.simple.index.update.partition.path' = 'false'",
                    "oslo",
                    "simple index that keeps",
                ),
                (", 'hoodie.index.type' = 'GLOBAL_BLOOM'", "rome", "bloom"),
            )
        ),
    ],
)
def test_a_merge_moves_rows_to_other_partitions_under_a_global_index(
    sql: Ask, kind: str, more: str, city_of_3: str
) -> None:
    rides(sql, kind, more)
    merge = f"MERGE INTO rides t USING {SOURCE} ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    sql(f"{merge} WHEN NOT MATCHED THEN INSERT *")
    city_of_1 = "lima" if city_of_3 == "rome" else "oslo"
    assert sql("SELECT id, fare, ts, city, _hoodie_partition_path FROM rides") == [
        (1, 10.0, 2, city_of_1, f"city={city_of_1}"),
        (2, 2.5, 1, "lima", "city=lima"),
        (3, 30.0, 1, city_of_3, f"city={city_of_3}"),
        (4, 40.0, 1, "oslo", "city=oslo"),
    ]
    sql("UPDATE rides SET fare = 11, ts = 3 WHERE id = 1")
    sql("DELETE FROM rides WHERE id = 3")
    assert sql("SELECT id, fare FROM rides WHERE id < 4") == [(1, 11.0), (2, 2.5)]
    deleting = "(SELECT * FROM VALUES (1, 4L, 'lima'), (4, 2L, 'rome') AS s(id, ts, city)) s"
    sql(f"MERGE INTO rides t USING {deleting} ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert sql("SELECT id, fare FROM rides") == [(2, 2.5)]


@TYPES
def test_a_merge_that_moves_a_row_in_two_ways_or_without_a_global_index_is_refused(
    sql: Ask, kind: str
) -> None:
    merge = f"MERGE INTO rides t USING {SOURCE} ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    rides(sql, kind, MOVES)
    with pytest.raises(InvalidError, match="Several rows change the record"):
        sql(
            "MERGE INTO rides t USING (VALUES (1, 8L, 'bern'), (1, 9L, 'rome') AS v(id, ts, at)) s"
            " ON t.id = s.id WHEN MATCHED THEN UPDATE SET ts = s.ts, city = s.at"
        )
    with pytest.raises(InvalidError, match="would change the partition path of a row"):
        sql("UPDATE rides SET city = 'rome' WHERE id = 1")
    sql("DROP TABLE rides")
    rides(sql, kind)
    with pytest.raises(InvalidError, match="would change the partition path of a row"):
        sql(merge)
    assert sql("SELECT id, city FROM rides") == [(1, "oslo"), (2, "lima"), (3, "oslo")]


def test_a_merge_moves_rows_under_a_global_index_of_the_session(sql: Ask) -> None:
    rides(sql, "cow")
    sql("SET hoodie.index.type = GLOBAL_BLOOM")
    source = "(SELECT * FROM VALUES (1, 10.0D, 2L, 'lima') AS s(id, fare, ts, city)) s"
    sql(f"MERGE INTO rides t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    assert sql("SELECT id, city, _hoodie_partition_path FROM rides WHERE id = 1") == [
        (1, "lima", "city=lima")
    ]


def test_a_global_index_needs_a_match_by_key(sql: Ask) -> None:
    rides(sql, more=", 'hoodie.index.type' = 'GLOBAL_SIMPLE'")
    with pytest.raises(UnsupportedError, match="must match on the record key only"):
        sql(
            "MERGE INTO rides t USING (SELECT 1 AS id, 9.5D AS fare, 2L AS ts, 'rome' AS city) s"
            " ON t.id = s.id AND t.city = s.city WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
        )


def test_a_delete_of_whole_partitions_replaces_them(sql: Ask, tmp_path: Path) -> None:
    rides(sql)
    sql("DELETE FROM rides WHERE city IN ('oslo', 'nowhere')")
    assert sql("SELECT id FROM rides") == [(2,)]
    sql("DELETE FROM rides")
    assert sql("SELECT id FROM rides") == []
    assert writes(tmp_path) == ["commit", "replacecommit", "replacecommit"]
    sql("DELETE FROM rides WHERE fare > 1")


def test_a_change_beside_another_writer_runs_again(
    sql: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rides(sql, more=", 'hoodie.write.concurrency.mode' = 'optimistic_concurrency_control'")
    attempts = []
    placed = executor.placed

    def interrupted(*arguments: Any) -> Any:
        stats = placed(*arguments)
        attempts.append(len(stats))
        if len(attempts) == 1:
            monkeypatch.setattr(executor, "placed", placed)
            other = drawstring.open(f"{tmp_path}/lake/rides")
            other.update("id = 1", {"fare": "100.0", "ts": "5"}, options=OCC)
            monkeypatch.setattr(executor, "placed", interrupted)
        return stats

    monkeypatch.setattr(executor, "placed", interrupted)
    sql("UPDATE rides SET fare = fare + (SELECT max(fare) FROM rides), ts = 9 WHERE city = 'oslo'")
    assert len(attempts) == 2
    assert sql("SELECT id, fare FROM rides") == [(1, 200.0), (2, 2.5), (3, 103.5)]


@TYPES
def test_every_statement_changes_a_table_whose_folders_are_dates_of_its_numbers(
    sql: Ask, tmp_path: Path, kind: str
) -> None:
    is_hive = {"cow": "false", "mor": "true"}[kind]
    sql(
        "CREATE TABLE rides (id STRING, fare DOUBLE, ts BIGINT, at BIGINT) USING hudi PARTITIONED BY (at)"
        f" TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = '{kind}',"
        f" 'hoodie.datasource.write.hive_style_partitioning' = '{is_hive}',"
        " 'hoodie.table.keygenerator.class' = 'org.apache.hudi.keygen.TimestampBasedKeyGenerator',"
        " 'hoodie.keygen.timebased.timestamp.type' = 'UNIX_TIMESTAMP',"
        " 'hoodie.keygen.timebased.output.dateformat' = 'yyyy-MM-dd')"
    )
    first, second = 1705311000, 1705397400
    sql(f"INSERT INTO rides VALUES ('a', 1.0, 1, {first}), ('b', 2.0, 1, {second})")
    query = "SELECT id, fare, at, _hoodie_partition_path FROM rides"
    folders = ["2024-01-15", "2024-01-16"]
    if kind == "mor":
        folders = [f"at={each}" for each in folders]
    a, b = (str(first), folders[0]), (str(second), folders[1])
    assert sql(query) == [("a", 1.0, *a), ("b", 2.0, *b)]
    sql("UPDATE rides SET fare = 5.0, ts = 2 WHERE id = 'a'")
    assert sql(query) == [("a", 5.0, *a), ("b", 2.0, *b)]
    sql("DELETE FROM rides WHERE id = 'b'")
    assert sql(query) == [("a", 5.0, *a)]
    sql(f"INSERT INTO rides VALUES ('c', 1.0, 1, {second})")
    sql(
        f"MERGE INTO rides USING (SELECT explode(array('a', 'd')) AS id, 7.0D AS fare, 5L AS ts,"
        f" {first}L AS at) AS s ON rides.id = s.id WHEN MATCHED THEN UPDATE SET *"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    assert sql(query) == [("a", 7.0, *a), ("c", 1.0, *b), ("d", 7.0, *a)]
    assert sql(f"SELECT id FROM rides WHERE at = {second}") == [("c",)]
    with pytest.raises(InvalidError, match="'at' does not fit its type int64"):
        sql("INSERT INTO rides VALUES ('e', 1.0, 1, '2024/01/15')")
    with pytest.raises(UnsupportedError, match="A folder has the rows of many values of at"):
        sql(f"INSERT OVERWRITE rides PARTITION (at = {first}) VALUES ('z', 1.0, 1)")
    sql("SET hoodie.datasource.write.operation = insert_overwrite")
    sql(f"INSERT INTO rides VALUES ('f', 1.0, 1, {second})")
    sql("RESET hoodie.datasource.write.operation")
    assert sql(query) == [("a", 7.0, *a), ("d", 7.0, *a), ("f", 1.0, *b)]
    sql(f"INSERT OVERWRITE rides VALUES ('z', 1.0, 1, {first})")
    assert sql(query) == [("z", 1.0, *a)]
    stored = facts_of(context_of(drawstring.open(f"{tmp_path}/lake/rides"))).full_schema
    assert stored.field("at").type == pa.int64()


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_conditions_may_name_meta_columns(sql: Ask, kind: str) -> None:
    sql(
        "CREATE TABLE rides (id INT, fare DOUBLE, city STRING) USING hudi PARTITIONED BY (city)"
        f" TBLPROPERTIES (primaryKey = 'id', type = '{kind}')"
    )
    sql("INSERT INTO rides VALUES (1, 1.5, 'oslo'), (2, 2.5, 'lima'), (3, 3.5, 'oslo')")
    sql("INSERT INTO rides VALUES (4, 4.5, 'oslo')")
    sql("UPDATE rides SET fare = fare + 10 WHERE _hoodie_record_key IN ('1', '2')")
    sql("DELETE FROM rides WHERE _hoodie_commit_time = (SELECT min(_hoodie_commit_time) FROM rides)")
    assert sql("SELECT id, fare FROM rides") == [(1, 11.5), (2, 12.5), (4, 4.5)]
