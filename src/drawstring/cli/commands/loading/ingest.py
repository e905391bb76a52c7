"""`drawstring ingest`: ingest the rows of a source into a table, once or continuously."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Annotated, Final, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

import drawstring
from drawstring.base.clock import SystemClock
from drawstring.base.errors import InvalidError
from drawstring.base.text_format import pluralize
from drawstring.cli import output
from drawstring.cli.arguments import (
    AsJson,
    HudiOptions,
    StorageOptions,
    TablePath,
    named_values,
    storage_options,
)
from drawstring.cli.output import status_line
from drawstring.ingestion.batch_engine import HasBatches
from drawstring.ingestion.job import IngestProgress, IngestResult, properties_in
from drawstring.ingestion.tables import IngestOutcome, TableIngest, ingest_each, tables_in
from drawstring.model.result import size_text

SourceName = Annotated[
    str,
    Parameter(
        help="Name of the source, such as parquet, csv, json or kafka-json, or a class of HoodieStreamer."
    ),
]
Props = Annotated[
    tuple[str, ...], Parameter(negative="", help="File of options, one KEY=VALUE a line; may be repeated.")
]
ConfigFolder = Annotated[
    str | None,
    Parameter(help="Folder with the options of several tables, as DATABASE_TABLE_config.properties."),
]
Operation = Annotated[
    Literal[
        "upsert",
        "insert",
        "bulk_insert",
        "append",
        "delete",
        "insert_overwrite",
        "insert_overwrite_table",
    ],
    Parameter(name=("--op", "--operation"), help="What is done with the rows."),
]
Transformers = Annotated[
    tuple[str, ...],
    Parameter(
        negative="",
        help="SQL query with `<SRC>` for the rows, or Python function as module:function; may be repeated.",
    ),
]
Continuous = Annotated[bool, Parameter(negative="", help="Wait for more, until interrupted.")]
Interval = Annotated[
    float | None, Parameter(validator=Number(gte=0), help="Least seconds between two batches.")
]
Limit = Annotated[
    int | None,
    Parameter(validator=Number(gte=1), help="Largest size of a batch: bytes of files, records, commits."),
]
MinBatch = Annotated[
    int, Parameter(validator=Number(gte=1), help="Size up to which --continuous waits for more.")
]
MaxWait = Annotated[
    float, Parameter(validator=Number(gte=0), help="Longest wait for --min-batch, in seconds.")
]
MaxBatches = Annotated[
    int | None, Parameter(validator=Number(gte=1), help="Number of batches after which to end.")
]
Asked = Annotated[str | None, Parameter(help="Where to start instead of the checkpoint in the table.")]
Ignored = Annotated[
    str | None, Parameter(help="Any text; with a new one the checkpoint in the table does not count.")
]
EngineName = Annotated[
    Literal["embedded", "spark"],
    Parameter(help="What reads, changes and writes the rows: this process, or a Spark session."),
]
SparkSettings = Annotated[
    tuple[str, ...],
    Parameter(
        negative="", help="Setting of the Spark session, as in spark.master=local[4]; may be repeated."
    ),
]

_IDLE_SECONDS: Final = 10.0


def ingest(
    path: TablePath,
    *,
    source: SourceName,
    props: Props = (),
    config_folder: ConfigFolder = None,
    op: Operation = "upsert",
    transformer: Transformers = (),
    continuous: Continuous = False,
    interval: Interval = None,
    source_limit: Limit = None,
    min_batch: MinBatch = 1,
    max_wait: MaxWait = 60.0,
    max_batches: MaxBatches = None,
    checkpoint: Asked = None,
    ignore_checkpoint: Ignored = None,
    engine: EngineName = "embedded",
    spark_conf: SparkSettings = (),
    as_json: AsJson = False,
    option: HudiOptions = (),
    storage_option: StorageOptions = (),
) -> None:
    """Ingest the rows of a source into a table, each of them once, as HoodieStreamer does.

    The checkpoint is stored in the commits: a job that was stopped or killed goes on where it was. With
    --json each batch prints a document, and the end another. hoodie.streamer.ingestion.tablesToBeIngested
    names several tables below PATH, one after the other; an error of one does not stop the others.
    """
    work = partial(
        drawstring.ingest,
        source=source,
        operation=op,
        transformers=transformer,
        interval_seconds=interval,
        source_limit=source_limit,
        min_batch=min_batch,
        max_wait_seconds=max_wait,
        max_batches=max_batches,
        checkpoint=checkpoint,
        ignore_checkpoint=ignore_checkpoint,
        storage_options=storage_options(storage_option) or None,
        engine=_engine(engine, spark_conf),
    )
    common = {key: value for each in props for key, value in properties_in(each).items()}
    own = named_values(option)
    tables = tables_in(path, common, own, config_folder)
    if tables:
        _show_each(tables, work, _pause(interval) if continuous else None, as_json=as_json)
    else:
        _show(path, partial(work, path, options={**common, **own}, continuous=continuous), as_json=as_json)


def _pause(interval: float | None) -> float:
    return _IDLE_SECONDS if interval is None else interval


def _engine(name: str, settings: tuple[str, ...]) -> HasBatches | None:
    """Return the engine of a name, which is not started yet; None for the embedded one.

    Raises:
        InvalidError: PySpark is not installed, or there are settings of Spark for another engine.
    """
    if name == "spark":
        try:
            from drawstring.spark.session import StartedLate
        except ImportError as error:
            raise InvalidError(f"--engine spark cannot be used: {error}") from error
        return StartedLate(_spark_settings(settings))
    if settings:
        raise InvalidError("--spark-conf is for --engine spark. Add that, or leave --spark-conf out.")
    return None


def _spark_settings(given: tuple[str, ...]) -> dict[str, str]:
    settings = named_values(given)
    wrong = next((name for name in settings if not name.startswith("spark.")), None)
    if wrong is not None:
        raise InvalidError(
            f"--spark-conf {wrong} is no setting of Spark, which begin with spark. Options by Hudi's keys are"
            " given with --option."
        )
    return settings


def _show_each(
    tables: list[TableIngest],
    work: Callable[..., IngestResult],
    pause: float | None,
    *,
    as_json: bool,
) -> None:
    """Ingest into several tables, and show how it goes.

    Raises:
        InvalidError: one of them was not ingested into.
    """
    failed: list[str] = []
    with status_line("looking at the sources") as show:

        def report(table: TableIngest, progress: IngestProgress) -> None:
            show(f"{table.name}: {_told(progress)}")
            if as_json:
                output.print_json({"table": table.name, **asdict(progress)})

        def run_one(table: TableIngest) -> IngestResult:
            return work(table.uri, options=table.options, on_progress=partial(report, table))

        for outcome in ingest_each(tables, run_one, SystemClock(), pause):
            if outcome.error is not None:
                failed.append(outcome.table.name)
            if outcome.error is not None or outcome.result or pause is None:
                _show_outcome(outcome, as_json=as_json)
    if failed:
        raise InvalidError(
            f"{len(failed)} of {pluralize(len(tables), 'table')} failed: {', '.join(failed)}. Correct what is"
            " wrong with them, and run the command again: each goes on where it was."
        )


def _show_outcome(outcome: IngestOutcome, *, as_json: bool) -> None:
    if as_json:
        result, error = outcome.result, outcome.error
        output.print_json(
            {
                "table": outcome.table.name,
                "path": outcome.table.uri,
                "result": output.result_fields(result) if result is not None else None,
                "error": output.error_fields(error) if error is not None else None,
            }
        )
    elif outcome.result is not None:
        output.print_line(f"{outcome.table.name}: {_summary(outcome.result)}")
    else:
        output.print_line(f"{outcome.table.name}: failed: {outcome.error}")


def _show(path: str, work: Callable[..., IngestResult], *, as_json: bool) -> None:
    """Run an ingestion, and show how it goes."""
    last: list[IngestProgress] = []
    with status_line(f"{path}: looking at the source") as show:

        def report(progress: IngestProgress) -> None:
            last[:] = [progress]
            show(f"{path}: {_told(progress)}")
            if as_json:
                output.print_json(asdict(progress))

        try:
            result = work(on_progress=report)
        except KeyboardInterrupt:
            if not last:
                raise
            result = _result_of(last[0])
    if as_json:
        output.print_result(result)
    else:
        output.print_line(_summary(result))


def _result_of(last: IngestProgress) -> IngestResult:
    return IngestResult(last.batches, last.rows, last.rejected, last.checkpoint, last.seconds)


def _told(progress: IngestProgress) -> str:
    left = size_text(progress.left) if progress.unit == "bytes" else f"{progress.left:,} {progress.unit}"
    rate = progress.rows / progress.seconds if progress.seconds else 0
    batches, rows = pluralize(progress.batches, "batch"), pluralize(progress.rows, "row")
    return f"{batches}, {rows}, {rate:,.0f} rows/s, {left} left, at {progress.checkpoint or 'no checkpoint'}"


def _summary(result: IngestResult) -> str:
    if not result.batches:
        return "nothing new"
    rejected = f", {pluralize(result.rejected, 'record')} left out" if result.rejected else ""
    rows, batches = pluralize(result.rows, "row"), pluralize(result.batches, "batch")
    done = f"ingested {rows} in {batches}{rejected}, {result.seconds:.1f} s"
    return f"{done}; the source goes on at {result.checkpoint}" if result.checkpoint else done
