"""The listed files of a table by path; each partition is listed once."""

from __future__ import annotations

from collections.abc import Mapping

from drawstring.filegroups.view.listing import Listing
from drawstring.filegroups.view.missing_files import refuse_external_file
from drawstring.model.files import FileStatus


class ListedFiles:
    """Finds files in the listing of a table.

    Args:
        listing: lists the files of a partition.
    """

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._files: dict[str, Mapping[str, FileStatus]] = {}

    def of(self, partition: str) -> Mapping[str, FileStatus]:
        """Return the files of a partition by path."""
        if partition not in self._files:
            listed = self._listing.files(partition)
            self._files[partition] = {status.path: status for status in listed}
        return self._files[partition]

    def find(self, partition: str, path: str) -> FileStatus | None:
        """Return a file that a commit names, None if it does not exist.

        Raises:
            UnsupportedError: the file is an external file that another tool registered.
        """
        refuse_external_file(path)
        return self.of(partition).get(path)
