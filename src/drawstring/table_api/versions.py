"""Versions of an open table: `table.versions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drawstring.base.lazy import lazy_import
from drawstring.model.table_version import DEFAULT_VERSION
from drawstring.table_api.calls import Options, TableGroup

if TYPE_CHECKING:
    from drawstring.model.result import VersionPlan, VersionResult
    from drawstring.services import upgrade as change_version
    from drawstring.services.progress import Progress
    from drawstring.services.table_services import check_direction
    from drawstring.services.upgrade import set_storage_layout
else:
    lazy_import(
        globals(),
        set_storage_layout="drawstring.services.upgrade:set_storage_layout",
        check_direction="drawstring.services.table_services:check_direction",
        change_version="drawstring.services.upgrade",
    )


class TableVersions(TableGroup):
    """The table version and the storage layout of a table."""

    __slots__ = ()

    def upgrade(
        self, to: int = DEFAULT_VERSION, *, progress: Progress | None = None, options: Options = None
    ) -> VersionResult:
        """Upgrade the table to a higher version; rows and their history stay.

        A MERGE_ON_READ table is compacted first, except from 9 to 10. Stop writers during the upgrade;
        readers may continue. After a crash, the table is unchanged or upgraded: repeat the call.

        Args:
            to: table version 8, 9 or 10. The current version deletes the files of an interrupted change.
            progress: called with the number of compacted file groups and the number of all.
            options: further options by Hudi's keys.

        Returns:
            Both versions, and what was moved and compacted; false if there was nothing to do.

        Raises:
            InvalidError: the table has a higher version, or log files wait for a clustering.
            UnsupportedError: the version is unknown, or lacks a feature that the table uses.
            ConflictError: another writer holds the table, or another process compacts it.

        Example:
            >>> result = table.versions.upgrade(9)
            >>> result.old, result.new, bool(result)
            (9, 9, False)
        """
        with self._calls.errors():
            parsed = self._calls.options("upgrade", options)
            check_direction(self._calls.config, to, lower=False)
            return change_version.change_version(self._calls.context, to, parsed, progress)

    def downgrade(
        self, to: int, *, progress: Progress | None = None, options: Options = None
    ) -> VersionResult:
        """Make the table one of a lower version, for older readers and writers; rows and their history stay.

        A MERGE_ON_READ table is compacted first. Nobody should write meanwhile; readers may go on. A process
        that dies leaves the table as it was or downgraded: call it again.

        Args:
            to: table version 6, 8 or 9. The current version deletes the files of an interrupted change.
            progress: called with the number of compacted file groups and the number of all.
            options: further options by Hudi's keys.

        Returns:
            Both versions, and what was moved and compacted; false if there was nothing to do.

        Raises:
            InvalidError: the table has a lower version, or log files wait for a clustering.
            UnsupportedError: the version is unknown, or lacks a feature that the table uses.
            ConflictError: another writer holds the table, or another process compacts it.

        Example:
            >>> result = table.versions.downgrade(8)
            >>> result.old, result.new
            (9, 8)
        """
        with self._calls.errors():
            parsed = self._calls.options("downgrade", options)
            check_direction(self._calls.config, to, lower=True)
            return change_version.change_version(self._calls.context, to, parsed, progress)

    def plan(self, to: int) -> VersionPlan:
        """Return the properties that `upgrade` or `downgrade` would change, without changing the table.

        Args:
            to: table version 6, 8, 9 or 10.

        Returns:
            Both versions, whether the timeline moves to another layout, and properties now and then.

        Raises:
            UnsupportedError: the version is unknown, or lacks a feature that the table uses.

        Example:
            >>> table.versions.plan(6).moves_timeline
            True
        """
        with self._calls.errors():
            return change_version.planned_version(self._calls.context, to)

    def set_storage_layout(self, layout: str, *, options: Options = None) -> bool:
        """Change the storage layout: from `lsm_tree` back to `default`; no file is rewritten.

        Args:
            layout: `default`. `lsm_tree` can only be chosen when a table is created.
            options: further options by Hudi's keys.

        Returns:
            Whether it changed.

        Raises:
            InvalidError: there is no such layout, or it is `lsm_tree` and the table does not have it.
            ConflictError: another writer holds the table.

        Example:
            >>> table.versions.set_storage_layout("default")
            False
        """
        with self._calls.errors():
            parsed = self._calls.options("set_storage_layout", options)
            return set_storage_layout(self._calls.context, layout, parsed)
