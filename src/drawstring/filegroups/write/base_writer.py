"""Writers of base files: of one file, and of a stream of rows into new file groups of limited size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, cast

import numpy as np
import pyarrow as pa

from drawstring.base.clock import Ids, Stopwatch
from drawstring.config.table.properties import decode_properties
from drawstring.filegroups.write.key_order import KeyOrder
from drawstring.filegroups.write.meta_columns import MetaColumnWriter, constant
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.base_footer import BaseFooter
from drawstring.formats.bloom.key_summary import KeySummary, fill_together
from drawstring.formats.file_sinks import FileForm, FileSink, open_sink
from drawstring.formats.parquet.patched import PatchedSink
from drawstring.model.commit import Held, WriteStat
from drawstring.model.files import (
    PARTITION_METADATA,
    BaseFile,
    FileSlice,
    TaskContext,
    join_path,
    random_file_id,
)
from drawstring.schema.meta import PARTITION_PATH, RECORD_KEY
from drawstring.storage.protocol import Storage

_NEW_FILE: Final = "CREATE"
"""Type of the marker of a base file that follows none."""

CHANGED_KEYS_MAX: Final = 1_024
"""New and deleted keys of a rewritten base file up to which they travel with its statistics."""


class BaseFileWriter:
    """Writes one base file: creates the marker first and returns the statistics last.

    Args:
        settings: settings of the write.
        storage: storage of the table.
        partition: partition path.
        file_id: the file group.
        write_token: write token of the task attempt.
        previous: the slice that the file supersedes; None for a new file group.
        former: footer of the previous base file if the new bloom filter extends the one in it; `write` then
            receives which rows have keys of that file.
    """

    def __init__(
        self,
        settings: FileSettings,
        storage: Storage,
        partition: str,
        file_id: str,
        write_token: str,
        previous: FileSlice | None = None,
        *,
        former: BaseFooter | None = None,
    ) -> None:
        self._watch = Stopwatch()
        self._previous = previous
        self._partition = partition
        self._file_id = file_id
        self.name = base_name(settings, file_id, write_token)
        self.path = join_path(partition, self.name)
        self.rows = 0
        is_new = previous is None or previous.base is None
        self._order = KeyOrder(self.path, once=is_new) if settings.config.has_sorted_files else None
        # All keys of a new file are new: they are read from it.
        notes = former is not None and settings.config.populate_meta_fields
        self._new_keys: list[pa.Array] | None = [] if notes else None
        ensure_partition(storage, partition, settings.instant)
        self._markers = settings.markers(storage)
        self._io_type = _io_type(previous)
        self._markers.create(self.path, self._io_type)
        self._sink = self._opened(settings, storage, former)

    def _opened(
        self, settings: FileSettings, storage: Storage, former: BaseFooter | None
    ) -> FileSink | PatchedSink:
        """Create the file."""
        rate = settings.key_filter
        inherited = former.reusable_filter(rate) if former is not None and rate else None
        form = FileForm(
            settings.full_schema,
            settings.avro_schema,
            settings.compression,
            inherited or rate,
            settings.row_groups,
        )
        sink = open_sink(storage, self.path, form)
        sink.share(settings.encodings)
        sink.summarize(settings.summarized)
        return sink

    @property
    def bytes_written(self) -> int:
        """Approximate number of bytes written so far."""
        return cast("FileSink", self._sink).bytes_written

    def write(self, batch: pa.RecordBatch, *, is_known: bool = False) -> None:
        """Append rows that have their meta columns.

        Args:
            batch: the rows.
            is_known: whether the previous base file has all their keys.
        """
        if self._order is not None:
            self._order.check(batch)
        cast("FileSink", self._sink).write(batch, is_known=is_known)
        self.rows += batch.num_rows
        if not is_known and self._new_keys is not None:
            self._note(batch.column(RECORD_KEY).cast(pa.string()))

    def flush(self) -> bool:
        """Store the rows so far, which take no memory then; return whether the file's format can."""
        return cast("FileSink", self._sink).flush()

    def _note(self, keys: pa.Array) -> None:
        """Note the keys of new records, if these are few."""
        if self._new_keys is not None:
            self._new_keys.append(keys)
            if sum(map(len, self._new_keys)) > CHANGED_KEYS_MAX:
                self._new_keys = None

    def close(
        self,
        *,
        inserts: int,
        updates: int = 0,
        deletes: int = 0,
        deleted_keys: Sequence[pa.Array] | None = None,
    ) -> WriteStat:
        """Finish the file and return its statistics.

        Args:
            inserts, updates, deletes: records of the previous base file and of this one, compared.
            deleted_keys: the record keys of the deleted records (string); None if they are not known.

        Raises:
            ConflictError: the write ended meanwhile; the file was deleted.
        """
        size_bytes = self._sink.close()
        self._markers.confirm(self.path, self._io_type)
        previous = self._previous
        return WriteStat(
            partition=self._partition,
            file_id=self._file_id,
            path=self.path,
            prev_commit=previous.base_instant if previous else "null",
            num_writes=self.rows,
            num_inserts=inserts,
            num_updates=updates,
            num_deletes=deletes,
            size_bytes=size_bytes,
            prev_base_file=previous.base.status.name if previous and previous.base else None,
            seconds=self._watch.seconds(),
            created=previous is None,
            held=self._held(deleted_keys if deletes else ()),
        )

    def _held(self, deleted_keys: Sequence[pa.Array] | None) -> Held | None:
        held = Held(self._sink.summaries(), self._changed_keys(deleted_keys))
        return None if held == Held() else held

    def _changed_keys(self, deleted_keys: Sequence[pa.Array] | None) -> pa.Table | None:
        if self._new_keys is None or deleted_keys is None:
            return None
        new, gone = (pa.chunked_array(list(each), pa.string()) for each in (self._new_keys, deleted_keys))
        if len(new) + len(gone) > CHANGED_KEYS_MAX:
            return None
        keys = pa.chunked_array([*new.chunks, *gone.chunks], pa.string())
        flags = np.arange(len(keys)) >= len(new)
        return pa.table({"key": keys, "is_removed": pa.array(flags)})

    def key_summary(self) -> KeySummary | None:
        """Return what the footer says of the keys; None if it says nothing."""
        return cast("FileSink", self._sink).keys

    def abort(self) -> None:
        """Close the file; the rollback deletes what was written."""
        self._sink.abort()


