"""The versions of a table's schema (`config.table.schema_versions`) on storage.

    commit                                        latest_schema: the version of its files
    .hoodie/.schema/<instant>.schemacommit        all versions up to that commit, the newest first
                   <instant>_<time>.schemacommit  the same, in timelines with completion times

Every commit of such a table has both, so that the history stays with the active timeline when older commits
are archived. The file is put before the instant completes: until then readers pass over it.
"""

from __future__ import annotations

from typing import Final

from drawstring.base.errors import CorruptTableError, MissingFileError
from drawstring.config.table.schema_versions import SCHEMA_FOLDER, SchemaHistory
from drawstring.schema.schema_on_read import decode_history, encode_history
from drawstring.storage.paths import folders_above
from drawstring.storage.protocol import Storage
from drawstring.timeline.timeline import Timeline

_KIND: Final = "schemacommit"
_NO_VERSIONS: Final = '{"schemas":[]}'


def loaded_history(storage: Storage, timeline: Timeline, latest: str) -> SchemaHistory:
    """Return the versions of a table's schema, of which the latest one is requested.

    Args:
        storage: the table's files.
        timeline: the active timeline.
        latest: the latest version, as JSON.

    Raises:
        CorruptTableError: the history is damaged.
    """
    return decode_history(_stored(storage, timeline), latest)


def put_history(storage: Storage, instant: str, completed: str | None, history: SchemaHistory) -> None:
    """Put the history file of a commit that is about to complete.

    Args:
        storage: the table's files.
        instant: requested time of the commit.
        completed: a time for the name of the file; None in timelines without completion times.
        history: all versions.
    """
    name = instant if completed is None else f"{instant}_{completed}"
    for state in (".requested", ".inflight"):
        storage.put(f"{SCHEMA_FOLDER}/{instant}.{_KIND}{state}", b"")
    storage.put(f"{SCHEMA_FOLDER}/{name}.{_KIND}", encode_history(history).encode())
    storage.sync(folders_above([f"{SCHEMA_FOLDER}/{name}"]))


def delete_old_histories(storage: Storage, timeline: Timeline) -> None:
    """Delete the history files of archived commits, for those that follow have their versions, too.

    Those of commits with a savepoint stay, as a restore undoes the commits that follow.

    Args:
        storage: the table's files.
        timeline: the active timeline, with a commit that has its history file.
    """
    start = timeline.start
    if start is not None:
        names = ((_instant_of(each.name), each.path) for each in storage.list_files(SCHEMA_FOLDER))
        storage.delete([path for time, path in names if time < start and timeline.write_at(time) is None])


def _stored(storage: Storage, timeline: Timeline) -> str:
    """Return the content of the newest history file, one without versions if there is no such file."""
    path = _history_path(storage, timeline)
    if path is None:
        return _NO_VERSIONS
    try:
        stored = storage.read(path)
    except FileNotFoundError as error:
        raise MissingFileError(
            "The schema history file is missing. Restore it from a backup.", path=path
        ) from error
    try:
        text = stored.decode()
        decode_history(text)
    except (CorruptTableError, UnicodeDecodeError) as error:
        raise CorruptTableError(
            f"The schema history file is damaged ({error}). Restore it from a backup.", path=path
        ) from error
    return text


def _history_path(storage: Storage, timeline: Timeline) -> str | None:
    """Return the path of the newest history file of a completed write."""
    completed = {instant.requested for instant in timeline.writes()}
    start = timeline.start
    files = []
    for status in storage.list_files(SCHEMA_FOLDER):
        instant = _instant_of(status.name)
        if status.name.endswith(f".{_KIND}") and (
            instant in completed or (start is not None and instant < start)
        ):
            files.append((instant, status.path))
    return max(files)[1] if files else None


def _instant_of(name: str) -> str:
    return name.partition(".")[0].partition("_")[0]
