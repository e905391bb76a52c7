"""Notes of rolled back instants, kept for as long as a stalled writer of theirs may resume.

    <timeline folder>/<T>_<R>.rolledback     empty: T was rolled back at R; ignored by other engines

A writer that stalled while others rolled its instant back may create files of that instant when it resumes.
They must not count after archiving has passed the instant, when every instant that is not on the timeline
counts as committed. The notes are listed with the timeline, so they cost readers no extra request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drawstring.config.table.config import TableConfig
from drawstring.model.files import join_path
from drawstring.storage.protocol import Storage

_SUFFIX: Final = ".rolledback"


def noted_in(names: Iterable[str]) -> frozenset[str]:
    """Return the requested times that the file names of a timeline folder note as rolled back."""
    return frozenset(name.partition("_")[0] for name in names if name.endswith(_SUFFIX))


def note_rolled_back(storage: Storage, config: TableConfig, requested: str, now: str) -> None:
    """Note that an instant never completes; call it after taking the instant's claim.

    Args:
        storage: the table's files.
        config: the table's settings.
        requested: requested time of the instant.
        now: instant time of the note.
    """
    storage.put_if_absent(join_path(config.timeline_folder, f"{requested}_{now}{_SUFFIX}"), b"")


def old_notes(storage: Storage, config: TableConfig, before: str) -> list[tuple[str, str]]:
    """Return the notes made before an instant time: requested time and path of each, the oldest first."""
    notes = (status for status in storage.list_files(config.timeline_folder) if status.name.endswith(_SUFFIX))
    parsed = ((status.name.removesuffix(_SUFFIX).partition("_"), status.path) for status in notes)
    return sorted((requested, path) for (requested, _, at), path in parsed if at < before)
