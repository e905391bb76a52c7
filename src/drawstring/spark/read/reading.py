"""A query's tasks as a DataFrame.

slices without logs ──> Spark's own Parquet reader ──┐
                                                     ├─ union
all other slices ──> read_slice in Python workers ───┘
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from drawstring.expressions.predicate import parse_where
from drawstring.filegroups.read.tasks import ReadTask
from drawstring.formats.base_files import is_parquet
from drawstring.formats.conditions import where_columns
from drawstring.formats.parquet import parquet_schema
from drawstring.model.files import BaseFile
from drawstring.query.replanning import Task
from drawstring.schema.meta import COMMIT_TIME, PARTITION_PATH
from drawstring.spark.engine.failures import Watched, surface_in_actions, watch
from drawstring.spark.engine.types import spark_schema
from drawstring.spark.locations import spark_path
from drawstring.spark.read.base_files import SparkFile, can_list, parquet_files
from drawstring.spark.read.relation import Slices, relation
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage

FOLDERS_IN_A_LITERAL_MAX: Final = 100
"""Partitions up to which their values travel in the query itself; beyond it they are joined."""

_FOOTER_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class SliceReading:
    """How the tasks of one query are read.

    Attributes:
        schema: columns of the result.
        where: SQL text of the rows to read, which Spark can evaluate itself.
    """

    schema: pa.Schema
    where: str | None


def dataframe(spark: SparkSession, tasks: Sequence[Task], reading: SliceReading) -> DataFrame:
    """Return the rows of a query's tasks as a DataFrame; nothing is read yet but footers.

    Raises:
        UnsupportedError: Spark has no type for a column.
    """
    surface_in_actions()
    columns = spark_schema(reading.schema)
    slices = [task for task in tasks if isinstance(task, ReadTask)]
    if len(slices) < len(tasks):
        return _read_in_python(spark, tasks, columns)
    paths = _native_paths(spark, slices, reading)
    in_python = [task for task, path in zip(slices, paths, strict=True) if path is None]
    parts = []
    if len(in_python) < len(slices):
        native = [task for task, path in zip(slices, paths, strict=True) if path is not None]
        parts.append(_read_natively(spark, native, [path for path in paths if path], reading))
    if in_python or not tasks:
        parts.append(_read_in_python(spark, in_python, columns))
    return parts[0] if len(parts) == 1 else parts[0].union(parts[1])


def _read_natively(
    spark: SparkSession, tasks: Sequence[ReadTask], paths: Sequence[str], reading: SliceReading
) -> DataFrame:
    """Read files with Spark; columns and filters are those that all tasks of the query share."""
    task = tasks[0]
    told = _told_by_all(tasks)
    files = [
        SparkFile(path, _base(each).status, {name: _written(each.partition_values[name]) for name in told})
        for each, path in zip(tasks, paths, strict=True)
    ]
    if task.look is not None:
        watch(open_spec(task.storage).full_uri(""), Watched(task.storage, task.look))
    df = parquet_files(spark, files, spark_schema(task.schema))
    df = with_folder_values(df, tasks, [name for name in _needed(task, reading) if name not in told])
    if task.commit_times is not None:
        df = df.where(df[COMMIT_TIME].isin(*task.commit_times))
    if reading.where is not None:
        df = df.where(_unpushed(reading.where) if _may_meet_nan(task) else reading.where)
    if reading.schema.names == task.schema.names:
        return df
    return df.select([df[f"`{name}`"] for name in reading.schema.names])


def _told_by_all(tasks: Sequence[ReadTask]) -> list[str]:
    """Return the partition columns whose values all folders tell."""
    return [
        name
        for name in tasks[0].partition_values
        if all(task.partition_values.get(name) is not None for task in tasks)
    ]


def _may_meet_nan(task: ReadTask) -> bool:
    """Tell whether a query's condition looks at floats.

    Spark rules row groups out by least and greatest values, which leave NaN out, while NaN is
    greater than all numbers to it.
    """
    types = task.schema
    names = [] if task.where is None else where_columns(task.where, types)
    written = [str(types.field(name).type) for name in names]  # of a struct: with its fields
    return any(kind in text for text in written for kind in ("float", "double"))


def _unpushed(where: str) -> Column:
    """Return a condition that Spark applies to rows and hands to no file."""
    return F.coalesce(F.expr(where), F.lit(False))


def with_folder_values(df: DataFrame, tasks: Sequence[ReadTask], needed: Sequence[str]) -> DataFrame:
    """Put what folders say in the place of partition columns, as every query does.

    A global index may leave a record in the folder of its old partition. The folder of a record is
    in its meta column, so a look-up by it tells the value.

    Args:
        df: rows of base files.
        tasks: what is read; partition paths with their values.
        needed: columns that the query needs.
    """
    values = {task.file_slice.partition: task.partition_values for task in tasks}
    told = [name for name in needed if any(row.get(name) is not None for row in values.values())]
    if not told:
        return df
    if len(values) > FOLDERS_IN_A_LITERAL_MAX:
        return _joined_folder_values(df, values, told)
    for name in told:
        pairs = [F.lit(text) for path, row in values.items() for text in (path, _text(row.get(name)))]
        found = F.element_at(F.create_map(*pairs), F.col(PARTITION_PATH)).cast(df.schema[name].dataType)
        df = df.withColumn(name, F.coalesce(found, F.col(f"`{name}`")))
    return df


def _joined_folder_values(
    df: DataFrame, values: Mapping[str, Mapping[str, Any]], told: Sequence[str]
) -> DataFrame:
    columns = ", ".join(f"`folder {name}` string" for name in told)
    rows = [(path, *(_text(row.get(name)) for name in told)) for path, row in values.items()]
    folders = df.sparkSession.createDataFrame(rows, f"`{PARTITION_PATH}` string, {columns}")
    joined = df.join(F.broadcast(folders), PARTITION_PATH, "left")
    for name in told:
        found = F.col(f"`folder {name}`").cast(df.schema[name].dataType)
        joined = joined.withColumn(name, F.coalesce(found, F.col(f"`{name}`")))
    return joined


def _needed(task: ReadTask, reading: SliceReading) -> list[str]:
    return list(reading.schema.names if reading.where is None else task.schema.names)


def _text(value: Any) -> str | None:
    return None if value is None else _written(value)


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_in_python(spark: SparkSession, tasks: Sequence[Task], columns: T.StructType) -> DataFrame:
    root = open_spec(tasks[0].storage).full_uri("") if tasks else ""
    return relation(spark, Slices(tuple(tasks), columns, plan_name(root)))


def plan_name(root: str) -> str:
    """Return what a plan calls the reading of a table's slices.

    Args:
        root: the table's address as `Storage.full_uri` gives it.
    """
    return f"drawstring {root}/"


def _native_paths(spark: SparkSession, tasks: Sequence[ReadTask], reading: SliceReading) -> list[str | None]:
    """Return, by task, the file that Spark's own reader gives the same rows for, or None."""
    plain = [task for task in tasks if _is_plain(task)]
    if not plain or not _says_all(plain[0], reading) or not can_list(spark):
        return [None] * len(tasks)
    storage = open_spec(plain[0].storage)
    fit = _instants_that_fit(storage, plain, reading)
    return [
        spark_path(spark, storage.full_uri(_base(task).status.path))
        if _is_plain(task) and _base(task).instant in fit
        else None
        for task in tasks
    ]


