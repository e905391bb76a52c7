"""Direct reading of Parquet input: Python workers read the files of a DataFrame that only scans them.

    DataFrame ── a plain scan of files with the types of the table? ──> row groups by task
                                  │ no
                                  └──> Spark reads the rows and passes them on

Otherwise Spark converts the files to rows, and the rows to Arrow batches for the workers. This conversion is
most of the cost of a first load, also because the JVM first has to compile that code.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from drawstring.base.errors import DrawstringError
from drawstring.formats.parquet.parts import ParquetParts, parquet_parts
from drawstring.spark.engine.tasks import RowGroups
from drawstring.storage import open_storage

FILES_MAX: Final = 64
"""Maximum number of files whose footers the driver reads; for longer loads the JVM warms up anyway."""

_FOOTER_THREADS: Final = 16
_TASKS_PER_CORE: Final = 2
_MUST_BE: Final = {
    "spark.sql.files.ignoreCorruptFiles": ("false",),
    "spark.sql.files.ignoreMissingFiles": ("false",),
    "spark.sql.parquet.datetimeRebaseModeInRead": ("corrected", "exception"),
}
_OPTIONS_OF_NO_MEANING: Final = {"path", "paths", ""}
_OLD_CALENDAR: Final = {"org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"}
_WRITER: Final = "org.apache.spark.version"
_NEW_CALENDAR: Final = "3"


def parquet_input(df: DataFrame, schema: pa.Schema) -> list[list[RowGroups]] | None:
    """Return the row groups that each task reads instead of Spark; None if Spark has to read the rows.

    Args:
        df: the rows.
        schema: their columns.
    """
    try:
        paths = _paths(df)
        if not 0 < len(paths) <= FILES_MAX:
            return None
        with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
            files = list(pool.map(_parts, paths))
    except (Py4JError, DrawstringError):
        return None  # let Spark report what is wrong with the files
    if not all(_has(parts, schema) for parts in files):
        return None
    return _divided(paths, files, schema, df.sparkSession.sparkContext.defaultParallelism)


def _paths(df: DataFrame) -> list[str]:
    """Return the local Parquet files that a DataFrame scans; none if its plan is not a plain scan."""
    execution: Any = df._jdf.queryExecution()
    if _kind(execution.analyzed()) != "LogicalRelation":
        return []
    plan = execution.optimizedPlan()  # shows caches and row-level security rules
    if _kind(plan) != "LogicalRelation" or plan.catalogTable().isDefined():
        return []
    relation = plan.relation()
    is_plain = (
        _kind(relation) == "HadoopFsRelation"
        and _kind(relation.fileFormat()) == "ParquetFileFormat"
        and relation.partitionSchema().length() == 0
        and relation.schema().length() == plan.output().length()
        and set(relation.options().keys().mkString(",").lower().split(",")) <= _OPTIONS_OF_NO_MEANING
    )
    conf = df.sparkSession.conf
    if not is_plain or any(str(conf.get(key)).lower() not in values for key, values in _MUST_BE.items()):
        return []
    uris = [urlsplit(uri) for uri in relation.location().inputFiles()]
    return [unquote(uri.path) for uri in uris] if all(uri.scheme == "file" for uri in uris) else []


def _kind(value: Any) -> str:
    return str(value.getClass().getSimpleName())


def _parts(path: str) -> ParquetParts:
    folder, _, name = path.rpartition("/")
    return parquet_parts(open_storage(folder or "/"), name)


def _has(parts: ParquetParts, schema: pa.Schema) -> bool:
    """Return whether a file has these columns, with values that Spark would not rebase or cast."""
    is_old = parts.entries.keys() & _OLD_CALENDAR or parts.entries.get(_WRITER, _NEW_CALENDAR) < _NEW_CALENDAR
    return not is_old and parts.columns.names == schema.names and parts.columns.types == schema.types


def _divided(
    paths: Sequence[str], files: Sequence[ParquetParts], schema: pa.Schema, cores: int
) -> list[list[RowGroups]]:
    """Divide row groups among tasks by size, with adjacent row groups in one task."""
    tasks: list[list[RowGroups]] = [[] for _ in range(_TASKS_PER_CORE * cores)]
    share = sum(sum(parts.sizes_bytes) for parts in files) / len(tasks) or 1
    before = 0
    for path, parts in zip(paths, files, strict=True):
        folder, _, name = path.rpartition("/")
        groups: dict[int, list[int]] = {}
        for number, size in enumerate(parts.sizes_bytes):
            groups.setdefault(int((before + size / 2) / share), []).append(number)
            before += size
        for task, numbers in groups.items():
            tasks[task].append(RowGroups(open_storage(folder or "/").spec, name, tuple(numbers), schema))
    return [groups for groups in tasks if groups]
