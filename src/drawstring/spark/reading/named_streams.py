"""PySpark's reader of streams, for tables of the catalog and with options of Hudi that streams pass over."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamReader

from drawstring.spark.errors import analysed
from drawstring.spark.sql.named import location_of

if TYPE_CHECKING:
    from pyspark.sql._typing import OptionalPrimitiveType

_FORMAT: Final = "hudi"
_PASSED_OVER: Final = (
    "hoodie.datasource.read.begin.instanttime",
    "hoodie.datasource.read.begin.time",
)
"""Options of incremental queries that a stream of Hudi takes and does not follow."""
_LOG: Final = logging.getLogger("drawstring")


class NamedStreamReader(DataStreamReader):
    """Reads streams of Hudi tables by their names, too; Spark asks its catalog for a stream."""

    def option(self, key: str, value: OptionalPrimitiveType) -> NamedStreamReader:
        """Set an option; leave out one that a stream does not follow, with a warning."""
        if key.lower() not in _PASSED_OVER:
            super().option(key, value)
            return self
        _LOG.warning(
            "%s has no effect on a stream, as in Hudi. A new stream starts at"
            " hoodie.datasource.streaming.startOffset, by default at the first commit.",
            key,
        )
        return self

    def options(self, **options: Any) -> NamedStreamReader:
        """Set options, each as `option` does."""
        for key, value in options.items():
            self.option(key, value)
        return self

    @analysed()
    def table(self, tableName: str) -> DataFrame:
        """Read a table of the catalog as a stream: a Hudi table with drawstring, others with PySpark."""
        location = location_of(self._spark, tableName)
        return super().table(tableName) if location is None else self.format(_FORMAT).load(location)
