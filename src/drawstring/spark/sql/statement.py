"""The table of a statement, as the modules that carry out statements see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyspark.sql import SparkSession

from drawstring.query.scan import Scan
from drawstring.spark.functions import SparkTable
from drawstring.table import Table


class StatementTable(Protocol):
    """A table of the catalog, as a statement found it; `TablePeer` in `sql.tables` is one.

    Attributes:
        spark: the session.
        name: name of the table, or its path.
        path: the table's root.
        properties: what the catalog has about it.
    """

    spark: SparkSession
    name: str
    path: str
    properties: dict[str, str]

    @property
    def scan(self) -> Scan:
        """The snapshot that the statement reads."""
        ...

    def open(self) -> Table:
        """Open the table.

        Raises:
            NoTableError: the catalog has the table, but there is none at its location.
        """
        ...

    def for_writes(self) -> SparkTable:
        """Open the table for a write by Spark's executors.

        Raises:
            NoTableError: the catalog has the table, but there is none at its location.
        """
        ...

    def write_options(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the options of a write of the statement.

        Raises:
            InvalidError: they name the folder of another table.
        """
        ...
