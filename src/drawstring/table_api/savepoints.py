"""Savepoints of an open table: `table.savepoints`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drawstring.base.lazy import lazy_import
from drawstring.model.instant import Action
from drawstring.table_api.calls import Options, TableGroup

if TYPE_CHECKING:
    from drawstring.model.plans import RestorePlan
    from drawstring.model.result import RestoreResult
    from drawstring.services import savepoint
else:
    lazy_import(
        globals(),
        savepoint="drawstring.services.savepoint",
        RestoreResult="drawstring.model.result:RestoreResult",
    )


class TableSavepoints(TableGroup):
    """The savepoints of a table, and restoring to an instant."""

    __slots__ = ()

    def create(
        self, instant: str | None = None, *, comments: str = "", user: str = "", options: Options = None
    ) -> str:
        """Keep the table as it was after a write, whatever cleaning and archiving do.

        Args:
            instant: requested time of a completed write; None for the newest.
            comments: reason for the savepoint.
            user: who makes it, for those who read its file; `drawstring` by default.
            options: further options by Hudi's keys.

        Returns:
            The requested time of the write.

        Raises:
            InvalidError: there is no such write, or files of it were cleaned away.
            ConflictError: another writer holds the table.

        Example:
            >>> instant = table.savepoints.create(comments="before the migration")
            >>> instant == table.timeline.latest_write().requested
            True
        """
        with self._calls.errors():
            parsed = self._calls.options("savepoint", options)
            return savepoint.savepoint(self._calls.context, parsed, instant, comments, user)

    def delete(self, instant: str, *, options: Options = None) -> None:
        """Let cleaning and archiving pass a write again.

        Args:
            instant: requested time of the write, which `create` returned.
            options: further options by Hudi's keys.

        Raises:
            InvalidError: there is no savepoint of that write.
            ConflictError: another writer holds the table.

        Example:
            >>> saved = table.savepoints.create()
            >>> table.savepoints.delete(saved)
        """
        with self._calls.errors():
            savepoint.delete_savepoint(
                self._calls.context, self._calls.options("delete_savepoint", options), instant
            )

    def list(self) -> list[str]:
        """Return the savepoints of the table.

        Returns:
            The requested times of their writes, oldest first.

        Raises:
            CorruptTableError: a file of the timeline has an invalid name.

        Example:
            >>> instant = table.savepoints.create()
            >>> table.savepoints.list() == [instant]
            True
        """
        with self._calls.errors():
            saved = self._calls.timeline().instants
            return [each.requested for each in saved if each.action is Action.SAVEPOINT]

    def restore(self, instant: str, *, options: Options = None) -> RestoreResult:
        """Restore the table to its state after a write. Later changes are lost.

        Args:
            instant: requested time of a write with a savepoint, or of one whose files were not cleaned away.
            options: further options by Hudi's keys.

        Returns:
            The undone instants; false if there was no later instant.

        Raises:
            InvalidError: there is no such write, its files were cleaned, or a later savepoint prevents it.
            ConflictError: another writer holds the table.

        Example:
            >>> saved = table.savepoints.create()
            >>> result = table.delete(where="true")
            >>> len(table.savepoints.restore(saved).rolled_back)
            1
            >>> table.scan().to_arrow().num_rows
            3
        """
        with self._calls.errors():
            done = savepoint.restore(self._calls.context, self._calls.options("restore", options), instant)
            return done or RestoreResult(restored_to=instant)

    def plan_restore(self, instant: str) -> RestorePlan:
        """Return what `restore` would undo, without changing the table.

        Args:
            instant: requested time of a write with a savepoint, or of one whose files were not cleaned away.

        Returns:
            The instants that would be undone, newest first; there may be none.

        Raises:
            InvalidError: there is no such write, its files were cleaned, or a later savepoint prevents it.

        Example:
            >>> table.savepoints.plan_restore(table.savepoints.create()).instants
            ()
        """
        with self._calls.errors():
            return savepoint.planned_restore(self._calls.context, instant)
