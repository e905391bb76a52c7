"""Reading a table as of a savepoint: the files that it keeps, whatever was cleaned away around them.

A savepoint names the files of every slice as of its write. These are all that the table had then, so a query
of that very instant reads them and no others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from drawstring.base.errors import MissingFileError
from drawstring.filegroups.view.file_groups import FileGroupView
from drawstring.filegroups.view.listing import Listing
from drawstring.formats.metadata.savepoint import decode_savepoint
from drawstring.model.files import FileStatus, join_path
from drawstring.model.instant import Action, Instant, time_of
from drawstring.model.savepoint import Savepoint
from drawstring.query.facts import TableFacts


def facts_of_savepoint(facts: TableFacts, time: str) -> TableFacts | None:
    """Return the table as a savepoint keeps it.

    Args:
        facts: the table.
        time: an instant.

    Returns:
        The table with the files of the savepoint and what was committed then; None where there is no
        savepoint of that instant, or one that leaves out files that its own write made.
    """
    completed = facts.timeline.completed_of(Action.SAVEPOINT)
    own = next((each for each in completed if each.requested == time), None)
    write = facts.timeline.write_at(time)
    if own is None or write is None:
        return None
    saved = decode_savepoint(facts.store.read(own))
    if not _has_files_of(facts, saved, write):
        return None
    then = facts.timeline.completed_by(time_of(write))
    view = FileGroupView(then, facts.config, _SavedListing(saved, facts.view.listing, time), facts.store)
    return replace(facts, timeline=then, view=view)


def _has_files_of(facts: TableFacts, saved: Savepoint, write: Instant) -> bool:
    """Tell whether a savepoint names what its write made; old releases of Hudi left log files out."""
    named = {join_path(partition, name) for partition, names in saved.files.items() for name in names}
    return all(stat.path in named for stat in facts.store.commit_metadata(write).stats)


@dataclass(frozen=True, slots=True)
class _SavedListing:
    """The files that a savepoint names, each partition listed when it is asked for.

    Attributes:
        saved: what the savepoint names.
        listing: of the table as it is.
        instant: of the savepoint.
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
            CorruptTableError: one is gone.
        """
        listed = {status.name: status for status in self.listing.files(partition)}
        names = self.saved.files.get(partition, ())
        for name in names:
            if name not in listed:
                raise MissingFileError(
                    "a file of the savepoint is gone, so the table cannot be read as of it: restore the file"
                    " from a backup, or read another instant",
                    instant=self.instant,
                    path=join_path(partition, name),
                )
        return [listed[name] for name in names]
