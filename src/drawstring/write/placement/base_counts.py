"""How often record keys are in a base file, of which only the columns of keys are read.

A file slice has at most as many records with a key as its base file has rows with it, or one of a log file:
log files have one record for each key once they are merged.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from drawstring.filegroups.read.logged_keys import key_numbers
from drawstring.filegroups.read.slice_merge import KeyTexts
from drawstring.filegroups.read.staged_merge import may_stage
from drawstring.filegroups.read.tasks import ReadTask, nullable
from drawstring.formats.parquet.staged import staged
from drawstring.merge.order import Array
from drawstring.schema.evolve import conform
from drawstring.storage import open_spec


def base_counts(task: ReadTask, keys: pa.Array) -> Array | None:
    """Return how many rows of the base file of a slice have each of some keys.

    Args:
        task: the slice, and the table.
        keys: distinct record keys (string).

    Returns:
        None if the base file is not a Parquet file that has all columns under their names.

    Raises:
        CorruptTableError: the base file is missing or damaged.
    """
    base = task.file_slice.base
    counts = np.zeros(len(keys), np.int64)
    if base is None:
        return counts
    if not may_stage(task):
        return None
    with staged(open_spec(task.storage), base.status.path, task.schema, None) as file:
        present = {*file.schema.names}
        stored = pa.schema([each for each in task.schema if each.name in present])
        wanted = key_numbers(keys, task.config, stored, ()) or KeyTexts(keys, task.config)
        columns = tuple(wanted.columns)
        if not present.issuperset(columns):
            return None
        texts = keys.cast(pa.binary()) if task.config.populate_meta_fields else None
        groups = [group for group in file.groups if texts is None or file.may_have_any(group, texts)]
        for span in file.spans(groups):
            for batch in file.rows(span, columns):
                _, numbers = wanted.find(conform(batch, nullable(task.schema, columns)))
                counts += np.bincount(numbers, minlength=len(keys))
    return counts
