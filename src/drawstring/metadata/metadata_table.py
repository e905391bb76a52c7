"""The metadata table of a table: its own timeline, file groups, and the instants that count in it.

A write adds to the metadata table first and then completes its instant in the table. In between, and after a
crash there, the metadata table knows files of a write that is not committed. So of its delta commits those do
not count whose instant is pending in the table:

    metadata table    deltacommit 10     deltacommit 20     deltacommit 30
    table             commit 10          inflight 20        (archived, or a service of the metadata table)
    counts            yes                no                 yes
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from drawstring.base.cached import cached_property
from drawstring.base.clock import Clock
from drawstring.base.errors import (
    REPAIR,
    CorruptTableError,
    DrawstringError,
    InvalidError,
    MetadataTableError,
)
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.filegroups.view.file_groups import FileGroupView, table_view
from drawstring.filegroups.view.listing import FixedListing
from drawstring.metadata.partitions import BUILDING_KEY, FILES, METADATA_FOLDER
from drawstring.model.files import FileSlice
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, State, is_build
from drawstring.storage.protocol import Storage
from drawstring.storage.subfolder import Subfolder
from drawstring.timeline.properties_store import PROPERTIES_PATH, load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_READ_MAX: Final = 8
"""Number of delta commits without a log file of `files` up to which their metadata is read."""

_TO_REPAIR: Final = "To repair the table, "


@dataclass(frozen=True)
class MetadataTable:
    """A metadata table as one load sees it.

    Attributes:
        storage: its files.
        config: its settings.
        own_timeline: its timeline as stored.
        timeline: its timeline, where delta commits that do not count are pending.
        store: the files of its timeline.
        view: its file groups.
        ready: the partitions that are complete.
        building: the partitions that are being built.
    """

    storage: Storage
    config: TableConfig
    own_timeline: Timeline
    timeline: Timeline
    store: TimelineStore
    view: FileGroupView
    ready: tuple[str, ...]
    building: tuple[str, ...]

    def with_building(self) -> MetadataTable:
        """Return the table with its partitions that are being built, for those who write to them."""
        return replace(self, ready=tuple(sorted({*self.ready, *self.building})))

    @cached_property
    def _slices(self) -> dict[str, list[FileSlice]]:
        return {}

    @cached_property
    def instants(self) -> InstantRange:
        """The instants whose log blocks count."""
        return InstantRange.of(self.timeline)

    def slices(self, partition: str) -> list[FileSlice]:
        """Return the latest slice of each file group of a partition, by file id.

        Raises:
            CorruptTableError: a file of the partition is missing.
            InvalidError: the metadata table does not have the partition.
        """
        self.check_has(partition)
        if partition not in self._slices:
            with about_metadata(self.storage):
                named = self._named_slices() if partition == FILES and self._is_named_by_writes else None
                self._slices[partition] = named or self.view.slices(partition)
        return self._slices[partition]

    @property
    def _is_named_by_writes(self) -> bool:
        return not self.config.rules.names_logs_by_slice

    def _named_slices(self) -> list[FileSlice] | None:
        """Return the slices of `files` if the names of its files show that none is missing, else None.

        Nearly every delta commit writes a log file of its time. So the metadata of the newest delta commits,
        by which a missing file is found, need not be read, except of the few without one, such as those of
        cleans that deleted nothing: for a query these are most of the requests.
        """
        listing = FixedListing(self.view.listing.files(FILES))
        slices = table_view(self.storage, self.config, self.timeline, self.store, listing).slices(FILES)
        compacted = max((each.requested for each in self.timeline.completed_of(Action.COMMIT)), default="")
        found = {log.instant for each in slices for log in each.logs}
        others = [
            each
            for each in self.timeline.completed_of(Action.DELTA_COMMIT)
            if (each.completed or "") > compacted
            and each.requested not in found
            and not is_build(each.requested)
        ]
        if len(others) > _READ_MAX or not self._is_based(slices, compacted):
            return None
        return None if any(map(self._lists_files, others)) else slices

    def _lists_files(self, written: Instant) -> bool:
        """Return whether a delta commit has a log file of the list of files."""
        return any(stat.partition == FILES for stat in self.store.commit_metadata(written).stats)

    def _is_based(self, slices: list[FileSlice], compacted: str) -> bool:
        """Return whether the list has the base file that it was given last; a new table's begins without."""
        bases = [each.base.instant for each in slices if each.base]
        if bases or compacted:
            return not compacted or compacted in bases
        return bool(slices) and not self.store.commit_metadata(self.own_timeline.writes()[0]).stats

    def check_has(self, partition: str) -> None:
        """Check that a partition of the metadata table is complete.

        Raises:
            InvalidError: it is not.
        """
        if partition in self.ready:
            return
        if partition in self.building:
            message = (
                f"The partition {partition!r} of the metadata table is still being built. Wait for that."
            )
        else:
            message = (
                f"The metadata table has no partition {partition!r}. Use one of {', '.join(self.ready)}."
            )
        raise InvalidError(message, table=self.storage.spec.uri)