class NewGroups:
    """Streams rows into new file groups of one partition; starts another one at the size limit.

    Args:
        settings: settings of the write.
        storage: storage of the table.
        partition: partition path.
        context: the task attempt.
        meta_columns: writes the meta columns.
        ids: generates file ids.
    """

    def __init__(
        self,
        settings: FileSettings,
        storage: Storage,
        partition: str,
        context: TaskContext,
        meta_columns: MetaColumnWriter,
        ids: Ids,
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._partition = partition
        self._context = context
        self._meta_columns = meta_columns
        self._ids = ids
        self._first_id: str | None = None
        self._open: BaseFileWriter | None = None
        self._done: list[WriteStat] = []

    @property
    def is_begun(self) -> bool:
        """Whether a file is open."""
        return self._open is not None

    def announced(self, file_id: str | None = None) -> tuple[str, str]:
        """Return the path of the first file, and the type of its marker, before any rows are written.

        Args:
            file_id: the id that the first call of `write` gets.
        """
        self._first_id = file_id or random_file_id(self._ids.uuid())
        name = base_name(self._settings, self._first_id, self._context.write_token)
        return join_path(self._partition, name), _NEW_FILE

    def write(self, batch: pa.RecordBatch, file_id: str | None = None) -> None:
        """Append prepared rows; `file_id` is the id of a file group that the call starts."""
        writer = self._open
        if writer is None:
            writer = self._open = BaseFileWriter(
                self._settings,
                self._storage,
                self._partition,
                file_id or self._first_id or random_file_id(self._ids.uuid()),
                self._context.write_token,
            )
            self._first_id = None
        place = batch.schema.get_field_index(PARTITION_PATH)
        batch = batch.set_column(place, PARTITION_PATH, constant(self._partition, batch.num_rows))
        writer.write(self._meta_columns.apply(batch, writer.name))
        if file_id is None and writer.bytes_written >= self._settings.base_file_bytes_max:
            self._finish()

    def flush(self) -> None:
        """Store the rows so far as row groups of their own, or else as a whole file."""
        if self._open is not None and not self._open.flush():
            self._finish()

    def close(self) -> Iterator[WriteStat]:
        """Finish the last file and yield the statistics of all."""
        self._finish()
        yield from self._done

    def key_summary(self) -> KeySummary | None:
        """Return what the footer of the open file says of its keys; None without a file, or keys in it."""
        return self._open.key_summary() if self._open is not None else None

    def abort(self) -> None:
        """Close the open file without finishing it."""
        if self._open is not None:
            self._open.abort()

    def _finish(self) -> None:
        if self._open is not None:
            self._done.append(self._open.close(inserts=self._open.rows))
            self._open = None


def base_name(settings: FileSettings, file_id: str, write_token: str) -> str:
    """Return the name of the base file that a write makes of a file group."""
    return BaseFile.name_of(file_id, write_token, settings.instant, settings.config.base_extension)


def announced_successor(settings: FileSettings, target: FileSlice, write_token: str) -> tuple[str, str]:
    """Return the path of the base file that a write makes of a slice, and the type of its marker."""
    path = join_path(target.partition, base_name(settings, target.file_id, write_token))
    return path, _io_type(target)


def _io_type(previous: FileSlice | None) -> str:
    return "MERGE" if previous is not None and previous.base else _NEW_FILE


def close_together(files: Sequence[NewGroups]) -> list[WriteStat]:
    """Finish the last files of several partitions, and return the statistics of all their files."""
    fill_together(summary for each in files if (summary := each.key_summary()) is not None)
    return [stat for each in files for stat in each.close()]


def ensure_partition(storage: Storage, partition: str, instant: str) -> None:
    """Write the partition metadata file of a folder if it is missing (specification 1.3)."""
    storage.put_if_absent(join_path(partition, PARTITION_METADATA), _partition_metadata(partition, instant))


def renew_partition(storage: Storage, partition: str, instant: str) -> None:
    """Write the partition metadata file of a folder anew, with another creation time."""
    storage.put(join_path(partition, PARTITION_METADATA), _partition_metadata(partition, instant))


def partition_created(storage: Storage, partition: str) -> str:
    """Return the creation time of a partition; without partition metadata it counts as new."""
    try:
        data = storage.read(join_path(partition, PARTITION_METADATA))
    except FileNotFoundError:
        return "9"
    return decode_properties(data).get("commitTime", "9")


def _partition_metadata(partition: str, instant: str) -> bytes:
    depth = partition.count("/") + 1 if partition else 0
    return f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n".encode()
