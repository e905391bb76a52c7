"""Time travel in SQL: times of the table's timeline, in any time zone of the session."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawstring.base.errors import InvalidError
from tests.support.sql import Ask

pytestmark = pytest.mark.spark


@pytest.fixture
def between(sql: Ask) -> str:
    """A text for a time after the first write and before the second one, whose rows are 1, and 1 and 2."""
    sql("CREATE TABLE rides (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    sql("INSERT INTO rides VALUES (1)")
    sql("INSERT INTO rides VALUES (2)")
    newest = max(row[0] for row in sql("CALL show_commits(table => 'rides')"))
    moment = datetime.strptime(newest, "%Y%m%d%H%M%S%f") - timedelta(milliseconds=1)
    return moment.isoformat(" ", "milliseconds")


@pytest.mark.parametrize("zone", ["America/Lima", "Asia/Tokyo"])
def test_a_text_is_a_time_of_the_timeline_in_any_zone_of_the_session(
    session: SparkSession, sql: Ask, tmp_path: Path, between: str, zone: str
) -> None:
    sql(f"SET spark.sql.session.timeZone = {zone}")
    path = f"{tmp_path}/lake/rides"
    assert session.read.format("hudi").option("as.of.instant", between).load(path).count() == 1
    digits = "".join(each for each in between if each.isdigit())
    for time in (
        f"'{between}'",
        f"timestamp'{between}'",
        f"'{between.replace(' ', 'T')}'",
        digits,
        f'"{between}"',
    ):
        assert sql(f"SELECT id FROM rides TIMESTAMP AS OF {time} r WHERE id < 9") == [(1,)], time
    for table in ("lake.rides", "`lake`.`rides`", f"hudi.`{path}`"):
        assert sql(f"SELECT id FROM {table} FOR SYSTEM_TIME AS OF '{between}'") == [(1,)], table
    assert sql("SELECT id FROM rides TIMESTAMP AS OF '2099-01-01'") == [(1,), (2,)]
    assert sql("SELECT id FROM rides TIMESTAMP AS OF current_timestamp()") == [(1,), (2,)]
    assert sql(f"SELECT id FROM rides VERSION AS OF '{digits}'") == [(1,)]
    assert sql(f"SELECT id FROM hudi_table_changes('rides', 'latest_state', '{between}')") == [(2,)]
    earlier = f"(SELECT id FROM rides TIMESTAMP AS OF '{between}')"
    assert sql(f"SELECT id FROM rides WHERE id NOT IN {earlier}") == [(2,)]


def test_a_time_before_the_first_write_is_an_error_that_names_it(
    session: SparkSession, sql: Ask, tmp_path: Path, between: str
) -> None:
    first = min(row[0] for row in sql("CALL show_commits(table => 'rides')"))
    for time in ("'2020-01-01'", "'20200101000000'", "current_timestamp() - INTERVAL 1 DAY"):
        with pytest.raises(InvalidError, match=f"Its first one is {first}"):
            sql(f"SELECT id FROM rides TIMESTAMP AS OF {time}")
    with pytest.raises(InvalidError, match=f"Its first one is {first}"):
        session.read.format("hudi").option("as.of.instant", "2020-01-01").load(
            f"{tmp_path}/lake/rides"
        ).count()
