"""Batch functions of a merge: prepare the source, read slices, apply clauses to joined rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.counted import counted
from drawstring.base.errors import InvalidError
from drawstring.config.table.config import TableConfig
from drawstring.expressions.evaluation import evaluated
from drawstring.filegroups.read.open_logs import record_keys
from drawstring.filegroups.read.slice_reader import ReadTask, read_slice
from drawstring.filegroups.write.changes import ACTION, RowAction
from drawstring.index.location import LOCATION, file_group_locations
from drawstring.keygen.keys import KeyGenerator
from drawstring.merge.versions import flat
from drawstring.schema.evolve import conform
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY
from drawstring.write.merge.clauses import Clause, Sides, When
from drawstring.write.merge.match_keys import join_text
from drawstring.write.merge.matched_rows import (
    assigned,
)
from drawstring.write.placement.place import Prepare

JOINED: Final = "_drawstring_joined"
IS_SOURCE: Final = "_drawstring_is_source"
TOUCHED: Final = "_drawstring_touched"
FOUND_LOCATION: Final = "_drawstring_found_location"
"""The file group that a row was read from; null for a new row."""

_NO_SOURCE, _NO_TARGET = "no source", "no target"


def target_columns(clauses: Sequence[Clause], sides: Sides) -> list[str]:
    """Return the columns of the target that the join needs: used by expressions, or kept by an update."""
    names = {name for clause in clauses for name in clause.columns_used(sides.all)}
    for clause in clauses:
        if clause.action is RowAction.UPDATE:
            names |= {sides.of_target(name) for name in sides.target.names if name not in clause.values}
    return [name for name in sides.target.names if sides.of_target(name) in names]


@dataclass(frozen=True, slots=True)
class ArriveToMerge:
    """Batch function that prepares the source for the join.

    Attributes:
        sides: columns of source and target.
        clauses: the clauses, which determine the columns needed.
        config: table configuration for the key generator.
        by_record: whether rows match by record key and partition path rather than by equal columns: null
            has a path too, and different values may have the same path.
    """

    sides: Sides
    clauses: tuple[Clause, ...]
    config: TableConfig
    by_record: bool = False

    @property
    def knows_partitions(self) -> bool:
        """Whether the columns matched on determine the partition of a match."""
        is_parted = bool(self.config.partition_fields)
        return is_parted and all(name in self.sides.matched_on for name in self.sides.fixed)

    @property
    def columns(self) -> list[str]:
        """The columns of the source that are needed."""
        columns_used = {name for clause in self.clauses for name in clause.columns_used(self.sides.all)}
        return [name for name in self.sides.source.names if self.sides.of_source(name) in columns_used]

    @property
    def schema(self) -> pa.Schema:
        """Join key (string), flag of source rows, partition of a match, and the columns."""
        source = self.sides.source
        named = [source.field(name).with_name(self.sides.of_source(name)) for name in self.columns]
        return pa.schema(
            [(JOINED, pa.string()), (IS_SOURCE, pa.bool_()), (TOUCHED, pa.string()), *_nullable(named)]
        )

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Prepare a stream of batches.

        Raises:
            InvalidError: a column matched on does not fit its type in the table, or a row has no key.
        """
        sides, generator, schema = self.sides, KeyGenerator(self.config, is_writing=True), self.schema
        kinds = pa.schema([sides.target.field(name).with_nullable(True) for name in sides.matched_on])
        for batch in batches:
            rows = conform(batch, sides.source)
            matched = [rows.column(name) for name in sides.matched_on.values()]
            named = conform(pa.RecordBatch.from_arrays(matched, names=kinds.names), kinds)
            touched = (
                generator.partition_paths(named)
                if self.knows_partitions
                else pa.nulls(len(rows), pa.string())
            )
            key_columns = generator.keys_and_paths(named) if self.by_record else named.columns
            added = [join_text(key_columns, _NO_TARGET), pa.repeat(True, len(rows)), touched]
            columns = [*added, *(rows.column(name) for name in self.columns)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class ReadToMerge:
    """Reads the rows of a slice that the source may match.

    Attributes:
        sides: columns of both.
        clauses: the clauses, which determine the columns needed.
        by_record: as in `ArriveToMerge`.
    """

    sides: Sides
    clauses: tuple[Clause, ...]
    by_record: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Join key (string), record key, partition path, file group, and the columns."""
        target = self.sides.target
        named = [
            target.field(name).with_name(self.sides.of_target(name))
            for name in target_columns(self.clauses, self.sides)
        ]
        return pa.schema(
            [
                *(
                    pa.field(name, pa.string())
                    for name in (JOINED, RECORD_KEY, PARTITION_PATH, FOUND_LOCATION)
                ),
                *_nullable(named),
            ]
        )

    def __call__(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """Read one slice."""
        schema, names = self.schema, target_columns(self.clauses, self.sides)
        for batch in read_slice(task):
            record = (record_keys(batch, self.sides.config), pa.repeat(task.file_slice.partition, len(batch)))
            matched = [batch.column(name) for name in self.sides.matched_on]
            columns = [
                join_text(record if self.by_record else matched, _NO_SOURCE),
                *record,
                pa.repeat(task.file_slice.file_id, len(batch)),
                *(batch.column(name) for name in names),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class ApplyClauses:
    """Batch function that applies the clauses to joined rows.

    Attributes:
        clauses: clauses of the merge.
        sides: columns of both.
        prepare: makes the keys of new rows, and their locations if its index hashes.
        place: name of the column with the file group: the location, or the one that the row was read from.
    """

    clauses: tuple[Clause, ...]
    sides: Sides
    prepare: Prepare
    place: str

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table, key, partition path, file group and action."""
        columns = [each.with_nullable(True) for each in self.prepare.schema]
        added = [pa.field(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, self.place)]
        return pa.schema([*columns, *added, (ACTION, pa.int8())])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Apply the clauses to a stream of batches.

        Raises:
            InvalidError: a value does not fit its column, a new row has no key, or an update would change
                the key or the partition of a row.
        """
        generator = KeyGenerator(self.prepare.config, is_writing=True)
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            is_source = rows.column(IS_SOURCE).is_valid()
            is_target = rows.column(FOUND_LOCATION).is_valid()
            for when, mask in (
                (When.MATCHED, pc.and_(is_source, is_target)),
                (When.NOT_MATCHED, pc.invert(is_target)),
                (When.BY_SOURCE, pc.invert(is_source)),
            ):
                clauses = [clause for clause in self.clauses if clause.when is when]
                if clauses and (matching := rows.filter(mask)).num_rows:
                    yield from self._applied(matching, clauses, generator)

    def _applied(
        self, rows: pa.Table, clauses: list[Clause], generator: KeyGenerator
    ) -> Iterator[pa.RecordBatch]:
        """Apply to each row the first clause whose condition holds."""
        is_open = np.ones(rows.num_rows, dtype=bool)
        for clause in clauses:
            holds = is_open & _holds(rows, clause)
            is_open &= ~holds
            if holds.any():
                yield self._outcome(rows.filter(pa.array(holds)), clause, generator)

    def _outcome(self, rows: pa.Table, clause: Clause, generator: KeyGenerator) -> pa.RecordBatch:
        columns = self._columns(rows, clause)
        if clause.action is RowAction.INSERT:
            whole = conform(
                pa.RecordBatch.from_arrays(columns, names=self.prepare.schema.names), self.prepare.schema
            )
            keys, partitions = generator.keys_and_paths(conform(whole, self.prepare.key_schema))
        else:
            keys, partitions = flat(rows.column(RECORD_KEY)), flat(rows.column(PARTITION_PATH))
        place = self.prepare.index.locations(keys, partitions) if self.place == LOCATION else None
        if place is None:
            place = file_group_locations(flat(rows.column(FOUND_LOCATION)))
        action = pa.array(np.full(rows.num_rows, clause.action, dtype=np.int8))
        return pa.RecordBatch.from_arrays([*columns, keys, partitions, place, action], schema=self.schema)

    def _columns(self, rows: pa.Table, clause: Clause) -> list[pa.Array]:
        """Return the columns of the table for the result rows of a clause; a delete needs none."""
        schema, kept = self.prepare.schema, clause.action is RowAction.UPDATE
        _check_not_moved(rows, clause)
        made = assigned(rows, clause.values, schema) if clause.values else None
        columns = []
        for each in schema:
            if made is not None and each.name in clause.values:
                columns.append(made.column(each.name))
            elif kept:
                columns.append(flat(rows.column(self.sides.of_target(each.name))))
            else:
                columns.append(pa.nulls(rows.num_rows, each.type))
        return columns


def _holds(rows: pa.Table, clause: Clause) -> np.ndarray:
    if clause.predicate is None:
        return np.ones(rows.num_rows, dtype=bool)
    try:
        condition = evaluated(rows, [clause.predicate], ["holds"]).column(0)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidError(
            f"The condition of a clause {clause.when} fails on a row: {' '.join(str(error).split())}."
            " Correct the condition."
        ) from error
    return np.asarray(flat(condition).fill_null(False).to_numpy(zero_copy_only=False))


def _check_not_moved(rows: pa.Table, clause: Clause) -> None:
    for name, differs in clause.differs.items():
        moved = pc.sum(evaluated(rows, [differs], ["differs"]).column(0)).as_py()
        if moved:
            raise InvalidError(
                f"The source has another {name} than the table in {counted(moved, 'matched row')}, but an"
                f" update cannot change it. Match on {name} too, or set other columns by name."
            )


@dataclass(frozen=True, slots=True)
class Columns:
    """Batch function that selects columns.

    Attributes:
        schema: columns of the result.
    """

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (batch.select(self.schema.names) for batch in batches)


@dataclass(frozen=True, slots=True)
class KeepLocation:
    """Batch function that keeps a row in the file group that it was read from.

    Attributes:
        schema: columns of the result.
    """

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = file_group_locations(batch.column(FOUND_LOCATION))
            is_same = pc.equal(found, batch.column(LOCATION))
            stays = pc.or_kleene(found.is_null(), is_same).fill_null(False)
            yield batch.filter(stays).select(self.schema.names)


def _nullable(fields: Sequence[pa.Field]) -> list[pa.Field]:
    return [each.with_nullable(True) for each in fields]
