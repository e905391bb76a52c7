"""Write operations of an open table, with the rows and the unparsed options of the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from drawstring.base.errors import InvalidError
from drawstring.config.options.write_options import check_call, options_of
from drawstring.engine.protocol import Rows
from drawstring.expressions.predicate import Where
from drawstring.txn.table_context import TableContext
from drawstring.write.delete_partition import DELETE_PARTITION
from drawstring.write.delete_partition import delete_partitions as drop
from drawstring.write.executor import write_source
from drawstring.write.merge import MergeRows, RequestedClause
from drawstring.write.plan import MERGE, UPDATE, VERBS, Verb
from drawstring.write.source import WriteSource
from drawstring.write.update import MatchedRows
from drawstring.write.write_outcome import WriteOutcome


@dataclass(frozen=True, slots=True)
class MergeSource:
    """Source of a merge, and the names of both sides.

    Attributes:
        rows: rows of the source.
        on: columns to match on, or equalities joined by `and`; None for the columns that identify a row.
        aliases: names of the source and the target in conditions and values.
    """

    rows: Rows
    on: str | Sequence[str] | Mapping[str, str] | None
    aliases: tuple[str, str]


def check_delete(data: Any, where: Where) -> None:
    """Check that a delete has either rows or a condition.

    Raises:
        InvalidError: neither rows nor a condition was given, or both, or a condition in the place of rows.
    """
    if isinstance(data, str):
        raise InvalidError(f"Rows cannot be read from a text. Pass a condition as where={data!r}.")
    if (data is None) == (where is None):
        raise InvalidError("The delete needs either rows or a condition (where=). Give one of them.")


def check_merge(options: Mapping[str, Any]) -> None:
    """Check the options of a merge.

    Raises:
        InvalidError: an option is unknown, or names another operation.
    """
    check_call(options, MERGE.operation.lower())


def delete_where(context: TableContext, where: Where, options: Mapping[str, Any]) -> WriteOutcome:
    """Delete the rows that meet a condition; arguments and errors as for `drawstring.Table.delete`."""
    return _change(context, MatchedRows(where), VERBS["delete"], options)


def update_where(
    context: TableContext, where: Where, set: Mapping[str, Any], options: Mapping[str, Any]
) -> WriteOutcome:
    """Set columns of the rows that meet a condition; see `drawstring.Table.update`."""
    if not isinstance(set, Mapping):
        raise InvalidError(
            f"Update needs a dictionary of values by column, not {type(set).__name__}. Give"
            ' one such as {"fare": "fare * 2"}.'
        )
    return _change(context, MatchedRows(where, dict(set)), UPDATE, options)


def merge_rows(
    context: TableContext,
    source: MergeSource,
    clauses: tuple[RequestedClause, ...],
    options: Mapping[str, Any],
) -> WriteOutcome:
    """Run a merge; see `drawstring.Table.merge`.

    Args:
        context: the table with the engine that holds the rows.
        source: source of the merge.
        clauses: in the order in which they were added.
        options: write options by Hudi's keys.
    """
    operation = MERGE.operation.lower()
    check_call(options, operation)
    parsed = options_of(operation, options)
    merging = MergeRows(source.rows, source.on, source.aliases, clauses, index_type=parsed.index_type)
    return write_source(context, merging, MERGE, parsed)


def drop_partitions(
    context: TableContext, partitions: Sequence[str], options: Mapping[str, Any], *, exact: bool = False
) -> WriteOutcome:
    """Delete whole partitions; see `drawstring.Table.delete_partition`.

    Args:
        context: the table.
        partitions: paths or patterns.
        options: write options by Hudi's keys.
        exact: whether all of them are paths, in which `*` is a character like others.
    """
    for each in partitions:
        if not isinstance(each, str):
            raise InvalidError(
                f"A partition must be a path (str), not {type(each).__name__}. Give each path as a"
                " separate argument, a list as delete_partition(*paths)."
            )
    check_call(options, DELETE_PARTITION)
    parsed = options_of(DELETE_PARTITION, options)
    named = replace(parsed, partitions_to_delete=(*partitions, *parsed.partitions_to_delete))
    return drop(context, None, named, exact=exact)


def _change(
    context: TableContext, source: WriteSource, verb: Verb, options: Mapping[str, Any]
) -> WriteOutcome:
    operation = verb.operation.lower()
    check_call(options, operation)
    return write_source(context, source, verb, options_of(operation, options))
