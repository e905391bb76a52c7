"""Clauses of a merge: as given by the caller, and bound to a table.

    matched                a source row and a target row    update, delete
    not matched            a source row only                insert
    not matched by source  a target row only                update, delete

Clauses of one kind are evaluated in their order; the first whose condition holds applies to a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table.config import TableConfig
from drawstring.config.table.kinds import columns_of
from drawstring.expressions.column_names import path_in
from drawstring.expressions.predicate import Where, parse_value, parse_where
from drawstring.filegroups.write.changes import RowAction
from drawstring.formats.conditions import where_columns
from drawstring.merge.record_mergers import merger_of
from drawstring.write.merge.matched_rows import settable


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
    names = {given: path_in([given], sides.target)[0] for given in clause.values}
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
