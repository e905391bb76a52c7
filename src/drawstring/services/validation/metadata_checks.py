"""Checks of the metadata table against what is stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import REPAIR, CorruptTableError, DrawstringError, UnsupportedError
from drawstring.config.table_config import TableConfig
from drawstring.metadata.definitions import definitions, reason_not_used
from drawstring.metadata.file_listing import NamedFiles, named_files
from drawstring.metadata.reader import merged_parts
from drawstring.metadata.record_index_lookup import open_record_index
from drawstring.metadata.table import FILES, about_metadata, kind_of, open_metadata_table
from drawstring.model.files import FileSlice, FileStatus
from drawstring.model.instant import Action
from drawstring.model.result import Finding, Remedy, Severity
from drawstring.services.validation.inventory import Inventory
from drawstring.storage.protocol import Storage
from drawstring.timeline.timeline import Timeline
from drawstring.txn.rollback.file_owners import instants_in

_NO_FAULT: Final = frozenset({"missing", "size", "orphan"})
"""Checks of files in which the metadata table rightly differs from the storage."""

_REPAIR: Final = "Run `drawstring services repair`, which builds the metadata table again or switches it off."


def metadata_findings(
    inventory: Inventory, clock: Clock, found: Collection[Finding], *, indexes: bool = True
) -> list[Finding]:
    """Check that the metadata table names the files that are stored, with their sizes, and can be read.

    Args:
        inventory: the table as it is on storage.
        clock: for the timeline of the metadata table.
        found: what other checks found. A file of a commit that is missing or has another size is no fault
            of the metadata table: built again, it would hide that rows are lost. One that no commit names
            is not in it either.
        indexes: whether to read all records of its indexes, too.
    """
    if FILES not in inventory.config.metadata_partitions:
        return []
    try:
        named = named_files(inventory.storage, inventory.config, inventory.timeline, clock)
        known = {each.path for each in found if each.check in _NO_FAULT}
        own = (*_unnamed(inventory, named), *_gone(inventory, named))
        if indexes:
            read_indexes(inventory.storage, inventory.config, inventory.timeline, clock)
        return [each for each in own if each.path not in known]
    except DrawstringError as error:
        return [_finding(_with_remedy(error), error.path, error.instant)]


def _with_remedy(error: DrawstringError) -> str:
    """Return what is wrong with the metadata table and what helps: it is built again, from no backup."""
    if isinstance(error, UnsupportedError):
        return f"{error.message} If no newer release wrote it, the metadata table is damaged. {_REPAIR}"
    if isinstance(error, CorruptTableError) and REPAIR in error.message:
        what = error.message.partition(REPAIR)[0].removesuffix("To repair the table, ").rstrip(" .:")
        return f"The metadata table is damaged ({what}). {_REPAIR}"
    return error.message


def read_indexes(storage: Storage, config: TableConfig, timeline: Timeline, clock: Clock) -> None:
    """Read all records of the indexes, some at a time.

    Args:
        storage: the table's files.
        config: the table's settings.
        timeline: the table's timeline.
        clock: for the timeline of the metadata table.

    Raises:
        CorruptTableError: a file of an index is missing or damaged.
    """
    table = open_metadata_table(storage, config, timeline, clock)
    with about_metadata(table.storage):
        definitions(storage)
    for partition in sorted(table.ready):
        for each in () if partition == FILES else table.slices(partition):
            with about_metadata(table.storage):
                for _ in merged_parts(table, each, kind_of(partition)):
                    pass


@dataclass(frozen=True, slots=True)
class OnePlaceEach:
    """A record index, which has one place of each key.

    Attributes:
        is_global: whether each key has one in the table, not one in each partition.
        unused: why queries do without it, and what to do; None if they take places from it.
    """

    is_global: bool
    unused: str | None


def indexed_places(inventory: Inventory, clock: Clock) -> OnePlaceEach | None:
    """Return what the record index of a table has; None if there is none, it is empty or damaged.

    Args:
        inventory: the table as it is on storage.
        clock: for the timeline of the metadata table.
    """
    try:
        index = open_record_index(inventory.storage, inventory.config, inventory.timeline, clock)
        unused = reason_not_used(definitions(inventory.storage))
    except DrawstringError:  # `metadata_findings` tells
        return None
    return OnePlaceEach(not index.is_partitioned, unused) if index is not None and index.groups else None


def _unnamed(inventory: Inventory, named: NamedFiles) -> Iterator[Finding]:
    """Find files of completed writes that the metadata table does not name, or with another size."""
    view = inventory.view()
    for partition in view.partitions():
        sizes = {status.path: status.size_bytes for status in named.files(partition)}
        for status in _files_of(each for group in view.stored_groups(partition) for each in group.slices):
            size = sizes.get(status.path)
            if size is None:
                if _is_uncommitted(inventory, status):
                    continue
                text = f"The metadata table lacks this file: engines that read it miss rows. {_REPAIR}"
                yield _finding(text, status.path)
            elif size != status.size_bytes:
                text = f"This file has {status.size_bytes} bytes, in the metadata table {size}. {_REPAIR}"
                yield _finding(text, status.path)


def _is_uncommitted(inventory: Inventory, status: FileStatus) -> bool:
    """Return whether a log file of version 6, which has the name of its slice, is of pending writes alone."""
    if not inventory.config.rules.names_logs_by_slice:
        return False
    instants = instants_in(inventory.storage, status.path)
    return instants is not None and not any(map(inventory.timeline.has_completed, instants))


def _files_of(slices: Iterator[FileSlice]) -> Iterator[FileStatus]:
    for each in slices:
        if each.base is not None:
            yield each.base.status
        yield from (log.status for log in each.logs)


def _gone(inventory: Inventory, named: NamedFiles) -> Iterator[Finding]:
    """Find files that the metadata table names but do not exist; a pending clean may have deleted them."""
    if inventory.timeline.pending_of(Action.CLEAN):
        return
    for partition in named.partitions():
        stored = {status.path for status in inventory.files.get(partition, ())}
        for status in named.files(partition):
            if status.path not in stored:
                text = f"The metadata table has this file, which does not exist. {_REPAIR}"
                yield _finding(text, status.path)


def _finding(text: str, path: str | None, instant: str | None = None) -> Finding:
    return Finding(Severity.ERROR, "metadata", text, path, instant, Remedy.METADATA)
