"""The engines, each with what makes its rows of an Arrow table."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from drawstring.engine.local import LocalEngine
from drawstring.engine.protocol import Engine, Rows
from tests.support.spark import spark_session

Started = tuple[Engine, Callable[[pa.Table], Rows]]
ENGINES = ["local", pytest.param("spark", marks=pytest.mark.spark)]


def _local() -> Started:
    engine = LocalEngine(threads=2)
    return engine, lambda table: engine.rows(table.schema, table.to_batches(max_chunksize=100))


def _spark() -> Started:
    from drawstring.spark import SparkEngine
    from drawstring.spark.workers.rows import spark_schema

    spark = spark_session()
    engine = SparkEngine(spark)

    def rows(table: pa.Table) -> Rows:
        listed = [tuple(row.values()) for row in table.to_pylist()]
        return engine.rows(spark.createDataFrame(listed, spark_schema(table.schema)).coalesce(1))

    return engine, rows


def start_engine(name: str) -> Started:
    """Return an engine by its name."""
    return {"local": _local, "spark": _spark}[name]()
