"""The table's properties file on storage.

    .hoodie/hoodie.properties           the properties
    .hoodie/hoodie.properties.backup    the previous properties, only while they are being changed

A change puts the backup, then the new file, then deletes the backup. A reader that finds the main file
missing or truncated reads the backup (specification: Table Configuration).

A file that is truncated at the end of a line reads well, with its last keys lost. drawstring writes the
checksum last, so one of its own files without a checksum is truncated. Hudi writes keys in hash order, the
checksum before the name; there, some keys that every complete file has are checked. Hudi reads files without
a checksum, as old releases and other tools write them, and so does drawstring.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError, CorruptTableError, InvalidError, NoTableError
from drawstring.base.resources import this_process
from drawstring.config.table.properties import decode_properties, encode_properties, table_checksum
from drawstring.config.table_config import KeyGeneratorType, MergeMode, TableConfig, table_config
from drawstring.config.table_types import registered_key_generator, registered_merger
from drawstring.model.table_version import LAYOUTS
from drawstring.storage.local import missing_table_advice
from drawstring.storage.protocol import Storage, folders_above, joined
from drawstring.timeline.timeline import parse_instant

PROPERTIES_PATH = ".hoodie/hoodie.properties"
BACKUP_PATH = PROPERTIES_PATH + ".backup"

_CHECKSUM = "hoodie.table.checksum"
_DRAWSTRING_HEAD: Final = re.compile(rb"#Updated at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\r?\n")
"""First line of files that drawstring wrote. Hudi writes more digits of the second, except on Java 8."""

_CHANGED_BY: Final = re.compile(rb"^#Changed by ([ -~]{1,200})\r?$", re.MULTILINE)
"""A comment in files that drawstring changed; other engines leave it out when they write the file anew."""

_SET_BY_SPARK = ("hoodie.table.cdc.enabled", "hoodie.table.timeline.timezone")
_LAST_OF_SPARK = "hoodie.table.base.file.format"
"""Hudi's Spark writer sets all three keys, and the last one comes at the end of its files."""

_FILES_CACHED: Final = 64
"""Number of properties files whose parsed content is cached."""

_FOLDER = ".hoodie"
_FOLDERS = (".hoodie/.aux", ".hoodie/.temp")


@dataclass(frozen=True, slots=True)
class _Stored:
    data: bytes
    config: TableConfig
    from_backup: bool


def load_config(storage: Storage) -> TableConfig:
    """Return the configuration of a table, with its registered merger and key generator.

    Raises:
        InvalidError: there is no table at this place.
        CorruptTableError: the properties and their backup cannot be read, or both are gone though there is a
            timeline.
        UnsupportedError: the table version is unknown.
    """
    config = _load(storage).config
    if config.key_generator is KeyGeneratorType.USER_PROVIDED:
        config = replace(config, key_function=registered_key_generator(config.key_generator_class))
    if config.merge_mode is MergeMode.CUSTOM:
        config = replace(config, merger=registered_merger(*config.merger_names))
    return config


def properties_version(storage: Storage) -> str | None:
    """Return the storage version of the properties file, which every put changes; None without a file."""
    versioned = storage.read_versioned(PROPERTIES_PATH)
    return None if versioned is None else versioned[1]


def changed_by(storage: Storage) -> str:
    """Return the process of drawstring that changed the properties last; empty if the file does not tell."""
    versioned = storage.read_versioned(PROPERTIES_PATH)
    found = _CHANGED_BY.search(versioned[0]) if versioned else None
    return found[1].decode("latin-1") if found else ""


def save_properties(
    storage: Storage, properties: Mapping[str, str], clock: Clock, version: str | None = None
) -> None:
    """Replace the properties of a table; a reader sees either the old or the new ones.

    Args:
        storage: the table's files.
        properties: the complete new properties; the checksum is renewed.
        clock: for the time in the file.
        version: the result of `properties_version` when the caller began; None to replace the current file.

    Raises:
        ConflictError: another process changed the properties since.
        InvalidError: there is no table at this place.
        CorruptTableError: the properties and their backup cannot be read, or both are gone.
    """
    old, version = _load(storage), version or properties_version(storage)
    if not old.from_backup:
        storage.put(BACKUP_PATH, old.data)
        storage.sync([_FOLDER])
    data = _encode(properties, clock)
    if version is None:
        is_put = storage.put_if_absent(PROPERTIES_PATH, data)
    else:
        is_put = storage.put_if_match(PROPERTIES_PATH, data, version)
    if not is_put:
        who = f" ({by})" if (by := changed_by(storage)) else ""
        raise ConflictError(
            f"Another process{who} changed the table properties while this one stalled. Try again.",
            table=storage.spec.uri,
            path=PROPERTIES_PATH,
        )
    storage.sync([_FOLDER])
    storage.delete([BACKUP_PATH])


def problem_of_properties(storage: Storage) -> str | None:
    """Describe the damage of a properties file whose backup is used instead; None without damage.

    Raises:
        InvalidError: there is no table at this place.
        CorruptTableError: the properties and their backup cannot be read, or both are gone.
    """
    return "they are missing or damaged" if _load(storage).from_backup else None


def renew_properties(storage: Storage, clock: Clock) -> None:
    """Put the current properties again, as a new storage version of the file."""
    save_properties(storage, _load(storage).config.properties, clock)


