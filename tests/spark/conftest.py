"""Fixtures for tests that need Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return spark_session()


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """The session with `format("hudi")` taken over."""
    import drawstring.spark

    drawstring.spark.register(spark)
    return spark
