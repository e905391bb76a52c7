"""Run an ingestion: read a batch of a source, transform it, and commit its rows with the checkpoint.

    checkpoint ── source.after ── read ── transform ── one commit with rows and checkpoint ── next round

A job that dies between any two of these steps goes on at the checkpoint in the table. It reads again the rows
that it had read but not committed, and no rows that it had committed.

`parse_ingest_options` parses the options. `Target` opens the table, or creates it with the columns of the
first rows. `RowSchemas` has the columns of the rows where the user gave them as Avro schemas.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from drawstring.base.clock import Clock, Stopwatch
from drawstring.base.errors import (
    ConflictError,
    CorruptTableError,
    InvalidError,
    MissingKeyError,
    NoTableError,
    OvertakenError,
    UnavailableError,
)
from drawstring.config.keys.ingest import INGEST_OPTIONS, IngestOptions
from drawstring.config.options.option import Option, Value, text_of
from drawstring.config.options.registry import OPTION_OF_KEY, add_option, fields_of
from drawstring.config.options.unknown_keys import close_key, known_keys, pass_over_unknown, unknown_key
from drawstring.config.options.write_options import WriteOptions, table_scope
from drawstring.config.table.properties import properties_in_text
from drawstring.creation import create
from drawstring.engine.protocol import Engine
from drawstring.entry import open as open_table
from drawstring.ingestion.batch_engine import BatchEngine, BatchRows, RowsOf
from drawstring.ingestion.checkpoints import Checkpoint, StreamerCheckpoints, start_after
from drawstring.ingestion.quarantine import Quarantine
from drawstring.ingestion.source_protocol import Reading, Rejected, Source, SourceBatch, with_known_types
from drawstring.ingestion.transformers.chain import Transform, TransformerError, read_text
from drawstring.model.instant import Action
from drawstring.model.result import CommitResult, Result
from drawstring.model.table_version import DEFAULT_VERSION
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolution import conform
from drawstring.schema.fields import without_meta
from drawstring.services.streams import StreamWriter, stream_options
from drawstring.table import Table


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """What an ingestion has done when it has committed a batch.

    Attributes:
        commit: the commit of the batch.
        checkpoint: where the source goes on.
        batches: batches so far.
        rows: rows that were read so far.
        size, unit: size of this batch, and what it counts: `bytes`, `records` or `commits`.
        left: what waits in the source, in the same unit.
        rejected: records that were left out or went to the error table so far.
        seconds: duration so far.
    """

    commit: CommitResult
    checkpoint: str
    batches: int
    rows: int
    size: int
    unit: str
    left: int
    rejected: int
    seconds: float


@dataclass(frozen=True, slots=True)
class IngestResult(Result):
    """What an ingestion did.

    Attributes:
        batches: batches that were committed.
        rows: rows that were read.
        rejected: records that were left out, or went to the error table.
        checkpoint: where the source goes on; empty if it never had anything.
        seconds: duration.
    """

    batches: int
    rows: int
    rejected: int
    checkpoint: str
    seconds: float

    @property
    def changed(self) -> bool:
        """Whether there is a commit."""
        return self.batches > 0


_OPTION_OF_KEY: Final[Mapping[str, Option]] = {
    key: option for option in INGEST_OPTIONS for key in option.keys
}
_OWN: Final = "drawstring.ingest."
_PREFIXES: Final = ("hoodie.streamer.", "hoodie.deltastreamer.", _OWN, "hoodie.errortable.")
_PARSED_ELSEWHERE: Final = (
    "hoodie.streamer.transformer.sql.",
    "hoodie.streamer.ingestion.",
    "hoodie.deltastreamer.ingestion.",
    "hoodie.errortable.writeconfig.",
)
_NAMED_BY_USERS: Final = ("hoodie.streamer.transformer.sql.", "hoodie.errortable.writeconfig.")
_WITH_NAMES: Final = ("hoodie.streamer.ingestion.", "hoodie.deltastreamer.ingestion.")
"""Beginnings of keys that go on with the name of a table."""

_log: Final = logging.getLogger("drawstring")


def parse_ingest_options(given: Mapping[str, Any]) -> IngestOptions:
    """Parse the options of an ingestion.

    Args:
        given: options by Hudi's keys; those of writes are passed over.

    Raises:
        InvalidError: an option is misspelled or has no valid value, or two contradict each other.
    """
    parsed: dict[Option, tuple[str, Value]] = {}
    for name, value in given.items():
        key, text = name.lower(), text_of(value)
        option = _OPTION_OF_KEY.get(key)
        if option is None:
            _check_key(name, given)
        elif text is not None:
            add_option(parsed, option, key, text)
    return IngestOptions(**fields_of(INGEST_OPTIONS, parsed))


def log_ignored_options(given: Mapping[str, Any]) -> None:
    """Log which options of HoodieStreamer have no effect."""
    ignored = [
        name
        for name in given
        if _is_of_ingestion(name.lower())
        and name.lower() not in _OPTION_OF_KEY
        and not name.lower().startswith(_PARSED_ELSEWHERE)
    ]
    if ignored:
        _log.warning("Options of HoodieStreamer that have no effect here: %s.", ", ".join(sorted(ignored)))


def write_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that go on to writes."""
    return {key: value for key, value in given.items() if not _is_of_ingestion(key.lower())}


