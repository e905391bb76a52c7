"""The loop of an ingestion.

    checkpoint ── source.after ── read ── transform ── one commit with rows and checkpoint ── next round

A job that dies between any two of these steps goes on at the checkpoint in the table: what it had read but
not committed is read again, what it had committed is not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from drawstring.base.clock import Clock, Stopwatch
from drawstring.base.errors import (
    ConflictError,
    InvalidError,
    MissingKeyError,
    OvertakenError,
    UnavailableError,
)
from drawstring.ingestion.batch_engine import BatchEngine, BatchRows
from drawstring.ingestion.checkpoints import Checkpoint, start_after
from drawstring.ingestion.progress import IngestProgress, IngestResult
from drawstring.ingestion.quarantine import Quarantine
from drawstring.ingestion.rows import Shape
from drawstring.ingestion.sources.protocol import Reading, Rejected, Source, SourceBatch
from drawstring.ingestion.target import Target
from drawstring.ingestion.transformers.chain import Transform
from drawstring.ingestion.transformers.user_function import TransformerError
from drawstring.model.instant import Action
from drawstring.model.result import CommitResult
from drawstring.schema.meta import without_meta
from drawstring.services.streams import StreamWriter
from drawstring.table import Table

_log: Final = logging.getLogger("drawstring")
_NOTHING: Final = pa.schema([])


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast and how long a job works.

    Attributes:
        is_continuous: whether the job waits for more when the source has nothing new.
        interval_seconds: least time from the beginning of a batch to that of the next one.
        idle_seconds: time between looks at a source that has nothing.
        limit: largest size of a batch, in the unit of the source; None for its default.
        min_batch: size below which a continuous job waits for more.
        max_wait_seconds: for how long.
        max_batches: batches after which the job ends; None for no bound.
        retries: how often a round is tried again after an error that may pass.
        retry_seconds: pause before the first of these; each further pause is twice as long.
        max_pending: pending compactions beyond which a continuous job waits for them.
    """

    is_continuous: bool = False
    interval_seconds: float = 0.0
    idle_seconds: float = 10.0
    limit: int | None = None
    min_batch: int = 1
    max_wait_seconds: float = 60.0
    max_batches: int | None = None
    retries: int = 3
    retry_seconds: float = 1.0
    max_pending: int = 5


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a job begins, if not at the checkpoint in the table; see `start_after`."""

    asked: str | None = None
    ignored: str | None = None


@dataclass(slots=True)
class IngestJob:
    """An ingestion at work.

    Attributes:
        target: the table.
        source: where rows come from.
        shape: columns before and after the transformers, if they are given.
        transform: what changes the rows.
        engine: reads and changes them.
        clock: tells the time, and sleeps.
        pace: how fast and how long.
        beginning: where to begin.
        report: told about each batch.
        skips_rejected: whether records that cannot be read are left out.
        quarantine: takes bad records; None if they are an error, or left out.
    """

    target: Target
    source: Source
    shape: Shape
    transform: Transform
    engine: BatchEngine
    clock: Clock
    pace: Pace = field(default_factory=Pace)
    beginning: Beginning = field(default_factory=Beginning)
    report: Callable[[IngestProgress], None] | None = None
    skips_rejected: bool = False
    quarantine: Quarantine | None = None
    _watch: Stopwatch = field(default_factory=Stopwatch)
    _table: Table | None = None
    _writer: StreamWriter | None = None
    _position: Checkpoint | None = None
    _is_at_beginning: bool = True
    _batches: int = 0
    _rows: int = 0
    _rejected: int = 0
    _waiting_since_ms: int | None = None

    def run(self) -> IngestResult:
        """Work until there is nothing new, or forever if the job is continuous.

        Raises:
            OvertakenError: another process ingests into the table.
            DrawstringError: a batch was not written. It is read again when the job is started again.
        """
        self._open()
        self._position = start_after(self._stored(), self.beginning.asked, self.beginning.ignored)
        while self.pace.max_batches is None or self._batches < self.pace.max_batches:
            began_ms = self.clock.now_ms()
            is_new = self._tried_round()
            if not is_new and not self.pace.is_continuous:
                break
            self._rest(began_ms, is_new)
        return self.result()

    def result(self) -> IngestResult:
        """Return what the job has done so far."""
        key = self._position.key if self._position else ""
        return IngestResult(self._batches, self._rows, self._rejected, key, self._watch.seconds())

    def _rest(self, began_ms: int, is_new: bool) -> None:
        if not self.pace.is_continuous:
            return
        spent = (self.clock.now_ms() - began_ms) / 1000
        pause = (self.pace.interval_seconds if is_new else self.pace.idle_seconds) - spent
        if pause > 0:
            self.clock.sleep(pause)
        if self._table is not None and self._pending_compactions() > self.pace.max_pending:
            _log.info(
                "The ingestion waits for compactions, of which more than %d are pending.",
                self.pace.max_pending,
            )
            self._table.wait_for_services()

    def _pending_compactions(self) -> int:
        return len(self._table.timeline.pending_of(Action.COMPACTION)) if self._table is not None else 0

    def _tried_round(self) -> bool:
        for number in range(self.pace.retries):
            try:
                return self._round()
            except OvertakenError:
                raise
            except (UnavailableError, ConflictError) as error:
                pause = self.pace.retry_seconds * 2**number
                _log.warning("A batch failed and is tried again in %g s. Cause: %s", pause, error)
                self.clock.sleep(pause)
                self._again()
        return self._round()

    def _again(self) -> None:
        """Look up where the table is: the commit of the batch may have been completed all the same."""
        if not self._is_at_beginning:
            self._open()
            self._position = self._stored()

    def _round(self) -> bool:
        """Write the next batch; return whether there was one."""
        batch = self.source.after(self._position, self.pace.limit)
        if batch is None or self._is_to_grow(batch) or not (batch.size or self._table):
            return False
        self._waiting_since_ms = None
        checkpoint = replace(
            batch.checkpoint, reset=self.beginning.asked or "", ignore=self.beginning.ignored or ""
        )
        commit = self._written(batch, checkpoint)
        self._position = checkpoint
        if commit is None:
            return True
        self._is_at_beginning = False
        self._batches += 1
        self.source.committed(checkpoint)
        if self.report is not None:
            self.report(self._progress(commit, batch))
        return True

    def _written(self, batch: SourceBatch, checkpoint: Checkpoint) -> CommitResult | None:
        """Write a batch; None if there is no table yet, and no good record to create it from."""
        if self.quarantine is not None:
            self.quarantine.begin(self._table)
        try:
            return self._taken(batch, checkpoint)
        except TransformerError as error:
            place = f"behind checkpoint {self._position.key}" if self._position else "at the beginning"
            raise error.within(f"in the batch {place}, up to {checkpoint.key}") from error.__cause__
        finally:
            self.engine.release()

    def _taken(self, batch: SourceBatch, checkpoint: Checkpoint) -> CommitResult | None:
        rejected: list[Rejected] = []
        read = self.engine.read(batch, self._reading(rejected), self._count)
        found = self.shape.read(read, self.engine)
        commit = None
        if self.quarantine is None:
            rows = self._shaped(found)
            with _told_of_error_table():
                commit = self._writer_for(rows.schema).write(rows, checkpoint.to_text())
        elif found.schema.names or self._table is not None:
            rows = self._shaped(found) if found.schema.names else self._no_rows()
            writer = self._writer_for(rows.schema)
            commit = writer.write(self._sifted(self.quarantine, rows), checkpoint.to_text())
        else:
            self.quarantine.flush()
        self._rejected += self.quarantine.count if self.quarantine is not None else len(rejected)
        return commit

    def _shaped(self, rows: BatchRows) -> BatchRows:
        return self.shape.written(self.transform(rows), self.engine)

    def _no_rows(self) -> BatchRows:
        return self.engine.empty(without_meta(self._table.schema) if self._table is not None else _NOTHING)

    def _sifted(self, quarantine: Quarantine, rows: BatchRows) -> BatchRows:
        fields = self._table.config.record_key_fields if self._table is not None else ()
        return quarantine.sifted(self.engine, rows, fields, self._position.key if self._position else "")

    def _progress(self, commit: CommitResult, batch: SourceBatch) -> IngestProgress:
        return IngestProgress(
            commit,
            batch.checkpoint.key,
            self._batches,
            self._rows,
            batch.size,
            self.source.unit,
            batch.left,
            self._rejected,
            self._watch.seconds(),
        )

    def _is_to_grow(self, batch: SourceBatch) -> bool:
        """Tell whether a continuous job waits for a batch to become larger."""
        if not self.pace.is_continuous or batch.left or not 0 < batch.size < self.pace.min_batch:
            return False
        now_ms = self.clock.now_ms()
        if self._waiting_since_ms is None:
            self._waiting_since_ms = now_ms
        return now_ms - self._waiting_since_ms < 1000 * self.pace.max_wait_seconds

    def _reading(self, rejected: list[Rejected]) -> Reading:
        known = without_meta(self._table.schema) if self._table is not None else _NOTHING

        def reject(record: Rejected) -> None:
            if self.quarantine is not None:
                self.quarantine.add(record)
                return
            if not self.skips_rejected:
                raise InvalidError(
                    f"The record at {record.place} cannot be read: {record.reason}. Correct it, leave such"
                    " records out with hoodie.streamer.source.json.skip.invalid.records=true, or keep them in"
                    " an error table with hoodie.errortable.enable=true."
                )
            _log.warning("The record at %s cannot be read and is left out: %s", record.place, record.reason)
            rejected.append(record)

        columns = self.shape.source if self.shape.source is not None else known
        return Reading(columns, reject, is_strict=self.quarantine is not None)

    def _count(self, rows: int) -> None:
        self._rows += rows

    def _open(self) -> None:
        self._table = self.target.open()
        self._writer = self._writer_of(self._table) if self._table is not None else None

    def _writer_for(self, schema: pa.Schema) -> StreamWriter:
        if self._writer is None:
            self._table = self.target.create(without_meta(schema))
            self._writer = self._writer_of(self._table)
        return self._writer

    def _writer_of(self, table: Table) -> StreamWriter:
        return self.target.writer(table, self.engine.rows_of(table))

    def _stored(self) -> Checkpoint | None:
        """Return the checkpoint in the table."""
        position = self._writer.position if self._writer is not None else None
        return Checkpoint.of_text(position) if position is not None else None


@contextmanager
def _told_of_error_table() -> Iterator[None]:
    """Add to the error about a record without key where such records can be kept."""
    try:
        yield
    except MissingKeyError as error:
        raise InvalidError(
            f"{error.message} Or keep such records in an error table with hoodie.errortable.enable=true.",
            table=error.table,
        ) from error
