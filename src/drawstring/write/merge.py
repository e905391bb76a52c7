r"""Merge a source into the table: inserts, updates and deletes in one commit.

source rows ── text of the columns matched on ──\
                                                 join ── clauses ──> rows with actions ──> write
target slices ── columns that are looked at ────/

The write reads both sides without the table lock. The file group of a target row is known; the index tags
inserted rows, as in an upsert.

`MergeBuilder` collects the clauses and runs the merge. A clause applies to rows of one kind:

    matched                a source row and a target row    update, delete
    not matched            a source row only                insert
    not matched by source  a target row only                update, delete

Clauses of one kind are evaluated in their order; the first clause whose condition holds applies to a row. A
`RequestedClause` is a clause as the caller gave it, a `Clause` is bound to a table.

The join keys are the equal columns of source and target, encoded as one text (`join_text`). Batch functions
prepare the source, read slices and apply the clauses to joined rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.base.text_format import pluralize
from drawstring.config.table_config import TableConfig
from drawstring.config.table_types import columns_of
from drawstring.engine.protocol import Rows
from drawstring.expressions.columns import resolve_column
from drawstring.expressions.evaluation import evaluated
from drawstring.expressions.predicate import Where, load_parser, parse_value, parse_where
from drawstring.filegroups.file_slice_reader import ReadTask, read_slice
from drawstring.filegroups.log_scanner import record_keys
from drawstring.filegroups.write.changes import ACTION, RowAction
from drawstring.formats.filter import where_columns
from drawstring.index.factory import is_global_index
from drawstring.index.protocol import LOCATION, file_group_locations
from drawstring.index.tag_context import TagContext
from drawstring.keygen.key_generator import KeyGenerator
from drawstring.merge.record_merger import merger_of
from drawstring.merge.record_version import combined_chunks
from drawstring.model.result import CommitResult
from drawstring.query.planner import Query
from drawstring.schema.evolution import conform, normalise
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY, without_meta
from drawstring.txn.read_set import ConflictScope, Groups, InGroups, InPartitions, Reads, anywhere
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable
from drawstring.write.placement import Prepare, RepeatedRecords
from drawstring.write.plan import Verb, WritePlan
from drawstring.write.update import (
    assigned,
    facts_for_change,
    key_columns,
    query_for_change,
    settable,
    slices_for_change,
)


class When(StrEnum):
    """Kind of a clause."""

    MATCHED = "when matched"
    NOT_MATCHED = "when not matched"
    BY_SOURCE = "when not matched by source"


@dataclass(frozen=True, slots=True)
class RequestedClause:
    """A clause as given by the caller.

    Attributes:
        when: kind of the clause.
        action: action on the rows.
        predicate: further condition; None for all rows.
        values: new value by column; None for all columns of the source.
    """

    when: When
    action: RowAction
    predicate: Where = None
    values: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause that was checked against source and target.

    Attributes:
        when, action: as in `RequestedClause`.
        predicate: condition over columns `source.x` and `target.x`.
        values: new value by column of the table.
        differs: by column that updates cannot set, expression for whether the source has another value.
    """

    when: When
    action: RowAction
    predicate: pc.Expression | None = None
    values: Mapping[str, pc.Expression] = field(default_factory=dict)
    differs: Mapping[str, pc.Expression] = field(default_factory=dict)

    def columns_used(self, sides: pa.Schema) -> set[str]:
        """Return the columns, named `table.column`, that its expressions use."""
        expressions = [*self.values.values(), *self.differs.values()]
        if self.predicate is not None:
            expressions.append(self.predicate)
        return {name for each in expressions for name in where_columns(each.is_null(), sides)}


@dataclass(frozen=True, slots=True)
class Sides:
    """Source and target of a merge.

    Attributes:
        source, target: schemas of the two.
        aliases: names of the two in expressions.
        matched_on: the matching source column by target column.
        config: the table.
    """

    source: pa.Schema
    target: pa.Schema
    aliases: tuple[str, str]
    matched_on: Mapping[str, str]
    config: TableConfig

    def of_source(self, column: str) -> str:
        """Return the name of a source column in expressions."""
        return f"{self.aliases[0]}.{column}"

    def of_target(self, column: str) -> str:
        """Return the name of a target column in expressions."""
        return f"{self.aliases[1]}.{column}"

    @property
    def all(self) -> pa.Schema:
        """Columns of both, with their names in expressions."""
        return self.seen(When.MATCHED)

    def seen(self, when: When) -> pa.Schema:
        """Return the columns that are available to a kind of clause."""
        source = [each.with_name(self.of_source(each.name)) for each in self.source]
        target = [each.with_name(self.of_target(each.name)) for each in self.target]
        shown = {When.MATCHED: source + target, When.NOT_MATCHED: source, When.BY_SOURCE: target}
        return pa.schema(shown[when])

    @property
    def fixed(self) -> tuple[str, ...]:
        """Key and partition columns."""
        return self.config.key_columns


