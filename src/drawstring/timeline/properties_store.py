"""The table's properties file on storage.

    .hoodie/hoodie.properties           the properties
    .hoodie/hoodie.properties.backup    the old ones, there only while they are being changed

A change puts the backup, then the new file, then deletes the backup. A reader that finds the main
file missing or half-written takes the backup (specification: Table Configuration).

A file can be cut at the end of a line and then reads well, with its last keys lost. drawstring
writes the checksum last, so a file of its own without one is cut. Hudi writes its keys in the order of
a hash table, the checksum before the name; there some keys that every whole file has are looked for.
Hudi reads files without a checksum, which old releases and other tools leave, and so does drawstring.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError, CorruptTableError, InvalidError
from drawstring.config.table.config import KeyGeneratorType, MergeMode, TableConfig, table_config
from drawstring.config.table.key_generators import registered_key_generator
from drawstring.config.table.mergers import registered_merger
from drawstring.config.table.properties import decode_properties, encode_properties, table_checksum
from drawstring.model.table_version import LAYOUTS
from drawstring.storage.paths import folders_above, joined
from drawstring.storage.protocol import Storage
from drawstring.timeline.layout import parse_instant

PROPERTIES_PATH = ".hoodie/hoodie.properties"
BACKUP_PATH = PROPERTIES_PATH + ".backup"

_CHECKSUM = "hoodie.table.checksum"
_OWN_HEAD: Final = re.compile(rb"#Updated at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\r?\n")
"""How files that drawstring wrote begin. Hudi writes more digits of the second, but under Java 8."""

_SET_BY_SPARK = ("hoodie.table.cdc.enabled", "hoodie.table.timeline.timezone")
_LAST_OF_SPARK = "hoodie.table.base.file.format"
"""Hudi's Spark writer sets all three, and the last one comes at the end of its files."""

_FILES_KNOWN: Final = 64
"""Properties files of which it is remembered what they say."""

_FOLDER = ".hoodie"
_FOLDERS = (".hoodie/.aux", ".hoodie/.temp")


@dataclass(frozen=True, slots=True)
class _Stored:
    data: bytes
    config: TableConfig
    from_backup: bool


def load_config(storage: Storage) -> TableConfig:
    """Return the configuration of a table, with the merger and key generator that are registered for it.

    Raises:
        InvalidError: there is no table at this place.
        CorruptTableError: neither the properties nor their backup can be read, or only they are gone.
        UnsupportedError: the table's version is not known.
    """
    config = _load(storage).config
    if config.key_generator is KeyGeneratorType.USER_PROVIDED:
        config = replace(config, key_function=registered_key_generator(config.key_generator_class))
    if config.merge_mode is MergeMode.CUSTOM:
        config = replace(config, merger=registered_merger(*config.merger_names))
    return config


def properties_version(storage: Storage) -> str | None:
    """Return the version of the properties file, which every change of it changes; None without a file."""
    found = storage.read_versioned(PROPERTIES_PATH)
    return None if found is None else found[1]


