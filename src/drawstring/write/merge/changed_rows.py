"""Changes of rows that an engine made by SQL of its own: updates, deletes and inserts in one commit.

rows of the table, each with its `RECORD` ── SQL of the engine ──> rows with `ACTION` and `RECORD` ──> write

The engine reads rows together with the place that they come from, so that rows to update or delete need no
tagging. Rows to insert have no place; the index finds one, as in an upsert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Ids
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table.config import TableConfig
from drawstring.engine.protocol import Rows
from drawstring.filegroups.read.open_logs import record_keys
from drawstring.filegroups.read.slice_reader import ReadTask, read_slice
from drawstring.filegroups.write.changes import ACTION, RowAction
from drawstring.index.location import LOCATION, file_group_locations
from drawstring.index.tag_context import TagContext
from drawstring.keygen.keys import KeyGenerator
from drawstring.schema.evolve import conform
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY
from drawstring.txn.reach import Groups, Reads, anywhere
from drawstring.write.merge.batches import FOUND_LOCATION
from drawstring.write.merge.matched_rows import key_columns
from drawstring.write.placement.place import Prepare
from drawstring.write.placement.repeated_records import RepeatedRecords
from drawstring.write.plan import WritePlan
from drawstring.write.verbs import Verb

RECORD: Final = "_drawstring_record"
"""Hidden column that identifies a row: record key, partition path and file id."""

RECORD_TYPE: Final = pa.struct(
    [pa.field(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, FOUND_LOCATION)]
)


def read_records(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Read a slice, with the column `RECORD` beside those of the task."""
    needed = [name for name in key_columns(task.config) if name not in task.columns]
    for batch in read_slice(replace(task, columns=(*task.columns, *needed))):
        fields = [
            record_keys(batch, task.config),
            *(
                pa.repeat(pa.scalar(text, pa.string()), batch.num_rows)
                for text in (task.file_slice.partition, task.file_slice.file_id)
            ),
        ]
        yield batch.append_column(RECORD, pa.StructArray.from_arrays(fields, fields=list(RECORD_TYPE)))