def insert_as_matched(clauses: Iterable[Clause], sides: Sides) -> bool:
    """Return whether inserted rows have the key and the partition that they were matched on."""
    inserts = [clause for clause in clauses if clause.action is RowAction.INSERT]
    if not inserts or not all(name in sides.matched_on for name in sides.fixed):
        return not inserts
    matched = {name: pc.field(sides.of_source(sides.matched_on[name])) for name in sides.fixed}
    same = _values(matched, {name: name for name in matched}, sides, sides.seen(When.NOT_MATCHED))
    return all(clause.values[name].equals(same[name]) for clause in inserts for name in same)


def write_every_row(clauses: Iterable[Clause], sides: Sides) -> bool:
    """Return whether every source row surely changes or inserts a row of the table, by its key.

    An update that sets an ordering column may lose against the row of the table, and change nothing.
    """
    certain = {(clause.when, clause.action) for clause in clauses if clause.predicate is None}
    changes = any(when is When.MATCHED for when, _ in certain)
    set_columns = {name for clause in clauses if clause.action is RowAction.UPDATE for name in clause.values}
    return (
        changes
        and (When.NOT_MATCHED, RowAction.INSERT) in certain
        and all(name in sides.matched_on for name in sides.fixed)
        and set_columns.isdisjoint(columns_of(sides.config.ordering_fields))
        and merger_of(sides.config).chooses_whole_records
    )


def bound_clauses(requested: Iterable[RequestedClause], sides: Sides) -> tuple[Clause, ...]:
    """Check clauses against source and target.

    Raises:
        InvalidError: a column does not exist or cannot be set, a type does not fit, or a clause can never
            apply.
    """
    clauses = list(requested)
    if not clauses:
        raise InvalidError("The merge has no clauses. Add one, for example when_matched_update.")
    for when in When:
        same = [clause for clause in clauses if clause.when is when]
        if any(clause.predicate is None for clause in same[:-1]):
            raise InvalidError(
                f"A clause {when} without a condition is not the last one of its kind, so those after it"
                " would never apply. Give it a condition, or put it last."
            )
    return tuple(_bound(clause, sides) for clause in clauses)


def _bound(clause: RequestedClause, sides: Sides) -> Clause:
    seen = sides.seen(clause.when)
    predicate = parse_where(clause.predicate, seen, has_sides=True)
    if clause.action is RowAction.DELETE:
        return Clause(clause.when, clause.action, predicate)
    if clause.action is RowAction.INSERT:
        return Clause(clause.when, clause.action, predicate, _inserted(clause, sides))
    if clause.values is None:
        return Clause(clause.when, clause.action, predicate, _all_but_fixed(sides), _differences(sides))
    names = settable(clause.values, sides.target, sides.config)
    return Clause(clause.when, clause.action, predicate, _values(clause.values, names, sides, seen))


def _inserted(clause: RequestedClause, sides: Sides) -> dict[str, pc.Expression]:
    """Return the values of new rows; they need keys and the other columns that an upsert needs."""
    seen = sides.seen(When.NOT_MATCHED)
    if not sides.config.record_key_fields:
        raise UnsupportedError(
            "A merge cannot insert into a table without key columns yet. Insert the unmatched rows"
            " separately."
        )
    if clause.values is None:
        return _values(
            _from_source(sides, sides.target.names), {n: n for n in sides.target.names}, sides, seen
        )
    names = {given: resolve_column([given], sides.target)[0] for given in clause.values}
    needed = [*sides.fixed, *columns_of(sides.config.ordering_fields)]
    needed += [each.name for each in sides.target if not each.nullable]
    missing = [name for name in dict.fromkeys(needed) if name not in names.values()]
    if missing:
        raise InvalidError(
            f"Inserted rows lack {', '.join(missing)}. Give values for record key, partition and ordering"
            " columns and for those that must not be null."
        )
    return _values(clause.values, names, sides, seen)


