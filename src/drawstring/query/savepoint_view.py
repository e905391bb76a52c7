"""The view of a table as of a savepoint: the files that the savepoint retains.

A savepoint lists the files of every file slice as of its commit. These are all files that the table had then,
so a query as of exactly this instant reads them and no others, whatever cleans deleted since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from drawstring.base.errors import MissingFileError
from drawstring.filegroups.view.file_columns import FileColumns
from drawstring.filegroups.view.file_groups import FileGroupView
from drawstring.filegroups.view.listing import Listing
from drawstring.formats.metadata.savepoint import decode_savepoint
from drawstring.model.files import FileStatus, join_path
from drawstring.model.instant import Action, Instant, time_of
from drawstring.model.savepoint import Savepoint
from drawstring.query.facts import TableFacts


def facts_of_savepoint(facts: TableFacts, time: str) -> TableFacts | None:
    """Return the table as a savepoint retains it.

    Args:
        facts: the table.
        time: requested time of the savepoint.

    Returns:
        The table with the files of the savepoint and the instants completed then; None when there is no
        savepoint at that time, or when it lacks files of its own commit.
    """
    completed = facts.timeline.completed_of(Action.SAVEPOINT)
    savepoint = next((instant for instant in completed if instant.requested == time), None)
    write = facts.timeline.write_at(time)
    if savepoint is None or write is None:
        return None
    saved = decode_savepoint(facts.store.read(savepoint))
    if not _has_files_of(facts, saved, write):
        return None
    then = facts.timeline.completed_by(time_of(write))
    view = FileGroupView(then, facts.config, _SavedListing(saved, facts.view.listing, time), facts.store)
    return replace(facts, timeline=then, view=view)


def _has_files_of(facts: TableFacts, saved: Savepoint, write: Instant) -> bool:
    """Return whether a savepoint lists all files of its commit; old Hudi releases left out log files."""
    listed_files = {join_path(partition, name) for partition, names in saved.files.items() for name in names}
    return all(stat.path in listed_files for stat in facts.store.commit_metadata(write).stats)


@dataclass(frozen=True, slots=True)
class _SavedListing:
    """The files of a savepoint; each partition is listed on first use.

    Attributes:
        saved: metadata of the savepoint.
        listing: listing of the current table.
        instant: requested time of the savepoint.
    """

    saved: Savepoint
    listing: Listing
    instant: str

    @property
    def is_complete(self) -> bool:
        return False

    def partitions(self) -> list[str]:
        return sorted(self.saved.files)

    def files(self, partition: str) -> list[FileStatus]:
        """Return the files of a partition.

        Raises:
            CorruptTableError: a file is missing.
        """
        listed = {status.name: status for status in self.listing.files(partition)}
        names = self.saved.files.get(partition, ())
        for name in names:
            if name not in listed:
                raise MissingFileError(
                    "A file of the savepoint is missing, so the table cannot be read as of it. Restore the"
                    " file from a backup, or read the table as of another instant.",
                    instant=self.instant,
                    path=join_path(partition, name),
                )
        return [listed[name] for name in names]

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        return None
