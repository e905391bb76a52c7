"""The columns that statistics in the metadata table are of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from drawstring.config.table.config import TableConfig
from drawstring.metadata.maintained.file_summaries import INDEXED_META, is_indexable
from drawstring.schema.meta import META_COLUMNS

COLUMNS_MAX: Final = 32
"""Number of columns to index (`hoodie.metadata.index.column.stats.max.columns.to.index`)."""


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """The columns of a table that a new index gets statistics of.

    Attributes:
        names: their names; empty for the first columns.
        count_max: number of the first columns.
    """

    names: tuple[str, ...] = ()
    count_max: int = COLUMNS_MAX

    def among(self, schema: pa.Schema, config: TableConfig) -> tuple[str, ...]:
        """Return the columns, meta columns first.

        Args:
            schema: the columns of the table without meta columns.
            config: the table.
        """
        is_v2 = config.rules.has_index_versions
        given = [each for each in self.names if each not in META_COLUMNS]
        # Hudi 1.2.0 fails at conditions on columns of bytes that have statistics of version V2.
        known = given or [each.name for each in schema if not pt.is_binary(each.type)]
        chosen = [each for each in known if is_indexable(schema, each, is_v2=is_v2)]
        meta = INDEXED_META if config.populate_meta_fields else ()
        return (*meta, *(chosen if given else chosen[: self.count_max]))
