"""Convert the tasks of a query to a DataFrame, and read options to scans.

    slices without logs ──> Spark's own Parquet reader ──┐
                                                         ├─ union
    all other slices ──> read_slice in Python workers ───┘

Spark's own reader takes the values of partition columns from the paths, and prunes by them, also in joins.
A path may lack the value of a column: the default partition of a text column has rows with null and rows
with an empty text. Such files are a relation of their own in the union, unless their footers say that all
rows are null.

`scan_of` returns the scan for read options, `dataframe` its rows. `with_columns` returns the columns that a
user gives to a read with `schema`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.types import StructType

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.read import VALUES_FROM_PATHS
from drawstring.config.options.write_options import ReadOptions
from drawstring.config.table_config import KeyGeneratorType, TableConfig
from drawstring.entry import open as open_table
from drawstring.expressions.predicate import parse_where
from drawstring.filegroups.cdc_reader import CHANGE_SCHEMA
from drawstring.filegroups.read_task import ReadTask
from drawstring.formats.data_file import is_parquet
from drawstring.formats.filter import where_columns
from drawstring.formats.parquet import null_columns, parquet_schema
from drawstring.model.files import BaseFile
from drawstring.query.policies import NEWEST
from drawstring.query.replanning import Skips, Task
from drawstring.query.scan import Scan
from drawstring.schema.fields import COMMIT_TIME
from drawstring.schema.timestamp_units import has_millis, table_units
from drawstring.spark.reading.base_files import SparkFile, can_list, parquet_files
from drawstring.spark.reading.relation import Slices, relation
from drawstring.spark.storage_options import spark_path
from drawstring.spark.workers.rows import spark_schema
from drawstring.spark.workers.tasks import Watched, surface_in_actions, watch
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage
from drawstring.table import Table

_FOOTER_THREADS: Final = 16

_FOOTERS_MAX: Final = 1_000
"""Files of a table with milliseconds up to which Spark reads files: the footer of each is read before."""

_NULL_FILES_MAX: Final = 100
"""Files up to which footers are asked whether partition columns are null."""


@dataclass(frozen=True, slots=True)
class SliceReading:
    """Columns and condition of one query.

    Attributes:
        schema: columns of the result.
        where: SQL condition of the query, which Spark can evaluate itself.
        skips: rules out tasks for conditions that Spark pushes down; None if nothing can.
    """

    schema: pa.Schema
    where: str | None
    skips: Skips | None = None


def dataframe(spark: SparkSession, tasks: Sequence[Task], reading: SliceReading) -> DataFrame:
    """Return the rows of a query's tasks as a lazy DataFrame; only footers are read now.

    Raises:
        UnsupportedError: Spark has no type for a column.
    """
    surface_in_actions()
    columns = spark_schema(reading.schema)
    slices = [task for task in tasks if isinstance(task, ReadTask)]
    if len(slices) < len(tasks):
        return _read_in_python(spark, tasks, columns, None)
    paths = _native_paths(spark, slices, reading)
    in_python = [task for task, path in zip(slices, paths, strict=True) if path is None]
    native = [NativeFile(task, path) for task, path in zip(slices, paths, strict=True) if path is not None]
    parts = [_read_natively(spark, files, reading) for files in _by_known_columns(_with_values(native))]
    if in_python or not tasks:
        parts.append(_read_in_python(spark, in_python, columns, reading.skips))
    return reduce(DataFrame.union, parts)


@dataclass(frozen=True, slots=True)
class NativeFile:
    """A base file that Spark's own reader reads.

    Attributes:
        task: the task that it is the only file of.
        path: path by which Spark opens it.
        values: values of the partition columns of all its rows; columns whose value is not known are absent.
    """

    task: ReadTask
    path: str
    values: Mapping[str, Any] = field(default_factory=dict)


def _with_values(files: Sequence[NativeFile]) -> list[NativeFile]:
    """Add the values of the partition columns to files; a column that is null in all rows of a file is None.

    A column has to have a value in one of the paths, or be null in all of them. Few footers are asked.
    """
    given = [file.task.partition_values for file in files]
    of_some = {name for values in given for name, value in values.items() if value is not None}
    names = [
        name
        for name in {name: None for values in given for name in values}
        if name in of_some or all(name in values for values in given)
    ]
    known = [
        replace(file, values={name: values[name] for name in names if name in values})
        for file, values in zip(files, given, strict=True)
    ]
    lacking = [number for number, file in enumerate(known) if len(file.values) < len(names)]
    if not lacking or len(lacking) > _NULL_FILES_MAX:
        return known
    with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
        asked = pool.map(lambda number: _with_footer(known[number], names), lacking)
        for number, file in zip(lacking, asked, strict=True):
            known[number] = file
    return known


def _with_footer(file: NativeFile, names: Sequence[str]) -> NativeFile:
    storage = open_spec(file.task.storage)
    unknown = [name for name in names if name not in file.values]
    nulls = null_columns(storage, _base(file.task).status.path, unknown)
    return replace(file, values={**file.values, **dict.fromkeys(nulls)})


def _by_known_columns(files: Sequence[NativeFile]) -> list[list[NativeFile]]:
    """Return files in groups whose partition columns with known values are the same, the largest first."""
    groups = defaultdict(list)
    for file in files:
        groups[frozenset(file.values)].append(file)
    return sorted(groups.values(), key=len, reverse=True)


def _read_natively(spark: SparkSession, native: Sequence[NativeFile], reading: SliceReading) -> DataFrame:
    """Read files with Spark's own reader; all tasks of the query share columns and filters."""
    task, names = native[0].task, native[0].values
    files = [
        SparkFile(
            file.path,
            _base(file.task).status,
            {name: _nullable_text(file.values[name]) for name in names},
        )
        for file in native
    ]
    if task.timeline_digest is not None:
        watch(open_spec(task.storage).full_uri(""), Watched(task.storage, task.timeline_digest))
    tasks = [file.task for file in native]
    df = parquet_files(spark, files, _slices(tasks, spark_schema(task.schema), reading.skips))
    if task.commit_times is not None:
        df = df.where(df[COMMIT_TIME].isin(*task.commit_times))
    if reading.where is not None:
        df = df.where(_unpushed(reading.where) if _may_meet_nan(task) else reading.where)
    if reading.schema.names == task.schema.names:
        return df
    return df.select([df[f"`{name}`"] for name in reading.schema.names])


