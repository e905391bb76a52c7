"""Run tasks on threads of this process with Arrow kernels: the local engine, without Java.

Several threads process the batches of a stream in its order. An exchange holds groups in memory up to a bound
and spills to disk beyond it. Kernels of Arrow and numpy release the interpreter lock, so that threads scale
with the cores.

`stream` reads many sources in parallel and yields their batches in the sources' order:

    sources ──> worker threads, each takes the next source ── bounded queues ──> batches

DuckDB runs SQL (`run_in_duckdb`), if it is installed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from itertools import chain, islice
from queue import Full, Queue, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from drawstring.base.errors import DrawstringError, InvalidError, not_installed
from drawstring.base.lazy import lazy_import
from drawstring.base.resources import EXCHANGE_BYTES_MAX, map_in_threads, worker_threads
from drawstring.engine.protocol import BatchFunction, Engine, Relation, TaskFunction
from drawstring.model.files import TaskContext

if TYPE_CHECKING:
    from drawstring.engine.grouping import GroupCounts, GroupKey, KeySet, KeySets, split_by
    from drawstring.engine.joins import WantedKeys, left_pairs, with_null_left
    from drawstring.engine.spill import SortedRanges, SpillingGroups
else:
    lazy_import(
        globals(),
        GroupCounts="drawstring.engine.grouping:GroupCounts",
        split_by="drawstring.engine.grouping:split_by",
        KeySet="drawstring.engine.grouping:KeySet",
        WantedKeys="drawstring.engine.joins:WantedKeys",
        left_pairs="drawstring.engine.joins:left_pairs",
        with_null_left="drawstring.engine.joins:with_null_left",
        SortedRanges="drawstring.engine.spill:SortedRanges",
        SpillingGroups="drawstring.engine.spill:SpillingGroups",
    )

T = TypeVar("T")
R = TypeVar("R")

Source = Callable[[], Iterator[pa.RecordBatch]]
_ALL_ROWS = "rows"


class LocalEngine:
    """Runs tasks on threads of this process.

    Args:
        threads: tasks that run at the same time; by default the number of cores.
        memory_bytes: bytes of rows that an exchange keeps in memory before it spills to disk.
        temporary_folder: where exchanges, and rows that are kept, spill to; None for the temporary folder of
            the machine.
    """

    def __init__(
        self,
        threads: int | None = None,
        memory_bytes: int = EXCHANGE_BYTES_MAX,
        temporary_folder: str | None = None,
    ) -> None:
        self.threads = threads or worker_threads()
        self.memory_bytes = memory_bytes
        self.temporary_folder = temporary_folder

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at the same time."""
        return self.threads

    @property
    def tasks_may_outlive(self) -> bool:
        """Whether a task may go on after a failed call: no, its threads are waited for."""
        return False

    def spilling_groups(self, schema: pa.Schema) -> SpillingGroups:
        """Return groups of rows that go to the disk beyond the bound of memory."""
        return SpillingGroups(schema, self.memory_bytes, folder=self.temporary_folder)

    def map(self, task: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Run a task for each item and return the results in the items' order."""
        return map_in_threads(task, items, self.threads)

    def rows(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> LocalRows:
        """Return rows over batches; those of an iterator can be read once."""
        return LocalRows(self, schema, lambda: iter(batches), is_stream=isinstance(batches, Iterator))

    def read(
        self, sources: Sequence[T], read: Callable[[T], Iterator[pa.RecordBatch]], schema: pa.Schema
    ) -> LocalRows:
        """Return, lazily, the rows that `read(source)` yields for every source, with columns `schema`."""
        return LocalRows(self, schema, lambda: stream(sources, read, self.threads))

    def sql(self, query: str, relations: Mapping[str, Relation]) -> pa.Table:
        """Return the result of a query in DuckDB."""
        return run_in_duckdb(query, relations, self.threads)


class LocalRows:
    """Record batches in this process: one stream, or one stream per group after an exchange."""

    def __init__(
        self,
        engine: LocalEngine,
        schema: pa.Schema,
        source: Source,
        origin: SpillingGroups | None = None,
        *,
        is_stream: bool = False,
    ) -> None:
        self._engine = engine
        self._schema = schema
        self._source = source
        self._origin = origin
        self._is_stream = is_stream
        self._stored: SpillingGroups | None = None
        self._tallies: dict[tuple[str, ...], GroupCounts] = {}
        self._numbers_by_columns: dict[tuple[str, ...], WantedKeys] = {}

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._schema

    @property
    def engine(self) -> LocalEngine:
        """The engine that holds the rows."""
        return self._engine

    def map_batches(self, function: BatchFunction, schema: pa.Schema) -> LocalRows:
        """Apply a function lazily to the batches, several at a time, keeping their order."""

        def apply(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
            return list(function(iter((batch,))))

        def mapped() -> Iterator[pa.RecordBatch]:
            for batches in ordered_map(apply, self._source(), self._engine.threads):
                yield from batches

        return LocalRows(self._engine, schema, mapped, self._origin, is_stream=self._is_stream)

    @property
    def reads_once(self) -> bool:
        """Whether the rows are a stream that can be read only once."""
        return self._is_stream

    def repeatable(self) -> LocalRows:
        """Return these rows, or stored ones if they are a stream that can be read once."""
        if not self._is_stream:
            return self
        stored = self._read_to_end()
        return LocalRows(self._engine, self._schema, lambda: stored.batches(_ALL_ROWS))

    def persist(self) -> LocalRows:
        """Read the stream to its end and store it, spilling to disk beyond the engine's memory bound."""
        stored = self._read_to_end()
        rows = LocalRows(self._engine, self._schema, lambda: stored.batches(_ALL_ROWS), stored)
        rows._stored = stored
        return rows

    def _read_to_end(self) -> SpillingGroups:
        stored = self._engine.spilling_groups(self._schema)
        for batch in self._source():
            stored.add(_ALL_ROWS, batch)
        return stored

    def consume(self) -> LocalRows:
        """Return the rows for a single, final reading, which frees their memory batch by batch."""
        if self._origin is not None:
            self._origin.drain()
        return self

    def distinct(self, column: str) -> list[str]:
        """Return the distinct values of a text column, sorted."""
        return sorted(value for (value,) in self.count_by((column,)).rows if value is not None)

    def count_by(self, by: Sequence[str]) -> GroupCounts:
        """Count the rows by the values of text columns; the result is cached."""
        columns = tuple(by)
        if columns not in self._tallies:
            self._tallies[columns] = GroupCounts.of(self._source(), columns)
        return self._tallies[columns]

    def keys(self, on: Sequence[str]) -> KeySets:
        """Return the distinct keys by the values of the other key columns, all in memory."""
        return {group: KeySet(keys) for group, (keys, _) in self._key_numbers(on).groups.items()}

    def join_keys(
        self,
        on: Sequence[str],
        sources: Sequence[T],
        read: Callable[[T], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        *,
        keep_right: bool = False,
        narrow: bool = False,
    ) -> LocalRows:
        """Left-join with the rows of all sources; the keys of the left side stay in memory.

        With `keep_right` the sources are read a second time, so that their unmatched rows need no memory.
        """
        left = self if self._stored is not None else self.persist()
        left_keys = left._key_numbers(on)

        def matches(source: T) -> tuple[pa.Table, np.ndarray]:
            return left_keys.matches(read(source), schema)

        matched = self._engine.map(matches, sources)
        columns = [field for field in schema if field.name not in on]
        right = pa.concat_tables([table for table, _ in matched]) if matched else schema.empty_table()
        positions = np.concatenate([np.zeros(0, dtype=np.int64), *(numbers for _, numbers in matched)])
        rows, partners = left_pairs(left_keys.codes, positions, left_keys.count)
        picked = right.select([field.name for field in columns]).take(pa.array(partners, mask=partners < 0))
        joined_schema = pa.schema([*self._schema, *columns])

        def joined() -> Iterator[pa.RecordBatch]:
            seen = 0
            for batch in left._source():
                start, end = np.searchsorted(rows, (seen, seen + batch.num_rows))
                part = picked.slice(start, end - start)
                repeated = batch if len(part) == len(batch) else batch.take(pa.array(rows[start:end] - seen))
                seen += batch.num_rows
                added = [_one_chunk(part.column(field.name)) for field in columns]
                yield pa.RecordBatch.from_arrays([*repeated.columns, *added], schema=joined_schema)
            if keep_right:
                for batch in stream(sources, read, self._engine.threads):
                    unmatched = left_keys.unmatched(batch).select([field.name for field in columns])
                    yield with_null_left(unmatched, self._schema)

        return LocalRows(self._engine, joined_schema, joined, left._origin)

    def _key_numbers(self, on: Sequence[str]) -> WantedKeys:
        columns = tuple(on)
        if columns not in self._numbers_by_columns:
            self._numbers_by_columns[columns] = WantedKeys.of(self._source(), columns)
        return self._numbers_by_columns[columns]

    def exchange(self, by: Sequence[str]) -> LocalGroups:
        """Bring rows with equal values in `by` together."""
        return LocalGroups(self._engine, self._schema, self._source, by)

    def sort(self, by: Sequence[str], *, global_sort: bool) -> LocalSorted:
        """Sort the rows; with `global_sort` or without it, one process sorts them as a whole."""
        return LocalSorted(self._engine, self._schema, self._source, by)

    def run(self, task: TaskFunction[R]) -> list[R]:
        """Run a task on the one stream; it may use all of the engine's threads."""
        engine = self._engine
        return list(task(self._source(), TaskContext(0, 0, 0, engine.threads, engine.memory_bytes)))

    def release(self) -> None:
        """Free the stored rows."""
        if self._stored is not None:
            self._stored.close()


class LocalGroups(LocalRows):
    """Rows after an exchange: each part is one group."""

    def __init__(self, engine: LocalEngine, schema: pa.Schema, source: Source, by: Sequence[str]) -> None:
        super().__init__(engine, schema, source)
        self._by = tuple(by)

    def map_batches(self, function: BatchFunction, schema: pa.Schema) -> LocalRows:
        """Apply a function lazily to each large group, and to several small ones together, in parallel."""

        def stream() -> Iterator[pa.RecordBatch]:
            groups = self._engine.spilling_groups(self._schema)

            def apply(keys: list[Hashable]) -> list[pa.RecordBatch]:
                results = list(function(chain.from_iterable(map(groups.batches, keys))))
                for key in keys:
                    groups.drop(key)
                return results

            try:
                self._gather(groups)
                threads = 1 if groups.are_little else self._engine.threads
                for batches in ordered_map(apply, groups.parts(threads), threads):
                    yield from batches
            finally:
                groups.close()

        return LocalRows(self._engine, schema, stream)

    def run(self, task: TaskFunction[R]) -> list[R]:
        """Run a task for each large group, and for several small ones, which it gets one after the other."""
        groups = self._engine.spilling_groups(self._schema)

        def run_part(numbered: tuple[int, list[Hashable]]) -> list[R]:
            number, keys = numbered
            rows = chain.from_iterable(map(groups.batches, keys))
            results = list(task(rows, TaskContext(number, 0, 0)))
            for key in keys:
                groups.drop(key)
            return results

        try:
            self._gather(groups)
            parts = groups.parts(self._engine.threads)
            results_by_part = self._engine.map(run_part, list(enumerate(parts)))
            return [result for results in results_by_part for result in results]
        finally:
            groups.close()

    def _gather(self, groups: SpillingGroups) -> None:
        def split(batch: pa.RecordBatch) -> list[tuple[GroupKey, pa.RecordBatch]]:
            return split_by(batch, self._by)

        for parts in ordered_map(split, self._source(), self._engine.threads):
            for key, batch in parts:
                groups.add(key, batch)


class LocalSorted(LocalRows):
    """Rows after a sort: each part is a sorted range, and the parts follow each other."""

    def __init__(self, engine: LocalEngine, schema: pa.Schema, source: Source, by: Sequence[str]) -> None:
        super().__init__(engine, schema, source)
        self._by = tuple(by)

    def run(self, task: TaskFunction[R]) -> list[R]:
        """Run a task for each range."""
        engine = self._engine
        ranges = SortedRanges(
            self._schema, self._by, engine.memory_bytes, engine.threads, engine.temporary_folder
        )

        def run_range(numbered: tuple[int, Iterator[pa.RecordBatch]]) -> list[R]:
            return list(task(numbered[1], TaskContext(numbered[0], 0, 0)))

        try:
            ranges.take(self._source())
            results_by_range = engine.map(run_range, list(enumerate(ranges.parts())))
            return [result for results in results_by_range for result in results]
        finally:
            ranges.close()


def ordered_map(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Apply a function on several threads and yield the results in order, with a bounded read-ahead."""
    items, is_single = _is_single(items)
    if is_single:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[R]] = deque()
        try:
            for item in items:
                ahead.append(pool.submit(function, item))
                if len(ahead) > 2 * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


def _is_single(items: Iterable[T]) -> tuple[Iterator[T], bool]:
    """Return the items, and whether there is at most one, which needs no thread."""
    rest = iter(items)
    first = list(islice(rest, 2))
    return chain(first, rest), len(first) < 2


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def engine_of(engine: Engine | None) -> Engine:
    """Return the engine of a call: the embedded one where none is given.

    Raises:
        InvalidError: it is no engine.
    """
    if engine is None:
        return LocalEngine()
    if not (hasattr(engine, "map") and hasattr(engine, "read")):
        raise InvalidError(
            f"engine is {engine!r}, which is no engine. Leave it out, or give"
            " drawstring.spark.SparkEngine(spark)."
        )
    return engine


SOURCES_AHEAD: Final = 2
"""Sources for each thread that are read, or wait for their consumer: no thread waits for a slower one."""

BATCHES_AHEAD_MAX: Final = 4
"""Batches that a source may read ahead of its consumer."""

_POLL_SECONDS: Final = 0.1


def stream(
    sources: Sequence[T], read: Callable[[T], Iterator[pa.RecordBatch]], threads: int
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all sources in the sources' order, reading several sources at a time.

    Args:
        sources: the sources.
        read: reads one source.
        threads: sources read at the same time; with 1 the consumer's thread reads.
    """
    if threads == 1 or len(sources) == 1:
        for only in sources:
            yield from read(only)
        return
    running: deque[_Run] = deque()
    waiting = iter(sources)
    workers = _Workers(read, min(threads, len(sources)))
    try:
        while True:
            while len(running) < SOURCES_AHEAD * threads and (source := next(waiting, None)) is not None:
                running.append(workers.begin(source))
            if not running:
                return
            yield from running[0].batches()
            running.popleft()
    finally:
        workers.end()


class _Workers:
    """Threads that read sources one after the other.

    Args:
        read: reads one source.
        threads: their number.
    """

    def __init__(self, read: Callable[[Any], Iterator[pa.RecordBatch]], threads: int) -> None:
        self._read = read
        self._stop = Event()
        self._todo: SimpleQueue[_Run | None] = SimpleQueue()
        self._threads = [
            Thread(target=self._work, daemon=True, name="drawstring-read") for _ in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def begin(self, source: Any) -> _Run:
        """Have a source read by the next thread that is free."""
        run = _Run(source, self._stop)
        self._todo.put(run)
        return run

    def end(self) -> None:
        """Stop the threads, and wait for them."""
        self._stop.set()
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (run := self._todo.get()) is not None and not self._stop.is_set():
            run.work(self._read)


class _Run:
    """The reading of one source, ahead of its consumer by a bounded number of batches."""

    def __init__(self, source: Any, stop: Event) -> None:
        self._source = source
        self._stop = stop
        self._queue: Queue[pa.RecordBatch | BaseException | None] = Queue(BATCHES_AHEAD_MAX)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches, as they are read."""
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def work(self, read: Callable[[Any], Iterator[pa.RecordBatch]]) -> None:
        """Read the source; what goes wrong is raised by `batches`."""
        last: BaseException | None = None
        try:
            for batch in read(self._source):
                if not self._put(batch):
                    return
        except BaseException as error:
            last = error
        if last is not None:
            self._put(last)
        self._put(None)

    def _put(self, item: pa.RecordBatch | BaseException | None) -> bool:
        """Queue an item; False when the consumer has stopped."""
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=_POLL_SECONDS)
                return True
            except Full:
                continue
        return False


def run_in_duckdb(query: str, relations: Mapping[str, Relation], threads: int) -> pa.Table:
    """Return the result of a query; see `Engine.sql`.

    Args:
        query: the query.
        relations: the tables that it may name.
        threads: number of threads of DuckDB.

    Raises:
        InvalidError: DuckDB refuses the query, or is not installed.
    """
    if find_spec("duckdb") is None:
        raise not_installed("SQL without Spark needs DuckDB", "duckdb")
    import duckdb

    with duckdb.connect(config={"threads": threads}) as connection:
        try:
            for name, relation in relations.items():
                connection.register(name, relation.dataset())
            found = connection.sql(query)
            if found is None:
                raise InvalidError(f"The statement {query!r} is no query. Give a SELECT.")
            return found.to_arrow_table()
        except duckdb.Error as error:
            if isinstance(error.__cause__, DrawstringError):
                raise error.__cause__ from error
            raise InvalidError(
                f"The query {query!r} fails: {' '.join(str(error).split())}. Correct it: it runs in DuckDB."
            ) from error