def _all_but_fixed(sides: Sides) -> dict[str, pc.Expression]:
    names = {name: name for name in sides.target.names if name not in sides.fixed}
    return _values(_from_source(sides, sides.target.names), names, sides, sides.seen(When.MATCHED))


def _differences(sides: Sides) -> dict[str, pc.Expression]:
    """Return for key and partition columns not matched on whether source and target differ."""
    differences = {}
    for name in sides.fixed:
        if name not in sides.matched_on:
            kind = sides.target.field(name).type
            ours, theirs = pc.field(sides.of_target(name)), pc.field(sides.of_source(name)).cast(kind)
            differs = pc.coalesce(ours != theirs, pc.scalar(False))
            differences[name] = differs | pc.xor(ours.is_null(), theirs.is_null())
    return differences


def _from_source(sides: Sides, names: Iterable[str]) -> dict[str, pc.Expression]:
    """Return columns of the source by their names in the table."""
    spelled = {each.lower(): each for each in sides.source.names}
    missing = [name for name in names if name.lower() not in spelled]
    if missing:
        raise InvalidError(
            f"The source lacks {', '.join(missing)}, which update_all and insert_all need. Give the columns"
            " with when_matched_update(set=...) and when_not_matched_insert(values=...)."
        )
    return {name: pc.field(sides.of_source(spelled[name.lower()])) for name in names}


def _values(
    given: Mapping[str, Any], names: Mapping[str, str], sides: Sides, seen: pa.Schema
) -> dict[str, pc.Expression]:
    return {
        name: parse_value(given[each], seen, sides.target.field(name), has_sides=True)
        for each, name in names.items()
    }


class MergeBuilder:
    """Collects the clauses of a merge; `execute` runs it.

    Clauses of one kind are evaluated in the order in which they were added; the first whose condition
    holds applies to a row. Conditions and values refer to columns as `source.x` and `target.x`; a column
    that only one side has may be given without prefix. In pyarrow expressions, write
    `pyarrow.compute.field("source.x")`.

    Args:
        run: runs the merge with the clauses.
    """

    def __init__(self, run: Callable[[tuple[RequestedClause, ...]], CommitResult]) -> None:
        self._run = run
        self._clauses: tuple[RequestedClause, ...] = ()

    def when_matched_update(self, set: Mapping[str, Any], predicate: Where = None) -> Self:
        """Set columns of a target row that a source row matches.

        Args:
            set: value by column: SQL text, a pyarrow expression, or any other value as a literal. Key and
                partition columns cannot be set.
            predicate: further condition; None for none.
        """
        return self._add(When.MATCHED, RowAction.UPDATE, predicate, dict(set))

    def when_matched_update_all(self, predicate: Where = None) -> Self:
        """Set all columns of a matched target row to those of the source row."""
        return self._add(When.MATCHED, RowAction.UPDATE, predicate, None)

    def when_matched_delete(self, predicate: Where = None) -> Self:
        """Delete a target row that a source row matches."""
        return self._add(When.MATCHED, RowAction.DELETE, predicate, None)

    def when_not_matched_insert(self, values: Mapping[str, Any], predicate: Where = None) -> Self:
        """Insert a source row that matches no target row.

        Args:
            values: value by column; omitted columns are null.
            predicate: further condition; None for none.
        """
        return self._add(When.NOT_MATCHED, RowAction.INSERT, predicate, dict(values))

    def when_not_matched_insert_all(self, predicate: Where = None) -> Self:
        """Insert a source row that matches no target row, with all its columns."""
        return self._add(When.NOT_MATCHED, RowAction.INSERT, predicate, None)

    def when_not_matched_by_source_update(self, set: Mapping[str, Any], predicate: Where = None) -> Self:
        """Set columns of a target row that no source row matches."""
        return self._add(When.BY_SOURCE, RowAction.UPDATE, predicate, dict(set))

    def when_not_matched_by_source_delete(self, predicate: Where = None) -> Self:
        """Delete a target row that no source row matches."""
        return self._add(When.BY_SOURCE, RowAction.DELETE, predicate, None)

    def execute(self) -> CommitResult:
        """Run the merge in one commit; reads the source now.

        Returns:
            The result with `inserts`, `updates`, `deletes`, and the number of `copied` rows, which moved
            unchanged to a new file.

        Raises:
            ConflictError: another writer holds the lock or committed first.
            InvalidError: a column or a type does not fit, a new row has no key, or several source rows
                change the same row; nothing was written.
        """
        return self._run(self._clauses)

    def _add(self, when: When, action: RowAction, predicate: Where, values: dict[str, Any] | None) -> Self:
        self._clauses = (*self._clauses, RequestedClause(when, action, predicate, values))
        return self