def create_table(storage: Storage, properties: Mapping[str, str], clock: Clock) -> TableConfig:
    """Create an empty table.

    Args:
        storage: the table's files.
        properties: the complete properties, from `config.table.properties`.
        clock: for the time in the file.

    Returns:
        The configuration of the table.

    Raises:
        InvalidError: there is a table already.
        CorruptTableError: there is a table already, without its properties.
    """
    config = table_config(properties)
    if storage.exists(PROPERTIES_PATH) or storage.exists(BACKUP_PATH):
        raise _table_exists(storage)
    if _has_timeline(storage):
        raise _properties_missing(storage)
    folders = _make_folders(storage, config)
    if not storage.put_if_absent(PROPERTIES_PATH, _encode(properties, clock)):
        raise _table_exists(storage)
    storage.sync(folders)
    return config


def take_over_table(storage: Storage, properties: Mapping[str, str], clock: Clock) -> None:
    """Put the properties of a table in a folder where a dead process may have left files of it.

    Args:
        storage: the table's files.
        properties: the complete properties.
        clock: for the time in the file.
    """
    folders = _make_folders(storage, table_config(properties))
    storage.put(PROPERTIES_PATH, _encode(properties, clock))
    storage.sync(folders)


def _make_folders(storage: Storage, config: TableConfig) -> list[str]:
    """Create the folders of a table; return those to flush once its properties are put."""
    folders = [*_FOLDERS, config.timeline_folder, config.history_folder]
    for folder in folders:
        _make_folder(storage, folder)
    return folders_above([PROPERTIES_PATH, *(joined(folder, "") for folder in folders)])


def _load(storage: Storage) -> _Stored:
    problem = None
    # Twice: another process may put them, and delete the backup, between the two reads.
    for path in (PROPERTIES_PATH, BACKUP_PATH) * 2:
        try:
            data = storage.read(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        parsed = _parse(data)
        if isinstance(parsed, TableConfig):
            return _Stored(data, parsed, path == BACKUP_PATH)
        problem = parsed
    if problem is None and _has_timeline(storage):
        raise _properties_missing(storage)
    if problem is None:
        text = (
            f"This is not a Hudi table (no {PROPERTIES_PATH})."
            f" {missing_table_advice(storage, PROPERTIES_PATH)}"
        )
        raise NoTableError(text, table=storage.spec.uri)
    raise CorruptTableError(
        f"The table properties are damaged: {problem}. Restore the file from its backup or another copy.",
        table=storage.spec.uri,
        path=PROPERTIES_PATH,
    )


@lru_cache(maxsize=_FILES_CACHED)
def _parse(data: bytes) -> TableConfig | str:
    """Return the configuration in a properties file, or a description of its damage.

    Cached, since every load of a table parses the file, and it rarely changes.
    """
    if not data.strip():
        return "the file is empty"
    if not data.endswith((b"\n", b"\r")):
        return "its last line has no end"
    properties = decode_properties(data)
    try:
        config = table_config(properties)
    except CorruptTableError as error:
        # The caller gives the next step itself.
        return re.split(r"[:.] [Rr]estore", error.message)[0]
    required = config.rules.always_stored
    checksum = (_CHECKSUM,) if _DRAWSTRING_HEAD.match(data) else ()
    missing = [key for key in (*checksum, *required) if not properties.get(key)]
    if all(key in properties for key in _SET_BY_SPARK) and _LAST_OF_SPARK not in properties:
        missing.append(_LAST_OF_SPARK)
    return f"{', '.join(missing)} is missing: its end was cut off" if missing else config


def _encode(properties: Mapping[str, str], clock: Clock) -> bytes:
    """Return the file content, with the checksum last, so that a truncated file can be recognised."""
    name, database = properties.get("hoodie.table.name", ""), properties.get("hoodie.database.name", "")
    encoded = {key: value for key, value in properties.items() if key != _CHECKSUM}
    encoded[_CHECKSUM] = str(table_checksum(name, database))
    return encode_properties(encoded, clock.now_ms(), this_process())


def make_timeline_folders(storage: Storage, config: TableConfig) -> None:
    """Create the folders of the timeline and of its archive if they do not exist."""
    for folder in (config.timeline_folder, config.history_folder):
        _make_folder(storage, folder)


def _make_folder(storage: Storage, folder: str) -> None:
    """Create a folder where the storage has folders: other engines list it before the first write."""
    if storage.local_path(folder) is not None:
        placeholder = f"{folder}/.folder.tmp"
        storage.put(placeholder, b"")
        storage.delete([placeholder])


def _has_timeline(storage: Storage) -> bool:
    """Return whether there are instants of either layout."""
    return any(
        parse_instant(status.name, layout) is not None
        for layout in LAYOUTS
        for status in storage.list_files(layout.folder("timeline"))
    )


def _properties_missing(storage: Storage) -> CorruptTableError:
    return CorruptTableError(
        "The table has a timeline and data, but its properties are missing. Restore the file from a backup,"
        " or copy that of a table created in exactly the same way; to begin anew, delete the folder first.",
        table=storage.spec.uri,
        path=PROPERTIES_PATH,
    )


def _table_exists(storage: Storage) -> InvalidError:
    return InvalidError(
        "There is a table at this path already. Open it, or choose another path.", table=storage.spec.uri
    )
