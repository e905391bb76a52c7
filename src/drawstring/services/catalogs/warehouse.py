"""A folder of tables as Spark and Hive lay it out: `rides` of database default, `lake.db/rides` of lake."""

from __future__ import annotations

from typing import Final

from drawstring.storage.protocol import Storage
from drawstring.timeline.properties_store import BACKUP_PATH, PROPERTIES_PATH

_SUFFIX: Final = ".db"
_DEFAULT: Final = "default"


class Warehouse:
    """A folder of tables.

    Args:
        storage: of the folder.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def databases(self) -> list[str]:
        """Return the names of the databases; there is always a default one."""
        found = self._storage.list_folders("")
        return [_DEFAULT, *(each.removesuffix(_SUFFIX) for each in found if each.endswith(_SUFFIX))]

    def table_names(self, database: str) -> list[str]:
        """Return the names of the Hudi tables of a database."""
        found = self._storage.list_folders(_folder_of(database))
        return [each.rpartition("/")[2] for each in found if self._is_table(each)]

    def location(self, database: str, name: str) -> str | None:
        """Return the address of a Hudi table, None if there is none of this name."""
        folder = _folder_of(database)
        path = f"{folder}/{name}" if folder else name
        return f"{self._storage.spec.uri.rstrip('/')}/{path}" if self._is_table(path) else None

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _is_table(self, folder: str) -> bool:
        return any(self._storage.exists(f"{folder}/{file}") for file in (PROPERTIES_PATH, BACKUP_PATH))


def _folder_of(database: str) -> str:
    return "" if database == _DEFAULT else f"{database}{_SUFFIX}"