MatchedOn: TypeAlias = "str | Sequence[str] | Mapping[str, str] | None"

_NAME: Final = r"(?:`[^`]+`|[\w$]+)"
_EQUAL: Final = re.compile(rf"\s*({_NAME})\s*\.\s*({_NAME})\s*=\s*({_NAME})\s*\.\s*({_NAME})\s*")
_AND: Final = re.compile(r"\s+and\s+", re.IGNORECASE)


def matched_columns(
    on: MatchedOn, aliases: tuple[str, str], source: pa.Schema, target: pa.Schema, default: Sequence[str]
) -> dict[str, str]:
    """Return the matching source column by target column.

    Args:
        on: names of columns that both have, source columns by target column, or equalities as in
            `"target.id = source.id and target.day = source.day"`.
        aliases: names of source and target in the text.
        source, target: schemas of the two.
        default: columns if `on` is None: those that identify a row.

    Raises:
        InvalidError: a column does not exist, or the text does not consist of such equalities.
        UnsupportedError: a column has a type that is not compared for equality.
    """
    pairs: Mapping[str, str]
    if isinstance(on, Mapping):
        pairs = on
    elif isinstance(on, str) and ("=" in on or not _is_name(on, target)):
        pairs = dict(_equality(part, aliases) for part in _AND.split(on))
    else:
        if on is None:
            _check_has(default, source)
        names = [on] if isinstance(on, str) else list(default if on is None else on)
        pairs = {name: name for name in names}
    if not pairs:
        raise InvalidError("The merge has no column to match on. Give the record key columns.")
    matches = {
        resolve_column([ours], target)[0]: _of_source(theirs, source) for ours, theirs in pairs.items()
    }
    for ours, theirs in matches.items():
        _check_comparable(ours, target.field(ours).type, source.field(theirs).type)
    return matches


def _is_name(text: str, target: pa.Schema) -> bool:
    """Return whether a text is a column name, existing or not, rather than a condition."""
    return text.lower() in map(str.lower, target.names) or re.fullmatch(_NAME, text) is not None


def _equality(text: str, aliases: tuple[str, str]) -> tuple[str, str]:
    match = _EQUAL.fullmatch(text)
    if match is None or {match[1].strip("`"), match[3].strip("`")} != set(aliases):
        raise InvalidError(
            f"{text.strip()!r} is not an equality of columns. Match on equalities joined by and, as in"
            f" '{aliases[1]}.id = {aliases[0]}.id', and put other conditions into the clauses."
        )
    sides = {match[1].strip("`"): match[2].strip("`"), match[3].strip("`"): match[4].strip("`")}
    return sides[aliases[1]], sides[aliases[0]]


def _of_source(name: str, source: pa.Schema) -> str:
    spelled = {each.lower(): each for each in source.names}
    if name in source.names or name.lower() in spelled:
        return name if name in source.names else spelled[name.lower()]
    raise InvalidError(f"The source has no column {name} to match on. Use one of {', '.join(source.names)}.")


def _check_has(columns: Sequence[str], source: pa.Schema) -> None:
    spelled = {name.lower() for name in source.names}
    missing = [name for name in columns if name.lower() not in spelled]
    if missing:
        raise InvalidError(
            f"The source lacks {', '.join(missing)}. Without on=, rows match by the columns that identify a"
            f" row of the table: {', '.join(columns)}. Add the column, or give on=."
        )


def _check_comparable(name: str, ours: pa.DataType, theirs: pa.DataType) -> None:
    if any(pt.is_floating(kind) or pt.is_nested(kind) or pt.is_binary(kind) for kind in (ours, theirs)):
        raise UnsupportedError(
            f"Column {name} is {ours} in the table and {theirs} in the source. Match on columns of integers,"
            " decimals, strings, dates, times or booleans."
        )
    is_text = pt.is_string(ours)
    if is_text != bool(pt.is_string(theirs) or pt.is_large_string(theirs)):
        raise InvalidError(
            f"Column {name}, which is matched on, is {ours} in the table and {theirs} in the source. Cast it"
            f" to {ours}."
        )


