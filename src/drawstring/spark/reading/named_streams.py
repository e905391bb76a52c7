"""Streams of tables by their names in the catalog: `spark.readStream.table("rides")`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamReader

from drawstring.spark.errors import analysed
from drawstring.spark.sql.named import location_of

_FORMAT: Final = "hudi"


class NamedStreamReader(DataStreamReader):
    """PySpark's reader of streams, which finds Hudi tables by name; Spark asks its catalog for a stream."""

    @analysed()
    def table(self, tableName: str) -> DataFrame:
        """Read a table of the catalog as a stream: a Hudi table with drawstring, others with PySpark."""
        location = location_of(self._spark, tableName)
        return super().table(tableName) if location is None else self.format(_FORMAT).load(location)