def _may_meet_nan(task: ReadTask) -> bool:
    """Return whether the condition of a query uses float columns.

    Spark prunes row groups by minimum and maximum values, which ignore NaN, although NaN is greater than all
    numbers in Spark.
    """
    types = task.schema
    names = [] if task.where is None else where_columns(task.where, types)
    type_names = [str(types.field(name).type) for name in names]  # a struct includes its fields
    return any(kind in name for name in type_names for kind in ("float", "double"))


def _unpushed(where: str) -> Column:
    """Return a condition that Spark applies to rows and does not push down to files."""
    return F.coalesce(F.expr(where), F.lit(False))


def _nullable_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_in_python(
    spark: SparkSession, tasks: Sequence[Task], columns: T.StructType, skips: Skips | None
) -> DataFrame:
    return relation(spark, _slices(tasks, columns, skips))


def _slices(tasks: Sequence[Task], columns: T.StructType, skips: Skips | None) -> Slices:
    root = open_spec(tasks[0].storage).full_uri("") if tasks else ""
    return Slices(tuple(tasks), columns, plan_name(root), skips=skips)


def plan_name(root: str) -> str:
    """Return the name of a table's scan in Spark's plans.

    Args:
        root: URI of the table, as `Storage.full_uri` returns it.
    """
    return f"drawstring {root}/"


def _native_paths(spark: SparkSession, tasks: Sequence[ReadTask], reading: SliceReading) -> list[str | None]:
    """Return the path of each task's file if Spark's own reader returns the same rows, else None."""
    plain = [task for task in tasks if _is_plain(task)]
    if not plain or not _is_whole_condition(plain[0], reading) or not can_list(spark):
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
    """Return whether a slice is a single Parquet file with all values of its rows that its path has not."""
    base, logs = task.file_slice.base, task.file_slice.logs
    is_plain_file = base is not None and base.source is None and is_parquet(base.status.path)
    return is_plain_file and not logs and task.base_renames is None and task.config.populate_meta_fields


def _is_whole_condition(task: ReadTask, reading: SliceReading) -> bool:
    """Return whether the SQL text is the whole condition of a task, apart from commit times.

    A query may add further conditions, as an incremental query of archived commits does.
    """
    if task.where is None or reading.where is None:
        return task.where is None
    condition = parse_where(reading.where, task.schema)
    return condition is not None and bool(task.where.equals(condition))


def _base(task: ReadTask) -> BaseFile:
    assert task.file_slice.base is not None
    return task.file_slice.base


def _instants_that_fit(storage: Storage, tasks: Sequence[ReadTask], reading: SliceReading) -> set[str]:
    """Return the instants whose files Spark can read with the current schema of the table.

    All files of an instant have the same schema, so one footer per instant is enough. Apache Hudi copies row
    groups, so in files of one instant timestamps may have different units: all files are asked, if few.
    """
    schema = tasks[0].schema
    required = (
        schema if reading.where is not None else pa.schema([schema.field(n) for n in reading.schema.names])
    )
    bases = [_base(task) for task in tasks]
    samples = {base.instant: base for base in bases}
    is_each_asked = has_millis(required)
    if is_each_asked and len(bases) > _FOOTERS_MAX:
        return set()
    asked = bases if is_each_asked else list(samples.values())
    with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
        footers = pool.map(lambda base: parquet_schema(storage, base.status.path), asked)
        unfit = {
            base.instant for base, stored in zip(asked, footers, strict=True) if not fits(stored, required)
        }
    return samples.keys() - unfit


