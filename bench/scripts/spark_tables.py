"""Tables on Spark that suites share, one class for each system. drawstring's is in `spark_table_drawstring`.

All of them write rows that Spark computes (`sparks.source`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import hudi_jvm
from hudi_options import write_options
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from shapes import Shape
from sparks import session, source

ICEBERG = "spark.sql.catalog.ice"
ICEBERG_MODES = {f"write.{verb}.mode": "merge-on-read" for verb in ("merge", "update", "delete")}


class Table:
    """A table of one system.

    Attributes:
        path: of its folder.
        compact: how it is compacted; None if it cannot be.
    """

    conf: ClassVar[dict[str, str]] = {}
    warehouse_conf = ""
    """The key of the warehouse's folder in the session's configuration."""
    database = ""
    """The folder of the database in the warehouse."""

    def __init__(self, spark: SparkSession, warehouse: str, shape: Shape) -> None:
        self.spark, self.shape = spark, shape
        self.path = str(Path(warehouse, self.database, shape.name))
        self.compact: Any = self._compact

    @classmethod
    def start(cls, warehouse: str, jars: str | None) -> SparkSession:
        """Return a session whose executors run."""
        spark = session(jars, cls.conf | ({cls.warehouse_conf: warehouse} if cls.warehouse_conf else {}))
        spark.range(1000).count()
        return spark

    def landed(self, file: str) -> DataFrame:
        """Return the rows of an input file."""
        return source(self.spark, file, self.shape.key[0])

    def load(self, file: str) -> None:
        raise NotImplementedError

    def upsert(self, file: str) -> None:
        raise NotImplementedError

    def set_columns(self, file: str) -> None:
        """Set the columns that a file has, of rows that are there."""
        raise NotImplementedError

    def read(self) -> DataFrame:
        raise NotImplementedError

    def _compact(self) -> None:
        raise NotImplementedError


class Hudi(Table):
    """Apache Hudi: merge on read, bucket index."""

    conf = hudi_jvm.CONF

    def __init__(self, spark: SparkSession, warehouse: str, shape: Shape) -> None:
        super().__init__(spark, warehouse, shape)
        self._options = write_options("mor", "bucket", shape)

    def load(self, file: str) -> None:
        self._write(file, "bulk_insert", "overwrite")

    def upsert(self, file: str) -> None:
        self._write(file, "upsert", "append")

    def set_columns(self, file: str) -> None:
        """Merge by SQL, which writes log blocks that have the columns set and no others."""
        if not self.spark.catalog.tableExists(self.shape.name):
            self.spark.sql(f"create table {self.shape.name} using hudi location '{self.path}'")
        for key, value in self._options.items():
            self.spark.conf.set(key, value)
        merge(self, self.shape.name, file, f"matched then update set {set_clause(self, file)}")

    def read(self) -> DataFrame:
        return self.spark.read.format("hudi").load(self.path)

    def _compact(self) -> None:
        at_once = "hoodie.compact.inline.max.delta.commits=1"
        what = f"op => 'scheduleandexecute', path => '{self.path}', options => '{at_once}'"
        self.spark.sql(f"call run_compaction({what})").collect()

    def _write(self, file: str, operation: str, mode: str) -> None:
        writer = self.landed(file).write.format("hudi").options(**self._options)
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(self.path)


class SqlTable(Table):
    """A table that SQL knows by a name, and changes by a merge."""

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def _newer(self) -> str:
        return f"new.{self.shape.ordering} >= old.{self.shape.ordering}"

    def read(self) -> DataFrame:
        return self.spark.table(self.name)

    def upsert(self, file: str) -> None:
        self._merge(file, f"matched and {self._newer} then update set * when not matched then insert *")

    def set_columns(self, file: str) -> None:
        self._merge(file, f"matched and {self._newer} then update set {set_clause(self, file)}")

    def _merge(self, file: str, what: str) -> None:
        merge(self, self.name, file, what)


class Delta(SqlTable):
    """Delta Lake with deletion vectors."""

    conf: ClassVar[dict[str, str]] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
    }

    @property
    def name(self) -> str:
        return f"delta.`{self.path}`"

    def load(self, file: str) -> None:
        writer = self.landed(file).write.format("delta").partitionBy(*self.shape.partition_by)
        writer.save(self.path)

    def _compact(self) -> None:
        self.spark.sql(f"optimize {self.name}").collect()


class Iceberg(SqlTable):
    """Apache Iceberg, merge on read."""

    conf: ClassVar[dict[str, str]] = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        ICEBERG: "org.apache.iceberg.spark.SparkCatalog",
        f"{ICEBERG}.type": "hadoop",
    }
    warehouse_conf = f"{ICEBERG}.warehouse"
    database = "db"

    @property
    def name(self) -> str:
        return f"ice.db.{self.shape.name}"

    def load(self, file: str) -> None:
        writer = self.landed(file).writeTo(self.name)
        if self.shape.partition_by:
            writer = writer.partitionedBy(*map(F.col, self.shape.partition_by))
        for key, value in ({"format-version": "2"} | ICEBERG_MODES).items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def _compact(self) -> None:
        options = "map('delete-file-threshold', '1', 'rewrite-all', 'true')"
        call = f"call ice.system.rewrite_data_files(table => 'db.{self.shape.name}', options => {options})"
        self.spark.sql(call).collect()


class Paimon(SqlTable):
    """Apache Paimon, a primary-key table. Rows are appended: those of one key meet when they are read."""

    conf: ClassVar[dict[str, str]] = {
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        "spark.sql.catalog.pai": "org.apache.paimon.spark.SparkCatalog",
    }
    warehouse_conf = "spark.sql.catalog.pai.warehouse"
    database = "db.db"

    @property
    def name(self) -> str:
        return f"pai.db.{self.shape.name}"

    def load(self, file: str) -> None:
        rows = self.landed(file)
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema)
        partitions = ", ".join(self.shape.partition_by)
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in self._properties().items())
        self.spark.sql("create database if not exists pai.db")
        self.spark.sql(
            f"create table {self.name} ({columns}) {f'partitioned by ({partitions})' if partitions else ''}"
            f" tblproperties ({properties})"
        )
        self._append(rows)

    def upsert(self, file: str) -> None:
        self._append(self.landed(file))

    def set_columns(self, file: str) -> None:
        """Append rows with nulls in other columns, which the merge engine passes over."""
        rows = self.landed(file)
        there = set(rows.columns)
        values = [
            F.col(each.name) if each.name in there else F.lit(None).cast(each.dataType).alias(each.name)
            for each in self.read().schema
        ]
        self._append(rows.select(values))

    def _append(self, rows: DataFrame) -> None:
        rows.write.format("paimon").mode("append").insertInto(self.name)

    def _compact(self) -> None:
        self.spark.sql(f"call pai.sys.compact(table => 'db.{self.shape.name}')").collect()

    def _properties(self) -> dict[str, str]:
        return {
            "primary-key": ",".join((*self.shape.key, *self.shape.partition_by)),
            "bucket": str(self.shape.buckets),
            "sequence.field": self.shape.ordering,
            "write-only": "true",
            "file.format": "parquet",
        } | ({"merge-engine": "partial-update"} if self.shape.sets_columns else {})


def merge(table: Table, name: str, file: str, what: str) -> None:
    """Merge the rows of a file into a table by SQL.

    Args:
        table: of any system.
        name: of it in SQL.
        file: its rows are called `new`, the table's `old`.
        what: what follows the first `when`.
    """
    table.landed(file).createOrReplaceTempView("new_rows")
    same = " and ".join(f"old.{column} = new.{column}" for column in table.shape.found_by)
    table.spark.sql(f"merge into {name} old using new_rows new on {same} when {what}").collect()


def set_clause(table: Table, file: str) -> str:
    """Return SQL that sets the columns of a file, but for the key's."""
    columns = (name for name in table.landed(file).columns if name not in table.shape.key)
    return ", ".join(f"old.{name} = new.{name}" for name in columns)


SYSTEMS = {"hudi": Hudi, "delta": Delta, "iceberg": Iceberg, "paimon": Paimon}


def tables_of(warehouse: str, words: Sequence[str]) -> Callable[[Shape], Table]:
    """Start Spark for a system; return how to make its tables, which are to be loaded.

    Args:
        warehouse: the folder of the tables.
        words: `drawstring mor`, `drawstring cow`, or the jars and the name of another system.
    """
    if words[0] == "drawstring":
        drawstring: Any = importlib.import_module("spark_table_drawstring").Drawstring
        return partial(drawstring, drawstring.start(warehouse, None), warehouse, kind=words[1])
    system = SYSTEMS[words[1]]
    return partial(system, system.start(warehouse, words[0]), warehouse)
