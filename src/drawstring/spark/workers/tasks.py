"""Define the functions that the Spark engine runs in Python workers, and the transport of their errors.

The first task of a worker waits for its imports, so this module does not import Spark's DataFrames. `work`
sets up the worker and runs a task. `shares` divides file slices among tasks.

Filter by key hashes (`build_key_filter`): a small change of a large table joins a few keys with all keys of
the table. The hashes of these few keys are sent to the tasks that read the table's keys, and only rows that
may match go through the shuffle. The join compares the keys themselves.

Errors: Spark transmits the text of a worker's failure, not the exception. A worker therefore serializes a
drawstring error into the text (`serialize_errors`), and the driver parses it (`raise_worker_errors`): in
drawstring's own calls, and in actions of DataFrames that read tables.

If Spark's own Parquet reader misses a file, the failure is a Java exception. The driver remembers the
tables that Spark reads in this way (`watch`) and checks their timeline, as every reader does that misses a
file (`timeline.change_detection`).
"""

from __future__ import annotations

import gc
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from heapq import heapify, heapreplace
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyspark import TaskContext as SparkTask
from pyspark import cloudpickle
from pyspark.errors.exceptions import captured

from drawstring.base import errors
from drawstring.base.errors import disk_errors
from drawstring.base.resources import use_allocator
from drawstring.engine.grouping import GroupCounts, KeySets, coalesced, gather_keys, keys_size_bytes, matching
from drawstring.engine.protocol import TaskFunction
from drawstring.filegroups.file_slice_reader import read_task
from drawstring.formats.parquet.row_group_copy import read_parquet_groups
from drawstring.model.files import TaskContext
from drawstring.spark.errors import on_spark
from drawstring.spark.workers.rows import (
    LOOKED_UP,
    MAIN,
    Chain,
    JoinBuckets,
    Splitter,
    binary,
    packed,
    text_hash,
    with_types,
)
from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.change_detection import since

_MARK: Final = "drawstring-error"
_MISSED: Final = ("FAILED_READ_FILE.FILE_NOT_EXIST", "FileNotFoundException")
"""Texts by which Spark reports a missing file."""

_FILE: Final = r"(.+?\.parquet)"
_LOCAL: Final = re.compile(r"file:/+")
_watched: dict[str, Watched] = {}
_MARKED: Final = re.compile(_MARK + r" (\{\"kind\": .*\})$", re.MULTILINE)


P = ParamSpec("P")
R = TypeVar("R")


class WorkerError(Exception):
    """A drawstring error, serialized into its text."""


@contextmanager
def serialize_errors() -> Iterator[None]:
    """Serialize a drawstring error that a worker raises, or the error of a full disk."""
    try:
        with disk_errors("the disks of the worker"):
            yield
    except errors.DrawstringError as error:
        raise WorkerError(serialized(error)) from error


def naming(function: Callable[P, R]) -> Callable[P, R]:
    """Add the table at the argument `path` to every error of a function; see `spark.errors`."""
    signature = inspect.signature(function)

    @wraps(function)
    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except errors.DrawstringError as error:
            path = signature.bind(*args, **kwargs).arguments["path"]
            raise on_spark(error.at(table=path)) from error.__cause__

    return named


@contextmanager
def raise_worker_errors() -> Iterator[None]:
    """Raise the drawstring error that a Spark job failed with, if there is one."""
    try:
        yield
    except Exception as failure:
        error = _parsed(str(failure)) or _missed(str(failure))
        if error is None:
            raise
        raise error from failure


@dataclass(frozen=True, slots=True)
class Watched:
    """A table whose files Spark's own reader opens.

    Attributes:
        storage: opens the table.
        timeline_digest: digest of the timeline when the query was planned.
    """

    storage: StorageSpec
    timeline_digest: str


def watch(root: str, watched: Watched) -> None:
    """Remember a table, to distinguish lost files from cleaned files when Spark misses a file.

    Args:
        root: URI prefix of the table's files.
        watched: the table; the first entry of a root is kept.
    """
    _watched.setdefault(_LOCAL.sub("/", root).rstrip("/") + "/", watched)


