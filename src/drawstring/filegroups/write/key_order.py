"""The order of keys in files of the storage layout `lsm_tree`: what writers of files need to keep it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InternalError
from drawstring.engine.ranges import sorted_order
from drawstring.filegroups.read.key_order import AscendingKeys
from drawstring.schema.meta import RECORD_KEY


class KeyOrder:
    """Checks that the rows written to a file are sorted by record key.

    Args:
        path: of the file, for the error.
        once: whether no key may come again. A base file keeps the rows of one key that Hudi left in the one
            before it.
    """

    def __init__(self, path: str, *, once: bool = False) -> None:
        self._path = path
        self._keys = AscendingKeys(once=once)

    def check(self, batch: pa.RecordBatch) -> None:
        """Check the next rows of the file.

        Raises:
            InternalError: a key is smaller than the one before it, or comes again and may not.
        """
        if not self._keys.go_on(batch.column(RECORD_KEY)):
            raise InternalError(
                "The rows for a file of a table with hoodie.table.storage.layout=lsm_tree are not sorted by"
                " record key. Nothing was committed. Report this, with the operation that failed.",
                path=self._path,
            )


def first_of_each_key(
    batches: Iterable[pa.RecordBatch], repeated: list[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the first row of each key of sorted rows.

    Args:
        batches: rows sorted by record key.
        repeated: receives the other rows, sorted as well.
    """
    last: pa.Scalar | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        keys = batch.column(RECORD_KEY).cast(pa.string())
        repeats = np.zeros(len(keys), dtype=bool)
        repeats[1:] = pc.equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
        repeats[0] = last is not None and pc.equal(keys[0], last).as_py()
        last = keys[-1]
        if repeats.any():
            repeated.append(batch.filter(pa.array(repeats)))
            batch = batch.filter(pa.array(~repeats))
        yield batch


def whole_keys(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stream in batches such that rows of one key that follow each other are in one.

    Args:
        batches: rows in which equal keys are contiguous.
    """
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        keys = batch.column(RECORD_KEY)
        is_last = pc.equal(keys, keys[-1]).to_numpy(zero_copy_only=False)
        begins = len(keys) - int(np.argmin(is_last[::-1])) if not is_last.all() else 0
        if begins or (held and held[-1].column(RECORD_KEY)[-1] != keys[0]):
            yield pa.concat_batches([*held, batch.slice(0, begins)])
            held = []
        held.append(batch.slice(begins))
    if held:
        yield pa.concat_batches(held)


def sorted_deletes(
    keys: pa.Array, ordering: Sequence[pa.Array] | None
) -> tuple[pa.Array, Sequence[pa.Array] | None]:
    """Return deletes sorted by key, each key once; of several, the one without ordering values remains.

    Args:
        keys: the deleted keys.
        ordering: their ordering values by column; None if they have none.
    """
    columns = list(ordering or ())
    table = pa.table([keys, *columns], names=[RECORD_KEY, *map(str, range(len(columns)))])
    table = table.take(sorted_order(table, table.column_names)).combine_chunks()
    batches: list[pa.RecordBatch] = []
    first = pa.Table.from_batches(first_of_each_key(table.to_batches(), batches), table.schema)
    flat = [column.combine_chunks() for column in first.columns]
    return flat[0], (flat[1:] if columns else ordering)
