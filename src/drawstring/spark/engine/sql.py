"""SQL over relations of the core: temporary views of the session for as long as a query runs."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from drawstring.base.errors import InvalidError
from drawstring.engine.protocol import Relation
from drawstring.spark.engine.failures import surfaced
from drawstring.spark.reading.dataframe import SliceReading, dataframe


def run_in_spark(spark: SparkSession, query: str, relations: Mapping[str, Relation]) -> pa.Table:
    """Return the result of a query; see `Engine.sql`.

    Args:
        spark: the session.
        query: the query.
        relations: the tables that it may name, under names that are no views of the session.

    Raises:
        InvalidError: Spark refuses the query.
    """
    try:
        for name, relation in relations.items():
            reading = SliceReading(relation.schema, None)
            dataframe(spark, relation.tasks(), reading).createOrReplaceTempView(name)
        with surfaced():
            return spark.sql(query).toArrow()
    except AnalysisException as error:
        text = " ".join(str(error).split("\n")[0].split())
        raise InvalidError(f"The query {query!r} fails: {text} Correct it: it runs in Spark.") from error
    finally:
        for name in relations:
            spark.catalog.dropTempView(name)
