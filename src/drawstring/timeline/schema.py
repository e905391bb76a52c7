"""Find the schema of a table at an instant, and store the versions of its schema (specification: Schema).

The schema is that in the newest commit that has one; for a time before the active timeline, a commit in the
archive. Without such a commit it is the schema that the table was created with, else the schema of the
newest base file.

The versions of the schema (`config.table.schema_versions`) are stored with each commit:

    commit                                        latest_schema: the version of its files
    .hoodie/.schema/<instant>.schemacommit        all versions up to that commit, the newest first
                   <instant>_<time>.schemacommit  the same, in timelines with completion times

Every commit of such a table has both, so that the history stays with the active timeline when older commits
are archived. The file is put before the instant completes; until then readers ignore it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from drawstring.base.errors import CorruptTableError, DrawstringError, MissingFileError
from drawstring.config.table.schema_versions import LATEST_SCHEMA, SCHEMA_FOLDER, SchemaHistory
from drawstring.config.table_config import TableConfig
from drawstring.formats.data_file import base_schema
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import BaseFile, FileStatus, parse_data_file
from drawstring.model.instant import Instant
from drawstring.schema.avro import Comments, arrow_to_avro, avro_to_arrow, comments_of, record_name
from drawstring.schema.fields import without_meta
from drawstring.schema.internal_schema import decode_history, encode_history
from drawstring.storage.local import data_files
from drawstring.storage.protocol import Storage, folders_above
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.properties import PROPERTIES_PATH
from drawstring.timeline.store import TimelineStore
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


LOST_TIMELINE: Final = (
    "Restore the folder from a backup. Without one, create another table and insert the rows of the files."
)
"""What to do if the timeline of a table was deleted."""


def table_schema_json(
    storage: Storage, store: TimelineStore, timeline: Timeline, config: TableConfig, as_of: str | None = None
) -> str | None:
    """Return the Avro schema of a table as JSON, None for an empty table that was created without a schema.

    Args:
        storage: reads base files.
        store: reads commit metadata.
        timeline: the active timeline.
        config: the table's settings.
        as_of: the latest requested time to consider; None for all.

    Raises:
        CorruptTableError: the table has data, but no known schema.
    """
    for metadata in _newest_first(storage, store, timeline, config, as_of):
        if schema_json := metadata.schema_json:
            return schema_json
    if config.create_schema:
        return config.create_schema
    writes = _until(timeline.writes(), as_of)
    for instant in reversed(writes):
        if path := _base_file_path(store, instant):
            return arrow_to_avro(without_meta(base_schema(storage, path)), *record_name(config.name))
    if writes:
        raise CorruptTableError(
            "Neither the commits nor the properties of the table contain its schema. Set"
            " hoodie.table.create.schema."
        )
    return None


def table_schema(
    storage: Storage, store: TimelineStore, timeline: Timeline, config: TableConfig, as_of: str | None = None
) -> pa.Schema:
    """Return the schema of a table without meta columns; arguments as for `table_schema_json`."""
    schema_json = table_schema_json(storage, store, timeline, config, as_of)
    if schema_json is None:
        return pa.schema([])
    try:
        return without_meta(avro_to_arrow(schema_json))
    except DrawstringError as error:
        raise _at_source(error, schema_json, store, timeline) from error


def table_comments(
    storage: Storage, store: TimelineStore, timeline: Timeline, config: TableConfig
) -> Comments:
    """Return the comments of the columns of a table; arguments as for `table_schema_json`."""
    return comments_of(table_schema_json(storage, store, timeline, config) or "")


def with_history(
    config: TableConfig, storage: Storage, store: TimelineStore, timeline: Timeline, as_of: str | None = None
) -> TableConfig:
    """Return the settings of a table with the versions of its schema, if it evolved on read.

    Args:
        config: the table's settings.
        storage: the table's files.
        store: reads commit metadata.
        timeline: the active timeline.
        as_of: the latest requested time to consider; None for all.

    Raises:
        CorruptTableError: the history is damaged.
    """
    latest = _latest_version(_newest_first(storage, store, timeline, config, as_of))
    if latest is None:
        return config if config.history is None else replace(config, history=None)
    # A timeline of the past lacks the commits that have the history file now.
    return replace(config, history=loaded_history(storage, store.loaded, latest))


def put_versions(
    config: TableConfig,
    storage: Storage,
    store: TimelineStore,
    instant: Instant,
    history: SchemaHistory | None,
) -> dict[str, str]:
    """Store the versions of the schema for a commit that is about to complete, and return its entries.

    Args:
        config: the table's settings.
        storage: the table's files.
        store: the timeline, loaded.
        instant: the commit.
        history: the versions; None for those that the table has, if it has any.
    """
    timeline = store.loaded
    if history is None:
        known = with_history(config, storage, store, timeline).history
        if known is None:
            return {}
        history = known.at(instant.requested)
    time = store.new_time(timeline) if config.layout.has_completion_times else None
    put_history(storage, instant.requested, time, history)
    delete_old_histories(storage, timeline)
    return {LATEST_SCHEMA: history.text}


def _newest_first(
    storage: Storage, store: TimelineStore, timeline: Timeline, config: TableConfig, as_of: str | None
) -> Iterator[CommitMetadata]:
    """Yield the metadata of writes, the newest first, for a time also of archived ones."""
    for instant in reversed(_until(timeline.writes(), as_of)):
        yield store.head(instant)
    if as_of is None or timeline.start is None:
        return
    archive = open_archive(storage, config)
    archived = [each for each in archive.completed("") if each.is_write and each.requested < timeline.start]
    for instant in reversed(_until(archived, as_of)):
        yield archive.commit_metadata(instant)


def _until(writes: Sequence[Instant], as_of: str | None) -> list[Instant]:
    return [each for each in writes if as_of is None or each.requested <= as_of]


def _latest_version(commits: Iterable[CommitMetadata]) -> str | None:
    """Return the schema version in the metadata of the newest write, None if it has none."""
    for metadata in commits:
        if text := metadata.extra.get(LATEST_SCHEMA):
            return text
        if metadata.extra.get("schema"):
            break
    return None


def _at_source(
    error: DrawstringError, schema_json: str, store: TimelineStore, timeline: Timeline
) -> DrawstringError:
    """Add the file with the unreadable schema to an error: a commit, else the properties."""
    for instant in timeline.writes():
        if store.commit_metadata(instant).schema_json == schema_json:
            return error.at(instant=instant.requested, path=store.path(instant))
    return error.at(path=PROPERTIES_PATH)


def _base_file_path(store: TimelineStore, instant: Instant) -> str | None:
    """Return the path of a base file that a write created, None without one."""
    paths = (stat.path for stat in store.commit_metadata(instant).stats)
    return next((path for path in paths if BaseFile.parse(FileStatus(path, 0))), None)


def check_timeline(storage: Storage, config: TableConfig, timeline: Timeline) -> None:
    """Refuse a table whose timeline was deleted: it looks empty, and its files would count as archived later.

    Only a table that had a commit has a metadata table, and some instants stay in each timeline.

    Args:
        storage: the table's files.
        config: its settings.
        timeline: as it was loaded.

    Raises:
        CorruptTableError: there are data files, and no instant.
    """
    if timeline.instants or not config.metadata_partitions:
        return
    if any(map(parse_data_file, data_files(storage))):
        raise CorruptTableError(
            f"The table has data files, but no instant: its timeline was deleted. {LOST_TIMELINE}",
            table=storage.spec.uri,
            path=config.timeline_folder,
        )
