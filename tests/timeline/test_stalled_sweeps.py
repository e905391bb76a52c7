"""An archiver that stalls while it sweeps leaves the files of the next one alone."""

from __future__ import annotations

import pytest

from drawstring.base.errors import ConflictError
from drawstring.config.options.write_options import options_of
from drawstring.formats.metadata.archive import ArchivedInstantRow, encode_history
from drawstring.model.files import FileStatus
from drawstring.storage import open_storage
from drawstring.timeline.archive.lsm import LsmTimelineWriter
from tests.support.faulty_storage import FaultyStorage
from tests.support.tables import new_address

FOLDER = ".hoodie/timeline/history"
OTHERS = f"{FOLDER}/20260101000000002_20260101000000003_0.parquet"


def row(requested: str) -> ArchivedInstantRow:
    return ArchivedInstantRow(requested, requested, "commit", b"", None)


class Stalling(FaultyStorage):
    """Stands still before a listing: another process has the lock then, and puts a file of its own."""

    stalls = has_lost_lock = False

    def list_files(self, folder: str) -> list[FileStatus]:
        if self.stalls:
            self._inner.put(OTHERS, encode_history([row("20260101000000002")]))
            self.has_lost_lock = True
        return super().list_files(folder)


def test_a_stalled_archiver_spares_the_file_that_another_one_is_about_to_list() -> None:
    storage = Stalling(open_storage(new_address()), 1 << 60)

    def check() -> None:
        if storage.has_lost_lock:
            raise ConflictError("the lock is lost")

    writer = LsmTimelineWriter(storage, FOLDER, options_of("upsert", {}).archiving)
    writer.write([row("20260101000000001")], check)
    storage.stalls = True
    with pytest.raises(ConflictError):
        writer.tidy(check)
    assert storage.exists(OTHERS)
