"""The versions of a table's schema: columns have ids, which survive renames.

A file has the newest version up to its instant. A column of a query has in the file the name of its id, if
the file has the id (specification: Schema Evolution).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from drawstring.base.errors import CorruptTableError

SCHEMA_FOLDER: Final = ".hoodie/.schema"
"""Folder of the files with all versions."""

LATEST_SCHEMA: Final = "latest_schema"
"""Key of the extra metadata of a commit that has the version of its files."""


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """A column of one schema version, or a part of one.

    Attributes:
        id: identifies the column in all versions.
        name: name in this version.
        parts: fields of a struct, the element of a list, or the value of a map.
    """

    id: int
    name: str
    parts: tuple[SchemaColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Renames:
    """The mapping of a query's columns to those of a file with another schema version.

    Attributes:
        requested: columns of the query's version.
        stored: columns of the file's version.
    """

    requested: tuple[SchemaColumn, ...]
    stored: tuple[SchemaColumn, ...]

    def sources(self) -> dict[str, str | None]:
        """Return the names in the file by name in the query, None for a column that the file lacks."""
        names = {column.id: column.name for column in self.stored}
        return {column.name: names.get(column.id) for column in self.requested}


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """All versions of a table's schema.

    Attributes:
        versions: columns by version, oldest first; the version is the instant that created it, as a number.
        requested: the version of the query.
        texts: the versions as JSON.
    """

    versions: Mapping[int, tuple[SchemaColumn, ...]]
    requested: int
    texts: Mapping[int, str] = field(default_factory=dict)

    def renames(self, instant: str) -> Renames | None:
        """Return the mapping of the query's columns to those of a file; None if they are the same.

        Args:
            instant: the instant that wrote the file.

        Raises:
            CorruptTableError: no version is as old as the file.
        """
        version = self._version_at(instant)
        if version is None:
            raise CorruptTableError(
                "The schema history begins after the file was written."
                " Restore .hoodie/.schema from a backup.",
                instant=instant,
            )
        requested, stored = self.versions[self.requested], self.versions[version]
        return None if set(requested) == set(stored) else Renames(requested, stored)

    def at(self, instant: str) -> SchemaHistory:
        """Return the history for those who read and write the version of an instant."""
        version = self._version_at(instant)
        return self if version is None else replace(self, requested=version)

    @property
    def text(self) -> str:
        """The requested version as JSON."""
        return self.texts[self.requested]

    def _version_at(self, instant: str) -> int | None:
        return max((number for number in self.versions if number <= int(instant)), default=None)
