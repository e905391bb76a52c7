"""Tables whose log files carry an index, and what a look at them finds and opens."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import DrawstringError
from drawstring.engine.grouping import KeySet
from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.filegroups.read_task import InstantRange
from drawstring.formats.log_index import LogIndex, read_log_index
from drawstring.formats.metadata.commit import encode_compaction_plan
from drawstring.index.bloom_pruning import BloomPruning, MayHold, SortedKeys
from drawstring.index.protocol import IS_DELETED, LOCATION_SCHEMA
from drawstring.index.tag_context import TagContext
from drawstring.model.files import FileSlice
from drawstring.model.instant import Action
from drawstring.schema.fields import RECORD_KEY
from drawstring.services.compaction import plan_compaction
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.store import TimelineStore
from drawstring.txn.table_context import TableContext
from tests.support.faulty_storage import FaultyStorage
from tests.support.storages import by_clock
from tests.support.tables import WITHOUT_COMPACTION, create

SCHEMA: Final = pa.schema(
    [pa.field("id", pa.string(), nullable=False), ("city", pa.string()), ("ts", pa.int64())]
)
NEVER: Final = 1 << 30
LEASE_SECONDS: Final = 600
"""Longer than a dead writer's lock holds others up."""
OFF: Final = {"hoodie.index.log.enable": "false"}
AVRO: Final = {"hoodie.logfile.data.block.format": "avro"}


class Watched(FaultyStorage):
    """Keeps the names of the files that were opened."""

    def __init__(self, inner: Storage, fail_after: int = NEVER) -> None:
        super().__init__(inner, fail_after)
        self.opened: list[str] = []

    def open(self, path: str) -> pa.NativeFile:
        """Open a file and remember it."""
        self.opened.append(path.rpartition("/")[2])
        return super().open(path)


class LogTable:
    """A table in memory, MERGE_ON_READ and with an index in its log files.

    Args:
        version: table version.
        clique_files: log files in a clique.
    """

    def __init__(self, version: int, clique_files: int = 3) -> None:
        table = create(
            SCHEMA,
            table_type="MERGE_ON_READ",
            version=version,
            properties={
                "hoodie.index.log.enable": "true",
                "hoodie.index.log.clique.files": str(clique_files),
            },
        )
        self.storage = context_of(table).storage
        self.clock = SteppingClock(1_900_000_000_000)
        by_clock(self.storage, self.clock)

    def open(self, storage: Storage | None = None) -> Table:
        return Table(TableContext(storage or self.storage, clock=self.clock))

    def write(self, verb: str, keys: Iterable[str], ts: int = 1, city: str = "rome", **options: str) -> None:
        rows = [{"id": key, "city": city, "ts": ts} for key in keys]
        getattr(self.open(), verb)(
            pa.Table.from_pylist(rows, SCHEMA), options={**WITHOUT_COMPACTION, **options}
        )

    def fail(self, keys: Iterable[str], ts: int, changes: int) -> None:
        """Let a writer die after some changes to the storage; the next write takes back what it left."""
        rows = pa.Table.from_pylist([{"id": key, "city": "rome", "ts": ts} for key in keys], SCHEMA)
        with suppress(DrawstringError):
            self.open(FaultyStorage(self.storage, changes)).upsert(rows, options=WITHOUT_COMPACTION)
        self.clock.sleep(LEASE_SECONDS)

    def schedule(self) -> None:
        """Put a compaction on the timeline and leave it there."""
        table = self.open()
        store = TimelineStore(self.storage, table.config, self.clock)
        plan = plan_compaction(table.inspect.files())
        if plan.operations:
            time = store.new_time(store.load())
            store.request(Action.COMPACTION, time, encode_compaction_plan(plan))

    def look(self, storage: Storage | None = None) -> TagContext:
        table = self.open()
        timeline, config = table.timeline, table.config
        spec = (storage or self.storage).spec
        settings = FileSettings(spec, config, "0", SCHEMA, "", "zstd", True, 1, "parquet")
        return TagContext(SliceLookup(spec, config, timeline), settings, InstantRange.of(timeline))

    def slices(self) -> list[FileSlice]:
        """Return the slices as a write finds them."""
        look = self.look()
        return [each for path in look.partitions() for each in look.slices(path)]

    def indexes(self) -> list[LogIndex | None]:
        """Return what the log files of the only slice tell, in merge order."""
        (file_slice,) = self.slices()
        return self.indexes_of(file_slice)

    def indexes_of(self, file_slice: FileSlice) -> list[LogIndex | None]:
        """Return what the log files of a slice tell, in merge order."""
        return [read_log_index(self.storage, log.status.path) for log in file_slice.logs]


Found = set[tuple[str, str, bool]]
"""Key, file id, whether it is deleted there."""


def found_by_reading(context: TagContext, file_slice: FileSlice, wanted: Collection[str]) -> Found:
    """Return where keys are, by reading all keys of a slice."""
    reader = context.key_reader(LOCATION_SCHEMA)
    return {
        (row[RECORD_KEY], file_slice.file_id, row[IS_DELETED])
        for batch in reader(file_slice)
        for row in batch.to_pylist()
        if row[RECORD_KEY] in wanted
    }


def narrowed(context: TagContext, file_slice: FileSlice, wanted: Sequence[str]) -> FileSlice | None:
    """Return what the index wants to read of a slice."""
    keys = {(file_slice.partition,): SortedKeys.of(KeySet(pa.array(wanted, pa.string()).unique()))}
    return MayHold(context.settings, context.instants, keys, BloomPruning(by_log_index=True))(file_slice)


__all__ = ["AVRO", "OFF", "Found", "LogTable", "Watched", "found_by_reading", "narrowed"]
