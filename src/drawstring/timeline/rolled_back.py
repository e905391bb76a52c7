"""Notes of instants that were rolled back, for as long as a writer of theirs may live.

    <timeline folder>/<T>_<R>.rolledback     empty: T was rolled back at R; other engines pass this name over

A writer that stood still while others rolled its instant back may make files of it when it goes on. They must
not count once archiving has passed the instant, when every instant that is not on the timeline counts as
committed. The notes are listed together with the timeline, so that readers pay no request for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drawstring.config.table.config import TableConfig
from drawstring.model.files import join_path
from drawstring.storage.protocol import Storage

_SUFFIX: Final = ".rolledback"


def noted_in(names: Iterable[str]) -> frozenset[str]:
    """Return the requested times that the names of files in the timeline's folder note as rolled back."""
    return frozenset(name.partition("_")[0] for name in names if name.endswith(_SUFFIX))


def note_rolled_back(storage: Storage, config: TableConfig, requested: str, now: str) -> None:
    """Note that an instant never completes; only once its claim is taken.

    Args:
        storage: the table's files.
        config: the table.
        requested: requested time of the instant.
        now: instant time of the note.
    """
    storage.put_if_absent(join_path(config.timeline_folder, f"{requested}_{now}{_SUFFIX}"), b"")


def old_notes(storage: Storage, config: TableConfig, before: str) -> list[tuple[str, str]]:
    """Return what was noted before an instant time: requested time and path of the note, the oldest first."""
    listed = (each for each in storage.list_files(config.timeline_folder) if each.name.endswith(_SUFFIX))
    named = ((each.name.removesuffix(_SUFFIX).partition("_"), each.path) for each in listed)
    return sorted((requested, path) for (requested, _, at), path in named if at < before)
