r"""Copy-on-write merge of changes into a large base file, which copies what they leave as it is.

    keys, ordering values ── row group by row group ──> rows that are updated or deleted
                                                         (none, and no record is new: no file)
    row group ── nothing changes ──────────────> copied
              ├─ rows are updated ─────────────> columns with other values are encoded, the others copied
              ├─ rows are deleted ─────────────> encoded
              └─ at the end, and not large ────> encoded together with the new records
    new records ───────────────────────────────> a row group

Updated records stay where they are, so that files keep the order of their rows. A row group at the end takes
new records if it is not much larger than they are: so there are few small row groups, and a row is encoded
a few times on its way into a large one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BATCH_ROWS
from drawstring.filegroups.write.base_writer import BaseFileWriter
from drawstring.filegroups.write.field_merge_handle import Numbers
from drawstring.filegroups.write.merge_handle import Applied, MergeHandle
from drawstring.filegroups.write.meta_columns import MetaColumnWriter
from drawstring.filegroups.write.patched_groups import GroupChanges, PatchedGroups, one_batch
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.base_files import is_parquet
from drawstring.formats.base_footer import BaseFooter
from drawstring.formats.bloom.key_summary import KeySummary, extended_footer
from drawstring.formats.parquet.column_chunks import ChunkSource
from drawstring.formats.parquet.patched import PatchedFile, PatchedSink, patch_source, patched_file
from drawstring.formats.parquet.write import entries_of
from drawstring.merge.versions import ordering_columns
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice, TaskContext
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import Storage

_NONE: Final[Numbers] = np.zeros(0, dtype=np.int64)


def patch_source_of(settings: FileSettings, storage: Storage, target: FileSlice) -> ChunkSource | None:
    """Return a slice's base file as the source of its successor; None if that has to be written anew.

    Args:
        settings: settings of the write.
        storage: storage of the table.
        target: the slice.

    Raises:
        CorruptTableError: the base file is missing or damaged.
    """
    config, base = settings.config, target.base
    if base is None or base.source is not None or not is_parquet(base.status.path):
        return None
    if config.renames(base.instant) is not None:
        return None
    if config.has_sorted_files or config.cdc_enabled or not config.populate_meta_fields:
        return None
    return patch_source(storage, base.status.path, settings.full_schema, settings.compression)


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge.

    Attributes:
        settings: settings of the write.
        storage: storage of the table.
        target: the slice to rewrite.
        source: its base file.
        footer: footer of the base file.
        handle: the changes.
        meta_columns: writes the meta columns.
    """

    settings: FileSettings
    storage: Storage
    target: FileSlice
    source: ChunkSource
    footer: BaseFooter
    handle: MergeHandle
    meta_columns: MetaColumnWriter

    def write(self, context: TaskContext) -> WriteStat | None:
        """Write the successor; None, and no file, if no change takes effect.

        Args:
            context: the task attempt.

        Raises:
            CorruptTableError: the base file is missing or damaged.
        """
        handle = self.handle
        with patched_file(self.storage, self.source, self.footer.metadata) as file:
            changes = self._changes(file)
            if not (handle.has_changed or handle.has_new):
                return None
            target = self.target
            writer = SuccessorWriter(self.settings, self.storage, target, context.write_token, self.source)
            try:
                new = self._write(file, changes, writer)
            except BaseException:
                writer.abort()
                raise
        return writer.close(
            inserts=new,
            updates=handle.updates,
            deletes=handle.deletes,
            deleted_keys=handle.deleted_keys,
        )

    def _write(self, file: PatchedFile, changes: list[GroupChanges], writer: SuccessorWriter) -> int:
        """Write the row groups, and return the number of new records."""
        sink = writer.patched
        new = self._new_records(writer.name)
        groups = PatchedGroups(self.settings, file, sink, self.handle, self.meta_columns, writer.name)
        groups.write(changes, new)
        keys = pa.array([], pa.string()) if new is None else new.column(RECORD_KEY)
        gone = sum(len(each.deleted) for each in changes)
        writer.count(self.footer.metadata.num_rows - gone + len(keys), keys)
        sink.add_entries(self._entries(file, keys))
        return len(keys)

    def _new_records(self, name: str) -> pa.RecordBatch | None:
        for records, is_known in self.handle.surviving_records():
            if not is_known:
                return self.meta_columns.apply(one_batch(records), name)
        return None

    def _entries(self, file: PatchedFile, new: pa.Array) -> dict[str, str]:
        entries = entries_of(self.settings.avro_schema)
        if not self.settings.bloom:
            return entries
        stored = self.footer.metadata.metadata or {}
        texts = {key.decode(errors="replace"): text.decode(errors="replace") for key, text in stored.items()}
        extended = extended_footer(texts, self.footer.metadata.num_rows, new, self.settings.bloom)
        if extended is not None:
            return entries | extended
        summary = KeySummary(rate=self.settings.bloom)
        for group in range(len(file.group_rows)):
            for chunk in file.columns(group, [RECORD_KEY]).column(0).chunks:
                summary.add(chunk)
        summary.add(new)
        return entries | summary.footer()

    def _changes(self, file: PatchedFile) -> list[GroupChanges]:
        """Return the changes to each row group."""
        config = self.settings.config
        names = [RECORD_KEY, *ordering_columns(config, self.settings.schema)]
        keys = self.handle.keys.cast(pa.binary())
        applied = [
            self._applied(file, group, names) if _may_have(file, group, keys) else Applied(*[_NONE] * 3)
            for group in range(len(file.group_rows))
        ]
        is_written = ~self.handle.lost
        changes = []
        for each in applied:
            changes.append(_changes_of(each, is_written))
            is_written[each.positions] = False
        return changes

    def _applied(self, file: PatchedFile, group: int, names: Sequence[str]) -> Applied:
        parts: list[Applied] = []
        done = 0
        for batch in file.columns(group, names).to_batches(max_chunksize=BATCH_ROWS):
            each = self.handle.applied(_decoded(batch))
            parts.append(Applied(each.rows + done, each.positions, each.deleted + done))
            done += batch.num_rows
        rows, positions, deleted = (
            np.concatenate([_NONE, *column])
            for column in zip(*((each.rows, each.positions, each.deleted) for each in parts), strict=True)
        )
        return Applied(rows, positions, deleted)


