"""The table as a write that has not committed yet would leave it.

The files of the write are on the storage, and its instant is inflight. Readers see a table through a timeline
and a listing; here both are given the instant as completed with the files of its metadata, in memory only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.filegroups.read.tasks import InstantRange, ReadTask
from drawstring.filegroups.view.file_columns import FileColumns
from drawstring.filegroups.view.file_groups import listing_of, table_view
from drawstring.filegroups.view.listing import Listing
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.arrow_dataset import ScannedDataset
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import FileStatus
from drawstring.model.instant import Instant, State
from drawstring.query.facts import TableFacts
from drawstring.query.scan import Scan
from drawstring.query.snapshot import query_of, snapshot_tasks
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.meta import without_meta
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.table_schema import table_schema_json
from drawstring.timeline.timeline import Timeline
from drawstring.txn.transaction import LockedTable, Transaction


@dataclass(frozen=True, slots=True)
class StagedTable:
    """The partitions that a write changes, before its commit or after it.

    Attributes:
        facts: the table in that state; its view has these partitions only.
    """

    facts: TableFacts

    @property
    def schema(self) -> pa.Schema:
        """The columns, meta columns included."""
        return self.scan().schema

    def scan(self, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> Scan:
        """Return some of its columns and rows."""
        facts = self.facts
        query = query_of(facts, columns, where, InstantRange.of(facts.timeline))
        return Scan(query.output, lambda: snapshot_tasks(query), table=facts.storage.spec.uri)

    def tasks(self) -> Sequence[ReadTask]:
        """Return the tasks that read its file slices."""
        return list(snapshot_tasks(query_of(self.facts, None, None, InstantRange.of(self.facts.timeline))))

    def dataset(self) -> ScannedDataset:
        """Return it as a dataset of Arrow."""
        return ScannedDataset(self.schema, lambda columns, where: self.scan(columns, where).to_reader())


def staged_tables(
    transaction: Transaction, timeline: Timeline, metadata: CommitMetadata
) -> tuple[StagedTable, StagedTable]:
    """Return the changed partitions before and after a commit, both with the columns after it.

    Args:
        transaction: the write; its files are on the storage.
        timeline: as it is now.
        metadata: what it is about to commit.
    """
    locked, instant = transaction.locked, transaction.instant
    context, config = locked.context, locked.config
    listing = context.listing(config, timeline) or listing_of(context.storage)
    partitions = sorted({path for path, _ in metadata.touched})
    written = [FileStatus(stat.path, stat.size_bytes) for stat in metadata.stats]
    marked = frozenset(Markers(context.storage, instant.requested).files())
    files_before = _Staged(listing, partitions, marked, ())
    files_after = _Staged(listing, partitions, marked, written)
    completed = Instant(
        instant.requested,
        instant.action.completed_action,
        State.COMPLETED,
        locked.store.new_time(timeline) if config.layout.has_completion_times else None,
    )
    store = _WithPending(locked, completed, metadata)
    schema_json = metadata.schema_json or table_schema_json(context.storage, store, timeline, config)
    schema = without_meta(avro_to_arrow(schema_json)) if schema_json else pa.schema([])

    def state(now: Timeline, files: Listing) -> StagedTable:
        view = table_view(context.storage, config, now, store, files)
        return StagedTable(TableFacts(context.storage, config, now, store, view, schema, skips_data=False))

    return state(timeline, files_before), state(timeline.with_completed(completed), files_after)


class _WithPending(TimelineStore):
    """A timeline store that knows the metadata of one more instant."""

    def __init__(self, locked: LockedTable, instant: Instant, metadata: CommitMetadata) -> None:
        super().__init__(locked.context.storage, locked.config, locked.context.clock)
        self.recall(locked.store)
        self._commits[instant] = metadata


@dataclass(frozen=True, slots=True)
class _Staged:
    """The files of some partitions: those that are listed, and those of a write in place of what it marked.

    Attributes:
        listing: lists what was committed, and maybe files of the write.
        paths: the partitions.
        marked: paths of all files that tasks of the write began, among them those of failed attempts.
        written: the files that it commits.
    """

    listing: Listing
    paths: Sequence[str]
    marked: frozenset[str]
    written: Sequence[FileStatus]

    @property
    def is_complete(self) -> bool:
        """Return False: other partitions are left out."""
        return False

    def partitions(self) -> list[str]:
        return list(self.paths)

    def files(self, partition: str) -> list[FileStatus]:
        return [*self._listed(partition), *(each for each in self.written if each.folder == partition)]

    def columns(self, partitions: Sequence[str]) -> FileColumns | None:
        return None

    def _listed(self, partition: str) -> Iterator[FileStatus]:
        own = {each.path for each in self.written}
        return (
            each
            for each in self.listing.files(partition)
            if each.path not in self.marked and each.path not in own
        )