def _missed(text: str) -> errors.DrawstringError | None:
    """Return the error for a file that Spark's own reader missed; None for other failures and tables."""
    if not any(mark in text for mark in _MISSED):
        return None
    normalized = _LOCAL.sub("/", unquote(text))
    root = max((watched for watched in _watched if watched in normalized), key=len, default=None)
    if root is None:
        return None
    table = _watched[root]
    path = re.search(re.escape(root) + _FILE, normalized)
    try:
        with since(table.storage, table.timeline_digest):
            raise errors.MissingFileError(
                f"A data file of the table is missing: {errors.REPAIR}.",
                table=table.storage.uri,
                path=path[1] if path else None,
            )
    except errors.DrawstringError as error:
        return error


def surface_in_actions() -> None:
    """Make actions of DataFrames raise the drawstring error that they failed with; once per process.

    Actions run in calls of the user, long after drawstring returned the DataFrame. Therefore this replaces
    PySpark's conversion of Java exceptions to Python exceptions.
    """
    own = captured.convert_exception
    if getattr(own, "_drawstring", False):
        return

    def convert(failure: Any) -> Any:
        converted = own(failure)
        text = str(converted)
        error = _parsed(text) or _missed(text)
        return converted if error is None else on_spark(error)

    convert._drawstring = True  # type: ignore[attr-defined]  # an attribute of a function
    captured.convert_exception = convert  # type: ignore[assignment]  # drawstring's errors are not Spark's


def serialized(error: errors.DrawstringError) -> str:
    """Return an error as a text, which the driver finds in the text of a failure."""
    kinds = (kind.__name__ for kind in type(error).__mro__)
    fields = {
        "kind": next(name for name in kinds if hasattr(errors, name)),
        "message": error.message,
        "table": error.table,
        "instant": error.instant,
        "path": error.path,
    }
    return f"{_MARK} {json.dumps(fields)}"


def _parsed(text: str) -> errors.DrawstringError | None:
    match = _MARKED.search(text)
    if match is None:
        return None
    fields = json.loads(match[1])
    kind = getattr(errors, fields.pop("kind"))
    error: errors.DrawstringError = kind(fields.pop("message"), **fields)
    return error


OPEN_COST_BYTES: Final = 4 << 20
"""Estimated cost of opening a file slice, in bytes; Spark's default for files."""

TASK_BYTES_MAX: Final = 128 << 20
"""Maximum size of the file slices in one task, in bytes, unless one is larger; Spark's default for files."""

_SMALL_BYTES: Final = 32 << 20
"""Maximum size of slices per core, in bytes, for a single task: below it a second task does not pay off."""

_TASKS_PER_CORE: Final = 2
_is_frozen = False


@contextmanager
def work() -> Iterator[None]:
    """Run a task: serialize its errors for the driver, and prepare the worker for the next task."""
    _choose_allocator()
    try:
        with serialize_errors():
            yield
    finally:
        freeze_loaded_objects()


@cache
def _choose_allocator() -> None:
    """Choose the allocator of this process once; a pool that somebody sets later stays."""
    use_allocator()


def freeze_loaded_objects() -> None:
    """Freeze the loaded objects for the garbage collector; once per process.

    A worker collects garbage after every task. With pyarrow and pandas loaded this takes 40 ms, twenty times
    as long as a small task. The collector skips frozen objects.
    """
    global _is_frozen
    if not _is_frozen:
        _is_frozen = True
        gc.collect()
        gc.freeze()


