"""The clauses of a merge: what is asked, and what it comes to on a table.

    matched                a source row and a target row    update, delete
    not matched            a source row alone               insert
    not matched by source  a target row alone               update, delete

Clauses of one kind are tried in their order; the first whose condition holds decides about a row.
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
from drawstring.expressions.column_names import path_in
from drawstring.expressions.predicate import Where, parse_value, parse_where
from drawstring.filegroups.write.changes import RowAction
from drawstring.formats.conditions import where_columns
from drawstring.write.merge.matched_rows import settable


class When(StrEnum):
    """Which rows a clause is about."""

    MATCHED = "when matched"
    NOT_MATCHED = "when not matched"
    BY_SOURCE = "when not matched by source"


@dataclass(frozen=True, slots=True)
class AskedClause:
    """A clause as the caller gives it.

    Attributes:
        when: which rows it is about.
        action: what becomes of them.
        predicate: further condition; None for all of them.
        values: by column, what it is set to; None for all columns of the source.
    """

    when: When
    action: RowAction
    predicate: Where = None
    values: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause, checked against source and target.

    Attributes:
        when, action: as asked.
        predicate: condition over columns `source.x` and `target.x`.
        values: by column of the table, what it is set to.
        alike: by column that no update may set, whether the source has another value for it.
    """

    when: When
    action: RowAction
    predicate: pc.Expression | None = None
    values: Mapping[str, pc.Expression] = field(default_factory=dict)
    differs: Mapping[str, pc.Expression] = field(default_factory=dict)

    def looked_at(self, sides: pa.Schema) -> set[str]:
        """Return the columns, named `table.column`, that its expressions look at."""
        expressions = [*self.values.values(), *self.differs.values()]
        if self.predicate is not None:
            expressions.append(self.predicate)
        return {name for each in expressions for name in where_columns(each.is_null(), sides)}


@dataclass(frozen=True, slots=True)
class Sides:
    """Source and target of a merge.

    Attributes:
        source, target: their columns.
        aliases: what expressions call the two.
        matched_on: by column of the target, the column of the source that equals it.
        config: the table.
    """

    source: pa.Schema
    target: pa.Schema
    aliases: tuple[str, str]
    matched_on: Mapping[str, str]
    config: TableConfig

    def of_source(self, column: str) -> str:
        """Name a column of the source as expressions do."""
        return f"{self.aliases[0]}.{column}"

    def of_target(self, column: str) -> str:
        """Name a column of the target as expressions do."""
        return f"{self.aliases[1]}.{column}"

    @property
    def all(self) -> pa.Schema:
        """Columns of both as expressions name them."""
        return self.seen(When.MATCHED)

    def seen(self, when: When) -> pa.Schema:
        """Return the columns that a kind of clause sees."""
        source = [each.with_name(self.of_source(each.name)) for each in self.source]
        target = [each.with_name(self.of_target(each.name)) for each in self.target]
        shown = {When.MATCHED: source + target, When.NOT_MATCHED: source, When.BY_SOURCE: target}
        return pa.schema(shown[when])

    @property
    def fixed(self) -> tuple[str, ...]:
        """Columns that make keys and partition paths."""
        return tuple(dict.fromkeys((*self.config.record_key_fields, *self.config.partition_fields)))


def bound_clauses(asked: Iterable[AskedClause], sides: Sides) -> tuple[Clause, ...]:
    """Check clauses against source and target.

    Raises:
        InvalidError: a column that is not there or cannot be set, a type that does not fit, or a clause
            that no row can come to.
    """
    clauses = list(asked)
    if not clauses:
        raise InvalidError(
            "the merge says nothing about what to do: add a clause, when_matched_update for one"
        )
    for when in When:
        same = [clause for clause in clauses if clause.when is when]
        if any(clause.predicate is None for clause in same[:-1]):
            raise InvalidError(
                f"a clause {when} without a condition is not the last one of its kind, and nothing would"
                " come to those after it: give it a condition, or put it last"
            )
    return tuple(_bound(clause, sides) for clause in clauses)


def _bound(asked: AskedClause, sides: Sides) -> Clause:
    seen = sides.seen(asked.when)
    predicate = parse_where(asked.predicate, seen, has_sides=True)
    if asked.action is RowAction.DELETE:
        return Clause(asked.when, asked.action, predicate)
    if asked.action is RowAction.INSERT:
        return Clause(asked.when, asked.action, predicate, _inserted(asked, sides))
    if asked.values is None:
        return Clause(asked.when, asked.action, predicate, _all_but_fixed(sides), _differences(sides))
    names = settable(asked.values, sides.target, sides.config)
    return Clause(asked.when, asked.action, predicate, _values(asked.values, names, sides, seen))


def _inserted(asked: AskedClause, sides: Sides) -> dict[str, pc.Expression]:
    """Return what new rows are made of; they need keys, and whatever else an upsert needs."""
    seen = sides.seen(When.NOT_MATCHED)
    if not sides.config.record_key_fields:
        raise UnsupportedError(
            "a merge cannot insert into a table without key columns yet: insert the rows that match nothing"
        )
    if asked.values is None:
        return _values(
            _from_source(sides, sides.target.names), {n: n for n in sides.target.names}, sides, seen
        )
    names = {given: path_in([given], sides.target)[0] for given in asked.values}
    needed = [*sides.fixed, *sides.config.ordering_fields]
    needed += [each.name for each in sides.target if not each.nullable]
    missing = [name for name in dict.fromkeys(needed) if name not in names.values()]
    if missing:
        raise InvalidError(
            f"inserted rows lack {', '.join(missing)}: record key, partition and ordering columns and those"
            " that must not be null need a value"
        )
    return _values(asked.values, names, sides, seen)


def _all_but_fixed(sides: Sides) -> dict[str, pc.Expression]:
    names = {name: name for name in sides.target.names if name not in sides.fixed}
    return _values(_from_source(sides, sides.target.names), names, sides, sides.seen(When.MATCHED))


def _differences(sides: Sides) -> dict[str, pc.Expression]:
    """Return, for key and partition columns that are not matched on, whether source and target differ."""
    found = {}
    for name in sides.fixed:
        if name not in sides.matched_on:
            kind = sides.target.field(name).type
            ours, theirs = pc.field(sides.of_target(name)), pc.field(sides.of_source(name)).cast(kind)
            differs = pc.coalesce(ours != theirs, pc.scalar(False))
            found[name] = differs | pc.xor(ours.is_null(), theirs.is_null())
    return found


def _from_source(sides: Sides, names: Iterable[str]) -> dict[str, pc.Expression]:
    """Return columns of the source by the table's names for them."""
    spelled = {each.lower(): each for each in sides.source.names}
    missing = [name for name in names if name.lower() not in spelled]
    if missing:
        raise InvalidError(
            f"the source lacks {', '.join(missing)}, which update_all and insert_all take from it: name the"
            " columns with when_matched_update(set=...) and when_not_matched_insert(values=...)"
        )
    return {name: pc.field(sides.of_source(spelled[name.lower()])) for name in names}


def _values(
    given: Mapping[str, Any], names: Mapping[str, str], sides: Sides, seen: pa.Schema
) -> dict[str, pc.Expression]:
    return {
        name: parse_value(given[each], seen, sides.target.field(name), has_sides=True)
        for each, name in names.items()
    }
