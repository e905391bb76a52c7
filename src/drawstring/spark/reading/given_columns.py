"""The columns that a user gives to a read with `schema`."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType


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
