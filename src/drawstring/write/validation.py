"""Validators of a write: SQL or functions check what it is about to commit.

    table before ──┐                       ┌── SQL in the engine
                   ├── changed partitions ─┤                      ── failed? roll back, or warn
    and after    ──┘                       └── functions

They run under the table lock, so that what they see (`write.staged_tables`) is what the commit makes visible.

Hudi validates before it takes the lock, and sees base files only, so two writes that break a rule together
both pass. Here others wait while validators run. The rows are those of the changed partitions, as in Hudi.
Two results are equal if they have the same rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.base.later import import_later
from drawstring.config.keys.pipelines.validators import (
    EQUALITY,
    INEQUALITY,
    TABLE_VARIABLE,
    PreCommitValidators,
    kind_of,
    registered_validator,
)
from drawstring.engine.protocol import Engine
from drawstring.model.commit import CommitMetadata
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import Transaction

if TYPE_CHECKING:
    from drawstring.write.staged_tables import StagedTable, staged_tables
else:
    import_later(globals(), staged_tables="drawstring.write.staged_tables:staged_tables")

_SHOWN_MAX: Final = 200
_log: Final = logging.getLogger("drawstring")


def validate_commit(
    transaction: Transaction, timeline: Timeline, metadata: CommitMetadata, settings: PreCommitValidators
) -> None:
    """Ask the validators of a write that is about to commit under the table lock.

    Args:
        transaction: the write; its files are on the storage.
        timeline: as it is now.
        metadata: what it is about to commit.
        settings: the validators.

    Raises:
        InvalidError: a validator fails, and its failure is not only to be logged.
    """
    before, after = staged_tables(transaction, timeline, metadata)
    engine, requested = transaction.locked.context.engine, transaction.instant.requested
    for name in settings.names:
        problem = _Asked(name, settings, before, after, engine, requested).problem()
        if problem is None:
            continue
        if settings.failure_policy == "WARN_LOG":
            _log.warning("The validator %s fails, and the commit %s goes on: %s.", name, requested, problem)
            continue
        raise InvalidError(
            f"The validator {name} fails: {problem}. Nothing was committed. Correct the rows, or the"
            " validator.",
            table=transaction.locked.context.storage.spec.uri,
            instant=requested,
        )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A validator that is asked about a commit."""

    name: str
    settings: PreCommitValidators
    before: StagedTable
    after: StagedTable
    engine: Engine
    requested: str

    def problem(self) -> str | None:
        """Return what is wrong, None if nothing is."""
        function = registered_validator(self.name)
        if function is not None:
            return self._of_function(function)
        kind = kind_of(self.name)
        for query in self.settings.queries[kind][1]:
            if kind == EQUALITY:
                problem = self._of_both(query, has_to_change=False)
            elif kind == INEQUALITY:
                problem = self._of_both(query, has_to_change=True)
            else:
                problem = self._of_value(query)
            if problem is not None:
                return problem
        return None

    def _of_function(self, function: Callable[[Any, Any], str | None]) -> str | None:
        try:
            found = function(self.before.scan(), self.after.scan())
        except DrawstringError:
            raise
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None if found is None else str(found).rstrip(".")

    def _of_both(self, query: str, *, has_to_change: bool) -> str | None:
        before, after = self._rows(query, self.before), self._rows(query, self.after)
        if (repr(before) != repr(after)) is has_to_change:
            return None
        if has_to_change:
            return f"the result of {query!r} stays {_shown(before)}"
        return f"the result of {query!r} is {_shown(after)} after the commit and {_shown(before)} before it"

    def _of_value(self, query: str) -> str | None:
        text, separator, expected = query.rpartition("#")
        if not separator:
            return f"the query {query!r} has no value behind #"
        rows = self._rows(text, self.after)
        if len(rows) != 1 or len(rows[0]) != 1:
            return f"the result of {text!r} is {_shown(rows)}, and not a single value"
        found = rows[0][0]
        return (
            None
            if _is_equal(found, expected.strip())
            else f"the result of {text!r} is {found}, not {expected}"
        )

    def _rows(self, query: str, table: StagedTable) -> list[tuple[Any, ...]]:
        """Return the rows of a query, sorted: those of a validation are few."""
        name = f"drawstring_staged_{self.requested}"
        result = self.engine.sql(query.replace(TABLE_VARIABLE, name), {name: table})
        return sorted(zip(*(column.to_pylist() for column in result.columns), strict=True), key=repr)


def _is_equal(found: Any, expected: str) -> bool:
    """Return whether a value has a text, as Java writes it, or is the same number."""
    if found is None or isinstance(found, bool):
        return found is not None and str(found).lower() == expected.lower()
    try:
        return str(found) == expected or Decimal(str(found)) == Decimal(expected)
    except InvalidOperation:
        return False


def _shown(rows: Sequence[tuple[Any, ...]]) -> str:
    text = ", ".join(str(row[0]) if len(row) == 1 else str(row) for row in rows) or "empty"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