class SuccessorWriter(BaseFileWriter):
    """Writes a base file of which the row groups are given to `patched`.

    Args:
        settings: settings of the write.
        storage: storage of the table.
        target: the slice that it supersedes.
        write_token: write token of the task attempt.
        source: the base file of the slice.
        notes_keys: whether `count` gets the keys of all new records.
    """

    def __init__(
        self,
        settings: FileSettings,
        storage: Storage,
        target: FileSlice,
        write_token: str,
        source: ChunkSource,
        *,
        notes_keys: bool = True,
    ) -> None:
        self._source = source
        super().__init__(settings, storage, target.partition, target.file_id, write_token, target)
        self._new_keys = [] if notes_keys else None

    def _opened(self, settings: FileSettings, storage: Storage, former: BaseFooter | None) -> PatchedSink:
        self.patched = PatchedSink(
            storage,
            self.path,
            self._source,
            settings.full_schema,
            settings.compression,
            settings.summarized,
        )
        return self.patched

    def count(self, rows: int, new: pa.Array) -> None:
        """Count the rows of the file.

        Args:
            rows: their number.
            new: the keys of new records among them.
        """
        self.rows = rows
        self._note(new)


def _changes_of(applied: Applied, is_written: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> GroupChanges:
    """Return the changes to a row group.

    Of rows with the same key, which a table may have, the first one is replaced and the others are deleted.

    Args:
        applied: what the changes did to its rows.
        is_written: which records have yet to be written.
    """
    _, first = np.unique(applied.positions, return_index=True)
    is_first = np.zeros(len(applied.positions), dtype=bool)
    is_first[first] = True
    records = np.where(is_first & is_written[applied.positions], applied.positions, -1)
    rows = np.concatenate([applied.rows, applied.deleted])
    records = np.concatenate([records, np.full(len(applied.deleted), -1)])
    rows, places = np.unique(rows, return_index=True)
    return GroupChanges(rows, records[places])


def _may_have(file: PatchedFile, group: int, keys: pa.Array) -> bool:
    """Return whether a row group may have any of the keys (binary), by its footer."""
    bounds = file.bounds(group, RECORD_KEY)
    if bounds is None or not all(isinstance(bound, bytes) for bound in bounds):
        return True
    least, greatest = (pa.scalar(bound, pa.binary()) for bound in bounds)
    inside = pc.and_(pc.greater_equal(keys, least), pc.less_equal(keys, greatest))
    return bool(pc.any(inside).as_py())


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        each.dictionary_decode() if pa.types.is_dictionary(each.type) else each for each in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