def join_text(columns: Sequence[pa.Array], absent: str) -> pa.Array:
    """Encode the values of each row as one text, so that equal texts mean equal values.

    Args:
        columns: columns with the same types on both sides.
        absent: text of rows with a null value: null equals nothing.
    """
    texts: list[Any] = [column.cast(pa.string()) for column in columns]
    sized = [part for text in texts[:-1] for part in (pc.binary_length(text).cast(pa.string()), text)]
    joined = pc.binary_join_element_wise(pa.scalar("="), *sized, texts[-1], ":")
    return joined.fill_null(absent)


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
class PrepareMergeSource:
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
        by_record: as in `PrepareMergeSource`.
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
            holds = is_open & _condition_mask(rows, clause)
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
            keys, partitions = (
                combined_chunks(rows.column(RECORD_KEY)),
                combined_chunks(rows.column(PARTITION_PATH)),
            )
        place = self.prepare.index.locations(keys, partitions) if self.place == LOCATION else None
        if place is None:
            place = file_group_locations(combined_chunks(rows.column(FOUND_LOCATION)))
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
                columns.append(combined_chunks(rows.column(self.sides.of_target(each.name))))
            else:
                columns.append(pa.nulls(rows.num_rows, each.type))
        return columns


def _condition_mask(rows: pa.Table, clause: Clause) -> np.ndarray:
    if clause.predicate is None:
        return np.ones(rows.num_rows, dtype=bool)
    try:
        condition = evaluated(rows, [clause.predicate], ["holds"]).column(0)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidError(
            f"The condition of a clause {clause.when} fails on a row: {' '.join(str(error).split())}."
            " Correct the condition."
        ) from error
    return np.asarray(combined_chunks(condition).fill_null(False).to_numpy(zero_copy_only=False))


