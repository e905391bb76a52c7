"""The words of a merge, one after the other, and its execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from drawstring.expressions.predicate import Where
from drawstring.filegroups.write.changes import RowAction
from drawstring.model.result import CommitResult
from drawstring.write.merge.clauses import AskedClause, When


class MergeBuilder:
    """A merge that is being put together; `execute` carries it out.

    Clauses of one kind are tried in the order in which they were added, and the first whose condition
    holds decides about a row. Conditions and values look at columns as `source.x` and `target.x`;
    a column that only one of them has may go by its name alone. In pyarrow expressions it is
    `pyarrow.compute.field("source.x")`.

    Args:
        run: carries the clauses out.
    """

    def __init__(self, run: Callable[[tuple[AskedClause, ...]], CommitResult]) -> None:
        self._run = run
        self._clauses: tuple[AskedClause, ...] = ()

    def when_matched_update(self, set: Mapping[str, Any], predicate: Where = None) -> Self:
        """Set columns of a row that the source matches.

        Args:
            set: by column, what it is set to: SQL, a pyarrow expression, or any other value as it is. Key
                and partition columns cannot be set.
            predicate: further condition.
        """
        return self._add(When.MATCHED, RowAction.UPDATE, predicate, dict(set))

    def when_matched_update_all(self, predicate: Where = None) -> Self:
        """Set all columns of a row that the source matches to those of the source."""
        return self._add(When.MATCHED, RowAction.UPDATE, predicate, None)

    def when_matched_delete(self, predicate: Where = None) -> Self:
        """Delete a row that the source matches."""
        return self._add(When.MATCHED, RowAction.DELETE, predicate, None)

    def when_not_matched_insert(self, values: Mapping[str, Any], predicate: Where = None) -> Self:
        """Insert a row of the source that matches nothing.

        Args:
            values: by column, its value; columns left out are null.
            predicate: further condition.
        """
        return self._add(When.NOT_MATCHED, RowAction.INSERT, predicate, dict(values))

    def when_not_matched_insert_all(self, predicate: Where = None) -> Self:
        """Insert a row of the source that matches nothing, with all its columns."""
        return self._add(When.NOT_MATCHED, RowAction.INSERT, predicate, None)

    def when_not_matched_by_source_update(self, set: Mapping[str, Any], predicate: Where = None) -> Self:
        """Set columns of a row that nothing in the source matches."""
        return self._add(When.BY_SOURCE, RowAction.UPDATE, predicate, dict(set))

    def when_not_matched_by_source_delete(self, predicate: Where = None) -> Self:
        """Delete a row that nothing in the source matches."""
        return self._add(When.BY_SOURCE, RowAction.DELETE, predicate, None)

    def execute(self) -> CommitResult:
        """Carry the merge out as one commit; the source is read now.

        Returns:
            What was done: `inserts`, `updates`, `deletes`, and `copied` rows that moved to a new file
            as they were.

        Raises:
            ConflictError: another writer was there first.
            InvalidError: a column or a type does not fit, a new row has no key, or several source rows
                change one row; nothing was written.
        """
        return self._run(self._clauses)

    def _add(self, when: When, action: RowAction, predicate: Where, values: dict[str, Any] | None) -> Self:
        self._clauses = (*self._clauses, AskedClause(when, action, predicate, values))
        return self
