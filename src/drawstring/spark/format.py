"""The reader and the writer of `format("hudi")`, which registered sessions return for DataFrames.

A Python data source cannot control how Spark distributes the rows that it writes, and Spark does not pass it
the columns that a query needs. Therefore `spark.read` and `df.write` of a registered session return a reader
and a writer that handle two more formats, `hudi` and `drawstring`, and delegate all other formats to PySpark.
"""

from __future__ import annotations

from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
from pyspark.sql.types import StructType

from drawstring.base.errors import InvalidError
from drawstring.spark import functions
from drawstring.spark.errors import analysed
from drawstring.spark.format_options import (
    as_text,
    is_drawstring_format,
    one_path,
    with_partitions,
    without_path,
)
from drawstring.spark.reading.dataframe import with_columns
from drawstring.spark.sql.rewrites import by_name
from drawstring.spark.sql.saving import save_as_table


class TableReader(DataFrameReader):
    """PySpark's reader, extended by drawstring's formats."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._source: str | None = None
        self._columns: StructType | None = None
        self._options: dict[str, str] = {}

    def format(self, source: str) -> TableReader:
        """Set the format."""
        self._source = source
        super().format(source)
        return self

    def schema(self, schema: Any) -> TableReader:
        """Set the columns; of drawstring's formats the table's columns of these names, in these types."""
        super().schema(schema)
        self._columns = cast(StructType, StructType.fromDDL(schema) if isinstance(schema, str) else schema)
        return self

    def option(self, key: str, value: Any) -> TableReader:
        """Set an option."""
        self._options |= as_text(key, value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> TableReader:
        """Set options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    @analysed()
    def load(
        self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> DataFrame:
        """Load a table with drawstring, or another format with PySpark."""
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        if not is_drawstring_format(self._source, self._spark):
            return super().load(path)
        df = functions.load(self._spark, one_path(path, self._options), without_path(self._options))
        return df if self._columns is None else with_columns(df, self._columns)


class TableWriter(DataFrameWriter):
    """PySpark's writer, extended by drawstring's formats."""

    def __init__(self, df: DataFrame) -> None:
        super().__init__(df)
        self._source: str | None = None
        self._mode = "errorifexists"
        self._partition_by: tuple[str, ...] = ()
        self._bucketing = ""
        self._options: dict[str, str] = {}

    def format(self, source: str) -> TableWriter:
        """Set the format."""
        self._source = source
        super().format(source)
        return self

    def mode(self, saveMode: str | None) -> TableWriter:
        """Set the save mode."""
        if saveMode:
            self._mode = saveMode
        super().mode(saveMode)
        return self

    def option(self, key: str, value: Any) -> TableWriter:
        """Set an option."""
        self._options |= as_text(key, value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> TableWriter:
        """Set options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def partitionBy(self, *cols: Any) -> TableWriter:
        """Set the partition columns."""
        names = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        self._partition_by = tuple(names)
        super().partitionBy(*cols)
        return self

    def bucketBy(self, numBuckets: Any, col: Any, *cols: Any) -> TableWriter:
        """Set buckets; not valid for drawstring's formats."""
        self._bucketing = "bucketBy"
        super().bucketBy(numBuckets, col, *cols)
        return self

    def sortBy(self, col: Any, *cols: Any) -> TableWriter:
        """Set the order in buckets; not valid for drawstring's formats."""
        self._bucketing = "sortBy"
        super().sortBy(col, *cols)
        return self

    @analysed()
    def save(
        self,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        """Save to a table with drawstring, or to another format with PySpark."""
        self._set(format, mode, partitionBy, options)
        if not is_drawstring_format(self._source, self._spark):
            super().save(path)
            return
        root = one_path(path, self._options)
        self._refuse_buckets(root)
        functions.write(
            self._df,
            root,
            options=with_partitions(without_path(self._options), self._partition_by, root),
            mode=self._mode,
        )

    @analysed()
    def saveAsTable(
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        """Save to a table of the catalog, which is created with the options if it does not exist."""
        self._set(format, mode, partitionBy, options)
        if not is_drawstring_format(self._source, self._spark):
            super().saveAsTable(name)
            return
        self._refuse_buckets(name)
        save_as_table(self._df, name, self._options, self._partition_by, self._mode)

    @analysed()
    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        """Insert into a table of the catalog: by name if the columns have its names, else by position."""
        rows = by_name(self._df, tableName)
        if rows is self._df:
            super().insertInto(tableName, overwrite)
            return
        self._refuse_buckets(tableName)
        writer = TableWriter(rows).mode(self._mode).options(**self._options)
        if self._partition_by:
            writer.partitionBy(*self._partition_by)
        writer._insert(tableName, overwrite)

    def _insert(self, table: str, overwrite: bool | None) -> None:
        super().insertInto(table, overwrite)

    def _refuse_buckets(self, table: str) -> None:
        if self._bucketing:
            raise InvalidError(f"{self._bucketing} does not apply to a table. Leave it out.", table=table)

    def _set(self, source: str | None, mode: str | None, partition_by: Any, options: dict[str, Any]) -> None:
        self.mode(mode).options(**options)
        if partition_by is not None:
            self.partitionBy(partition_by)
        if source is not None:
            self.format(source)