@dataclass(frozen=True, slots=True)
class BoundChanges:
    """Rows with the column `RECORD`, bound to a table.

    Attributes:
        rows: rows to write; of a merge with the column `ACTION`.
        columns: columns of the table.
        matched_on: columns that a merge matched on by equality; None if it matched in another way, too.
    """

    rows: Rows
    columns: pa.Schema
    matched_on: frozenset[str] | None = None

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table; no columns are added."""
        return self.columns

    def repeated(self, context: Callable[[], TagContext]) -> RepeatedRecords:
        """Return what refuses to change some of several records with a key."""
        return RepeatedRecords.of(context())

    @property
    def sets(self) -> tuple[str, ...]:
        """Empty: the rows are whole."""
        return ()

    def reads(self, written: Groups) -> Reads:
        """Return the whole table: which rows led to the changes is not known."""
        return Reads(anywhere, anywhere)

    def acts_as(self, verb: Verb, config: TableConfig) -> Verb:
        """Return the operation: rows of a table have their keys."""
        return verb

    def prepared(self, plan: WritePlan) -> Rows:
        """Return the rows with key, partition path, place and, of a merge, action."""
        place = LOCATION
        if ACTION in self.rows.schema.names:
            self._check_inserts(plan)
            is_global, is_keyless = plan.index.is_global, not plan.settings.config.record_key_fields
            place = LOCATION if plan.index.is_hashed or is_global or is_keyless else FOUND_LOCATION
        change = PrepareChanges(plan.prepare, place, ACTION in self.rows.schema.names, plan.ids)
        return self.rows.map_batches(change, change.schema)

    def _check_inserts(self, plan: WritePlan) -> None:
        """Check that a row without match is a new record.

        Raises:
            UnsupportedError: its key may be in another partition of the table.
        """
        keys = plan.settings.config.record_key_fields
        if plan.index.is_global and keys and self.matched_on != frozenset(keys):
            raise UnsupportedError(
                "With a global index, a merge that inserts must match on the record key only."
                f" Match on {', '.join(keys)}."
            )

    def release(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class PrepareChanges:
    """Batch function that makes changed rows ready to be written.

    Attributes:
        prepare: makes the keys of new rows, and their locations if its index hashes.
        place: name of the column with the file group: the location, or the one that the row was read from.
        has_actions: whether rows have actions; otherwise all are updates, or all deletes.
        ids: makes keys of new rows in a table without key columns.
    """

    prepare: Prepare
    place: str
    has_actions: bool
    ids: Ids

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table, key, partition path, file group and perhaps action."""
        added = [pa.field(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, self.place)]
        actions = [pa.field(ACTION, pa.int8())] if self.has_actions else []
        return pa.schema([*(each.with_nullable(True) for each in self.prepare.schema), *added, *actions])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Prepare a stream of batches.

        Raises:
            InvalidError: a value does not fit its column, a new row has no key, or an update would change
                the key or the partition of a row.
        """
        generator = KeyGenerator(self.prepare.config, is_writing=True)
        for batch in batches:
            if not self.has_actions:
                yield self._prepared(
                    batch, None if self.prepare.schema.names else RowAction.DELETE, generator
                )
                continue
            actions = batch.column(ACTION)
            for each in RowAction:
                if (rows := batch.filter(pc.equal(actions, int(each)))).num_rows:
                    yield self._prepared(rows, each, generator)

    def _prepared(
        self, rows: pa.RecordBatch, action: RowAction | None, generator: KeyGenerator
    ) -> pa.RecordBatch:
        """Prepare rows with the same action; None for updates."""
        prepare, schema = self.prepare, self.schema
        record = rows.column(RECORD)
        keys, partitions, found = (pc.struct_field(record, number) for number in range(3))
        if action is RowAction.DELETE:
            columns = [pa.nulls(rows.num_rows, each.type) for each in prepare.schema]
        else:
            whole = conform(rows, prepare.schema)
            columns = whole.columns
            made = self._keys_and_paths(whole, generator)
            if action is RowAction.INSERT:
                keys, partitions = made
            else:
                self._check_not_moved((keys, partitions), made)
        locations = prepare.index.locations(keys, partitions) if self.place == LOCATION else None
        place = file_group_locations(found) if locations is None else locations
        actions = [pa.array(np.full(rows.num_rows, action, dtype=np.int8))] if self.has_actions else []
        return pa.RecordBatch.from_arrays([*columns, keys, partitions, place, *actions], schema=schema)

    def _keys_and_paths(self, rows: pa.RecordBatch, generator: KeyGenerator) -> tuple[pa.Array, pa.Array]:
        """Return the keys and partition paths that rows have by their columns; keys are made if need be."""
        key_schema = self.prepare.key_schema
        if self.prepare.config.record_key_fields:
            return generator.keys_and_paths(conform(rows, key_schema))
        numbers = pa.array(np.arange(rows.num_rows)).cast(pa.string())
        keys = pc.binary_join_element_wise(self.ids.uuid(), numbers, "_")
        named = conform(rows, key_schema) if key_schema.names else rows
        return keys, generator.partition_paths(named)

    def _check_not_moved(self, before: tuple[pa.Array, pa.Array], after: tuple[pa.Array, pa.Array]) -> None:
        """Check that updates leave key and partition of rows as they are."""
        has_keys = bool(self.prepare.config.record_key_fields)
        for what, fields, old, new in (
            ("record key", self.prepare.config.record_key_fields, before[0], after[0]),
            ("partition path", self.prepare.config.partition_fields, before[1], after[1]),
        ):
            moved = pc.index(pc.not_equal(old, new), True).as_py()
            if moved >= 0 and (has_keys or what != "record key"):
                raise InvalidError(
                    f"An update would change the {what} of a row from {old[moved].as_py()!r} to"
                    f" {new[moved].as_py()!r}, but {', '.join(fields)} cannot be set. Delete the row and"
                    " insert another."
                )
