"""Changes of rows that an engine made by SQL of its own: updates, deletes and inserts in one commit.

rows of the table, each with its `RECORD` ── SQL of the engine ──> rows with `ACTION` and `RECORD` ──> write

The engine reads rows together with the place that they come from, so that rows to update or delete need no
tagging. Rows to insert have no place; the index finds one, as in an upsert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Ids
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table_config import TableConfig
from drawstring.engine.protocol import Rows
from drawstring.filegroups.file_slice_reader import ReadTask, read_slice
from drawstring.filegroups.log_scanner import record_keys, row_deletes
from drawstring.filegroups.write.changes import ACTION, RowAction
from drawstring.index.global_index import old_name
from drawstring.index.protocol import LOCATION, file_group_locations
from drawstring.index.tag_context import TagContext
from drawstring.keygen.key_generator import KeyGenerator
from drawstring.merge.record_merger import merger_of
from drawstring.merge.record_version import ordering_columns, ordering_of, wins_over
from drawstring.schema.evolution import conform
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY
from drawstring.txn.read_set import Groups, Reads, anywhere
from drawstring.write.merge import FOUND_LOCATION
from drawstring.write.placement import Prepare, RepeatedRecords
from drawstring.write.plan import Verb, WritePlan
from drawstring.write.update import key_columns

RECORD: Final = "_drawstring_record"
"""Hidden column that identifies a row: record key, partition path, file id and stored ordering columns."""


def record_type(schema: pa.Schema, config: TableConfig) -> pa.StructType:
    """Return the type of the column `RECORD`.

    Args:
        schema: columns of the table.
        config: the table.
    """
    places = [pa.field(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, FOUND_LOCATION)]
    stored = [schema.field(name).with_nullable(True) for name in ordering_columns(config, schema)]
    return pa.struct([*places, *(each.with_name(old_name(each.name)) for each in stored)])


def read_records(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Read a slice, with the column `RECORD` beside those of the task."""
    ordering = ordering_columns(task.config, task.schema)
    needed = [name for name in (*key_columns(task.config), *ordering) if name not in task.columns]
    kind = record_type(task.schema, task.config)
    for batch in read_slice(replace(task, columns=tuple(dict.fromkeys((*task.columns, *needed))))):
        fields = [
            record_keys(batch, task.config),
            *(
                pa.repeat(pa.scalar(text, pa.string()), batch.num_rows)
                for text in (task.file_slice.partition, task.file_slice.file_id)
            ),
            *(batch.column(name) for name in ordering),
        ]
        yield batch.append_column(RECORD, pa.StructArray.from_arrays(fields, fields=list(kind)))


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
                action = None if self.prepare.schema.names else RowAction.DELETE
                yield from self._prepared(batch, action, generator)
                continue
            actions = batch.column(ACTION)
            for each in (RowAction.INSERT, RowAction.UPDATE, RowAction.DELETE):
                if (rows := batch.filter(pc.equal(actions, int(each)))).num_rows:
                    yield from self._prepared(rows, each, generator)

    def _prepared(
        self, rows: pa.RecordBatch, action: RowAction | None, generator: KeyGenerator
    ) -> Iterator[pa.RecordBatch]:
        """Prepare rows with the same action; None for updates."""
        record = rows.column(RECORD)
        keys, partitions, found = (pc.struct_field(record, number) for number in range(3))
        if action is RowAction.DELETE:
            yield self._placed(self._no_columns(rows.num_rows), keys, partitions, found, action)
            return
        whole = conform(rows, self.prepare.schema)
        made_keys, made_partitions = self._keys_and_paths(whole, generator)
        if action is RowAction.INSERT:
            yield self._placed(whole.columns, made_keys, made_partitions, found, action)
            return
        self._check_kept("record key", keys, made_keys)
        if not (self.has_actions and self.prepare.index.is_global):
            self._check_kept("partition path", partitions, made_partitions)
        leaves = self._leaving(whole, record, pc.not_equal(partitions, made_partitions))
        if leaves is None:
            yield self._placed(whole.columns, keys, partitions, found, action)
            return
        stays, left = pc.invert(leaves), whole.filter(leaves)
        kept = [each.filter(stays) for each in (keys, partitions, found)]
        yield self._placed(whole.filter(stays).columns, kept[0], kept[1], kept[2], action)
        old = [each.filter(leaves) for each in (keys, partitions, found)]
        yield self._placed(self._no_columns(left.num_rows), old[0], old[1], old[2], RowAction.MOVE)
        nowhere = pa.nulls(left.num_rows, pa.string())
        yield self._placed(left.columns, old[0], made_partitions.filter(leaves), nowhere, RowAction.INSERT)

    def _leaving(self, rows: pa.RecordBatch, record: pa.StructArray, moved: pa.Array) -> pa.Array | None:
        """Return which updates go to another partition; None if none do.

        As in an upsert, a row that is late by its ordering value stays and loses, and one with a delete mark
        deletes the record where it is.
        """
        if not (self.prepare.index.moves_records and pc.any(moved).as_py()):
            return None
        config = self.prepare.config
        if not merger_of(config).chooses_whole_records:
            raise UnsupportedError(
                "The merge would move a row to another partition, but the table merges versions of a record"
                " by column. Upsert the rows of the source instead."
            )
        wanted = pa.schema([rows.schema.field(name) for name in ordering_columns(config, rows.schema)])
        names = [old_name(name) for name in wanted.names]
        stored = [pc.struct_field(record, [name]) for name in names]
        leaves = np.asarray(moved.to_numpy(zero_copy_only=False), dtype=bool)
        leaves &= ~row_deletes(pa.Table.from_batches([rows]), config)[0]
        if stored:
            old = conform(pa.RecordBatch.from_arrays(stored, names=wanted.names), wanted)
            leaves &= wins_over(ordering_of(rows, config), ordering_of(old, config))
        return pa.array(leaves) if leaves.any() else None

    def _no_columns(self, count: int) -> list[pa.Array]:
        return [pa.nulls(count, each.type) for each in self.prepare.schema]

    def _placed(
        self,
        columns: Sequence[pa.Array],
        keys: pa.Array,
        partitions: pa.Array,
        found: pa.Array,
        action: RowAction | None,
    ) -> pa.RecordBatch:
        """Return rows with key, partition path, file group and action."""
        locations = self.prepare.index.locations(keys, partitions) if self.place == LOCATION else None
        place = file_group_locations(found) if locations is None else locations
        actions = [pa.array(np.full(len(keys), action, dtype=np.int8))] if self.has_actions else []
        return pa.RecordBatch.from_arrays([*columns, keys, partitions, place, *actions], schema=self.schema)

    def _keys_and_paths(self, rows: pa.RecordBatch, generator: KeyGenerator) -> tuple[pa.Array, pa.Array]:
        """Return the keys and partition paths that rows have by their columns; keys are made if need be."""
        key_schema = self.prepare.key_schema
        if self.prepare.config.record_key_fields:
            return generator.keys_and_paths(conform(rows, key_schema))
        numbers = pa.array(np.arange(rows.num_rows)).cast(pa.string())
        keys = pc.binary_join_element_wise(self.ids.uuid(), numbers, "_")
        named = conform(rows, key_schema) if key_schema.names else rows
        return keys, generator.partition_paths(named)

    def _check_kept(self, what: str, before: pa.Array, after: pa.Array) -> None:
        """Check that updates leave key or partition of rows as they are."""
        config = self.prepare.config
        fields = config.record_key_fields if what == "record key" else config.partition_fields
        moved = pc.index(pc.not_equal(before, after), True).as_py()
        if moved >= 0 and (config.record_key_fields or what != "record key"):
            raise InvalidError(
                f"An update would change the {what} of a row from {before[moved].as_py()!r} to"
                f" {after[moved].as_py()!r}, but {', '.join(fields)} cannot be set. Delete the row and"
                " insert another."
            )