def open_metadata_table(
    storage: Storage, config: TableConfig, timeline: Timeline, clock: Clock
) -> MetadataTable:
    """Open the metadata table of a table.

    Args:
        storage: the table's files.
        config: the table's settings.
        timeline: the table's timeline; what is pending in it does not count in the metadata table.
        clock: for the timeline of the metadata table.

    Raises:
        InvalidError: the table has no metadata table.
        MetadataTableError: its properties or its timeline are missing or damaged.
    """
    building = building_of(config)
    if not (config.metadata_partitions or building):
        raise InvalidError(
            "The table has no metadata table. The next write builds one, unless hoodie.metadata.enable is"
            " false.",
            table=storage.spec.uri,
        )
    own_storage = Subfolder(storage, METADATA_FOLDER)
    with about_metadata(own_storage):
        own_config = load_config(own_storage)
        store = TimelineStore(own_storage, own_config, clock)
        own_timeline = store.load()
    if not own_timeline.writes():
        raise damaged(own_storage, "its timeline has no completed write")
    counted = _counted(own_timeline, timeline)
    view = table_view(own_storage, own_config, counted, store)
    ready = tuple(sorted(config.metadata_partitions))
    return MetadataTable(own_storage, own_config, own_timeline, counted, store, view, ready, building)


def building_of(config: TableConfig) -> tuple[str, ...]:
    """Return the partitions of the metadata table that are registered as being built."""
    return tuple(filter(None, config.properties.get(BUILDING_KEY, "").split(",")))


@contextmanager
def about_metadata(storage: Storage) -> Iterator[None]:
    """Say of errors in files of the metadata table that they are there, and what to do.

    Args:
        storage: files of the metadata table.
    """
    try:
        yield
    except MetadataTableError:
        raise
    except (CorruptTableError, InvalidError) as error:
        reason = error.message.partition(REPAIR)[0].removesuffix(_TO_REPAIR).rstrip(" .:")
        if isinstance(error, InvalidError) and not storage.exists(PROPERTIES_PATH):
            reason = f"{PROPERTIES_PATH} is missing there"
        raise damaged(storage, reason).at(instant=error.instant, path=error.path) from error
    except FileNotFoundError as error:
        reason = f"a file is missing there or a folder belongs in its place: {error.filename}"
        raise damaged(storage, reason) from error
    except UnicodeEncodeError:  # of a text that a caller gave
        raise
    except (ValueError, LookupError, pa.ArrowException) as error:
        raise damaged(storage, str(error)) from error


def damaged(storage: Storage, reason: str) -> DrawstringError:
    """Return the error for a damaged metadata table.

    Args:
        storage: files of the metadata table.
        reason: what is wrong, without a full stop.
    """
    message = (
        f"The metadata table is damaged ({reason}). Run `drawstring repair`, which builds it again or"
        " switches it off."
    )
    return MetadataTableError(message, table=storage.spec.uri)


def lacking(storage: Storage, missing: Instant) -> DrawstringError:
    """Return the error for a metadata table without a completed write or clean of the table.

    Args:
        storage: files of the metadata table.
        missing: the instant.
    """
    error = damaged(storage, f"it lacks the {missing.action} {missing.requested}")
    return error.at(instant=missing.requested)


def _counted(own: Timeline, timeline: Timeline) -> Timeline:
    """Return the timeline of the metadata table without completions that are pending in the table.

    A savepoint has the requested time of the completed write that it keeps.
    """
    pending = {each.requested for each in timeline.pending() if each.action is not Action.SAVEPOINT}
    if not any(own.write_at(requested) for requested in pending):
        return own
    return own.with_instants(
        tuple(
            _reopened(instant) if instant.is_write and instant.requested in pending else instant
            for instant in own.instants
        )
    )


def _reopened(instant: Instant) -> Instant:
    return replace(instant, state=State.INFLIGHT, completed=None)


def missing_instants(own: Timeline, timeline: Timeline) -> Iterator[Instant]:
    """Yield the completed writes and cleans of a table that its metadata table lacks.

    Args:
        own: the timeline of the metadata table, with a completed write.
        timeline: the timeline of the table.
    """
    first = own.writes()[0]
    for instant in timeline.completed_of(*WRITE_ACTIONS, Action.CLEAN):
        is_known = own.has_completed(instant.requested) or instant.requested < first.requested
        if not is_known and not _before(instant, first):
            yield instant


def _before(instant: Instant, first: Instant) -> bool:
    """Return whether an instant completed before the first of the metadata table, which listed all files."""
    if instant.completed is None or first.completed is None:
        return False
    return instant.completed <= first.completed