def shares(sizes_bytes: Sequence[int], parallelism: int) -> list[list[int]]:
    """Divide file slices among tasks as evenly as possible.

    Args:
        sizes_bytes: size of every slice, in bytes.
        parallelism: number of tasks that run at once.

    Returns:
        The indices of the slices, by task.
    """
    costs = [size + OPEN_COST_BYTES for size in sizes_bytes]
    # Whole rounds of tasks: one more task would keep one core busy while the others are idle.
    rounds = 1 if sum(costs) <= parallelism * _SMALL_BYTES else _TASKS_PER_CORE
    count = max(rounds * parallelism, -(-sum(costs) // TASK_BYTES_MAX))
    tasks: list[list[int]] = [[] for _ in range(min(len(costs), count))]
    loads = [(0, task) for task in range(len(tasks))]
    heapify(loads)
    for number in sorted(range(len(costs)), key=lambda number: -costs[number]):
        load, task = loads[0]
        tasks[task].append(number)
        heapreplace(loads, (load + costs[number], task))
    return tasks


Hashes = np.ndarray[Any, np.dtype[np.uint32]]


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """A filter that passes all rows that match a key, and occasionally others (false positives).

    Attributes:
        column: the first key column, whose string values are hashed.
        hashes: sorted hashes of the keys.
    """

    column: str
    hashes: Hashes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that may match."""
        for batch in batches:
            matching = batch.filter(pa.array(self._contains(hashes_of(batch.column(self.column)))))
            if matching.num_rows:
                yield matching

    def _contains(self, hashes: Hashes) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if not len(self.hashes):
            return np.zeros(len(hashes), bool)
        positions = np.searchsorted(self.hashes, hashes)
        return np.asarray(self.hashes[np.minimum(positions, len(self.hashes) - 1)] == hashes)


def hashes_of(keys: pa.Array) -> Hashes:
    """Hash every key to 32 bits."""
    return (text_hash(keys.cast(pa.string())) >> np.uint64(32)).astype(np.uint32)


def build_key_filter(column: str, sets: KeySets) -> KeyFilter | None:
    """Return the filter by the keys of a change, None if only the ranges of the keys are known."""
    if keys_size_bytes(sets) is None:
        return None
    hashes = [hashes_of(key_set.keys) for key_set in sets.values()]
    return KeyFilter(column, np.unique(np.concatenate([np.zeros(0, np.uint32), *hashes])))


_PARTS_OF_FULL_SIZE: Final = 4


def _part() -> int:
    task = SparkTask.get()
    return task.partitionId() if task else 0


def _context() -> TaskContext:
    """Return the context of the running task attempt.

    The attempt number is unique in the application, so that the files of a retried stage have other names
    than those of an attempt that is still running.
    """
    task = SparkTask.get()
    return (
        TaskContext(task.partitionId(), task.stageId(), task.taskAttemptId())
        if task
        else TaskContext(0, 0, 0)
    )


@dataclass(frozen=True, slots=True)
class Ingest:
    """A batch function that casts Spark's batches to the core's types and coalesces small batches."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return coalesced(with_types(batch, self.schema) for batch in batches)


@dataclass(frozen=True, slots=True)
class AsTypes:
    """A batch function that casts rows to the types of Spark's columns."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            for batch in batches:
                yield with_types(batch, self.schema)


@dataclass(frozen=True, slots=True)
class Pack:
    """A batch function that runs the steps and packs the rows for a shuffle."""

    chain: Chain
    schema: pa.Schema
    split: Splitter

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            yield from packed(self.chain(batches), self.schema, self.split, MAIN, _part())


@dataclass(frozen=True, slots=True)
class ReadSources:
    """A batch function that reads the sources with the given numbers."""

    sources: list[bytes]
    read: Callable[[Any], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from self.read(cloudpickle.loads(self.sources[number]))


class ReadSlices:
    """A batch function that reads file slices in a Python worker.

    Args:
        schema: columns to yield.
        parts: pickled tasks by partition; None if the input rows contain the tasks.
        name: name of the function in Spark's plans.
        read: reads a task.
    """

    def __init__(
        self,
        schema: pa.Schema,
        parts: Sequence[bytes] | None = None,
        name: str = "read",
        read: Callable[[Any], Iterator[pa.RecordBatch]] = read_task,
    ) -> None:
        self._schema = schema
        self._parts = parts
        self._read = read
        self.__name__ = name

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of partitions, given their numbers or their tasks in the only column."""
        with work():
            for part in (part for batch in batches for part in batch.column(0).to_pylist()):
                for task in cloudpickle.loads(part if self._parts is None else self._parts[part]):
                    for rows in self._read(task):
                        yield with_types(rows.select(self._schema.names), self._schema)


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Some row groups of a Parquet file.

    Attributes:
        folder: folder of the file.
        name: name of the file in the folder.
        groups: numbers of the row groups.
        schema: the columns to yield.
    """

    folder: StorageSpec
    name: str
    groups: tuple[int, ...]
    schema: pa.Schema


def read_row_groups(task: Sequence[RowGroups]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the row groups of a task."""
    for part in task:
        storage = open_spec(part.folder)
        for batch in read_parquet_groups(storage, part.name, part.schema, part.groups):
            yield with_types(batch, part.schema)


@dataclass(frozen=True, slots=True)
class PackSources:
    """A batch function that reads the build side of a join and packs it."""

    sources: list[bytes]
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema
    split: Splitter
    wanted: KeyFilter | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            rows = ReadSources(self.sources, self.read)(batches)
            rows = rows if self.wanted is None else self.wanted(rows)
            yield from packed(rows, self.schema, self.split, LOOKED_UP, _part())


@dataclass(frozen=True, slots=True)
class RunTask:
    """A batch function that runs the steps and a task, and yields the pickled results of the task."""

    chain: Chain
    task: TaskFunction[Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            rows = (batch for batch in self.chain(batches) if batch.num_rows)
            first = next(rows, None)
            if first is not None:
                results = self.task(_chained(first, rows), _context())
                pickled = [cloudpickle.dumps(result) for result in results]
                yield pa.RecordBatch.from_arrays([pa.array(pickled, pa.binary())], names=["result"])


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


@dataclass(frozen=True, slots=True)
class OnItems:
    """A batch function that runs a task on the pickled items with the given numbers."""

    items: list[bytes]
    task: Callable[[Any], Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    pickled = cloudpickle.dumps(self.task(cloudpickle.loads(self.items[number])))
                    yield pa.RecordBatch.from_arrays([pa.array([pickled], pa.binary())], names=["result"])


@dataclass(frozen=True, slots=True)
class Count:
    """A task that counts the rows of a part by string columns."""

    by: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterable[GroupCounts]:
        return [GroupCounts.of(batches, self.by)]


@dataclass(frozen=True, slots=True)
class GatherKeys:
    """A task that returns the distinct keys of a part, and its row counts by the other key columns.

    Attributes:
        on: the key column, followed by the other key columns.
        bytes_max: maximum size of the keys that a part returns one by one, in bytes, if there are few parts.
    """

    on: tuple[str, ...]
    bytes_max: int

    def __call__(
        self, batches: Iterator[pa.RecordBatch], context: TaskContext
    ) -> Iterable[tuple[GroupCounts, KeySets]]:
        # A high part number means that many parts send keys to the driver, so each may send less.
        share = self.bytes_max // (1 + context.task // _PARTS_OF_FULL_SIZE)
        tallies: list[GroupCounts] = []
        sets = gather_keys(_counted(batches, self.on[1:], tallies), self.on, share)
        return [(GroupCounts.sum(tallies), sets)]


def _counted(
    batches: Iterator[pa.RecordBatch], by: Sequence[str], tallies: list[GroupCounts]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        tallies.append(GroupCounts.of((batch,), by))
        yield batch


@dataclass(frozen=True, slots=True)
class FindMatches:
    """A batch function that reads the build side of a join and yields the matches of few keys.

    It yields one Arrow message per part.

    Attributes:
        sources: pickled sources.
        read: reads one source.
        schema: columns that `read` yields.
        on: key columns.
        sets: the keys.
    """

    sources: list[bytes]
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema
    on: tuple[str, ...]
    sets: KeySets

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with work():
            rows = ReadSources(self.sources, self.read)(batches)
            matches = list(matching(rows, self.on, self.sets))
            if matches:
                message = pa.concat_batches(matches).serialize()
                yield pa.RecordBatch.from_arrays([binary([message])], names=["result"])


@dataclass(frozen=True, slots=True)
class JoinMatches:
    """A batch function that left-joins rows with the matches that all tasks received.

    Attributes:
        join: the join, with the columns of both sides.
        matches: rows of the build side.
    """

    join: JoinBuckets
    matches: pa.RecordBatch

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plain = (with_types(batch, self.join.left) for batch in batches)
        return self.join.matched(coalesced(plain), self.matches)
