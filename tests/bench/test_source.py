"""What peers on Spark write: rows that Spark computes, so that no peer reads the file past it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import data

pytestmark = pytest.mark.spark


def test_the_source_of_a_peer_has_the_rows_of_the_file_and_is_not_the_file(tmp_path: Path) -> None:
    from bench.scripts.sparks import source
    from drawstring.spark.engine import parquet_input
    from drawstring.spark.workers.rows import arrow_schema
    from tests.support.spark import spark_session

    spark = spark_session()
    data.make(tmp_path, data.Size.of(1000, 1))
    file = str(tmp_path / "base.parquet")
    bare, computed = spark.read.parquet(file), source(spark, file)
    assert computed.schema == bare.schema
    assert computed.toArrow() == bare.toArrow()
    assert parquet_input(bare, arrow_schema(bare.schema)) is not None
    assert parquet_input(computed, arrow_schema(computed.schema)) is None
    assert parquet_input(computed.select("ride_id"), arrow_schema(computed.select("ride_id").schema)) is None
    plan = computed._jdf.queryExecution().optimizedPlan().toString()
    assert plan.startswith("Project [concat(substring(ride_id"), plan


def test_a_number_is_put_together_from_its_bits(tmp_path: Path) -> None:
    from bench.scripts.sparks import source
    from tests.support.spark import spark_session

    rows = pa.table({"number": [0, 1, 7, 8, 1 << 40, (1 << 62) + 13], "value": list("abcdef")})
    pq.write_table(rows, tmp_path / "rows.parquet")
    computed = source(spark_session(), str(tmp_path / "rows.parquet"), "number")
    assert computed.toArrow().to_pylist() == rows.to_pylist()
    plan = computed._jdf.queryExecution().optimizedPlan().toString()
    assert plan.startswith("Project [(shiftleft(shiftright(number"), plan


def test_no_peer_on_spark_reads_a_file_in_another_way() -> None:
    scripts = Path(data.__file__).parent / "scripts"
    direct = {file.name for file in scripts.glob("*.py") if "read.parquet(" in file.read_text()}
    # drawstring_spark.py for the load from a bare file; the jars do not read the file past Spark in any case.
    assert direct == {"sparks.py", "drawstring_spark.py", "lsm_jvm.py"}
