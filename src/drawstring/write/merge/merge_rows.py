r"""Merging a source into the table: rows to insert and to update and keys to delete, in one commit.

source rows ── text of the columns matched on ──\
                                                 join ── clauses ──> rows with actions ──> write
target slices ── columns that are looked at ────/

Both are read under the lock of the write. A target row knows its file group; an inserted one looks
for it in the index, as in any upsert.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from drawstring.base.errors import UnsupportedError
from drawstring.config.table.config import TableConfig
from drawstring.engine.protocol import Rows
from drawstring.filegroups.write.changes import ACTION, RowAction
from drawstring.index.location import LOCATION
from drawstring.query.snapshot import Query
from drawstring.schema.meta import without_meta
from drawstring.schema.normal import normalise
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable
from drawstring.write.merge.batches import (
    HOME,
    JOINED,
    TOUCHED,
    ApplyClauses,
    ArriveToMerge,
    Columns,
    ReadToMerge,
    target_columns,
)
from drawstring.write.merge.clauses import AskedClause, Clause, Sides, When, bound_clauses
from drawstring.write.merge.match_keys import MatchedOn, matched_columns
from drawstring.write.merge.matched_rows import (
    facts_for_change,
    key_columns,
    query_for_change,
    slices_for_change,
)
from drawstring.write.plan import WritePlan
from drawstring.write.verbs import Verb


@dataclass(frozen=True, slots=True)
class MergeRows:
    """A merge as the caller asks for it.

    Attributes:
        rows: the source.
        on: what source and target are matched on.
        aliases: what expressions call source and target.
        clauses: what is to be done.
        is_upsert: whether a row is for the record of its key and partition path, and rows of one record are
            combined as in an upsert; none of them is a delete then.
    """

    rows: Rows
    on: MatchedOn
    aliases: tuple[str, str]
    clauses: tuple[AskedClause, ...]
    is_upsert: bool = False

    def bind(self, session: LockedTable) -> BoundMerge:
        """Check the merge against the table.

        Raises:
            InvalidError: a column that is not there or cannot be set, a type that does not fit.
        """
        facts = facts_for_change(session)
        config = facts.config
        source = without_meta(normalise(self.rows.schema))
        on = matched_columns(self.on, self.aliases, source, facts.schema, config.record_key_fields)
        sides = Sides(source, facts.schema, self.aliases, on, config)
        clauses = bound_clauses(self.clauses, sides)
        read = target_columns(clauses, sides)
        names = tuple(dict.fromkeys((*key_columns(config), *on, *read)))
        query = query_for_change(facts, names, None)
        return BoundMerge(session.state, self.rows, sides, clauses, query, self.is_upsert)


@dataclass(frozen=True, slots=True)
class BoundMerge:
    """The same, bound to a table.

    Attributes:
        state: the table.
        rows: the source.
        sides: columns of both.
        clauses: checked.
        query: the target's rows.
        is_upsert: as in `MergeRows`.
        kept: what is to be let go of.
    """

    state: TableContext
    rows: Rows
    sides: Sides
    clauses: tuple[Clause, ...]
    query: Query
    is_upsert: bool = False
    kept: list[Rows] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns; a merge adds none."""
        return self.sides.target

    @property
    def sets(self) -> tuple[str, ...]:
        """The columns that any clause sets of rows that are there."""
        updates = [clause.values for clause in self.clauses if clause.action is RowAction.UPDATE]
        return () if self.is_upsert else tuple(dict.fromkeys(name for values in updates for name in values))

    def acts_as(self, verb: Verb, config: TableConfig) -> Verb:
        """Return the operation: rows of a table know their keys."""
        return verb

    def prepared(self, plan: WritePlan) -> Rows:
        """Return the rows that the clauses come to, with their actions.

        Where a key may be in any partition, a source row that matches no key at all is new.
        """
        finds = any(clause.action is RowAction.INSERT for clause in self.clauses)
        keys = self.sides.config.record_key_fields
        if finds and plan.index.is_global and set(self.sides.matched_on) != set(keys):
            raise UnsupportedError(
                "a table with a global index takes a merge that inserts when it matches on the record key"
                f" alone: match on {', '.join(keys)}"
            )
        arrive = ArriveToMerge(self.sides, self.clauses, plan.prepare.config, self.is_upsert)
        source = self.rows.map_batches(arrive, arrive.schema).persist()
        self.kept.append(source)
        keeps = any(clause.when is When.BY_SOURCE for clause in self.clauses)
        slices = slices_for_change(self.query)
        if arrive.knows_partitions and not keeps:
            touched = set(source.distinct(TOUCHED))
            slices = [task for task in slices if task.file_slice.partition in touched]
        read = ReadToMerge(self.sides, self.clauses, self.is_upsert)
        joined = source.join_keys((JOINED,), slices, read, read.schema, keep_right=keeps)
        is_located = plan.index.is_hashed or plan.index.is_global or not finds
        apply = ApplyClauses(self.clauses, self.sides, plan.prepare, LOCATION if is_located else HOME)
        rows = joined.map_batches(apply, apply.schema)
        if not self.is_upsert:
            return rows
        plain = Columns(pa.schema([each for each in rows.schema if each.name != ACTION]))
        return rows.map_batches(plain, plain.schema)

    def release(self) -> None:
        """Let go of the source."""
        for rows in self.kept:
            rows.release()
