"""Open tables in a Spark session by their name in the catalog, and as the table of a statement.

`open_named_table` opens a table by its name in Spark's catalog. `TablePeer` is a table of the catalog in one
statement: its facts, its rows, and writes of a query's rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from drawstring.base.errors import InvalidError, NoTableError
from drawstring.base.lazy import cached_property
from drawstring.config.options.write_options import ReadOptions, check_place
from drawstring.entry import open as open_table
from drawstring.merge.record_version import ordering_fields
from drawstring.query.scan import Scan
from drawstring.schema.fields import META_COLUMNS, without_meta
from drawstring.spark.errors import analysed
from drawstring.spark.functions import SparkTable, table
from drawstring.spark.jvm import Peer, java
from drawstring.spark.reading.dataframe import scan_at
from drawstring.spark.reading.plan_marks import Reread, plan_of
from drawstring.spark.sql.ddl import (
    add_partitions,
    alter,
    create_index,
    drop_index,
    has_index,
    has_partition,
    partitions_last,
    partitions_of,
    prepare_alter,
    rename_table,
)
from drawstring.spark.sql.dml import (
    can_drop,
    change,
    current_attempt,
    drop,
    drop_by_texts,
    insert,
    record_json,
    records,
    truncate,
)
from drawstring.spark.sql.options import check_reads_latest, read_options, table_options, write_options
from drawstring.spark.storage_options import path_of, storage_options
from drawstring.spark.workers.rows import spark_schema, with_comments
from drawstring.table import Table
from drawstring.timeline.change_detection import digest

_MICROS: Final = "micros "


class TablePeer(Peer):
    """Answers of a table as a statement found it.

    Args:
        spark: the session.
        given: `name` (database and table, or `hudi` and a path), `path`, `as_of` (a time to travel to or
            None), and what the catalog has about it, if it is there: `schema`, `properties`.
    """

    def __init__(self, spark: SparkSession, given: Mapping[str, Any]) -> None:
        self.spark = spark
        self.database, self.name = given["name"]
        self.path = path_of(given["path"])
        self.properties: dict[str, str] = given.get("properties", {})
        self._is_external: bool = given.get("is_external", True)
        self.storage_options = storage_options(spark, self.path, table_options(self.properties))
        self._given = given
        self.answers = {
            "facts": lambda _: json.dumps(self.facts),
            "rows": lambda _: plan_of(self._reread.shown(self.spark, self._scan_to_read())),
            "records": lambda _: plan_of(self._records()),
            "size": lambda _: str(sum(task.size_bytes for task in self.scan.tasks())),
            "insert": lambda given: insert(self, json.loads(given[0]), given[1]),
            "change": lambda given: change(self, json.loads(given[0]), given[1]),
            "prepare_alter": lambda given: prepare_alter(self, json.loads(given)),
            "rename": lambda name: rename_table(self, name),
            "alter": lambda given: alter(self, json.loads(given)),
            "partitions": lambda given: json.dumps(partitions_of(self.open(), json.loads(given))),
            "has_partition": lambda given: has_partition(self.open(), json.loads(given)),
            "add_partitions": lambda given: add_partitions(self.open(), json.loads(given)),
            "drop_partitions": lambda given: drop_by_texts(self, json.loads(given)),
            "create_index": lambda given: create_index(self, json.loads(given)),
            "drop_index": lambda name: drop_index(self, name),
            "has_index": lambda name: has_index(self, name),
            "can_drop": lambda given: self._latest() and can_drop(self, json.loads(given)),
            "truncate": lambda _: truncate(self),
            "drop": lambda given: drop(self, json.loads(given)),
        }

    def open(self) -> Table:
        """Open the table.

        Raises:
            NoTableError: the catalog has the table, but there is none at its location.
        """
        try:
            return open_table(self.path, storage_options=self.storage_options)
        except NoTableError as error:
            if "schema" not in self._given:
                raise error.at(table=self.path) from error.__cause__
            raise NoTableError(
                f"The catalog has {self.full_name}, but there is no table at its location. It was created"
                " without drawstring, or its files were deleted. Drop it, and create it again.",
                table=self.path,
            ) from error

    @property
    def full_name(self) -> str:
        """Name of the table with its database."""
        return f"{self.database}.`{self.name}`" if "/" in self.name else f"{self.database}.{self.name}"

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What Spark has to know about the table to resolve a statement."""
        table = self.open()
        timeline, has_meta = table.timeline, table.config.populate_meta_fields
        stored = with_comments(spark_schema(without_meta(self.scan.schema)), table.columns.comments)
        schema, partitioned_by = partitions_last(stored, table.config.partition_fields)
        properties = {**self.properties, "provider": "hudi", "location": self.path}
        if self._is_external:
            properties["external"] = "true"
        return {
            "name": f"spark_catalog.{self.full_name}",
            "path": self.path,
            "schema": schema.json(),
            "partitioned_by": partitioned_by,
            "meta_columns": list(META_COLUMNS) if has_meta else [],
            "is_ordered": bool(table.config.record_key_fields and ordering_fields(table.config)),
            "record": record_json(self.scan.schema, table.config),
            "properties": properties,
            "snapshot": f"{self.path} {digest(timeline)} {self._read_options}",
        }

    @cached_property
    def scan(self) -> Scan:
        """The snapshot that the statement reads."""
        return self._reread.scan()

    def _latest(self) -> bool:
        """Check that a statement that changes rows finds the latest ones."""
        check_reads_latest(self.spark, self.properties, has_logs=self.open().config.is_merge_on_read)
        return True

    def _records(self) -> DataFrame:
        self._latest()
        return records(self, self._scan_to_read())

    def _scan_to_read(self) -> Scan:
        """Return the snapshot, or that of the write to this table of which the read is a part."""
        attempt = current_attempt() if self._given["as_of"] is None else None
        return (attempt and attempt.scan(self.path, self._reread.scan)) or self.scan

    def for_writes(self) -> SparkTable:
        """Open the table for a write by Spark's executors.

        Raises:
            NoTableError: the catalog has the table, but there is none at its location.
        """
        self.open()
        return table(self.spark, self.path, storage_options=self.storage_options)

    def write_options(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the options of a write of the statement; see `options.write_options`.

        Raises:
            InvalidError: they name the folder of another table.
        """
        options = write_options(self.spark, self.properties, given)
        check_place(options, self.path)
        return options

    @property
    def _reread(self) -> Reread:
        read = partial(scan_at, self.path, self.storage_options, self._read_options)
        return Reread(self.path, self.storage_options, read)

    @cached_property
    def _read_options(self) -> ReadOptions:
        as_of = self._given["as_of"]
        return read_options(self.spark, self.properties, None if as_of is None else _moment(as_of))


def _moment(as_of: str) -> str:
    """Return the time to travel to, as a read option has it.

    Args:
        as_of: an instant, or microseconds since 1970 in UTC.

    Raises:
        InvalidError: it is no time.
    """
    if not as_of.startswith(_MICROS):
        if not as_of.strip():
            raise InvalidError(
                "VERSION AS OF has no instant. Give one, as in VERSION AS OF '20260101120000000'."
            )
        return as_of
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(as_of.removeprefix(_MICROS)))
    return moment.isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table of the catalog, or at a path.

    Attributes:
        path: its root.
        table: the table.
        options: options of writes to it.
    """

    path: str
    table: SparkTable
    options: dict[str, str]


def location_of(spark: SparkSession, name: str) -> str | None:
    """Return the path of a table of Hudi by its name in the catalog, None if there is none."""
    found = java(spark, "HudiCatalog").location(spark._jsparkSession, name)
    return None if found is None else path_of(found)


def open_named_table(spark: SparkSession, name: str | None, path: str | None = None) -> NamedTable:
    """Open a table.

    Args:
        spark: a registered session.
        name: name in the catalog, with its database or without, or a path.
        path: the path, if there is no name.

    Raises:
        InvalidError: neither was given, or the catalog has no table of Hudi with this name.
        NoTableError: there is no table at the path.
    """
    if not (name or path):
        raise InvalidError("No table was given. Give table => its name, or path => its path.")
    if name and "/" in name:
        name, path = None, name
    root = location_of(spark, name) if name else path_of(path or "")
    if root is None:
        raise InvalidError(f"The catalog has no Hudi table {name}. SHOW TABLES names those that it has.")
    found = java(spark, "HudiCatalog").properties(spark._jsparkSession, name) if name else "{}"
    properties: dict[str, str] = json.loads(found)
    stored = storage_options(spark, root, table_options(properties))
    opened = table(spark, root, storage_options=stored)
    return NamedTable(root, opened, write_options(spark, properties, {}))


def table_named(spark: SparkSession, name: str) -> SparkTable:
    """Open a table by its name in the session's catalog; see `drawstring.spark.table`.

    Args:
        spark: a session that was registered with `drawstring.spark.register`.
        name: name of the table, with its database or without.

    Returns:
        The table. Its methods accept DataFrames and everything that `drawstring.Table` accepts.

    Raises:
        InvalidError: the catalog has no table of Hudi with this name.
        NoTableError: the files of the table are gone.

    Example:
        >>> table = drawstring.spark.table_named(spark, "lake.rides")
        >>> table.update("city = 'lima'", {"fare": "fare * 2"}).updates
        2
    """
    with analysed():
        return open_named_table(spark, name).table
