"""Marks in Spark's plans: the parts of a plan that read a table, and how to repeat these reads.

    DataFrame of a read ──> View, with the pickled read in its properties ── relations of one snapshot

Spark wraps the plan of a temporary view into a `View`. It does not affect a query: the optimizer removes it
first. But it stays in the plans that a user derives from the DataFrame, including self-joins. So `views` can
find the reads of a temporary view and repeat them. A Java class (`PlanMarks`) replaces many Py4J calls; if
Spark cannot compile it, plans have no marks.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from drawstring.query.scan import Scan
from drawstring.spark.jvm import instance
from drawstring.spark.reading.dataframe import SliceReading, dataframe


@dataclass(frozen=True, slots=True)
class Reread:
    """A read that can be repeated.

    Attributes:
        path: the table's root.
        storage_options: options of the object store.
        scan: picklable function that loads the table and plans the query.
        where: SQL condition of the query, which Spark can evaluate itself.
    """

    path: str
    storage_options: Mapping[str, str]
    scan: Callable[[], Scan]
    where: str | None = None

    def dataframe(self, spark: SparkSession) -> DataFrame:
        """Return the current rows."""
        return self.shown(spark, self.scan())

    def shown(self, spark: SparkSession, scan: Scan) -> DataFrame:
        """Return the rows of a scan of this read, with a mark in the plan."""
        reading = SliceReading(scan.schema, self.where, scan.skips)
        df = scan.use(lambda tasks: dataframe(spark, tasks, reading))
        marks = helper(spark)
        if marks is None:
            return df
        text = base64.b64encode(cloudpickle.dumps(self)).decode()
        return of_plan(spark, marks.marked(plan_of(df), text))


def reread_of(text: str) -> Reread:
    """Return the read of a mark."""
    reread: Reread = cloudpickle.loads(base64.b64decode(text))
    return reread


def plan_of(df: DataFrame) -> Any:
    """Return the analyzed plan of a DataFrame."""
    return df._jdf.queryExecution().analyzed()


def of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """Return the DataFrame of a plan."""
    jvm: Any = spark.sparkContext._jvm
    dataset = getattr(jvm, "org.apache.spark.sql.classic.Dataset$").__getattr__("MODULE$")
    return ClassicDataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)


def helper(spark: SparkSession) -> Any | None:
    """Return the Java object that creates and finds marks, None if this Spark cannot compile it."""
    return instance(spark, "PlanMarks")