def save_properties(
    storage: Storage, properties: Mapping[str, str], clock: Clock, version: str | None = None
) -> None:
    """Replace the properties of a table; a reader sees the old ones or the new ones.

    Args:
        properties: all of them, also those that stay; the checksum is renewed.
        clock: for the time in the file.
        version: what `properties_version` gave when the caller began; None to replace what is there now.

    Raises:
        ConflictError: another process changed the properties since.
        InvalidError: there is no table at this place.
        CorruptTableError: neither the properties nor their backup can be read, or only they are gone.
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
        raise ConflictError(
            "Another process changed the properties of the table while this one stood still. Try again.",
            table=storage.spec.uri,
            path=PROPERTIES_PATH,
        )
    storage.sync([_FOLDER])
    storage.delete([BACKUP_PATH])


def problem_of_properties(storage: Storage) -> str | None:
    """Say what is wrong with a properties file whose backup counts in its place, None for nothing.

    Raises:
        InvalidError: there is no table at this place.
        CorruptTableError: neither the properties nor their backup can be read, or only they are gone.
    """
    return "they are missing or damaged" if _load(storage).from_backup else None


def renew_properties(storage: Storage, clock: Clock) -> None:
    """Put the properties that count in their place, in a new version of the file."""
    save_properties(storage, _load(storage).config.properties, clock)


def create_table(storage: Storage, properties: Mapping[str, str], clock: Clock) -> TableConfig:
    """Make an empty table.

    Args:
        properties: all that `config.new_table_properties` gives.

    Raises:
        InvalidError: a table is there already.
        CorruptTableError: a table is there already that lost its properties.
    """
    config = table_config(properties)
    if storage.exists(PROPERTIES_PATH) or storage.exists(BACKUP_PATH):
        raise _exists(storage)
    if _has_timeline(storage):
        raise _lost(storage)
    made = [*_FOLDERS, config.timeline_folder, config.history_folder]
    for folder in made:
        _make_folder(storage, folder)
    if not storage.put_if_absent(PROPERTIES_PATH, _encode(properties, clock)):
        raise _exists(storage)
    storage.sync(folders_above([PROPERTIES_PATH, *(joined(each, "") for each in made)]))
    return config


def _load(storage: Storage) -> _Stored:
    problem = None
    # Twice: whoever changes them may put them there, and delete the backup, between a look at each.
    for path in (PROPERTIES_PATH, BACKUP_PATH) * 2:
        try:
            data = storage.read(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        found = _understood(data)
        if isinstance(found, TableConfig):
            return _Stored(data, found, path == BACKUP_PATH)
        problem = found
    if problem is None and _has_timeline(storage):
        raise _lost(storage)
    if problem is None:
        raise InvalidError(
            "This is not a Hudi table (no .hoodie/hoodie.properties); check the path, or create a table.",
            table=storage.spec.uri,
        )
    raise CorruptTableError(
        f"The table's properties are damaged: {problem}; restore the file from its backup or another copy.",
        table=storage.spec.uri,
        path=PROPERTIES_PATH,
    )


@lru_cache(maxsize=_FILES_KNOWN)
def _understood(data: bytes) -> TableConfig | str:
    """Return what a properties file says, or what marks it as half-written.

    It is read at every look at a table, and stays the same for long.
    """
    if not data.strip():
        return "the file is empty"
    if not data.endswith((b"\n", b"\r")):
        return "its last line has no end"
    properties = decode_properties(data)
    try:
        config = table_config(properties)
    except CorruptTableError as error:
        return error.message.partition(": restore")[0]
    always = config.rules.always_stored
    checked = (_CHECKSUM,) if _OWN_HEAD.match(data) else ()
    lost = [key for key in (*checked, *always) if not properties.get(key)]
    if all(key in properties for key in _SET_BY_SPARK) and _LAST_OF_SPARK not in properties:
        lost.append(_LAST_OF_SPARK)
    return f"{', '.join(lost)} is missing: its end was cut off" if lost else config


def _encode(properties: Mapping[str, str], clock: Clock) -> bytes:
    """Return the file, its checksum last, so that one of ours without it is known to be half-written."""
    name, database = properties.get("hoodie.table.name", ""), properties.get("hoodie.database.name", "")
    checked = {key: value for key, value in properties.items() if key != _CHECKSUM}
    checked[_CHECKSUM] = str(table_checksum(name, database))
    return encode_properties(checked, clock.now_ms())


def make_timeline_folders(storage: Storage, config: TableConfig) -> None:
    """Make the folders of the timeline and of its archive, empty, where they are not there."""
    for folder in (config.timeline_folder, config.history_folder):
        _make_folder(storage, folder)


def _make_folder(storage: Storage, folder: str) -> None:
    """Make a folder where folders are things: other engines list it before the first write."""
    if storage.local_path(folder) is not None:
        placeholder = f"{folder}/.folder.tmp"
        storage.put(placeholder, b"")
        storage.delete([placeholder])


def _has_timeline(storage: Storage) -> bool:
    """Tell whether instants of either layout lie where a table's are."""
    return any(
        parse_instant(status.name, layout) is not None
        for layout in LAYOUTS
        for status in storage.list_files(layout.folder("timeline"))
    )


def _lost(storage: Storage) -> CorruptTableError:
    return CorruptTableError(
        "The table's properties are missing, its timeline and data are there: restore the file from a backup,"
        " or copy that of a table created just like this one; to begin anew, delete the folder first.",
        table=storage.spec.uri,
        path=PROPERTIES_PATH,
    )


def _exists(storage: Storage) -> InvalidError:
    return InvalidError("A table is there already; open it, or choose another path.", table=storage.spec.uri)
