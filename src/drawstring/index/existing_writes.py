"""Earlier writes of a table, from which an index detects whether they used the same index.

Apache Hudi does not store the number of buckets, often not even the index, so every writer needs them as
options. Wrong options would write a key to a second file group; the file groups of the last write reveal the
mistake.

drawstring stores the index and the buckets that the creator of a table chose in `hoodie.properties`, as the
default of later writes, and refuses a write with another number of buckets. Hudi accepts these properties and
does not read them. File names alone do not reveal a bucket index: a random UUID may begin with eight digits,
too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.table_config import TableConfig
from drawstring.formats.data_file import base_footer, has_footer
from drawstring.model.commit import WriteStat
from drawstring.model.files import has_bucket, is_base_path
from drawstring.storage.protocol import Storage
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

FOLDERS: Final = (".hoodie/.bucket_index/consistent_hashing_metadata", ".hoodie/.hashing_meta")
"""Where the rings of a consistent hashing index are: as Hudi writes them, and as RFC-42 proposed."""

METADATA_ROOT: Final = ".hoodie"
_WRITES_CHECKED = 10
_FILES_LOOKED_AT = 4
_KEYS = ("hoodie_min_record_key", "hoodie_max_record_key")


@dataclass(frozen=True, slots=True)
class ExistingWrites:
    """The earlier writes of a table.

    Attributes:
        storage: storage of the table.
        config: the table.
        store: reads its commits.
        timeline: timeline at the start of the write.
        names_index: whether the options or the table name the index.
    """

    storage: Storage
    config: TableConfig
    store: TimelineStore
    timeline: Timeline
    names_index: bool = True

    def refuse_rings(self) -> None:
        """Check that the table has no consistent hashing index.

        Raises:
            InvalidError: the table has one.
        """
        if has_rings(self.storage):
            raise InvalidError(
                "The table has a consistent hashing index. Set hoodie.index.type=BUCKET and"
                " hoodie.index.bucket.engine=CONSISTENT_HASHING."
            )

    def known_keys(self) -> Iterator[tuple[str, WriteStat]]:
        """Yield the smallest and the largest key of each base file of the newest write that wrote any."""
        for instant in self.timeline.writes()[: -_WRITES_CHECKED - 1 : -1]:
            stats = [each for each in self.store.commit_metadata(instant).stats if self._is_there(each)]
            for stat in stats[:_FILES_LOOKED_AT]:
                footer = base_footer(self.storage, stat.path).entries
                yield from ((footer[name], stat) for name in _KEYS if name in footer)
            if stats:
                return

    def _is_there(self, stat: WriteStat) -> bool:
        return has_footer(stat.path) and is_base_path(stat.path) and self.storage.exists(stat.path)


def has_rings(storage: Storage) -> bool:
    """Tell whether a table has a consistent hashing index; of most tables one request tells."""
    present = tuple(f"{folder}/" for folder in storage.list_folders(METADATA_ROOT))
    possible = [folder for folder in FOLDERS if f"{folder}/".startswith(present)]
    return any(storage.list_folders(folder) or storage.list_files(folder) for folder in possible)


def is_bucketed(store: TimelineStore, timeline: Timeline) -> bool:
    """Return whether all file ids of the newest write that wrote files are those of buckets."""
    for instant in timeline.writes()[: -_WRITES_CHECKED - 1 : -1]:
        if stats := store.commit_metadata(instant).stats:
            return all(has_bucket(stat.file_id) for stat in stats)
    return False


def refuse_undeclared_bucket_index(store: TimelineStore, timeline: Timeline, instead: str) -> None:
    """Check that the table has no undeclared bucket index.

    Args:
        store: the table's timeline.
        timeline: as it is.
        instead: sentence, without full stop, on what to do if the table has that index.

    Raises:
        InvalidError: it seems to have one.
    """
    if is_bucketed(store, timeline):
        raise InvalidError(
            f"The table seems to have a bucket index. {instead}. If it has none, set"
            " hoodie.index.type=SIMPLE."
        )
