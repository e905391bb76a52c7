"""Ingest rows of a source into a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from drawstring.base.clock import Clock, SystemClock
from drawstring.base.errors import InvalidError, errors_at
from drawstring.config.options.registry import check_is_given
from drawstring.config.options.write_options import OPERATION_KEY, WriteOptions
from drawstring.engine.protocol import Engine
from drawstring.ingestion.batch_engine import BatchEngine, EmbeddedBatches, HasBatches, batch_engine
from drawstring.ingestion.job import (
    IngestJob,
    IngestProgress,
    IngestResult,
    Pace,
    RowSchemas,
    StartCheckpoint,
    Target,
    log_ignored_options,
    parse_ingest_options,
    write_options,
)
from drawstring.ingestion.quarantine import Quarantine
from drawstring.ingestion.source_factory import check_source, named_source
from drawstring.ingestion.source_protocol import Source, SourceContext
from drawstring.ingestion.transformers.chain import chain

_IDLE_SECONDS: Final = 10.0
_EMPTY: Final = "hoodie.allow.empty.commit"
_NULLS: Final = "hoodie.write.set.null.for.missing.columns"
_INLINE: Final = "hoodie.compact.inline"
_COMPACTING: Final = (
    _INLINE,
    "hoodie.datasource.compaction.async.enable",
    "hoodie.compact.schedule.inline",
    "hoodie.datasource.write.streaming.disable.compaction",
)


def ingest(
    uri: str | os.PathLike[str],
    source: str | Source,
    *,
    options: Mapping[str, Any] | None = None,
    operation: str | None = None,
    transformers: Sequence[str | Callable[..., Any]] = (),
    continuous: bool = False,
    interval_seconds: float | None = None,
    source_limit: int | None = None,
    min_batch: int = 1,
    max_wait_seconds: float = 60.0,
    max_batches: int | None = None,
    retries: int = 3,
    checkpoint: str | None = None,
    ignore_checkpoint: str | None = None,
    on_progress: Callable[[IngestProgress], None] | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Engine | HasBatches | None = None,
    clock: Clock | None = None,
) -> IngestResult:
    """Ingest the rows of a source into a table, each of them once, as HoodieStreamer does.

    The checkpoint behind a batch is stored in its commit, by the keys of HoodieStreamer: either of the two
    goes on where the other stopped. A missing table is created with the columns of the first rows.

    Args:
        uri: path or address of the table's root.
        source: `parquet`, `orc`, `csv`, `json` or `avro`, which read files that arrive in a folder;
            `kafka-json`, `kafka-avro`, `debezium-postgres` or `debezium-mysql` for a topic; `hudi` or
            `hudi-changes`, which follow another table; `jdbc` for a table of a database, `sql` for the result
            of a query; a class of HoodieStreamer with the same meaning, such
            as `JsonDFSSource`; or an object of your own with the methods of
            `drawstring.ingestion.source_protocol.Source`.
        options: options by Hudi's keys: of the source (`hoodie.streamer.source.dfs.root`), of a new table
            (`hoodie.datasource.write.recordkey.field`) and of writes.
        operation: `upsert` (default), `insert`, `bulk_insert`, `append`, `delete`, `insert_overwrite` or
            `insert_overwrite_table`.
        transformers: what changes the rows, one after the other: SQL queries in Spark's dialect, in which
            `<SRC>` stands for the rows and which DuckDB runs; functions, or `module:function`, from a
            `pyarrow.RecordBatchReader` to rows; before those of `hoodie.streamer.transformer.class`. On Spark
            queries run in Spark, and functions get a DataFrame.
        continuous: whether to wait for more when the source has nothing new.
        interval_seconds: least time between two batches if continuous: by default none, and ten seconds
            between looks at a source that has nothing.
        source_limit: largest size of a batch: bytes of files, by default a gigabyte, of JSON a quarter;
            records of Kafka, by default five million; or commits of a Hudi table, by default five.
        min_batch: size up to which a continuous ingestion waits for more.
        max_wait_seconds: how long it waits.
        max_batches: number of batches after which to end; by default no bound.
        retries: how often a batch is tried again after an error that may pass.
        checkpoint: where to start instead of the checkpoint in the table. The wish is stored with the commit:
            a restart with the same arguments goes on.
        ignore_checkpoint: any text, with a new one the checkpoint in the table does not count.
        on_progress: called after each batch.
        storage_options: options of the object store, of table and files.
        engine: reads, changes and writes the rows; the embedded one by default, or
            `drawstring.spark.SparkEngine(spark)`. Either goes on where the other stopped.
        clock: tells the time and sleeps; the machine's by default.

    Returns:
        Numbers of batches and rows, and the checkpoint.

    Raises:
        InvalidError: an option makes no sense, or a record does not fit.
        OvertakenError: another process ingests into the table.
        DrawstringError: a batch was not written. It is read again by the next call.

    Example:
        >>> import os, tempfile, pyarrow.parquet as pq
        >>> folder = tempfile.mkdtemp()
        >>> os.mkdir(f"{folder}/arriving")
        >>> pq.write_table(pa.table({"id": [1, 2], "fare": [9.5, 20.0]}), f"{folder}/arriving/a.parquet")
        >>> options = {
        ...     "hoodie.streamer.source.dfs.root": f"{folder}/arriving",
        ...     "hoodie.datasource.write.recordkey.field": "id",
        ... }
        >>> drawstring.ingest(f"{folder}/rides", "parquet", options=options).rows
        2
        >>> drawstring.ingest(f"{folder}/rides", "parquet", options=options).rows
        0
    """
    root = os.fspath(uri)
    check_is_given(options or {})
    given = dict(options or {})
    writes = _of_writes(given, operation, continuous)
    pace = Pace(
        continuous,
        _checked_seconds("interval_seconds", interval_seconds or 0.0),
        _IDLE_SECONDS if interval_seconds is None else interval_seconds,
        _checked_count("source_limit", source_limit),
        min_batch,
        _checked_seconds("max_wait_seconds", max_wait_seconds),
        _checked_count("max_batches", max_batches),
        _checked_count("retries", retries, 0),
    )
    _check(root, source, given, writes, transformers, on_progress, clock or SystemClock())
    batches = batch_engine(engine)
    target = Target(root, writes, batches.storage_options(root, storage_options or {}), batches.engine)
    job = _job(target, source, given, transformers, batches, clock or SystemClock())
    job.pace = pace
    job.beginning = StartCheckpoint(checkpoint, ignore_checkpoint)
    job.report = on_progress
    try:
        with errors_at(root):
            return job.run()
    finally:
        job.source.close()


def _check(
    root: str,
    source: str | Source,
    given: Mapping[str, Any],
    writes: Mapping[str, Any],
    transformers: Sequence[str | Callable[..., Any]],
    report: object,
    clock: Clock,
) -> None:
    """Check what can be checked before the engine is asked, for which a session may have to start.

    Args:
        root: of the table.
        source: of the call.
        given: all options.
        writes: those of the writes.
        transformers: of the call.
        report: is told about batches.
        clock: tells the time.

    Raises:
        InvalidError: an option, the source or a transformer makes no sense.
    """
    parsed = parse_ingest_options(given)
    if parsed.tables:
        raise InvalidError(
            "hoodie.streamer.ingestion.tablesToBeIngested names several tables, but this call ingests into"
            " one. Use the command drawstring ingest, or a call for each table without the option."
        )
    log_ignored_options(given)
    if not (report is None or callable(report)):
        raise InvalidError(f"on_progress is {report!r}, which cannot be called. Give a function, or None.")
    WriteOptions.parse(writes)
    if not isinstance(source, str | Source):
        raise InvalidError(
            f"source is {source!r}. Give the name of a source, such as 'parquet', or an object with the"
            " methods of drawstring.ingestion.source_protocol.Source."
        )
    if isinstance(source, str):
        check_source(source, SourceContext(parsed, {}, RowSchemas.of(parsed).source, clock, given, root))
    if isinstance(transformers, str) or callable(transformers):
        raise InvalidError(f"transformers is {transformers!r}. Give a list, even of one transformer.")
    chain(transformers, parsed, given, EmbeddedBatches(None))


def _job(
    target: Target,
    source: str | Source,
    given: Mapping[str, Any],
    transformers: Sequence[str | Callable[..., Any]],
    engine: BatchEngine,
    clock: Clock,
) -> IngestJob:
    """Return a job that ends when there is nothing new.

    Args:
        given: all options.
    """
    parsed = parse_ingest_options(given)
    shape = RowSchemas.of(parsed)
    source_name = source if isinstance(source, str) else type(source).__name__
    context = SourceContext(parsed, target.storage_options, shape.source, clock, given, target.uri)
    return IngestJob(
        target,
        named_source(source, context) if isinstance(source, str) else source,
        shape,
        chain(transformers, parsed, given, engine),
        engine,
        clock,
        skips_rejected=parsed.skips_invalid_json,
        quarantine=Quarantine.of(parsed, given, target.uri, source_name, target.storage_options),
    )


def _checked_count(name: str, count: Any, least: int = 1) -> Any:
    """Return a count of the user, which is at least the given one if there is one."""
    if count is not None and (not isinstance(count, int) or count < least):
        raise InvalidError(f"{name} is {count!r}. Give a number of at least {least}.")
    return count


def _checked_seconds(name: str, seconds: Any) -> float:
    """Return a time of the user, which is not negative."""
    if not isinstance(seconds, int | float) or seconds < 0:
        raise InvalidError(f"{name} is {seconds!r}. Give a number of seconds of at least 0.")
    return seconds


def _of_writes(given: Mapping[str, Any], operation: str | None, is_continuous: bool) -> dict[str, Any]:
    """Return the options of the writes.

    A batch in which nothing is left after the transformers makes a commit, so that the next one is read from
    behind it. Records may lack columns. A job that ends compacts in its commits, as HoodieStreamer does.
    """
    options = {_EMPTY: "true", _NULLS: "true", **write_options(given)}
    if operation is not None:
        options[OPERATION_KEY] = operation
    if not is_continuous and not {key.lower() for key in options} & set(_COMPACTING):
        options[_INLINE] = "true"
    return options