def _is_plain(task: ReadTask) -> bool:
    """Tell whether a slice is one Parquet file that holds all of the rows' values."""
    base, logs = task.file_slice.base, task.file_slice.logs
    is_plain_file = base is not None and base.source is None and is_parquet(base.status.path)
    return (
        is_plain_file
        and not logs
        and task.base_renames is None
        and task.config.populate_meta_fields
        and not task.config.drop_partition_columns
    )


def _says_all(task: ReadTask, reading: SliceReading) -> bool:
    """Tell whether the SQL text is all that rows have to fulfil besides commit times.

    A query may add a condition of its own: one that reaches archived commits does.
    """
    if task.where is None or reading.where is None:
        return task.where is None
    said = parse_where(reading.where, task.schema)
    return said is not None and bool(task.where.equals(said))


def _base(task: ReadTask) -> BaseFile:
    assert task.file_slice.base is not None
    return task.file_slice.base


def _instants_that_fit(storage: Storage, tasks: Sequence[ReadTask], reading: SliceReading) -> set[str]:
    """Return the instants whose files Spark can read with the table's schema of today.

    Files of one instant were written with one schema, so one footer of each tells.
    """
    schema = tasks[0].schema
    wanted = (
        schema if reading.where is not None else pa.schema([schema.field(n) for n in reading.schema.names])
    )
    samples = {base.instant: base.status.path for base in map(_base, tasks)}
    with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
        footers = pool.map(lambda path: parquet_schema(storage, path), samples.values())
        return {instant for instant, stored in zip(samples, footers, strict=True) if fits(stored, wanted)}


def fits(stored: pa.Schema, wanted: pa.Schema) -> bool:
    """Tell whether Spark reads a Parquet file by another schema: columns may be missing, types not differ."""
    if any(pa.types.is_time(field.type) for field in wanted):
        return False
    names = set(stored.names)
    present = [field for field in wanted if field.name in names]
    return all(_same(stored.field(field.name).type, field.type) for field in present)


def _same(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_struct(wanted):
        if not pa.types.is_struct(stored):
            return False
        have = {field.name: field.type for field in stored}
        return all(field.name not in have or _same(have[field.name], field.type) for field in wanted)
    if pa.types.is_list(wanted):
        return pa.types.is_list(stored) and _same(stored.value_type, wanted.value_type)
    if pa.types.is_map(wanted):
        return (
            pa.types.is_map(stored)
            and _same(stored.key_type, wanted.key_type)
            and _same(stored.item_type, wanted.item_type)
        )
    return _is_timestamp_like(stored, wanted) or bool(stored.equals(wanted))


def _is_timestamp_like(stored: pa.DataType, wanted: pa.DataType) -> bool:
    both = pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted)
    # Spark reads no nanoseconds; those of the old 96-bit timestamps come without their zone.
    return both and (stored.tz is None) == (wanted.tz is None) and stored.unit != "ns"
