"""Detection of changes of a table between the planning of a query and the reading of its files.

    plan ── digest of the timeline ──> task ── a file is missing ── load the timeline again
        same timeline, nothing deletes files     the file is lost: `MissingFileError`
        anything else                            it was deleted meanwhile: `FilesCleanedError`, plan again

Only cleans, rollbacks and restores delete files of a committed write. Each of them is on the timeline before
it deletes anything, and archiving removes it together with older writes. In version 6 readers also open the
log files that a stalled writer adds to a slice after it was rolled back, and leave their blocks out: the name
does not tell whose they are. The next writer deletes these, of which the timeline tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Final, TypeVar

from drawstring.base.clock import SystemClock
from drawstring.base.errors import (
    ConflictError,
    FilesCleanedError,
    MissingFileError,
    UnavailableError,
)
from drawstring.model.files import FileStatus, LogFile
from drawstring.model.instant import Action
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

ATTEMPTS_MAX: Final = 6
"""How often a reader plans again because the table changed while it planned or began to read."""

DELETING: Final = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
"""Actions that delete files of the table."""

_DIGEST_BYTES: Final = 16
T = TypeVar("T")


def retry_on_archiving(store: TimelineStore, use: Callable[[Timeline], T]) -> T:
    """Call a function of the timeline that reads instants; repeat it if they were archived meanwhile.

    Args:
        store: loads the timeline.
        use: the function; it can be called again.

    Raises:
        MissingFileError: a file is missing, and the timeline did not change.
        UnavailableError: the timeline changed during each of `ATTEMPTS_MAX` attempts.
    """
    previous: tuple[str | None, Timeline] | None = None
    for _ in range(ATTEMPTS_MAX):
        timeline = store.load()
        try:
            return use(timeline)
        except MissingFileError as error:
            if previous == (error.path, timeline):
                raise
            previous = (error.path, timeline)
    raise UnavailableError("The timeline kept changing while it was read. Try again.")


def digest(timeline: Timeline) -> str:
    """Return a short text that is equal only for equal timelines."""
    texts = (f"{each.requested} {each.action} {each.state} {each.completed}" for each in timeline.instants)
    return blake2b("\n".join(texts).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def has_changed(storage: Storage, timeline_digest: str) -> bool:
    """Return whether files may have been deleted since a timeline was loaded.

    Args:
        storage: the table's files.
        timeline_digest: the digest of that timeline.
    """
    try:
        timeline = TimelineStore(storage, load_config(storage), SystemClock()).load()
    except (ConflictError, MissingFileError):
        return True  # it is changing right now
    return digest(timeline) != timeline_digest or bool(timeline.pending_of(*DELETING))


def _may_be_late(storage: Storage, path: str) -> bool:
    """Return whether a missing file may be one of a stalled writer that was rolled back: no commit has it."""
    config = load_config(storage)
    if not config.rules.names_logs_by_slice or LogFile.parse(FileStatus(path, 0)) is None:
        return False
    store = TimelineStore(storage, config, SystemClock())
    timeline = store.load()
    commits = (store.commit_metadata(each) for each in reversed(timeline.writes()))
    return bool(timeline.rolled_back) and all(stat.path != path for each in commits for stat in each.stats)


@contextmanager
def since(spec: StorageSpec, timeline_digest: str | None) -> Iterator[None]:
    """Tell files that were deleted since a timeline was loaded from files that are lost.

    Args:
        spec: opens the table.
        timeline_digest: the digest of that timeline; None without one.

    Raises:
        FilesCleanedError: a file is missing, and the table changed since, or no commit has the file.
        MissingFileError: a file is missing, and the table did not change.
    """
    try:
        yield
    except MissingFileError as error:
        if timeline_digest is None:
            raise
        storage = open_spec(spec)
        if not (has_changed(storage, timeline_digest) or _may_be_late(storage, error.path or "")):
            raise
        raise files_cleaned(error).at(table=spec.uri) from error


def files_cleaned(error: MissingFileError) -> FilesCleanedError:
    """Return the error of a reader whose file was deleted after planning."""
    return FilesCleanedError(
        "A file of this query was deleted after the query was planned, most likely by a clean. Run the query"
        " again. If that happens often, read within Table.holds.temporary(), or keep more with"
        " hoodie.clean.commits.retained.",
        table=error.table,
        instant=error.instant,
        path=error.path,
    )
