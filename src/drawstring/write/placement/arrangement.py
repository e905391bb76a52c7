"""How a bulk insert brings rows together before it writes them.

NONE                                  as they come: every task writes what it has
GLOBAL_SORT                           all rows by partition path and record key
PARTITION_SORT                        the rows of each task by the same
PARTITION_PATH_REPARTITION            one task a partition path
PARTITION_PATH_REPARTITION_AND_SORT   the same: rows of a partition path come together anyway
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
    """What is done with rows before they are written.

    Attributes:
        sort_by: columns that they are sorted by.
        global_sort: whether tasks get ranges of all rows, rather than sort what they have.
        by_partition: whether one task gets all rows of a partition path.
    """

    sort_by: tuple[str, ...] = ()
    global_sort: bool = False
    by_partition: bool = False


def arrangement(bulk: BulkInsert, schema: pa.Schema) -> Arrangement:
    """Return what the options of a bulk insert ask for.

    Args:
        bulk: the options.
        schema: the table's columns.

    Raises:
        InvalidError: a column to sort by that the table lacks, or that has no order.
    """
    if bulk.partitioner and not bulk.sort_columns:
        raise InvalidError(
            "hoodie.bulkinsert.user.defined.partitioner.class sorts by columns: name them in"
            " hoodie.bulkinsert.user.defined.partitioner.sort.columns"
        )
    if bulk.sort_columns:
        for name in bulk.sort_columns:
            if name not in schema.names or pt.is_nested(schema.field(name).type):
                raise InvalidError(
                    f"rows cannot be sorted by {name}: choose columns without parts from"
                    f" {', '.join(schema.names)}"
                )
        last = (RECORD_KEY,) if bulk.sort_by_key_last else ()
        return Arrangement((PARTITION_PATH, *bulk.sort_columns, *last), global_sort=True)
    mode = SortMode(bulk.sort_mode)
    if mode in _BY_PARTITION:
        return Arrangement(by_partition=True)
    if mode is SortMode.NONE:
        return Arrangement()
    return Arrangement((PARTITION_PATH, RECORD_KEY), global_sort=mode is SortMode.GLOBAL_SORT)
