"""`df.write.format("hudi").saveAsTable(name)`: the options describe a new table, as those of `save` do.

| mode | no table | a table |
|---|---|---|
| append | CREATE TABLE AS | rows are added, columns by name |
| overwrite | CREATE TABLE AS | it is replaced at its place |
| ignore | CREATE TABLE AS | nothing |
| errorifexists | CREATE TABLE AS | AnalysisException |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from drawstring.spark import functions
from drawstring.spark.sql.options import PARTITION_PATH
from drawstring.spark.sql.tables import location_of

_PATH: Final = "path"
_LOCATION: Final = "location"


def save_as_table(
    df: DataFrame, name: str, options: Mapping[str, str], partition_by: Sequence[str], mode: str
) -> None:
    """Save rows to a table of the catalog.

    Args:
        df: the rows.
        name: name of the table, with its database or without.
        options: Hudi's options, and `path` for the location of a new table.
        partition_by: partition columns.
        mode: the save mode.

    Raises:
        InvalidError: rows, options or mode do not fit; nothing was written.
        ConflictError: another writer was there first; nothing was written.
    """
    save_mode = functions.mode_of(mode)
    location = location_of(df.sparkSession, name)
    if location is not None and save_mode == "ignore":
        return
    if location is not None and save_mode == "overwrite":
        by = {PARTITION_PATH: ",".join(partition_by)} if partition_by else {}
        given = {key: value for key, value in options.items() if key.lower() != _PATH}
        functions.write(df, location, options={**by, **given}, mode="overwrite")
        df.sparkSession.catalog.refreshTable(name)
        return
    if location is not None and save_mode == "append":
        df.writeTo(name).options(
            **{key: value for key, value in options.items() if key.lower() != _PATH}
        ).append()
        return
    _create(df, name, options, partition_by)


def create_empty(df: DataFrame, name: str, options: Mapping[str, str], partition_by: Sequence[str]) -> None:
    """Create a table of the catalog with the columns of a streaming DataFrame; see `save_as_table`."""
    _create(df.sparkSession.createDataFrame([], df.schema), name, options, partition_by)


def _create(df: DataFrame, name: str, options: Mapping[str, str], partition_by: Sequence[str]) -> None:
    writer = df.writeTo(name).using("hudi")
    for key, value in options.items():
        writer = writer.tableProperty(_LOCATION if key.lower() == _PATH else key, value)
    if partition_by:
        writer = writer.partitionedBy(*[F.col(f"`{each}`") for each in partition_by])
    writer.create()
