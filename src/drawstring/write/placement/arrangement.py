"""Arrangement of the rows of a bulk insert: sort and shuffle before writing.

NONE                                  no shuffle, no sort: every task writes its rows
GLOBAL_SORT                           all rows sorted by partition path and record key
PARTITION_SORT                        the rows of each task sorted by partition path and record key
PARTITION_PATH_REPARTITION            one task per partition path
PARTITION_PATH_REPARTITION_AND_SORT   the same: rows of a partition path are grouped in any case
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from drawstring.base.errors import InvalidError
from drawstring.config.keys.bulk import BulkInsert, SortMode
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY

_BY_PARTITION = (SortMode.PARTITION_PATH_REPARTITION, SortMode.PARTITION_PATH_REPARTITION_AND_SORT)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Sort and shuffle of rows before they are written.

    Attributes:
        sort_by: sort columns.
        global_sort: whether tasks get sorted ranges of all rows, rather than sort their own rows.
        by_partition: whether one task gets all rows of a partition path.
    """

    sort_by: tuple[str, ...] = ()
    global_sort: bool = False
    by_partition: bool = False


def arrangement(bulk: BulkInsert, schema: pa.Schema) -> Arrangement:
    """Return the arrangement that the options of a bulk insert request.

    Args:
        bulk: options of the bulk insert.
        schema: schema of the table.

    Raises:
        InvalidError: the table lacks a sort column, or its type has no order.
    """
    if bulk.partitioner and not bulk.sort_columns:
        raise InvalidError(
            "hoodie.bulkinsert.user.defined.partitioner.class needs sort columns. Set them in"
            " hoodie.bulkinsert.user.defined.partitioner.sort.columns."
        )
    if bulk.sort_columns:
        for name in bulk.sort_columns:
            if name not in schema.names or pt.is_nested(schema.field(name).type):
                raise InvalidError(
                    f"Rows cannot be sorted by {name}. Use columns of simple types from"
                    f" {', '.join(schema.names)}."
                )
        last = (RECORD_KEY,) if bulk.sort_by_key_last else ()
        return Arrangement((PARTITION_PATH, *bulk.sort_columns, *last), global_sort=True)
    mode = SortMode(bulk.sort_mode)
    if mode in _BY_PARTITION:
        return Arrangement(by_partition=True)
    if mode is SortMode.NONE:
        return Arrangement()
    return Arrangement((PARTITION_PATH, RECORD_KEY), global_sort=mode is SortMode.GLOBAL_SORT)
