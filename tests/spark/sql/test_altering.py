"""`TRUNCATE`, partitions, `ALTER TABLE`, indexes and time travel of tables of the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

import drawstring
from drawstring.base.errors import InvalidError
from tests.support.sql import Ask

pytestmark = pytest.mark.spark

RIDES = "CREATE TABLE rides (id INT, fare FLOAT, day DATE, hour INT) USING hudi PARTITIONED BY (day, hour)"
KEYED = f"{RIDES} TBLPROPERTIES (primaryKey = 'id', type = 'mor')"
THREE = (
    "INSERT INTO rides VALUES (1, 1.5, DATE'2024-01-01', 7), (2, 2.5, DATE'2024-01-01', 8),"
    " (3, 3.5, DATE'2024-01-02', 7)"
)


def actions(tmp_path: Path) -> set[str]:
    return {str(each.action) for each in drawstring.open(f"{tmp_path}/lake/rides").timeline.instants}


def test_partitions_are_shown_added_and_dropped(sql: Ask) -> None:
    sql(RIDES)
    sql(THREE)
    sql("ALTER TABLE rides ADD PARTITION (day = DATE'2024-01-03', hour = 1)")
    sql("ALTER TABLE rides DROP PARTITION (day = DATE'2024-01-01', hour = 7)")
    assert sql("SHOW PARTITIONS rides") == [
        ("day=2024-01-01/hour=8",),
        ("day=2024-01-02/hour=7",),
        ("day=2024-01-03/hour=1",),
    ]
    assert sql("SHOW PARTITIONS rides PARTITION (hour = 7)") == [("day=2024-01-02/hour=7",)]
    sql("TRUNCATE TABLE rides PARTITION (day = DATE'2024-01-02', hour = 7)")
    assert sql("SELECT id FROM rides") == [(2,)]
    with pytest.raises(AnalysisException, match="PARTITIONS_NOT_FOUND"):
        sql("ALTER TABLE rides DROP PARTITION (day = DATE'2024-01-01', hour = 99)")


def test_several_partitions_are_added_and_dropped_by_one_statement(sql: Ask, tmp_path: Path) -> None:
    sql(RIDES)
    sql(THREE)
    sql(
        "ALTER TABLE rides ADD PARTITION (day = DATE'2024-01-03', hour = 1)"
        " PARTITION (day = DATE'2024-01-03', hour = 2)"
    )
    writes = len(drawstring.open(f"{tmp_path}/lake/rides").timeline.writes())
    sql(
        "ALTER TABLE rides DROP PARTITION (day = DATE'2024-01-01', hour = 7),"
        " PARTITION (day = DATE'2024-01-02', hour = 7)"
    )
    assert len(drawstring.open(f"{tmp_path}/lake/rides").timeline.writes()) == writes + 1
    assert sql("SELECT id FROM rides") == [(2,)]
    assert sql("SHOW PARTITIONS rides") == [
        ("day=2024-01-01/hour=8",),
        ("day=2024-01-03/hour=1",),
        ("day=2024-01-03/hour=2",),
    ]
    with pytest.raises(UnsupportedOperationException, match="a value of each partition column"):
        sql("TRUNCATE TABLE rides PARTITION (day = DATE'2024-01-01')")


def test_a_truncated_table_has_no_rows_and_its_past(sql: Ask, tmp_path: Path) -> None:
    sql(KEYED)
    sql(THREE)
    before = drawstring.open(f"{tmp_path}/lake/rides").timeline.writes()[-1].requested
    sql("TRUNCATE TABLE rides")
    assert sql("SELECT * FROM rides") == []
    assert len(sql(f"SELECT * FROM rides VERSION AS OF '{before}'")) == 3
    assert len(sql(f"SELECT * FROM rides TIMESTAMP AS OF '{before}'")) == 3
    assert len(sql("SELECT * FROM rides TIMESTAMP AS OF current_timestamp()")) == 0


def test_columns_are_added_and_widened(sql: Ask, tmp_path: Path) -> None:
    sql(KEYED)
    sql("ALTER TABLE rides ADD COLUMNS (early STRING)")
    sql(THREE.replace("INTO rides", "INTO rides (id, fare, day, hour)"))
    sql("ALTER TABLE rides ADD COLUMNS (tip STRUCT<amount: INT>, note STRING COMMENT 'of the driver')")
    sql("ALTER TABLE rides ALTER COLUMN fare TYPE DOUBLE")
    sql("ALTER TABLE rides ADD COLUMN tip.by STRING")
    sql("UPDATE rides SET tip = named_struct('amount', 1, 'by', 'me') WHERE id = 1")
    assert sql("SELECT id, fare, note, tip.by FROM rides") == [
        (1, 1.5, None, "me"),
        (2, 2.5, None, None),
        (3, 3.5, None, None),
    ]
    names = drawstring.open(f"{tmp_path}/lake/rides").schema.names
    assert names == ["id", "fare", "day", "hour", "early", "tip", "note"]


def test_no_clean_follows_a_statement_that_alters_columns(sql: Ask, tmp_path: Path) -> None:
    cleans = "'hoodie.clean.trigger.strategy' = 'NUM_COMMITS', 'hoodie.clean.commits.retained' = '1'"
    sql(f"CREATE TABLE rides (id INT, fare DOUBLE) USING hudi TBLPROPERTIES (primaryKey = 'id', {cleans})")
    sql("INSERT INTO rides VALUES (1, 1.5)")
    sql("SET hoodie.clean.automatic = false")
    for fare in (2, 3, 4):
        sql(f"UPDATE rides SET fare = {fare} WHERE id = 1")
    sql("RESET hoodie.clean.automatic")
    sql("ALTER TABLE rides ADD COLUMNS (note STRING)")
    assert "clean" not in actions(tmp_path)
    sql("UPDATE rides SET fare = 5 WHERE id = 1")
    assert "clean" in actions(tmp_path)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_columns_are_renamed_dropped_and_moved_with_schema_on_read(
    sql: Ask, session: SparkSession, tmp_path: Path, kind: str
) -> None:
    sql(f"{RIDES} TBLPROPERTIES (primaryKey = 'id', type = '{kind}')")
    sql(THREE)
    sql("SET hoodie.schema.on.read.enable=true")
    with pytest.raises(AnalysisException, match="_hoodie_operation is a name of the table format"):
        sql("ALTER TABLE rides RENAME COLUMN fare TO _hoodie_operation")
    sql("ALTER TABLE rides RENAME COLUMN fare TO price")
    sql("ALTER TABLE rides ALTER COLUMN price DROP NOT NULL")
    sql("RESET hoodie.schema.on.read.enable")  # the table has versions now
    sql("ALTER TABLE rides ADD COLUMN fare STRING AFTER id")
    sql("ALTER TABLE rides ALTER COLUMN price TYPE DOUBLE")
    sql("ALTER TABLE rides ADD COLUMN at STRUCT<x: INT, y: STRING>")
    sql("UPDATE rides SET fare = 'new', at = named_struct('x', 1, 'y', 'y') WHERE id = 2")
    sql("ALTER TABLE rides RENAME COLUMN at.x TO xx")
    assert session.table("rides").columns == ["id", "fare", "price", "at", "day", "hour"]
    assert sql("SELECT id, fare, price, at.xx FROM rides") == [
        (1, None, 1.5, None),
        (2, "new", 2.5, 1),
        (3, None, 3.5, None),
    ]
    assert sql("SELECT id FROM rides WHERE price > 2 AND fare IS NULL") == [(3,)]
    sql("MERGE INTO rides USING (SELECT 3 AS k) ON id = k WHEN MATCHED THEN UPDATE SET price = 9")
    sql("ALTER TABLE rides DROP COLUMN price")
    sql("ALTER TABLE rides ALTER COLUMN at FIRST")
    sql("ALTER TABLE rides ADD COLUMN price DOUBLE")
    assert sql("SELECT at.xx, id, fare, price FROM rides WHERE id > 1") == [
        (1, 2, "new", None),
        (None, 3, None, None),
    ]
    names = drawstring.open(f"{tmp_path}/lake/rides").schema.names
    assert names == ["at", "id", "fare", "day", "hour", "price"]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_columns_become_texts_with_schema_on_read(sql: Ask, kind: str) -> None:
    sql(
        "CREATE TABLE notes (id INT, n INT, day DATE) USING hudi"
        f" TBLPROPERTIES (primaryKey = 'id', type = '{kind}')"
    )
    sql("INSERT INTO notes VALUES (1, 4, DATE'2024-01-31'), (2, 5, NULL)")
    sql("SET hoodie.schema.on.read.enable=true")
    sql("ALTER TABLE notes ALTER COLUMN n TYPE STRING")
    sql("ALTER TABLE notes ALTER COLUMN day TYPE STRING")
    assert sql("SELECT * FROM notes") == [(1, "4", "2024-01-31"), (2, "5", None)]
    sql("UPDATE notes SET n = 'six', day = 'friday' WHERE id = 2")
    assert sql("SELECT * FROM notes") == [(1, "4", "2024-01-31"), (2, "six", "friday")]
    assert sql("SELECT id FROM notes WHERE n = '4' AND day < '2024-02'") == [(1,)]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("RENAME COLUMN fare TO price", r"Renaming columns \(fare\) needs Hudi's schema on read"),
        ("DROP COLUMN fare", "Dropping columns"),
        ("ADD COLUMN tip INT FIRST", "Adding columns elsewhere than at the end"),
        ("ADD COLUMN _hoodie_record_key STRING", "is a column of the table format"),
        ("REPLACE COLUMNS (id INT, fare STRING)", "REPLACE COLUMNS needs Hudi's schema on read"),
        ("ADD COLUMN tip INT DEFAULT 5", "cannot have a default value"),
        ("ALTER COLUMN fare TYPE INT", "NOT_SUPPORTED_CHANGE_COLUMN"),
        ("ALTER COLUMN id TYPE STRING", r"Making texts of a column \(id\) needs Hudi's schema on read"),
        ("SET TBLPROPERTIES (primaryKey = 'fare')", "Property primaryKey describes the table"),
    ],
)
def test_what_cannot_be_altered_says_why(sql: Ask, statement: str, why: str) -> None:
    sql(RIDES)
    with pytest.raises(AnalysisException, match=why):
        sql(f"ALTER TABLE rides {statement}")
    assert [name for name, *_ in sql("DESCRIBE rides")][:4] == [
        "# Partition Information",
        "# col_name",
        "day",
        "day",
    ]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_renamed_table_stores_its_name(sql: Ask, tmp_path: Path, kind: str) -> None:
    place = f"{tmp_path}/elsewhere"
    key = f"TBLPROPERTIES (primaryKey = 'id', type = '{kind}')"
    for old, new, location in (("rides", "trips", ""), ("tours", "walks", f"LOCATION '{place}'")):
        sql(f"CREATE TABLE {old} (id INT, fare INT) USING hudi {key} {location}")
        sql(f"INSERT INTO {old} VALUES (1, 1)")
        sql(f"ALTER TABLE {old} RENAME TO {new}")
        sql(f"INSERT INTO {new} VALUES (2, 2)")
        sql(f"UPDATE {new} SET fare = 3 WHERE id = 1")
        sql(f"ALTER TABLE {new} ADD COLUMNS (city STRING)")
        sql(f"UPDATE {new} SET city = 'oslo' WHERE id = 2")
        assert sql(f"SELECT id, fare, city FROM {new}") == [(1, 3, None), (2, 2, "oslo")]
    with pytest.raises(AnalysisException):
        sql("ALTER TABLE trips RENAME TO walks")
    assert drawstring.open(f"{tmp_path}/lake/trips").config.name == "trips"
    assert drawstring.open(place).config.name == "walks"


def test_properties_are_options_of_later_writes(sql: Ask) -> None:
    sql(f"{RIDES} TBLPROPERTIES (primaryKey = 'id')")
    key = "hoodie.spark.sql.insert.into.operation"
    with pytest.raises(InvalidError, match="Choose one of insert, upsert, bulk_insert"):
        sql(f"ALTER TABLE rides SET TBLPROPERTIES ('{key}' = 'delete')")
    sql(f"ALTER TABLE rides SET TBLPROPERTIES (note = 'x', '{key}' = 'upsert')")
    assert ("note", "x") in sql("SHOW TBLPROPERTIES rides")
    sql(THREE)
    sql(THREE)
    assert len(sql("SELECT id FROM rides")) == 3
    sql(f"ALTER TABLE rides UNSET TBLPROPERTIES ('{key}')")
    sql(THREE)
    assert len(sql("SELECT id FROM rides")) == 6


def test_the_storage_layout_becomes_default_and_stays_so(sql: Ask) -> None:
    layout = "hoodie.table.storage.layout"
    sql(
        f"{RIDES} TBLPROPERTIES (primaryKey = 'id', type = 'mor', 'hoodie.write.table.version' = '10',"
        f" '{layout}' = 'lsm_tree')"
    )
    sql(THREE)
    (path,) = [row[1] for row in sql("DESCRIBE EXTENDED rides") if row[0] == "Location"]
    before = sql("SELECT * FROM rides ORDER BY id")
    assert drawstring.open(path.removeprefix("file:")).config.storage_layout == "lsm_tree"
    with pytest.raises(AnalysisException, match="no storage layout 'heap'"):
        sql(f"ALTER TABLE rides SET TBLPROPERTIES ('{layout}' = 'heap')")
    sql(f"ALTER TABLE rides SET TBLPROPERTIES ('{layout}' = 'default')")
    assert drawstring.open(path.removeprefix("file:")).config.storage_layout == "default"
    assert sql("SELECT * FROM rides ORDER BY id") == before
    with pytest.raises(AnalysisException, match="are not sorted"):
        sql(f"ALTER TABLE rides SET TBLPROPERTIES ('{layout}' = 'lsm_tree')")


def test_indexes_are_created_shown_and_dropped(
    sql: Ask, session: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    sql(KEYED)
    sql(THREE)
    with pytest.raises(InvalidError, match=r"of the record key \(id\), not of hour"):
        sql("CREATE INDEX record_index ON rides (hour)")
    sql("CREATE INDEX record_index ON rides (id)")
    sql("CREATE INDEX IF NOT EXISTS record_index ON rides (id)")
    sql("CREATE INDEX by_hour ON rides (hour)")
    sql("CREATE INDEX IF NOT EXISTS by_hour ON rides USING secondary_index (hour)")
    shown = session.sql("SHOW INDEXES FROM rides")
    assert shown.columns == ["index_name", "index_type", "col_name"]
    assert {
        ("record_index", "record_index", ""),
        ("secondary_index_by_hour", "secondary_index", "hour"),
    } <= {*map(tuple, shown.collect())}
    assert sql("REFRESH INDEX by_hour ON rides") == []
    assert "not use the index" not in caplog.text
    with pytest.raises(AnalysisException, match="INDEX_ALREADY_EXISTS"):
        sql("CREATE INDEX by_hour ON rides (hour)")
    sql("INSERT INTO rides VALUES (1, 9.5, DATE'2024-01-05', 7)")
    sql("SHOW INDEXES FROM rides")
    for name in ("record_index", "secondary_index_by_hour"):
        assert f"not use the index {name}. The table has several records of a key" in caplog.text
    assert "drawstring services repair --apply" in caplog.text
    sql("CREATE INDEX other ON rides USING column_stats (day) OPTIONS (expr = 'year')")
    by_month = "expr = 'date_format', format = 'yyyy-MM'"
    sql(f"CREATE INDEX text ON rides USING column_stats (day) OPTIONS ({by_month})")
    told = {row[0]: row[1:] for row in sql("SHOW INDEXES FROM rides")}
    for name in ("expr_index_other", "expr_index_text"):
        assert told[name] == ("column_stats", "day")
        assert f"not use the index {name}. Queries take the values of partition columns from" in caplog.text
    with pytest.raises(InvalidError, match="Index fares has no expression"):
        sql("CREATE INDEX fares ON rides USING column_stats (fare)")
    with pytest.raises(InvalidError, match="has no option 'colour'"):
        sql("CREATE INDEX odd ON rides USING column_stats (day) OPTIONS (expr = 'year', colour = 'red')")
    sql("CREATE INDEX fares ON rides USING bloom_filters (hour)")
    assert ("expr_index_fares", "bloom_filters", "hour") in sql("SHOW INDEXES FROM rides")
    with pytest.raises(InvalidError, match="is of type column_stats or bloom_filters"):
        sql("CREATE INDEX another ON rides USING record_index (day) OPTIONS (expr = 'year')")
    sql("DROP INDEX other ON rides")
    sql("DROP INDEX text ON rides")
    sql("DROP INDEX by_hour ON rides")
    with pytest.raises(AnalysisException, match="INDEX_NOT_FOUND"):
        sql("DROP INDEX by_hour ON rides")


@pytest.mark.parametrize(
    "statement",
    [
        "ANALYZE TABLE {} COMPUTE STATISTICS",
        "ANALYZE TABLE {} PARTITION (city) COMPUTE STATISTICS FOR ALL COLUMNS",
        "-- nightly\n /* of {0}; */ANALYZE TABLE {0} COMPUTE STATISTICS",
        "MSCK REPAIR TABLE {}",
        "REPAIR TABLE {} SYNC PARTITIONS",
    ],
)
def test_upkeep_that_a_table_does_not_need_is_passed_over(sql: Ask, statement: str) -> None:
    sql("CREATE TABLE kept (id INT, city STRING) USING hudi PARTITIONED BY (city)")
    assert sql(statement.format("kept")) == sql(statement.format("lake.kept")) == []
    with pytest.raises(AnalysisException):
        sql(statement.format("nowhere"))


def test_partitions_are_shown_as_their_folders_and_a_table_without_any_is_not_repaired(sql: Ask) -> None:
    sql("CREATE TABLE kept (id INT, city STRING, hour INT) USING hudi PARTITIONED BY (city, hour)")
    sql("INSERT INTO kept VALUES (1, 'oslo', 7), (2, NULL, 7), (3, 'nullo', NULL)")
    null = "__HIVE_DEFAULT_PARTITION__"
    assert sql("SHOW PARTITIONS lake.kept") == [
        (f"city={null}/hour=7",),
        (f"city=nullo/hour={null}",),
        ("city=oslo/hour=7",),
    ]
    assert sql("SHOW PARTITIONS kept PARTITION (city = 'nullo')") == [(f"city=nullo/hour={null}",)]
    with pytest.raises(UnsupportedOperationException, match="no location of its own"):
        sql("ALTER TABLE kept ADD PARTITION (city = 'rome', hour = 1) LOCATION '/elsewhere'")
    assert len(sql("SHOW PARTITIONS kept")) == 3
    sql("CREATE TABLE flat (id INT) USING hudi")
    with pytest.raises(InvalidError, match="flat is not partitioned"):
        sql("MSCK REPAIR TABLE flat")
    assert sql("ANALYZE TABLE flat COMPUTE STATISTICS") == []


def test_partitions_are_shown_by_their_paths_whatever_the_style_of_the_table(sql: Ask) -> None:
    null = "__HIVE_DEFAULT_PARTITION__"
    sql("CREATE TABLE texts (id INT, hh STRING) USING hudi PARTITIONED BY (hh)")
    sql("INSERT INTO texts VALUES (1, NULL), (2, 'null'), (3, 'a b'), (4, 'x/y'), (5, 'q%')")
    assert sql("SHOW PARTITIONS texts") == [(f"hh={each}",) for each in (null, "a b", "null", "q%", "x/y")]
    assert sql("SHOW PARTITIONS texts PARTITION (HH = 'null')") == [("hh=null",)]
    assert sql("SHOW PARTITIONS texts PARTITION (hh = NULL)") == [(f"hh={null}",)]
    assert sql("SHOW PARTITIONS texts PARTITION (hh = 'x/y')") == [("hh=x/y",)]
    with pytest.raises(InvalidError, match="zz is no partition column"):
        sql("SHOW PARTITIONS texts PARTITION (zz = 1)")

    plain = (
        "PARTITIONED BY (y, m, d) TBLPROPERTIES (hoodie.datasource.write.hive_style_partitioning = 'false')"
    )
    sql(f"CREATE TABLE days (id INT, y STRING, m STRING, d STRING) USING hudi {plain}")
    sql("INSERT INTO days VALUES (1, '2021', '10', '01'), (2, '2021', '10', '02'), (3, '2022', '01', NULL)")
    assert sql("SHOW PARTITIONS days") == [("2021/10/01",), ("2021/10/02",), (f"2022/01/{null}",)]
    assert sql("SHOW PARTITIONS days PARTITION (m = '10', d = '02')") == [("2021/10/02",)]

    encoded = "PARTITIONED BY (a, b) TBLPROPERTIES (hoodie.datasource.write.partitionpath.urlencode = 'true')"
    sql(f"CREATE TABLE encoded (id INT, a STRING, b STRING) USING hudi {encoded}")
    sql("INSERT INTO encoded VALUES (1, 'x/y', 'k=v'), (2, 'x', 'k')")
    assert sql("SHOW PARTITIONS encoded PARTITION (a = 'x/y')") == [("a=x%2Fy/b=k%3Dv",)]

    sql("CREATE TABLE typed (id INT, day DATE, at TIMESTAMP) USING hudi PARTITIONED BY (day, at)")
    sql("INSERT INTO typed VALUES (1, DATE'2024-01-02', TIMESTAMP'2024-01-02 03:04:05')")
    ((path,),) = sql("SHOW PARTITIONS typed PARTITION (day = DATE'2024-01-02')")
    assert sql("SHOW PARTITIONS typed PARTITION (at = TIMESTAMP'2024-01-02 03:04:05')") == [(path,)]
    assert sql("SHOW PARTITIONS typed PARTITION (at = TIMESTAMP'2024-01-02 03:04:06')") == []

    sql("CREATE TABLE flat (id INT, day STRING) USING hudi")
    assert sql("SHOW PARTITIONS flat") == sql("SHOW PARTITIONS flat PARTITION (day = 'x')") == []


def test_partitions_of_slash_separated_dates_are_shown_added_and_dropped_by_date(
    sql: Ask, tmp_path: Path
) -> None:
    slashed = "'hoodie.datasource.write.slash.separated.date.partitioning' = 'true'"
    sql(f"CREATE TABLE days (id INT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES ({slashed})")
    sql("INSERT INTO days VALUES (1, '2026-01-05'), (2, '2026-02-10')")
    sql("ALTER TABLE days ADD PARTITION (dt = '2026-03-01')")
    assert (tmp_path / "lake/days/2026/03/01").is_dir()
    dates = ["2026-01-05", "2026-02-10", "2026-03-01"]
    assert sql("SHOW PARTITIONS days") == [(f"dt={date}",) for date in dates]
    assert sql("SHOW PARTITIONS days PARTITION (dt = '2026-02-10')") == [("dt=2026-02-10",)]
    sql("ALTER TABLE days DROP PARTITION (dt = '2026-02-10')")
    assert sql("SELECT id FROM days") == [(1,)]
    assert sql("SHOW PARTITIONS days") == [("dt=2026-01-05",), ("dt=2026-03-01",)]
    sql("INSERT INTO days VALUES (3, '2026/01/05'), (4, '2026/04/01'), (5, NULL)")
    assert sql("SELECT id, dt FROM days WHERE dt <=> NULL OR dt > '2026-01'") == [
        (1, "2026-01-05"),
        (3, "2026-01-05"),
        (4, "2026-04-01"),
        (5, None),
    ]
    assert sql("SELECT id FROM days WHERE dt = '2026/01/05'") == []
    sql("UPDATE days SET id = 6 WHERE dt = '2026-04-01'")
    sql("DELETE FROM days WHERE dt = '2026-01-05'")
    sql("INSERT OVERWRITE days PARTITION (dt = '2026/04/01') VALUES (7)")
    assert sql("SELECT id, dt, _hoodie_partition_path FROM days WHERE dt IS NOT NULL") == [
        (7, "2026-04-01", "2026/04/01")
    ]

    plain = slashed.replace("'true'", "'false'")
    sql(f"CREATE TABLE plain (id INT, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES ({plain})")
    sql("INSERT INTO plain VALUES (1, '2026/01/05')")
    assert sql("SELECT dt, _hoodie_partition_path FROM plain") == [("2026/01/05", "2026/01/05")]


@pytest.mark.parametrize("has_metadata", [True, False])
def test_an_added_partition_that_was_dropped_is_shown_once_it_is_added_again(
    sql: Ask, has_metadata: bool
) -> None:
    sql(
        "CREATE TABLE days (id INT, day STRING) USING hudi PARTITIONED BY (day)"
        f" TBLPROPERTIES (hoodie.metadata.enable = '{has_metadata}')"
    )
    for _ in range(2):
        sql("ALTER TABLE days ADD PARTITION (day = '6')")
        assert ("day=6",) in sql("SHOW PARTITIONS days")
        sql("ALTER TABLE days DROP PARTITION (day = '6')")
        assert ("day=6",) not in sql("SHOW PARTITIONS days")
        with pytest.raises(AnalysisException, match="PARTITIONS_NOT_FOUND"):
            sql("ALTER TABLE days DROP PARTITION (day = '6')")
        sql("INSERT INTO days VALUES (1, '7')")
    sql("INSERT INTO days VALUES (2, '6')")
    assert sql("SHOW PARTITIONS days") == [("day=6",), ("day=7",)]


def test_an_index_of_an_expression_that_conditions_do_not_know_is_told_as_not_used(
    sql: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    sql("CREATE TABLE rides (id INT, name STRING, day DATE) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    sql("INSERT INTO rides VALUES (1, 'ada-1', DATE'2024-01-05')")
    indexes = {
        "month": ("day", "expr = 'date_format', format = 'yyyy-MM'"),
        "first": ("name", "expr = 'regexp_extract', pattern = '([a-z]+)-', idx = '1'"),
        "large": ("name", "expr = 'upper'"),
    }
    for name, (column, options) in indexes.items():
        sql(f"CREATE INDEX {name} ON rides USING column_stats ({column}) OPTIONS ({options})")
    assert {row[0] for row in sql("SHOW INDEXES FROM rides")} >= {f"expr_index_{name}" for name in indexes}
    unused = (
        "SQL conditions of drawstring cannot contain the expression. Only Apache Hudi uses the index; drop it"
        " unless Hudi queries the table."
    )
    for name in ("month", "first"):
        assert f"Queries do not use the index expr_index_{name}. {unused}" in caplog.text
    assert "expr_index_large" not in caplog.text


def test_columns_are_replaced_in_one_commit_and_those_of_the_same_name_keep_their_values(
    sql: Ask, session: SparkSession, tmp_path: Path
) -> None:
    sql(KEYED)
    sql(THREE)
    sql("SET hoodie.schema.on.read.enable=true")
    before = len(drawstring.open(f"{tmp_path}/lake/rides").timeline.writes())
    sql("ALTER TABLE rides REPLACE COLUMNS (note STRING COMMENT 'of the driver', id INT, fare DOUBLE)")
    table = drawstring.open(f"{tmp_path}/lake/rides")
    assert len(table.timeline.writes()) == before + 1
    assert table.schema.names == ["note", "id", "fare", "day", "hour"]
    assert sql("SELECT id, fare, note, hour FROM rides") == [
        (1, 1.5, None, 7),
        (2, 2.5, None, 8),
        (3, 3.5, None, 7),
    ]
    assert table.columns.comments == {"note": "of the driver"}
    sql("ALTER TABLE rides REPLACE COLUMNS (id INT)")
    assert session.table("rides").columns == ["id", "day", "hour"]
    with pytest.raises(AnalysisException, match="id is a column of the record key"):
        sql("ALTER TABLE rides REPLACE COLUMNS (fare DOUBLE)")


def test_comments_of_columns_are_stored_and_described(
    sql: Ask, session: SparkSession, tmp_path: Path
) -> None:
    sql(
        "CREATE TABLE rides (id INT COMMENT 'the key', fare FLOAT,"
        " tip STRUCT<x: INT, y: ARRAY<STRUCT<z: INT COMMENT 'of a coin'>>>) USING hudi"
        " TBLPROPERTIES (primaryKey = 'id')"
    )
    sql("INSERT INTO rides VALUES (1, 1.5, named_struct('x', 1, 'y', NULL))")
    sql("ALTER TABLE rides ALTER COLUMN fare COMMENT 'in euros'")
    sql("ALTER TABLE rides ADD COLUMNS (note STRING COMMENT 'of the driver', more INT)")
    sql("INSERT INTO rides VALUES (2, 2.5, NULL, 'late', 1)")
    described = {row.col_name: row.comment for row in session.sql("DESCRIBE rides").collect()}
    assert [described[name] for name in ("id", "fare", "note", "more")] == [
        "the key",
        "in euros",
        "of the driver",
        None,
    ]
    table = drawstring.open(f"{tmp_path}/lake/rides")
    kept = {"id": "the key", "note": "of the driver", "tip.y.element.z": "of a coin"}
    assert table.columns.comments == {**kept, "fare": "in euros"}
    assert "of a coin" in session.table("rides").schema.json()
    assert table.config.history is None, "comments need no schema on read"
    assert "COMMENT 'in euros'" in session.sql("SHOW CREATE TABLE rides").first()[0]
    assert session.catalog.listColumns("rides")[1].description == "in euros"
    sql("SET hoodie.schema.on.read.enable=true")
    sql("ALTER TABLE rides RENAME COLUMN fare TO price")
    sql("ALTER TABLE rides ALTER COLUMN tip.x COMMENT 'in cents'")
    renamed = {**kept, "price": "in euros", "tip.x": "in cents"}
    assert drawstring.open(f"{tmp_path}/lake/rides").columns.comments == renamed


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_comments_of_a_dataframe_are_stored_with_the_columns_that_it_adds(
    session: SparkSession, tmp_path: Path, kind: str
) -> None:
    path, options = f"{tmp_path}/t", {"hoodie.table.name": "t", "hoodie.datasource.write.table.type": kind}
    key = {"hoodie.datasource.write.recordkey.field": "id"}
    df = session.createDataFrame([(1, (2,))], "id int comment 'the key', at struct<x: int comment 'east'>")
    for each in (df, df.withColumn("tip", lit(5)).withMetadata("tip", {"comment": "in cents"})):
        each.write.format("hudi").options(**options, **key).mode("append").save(path)
    told = {"id": "the key", "at.x": "east", "tip": "in cents"}
    assert drawstring.open(path).columns.comments == told
    assert session.read.format("hudi").load(path).select("id", "at.x").collect() == [(1, 2)]


def test_columns_may_become_nullable(sql: Ask) -> None:
    sql("CREATE TABLE rides (id INT, fare DOUBLE NOT NULL) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    sql("INSERT INTO rides VALUES (1, 1.5)")
    sql("ALTER TABLE rides ALTER COLUMN fare DROP NOT NULL")
    sql("INSERT INTO rides VALUES (2, NULL)")
    assert sql("SELECT * FROM rides") == [(1, 1.5), (2, None)]
