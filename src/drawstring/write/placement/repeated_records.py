"""Records that the table has several of in one file group, and that a condition changes some of.

A change names its record by its key, in log files and when a base file is rewritten. So an UPDATE, DELETE or
MERGE that meets one of several rows with a key would change them all, or lose some: it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.filegroups.read.keys import ReadKeys
from drawstring.filegroups.write.changes import ACTION, RowAction
from drawstring.index.protocol import IS_DELETED, LOCATION_SCHEMA
from drawstring.index.tag_context import TagContext
from drawstring.merge.order import Array
from drawstring.merge.versions import flat
from drawstring.model.files import FileSlice
from drawstring.schema.meta import RECORD_KEY
from drawstring.write.placement.base_counts import base_counts


@dataclass(frozen=True, slots=True)
class RepeatedRecords:
    """Refuses changes of some of several records with a key. Picklable.

    Attributes:
        read: reads the keys of a slice.
    """

    read: ReadKeys

    @staticmethod
    def of(context: TagContext) -> RepeatedRecords:
        """Return the check for a write."""
        return RepeatedRecords(context.key_reader(LOCATION_SCHEMA))

    def refused(
        self, file_slice: FileSlice, pieces: Iterator[pa.Table], *, is_delete: bool
    ) -> Iterator[pa.Table]:
        """Yield the rows, which change records of a slice.

        Args:
            file_slice: the slice.
            pieces: prepared rows of its file group, perhaps with actions; those of a key together.
            is_delete: whether all of them are deletes.

        Raises:
            InvalidError: the slice has more records with a key, or several of one to update or merge.
        """
        for rows in pieces:
            self._check(file_slice, rows, is_delete=is_delete)
            yield rows

    def _check(self, file_slice: FileSlice, rows: pa.Table, *, is_delete: bool) -> None:
        actions = flat(rows.column(ACTION)) if ACTION in rows.column_names else None
        changed = flat(rows.column(RECORD_KEY))
        if actions is not None:
            changed = changed.filter(pc.not_equal(actions, int(RowAction.INSERT)))
        keys = pc.unique(changed)
        if not len(keys):
            return
        # Rows with actions were tagged, which finds a repeated record as often as it is there.
        is_plain = is_delete and actions is None
        wanted = _counts(keys, changed) if is_plain else np.ones(len(keys), np.int64)
        in_base = base_counts(self.read.task(file_slice), keys)
        if in_base is not None and (in_base <= wanted).all():
            return
        stored = np.zeros(len(keys), np.int64)
        for batch in self.read(file_slice):
            stored += _counts(keys, batch.column(RECORD_KEY).filter(pc.invert(batch.column(IS_DELETED))))
        if (stored > wanted).any():
            key = keys[int(np.argmax(stored > wanted))].as_py()
            raise InvalidError(
                f"The table has several records with the key {key!r} in one file group, and this would change"
                " some of them, or give them different values. Records are changed by their key, so all of"
                " them would change. Delete all records with the key, then insert those that shall stay; or"
                " write the rows of the partition that shall stay by insert_overwrite.",
                path=f"{file_slice.partition}/{file_slice.file_id}".lstrip("/"),
            )


def _counts(keys: pa.Array, among: pa.Array) -> Array:
    """Return how often each of some distinct keys is among others."""
    found = pc.index_in(among, value_set=keys).drop_null().to_numpy(zero_copy_only=False)
    return np.bincount(found, minlength=len(keys))
