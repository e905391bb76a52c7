"""What an open table does to stay fast and bounded: the services that its owner may call by hand."""

from __future__ import annotations

from typing import Any

from drawstring.config.options import WriteOptions, check_call
from drawstring.model.clean import CleanPlan
from drawstring.model.instant import Instant
from drawstring.model.result import ArchiveResult, CleanResult
from drawstring.model.validation import Finding, Validation
from drawstring.query.table_queries import TableQueries
from drawstring.services.archive import archive, planned_instants
from drawstring.services.clean import clean, plan_clean
from drawstring.services.progress import Progress
from drawstring.services.repair import remedies_of, repair
from drawstring.services.validate import validate


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

    def validate(self, *, contents: bool = True, progress: Progress | None = None) -> Validation:
        """Check the invariants of the table: files and sizes, timeline, orphans, keys, buckets.

        Args:
            contents: whether to read the keys of all records, rather than compare names and sizes alone.
            progress: told how many file groups were read, and of how many.

        Returns:
            What was found, the worst first; damage raises nothing.
        """
        with self._about():
            return validate(self._state, contents=contents, progress=progress)

    def repair(self, *remedies: str, apply: bool = False) -> tuple[Finding, ...]:
        """Put right what can be without anybody's decision, or say what that is.

        Args:
            *remedies: only these: `orphan`, `partition-metadata`, `properties`, `rollback`.
            apply: whether to do it.

        Returns:
            The findings that were, or would be, put right.

        Raises:
            ConflictError: another writer holds the table, or shows signs of life.
            InvalidError: there is no such remedy.
        """
        with self._about():
            return repair(self._state, apply=apply, remedies=remedies_of(remedies))
