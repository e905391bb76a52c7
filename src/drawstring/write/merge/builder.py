"""Builder of a merge: collects the clauses and runs the merge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from drawstring.expressions.predicate import Where
from drawstring.filegroups.write.changes import RowAction
from drawstring.model.result import CommitResult
from drawstring.write.merge.clauses import RequestedClause, When


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
