r"""Merge of a source into the table: inserts, updates and deletes in one commit.

source rows ── text of the columns matched on ──\
                                                 join ── clauses ──> rows with actions ──> write
target slices ── columns that are looked at ────/

Both are read without the table lock. The file group of a target row is known; inserted rows are tagged by the
index, as in an upsert.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from drawstring.base.errors import UnsupportedError
from drawstring.config.table.config import TableConfig
from drawstring.engine.protocol import Rows
from drawstring.expressions.predicate import load_parser
from drawstring.filegroups.write.changes import ACTION, RowAction
from drawstring.index.choose import is_global_index
from drawstring.index.location import LOCATION
from drawstring.index.tag_context import TagContext
from drawstring.query.snapshot import Query
from drawstring.schema.meta import without_meta
from drawstring.schema.normal import normalise
from drawstring.txn.reach import Groups, InGroups, InPartitions, Reach, Reads, anywhere
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable
from drawstring.write.merge.batches import (
    FOUND_LOCATION,
    JOINED,
    TOUCHED,
    ApplyClauses,
    ArriveToMerge,
    Columns,
    ReadToMerge,
    target_columns,
)
from drawstring.write.merge.clauses import (
    Clause,
    RequestedClause,
    Sides,
    When,
    bound_clauses,
    insert_as_matched,
    write_every_row,
)
from drawstring.write.merge.match_keys import MatchedOn, matched_columns
from drawstring.write.merge.matched_rows import (
    facts_for_change,
    key_columns,
    query_for_change,
    slices_for_change,
)
from drawstring.write.placement.repeated_records import RepeatedRecords
from drawstring.write.plan import WritePlan
from drawstring.write.verbs import Verb


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
        looked_at: Reach = anywhere if partitions is None else InPartitions(partitions)
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
        arrive = ArriveToMerge(self.sides, self.clauses, plan.prepare.config, self.by_record)
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