def _check_not_moved(rows: pa.Table, clause: Clause) -> None:
    for name, differs in clause.differs.items():
        moved = pc.sum(evaluated(rows, [differs], ["differs"]).column(0)).as_py()
        if moved:
            raise InvalidError(
                f"The source has another {name} than the table in {pluralize(moved, 'matched row')}, but an"
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


@dataclass(frozen=True, slots=True)
class MergeRows:
    """A merge as requested by the caller.

    Attributes:
        rows: rows of the source.
        on: columns that source and target are matched on.
        aliases: names of source and target in expressions.
        clauses: clauses of the merge.
        is_upsert: whether rows match by record key and partition path, and duplicates are merged as in an
            upsert; no row is a delete then.
        index_type: `hoodie.index.type` of the call; None for that of the table.
    """

    rows: Rows
    on: MatchedOn
    aliases: tuple[str, str]
    clauses: tuple[RequestedClause, ...]
    is_upsert: bool = False
    index_type: str | None = None

    @property
    def reads_once(self) -> bool:
        """Whether the rows of the source can be read only once."""
        return self.rows.reads_once

    def repeatable(self) -> MergeRows:
        """Return the source with rows that can be read several times."""
        for clause in self.clauses:
            load_parser(clause.predicate, (clause.values or {}).values())
        return replace(self, rows=self.rows.repeatable())

    def bind(self, locked: LockedTable) -> BoundMerge:
        """Check the merge against the table.

        Raises:
            InvalidError: a column does not exist or cannot be set, or a type does not fit.
        """
        facts = facts_for_change(locked)
        config = facts.config
        _check_key_columns(config)
        source = without_meta(normalise(self.rows.schema))
        default = key_columns_of(config, self.index_type)
        on = matched_columns(self.on, self.aliases, source, facts.schema, default)
        sides = Sides(source, facts.schema, self.aliases, on, config)
        clauses = bound_clauses(self.clauses, sides)
        read = target_columns(clauses, sides)
        names = tuple(dict.fromkeys((*key_columns(config), *on, *read)))
        query = query_for_change(facts, names, None)
        by_record = self.is_upsert or (self.on is None and default != config.record_key_fields)
        return BoundMerge(locked.context, self.rows, sides, clauses, query, self.is_upsert, by_record)


def _check_key_columns(config: TableConfig) -> None:
    """Check that the key and partition fields are columns.

    Raises:
        UnsupportedError: some are nested in columns.
    """
    nested = [name for name in (*config.record_key_fields, *config.partition_fields) if "." in name]
    if nested:
        raise UnsupportedError(
            f"The key of the table is nested in a column ({', '.join(nested)}), by which this release cannot"
            " match rows of a merge or a partial update. Upsert whole rows."
        )


def key_columns_of(config: TableConfig, index_type: str | None) -> tuple[str, ...]:
    """Return the columns that identify a row: the key, and the partition unless the index is global.

    Args:
        config: the table.
        index_type: `hoodie.index.type` of the call; None for that of the table.
    """
    keys = config.record_key_fields
    if not keys or is_global_index(index_type or config.index_type, config):
        return keys
    return tuple(dict.fromkeys((*keys, *config.partition_fields)))


@dataclass(slots=True)
class MergeRun:
    """What a merge keeps while it runs.

    Attributes:
        kept: persisted rows to release.
        partitions: those that the source rows can match in; None for any.
    """

    kept: list[Rows] = field(default_factory=list)
    partitions: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class BoundMerge:
    """`MergeRows` bound to a table.

    Attributes:
        context: the table.
        rows: rows of the source.
        sides: columns of source and target.
        clauses: checked clauses.
        query: query for the rows of the target.
        is_upsert: as in `MergeRows`.
        by_record: whether rows match by record key and partition path.
        run: what is known once the rows are prepared.
    """

    context: TableContext
    rows: Rows
    sides: Sides
    clauses: tuple[Clause, ...]
    query: Query
    is_upsert: bool = False
    by_record: bool = False
    run: MergeRun = field(default_factory=MergeRun)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table; a merge adds none."""
        return self.sides.target

    def reads(self, written: Groups) -> Reads:
        """Return the partitions of the source rows, if the columns matched on tell them.

        A merge that changes or inserts a row for every source row depends on the rows that it changes. That
        it inserts no key that others inserted is checked as for an upsert.
        """
        if self.keeps_target or not insert_as_matched(self.clauses, self.sides):
            return Reads(anywhere, anywhere)
        partitions = self.run.partitions
        looked_at: ConflictScope = anywhere if partitions is None else InPartitions(partitions)
        if write_every_row(self.clauses, self.sides):
            return Reads(looked_at, InGroups(written))
        return Reads(looked_at, looked_at)

    @property
    def keeps_target(self) -> bool:
        """Whether rows of the table that no source row matches are looked at."""
        return any(clause.when is When.BY_SOURCE for clause in self.clauses)

    def repeated(self, context: Callable[[], TagContext]) -> RepeatedRecords | None:
        """Return what refuses to change some of several records with a key, but of an upsert."""
        return None if self.is_upsert else RepeatedRecords.of(context())

    @property
    def sets(self) -> tuple[str, ...]:
        """The columns of existing rows that any clause sets."""
        updates = [clause.values for clause in self.clauses if clause.action is RowAction.UPDATE]
        return () if self.is_upsert else tuple(dict.fromkeys(name for values in updates for name in values))

    def acts_as(self, verb: Verb, config: TableConfig) -> Verb:
        """Return the operation: rows of a table have their keys."""
        return verb

    def prepared(self, plan: WritePlan) -> Rows:
        """Return the result rows of the clauses, with their actions.

        With a global index, a source row is new if it matches no key in any partition.
        """
        finds = any(clause.action is RowAction.INSERT for clause in self.clauses)
        keys = self.sides.config.record_key_fields
        if finds and plan.index.is_global and set(self.sides.matched_on) != set(keys):
            raise UnsupportedError(
                "With a global index, a merge that inserts must match on the record key only."
                f" Match on {', '.join(keys)}."
            )
        arrive = PrepareMergeSource(self.sides, self.clauses, plan.prepare.config, self.by_record)
        source = self.rows.map_batches(arrive, arrive.schema).persist()
        self.run.kept.append(source)
        slices = slices_for_change(self.query)
        if arrive.knows_partitions and not self.keeps_target:
            self.run.partitions = touched = frozenset(source.distinct(TOUCHED))
            slices = [task for task in slices if task.file_slice.partition in touched]
        read = ReadToMerge(self.sides, self.clauses, self.by_record)
        joined = source.join_keys((JOINED,), slices, read, read.schema, keep_right=self.keeps_target)
        is_located = plan.index.is_hashed or plan.index.is_global or not finds
        apply = ApplyClauses(
            self.clauses, self.sides, plan.prepare, LOCATION if is_located else FOUND_LOCATION
        )
        rows = joined.map_batches(apply, apply.schema)
        if not self.is_upsert:
            return rows
        plain = Columns(pa.schema([each for each in rows.schema if each.name != ACTION]))
        return rows.map_batches(plain, plain.schema)

    def release(self) -> None:
        """Release the persisted rows."""
        for rows in self.run.kept:
            rows.release()
