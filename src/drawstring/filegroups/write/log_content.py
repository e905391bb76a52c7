"""What a write puts into the log files of a file group, whatever their format, and how it names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.filegroups.positions import POSITION, known_positions
from drawstring.filegroups.write.changes import ACTION, Changes, RowAction, inserts_among
from drawstring.filegroups.write.key_order import sorted_deletes
from drawstring.filegroups.write.meta_columns import MetaColumnWriter
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.log_inline import HeaderKey
from drawstring.formats.parquet.summaries import RowSummaries
from drawstring.merge.order import Array
from drawstring.merge.versions import flat
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice, LogFile, NativeLog, join_path
from drawstring.model.table_version import LogFormat
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class LogTarget:
    """Where log files are written.

    Attributes:
        settings: of the write.
        storage: of the table.
        file_slice: the slice that they belong to.
        write_token: of the task attempt.
        header: headers of all blocks, besides the instant and the schema.
        may_be_planned: whether a compaction may have included the file of a write that others rolled back.
    """

    settings: FileSettings
    storage: Storage
    file_slice: FileSlice
    write_token: str
    header: Mapping[HeaderKey, str] = field(default_factory=dict)
    may_be_planned: bool = False

    @property
    def begins_group(self) -> bool:
        """Whether the write begins the file group, so that every record is new as far as it knows."""
        group = self.file_slice
        return group.base is None and not group.logs and group.base_instant == self.settings.instant

    @property
    def block_header(self) -> dict[HeaderKey, str]:
        """The headers of a block of deletes."""
        return {
            HeaderKey.INSTANT_TIME: self.settings.instant,
            HeaderKey.SCHEMA: self.settings.avro_schema,
            **self.header,
        }

    def data_header(self, part: LogPart) -> dict[HeaderKey, str]:
        """Return the headers of a block of records."""
        header = self.block_header | {HeaderKey.SCHEMA: part.settings.log_avro_schema}
        return header | {HeaderKey.IS_PARTIAL: "true"} if part.settings.partial else header

    def position_header(self, encoded: str) -> dict[HeaderKey, str]:
        """Return the headers of a block whose records have positions, which are those of its base file."""
        base = self.file_slice.base
        assert base is not None, "positions were looked up in a base file"
        return {
            HeaderKey.RECORD_POSITIONS: encoded,
            HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: base.instant,
        }


@dataclass(frozen=True, slots=True)
class LogPart:
    """Records with the same columns.

    Attributes:
        settings: of the write; they tell which columns the records have.
        batches: the records with meta columns.
        inserts: number of new records among them; None if it is not known.
        positions: their positions in the base file of the slice; None if any is not known.
    """

    settings: FileSettings
    batches: list[pa.RecordBatch]
    inserts: int | None = None
    positions: Array | None = None

    @property
    def rows(self) -> int:
        """Number of records."""
        return sum(batch.num_rows for batch in self.batches)


@dataclass(frozen=True, slots=True)
class LogContent:
    """Records and deletes of one file group, no key in both.

    Attributes:
        parts: the records, those with some of the columns first; without empty parts.
        record_keys: their record keys.
        delete_keys: keys of deleted records.
        delete_ordering: ordering columns of the deletes; None if they win over all earlier versions.
        delete_positions: positions of the deleted records in the base file; None if any is not known.
    """

    parts: tuple[LogPart, ...]
    record_keys: pa.Array
    delete_keys: pa.Array
    delete_ordering: Sequence[pa.Array] | None = None
    delete_positions: Array | None = None


def row_summaries(settings: FileSettings) -> RowSummaries | None:
    """Return what makes the summaries of records for a log file; None if it gets no statistics."""
    if settings.partial or not settings.summarized:
        return None
    return RowSummaries(settings.summarized, settings.log_schema)


def first_version(target: LogTarget) -> tuple[str, int, str]:
    """Return the instant, the version and the write token in the name of the next log file of a slice.

    A name without the instant of the write gets its time of day (HHmmssSSS) as the stage of the write token:
    a writer that stalled, and resumes after others went on, must not overwrite a log file of theirs.
    """
    settings, file_slice = target.settings, target.file_slice
    if not settings.config.rules.names_logs_by_slice and not settings.logs_named_by:
        return settings.instant, 1, target.write_token
    instant = settings.logs_named_by or file_slice.base_instant
    version = max((log.version for log in file_slice.logs if log.instant == instant), default=0) + 1
    task, _, attempt = target.write_token.split("-")
    return instant, version, f"{task}-{int(settings.instant[-9:])}-{attempt}"


def log_name(target: LogTarget, kind: NativeLog = NativeLog.DATA, later: int = 0) -> tuple[str, int]:
    """Return the name of the next log file of a slice, and its version.

    Args:
        target: where it is written.
        kind: what it holds, if it is a native one.
        later: by how much its version is greater than that of the first file of the write.
    """
    instant, first, token = first_version(target)
    file_id, version = target.file_slice.file_id, first + later
    if target.settings.config.rules.log_format is LogFormat.NATIVE:
        extension = target.settings.config.base_extension
        return LogFile.native_name_of(file_id, instant, version, token, kind, extension), version
    return LogFile.name_of(file_id, instant, version, token), version


def log_stat(target: LogTarget, name: str, version: int, earlier: Sequence[str] = ()) -> WriteStat:
    """Return the statistics of a new log file, without numbers of records, size and duration.

    Args:
        target: where it is written.
        name: name of the file.
        version: log version in the name.
        earlier: names of files that the same write added to the slice before.
    """
    file_slice = target.file_slice
    stat = WriteStat(
        partition=file_slice.partition,
        file_id=file_slice.file_id,
        path=join_path(file_slice.partition, name),
        prev_commit=file_slice.base_instant,
        base_file=file_slice.base.status.name if file_slice.base else "",
        log_version=version,
        log_files=(*(log.status.name for log in file_slice.logs), *earlier, name),
    )
    if not target.settings.logs_named_by:
        return stat
    # Marks a copy of a dual write: `filegroups.view.missing_files`.
    return replace(stat, prev_commit=target.settings.instant)


def with_records(stat: WriteStat, records: int, inserts: int | None) -> WriteStat:
    """Return the statistics of a log file with the number of its records, and of new ones if it is known."""
    new = inserts or 0
    return replace(stat, num_writes=records, num_inserts=new, num_updates=records - new)


def log_content(target: LogTarget, changes: Changes, meta_columns: MetaColumnWriter) -> LogContent:
    """Return changes as they are stored: sorted by position in the base file if inline blocks have that.

    With an index or sorted log files they are sorted by key, and have no positions.

    Args:
        target: where they are written.
        changes: one record or delete per key.
        meta_columns: writes the meta columns.
    """
    settings, file_id = target.settings, target.file_slice.file_id
    is_sorted = settings.config.has_sorted_files
    changes = _by_position(changes) if _sorts_by_position(settings) else changes
    records = changes.records
    if is_sorted or settings.clique_files:
        records = records.sort_by(RECORD_KEY)
    parts = tuple(
        LogPart(
            part,
            [meta_columns.apply(each, file_id).select(part.log_schema.names) for each in rows.to_batches()],
            inserts_among(rows, all_new=target.begins_group),
            known_positions(rows.column(POSITION)) if POSITION in rows.column_names else None,
        )
        for part, rows in _parts(settings, records)
        if rows.num_rows
    )
    keys = flat(records.column(RECORD_KEY)).cast(pa.string())
    gone: pa.Array = changes.delete_keys
    ordering: Sequence[pa.Array] | None = changes.delete_ordering
    if is_sorted:
        gone, ordering = sorted_deletes(gone, ordering)
    positions = None if changes.delete_positions is None else known_positions(changes.delete_positions)
    return LogContent(parts, keys, gone, ordering, positions)


def _sorts_by_position(settings: FileSettings) -> bool:
    """Return whether records are stored in the order of their positions: a bitmap tells no other."""
    return settings.finds_positions and settings.config.rules.log_format is LogFormat.INLINE


def _by_position(changes: Changes) -> Changes:
    """Return changes in the order of their positions, those without one last."""
    records, ordering, positions = changes.records, changes.delete_ordering, changes.delete_positions
    if POSITION in records.column_names:
        records = records.sort_by(POSITION)
    if positions is None:
        return replace(changes, records=records)
    order = pc.sort_indices(positions)
    return Changes(
        records,
        changes.delete_keys.take(order),
        None if ordering is None else [column.take(order) for column in ordering],
        positions.take(order),
    )


def _parts(settings: FileSettings, records: pa.Table) -> list[tuple[FileSettings, pa.Table]]:
    """Return the records of each part: partial updates with only their columns, new records with all."""
    if not settings.partial or ACTION not in records.column_names:
        return [(settings, records)]
    is_new = pc.equal(records.column(ACTION), RowAction.INSERT)
    whole = replace(settings, partial=())
    return [(settings, records.filter(pc.invert(is_new))), (whole, records.filter(is_new))]
