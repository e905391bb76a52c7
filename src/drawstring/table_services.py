"""What an open table does to stay fast and bounded: the services that its owner may call by hand."""

from __future__ import annotations

from typing import Any

from drawstring.config.options import WriteOptions, check_call
from drawstring.model.clean import CleanPlan
from drawstring.model.instant import Instant
from drawstring.model.result import ArchiveResult, CleanResult
from drawstring.query.table_queries import TableQueries
from drawstring.services.archive import archive, planned_instants
from drawstring.services.clean import clean, plan_clean


class TableServices(TableQueries):
    """The services of a table that writes run by themselves, for calling by hand."""

    def clean(self, **options: Any) -> CleanResult | None:
        """Delete versions of files that no reader of the retained time needs.

        Every write does this by default, see `hoodie.clean.automatic`.

        Args:
            **options: Hudi's options, as in `**{"hoodie.clean.commits.retained": 3}`.

        Returns:
            What was deleted, None for nothing.

        Raises:
            ConflictError: another writer holds the table.
        """
        with self._about():
            check_call(options)
            return clean(self._state, WriteOptions.parse(options))

    def plan_clean(self, **options: Any) -> CleanPlan | None:
        """Return what `clean` would delete now, None for nothing; the table stays as it is."""
        with self._about():
            check_call(options)
            return plan_clean(self._state, WriteOptions.parse(options))

    def archive(self, **options: Any) -> ArchiveResult | None:
        """Move old instants from the active timeline into the archived one.

        Every write does this by default, see `hoodie.archive.automatic`.

        Args:
            **options: Hudi's options, as in `**{"hoodie.keep.min.commits": 5, "hoodie.keep.max.commits": 6}`.

        Returns:
            What was moved, None for nothing.

        Raises:
            ConflictError: another writer holds the table.
        """
        with self._about():
            check_call(options)
            return archive(self._state, WriteOptions.parse(options))

    def plan_archive(self, **options: Any) -> list[Instant]:
        """Return the instants that `archive` would move now, oldest first; the table stays as it is."""
        with self._about():
            check_call(options)
            return planned_instants(self._state, WriteOptions.parse(options))