def properties_in(file: str) -> dict[str, str]:
    """Return the options in a file of Java properties, as HoodieStreamer's `--props` names one.

    Args:
        file: path of a file in UTF-8, with the syntax of `java.util.Properties`.

    Raises:
        InvalidError: there is no such file, or it is another one.
    """
    try:
        return properties_in_text(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidError(f"There is no file {file}. Give the path of a file of properties.") from error
    except (UnicodeDecodeError, IsADirectoryError) as error:
        raise InvalidError(f"{file} is no file of properties. Give the path of one, in UTF-8.") from error


def _is_of_ingestion(key: str) -> bool:
    return key in _OPTION_OF_KEY or (key.startswith(_PREFIXES) and key not in OPTION_OF_KEY)


def _check_key(name: str, given: Mapping[str, Any]) -> None:
    """Refuse a key of ingestions that is a slip, or drawstring's own and unknown; warn of others."""
    key = name.lower()
    if not _is_of_ingestion(key) or key.startswith(_NAMED_BY_USERS) or key in known_keys():
        return
    near = close_key(key)
    if near is not None or key.startswith(_OWN):
        raise unknown_key(name, near)
    if not key.startswith(_WITH_NAMES):
        pass_over_unknown(name, given)


_STREAM: Final = "ingest"
_SEPARATORS: Final = re.compile(r"[,;|\t]")


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows go.

    Attributes:
        uri: root of the table.
        options: options of its writes, by Hudi's keys.
        storage_options: options of the object store.
        engine: runs the writes; None for the embedded one.
    """

    uri: str
    options: Mapping[str, Any]
    storage_options: Mapping[str, str]
    engine: Engine | None

    def open(self) -> Table | None:
        """Return the table, None if there is none yet."""
        try:
            return open_table(self.uri, storage_options=self.storage_options or None, engine=self.engine)
        except NoTableError:
            return None

    def create(self, schema: pa.Schema) -> Table:
        """Return a new table.

        Args:
            schema: its columns.

        Raises:
            InvalidError: the options do not describe a table with these columns.
        """
        try:
            return self._created(schema)
        except InvalidError as error:
            hint = _hint(schema.names)
            if not hint:
                raise
            raise InvalidError(f"{error.message} {hint}") from error

    def _created(self, schema: pa.Schema) -> Table:
        parsed = WriteOptions.parse(self.options)
        return create(
            self.uri,
            schema,
            record_key=parsed.record_key,
            name=parsed.table_name,
            table_type=parsed.table_type or "COPY_ON_WRITE",
            partition_by=parsed.partition_path,
            ordering=parsed.ordering,
            version=parsed.table_version or DEFAULT_VERSION,
            properties=table_scope(self.options),
            storage_options=self.storage_options or None,
            engine=self.engine,
        )

    def writer(self, table: Table, rows_of: RowsOf) -> StreamWriter:
        """Return what writes batches with checkpoints in Hudi's form to the table.

        Args:
            table: the table.
            rows_of: takes rows of a batch to the table.

        Raises:
            InvalidError: an option makes no sense.
            CorruptTableError: a commit is damaged.
        """
        options = stream_options(self.options, _STREAM)
        keeper = StreamerCheckpoints(is_old=not table.config.rules.layout.has_completion_times)
        return StreamWriter(table._context, rows_of, options, table._errors, keeper)


def _hint(names: Sequence[str]) -> str | None:
    """Return what to do about columns that look like those of CSV files that were read wrongly."""
    if len(names) == 1 and _SEPARATORS.search(names[0]):
        return "Name the separator of the files with hoodie.streamer.csv.sep."
    if "_c0" in names:
        return (
            "If the first lines of the files name the columns, set hoodie.streamer.csv.header=true; the"
            " separator is hoodie.streamer.csv.sep."
        )
    return None


@dataclass(frozen=True, slots=True)
class RowSchemas:
    """Columns that rows are to have.

    Attributes:
        source: before the transformers; None for those that are found.
        target: after them; None for those that come out.
    """

    source: pa.Schema | None = None
    target: pa.Schema | None = None

    @staticmethod
    def of(options: IngestOptions) -> RowSchemas:
        """Return the columns that Avro schemas in files describe.

        Raises:
            InvalidError: there is no such file, or no schema in it.
        """
        return RowSchemas(
            *(_schema_in(name) if name else None for name in (options.source_schema, options.target_schema))
        )

    def read(self, rows: BatchRows, engine: BatchEngine) -> BatchRows:
        """Return rows as they were read with the columns of the source."""
        return _with_columns(rows, self.source, engine)

    def written(self, rows: BatchRows, engine: BatchEngine) -> BatchRows:
        """Return rows with the columns of the target."""
        return _with_columns(rows, self.target, engine)


def _with_columns(rows: BatchRows, schema: pa.Schema | None, engine: BatchEngine) -> BatchRows:
    return rows if schema is None else engine.mapped(rows, _Conform(schema), schema)


@dataclass(frozen=True, slots=True)
class _Conform:
    """A batch function that gives rows the columns of a schema."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for each in with_known_types(pa.Table.from_batches([batch]), self.schema).to_batches():
                yield conform(each, self.schema)


def _schema_in(file: str) -> pa.Schema:
    try:
        return avro_to_arrow(read_text(file))
    except CorruptTableError as error:
        raise InvalidError(
            f"{file} has no Avro record schema ({error.message}). Correct the file."
        ) from error


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
class StartCheckpoint:
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
    shape: RowSchemas
    transform: Transform
    engine: BatchEngine
    clock: Clock
    pace: Pace = field(default_factory=Pace)
    beginning: StartCheckpoint = field(default_factory=StartCheckpoint)
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
            self._table.services.wait()

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
            with _with_error_table_hint():
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
def _with_error_table_hint() -> Iterator[None]:
    """Add to the error about a record without key where such records can be kept."""
    try:
        yield
    except MissingKeyError as error:
        raise InvalidError(
            f"{error.message} Or keep such records in an error table with hoodie.errortable.enable=true.",
            table=error.table,
        ) from error