def fits(stored: pa.Schema, required: pa.Schema) -> bool:
    """Return whether Spark can read a Parquet file with a schema: types agree, columns may be missing."""
    if any(pa.types.is_time(field.type) for field in required):
        return False
    names = set(stored.names)
    present = [field for field in required if field.name in names]
    return all(_same(stored.field(field.name).type, field.type) for field in present)


def _same(stored: pa.DataType, required: pa.DataType) -> bool:
    if pa.types.is_struct(required):
        if not pa.types.is_struct(stored):
            return False
        stored_types = {field.name: field.type for field in stored}
        return all(
            field.name not in stored_types or _same(stored_types[field.name], field.type)
            for field in required
        )
    if pa.types.is_list(required):
        return pa.types.is_list(stored) and _same(stored.value_type, required.value_type)
    if pa.types.is_map(required):
        return (
            pa.types.is_map(stored)
            and _same(stored.key_type, required.key_type)
            and _same(stored.item_type, required.item_type)
        )
    return _is_timestamp_like(stored, required) or bool(stored.equals(required))


def _is_timestamp_like(stored: pa.DataType, required: pa.DataType) -> bool:
    both = pa.types.is_timestamp(stored) and pa.types.is_timestamp(required)
    # Spark reads no nanoseconds; the old 96-bit timestamps have nanoseconds and no time zone.
    is_readable = both and (stored.tz is None) == (required.tz is None) and stored.unit != "ns"
    return is_readable and table_units(stored, required) is stored


def scan_of(table: Table, read_options: ReadOptions) -> Scan:
    """Return the scan for read options.

    Args:
        table: the table.
        read_options: the options.

    Raises:
        InvalidError: an incremental query without a begin and an end.
        UnsupportedError: values of partition columns are to come from paths that do not have them.
    """
    check_values_in_paths(table.config, read_options)
    if read_options.query_type != "incremental":
        return table.scan(
            read_options.columns,
            where=read_options.where,
            as_of=read_options.as_of,
            read_optimized=read_options.query_type == "read_optimized",
        )
    if read_options.begin is None and read_options.end is None:
        raise InvalidError(
            "An incremental query needs a begin. Set hoodie.datasource.read.begin.instanttime to an instant"
            " or to earliest."
        )
    begin = NEWEST if read_options.begin is None else read_options.begin
    if read_options.is_cdc:
        return table.changes(
            begin,
            read_options.end,
            include_start=read_options.include_start,
            holes=read_options.holes,
        )
    return table.incremental(
        begin,
        read_options.end,
        columns=read_options.columns,
        where=read_options.where,
        include_start=read_options.include_start,
        holes=read_options.holes,
        full_scan=read_options.full_scan,
        path_glob=read_options.path_glob,
    )


def scan_at(path: str, storage_options: Mapping[str, str], read_options: ReadOptions) -> Scan:
    """Open a table and return the scan for read options; see `scan_of`.

    Args:
        path: the table's root.
        storage_options: options of the object store.
        read_options: the options.
    """
    table = open_table(path, storage_options=storage_options, options=read_options.of_table)
    return scan_of(table, read_options)


def schema_of(table: Table, read_options: ReadOptions) -> pa.Schema:
    """Return the columns of a query or a stream with read options.

    Args:
        table: the table.
        read_options: the options.

    Raises:
        UnsupportedError: values of partition columns are to come from paths that do not have them.
    """
    check_values_in_paths(table.config, read_options)
    if read_options.query_type == "incremental" and read_options.is_cdc:
        return CHANGE_SCHEMA
    return table.scan(read_options.columns, where=read_options.where, as_of=read_options.as_of).schema


def check_values_in_paths(config: TableConfig, read_options: ReadOptions) -> None:
    """Check that paths have the values of partition columns, if these are to come from paths.

    Args:
        config: the table.
        read_options: the options.

    Raises:
        UnsupportedError: a key generator formats a column as a date, or makes paths by rules of its own.
    """
    if not read_options.values_from_paths:
        return
    is_custom = config.path_generator is KeyGeneratorType.CUSTOM and not config.partition_types
    has_own_rules = is_custom or config.path_generator is KeyGeneratorType.USER_PROVIDED
    if formatted := config.partition_fields if has_own_rules else config.formatted_partition_fields:
        raise UnsupportedError(
            f"{VALUES_FROM_PATHS} would show folders in place of the values of {', '.join(formatted)}: the"
            " table's key generator makes other texts of them. Leave the option out, and select"
            " _hoodie_partition_path to see the folders."
        )


def with_columns(df: DataFrame, columns: StructType) -> DataFrame:
    """Return the columns of a read that the user gave, in this order and in these types.

    As in Hudi, columns that the table lacks are null.

    Args:
        df: rows of the table.
        columns: names and types.
    """
    is_exact = (df.sparkSession.conf.get("spark.sql.caseSensitive") or "").lower() == "true"
    known = {name if is_exact else name.lower(): name for name in df.columns}

    def column(name: str) -> Column:
        stored = known.get(name if is_exact else name.lower())
        return F.lit(None) if stored is None else df[f"`{stored}`"]

    return df.select([column(each.name).cast(each.dataType).alias(each.name) for each in columns])
